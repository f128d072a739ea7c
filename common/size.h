/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes as people write and read them. Decimal suffixes are K M G T P, binary ones Ki Mi Gi Ti Pi.
 */
#ifndef HEARTH_COMMON_SIZE_H
#define HEARTH_COMMON_SIZE_H

#include <glib.h>
#include <stdint.h>

/*
 * "500G", "1.5Ti", "4096", "10GB", "10GiB". FALSE with G_IO_ERROR_INVALID_ARGUMENT for anything
 * else, and for more than 2^63-1; `what` names the option in the message.
 */
gboolean size_parse(const char *what, const char *text, uint64_t *bytes, GError **error);
/* "12.3 GiB"; free it. */
char *size_format(uint64_t bytes);

#endif
