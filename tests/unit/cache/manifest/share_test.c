/* Files put beside the data and fetched again, over a place for blobs in memory. */
#include "cache/manifest/share.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/harness.h"

#define ID "0123456789abcdef0123456789abcdef"
#define HEADER "manifest." ID
#define BYTES (9u << 20) /* three parts */

struct OriginBlobs {
    int unused;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static GHashTable *blobs; /* lock: name -> GBytes */
static int writes_until_error;
static OriginBlobs place;

static int blobs_open(Origin *o, OriginBlobs **out)
{
    (void)o;
    *out = &place;
    return 0;
}

static void blobs_close(OriginBlobs *b)
{
    ck_assert_ptr_eq(b, &place);
}

static ssize_t blob_read(OriginBlobs *b, const char *name, void *buf, size_t len, uint64_t off)
{
    (void)b;
    ssize_t n = -ENOENT;
    pthread_mutex_lock(&lock);
    GBytes *blob = g_hash_table_lookup(blobs, name);
    if (blob) {
        n = (ssize_t)MIN(len, g_bytes_get_size(blob) - off);
        memcpy(buf, (const char *)g_bytes_get_data(blob, NULL) + off, (size_t)n);
    }
    pthread_mutex_unlock(&lock);
    return n;
}

static int blob_write(OriginBlobs *b, const char *name, const void *buf, size_t len,
                      gboolean exclusive)
{
    (void)b;
    ck_assert_uint_le(len, 4 << 20);
    if (writes_until_error && --writes_until_error == 0)
        return -EPERM;
    if (exclusive && g_hash_table_contains(blobs, name))
        return -EEXIST;
    g_hash_table_replace(blobs, g_strdup(name), g_bytes_new(buf, len));
    return 0;
}

static int blob_append(OriginBlobs *b, const char *name, const void *buf, size_t len)
{
    (void)b;
    GBytes *old = g_hash_table_lookup(blobs, name);
    GByteArray *all = g_byte_array_new();
    if (old)
        g_byte_array_append(all, g_bytes_get_data(old, NULL), (guint)g_bytes_get_size(old));
    g_byte_array_append(all, buf, (guint)len);
    g_hash_table_replace(blobs, g_strdup(name), g_byte_array_free_to_bytes(all));
    return 0;
}

static int blob_remove(OriginBlobs *b, const char *name)
{
    (void)b;
    return g_hash_table_remove(blobs, name) ? 0 : -ENOENT;
}

static const OriginOps ops = {.type = "blobs",
                              .blobs_open = blobs_open,
                              .blobs_close = blobs_close,
                              .blob_read = blob_read,
                              .blob_write = blob_write,
                              .blob_append = blob_append,
                              .blob_remove = blob_remove};
static Origin origin = {.ops = &ops};

static void begin(void)
{
    writes_until_error = 0;
    blobs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)g_bytes_unref);
}

static void end(void)
{
    g_hash_table_unref(blobs);
}

/* A file of BYTES, of which each part is different. */
static int new_file(char seed)
{
    int fd = memfd_create("file", MFD_CLOEXEC);
    g_autofree char *bytes = g_malloc(BYTES);
    for (size_t i = 0; i < BYTES; i++)
        bytes[i] = (char)(seed + (char)(i >> 12) + (char)(i >> 20));
    ck_assert_int_eq(write(fd, bytes, BYTES), BYTES);
    return fd;
}

static gboolean put(int fd, gboolean replace, GError **error)
{
    atomic_bool cancel = FALSE;
    return share_put(&origin, ID, fd, replace, &cancel, error);
}

static int fetch(GError **error)
{
    atomic_bool cancel = FALSE;
    int fd = memfd_create("fetched", MFD_CLOEXEC);
    if (share_fetch(&origin, ID, fd, &cancel, error))
        return fd;
    close(fd);
    return -1;
}

static void assert_same(int a, int b)
{
    g_autofree char *x = g_malloc(BYTES + 1), *y = g_malloc(BYTES + 1);
    ck_assert_int_eq(pread(a, x, BYTES + 1, 0), BYTES);
    ck_assert_int_eq(pread(b, y, BYTES + 1, 0), BYTES);
    ck_assert_int_eq(memcmp(x, y, BYTES), 0);
}

START_TEST(what_was_put_is_fetched)
{
    begin();
    int fd = new_file(1);
    g_autoptr(GError) none = NULL;
    ck_assert_int_lt(fetch(&none), 0);
    ck_assert(g_error_matches(none, G_IO_ERROR, G_IO_ERROR_NOT_FOUND));
    ck_assert(put(fd, FALSE, NULL));
    ck_assert_uint_eq(g_hash_table_size(blobs), 4);
    int got = fetch(NULL);
    assert_same(fd, got);
    close(got);
    close(fd);
    end();
}
END_TEST

START_TEST(one_that_is_there_stays_unless_it_is_replaced)
{
    begin();
    int first = new_file(1), second = new_file(2);
    ck_assert(put(first, FALSE, NULL));
    ck_assert(put(second, FALSE, NULL));
    int got = fetch(NULL);
    assert_same(first, got);
    close(got);
    ck_assert(put(second, TRUE, NULL));
    got = fetch(NULL);
    assert_same(second, got);
    close(got);
    /* And nothing is left of the first. */
    ck_assert_uint_eq(g_hash_table_size(blobs), 4);
    close(first);
    close(second);
    end();
}
END_TEST

START_TEST(what_cannot_be_put_leaves_nothing)
{
    for (int n = 1; n <= 4; n++) {
        begin();
        int fd = new_file(1);
        g_autoptr(GError) error = NULL;
        writes_until_error = n;
        ck_assert(!put(fd, FALSE, &error));
        ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED));
        ck_assert_uint_eq(g_hash_table_size(blobs), 0);
        close(fd);
        end();
    }
}
END_TEST

/* Replaces a blob whose name ends so by the first `size` bytes of it. */
static void damage(const char *suffix, size_t size)
{
    GHashTableIter iter;
    gpointer name, blob;
    g_hash_table_iter_init(&iter, blobs);
    while (g_hash_table_iter_next(&iter, &name, &blob))
        if (g_str_has_suffix(name, suffix)) {
            if (size == 0)
                g_hash_table_iter_remove(&iter);
            else
                g_hash_table_iter_replace(&iter, g_bytes_new_from_bytes(blob, 0, size));
            return;
        }
    ck_abort_msg("there is no %s", suffix);
}

START_TEST(what_is_damaged_is_refused_and_can_be_replaced)
{
    static const struct {
        const char *suffix;
        size_t size;
    } cases[] = {{".00000001", 0}, {".00000001", 100}, {".00000002", 5}, {HEADER, 39}, {HEADER, 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        begin();
        int fd = new_file(1);
        g_autoptr(GError) error = NULL;
        ck_assert(put(fd, FALSE, NULL));
        damage(cases[i].suffix, cases[i].size);
        ck_assert_int_lt(fetch(&error), 0);
        ck_assert_msg(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA), "%s",
                      error->message);
        ck_assert(put(fd, TRUE, NULL));
        int got = fetch(NULL);
        assert_same(fd, got);
        close(got);
        close(fd);
        end();
    }
}
END_TEST

START_TEST(both_ways_end_when_cancelled)
{
    begin();
    int fd = new_file(1);
    atomic_bool cancel = TRUE;
    g_autoptr(GError) error = NULL, other = NULL;
    ck_assert(!share_put(&origin, ID, fd, FALSE, &cancel, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED));
    ck_assert(put(fd, FALSE, NULL));
    ck_assert(!share_fetch(&origin, ID, fd, &cancel, &other));
    ck_assert(g_error_matches(other, G_IO_ERROR, G_IO_ERROR_CANCELLED));
    close(fd);
    end();
}
END_TEST

/* By it, who deletes the snapshot finds every object. */
START_TEST(a_list_of_the_snapshot_names_all_parts)
{
    begin();
    origin.snapshot_path = (char *)"/volumes/g/x/.snap/v1";
    int fd = new_file(1);
    ck_assert(put(fd, FALSE, NULL));
    ck_assert(put(fd, FALSE, NULL));
    ck_assert(put(fd, TRUE, NULL));
    GBytes *list = g_hash_table_lookup(blobs, "manifest-of./volumes/g/x/.snap/v1");
    ck_assert_ptr_nonnull(list);
    g_autofree char *text = g_strndup(g_bytes_get_data(list, NULL), g_bytes_get_size(list));
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    ck_assert_uint_eq(g_strv_length(lines), 3); /* two writers, and what follows the last line */
    guint found = 0;
    for (guint i = 0; i < 2; i++) {
        g_auto(GStrv) words = g_strsplit(lines[i], " ", -1);
        ck_assert_uint_eq(g_strv_length(words), 3);
        ck_assert_str_eq(words[0], ID);
        for (guint64 part = g_ascii_strtoull(words[2], NULL, 16); part-- > 0;) {
            g_autofree char *name =
                g_strdup_printf("manifest.%s.%s.%08x", ID, words[1], (guint)part);
            found += g_hash_table_contains(blobs, name);
        }
    }
    ck_assert_uint_eq(found + 2, g_hash_table_size(blobs)); /* the list and the header */
    origin.snapshot_path = NULL;
    close(fd);
    end();
}
END_TEST

HARNESS_MAIN("cache/manifest/share", a_list_of_the_snapshot_names_all_parts,
             what_was_put_is_fetched, one_that_is_there_stays_unless_it_is_replaced,
             what_cannot_be_put_leaves_nothing, what_is_damaged_is_refused_and_can_be_replaced,
             both_ways_end_when_cancelled)
