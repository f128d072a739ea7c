/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names are written in order to an unnamed file, and copied behind the image at the end. They are
 * read from the mapped manifest: every field is checked, because the file may be damaged.
 */
#include "cache/manifest/names.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/file_io.h"
#include "cache/store/disk/guard.h"

#define BUFFER (1u << 20)
/* No path of so many parts can be named. */
#define DEPTH_MAX 2048

struct NamesWriter {
    int fd;
    GByteArray *buffer;
    uint64_t bytes; /* with what is buffered */
};

static gboolean flush(NamesWriter *w, GError **error)
{
    gboolean good = file_io_write(w->fd, w->buffer->data, w->buffer->len,
                                  "writing the manifest's names", error);
    g_byte_array_set_size(w->buffer, 0);
    return good;
}

NamesWriter *names_writer_new(const char *dir, GError **error)
{
    uint64_t root;
    g_autoptr(NamesWriter) w = g_new0(NamesWriter, 1);
    w->buffer = g_byte_array_sized_new(BUFFER);
    w->fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (w->fd < 0) {
        file_io_fail(error, dir);
        return NULL;
    }
    return names_add(w, 0, "", NULL, &root, error) ? g_steal_pointer(&w) : NULL;
}

void names_writer_free(NamesWriter *w)
{
    if (!w)
        return;
    if (w->fd >= 0)
        close(w->fd);
    g_byte_array_unref(w->buffer);
    g_free(w);
}

gboolean names_add(NamesWriter *w, uint64_t parent, const char *name, const ObjectKey *key,
                   uint64_t *at, GError **error)
{
    NameRecord record = {.parent = htole64(parent), .length = (uint8_t)strlen(name)};
    if (key) {
        record.is_file = 1;
        record.ino = htole64(key->ino);
        record.version = htole64(key->version);
        record.size = htole64(key->size);
        record.mtime_sec = htole64((uint64_t)key->mtime_sec);
        record.mtime_nsec = htole32(key->mtime_nsec);
    }
    if (w->buffer->len + sizeof(record) + record.length > BUFFER && !flush(w, error))
        return FALSE;
    g_byte_array_append(w->buffer, (const guint8 *)&record, sizeof(record));
    g_byte_array_append(w->buffer, (const guint8 *)name, record.length);
    *at = w->bytes;
    w->bytes += sizeof(record) + record.length;
    return TRUE;
}

uint64_t names_bytes(const NamesWriter *w)
{
    return w->bytes;
}

gboolean names_finish(NamesWriter *w, int fd, uint64_t *bytes, GError **error)
{
    if (!flush(w, error))
        return FALSE;
    g_byte_array_set_size(w->buffer, BUFFER);
    for (uint64_t off = 0; off < w->bytes;) {
        ssize_t n = pread(w->fd, w->buffer->data, BUFFER, (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return file_io_fail(error, "reading back the manifest's names");
        if (!file_io_write(fd, w->buffer->data, (size_t)n, "writing the manifest's names", error))
            return FALSE;
        off += (uint64_t)n;
    }
    *bytes = w->bytes;
    return TRUE;
}

/* It will be looked up: no way out of the tree. */
static gboolean is_plain(const Name *name)
{
    const char *text = name->text;
    return name->length > 0 && !memchr(text, '/', name->length) &&
           !memchr(text, '\0', name->length) && !(name->length == 1 && text[0] == '.') &&
           !(name->length == 2 && text[0] == '.' && text[1] == '.');
}

static gboolean copy(const Names *names, uint64_t at, void *to, size_t size)
{
    gboolean copied = guard_copy(to, names->list + at, size);
    if (!copied && names->unreadable)
        atomic_store(names->unreadable, TRUE);
    return copied;
}

gboolean names_read(const Names *names, uint64_t at, Name *name)
{
    NameRecord r;
    if (at >= names->bytes || names->bytes - at < sizeof(r) || !copy(names, at, &r, sizeof(r)))
        return FALSE;
    if (names->bytes - at - sizeof(r) < r.length)
        return FALSE;
    *name = (Name){.at = at,
                   .next = at + sizeof(r) + r.length,
                   .parent = le64toh(r.parent),
                   .is_file = r.is_file,
                   .key = {.ino = le64toh(r.ino),
                           .version = le64toh(r.version),
                           .size = le64toh(r.size),
                           .mtime_sec = (int64_t)le64toh(r.mtime_sec),
                           .mtime_nsec = le32toh(r.mtime_nsec)},
                   .length = r.length};
    if (!copy(names, at + sizeof(r), name->text, r.length))
        return FALSE;
    return at == 0 ? name->length == 0 : name->parent < at && is_plain(name);
}

char *names_path(const Names *names, uint64_t at)
{
    g_autoptr(GPtrArray) parts = g_ptr_array_new_with_free_func(g_free);
    Name name;
    for (; at != 0; at = name.parent) {
        if (parts->len == DEPTH_MAX || !names_read(names, at, &name))
            return NULL;
        g_ptr_array_insert(parts, 0, g_strndup(name.text, name.length));
    }
    g_ptr_array_add(parts, NULL);
    return g_strjoinv("/", (char **)parts->pdata);
}
