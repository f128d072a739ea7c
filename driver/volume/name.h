/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the name a request gives to the name the volume has in its backend. It is a function of the
 * request alone, so that a retry after any crash finds what the first attempt left, and it keeps
 * the request's name where it can, so that an admin sees the PV's name in Ceph.
 */
#ifndef HEARTH_DRIVER_VOLUME_NAME_H
#define HEARTH_DRIVER_VOLUME_NAME_H

#include <glib.h>
#include "common/error.h"

/* The CSI limit on strings (spec, "Size Limits"). */
#define NAME_REQUEST_MAX 128
/* Digits of the hash that stands for a name that cannot be used as it is. */
#define NAME_HASH_DIGITS 32

/* INVALID_ARGUMENT: empty, longer than NAME_REQUEST_MAX, control characters, no UTF-8. */
gboolean name_check_request(const char *name, GError **error);

/*
 * <prefix><name>, or <prefix><32 hexadecimal digits of its SHA-256> when the name has characters
 * outside [A-Za-z0-9._-] or the result would exceed `room` bytes. INVALID_ARGUMENT as above, and
 * when not even the hash fits. The name has passed no check before; the prefix is good.
 */
char *name_backend(const char *prefix, const char *name, gsize room, GError **error);

/* TRUE for a non-empty string of [A-Za-z0-9._-] that does not begin with a '.' or a '-'. */
gboolean name_is_plain(const char *text);

#endif
