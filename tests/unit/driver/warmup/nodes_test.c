/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/nodes.h"
#include <string.h>
#include "tests/unit/harness.h"

#define GIB (G_GUINT64_CONSTANT(1) << 30)
#define TOTAL (100 * GIB)

/* Nodes n0, n1, ... that all can; a test changes what it is about. */
#define NODES 5
typedef struct World {
    Warmup warmup;
    WarmupCandidate nodes[NODES];
    WarmupChoice choice;
} World;

static World *world_new(guint wanted)
{
    static const char *const names[NODES] = {"n0", "n1", "n2", "n3", "n4"};
    World *w = g_new0(World, 1);
    w->warmup.nodes = wanted;
    w->warmup.selector = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (int i = 0; i < NODES; i++)
        w->nodes[i] = (WarmupCandidate){
            .name = names[i], .ready = TRUE, .age_ms = 1000, .disk = "ok", .room = 500 * GIB};
    return w;
}

static void world_free(World *w)
{
    warmup_choice_clear(&w->choice);
    warmup_clear(&w->warmup);
    g_free(w);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(World, world_free)

/* The names, the best first, with "," between. */
static char *choose(World *w)
{
    warmup_choice_clear(&w->choice);
    warmup_nodes_choose(&w->warmup, TOTAL, w->nodes, NODES, &w->choice);
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < w->choice.names->len; i++)
        g_string_append_printf(text, "%s%s", i ? "," : "", (char *)w->choice.names->pdata[i]);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void chosen(World *w, const char *expected)
{
    g_autofree char *got = choose(w);
    ck_assert_str_eq(got, expected);
}

static void says(World *w, const char *expected)
{
    g_autofree char *got = warmup_choice_message(&w->warmup, &w->choice);
    ck_assert_str_eq(got, expected);
}

START_TEST(without_a_number_all_that_can_are_chosen)
{
    g_autoptr(World) w = world_new(0);
    chosen(w, "n0,n1,n2,n3,n4");
    says(w, "");
    w->nodes[2].disk = "bypass";
    chosen(w, "n0,n1,n3,n4");
    says(w, "4 of 5 nodes; cache disk in bypass: n2");
}
END_TEST

START_TEST(only_nodes_with_all_labels_are_meant)
{
    g_autoptr(World) w = world_new(0);
    json_t *both = json_pack("{s:s, s:s}", "gpu", "h100", "zone", "");
    json_t *one = json_pack("{s:s}", "gpu", "h100");
    json_t *another = json_pack("{s:s, s:s}", "gpu", "a100", "zone", "");
    g_hash_table_insert(w->warmup.selector, g_strdup("gpu"), g_strdup("h100"));
    g_hash_table_insert(w->warmup.selector, g_strdup("zone"), g_strdup(""));
    w->nodes[0].labels = both;
    w->nodes[1].labels = one;
    w->nodes[2].labels = another;
    w->nodes[4].labels = both;
    chosen(w, "n0,n4");
    says(w, "");
    ck_assert_uint_eq(w->choice.excluded->len, 0);
    w->nodes[4].cordoned = TRUE;
    chosen(w, "n0");
    says(w, "1 of 2 nodes; cordoned: n4");
    w->nodes[0].labels = w->nodes[4].labels = NULL;
    chosen(w, "");
    says(w, "no node has the labels of spec.nodeSelector");
    json_decref(both);
    json_decref(one);
    json_decref(another);
}
END_TEST

START_TEST(the_warmest_come_first_then_those_with_most_room)
{
    g_autoptr(World) w = world_new(3);
    w->nodes[1].room = 600 * GIB;
    w->nodes[3].bytes = 10 * GIB;
    w->nodes[3].room = 95 * GIB;
    w->nodes[4].bytes = 90 * GIB;
    w->nodes[4].room = 11 * GIB;
    chosen(w, "n4,n3,n1");
    says(w, "");
    /* More than all is no warmer than all. */
    w->nodes[0].bytes = TOTAL;
    w->nodes[3].bytes = 2 * TOTAL;
    chosen(w, "n0,n3,n4");
}
END_TEST

START_TEST(choice_stays_when_it_is_made_again)
{
    g_autoptr(World) w = world_new(2);
    chosen(w, "n0,n1");
    /* It begins to fill, and the others have more room since. */
    w->nodes[0].bytes = w->nodes[1].bytes = GIB;
    w->nodes[0].room = w->nodes[1].room = 499 * GIB;
    chosen(w, "n0,n1");
    /* It had not begun, but was chosen before. */
    w->nodes[0].bytes = w->nodes[1].bytes = 0;
    w->nodes[0].before = w->nodes[1].before = TRUE;
    chosen(w, "n0,n1");
    w->nodes[0].before = w->nodes[1].before = FALSE;
    chosen(w, "n2,n3");
    /* In whatever order they come. */
    const WarmupCandidate other = w->nodes[2];
    w->nodes[2] = w->nodes[4];
    w->nodes[4] = other;
    chosen(w, "n2,n3");
}
END_TEST

START_TEST(no_node_whose_cache_cannot_is_chosen)
{
    g_autoptr(World) w = world_new(1);
    w->nodes[0].disk = "off";
    w->nodes[1].disk = "bypass";
    w->nodes[2].disk = "";
    w->nodes[3].age_ms = 90001;
    w->nodes[4].age_ms = -1;
    /* However warm. */
    for (int i = 0; i < NODES; i++)
        w->nodes[i].bytes = TOTAL;
    chosen(w, "");
    says(w, "0 of the 1 nodes asked for, of 5 there are; no cache that reports: n4; has not "
            "reported for 90 s: n3; cache off: n0, n2; cache disk in bypass: n1");
    w->nodes[3].age_ms = 90000;
    chosen(w, "n3");
    w->nodes[3].disk = "suspect";
    chosen(w, "n3");
    w->nodes[3].ready = FALSE;
    chosen(w, "");
    ck_assert_int_eq(g_array_index(w->choice.excluded, WarmupExcluded, 3).why, WARMUP_NOT_READY);
}
END_TEST

START_TEST(what_is_missing_must_fit)
{
    g_autoptr(World) w = world_new(0);
    w->nodes[0].room = 100 * GIB;
    w->nodes[1].room = 100 * GIB - 1;
    w->nodes[2].room = 10 * GIB;
    w->nodes[2].bytes = 90 * GIB;
    w->nodes[3].room = 0;
    w->nodes[3].bytes = TOTAL;
    w->nodes[4].room = 0;
    w->nodes[4].bytes = TOTAL - 1;
    chosen(w, "n3,n2,n0");
    says(w, "3 of 5 nodes; too little room: n1, n4");
    /* How much it is is not known. */
    warmup_choice_clear(&w->choice);
    warmup_nodes_choose(&w->warmup, 0, w->nodes, NODES, &w->choice);
    ck_assert_uint_eq(w->choice.names->len, NODES);
}
END_TEST

START_TEST(message_names_a_few_of_many)
{
    g_autoptr(World) w = world_new(2);
    for (int i = 0; i < NODES; i++)
        w->nodes[i].cordoned = TRUE;
    chosen(w, "");
    says(w, "0 of the 2 nodes asked for, of 5 there are; cordoned: n0, n1, n2 and 2 more");
    warmup_choice_clear(&w->choice);
    warmup_nodes_choose(&w->warmup, TOTAL, NULL, 0, &w->choice);
    says(w, "there are no nodes");
}
END_TEST

START_TEST(a_node_says_whether_pods_can_go_there)
{
    static const struct {
        const char *node;
        gboolean ready, cordoned;
    } cases[] = {
        {"{\"metadata\": {\"name\": \"n1\"}, \"status\": {\"conditions\": [{\"type\": "
         "\"MemoryPressure\", \"status\": \"False\"}, {\"type\": \"Ready\", \"status\": "
         "\"True\"}]}}",
         TRUE, FALSE},
        {"{\"metadata\": {\"name\": \"n1\"}, \"spec\": {\"unschedulable\": true}, \"status\": "
         "{\"conditions\": [{\"type\": \"Ready\", \"status\": \"Unknown\"}]}}",
         FALSE, TRUE},
        {"{\"metadata\": {\"name\": \"n1\"}}", FALSE, FALSE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        WarmupCandidate c = {0};
        json_t *node = json_loads(cases[i].node, 0, NULL);
        ck_assert(warmup_candidate_of_node(node, &c));
        ck_assert_str_eq(c.name, "n1");
        ck_assert_int_eq(c.ready, cases[i].ready);
        ck_assert_int_eq(c.cordoned, cases[i].cordoned);
        json_decref(node);
    }
    WarmupCandidate none = {0};
    ck_assert(!warmup_candidate_of_node(NULL, &none));
}
END_TEST

HARNESS_MAIN("driver/warmup/nodes", without_a_number_all_that_can_are_chosen,
             only_nodes_with_all_labels_are_meant, the_warmest_come_first_then_those_with_most_room,
             choice_stays_when_it_is_made_again, no_node_whose_cache_cannot_is_chosen,
             what_is_missing_must_fit, message_names_a_few_of_many,
             a_node_says_whether_pods_can_go_there)
