/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for libFuzzer where there is none: FILES are replayed; of a DIRECTORY the files are the
 * seeds of random changes, made for -max_total_time=SECONDS. It knows no coverage, but finds what
 * lies near the seeds. The input that ends it is in ./crash-input.
 */
#include <fcntl.h>
#include <glib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "tests/fuzz/fuzz.h"

#define INPUT_MAX 65536

static uint64_t seed = 88172645463325252ULL;

static uint64_t below(uint64_t n)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    seed ^= seed << 17;
    return n ? seed % n : 0;
}

/* Before it runs, so that it is there when nothing else is. */
static void run(const uint8_t *data, size_t size)
{
    static int fd = -1;
    if (fd < 0)
        fd = open("crash-input", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0 || pwrite(fd, data, size, 0) != (ssize_t)size || ftruncate(fd, (off_t)size) < 0) {
        perror("crash-input");
        exit(2);
    }
    LLVMFuzzerTestOneInput(data, size);
}

/* A copy of exact size: a read beyond it is seen. */
static void run_exactly(const uint8_t *data, size_t size)
{
    g_autofree uint8_t *copy = g_malloc(size ? size : 1);
    memcpy(copy, data, size);
    run(copy, size);
}

static size_t change(uint8_t *buf, size_t size, const GByteArray *other)
{
    static const uint64_t odd[] = {0,          1,          0x7f,       0x80,       0xff,
                                   0x7fffffff, 0xffffffff, 1ULL << 63, UINT64_MAX, 4096};
    size_t at = below(size), length = 1 + below(16);
    switch (below(7)) {
    case 0:
        if (size)
            buf[at] ^= (uint8_t)(1 << below(8));
        return size;
    case 1:
        if (size)
            buf[at] = (uint8_t)below(256);
        return size;
    case 2: { /* a number */
        uint64_t value = GUINT64_TO_LE(odd[below(G_N_ELEMENTS(odd))] + below(3) - 1);
        length = (size_t)1 << below(4);
        if (size >= length)
            memcpy(buf + below(size - length + 1), &value, length);
        return size;
    }
    case 3: /* cut */
        length = MIN(length, size - at);
        memmove(buf + at, buf + at + length, size - at - length);
        return size - length;
    case 4: /* insert */
        if (size + length > INPUT_MAX)
            return size;
        memmove(buf + at + length, buf + at, size - at);
        for (size_t i = 0; i < length; i++)
            buf[at + i] = (uint8_t)below(256);
        return size + length;
    case 5: /* a piece of another */
        length = 1 + below(64);
        length = MIN(length, other->len); /* which evaluates what it is given twice */
        if (size + length > INPUT_MAX || !length)
            return size;
        memmove(buf + at + length, buf + at, size - at);
        memcpy(buf + at, other->data + below(other->len - length + 1), length);
        return size + length;
    default: /* shorter */
        return below(8) ? size : below(size + 1);
    }
}

static void fuzz(const GPtrArray *seeds, gint64 seconds)
{
    static uint8_t buf[INPUT_MAX];
    gint64 end = g_get_monotonic_time() + seconds * G_USEC_PER_SEC;
    guint64 runs = 0;
    for (; g_get_monotonic_time() < end; runs++) {
        const GByteArray *from = seeds->pdata[below(seeds->len)];
        const GByteArray *other = seeds->pdata[below(seeds->len)];
        size_t size = MIN(from->len, INPUT_MAX);
        memcpy(buf, from->data, size);
        for (uint64_t n = 1 + below(8); n > 0; n--)
            size = change(buf, size, other);
        run_exactly(buf, size);
    }
    printf("%" G_GUINT64_FORMAT " inputs in %" G_GINT64_FORMAT " s\n", runs, seconds);
}

static void add_seed(GPtrArray *seeds, const char *path)
{
    gchar *bytes;
    gsize size;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &bytes, &size, &error)) {
        fprintf(stderr, "%s\n", error->message);
        exit(2);
    }
    g_ptr_array_add(seeds, g_byte_array_new_take((guint8 *)bytes, size));
}

static void add_seeds(GPtrArray *seeds, const char *path)
{
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    for (const char *name; dir && (name = g_dir_read_name(dir));) {
        g_autofree char *file = g_build_filename(path, name, NULL);
        add_seed(seeds, file);
    }
    if (!dir)
        add_seed(seeds, path);
}

int main(int argc, char **argv)
{
    g_autoptr(GPtrArray) seeds = g_ptr_array_new_with_free_func((GDestroyNotify)g_byte_array_unref);
    gint64 seconds = 0;
    for (int i = 1; i < argc; i++) {
        if (g_str_has_prefix(argv[i], "-max_total_time="))
            seconds = g_ascii_strtoll(strchr(argv[i], '=') + 1, NULL, 10);
        else if (g_str_has_prefix(argv[i], "-seed="))
            seed ^= g_ascii_strtoull(strchr(argv[i], '=') + 1, NULL, 10) * 0x9e3779b97f4a7c15ULL;
        else if (argv[i][0] != '-')
            add_seeds(seeds, argv[i]);
    }
    if (seeds->len == 0)
        g_ptr_array_add(seeds, g_byte_array_new());
    for (guint i = 0; i < seeds->len; i++) {
        const GByteArray *s = seeds->pdata[i];
        run_exactly(s->data, s->len);
    }
    if (seconds)
        fuzz(seeds, seconds);
    else
        printf("%u inputs replayed\n", seeds->len);
    unlink("crash-input");
    return 0;
}
