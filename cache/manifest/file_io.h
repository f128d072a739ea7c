/* SPDX-License-Identifier: Apache-2.0 */
/* Errors and whole writes of the files a manifest is made of. Private to this folder. */
#ifndef HEARTH_CACHE_MANIFEST_FILE_IO_H
#define HEARTH_CACHE_MANIFEST_FILE_IO_H

#include <errno.h>
#include <gio/gio.h>
#include <unistd.h>
#include "common/io_error.h"

/* Sets errno's error (EIO where there is none) for what was done; FALSE. */
static inline gboolean file_io_fail(GError **error, const char *what)
{
    int code = errno ? errno : EIO;
    return io_fail(error, g_io_error_from_errno(code), "%s: %s", what, g_strerror(code));
}

static inline gboolean file_io_write(int fd, const void *data, size_t size, const char *what,
                                     GError **error)
{
    const char *p = data;
    while (size > 0) {
        ssize_t n = write(fd, p, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return file_io_fail(error, what);
        p += n;
        size -= (size_t)n;
    }
    return TRUE;
}

#endif
