/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing and checking the footer, opening a manifest, and finding an object in it. A deep check at
 * the opening compares the whole content with its checksum. Later the file is read through a
 * mapping, so every access is in a Guard.
 */
#include "cache/manifest/manifest.h"
#include <endian.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "cache/manifest/erofs.h"
#include "cache/store/disk/guard.h"
#include "cache/store/disk/key.h"
#include "common/io_error.h"

/* Records that begin like an object's and are another's. More than this were made on purpose. */
#define TIES_MAX 64

static gboolean invalid(GError **error, const char *why)
{
    return io_fail(error, G_IO_ERROR_INVALID_DATA,
                   "the manifest is %s; remove it, and it is built again", why);
}

static gboolean fail_errno(GError **error, const char *what)
{
    int code = errno;
    return io_fail(error, g_io_error_from_errno(code), "%s the manifest: %s", what,
                   g_strerror(code));
}

/* To the disk's order or back. */
static void swap_footer(ManifestFooter *f)
{
    f->version = le32toh(f->version);
    f->flags = le32toh(f->flags);
    uint64_t *const fields[] = {&f->root_ino,    &f->snapshot, &f->root_version,    &f->image_bytes,
                                &f->names_bytes, &f->records,  &f->inodes,          &f->directories,
                                &f->files,       &f->bytes,    &f->content_checksum};
    for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
        *fields[i] = le64toh(*fields[i]);
}

static uint64_t footer_checksum(const ManifestFooter *as_stored)
{
    return htole64(XXH3_64bits(as_stored, offsetof(ManifestFooter, checksum)));
}

#define READ_BYTES (1 << 20)

/*
 * Of the first `bytes` of the file. Read, not mapped: a page that the disk does not give, or a
 * hole of a full tmpfs, would be a signal.
 */
static gboolean content_checksum(int fd, uint64_t bytes, uint64_t *checksum, GError **error)
{
    XXH3_state_t *state = XXH3_createState();
    g_autofree char *buf = g_malloc(READ_BYTES);
    uint64_t off = 0;
    XXH3_64bits_reset(state);
    posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    while (off < bytes) {
        ssize_t n = pread(fd, buf, MIN(READ_BYTES, bytes - off), (off_t)off);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : ENODATA;
            break;
        }
        XXH3_64bits_update(state, buf, (size_t)n);
        off += (uint64_t)n;
    }
    *checksum = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return off == bytes || fail_errno(error, "reading");
}

gboolean manifest_finish(int fd, ManifestFooter *footer, GError **error)
{
    uint64_t size =
        footer->image_bytes + footer->names_bytes + footer->records * sizeof(TableRecord);
    if (!content_checksum(fd, size, &footer->content_checksum, error))
        return FALSE;
    memcpy(footer->magic, MANIFEST_MAGIC, sizeof(footer->magic));
    footer->version = MANIFEST_VERSION;
    ManifestFooter stored = *footer;
    swap_footer(&stored);
    stored.checksum = footer_checksum(&stored);
    if (pwrite(fd, &stored, sizeof(stored), (off_t)size) != sizeof(stored) || fsync(fd) != 0)
        return fail_errno(error, "writing");
    return TRUE;
}

static gboolean check_content(const Manifest *m, int fd, gboolean deep, GError **error)
{
    uint64_t checksum;
    const ManifestFooter *f = &m->footer;
    uint64_t table_bytes, behind_image = 0;
    if (f->image_bytes < EROFS_BLOCK || f->image_bytes % EROFS_BLOCK != 0 ||
        __builtin_mul_overflow(f->records, sizeof(TableRecord), &table_bytes) ||
        __builtin_add_overflow(f->names_bytes, table_bytes, &behind_image) ||
        f->image_bytes > m->map_bytes || behind_image > m->map_bytes ||
        f->image_bytes + behind_image + sizeof(*f) != m->map_bytes)
        return invalid(error, "truncated, or its lengths are wrong");
    if (!deep)
        return TRUE;
    if (!content_checksum(fd, f->image_bytes + behind_image, &checksum, error))
        return FALSE;
    if (checksum != f->content_checksum)
        return invalid(error, "corrupt: its checksum is wrong");
    return TRUE;
}

Manifest *manifest_open(int fd, gboolean deep, GError **error)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        fail_errno(error, "reading");
        return NULL;
    }
    if ((uint64_t)st.st_size < EROFS_BLOCK + sizeof(ManifestFooter)) {
        invalid(error, "too short to be one");
        return NULL;
    }
    g_autoptr(Manifest) m = g_new0(Manifest, 1);
    m->map_bytes = (size_t)st.st_size;
    m->map = mmap(NULL, m->map_bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (m->map == MAP_FAILED) {
        m->map = NULL;
        fail_errno(error, "reading");
        return NULL;
    }
    if (!guard_copy(&m->footer, (const char *)m->map + m->map_bytes - sizeof(m->footer),
                    sizeof(m->footer))) {
        errno = EIO;
        fail_errno(error, "reading");
        return NULL;
    }
    if (memcmp(m->footer.magic, MANIFEST_MAGIC, sizeof(m->footer.magic)) != 0) {
        invalid(error, "truncated or none at all");
        return NULL;
    }
    gboolean good = m->footer.checksum == footer_checksum(&m->footer);
    swap_footer(&m->footer);
    if (good && m->footer.version != MANIFEST_VERSION) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_SUPPORTED,
                    "the manifest has format %u, this hearthd knows %d", m->footer.version,
                    MANIFEST_VERSION);
        return NULL;
    }
    if (!good) {
        invalid(error, "corrupt");
        return NULL;
    }
    if (!check_content(m, fd, deep, error))
        return NULL;
    m->names.list = (const uint8_t *)m->map + m->footer.image_bytes;
    m->names.bytes = m->footer.names_bytes;
    m->names.unreadable = &m->unreadable;
    m->table = (const TableRecord *)(m->names.list + m->names.bytes);
    return g_steal_pointer(&m);
}

void manifest_close(Manifest *m)
{
    if (!m)
        return;
    if (m->map)
        munmap(m->map, m->map_bytes);
    g_free(m);
}

gboolean manifest_is_of(const Manifest *m, const Origin *origin, const OriginAttr *root)
{
    return memcmp(m->footer.space, origin->space, sizeof(m->footer.space)) == 0 &&
           m->footer.root_ino == root->st.st_ino && m->footer.snapshot == root->snapshot &&
           m->footer.root_version == root->version;
}

/* FALSE: it cannot be read. */
static gboolean read_record(const Manifest *m, uint64_t index, TableRecord *record)
{
    if (guard_copy(record, &m->table[index], sizeof(*record)))
        return TRUE;
    atomic_store(m->names.unreadable, TRUE);
    return FALSE;
}

gboolean manifest_key(const Manifest *m, uint64_t index, ObjectKey *key)
{
    Name name;
    TableRecord record;
    gboolean found = read_record(m, index, &record) &&
                     names_read(&m->names, le64toh(record.at), &name) && name.is_file;
    *key = found ? name.key : (ObjectKey){.size = 0};
    memcpy(key->space, m->footer.space, sizeof(key->space));
    return found;
}

/* -EIO: the table cannot be read. */
static int find_first(const Manifest *m, const ObjectId *id, uint64_t *first)
{
    Guard guard;
    if (GUARD_ENTER(&guard)) {
        atomic_store(m->names.unreadable, TRUE);
        return -EIO;
    }
    *first = table_first(m->table, m->footer.records, id);
    guard_leave();
    return 0;
}

int manifest_find(const Manifest *m, const ObjectId *id, uint64_t *index)
{
    uint64_t first;
    int r = find_first(m, id, &first);
    for (uint64_t i = first; r == 0 && i < m->footer.records && i - first < TIES_MAX; i++) {
        ObjectKey key;
        ObjectId of;
        TableRecord record;
        if (!read_record(m, i, &record))
            return -EIO;
        if (!table_may_be(&record, id))
            break;
        if (!manifest_key(m, i, &key))
            continue;
        object_key_id(&key, &of);
        *index = i;
        if (object_id_equal(&of, id))
            return 0;
    }
    return r < 0 || atomic_load(&m->unreadable) ? -EIO : -ENOENT;
}

/* The table has the beginning of IDs. Where two begin alike, the order is seen by the whole ID. */
static gboolean hash_tie(const Manifest *m, uint64_t index, XXH3_state_t *state)
{
    ObjectKey key;
    ObjectId id;
    if (!manifest_key(m, index, &key))
        return FALSE;
    object_key_id(&key, &id);
    XXH3_64bits_update(state, id.bytes, sizeof(id.bytes));
    return TRUE;
}

gboolean manifest_places(const Manifest *m, uint64_t *hash)
{
    XXH3_state_t *state = XXH3_createState();
    TableRecord record = {.at = 0};
    uint8_t before[sizeof(record.id)];
    gboolean good = TRUE;
    XXH3_64bits_reset(state);
    for (uint64_t i = 0; good && i < m->footer.records; i++) {
        good = read_record(m, i, &record);
        if (good && i > 0 && memcmp(record.id, before, sizeof(before)) == 0)
            good = hash_tie(m, i, state);
        XXH3_64bits_update(state, record.id, sizeof(record.id));
        memcpy(before, record.id, sizeof(before));
    }
    *hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return good;
}

char *manifest_path(const Manifest *m, uint64_t index)
{
    TableRecord record;
    return read_record(m, index, &record) ? names_path(&m->names, le64toh(record.at)) : NULL;
}
