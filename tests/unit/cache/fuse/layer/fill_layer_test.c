/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cache/fuse/layer/layer_world.h"

START_TEST(an_object_is_a_file_with_its_bytes_and_is_kept)
{
    World w;
    world_up(&w, "bytes of the file");
    uint64_t node = lookup_object(&w);
    ck_assert_int_eq(kernel_open(&w.kernel, node, O_RDONLY)->error, -ENOSYS);
    for (int i = 0; i < 2; i++) {
        Reply *r = kernel_read(&w.kernel, node, 0, 6, 4096);
        ck_assert_int_eq(r->error, 0);
        ck_assert_uint_eq(r->len, 11);
        ck_assert_mem_eq(r->data, "of the file", 11);
    }
    ObjectKey key;
    ObjectId id;
    ck_assert(manifest_key(w.manifest, 0, &key));
    object_key_id(&key, &id);
    StoreFill *fill = store_fill_path(w.store, w.origin, "f", &key, "d");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    ck_assert(store_has(w.store, &id));
    world_down(&w);
}
END_TEST

/* And not as a name that is not there, which the kernel would keep in mind. */
START_TEST(a_manifest_that_cannot_be_read_is_an_error)
{
    World w;
    world_up(&w, "bytes of the file");
    char hex[OBJECT_ID_HEX + 1], dir[3] = "";
    name_of(&w, hex);
    memcpy(dir, hex, 2);
    uint64_t parent = kernel_lookup(&w.kernel, 1, dir)->entry.nodeid;
    uint64_t node = lookup_object(&w);
    g_autofree char *path = g_build_filename(w.cache, "manifest", NULL);
    ck_assert_int_eq(truncate(path, 4096), 0);
    ck_assert_int_eq(kernel_lookup(&w.kernel, parent, hex)->error, -EIO);
    ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 4096)->error, -EIO);
    world_down(&w);
}
END_TEST

START_TEST(other_names_are_not_there)
{
    World w;
    world_up(&w, "x");
    char hex[OBJECT_ID_HEX + 1];
    name_of(&w, hex);
    uint64_t right = lookup_object(&w);
    ck_assert_uint_ge(right, 1024);
    const char *const at_root[] = {hex, "0", "0g", "000", "AB", "..."};
    for (gsize i = 0; i < G_N_ELEMENTS(at_root); i++)
        ck_assert_uint_eq(kernel_lookup(&w.kernel, 1, at_root[i])->entry.nodeid, 0);
    /* The object in another directory, and one that is nobody's. */
    char dir[3] = {hex[0] == '0' ? '1' : '0', hex[1], 0};
    uint64_t other = kernel_lookup(&w.kernel, 1, dir)->entry.nodeid;
    ck_assert_uint_eq(kernel_lookup(&w.kernel, other, hex)->entry.nodeid, 0);
    hex[OBJECT_ID_HEX - 1] = hex[OBJECT_ID_HEX - 1] == '0' ? '1' : '0';
    uint64_t parent = 2 + g_ascii_xdigit_value(hex[0]) * 16 + g_ascii_xdigit_value(hex[1]);
    ck_assert_uint_eq(kernel_lookup(&w.kernel, parent, hex)->entry.nodeid, 0);
    ck_assert_int_eq(kernel_read(&w.kernel, parent, 0, 0, 10)->error, -EISDIR);
    ck_assert_int_eq(kernel_read(&w.kernel, right + 1, 0, 0, 10)->error, -EISDIR);
    world_down(&w);
}
END_TEST

START_TEST(without_the_origin_a_read_fails_in_time_and_works_afterwards)
{
    World w;
    world_up(&w, "cold");
    set_gate(TRUE);
    set_silent(TRUE);
    uint64_t node = lookup_object(&w);
    ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 100)->error, -EIO);
    set_gate(FALSE);
    Reply *r;
    do {
        r = kernel_read(&w.kernel, node, 0, 0, 100);
    } while (r->error == -EIO); /* 50 ms may be too short on a busy machine */
    ck_assert_uint_eq(r->len, 4);
    ck_assert_mem_eq(r->data, "cold", 4);
    world_down(&w);
}
END_TEST

static gint64 read_fails_after_ms(World *w, uint64_t node)
{
    gint64 start = g_get_monotonic_time();
    if (!atomic_load(&silent_since_ms))
        set_silent(TRUE);
    ck_assert_int_eq(kernel_read(&w->kernel, node, 0, 0, 100)->error, -EIO);
    return (g_get_monotonic_time() - start) / 1000;
}

START_TEST(what_follows_a_read_that_waited_in_vain_is_answered_soon)
{
    World w;
    world_up_with(&w, "cold", 64 << 20, 1500, 0);
    set_gate(TRUE);
    uint64_t node = lookup_object(&w);
    ck_assert_int_ge(read_fails_after_ms(&w, node), 1490); /* two clocks */
    ck_assert_int_lt(read_fails_after_ms(&w, node), 1200);
    world_down(&w);
}
END_TEST

/* Asks without waiting for the answer. */
static void send_read(World *w, uint64_t node)
{
    const struct fuse_read_in in = {.size = 100};
    kernel_send(&w->kernel, FUSE_READ, node, &in, sizeof(in));
}

START_TEST(who_waits_for_ceph_keeps_nobody_from_what_is_there)
{
    World w;
    world_up_with(&w, "first", 64 << 20, 20000, 0);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    /* More than there are threads. */
    for (int i = 0; i < 100; i++)
        send_read(&w, node);
    gint64 start = g_get_monotonic_time();
    ck_assert_uint_ne(kernel_lookup(&w.kernel, 1, "00")->entry.nodeid, 0);
    ck_assert_int_lt(g_get_monotonic_time() - start, 10 * G_TIME_SPAN_SECOND);
    set_gate(FALSE);
    world_down(&w);
}
END_TEST

/* A store of 4 KiB takes nothing. */
START_TEST(what_the_store_does_not_take_is_read_past_it)
{
    World w;
    world_up_with(&w, "past the store", 4096, 20000, 0);
    uint64_t node = lookup_object(&w);
    Reply *r = kernel_read(&w.kernel, node, 0, 5, 100);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->len, 9);
    ck_assert_mem_eq(r->data, "the store", 9);
    FillLayerStats stats;
    fill_layer_stats(w.layer, &stats);
    ck_assert_uint_eq(stats.bytes_origin, 9);
    world_down(&w);
}
END_TEST

START_TEST(a_read_past_the_store_fails_in_time_too)
{
    World w;
    world_up_with(&w, "past the store", 4096, 50, 0);
    set_gate(TRUE);
    uint64_t node = lookup_object(&w);
    ck_assert_int_lt(read_fails_after_ms(&w, node), 10000);
    set_gate(FALSE);
    while (kernel_read(&w.kernel, node, 0, 0, 100)->error == -EIO)
        ;
    world_down(&w);
}
END_TEST

/* Descriptors of this process that lead to a file that was removed from beneath the directory. */
static unsigned removed_but_open(const char *below)
{
    unsigned n = 0;
    GDir *dir = g_dir_open("/proc/self/fd", 0, NULL);
    for (const char *name; (name = g_dir_read_name(dir));) {
        g_autofree char *path = g_build_filename("/proc/self/fd", name, NULL);
        g_autofree char *to = g_file_read_link(path, NULL);
        n += to && g_str_has_prefix(to, below) && g_str_has_suffix(to, " (deleted)");
    }
    g_dir_close(dir);
    return n;
}

START_TEST(what_was_evicted_is_not_kept_open)
{
    World w;
    world_up(&w, "evicted");
    g_autofree char *store = g_build_filename(w.cache, "store", NULL);
    uint64_t node = lookup_object(&w);
    ObjectKey key;
    ck_assert(manifest_key(w.manifest, 0, &key));
    while (kernel_read(&w.kernel, node, 0, 0, 100)->error == -EIO)
        ;
    StoreFill *fill = store_fill_path(w.store, w.origin, "f", &key, "d");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
    for (int from_object = 0; from_object < 2; from_object++) {
        ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 100)->error, 0);
        if (from_object)
            ck_assert_uint_gt(store_evict(w.store, NULL, UINT64_MAX), 0);
        gint64 until = g_get_monotonic_time() + 10 * G_TIME_SPAN_SECOND;
        while (removed_but_open(store) && g_get_monotonic_time() < until)
            g_usleep(20000);
        ck_assert_uint_eq(removed_but_open(store), 0);
    }
    world_down(&w);
}
END_TEST

START_TEST(a_file_that_is_another_now_gives_an_error_not_its_bytes)
{
    World w;
    world_up(&w, "first");
    g_autofree char *file = g_build_filename(w.dir, "f", NULL);
    ck_assert(g_file_set_contents(file, "other", -1, NULL));
    uint64_t node = lookup_object(&w);
    ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 100)->error, -EIO);
    world_down(&w);
}
END_TEST

START_TEST(a_refused_layer_answers_nothing_more)
{
    World w;
    char hex[OBJECT_ID_HEX + 1], dir[3] = "";
    world_up(&w, "bytes of the file");
    uint64_t node = lookup_object(&w);
    ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 4096)->error, 0);
    name_of(&w, hex);
    memcpy(dir, hex, 2);
    uint64_t parent = kernel_lookup(&w.kernel, 1, dir)->entry.nodeid;
    fill_layer_refuse(w.layer);
    ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 4096)->error, -EACCES);
    ck_assert_int_eq(kernel_lookup(&w.kernel, parent, hex)->error, -EACCES);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/layer/fill_layer", a_refused_layer_answers_nothing_more,
             an_object_is_a_file_with_its_bytes_and_is_kept,
             a_manifest_that_cannot_be_read_is_an_error, other_names_are_not_there,
             without_the_origin_a_read_fails_in_time_and_works_afterwards,
             what_follows_a_read_that_waited_in_vain_is_answered_soon,
             who_waits_for_ceph_keeps_nobody_from_what_is_there,
             what_the_store_does_not_take_is_read_past_it, a_read_past_the_store_fails_in_time_too,
             what_was_evicted_is_not_kept_open,
             a_file_that_is_another_now_gives_an_error_not_its_bytes)
