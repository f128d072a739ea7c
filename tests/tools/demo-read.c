/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes a dataset and reads it back, with a clock: what the demo and the tests measure with.
 *
 *   demo-read write DIR MANIFEST [--files N --size B --per-dir N --large B --seed N --threads N]
 *   demo-read read  DIR MANIFEST [--only PREFIX --block B --seed N --threads N --verify --random N
 * --epochs N]
 *
 * The content is pseudo-random, different in every file and in every block, so that it cannot be
 * compressed and a block at the wrong place is noticed. The manifest has a line a file: XXH3 (128
 * bits) of the bytes as they were generated, before any file system saw them; the size; the path.
 *
 * Reading opens each file once, in an order shuffled by the seed, reads it to its end in blocks and
 * closes it; a size that differs is an error always. --verify also hashes what was read and
 * compares. A timed pass with --verify includes the hashing, so it may only make a figure worse.
 *
 * --random N reads N blocks, aligned, of any of the files, which are opened before the clock
 * starts.
 *
 * Prints one JSON object, in which per_s is of files or of random reads; exits 1 when a byte, a
 * size or an open was wrong.
 */
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

static int64_t files = 5000, file_size = 100000, per_directory = 250, large_size = 512000000;
static int64_t seed = 1, threads = 4, block_size = 1000000, random_reads, epochs = 1;
static char *only;
static gboolean verify;

typedef struct Item {
    char *path; /* relative to the dataset */
    int64_t size;
    uint64_t stream; /* seeds the content */
    XXH128_hash_t hash;
    int fd; /* while blocks are read at random */
} Item;

typedef struct Pass {
    const char *dir;
    GPtrArray *items;
    atomic_size_t next;
    atomic_llong bytes;
    atomic_int failed, different;
    size_t count; /* of what `work` is called for */
    gboolean (*work)(struct Pass *pass, size_t i, uint64_t *block);
} Pass;

static void item_free(void *data)
{
    Item *item = data;
    g_free(item->path);
    g_free(item);
}

static void complain(Pass *pass, const Item *item, const char *what, int error)
{
    if (atomic_fetch_add(&pass->failed, 1) < 5)
        fprintf(stderr, "demo-read: %s/%s: %s%s%s\n", pass->dir, item->path, what,
                error ? ": " : "", error ? g_strerror(error) : "");
}

/* splitmix64: fast enough not to be what is measured, and seekable, though nothing seeks here. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static gboolean write_item(Pass *pass, size_t i, uint64_t *block)
{
    Item *item = g_ptr_array_index(pass->items, i);
    g_autofree char *path = g_build_filename(pass->dir, item->path, NULL);
    g_autofree char *parent = g_path_get_dirname(path);
    if (g_mkdir_with_parents(parent, 0777) != 0 && errno != EEXIST) {
        complain(pass, item, "mkdir", errno);
        return FALSE;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd < 0) {
        complain(pass, item, "create", errno);
        return FALSE;
    }
    XXH3_state_t *hash = XXH3_createState();
    XXH3_128bits_reset(hash);
    uint64_t state = item->stream;
    int error = 0;
    for (int64_t done = 0; done < item->size && !error;) {
        int64_t length = MIN(block_size, item->size - done);
        for (int64_t word = 0; word * 8 < length; word++)
            block[word] = next_random(&state);
        XXH3_128bits_update(hash, block, (size_t)length);
        for (int64_t at = 0; at < length && !error;) {
            ssize_t n = write(fd, (char *)block + at, (size_t)(length - at));
            if (n < 0)
                error = errno;
            else
                at += n;
        }
        done += length;
    }
    item->hash = XXH3_128bits_digest(hash);
    XXH3_freeState(hash);
    if (close(fd) != 0 && !error)
        error = errno;
    if (error)
        complain(pass, item, "write", error);
    return !error;
}

static gboolean read_item(Pass *pass, size_t i, uint64_t *block)
{
    Item *item = g_ptr_array_index(pass->items, i % pass->items->len);
    g_autofree char *path = g_build_filename(pass->dir, item->path, NULL);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        complain(pass, item, "open", errno);
        return FALSE;
    }
    XXH3_state_t *hash = verify ? XXH3_createState() : NULL;
    if (hash)
        XXH3_128bits_reset(hash);
    int64_t done = 0;
    int error = 0;
    for (;;) {
        ssize_t n = read(fd, block, (size_t)block_size);
        if (n < 0)
            error = errno;
        if (n <= 0)
            break;
        if (hash)
            XXH3_128bits_update(hash, block, (size_t)n);
        done += n;
    }
    close(fd);
    gboolean same = done == item->size;
    if (hash) {
        same = same && XXH128_isEqual(XXH3_128bits_digest(hash), item->hash);
        XXH3_freeState(hash);
    }
    if (error) {
        complain(pass, item, "read", error);
        return FALSE;
    }
    if (!same) {
        atomic_fetch_add(&pass->different, 1);
        g_autofree char *size =
            g_strdup_printf("%" PRId64 " bytes, not %" PRId64, done, item->size);
        complain(pass, item, done == item->size ? "other bytes than were written" : size, 0);
        return FALSE;
    }
    atomic_fetch_add(&pass->bytes, done);
    return TRUE;
}

static gboolean read_random(Pass *pass, size_t i, uint64_t *block)
{
    uint64_t state = (uint64_t)seed * 0x100000001b3u + i;
    Item *item = g_ptr_array_index(pass->items, next_random(&state) % pass->items->len);
    int64_t blocks = item->size / block_size;
    off_t at = blocks ? (off_t)(next_random(&state) % (uint64_t)blocks) * block_size : 0;
    ssize_t n = pread(item->fd, block, (size_t)block_size, at);
    if (n != MIN(block_size, item->size)) {
        complain(pass, item, "read", n < 0 ? errno : 0);
        return FALSE;
    }
    atomic_fetch_add(&pass->bytes, n);
    return TRUE;
}

static gboolean open_all(Pass *pass)
{
    for (guint i = 0; i < pass->items->len; i++) {
        Item *item = pass->items->pdata[i];
        g_autofree char *path = g_build_filename(pass->dir, item->path, NULL);
        item->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (item->fd < 0) {
            complain(pass, item, "open", errno);
            return FALSE;
        }
        posix_fadvise(item->fd, 0, 0, POSIX_FADV_RANDOM);
    }
    return TRUE;
}

static void *run_thread(void *data)
{
    Pass *pass = data;
    /* One more word: a block whose length is no multiple of 8 is generated in whole words. */
    uint64_t *block = g_malloc((size_t)block_size + 8);
    for (;;) {
        size_t i = atomic_fetch_add(&pass->next, 1);
        if (i >= pass->count)
            break;
        pass->work(pass, i, block);
    }
    g_free(block);
    return NULL;
}

static double run(Pass *pass)
{
    pthread_t ids[64];
    int64_t n = CLAMP(threads, 1, 64);
    gint64 start = g_get_monotonic_time();
    for (int64_t i = 0; i < n; i++)
        if (pthread_create(&ids[i], NULL, run_thread, pass) != 0)
            g_error("demo-read: cannot start a thread");
    for (int64_t i = 0; i < n; i++)
        pthread_join(ids[i], NULL);
    return (double)(g_get_monotonic_time() - start) / 1e6;
}

static GPtrArray *plan(void)
{
    GPtrArray *items = g_ptr_array_new_with_free_func(item_free);
    for (int64_t i = 0; i < files + (large_size > 0); i++) {
        Item *item = g_new0(Item, 1);
        gboolean small = i < files;
        item->path = small
                         ? g_strdup_printf("small/%03d/%06d.bin", (int)(i / per_directory), (int)i)
                         : g_strdup("large/large.bin");
        item->size = small ? file_size : large_size;
        item->stream = (uint64_t)seed * 0x100000001b3u + ((uint64_t)i << 40);
        g_ptr_array_add(items, item);
    }
    return items;
}

static gboolean save(GPtrArray *items, const char *path)
{
    FILE *out = fopen(path, "we");
    if (!out) {
        fprintf(stderr, "demo-read: %s: %s\n", path, g_strerror(errno));
        return FALSE;
    }
    for (guint i = 0; i < items->len; i++) {
        Item *item = g_ptr_array_index(items, i);
        fprintf(out, "%016" PRIx64 "%016" PRIx64 " %" PRId64 " %s\n", (uint64_t)item->hash.high64,
                (uint64_t)item->hash.low64, item->size, item->path);
    }
    return fclose(out) == 0;
}

static GPtrArray *load(const char *path)
{
    FILE *in = fopen(path, "re");
    if (!in) {
        fprintf(stderr, "demo-read: %s: %s\n", path, g_strerror(errno));
        return NULL;
    }
    GPtrArray *items = g_ptr_array_new_with_free_func(item_free);
    uint64_t high, low;
    int64_t size;
    char name[4097];
    while (fscanf(in, "%16" SCNx64 "%16" SCNx64 " %" SCNd64 " %4096s", &high, &low, &size, name) ==
           4) {
        if (only && !g_str_has_prefix(name, only))
            continue;
        Item *item = g_new0(Item, 1);
        item->path = g_strdup(name);
        item->size = size;
        item->hash.high64 = high;
        item->hash.low64 = low;
        g_ptr_array_add(items, item);
    }
    fclose(in);
    return items;
}

static void shuffle(GPtrArray *items)
{
    uint64_t state = (uint64_t)seed;
    for (guint i = items->len; i > 1; i--) {
        guint j = (guint)(next_random(&state) % i);
        void *swap = items->pdata[i - 1];
        items->pdata[i - 1] = items->pdata[j];
        items->pdata[j] = swap;
    }
}

static void report(Pass *pass, double seconds)
{
    double bytes = (double)atomic_load(&pass->bytes);
    json_t *result =
        json_pack("{s:i, s:f, s:f, s:f, s:f, s:f, s:i, s:i}", "files", (int)pass->items->len,
                  "bytes", bytes, "seconds", seconds, "files_per_s", pass->items->len / seconds,
                  "per_s", (double)pass->count / seconds, "mb_per_s", bytes / 1e6 / seconds,
                  "failed", atomic_load(&pass->failed), "different", atomic_load(&pass->different));
    json_dumpf(result, stdout, JSON_COMPACT | JSON_REAL_PRECISION(9));
    putchar('\n');
    json_decref(result);
}

int main(int argc, char **argv)
{
    GOptionEntry options[] = {
        {"files", 0, 0, G_OPTION_ARG_INT64, &files, "Small files to write", "N"},
        {"size", 0, 0, G_OPTION_ARG_INT64, &file_size, "Bytes of a small file", "B"},
        {"per-dir", 0, 0, G_OPTION_ARG_INT64, &per_directory, "Files in a directory", "N"},
        {"large", 0, 0, G_OPTION_ARG_INT64, &large_size, "Bytes of the large file; 0: none", "B"},
        {"only", 0, 0, G_OPTION_ARG_STRING, &only, "Read paths that begin so", "PREFIX"},
        {"block", 0, 0, G_OPTION_ARG_INT64, &block_size, "Bytes a read or write", "B"},
        {"seed", 0, 0, G_OPTION_ARG_INT64, &seed, "Of content and of order", "N"},
        {"threads", 0, 0, G_OPTION_ARG_INT64, &threads, "Threads", "N"},
        {"random", 0, 0, G_OPTION_ARG_INT64, &random_reads, "Read N blocks at random", "N"},
        {"epochs", 0, 0, G_OPTION_ARG_INT64, &epochs, "Read all so many times", "N"},
        {"verify", 0, 0, G_OPTION_ARG_NONE, &verify, "Compare checksums", NULL},
        {NULL, 0, 0, 0, NULL, NULL, NULL},
    };
    g_autoptr(GOptionContext) context = g_option_context_new("write|read DIR MANIFEST");
    g_autoptr(GError) error = NULL;
    g_option_context_add_main_entries(context, options, NULL);
    if (!g_option_context_parse(context, &argc, &argv, &error) || argc != 4 || files < 0 ||
        block_size < 8 || block_size % 8 || per_directory < 1) {
        g_autofree char *help = g_option_context_get_help(context, TRUE, NULL);
        fprintf(stderr, "demo-read: %s\n%s", error ? error->message : "bad arguments", help);
        return 2;
    }
    gboolean writing = strcmp(argv[1], "write") == 0;
    if (!writing && strcmp(argv[1], "read") != 0) {
        fprintf(stderr, "demo-read: unknown verb \"%s\": write or read\n", argv[1]);
        return 2;
    }
    GPtrArray *items = writing ? plan() : load(argv[3]);
    if (!items || items->len == 0) {
        fprintf(stderr, "demo-read: no file to %s\n", argv[1]);
        return 1;
    }
    if (!writing)
        shuffle(items);
    Pass pass = {.dir = argv[2],
                 .items = items,
                 .count = random_reads > 0 ? (size_t)random_reads
                                           : items->len * (size_t)(writing ? 1 : epochs),
                 .work = writing            ? write_item
                         : random_reads > 0 ? read_random
                                            : read_item};
    if (pass.work == read_random && !open_all(&pass))
        return 1;
    double seconds = run(&pass);
    if (writing) {
        for (guint i = 0; i < items->len; i++)
            atomic_fetch_add(&pass.bytes, ((Item *)g_ptr_array_index(items, i))->size);
        if (!save(items, argv[3]))
            atomic_fetch_add(&pass.failed, 1);
    }
    report(&pass, seconds);
    g_ptr_array_unref(items);
    return atomic_load(&pass.failed) ? 1 : 0;
}
