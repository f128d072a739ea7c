/* SPDX-License-Identifier: Apache-2.0 */
/* The list of names: read back front to back and by place, and never beyond its end. */
#include "cache/manifest/names.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/harness.h"

typedef struct List {
    char *dir;
    NamesWriter *writer;
    int fd;
    Names names;
} List;

static List list_new(void)
{
    List l = {.dir = harness_tmpdir()};
    l.writer = names_writer_new(l.dir, NULL);
    ck_assert_ptr_nonnull(l.writer);
    return l;
}

static uint64_t add(List *l, uint64_t parent, const char *name, const ObjectKey *key)
{
    uint64_t at;
    ck_assert(names_add(l->writer, parent, name, key, &at, NULL));
    return at;
}

static void list_finish(List *l)
{
    l->fd = memfd_create("names", MFD_CLOEXEC);
    ck_assert(names_finish(l->writer, l->fd, &l->names.bytes, NULL));
    l->names.list = mmap(NULL, l->names.bytes, PROT_READ, MAP_SHARED, l->fd, 0);
    ck_assert(l->names.list != MAP_FAILED);
}

static void list_free(List *l)
{
    munmap((void *)l->names.list, l->names.bytes);
    close(l->fd);
    names_writer_free(l->writer);
    harness_remove(l->dir);
}

START_TEST(a_place_leads_to_the_path)
{
    List l = list_new();
    const ObjectKey key = {.ino = 7, .version = 8, .size = 9, .mtime_sec = -1, .mtime_nsec = 5};
    uint64_t a = add(&l, 0, "a", NULL), b = add(&l, a, "b", NULL);
    uint64_t f = add(&l, b, "f\xff\n", &key), top = add(&l, 0, "top", &key);
    list_finish(&l);
    g_autofree char *of_f = names_path(&l.names, f), *of_top = names_path(&l.names, top),
                    *of_root = names_path(&l.names, 0);
    ck_assert_str_eq(of_f, "a/b/f\xff\n");
    ck_assert_str_eq(of_top, "top");
    ck_assert_str_eq(of_root, "");
    Name name;
    ck_assert(names_read(&l.names, f, &name));
    ck_assert(name.is_file && name.parent == b && name.next == top);
    ck_assert_mem_eq(&name.key, &key, sizeof(key));
    ck_assert(names_read(&l.names, b, &name));
    ck_assert(!name.is_file);
    list_free(&l);
}
END_TEST

START_TEST(more_than_a_buffer_comes_back_in_order)
{
    enum { N = 50000 };
    List l = list_new();
    for (uint64_t i = 0; i < N; i++) {
        g_autofree char *name = g_strdup_printf("file-%" G_GUINT64_FORMAT, i);
        const ObjectKey key = {.ino = i};
        add(&l, 0, name, &key);
    }
    list_finish(&l);
    uint64_t n = 0;
    Name name;
    for (uint64_t at = 0; names_read(&l.names, at, &name); at = name.next) {
        if (name.is_file)
            ck_assert_uint_eq(name.key.ino, n++);
    }
    ck_assert_uint_eq(n, N);
    list_free(&l);
}
END_TEST

START_TEST(no_name_leads_out_of_the_tree)
{
    static const char *const bad[] = {"..", ".", "a/b", "/", ""};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        List l = list_new();
        const ObjectKey key = {.ino = 7};
        uint64_t dir = add(&l, 0, "d", NULL), at = add(&l, dir, bad[i], NULL);
        uint64_t file = add(&l, at, "f", &key);
        list_finish(&l);
        Name name;
        ck_assert_msg(!names_read(&l.names, at, &name), "%s", bad[i]);
        ck_assert_ptr_null(names_path(&l.names, file));
        list_free(&l);
    }
}
END_TEST

START_TEST(a_path_without_an_end_is_none)
{
    List l = list_new();
    const ObjectKey key = {.ino = 7};
    uint64_t at = 0;
    for (int i = 0; i < 100000; i++)
        at = add(&l, at, "d", NULL);
    at = add(&l, at, "f", &key);
    list_finish(&l);
    ck_assert_ptr_null(names_path(&l.names, at));
    list_free(&l);
}
END_TEST

START_TEST(what_leads_nowhere_is_refused)
{
    List l = list_new();
    uint64_t a = add(&l, 0, "a", NULL);
    uint64_t f = add(&l, a, "f", NULL);
    list_finish(&l);
    Name name;
    const uint64_t places[] = {l.names.bytes, l.names.bytes - 1, l.names.bytes + 1, UINT64_MAX};
    for (gsize i = 0; i < G_N_ELEMENTS(places); i++) {
        ck_assert(!names_read(&l.names, places[i], &name));
        ck_assert_ptr_null(names_path(&l.names, places[i]));
    }
    /* Cut short, and with a parent that is not before it. */
    Names cut = {.list = l.names.list, .bytes = l.names.bytes - 1};
    ck_assert(!names_read(&cut, f, &name));
    g_autofree uint8_t *copy = g_memdup2(l.names.list, l.names.bytes);
    memcpy(copy + a, &f, sizeof(f));
    const Names looped = {.list = copy, .bytes = l.names.bytes};
    ck_assert_ptr_null(names_path(&looped, f));
    list_free(&l);
}
END_TEST

HARNESS_MAIN("cache/manifest/names", no_name_leads_out_of_the_tree, a_path_without_an_end_is_none,
             a_place_leads_to_the_path, more_than_a_buffer_comes_back_in_order,
             what_leads_nowhere_is_refused)
