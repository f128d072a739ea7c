/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/live/known_names.h"
#include "cache/fuse/live/name_change.h"
#include "tests/unit/harness.h"

static void put(Origin *o, OriginNode *node)
{
    (void)o;
    (void)node;
}

static const OriginOps putting_ops = {.type = "putting", .put = put};
static Origin origin = {.ops = &putting_ops};

enum { ROOT_INO = 1, DIR_INO = 100, OTHER, FILE_A, FILE_B };

static Node *node_of(Nodes *nodes, uint64_t ino)
{
    const OriginAttr attr = {.st = {.st_ino = ino}};
    int r = 0;
    Node *node = nodes_found(nodes, (OriginNode *)&origin, &attr, &r);
    ck_assert_ptr_nonnull(node);
    return node;
}

typedef struct World {
    Nodes *nodes;
    Node *root, *dir, *other, *a, *b;
} World;

static World world(void)
{
    const OriginAttr root = {.st = {.st_ino = ROOT_INO}};
    World w = {.nodes = nodes_new(&origin, (OriginNode *)&origin, &root)};
    w.root = nodes_use(w.nodes, ROOT_INO);
    w.dir = node_of(w.nodes, DIR_INO);
    w.other = node_of(w.nodes, OTHER);
    w.a = node_of(w.nodes, FILE_A);
    w.b = node_of(w.nodes, FILE_B);
    return w;
}

static void end(World *w)
{
    Node *all[] = {w->root, w->dir, w->other, w->a, w->b};
    for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
        nodes_done(w->nodes, all[i]);
    nodes_free(w->nodes);
}

static gboolean found(World *w, Node *node, Node *parent, const char *name, gboolean keep)
{
    const NameAsked asked = name_asked(parent, name);
    return known_name_found(nodes_names(w->nodes), node, &asked, node == w->dir, keep);
}

static void change(World *w, NameChange c, gboolean done)
{
    name_change_begin(w->nodes, &c);
    name_change_end(w->nodes, &c, done);
}

static void expect(const Node *node, const Node *parent, const char *name, gboolean used)
{
    if (name) {
        ck_assert_str_eq(node->name, name);
        ck_assert_uint_eq(node->parent, parent->id);
    } else {
        ck_assert_ptr_null(node->name);
    }
    ck_assert_int_eq(known_name_is_used(node), used);
}

START_TEST(renamed_node_is_known_by_its_new_name)
{
    World w = world();
    ck_assert(found(&w, w.a, w.dir, "a", TRUE));
    change(&w, (NameChange){.from = w.dir, .name = "a", .to = w.other, .new_name = "z"}, TRUE);
    expect(w.a, w.other, "z", TRUE);
    change(&w, (NameChange){.from = w.other, .name = "z", .to = w.root, .new_name = "y"}, FALSE);
    expect(w.a, w.other, "z", TRUE);
    end(&w);
}
END_TEST

START_TEST(removed_and_replaced_names_are_not_used)
{
    World w = world();
    ck_assert(found(&w, w.a, w.dir, "a", TRUE));
    ck_assert(found(&w, w.b, w.dir, "b", TRUE));
    change(&w, (NameChange){.from = w.dir, .name = "a", .to = w.dir, .new_name = "b"}, TRUE);
    expect(w.a, w.dir, "b", TRUE);
    expect(w.b, NULL, NULL, FALSE);
    change(&w, (NameChange){.from = w.dir, .name = "b"}, TRUE);
    expect(w.a, NULL, NULL, FALSE);
    end(&w);
}
END_TEST

START_TEST(exchanged_nodes_have_each_others_names)
{
    World w = world();
    ck_assert(found(&w, w.a, w.dir, "a", TRUE));
    ck_assert(!found(&w, w.b, w.other, "b", FALSE));
    change(&w, (NameChange){w.dir, "a", w.other, "b", .exchange = TRUE}, TRUE);
    expect(w.a, w.other, "b", TRUE);
    expect(w.b, w.dir, "a", FALSE);
    end(&w);
}
END_TEST

START_TEST(name_found_across_a_change_is_not_kept)
{
    World w = world();
    ck_assert(found(&w, w.dir, w.root, "d", TRUE));
    const NameAsked asked = name_asked(w.root, "d");
    change(&w, (NameChange){.from = w.root, .name = "d", .to = w.other, .new_name = "e"}, TRUE);
    ck_assert(!known_name_found(nodes_names(w.nodes), w.dir, &asked, TRUE, TRUE));
    expect(w.dir, w.other, "e", TRUE);
    end(&w);
}
END_TEST

START_TEST(change_is_seen_while_it_lasts_and_afterwards)
{
    World w = world();
    ck_assert(found(&w, w.a, w.dir, "a", TRUE));
    const unsigned moves = atomic_load(&w.a->moves);
    NameChange c = {.from = w.dir, .name = "a"};
    name_change_begin(w.nodes, &c);
    ck_assert_uint_eq(atomic_load(&w.a->moving), 1);
    ck_assert_uint_eq(atomic_load(&w.a->moves), moves);
    name_change_end(w.nodes, &c, FALSE);
    ck_assert_uint_eq(atomic_load(&w.a->moving), 0);
    ck_assert_uint_eq(atomic_load(&w.a->moves), moves + 1);
    end(&w);
}
END_TEST

START_TEST(used_name_of_a_file_is_not_given_up_for_another)
{
    World w = world();
    ck_assert(found(&w, w.a, w.dir, "a", TRUE));
    ck_assert(!found(&w, w.a, w.dir, "link", TRUE));
    expect(w.a, w.dir, "a", TRUE);
    ck_assert(!found(&w, w.a, w.dir, "a", FALSE));
    ck_assert(!found(&w, w.a, w.dir, "link", FALSE));
    expect(w.a, w.dir, "link", FALSE);
    /* A directory has only one. */
    ck_assert(found(&w, w.dir, w.root, "d", TRUE));
    ck_assert(found(&w, w.dir, w.root, "e", TRUE));
    expect(w.dir, w.root, "e", TRUE);
    end(&w);
}
END_TEST

START_TEST(name_passes_to_who_was_found_last_and_goes_with_it)
{
    World w = world();
    found(&w, w.a, w.dir, "a", FALSE);
    found(&w, w.b, w.dir, "a", FALSE);
    change(&w, (NameChange){.from = w.dir, .name = "a", .to = w.dir, .new_name = "c"}, TRUE);
    expect(w.a, w.dir, "a", FALSE);
    expect(w.b, w.dir, "c", FALSE);
    nodes_forget(w.nodes, FILE_B, 1);
    nodes_done(w.nodes, g_steal_pointer(&w.b));
    change(&w, (NameChange){.from = w.dir, .name = "c", .to = w.dir, .new_name = "d"}, TRUE);
    ck_assert_uint_eq(nodes_count(w.nodes), 4);
    end(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/live/known_names", renamed_node_is_known_by_its_new_name,
             removed_and_replaced_names_are_not_used, exchanged_nodes_have_each_others_names,
             name_found_across_a_change_is_not_kept, change_is_seen_while_it_lasts_and_afterwards,
             used_name_of_a_file_is_not_given_up_for_another,
             name_passes_to_who_was_found_last_and_goes_with_it)
