/* SPDX-License-Identifier: Apache-2.0 */
/* A small file that is replaced as a whole: a reader finds the old one or the new one. */
#ifndef HEARTH_CACHE_STORE_DISK_REPLACE_H
#define HEARTH_CACHE_STORE_DISK_REPLACE_H

#include <stddef.h>

/* Writes <dir_fd>/<new_name> and renames it over `name`, durably. 0 or -errno; then `name` may be
 * either. */
int replace_file(int dir_fd, const char *name, const char *new_name, const void *data, size_t size);

#endif
