/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/live/nodes.h"
#include "tests/unit/harness.h"
#include <errno.h>

/* An origin whose nodes are counters: only put() is called by the table. */
static _Atomic int puts_seen;

static void count_put(Origin *o, OriginNode *node)
{
    (void)o;
    (void)node;
    atomic_fetch_add(&puts_seen, 1);
}

static const OriginOps counting_ops = {.type = "counting", .put = count_put};
static Origin origin = {.ops = &counting_ops};
static OriginNode *const any_node = (OriginNode *)&origin;

static OriginAttr attr_of(uint64_t ino, uint64_t snapshot)
{
    return (OriginAttr){.st = {.st_ino = ino, .st_mode = S_IFREG | 0644}, .snapshot = snapshot};
}

static Nodes *table(void)
{
    OriginAttr root = attr_of(0x10000000005, 0);
    puts_seen = 0;
    return nodes_new(&origin, any_node, &root);
}

static Node *found(Nodes *nodes, uint64_t ino, uint64_t snapshot)
{
    OriginAttr attr = attr_of(ino, snapshot);
    int r = 0;
    return nodes_found(nodes, any_node, &attr, &r);
}

START_TEST(node_id_is_the_inode_number)
{
    Nodes *nodes = table();
    Node *node = found(nodes, 0x10000000777, 0);
    ck_assert_uint_eq(node->id, 0x10000000777);
    nodes_done(nodes, node);
    nodes_free(nodes);
}
END_TEST

START_TEST(root_is_one_whatever_its_inode)
{
    Nodes *nodes = table();
    Node *node = found(nodes, 0x10000000005, 0);
    ck_assert_uint_eq(node->id, 1);
    nodes_done(nodes, node);
    nodes_free(nodes);
}
END_TEST

START_TEST(snapshot_and_live_inode_are_told_apart)
{
    Nodes *nodes = table();
    Node *live = found(nodes, 0x10000000777, 0);
    Node *then = found(nodes, 0x10000000777, 42);
    Node *again = found(nodes, 0x10000000777, 42);
    ck_assert_ptr_ne(live, then);
    ck_assert_ptr_eq(then, again);
    ck_assert_uint_eq(then->id & ((1ull << 48) - 1), 0x10000000777);
    nodes_done(nodes, live);
    nodes_done(nodes, then);
    nodes_done(nodes, again);
    nodes_free(nodes);
}
END_TEST

START_TEST(more_snapshots_than_tags_is_refused)
{
    Nodes *nodes = table();
    for (uint64_t snapshot = 1; snapshot <= 0xffff; snapshot++)
        nodes_done(nodes, found(nodes, 9, snapshot));
    OriginAttr attr = attr_of(9, 0x10000);
    int r = 0;
    ck_assert_ptr_null(nodes_found(nodes, any_node, &attr, &r));
    ck_assert_int_eq(r, -EOVERFLOW);
    nodes_free(nodes);
}
END_TEST

START_TEST(node_goes_with_the_last_lookup_and_use)
{
    Nodes *nodes = table();
    Node *node = found(nodes, 7, 0);
    nodes_done(nodes, found(nodes, 7, 0));
    ck_assert_int_eq(puts_seen, 1);
    nodes_forget(nodes, 7, 1);
    ck_assert_uint_eq(nodes_count(nodes), 2);
    nodes_forget(nodes, 7, 1);
    ck_assert_uint_eq(nodes_count(nodes), 2);
    nodes_done(nodes, node);
    ck_assert_uint_eq(nodes_count(nodes), 1);
    ck_assert_int_eq(puts_seen, 2);
    ck_assert_ptr_null(nodes_use(nodes, 7));
    nodes_free(nodes);
    ck_assert_int_eq(puts_seen, 3);
}
END_TEST

START_TEST(forgetting_the_unknown_or_too_often_is_harmless)
{
    Nodes *nodes = table();
    nodes_forget(nodes, 12345, 3);
    nodes_done(nodes, found(nodes, 7, 0));
    nodes_forget(nodes, 7, 100);
    ck_assert_uint_eq(nodes_count(nodes), 1);
    nodes_free(nodes);
}
END_TEST

static gboolean has(const GArray *ids, uint64_t id)
{
    guint i = 0;
    while (i < ids->len && g_array_index(ids, uint64_t, i) != id)
        i++;
    return i < ids->len;
}

START_TEST(what_is_in_use_or_was_asked_for_is_not_unused)
{
    Nodes *nodes = table();
    for (uint64_t ino = 100; ino < 300; ino++)
        nodes_done(nodes, found(nodes, ino, 0));
    OriginAttr dir = attr_of(400, 0);
    dir.st.st_mode = S_IFDIR | 0755;
    int r = 0;
    nodes_done(nodes, nodes_found(nodes, any_node, &dir, &r));
    Node *used = nodes_use(nodes, 100);
    nodes_done(nodes, nodes_use(nodes, 101));
    GArray *ids = nodes_unused(nodes, 10000);
    ck_assert_uint_eq(ids->len, 199);
    ck_assert(!has(ids, 1) && !has(ids, 100) && !has(ids, 101) && has(ids, 400));
    g_array_unref(ids);
    /* It was not asked for since. */
    ids = nodes_unused(nodes, 10000);
    ck_assert_uint_eq(ids->len, 200);
    ck_assert(!has(ids, 1) && !has(ids, 100) && has(ids, 101) && has(ids, 400));
    g_array_unref(ids);
    nodes_done(nodes, used);
    nodes_free(nodes);
}
END_TEST

START_TEST(the_longest_unused_come_first)
{
    Nodes *nodes = table();
    for (uint64_t ino = 16; ino < 16 + 32; ino++) /* two in each shard */
        nodes_done(nodes, found(nodes, ino, 0));
    GArray *first = nodes_unused(nodes, 1), *second = nodes_unused(nodes, 1);
    ck_assert_uint_eq(first->len, 16);
    ck_assert_uint_eq(second->len, 16);
    for (guint i = 0; i < first->len; i++)
        ck_assert(!has(second, g_array_index(first, uint64_t, i)));
    g_array_unref(first);
    g_array_unref(second);
    nodes_free(nodes);
}
END_TEST

START_TEST(what_was_forgotten_before_it_was_synced_is_still_to_be_synced)
{
    Nodes *nodes = table();
    Node *node = found(nodes, 100, 0);
    node->unsynced.writes = 1;
    atomic_store(&node->dirty, 1);
    nodes_done(nodes, node);
    nodes_forget(nodes, 100, 1);
    ck_assert_uint_eq(nodes_count(nodes), 1);
    node = found(nodes, 100, 0);
    ck_assert_int_eq(atomic_load(&node->dirty), 1);
    nodes_done(nodes, node);
    nodes_free(nodes);
}
END_TEST

static void *look_up_and_forget(void *data)
{
    for (int i = 0; i < 5000; i++) {
        uint64_t ino = 100 + (uint64_t)(i % 13);
        nodes_done(data, found(data, ino, 0));
        Node *node = nodes_use(data, ino);
        nodes_done(data, node);
        nodes_forget(data, ino, 1);
    }
    return NULL;
}

START_TEST(many_threads_leave_nothing_behind)
{
    Nodes *nodes = table();
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, look_up_and_forget, nodes);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(nodes_count(nodes), 1);
    ck_assert_int_eq(puts_seen, 20000);
    nodes_free(nodes);
}
END_TEST

HARNESS_MAIN("cache/fuse/live/nodes", node_id_is_the_inode_number, root_is_one_whatever_its_inode,
             snapshot_and_live_inode_are_told_apart, more_snapshots_than_tags_is_refused,
             node_goes_with_the_last_lookup_and_use,
             forgetting_the_unknown_or_too_often_is_harmless,
             what_is_in_use_or_was_asked_for_is_not_unused, the_longest_unused_come_first,
             what_was_forgotten_before_it_was_synced_is_still_to_be_synced,
             many_threads_leave_nothing_behind)
