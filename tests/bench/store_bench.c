/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of the store alone, without Ceph or FUSE: opens a second of warm objects, fills a second
 * of small files, and opening a store of many records. Prints one line for each.
 *
 *   store_bench DIRECTORY [records]
 *   store_bench --make DIRECTORY records      makes such a store, and leaves it
 *
 * DIRECTORY should be on the file system in question; what is made there is removed again.
 */
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cache/store/hooked.h"

#define OBJECTS 5000
#define OBJECT_BYTES 100000

struct OriginNode {
    OriginAttr attr;
};

static OriginNode *get(Origin *o, OriginNode *node)
{
    (void)o;
    return node;
}

static void put(Origin *o, OriginNode *node)
{
    (void)o;
    (void)node;
}

static int get_attributes(Origin *o, OriginNode *node, OriginAttr *attr)
{
    (void)o;
    *attr = node->attr;
    return 0;
}

static int open_file(Origin *o, OriginNode *node, int flags, OriginFile **file)
{
    (void)o;
    (void)flags;
    *file = (OriginFile *)node;
    return 0;
}

static int close_file(Origin *o, OriginFile *file)
{
    (void)o;
    (void)file;
    return 0;
}

static ssize_t read_file(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    (void)o;
    (void)file;
    memset(buf, (int)off, len);
    return (ssize_t)len;
}

static const OriginOps ops = {
    .type = "bench",
    .get = get,
    .put = put,
    .getattr = get_attributes,
    .open = open_file,
    .close = close_file,
    .read = read_file,
};
static Origin origin = {.ops = &ops};
static OriginNode nodes[OBJECTS];

static double seconds(void)
{
    return (double)g_get_monotonic_time() / 1e6;
}

static Store *open_store(const char *dir)
{
    g_autoptr(GError) error = NULL;
    StoreConfig config = {.dir = dir};
    Store *store = store_open(&config, &error);
    if (!store) {
        fprintf(stderr, "store_bench: %s\n", error->message);
        exit(1);
    }
    return store;
}

static void fill_and_open(const char *dir)
{
    Store *store = open_store(dir);
    char *buf = g_malloc(OBJECT_BYTES);
    ObjectId *ids = g_new(ObjectId, OBJECTS);
    unsigned refused = 0;
    double start = seconds();
    for (unsigned i = 0; i < OBJECTS; i++) {
        nodes[i].attr.st.st_ino = i + 1;
        nodes[i].attr.st.st_size = OBJECT_BYTES;
        ObjectKey key;
        object_key_init(&key, &origin, &nodes[i].attr);
        object_key_id(&key, &ids[i]);
        StoreFill *fill = store_fill(store, &origin, &nodes[i], &key, "bench");
        refused += !fill || store_fill_read(fill, buf, OBJECT_BYTES, 0) != OBJECT_BYTES;
        store_fill_unref(fill);
    }
    printf("fill and read, one thread: %.0f objects of %d bytes/s\n", OBJECTS / (seconds() - start),
           OBJECT_BYTES);
    unsigned rounds = 20, missing = 0;
    if (refused)
        printf("  but %u were refused: no room\n", refused);
    start = seconds();
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < OBJECTS; i++) {
            int fd = store_open_object(store, &ids[i * 2654435761u % OBJECTS], OBJECT_BYTES);
            if (fd >= 0)
                close(fd);
            missing += fd < 0;
        }
    printf("store_open_object and close: %.0f/s\n", rounds * OBJECTS / (seconds() - start));
    if (missing)
        printf("  but %u of %u were not held\n", missing, rounds * OBJECTS);
    start = seconds();
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned i = 0; i < OBJECTS; i++)
            close(layout_open_object(&store->layout, &ids[i * 2654435761u % OBJECTS]));
    printf("openat and close alone: %.0f/s\n", rounds * OBJECTS / (seconds() - start));
    g_free(ids);
    g_free(buf);
    start = seconds();
    store_close(store);
    printf("close with what was not synced yet: %.2f s\n", seconds() - start);
}

static void print_memory(void)
{
    g_autofree char *status = NULL;
    if (!g_file_get_contents("/proc/self/status", &status, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(status, "\n", -1);
    for (char **line = lines; *line; line++)
        if (g_str_has_prefix(*line, "RssAnon") || g_str_has_prefix(*line, "RssFile"))
            printf("  %s\n", g_strdelimit(*line, "\t", ' '));
}

static void make_records(const char *dir, uint64_t records)
{
    Store *store = open_store(dir);
    IndexChange *changes = g_new(IndexChange, 10000);
    double start = seconds();
    for (uint64_t done = 0; done < records;) {
        size_t n = 0;
        for (; n < 10000 && done < records; n++, done++) {
            IndexChange *c = &changes[n];
            *c = (IndexChange){.op = INDEX_PUT};
            c->record.key.ino = done + 1000000;
            c->record.key.size = OBJECT_BYTES;
            c->record.last_use_ms = done;
            object_key_id(&c->record.key, &c->id);
        }
        IndexTotals delta;
        if (index_apply(store->index, changes, n, 0, &delta) < 0) {
            fprintf(stderr, "store_bench: index_apply failed\n");
            exit(1);
        }
    }
    printf("recording: %.0f records/s\n", (double)records / (seconds() - start));
    g_free(changes);
    store_close(store);
}

static void many_records(const char *dir, uint64_t records)
{
    make_records(dir, records);
    double start = seconds();
    Store *store = open_store(dir);
    StoreStats stats;
    store_stats(store, &stats);
    printf("opening with %llu records: %.3f s\n", (unsigned long long)stats.objects,
           seconds() - start);
    print_memory();
    start = seconds();
    ObjectKey key = {.size = OBJECT_BYTES};
    ObjectId id;
    unsigned found = 0;
    for (key.ino = 1000000; key.ino < 1000000 + 200000; key.ino++) {
        object_key_id(&key, &id);
        found += store_has(store, &id);
    }
    printf("store_has: %.0f/s (%u held)\n", 200000 / (seconds() - start), found);
    print_memory();
    store_close(store);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
    (void)st, (void)flag, (void)ftw;
    return remove(path);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: store_bench DIRECTORY [records]\n");
        return 2;
    }
    if (argc == 4 && strcmp(argv[1], "--make") == 0) {
        make_records(argv[2], strtoull(argv[3], NULL, 10));
        return 0;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    g_autofree char *dir = g_build_filename(argv[1], "hearth-bench-XXXXXX", NULL);
    if (!g_mkdtemp(dir)) {
        perror(dir);
        return 1;
    }
    fill_and_open(dir);
    many_records(dir, argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000);
    nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    return 0;
}
