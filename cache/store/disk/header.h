/* SPDX-License-Identifier: Apache-2.0 */
/* <dir>/hearth-store (FormatHeader), and the wording of errors about the directory. For layout.c.
 */
#ifndef HEARTH_CACHE_STORE_DISK_HEADER_H
#define HEARTH_CACHE_STORE_DISK_HEADER_H

#include <glib.h>
#include "cache/store/disk/format.h"

/*
 * Reads the header; numbers in *h are in the machine's byte order. A missing one is no error:
 * *found is FALSE then. NOT_SUPPORTED: of another format version; INVALID_DATA: damaged.
 */
gboolean header_read(int dir_fd, const char *path, FormatHeader *h, gboolean *found,
                     GError **error);
/* Replaces it, durably. 0 or -errno. */
int header_write(int dir_fd, const char *boot_id, uint32_t state, uint32_t crashes);

/* Sets G_IO_ERROR from an errno, naming the path and the fix. Returns FALSE. */
gboolean layout_fail(GError **error, int errsv, const char *path, const char *what);

#endif
