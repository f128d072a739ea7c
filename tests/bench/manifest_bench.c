/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of building a manifest alone, of a tree that is only reckoned: seconds, bytes, and the
 * most memory of its own the process had meanwhile (RssAnon of proc(5): without the pages of
 * files).
 *
 *   manifest_bench DIRECTORY [FILES [WIDTH]]
 *
 * WIDTH files are in each directory, and each directory of directories has 1000. Needs room for
 * about 600 bytes a file in DIRECTORY. Fails when memory exceeds 300 MB.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cache/manifest/build.h"

#define LIMIT_KB 300000u
#define DIRS 1000u

static uint64_t files = 10000000, width = 1000;

/* A node is its number: 1 the root, then directories of directories, directories, files. */
#define MIDDLE 1000000000ull
#define LEAF 2000000000ull
#define FILE_NUMBER 3000000000ull

static OriginNode *node_of(uint64_t n)
{
    return (OriginNode *)(uintptr_t)n;
}

static void attributes(uint64_t n, OriginAttr *attr)
{
    *attr = (OriginAttr){.version = n, .snapshot = 5};
    attr->st.st_ino = n;
    attr->st.st_nlink = 1;
    attr->st.st_mode = n < FILE_NUMBER ? S_IFDIR | 0755 : S_IFREG | 0644;
    attr->st.st_size = n < FILE_NUMBER ? 0 : 1000 + (off_t)(n % 5000);
    attr->st.st_mtime = 1700000000;
}

static int root(Origin *o, OriginNode **node, OriginAttr *attr)
{
    (void)o;
    attributes(1, attr);
    *node = node_of(1);
    return 0;
}

static OriginNode *get(Origin *o, OriginNode *node)
{
    (void)o;
    return node;
}

static void put(Origin *o, OriginNode *node)
{
    (void)o, (void)node;
}

struct OriginDir {
    uint64_t first, end; /* numbers of its entries */
    char kind;
};

static uint64_t n_leaves(void)
{
    return (files + width - 1) / width;
}

static int open_dir(Origin *o, OriginNode *node, OriginDir **dir)
{
    (void)o;
    uint64_t n = (uintptr_t)node;
    OriginDir *d = g_new0(OriginDir, 1);
    if (n == 1)
        *d = (OriginDir){MIDDLE, MIDDLE + (n_leaves() + DIRS - 1) / DIRS, 'm'};
    else if (n < LEAF)
        *d = (OriginDir){LEAF + (n - MIDDLE) * DIRS,
                         LEAF + MIN((n - MIDDLE + 1) * DIRS, n_leaves()), 'd'};
    else
        *d = (OriginDir){FILE_NUMBER + (n - LEAF) * width,
                         FILE_NUMBER + MIN((n - LEAF + 1) * width, files), 'f'};
    *dir = d;
    return 0;
}

static int read_dir(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr, OriginEntry *entry)
{
    (void)o, (void)with_attr;
    uint64_t n = dir->first + (uint64_t)off;
    if (n >= dir->end)
        return 0;
    g_snprintf(entry->name, sizeof(entry->name), "%c%020" G_GUINT64_FORMAT ".sample", dir->kind, n);
    entry->next = off + 1;
    entry->node = node_of(n);
    attributes(n, &entry->attr);
    entry->ino = n;
    return 1;
}

static int close_dir(Origin *o, OriginDir *dir)
{
    (void)o;
    g_free(dir);
    return 0;
}

static int look_up(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                   OriginAttr *attr)
{
    (void)o, (void)parent;
    uint64_t n = g_ascii_strtoull(name + 1, NULL, 10);
    attributes(n, attr);
    *node = node_of(n);
    return 0;
}

static ssize_t list_xattrs(Origin *o, OriginNode *node, char *buf, size_t size)
{
    (void)o, (void)node, (void)buf, (void)size;
    return 0;
}

static const OriginOps ops = {.type = "reckoned",
                              .root = root,
                              .lookup = look_up,
                              .get = get,
                              .put = put,
                              .opendir = open_dir,
                              .readdir = read_dir,
                              .closedir = close_dir,
                              .listxattr = list_xattrs};

static atomic_bool over;
static atomic_ulong most_kb;

static unsigned long anonymous_kb(void)
{
    char line[256];
    unsigned long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "RssAnon: %lu", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

static void *watch(void *data)
{
    (void)data;
    const struct timespec often = {.tv_nsec = 20000000};
    while (!atomic_load(&over)) {
        unsigned long kb = anonymous_kb();
        if (kb > atomic_load(&most_kb))
            atomic_store(&most_kb, kb);
        nanosleep(&often, NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: manifest_bench DIRECTORY [FILES [WIDTH]]\n");
        return 2;
    }
    if (argc > 2)
        files = g_ascii_strtoull(argv[2], NULL, 10);
    if (argc > 3)
        width = MAX(1, g_ascii_strtoull(argv[3], NULL, 10));
    Origin origin = {.ops = &ops};
    BuildTree tree = {.origin = &origin};
    BuildProgress progress = {0};
    g_autoptr(GError) error = NULL;
    int fd = open(argv[1], O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    root(&origin, &tree.root, &tree.attr);
    pthread_t watcher;
    pthread_create(&watcher, NULL, watch, NULL);
    gint64 start = g_get_monotonic_time();
    gboolean built = fd >= 0 && manifest_build(fd, argv[1], &tree, UINT64_MAX, &progress, &error);
    double seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    atomic_store(&over, TRUE);
    pthread_join(watcher, NULL);
    if (!built) {
        fprintf(stderr, "manifest_bench: %s: %s\n", argv[1],
                error ? error->message : g_strerror(errno));
        return 1;
    }
    printf("%lu files in %.1f s, %.0f bytes a file, %lu kB of memory\n",
           (unsigned long)atomic_load(&progress.files), seconds,
           (double)lseek(fd, 0, SEEK_END) / (double)files, (unsigned long)atomic_load(&most_kb));
    return atomic_load(&most_kb) > LIMIT_KB;
}
