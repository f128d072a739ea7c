/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The header is replaced by rename, so the file has the old or the new header. Anything else is
 * refused: files are removed only in a directory that is certainly a store.
 */
#include "cache/store/disk/header.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/store/disk/replace.h"
#include "common/io_error.h"

gboolean layout_fail(GError **error, int errsv, const char *path, const char *what)
{
    int code = g_io_error_from_errno(errsv);
    const char *fix = "";
    if (errsv == EROFS) {
        code = G_IO_ERROR_READ_ONLY;
        fix = "; the cache needs a writable file system";
    } else if (errsv == ENOSPC || errsv == EDQUOT) {
        fix = "; free some space";
    } else if (errsv == EACCES || errsv == EPERM) {
        fix = "; give hearthd's user the directory";
    } else if (errsv == ENOTDIR) {
        fix = "; name a directory";
    }
    return io_fail(error, code, "cache directory %s: %s: %s%s", path, what, g_strerror(errsv), fix);
}

static uint64_t header_checksum(const FormatHeader *h)
{
    return XXH3_64bits(h, offsetof(FormatHeader, checksum));
}

/* *h is in the machine's byte order. ENOENT is no error: *found says. */
gboolean header_read(int dir_fd, const char *path, FormatHeader *h, gboolean *found, GError **error)
{
    *found = FALSE;
    hearth_autofd int fd = openat(dir_fd, FORMAT_HEADER_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return TRUE;
    if (fd < 0)
        return layout_fail(error, errno, path, "opening " FORMAT_HEADER_NAME);
    *found = TRUE;
    FormatHeader raw = {0};
    ssize_t n = pread(fd, &raw, sizeof(raw), 0);
    if (n < 0)
        return layout_fail(error, errno, path, "reading " FORMAT_HEADER_NAME);
    *h = raw;
    h->version = le32toh(raw.version);
    h->state = le32toh(raw.state);
    h->crashes = le32toh(raw.crashes);
    gboolean named = (size_t)n >= offsetof(FormatHeader, state) &&
                     memcmp(raw.magic, FORMAT_MAGIC, sizeof(raw.magic)) == 0;
    if (named && h->version != FORMAT_VERSION) {
        return io_fail(
            error, G_IO_ERROR_NOT_SUPPORTED,
            "cache directory %s has format version %u, this hearthd reads version %u: empty "
            "the directory, or run the hearthd that wrote it",
            path, h->version, FORMAT_VERSION);
    }
    if (!named || n != sizeof(raw) || le64toh(raw.checksum) != header_checksum(&raw)) {
        return io_fail(error, G_IO_ERROR_INVALID_DATA,
                       "cache directory %s: file " FORMAT_HEADER_NAME
                       " is damaged: empty the directory (it is only a cache)",
                       path);
    }
    h->boot_id[sizeof(h->boot_id) - 1] = '\0';
    return TRUE;
}

int header_write(int dir_fd, const char *boot_id, uint32_t state, uint32_t crashes)
{
    FormatHeader h = {
        .version = htole32(FORMAT_VERSION), .state = htole32(state), .crashes = htole32(crashes)};
    memcpy(h.magic, FORMAT_MAGIC, sizeof(h.magic));
    g_strlcpy(h.boot_id, boot_id, sizeof(h.boot_id));
    h.checksum = htole64(header_checksum(&h));
    return replace_file(dir_fd, FORMAT_HEADER_NAME, FORMAT_HEADER_NEW_NAME, &h, sizeof(h));
}
