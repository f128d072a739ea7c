/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/labels.h"
#include <string.h>
#include "driver/volume/topology.h"
#include "tests/unit/harness.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"

/* A node that takes each patch. Time goes in steps of a second, with a look each, as a controller
 * takes them; what is reported is repeated every ten. */
typedef struct World {
    WarmLabels *labels;
    json_t *node;
    gint64 now_ms;
    WarmDataset held[40];
    gsize n;
    gboolean silent; /* no report comes */
    unsigned patches;
    gint64 patched_ms;
} World;

static void world_new(World *w)
{
    *w = (World){.now_ms = 1000000, .node = json_object()};
    w->labels = warm_labels_new(w->now_ms);
}

static void world_free(World *w)
{
    warm_labels_free(w->labels);
    json_decref(w->node);
}

static void report(World *w)
{
    warm_labels_report(w->labels, w->held, w->n, w->now_ms, w->now_ms);
}

static void hold(World *w, gsize i, const char *id, guint64 bytes, guint64 total)
{
    w->held[i] = (WarmDataset){id, bytes, total};
    w->n = MAX(w->n, i + 1);
    report(w);
}

static void apply(World *w, const json_t *patch)
{
    const char *name;
    json_t *value;
    json_t *changes = json_object_get(json_object_get(patch, "metadata"), "labels");
    ck_assert_uint_gt(json_object_size(changes), 0);
    json_object_foreach (changes, name, value) {
        if (json_is_null(value))
            json_object_del(w->node, name);
        else
            json_object_set(w->node, name, value);
    }
    warm_labels_have(w->labels, w->node);
}

static void look(World *w)
{
    json_t *patch = warm_labels_patch(w->labels, w->now_ms);
    if (!patch)
        return;
    apply(w, patch);
    json_decref(patch);
    w->patches++;
    w->patched_ms = w->now_ms;
}

static void pass(World *w, int seconds)
{
    for (int i = 0; i < seconds; i++) {
        w->now_ms += 1000;
        if (!w->silent && w->now_ms / 1000 % 10 == 0)
            report(w);
        look(w);
    }
}

static const char *label(World *w, const char *id)
{
    g_autofree char *name = g_strconcat(WARM_LABEL_PREFIX, id, NULL);
    const char *value = json_string_value(json_object_get(w->node, name));
    return value ? value : "-";
}

/* Held as it is for so long that it counts, with time for a patch. */
static void settle(World *w)
{
    pass(w, 100);
}

START_TEST(steps_are_quarters_and_100_is_complete)
{
    static const struct {
        guint64 bytes;
        const char *label;
    } cases[] = {{0, "-"},    {249, "-"},  {250, "25"}, {499, "25"},   {500, "50"},
                 {749, "50"}, {750, "75"}, {999, "75"}, {1000, "100"}, {1001, "100"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w;
        world_new(&w);
        hold(&w, 0, A, cases[i].bytes, 1000);
        settle(&w);
        ck_assert_msg(g_str_equal(label(&w, A), cases[i].label), "%d: %s", (int)cases[i].bytes,
                      label(&w, A));
        world_free(&w);
    }
    /* One byte of a large dataset is missing. */
    World w;
    world_new(&w);
    hold(&w, 0, A, (1ULL << 60) - 1, 1ULL << 60);
    hold(&w, 1, B, 0, 0);
    settle(&w);
    ck_assert_str_eq(label(&w, A), "75");
    ck_assert_str_eq(label(&w, B), "-");
    world_free(&w);
}
END_TEST

START_TEST(step_is_left_10_points_below_its_edge)
{
    static const struct {
        guint64 from, to;
        const char *label;
    } cases[] = {{50, 40, "50"}, {50, 39, "25"},   {25, 15, "25"},  {25, 14, "-"}, {75, 65, "75"},
                 {75, 64, "50"}, {100, 90, "100"}, {100, 89, "75"}, {75, 0, "-"},  {100, 45, "50"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w;
        world_new(&w);
        hold(&w, 0, A, cases[i].from, 100);
        settle(&w);
        hold(&w, 0, A, cases[i].to, 100);
        settle(&w);
        ck_assert_msg(g_str_equal(label(&w, A), cases[i].label), "%d -> %d: %s", (int)cases[i].from,
                      (int)cases[i].to, label(&w, A));
        world_free(&w);
    }
}
END_TEST

START_TEST(label_stays_60_s)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 60, 100);
    pass(&w, 1);
    ck_assert_str_eq(label(&w, A), "50");
    hold(&w, 0, A, 0, 100);
    pass(&w, 57);
    ck_assert_str_eq(label(&w, A), "50");
    hold(&w, 0, A, 100, 100);
    pass(&w, 1);
    ck_assert_uint_eq(w.patches, 1);
    pass(&w, 2);
    ck_assert_str_eq(label(&w, A), "100");
    /* Once it has stayed, the next change waits for the node's turn alone. */
    pass(&w, 100);
    hold(&w, 0, A, 0, 100);
    pass(&w, 1);
    ck_assert_str_eq(label(&w, A), "-");
    world_free(&w);
}
END_TEST

START_TEST(dataset_that_warms_slowly_climbs)
{
    World w;
    world_new(&w);
    for (guint64 percent = 0; percent <= 100; percent += 5) {
        hold(&w, 0, A, percent, 100);
        pass(&w, 10);
    }
    ck_assert_uint_le(w.patches, 4);
    settle(&w);
    ck_assert_str_eq(label(&w, A), "100");
    world_free(&w);
}
END_TEST

START_TEST(nothing_is_patched_when_nothing_crossed_an_edge)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 60, 100);
    settle(&w);
    const unsigned patches = w.patches;
    for (guint64 percent = 41; percent < 75; percent++) {
        hold(&w, 0, A, percent, 100);
        pass(&w, 100);
    }
    ck_assert_uint_eq(w.patches, patches);
    world_free(&w);
}
END_TEST

START_TEST(node_is_patched_every_30_s_at_most)
{
    World w;
    gint64 last_ms = 0;
    world_new(&w);
    /* Each second another dataset. */
    for (gsize i = 0; i < 32; i++) {
        hold(&w, i, g_strdup_printf("%016x", (unsigned)i), 100, 100);
        pass(&w, 1);
    }
    for (int i = 0; i < 120; i++) {
        const unsigned before = w.patches;
        pass(&w, 1);
        if (w.patches == before)
            continue;
        ck_assert_int_ge(w.now_ms - last_ms, 30000);
        last_ms = w.now_ms;
    }
    ck_assert_uint_eq(json_object_size(w.node), 32);
    ck_assert_uint_le(w.patches, 3);
    for (gsize i = 0; i < 32; i++)
        g_free((char *)w.held[i].id);
    world_free(&w);
}
END_TEST

static void hold_many(World *w, char (*ids)[17], gsize n)
{
    for (gsize i = 0; i < n; i++) {
        g_snprintf(ids[i], 17, "%016x", (unsigned)i);
        hold(w, i, ids[i], 1000 + i * 100, 1000 + i * 100);
    }
}

START_TEST(those_with_most_bytes_have_the_32_labels)
{
    World w;
    char ids[40][17];
    world_new(&w);
    hold_many(&w, ids, 40);
    settle(&w);
    ck_assert_uint_eq(json_object_size(w.node), 32);
    for (gsize i = 0; i < 40; i++)
        ck_assert_str_eq(label(&w, ids[i]), i < 8 ? "-" : "100");
    world_free(&w);
}
END_TEST

START_TEST(labels_do_not_take_turns)
{
    World w;
    char ids[33][17];
    world_new(&w);
    hold_many(&w, ids, 33);
    settle(&w);
    ck_assert_str_eq(label(&w, ids[0]), "-");
    ck_assert_str_eq(label(&w, ids[1]), "100");
    const unsigned patches = w.patches;
    /* A little more than the least that has one, then much more. */
    hold(&w, 0, ids[0], 1150, 1150);
    settle(&w);
    ck_assert_uint_eq(w.patches, patches);
    hold(&w, 0, ids[0], 1250, 1250);
    settle(&w);
    ck_assert_str_eq(label(&w, ids[0]), "100");
    ck_assert_str_eq(label(&w, ids[1]), "-");
    ck_assert_uint_eq(w.patches, patches + 1);
    world_free(&w);
}
END_TEST

START_TEST(silent_node_loses_all_labels_after_90_s)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 100, 100);
    hold(&w, 1, B, 50, 100);
    settle(&w);
    ck_assert_uint_eq(json_object_size(w.node), 2);
    report(&w);
    w.silent = TRUE;
    pass(&w, 90);
    ck_assert_uint_eq(json_object_size(w.node), 2);
    pass(&w, 1);
    ck_assert_uint_eq(json_object_size(w.node), 0);
    /* Back: it begins anew. */
    w.silent = FALSE;
    report(&w);
    pass(&w, 29);
    ck_assert_uint_eq(json_object_size(w.node), 0);
    pass(&w, 2);
    ck_assert_uint_eq(json_object_size(w.node), 2);
    world_free(&w);
}
END_TEST

START_TEST(gone_node_loses_all_labels_at_once)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 100, 100);
    settle(&w);
    hold(&w, 1, B, 100, 100);
    while (g_str_equal(label(&w, B), "-"))
        pass(&w, 1);
    /* Just patched: this does not wait for the 30 s. */
    w.silent = TRUE;
    warm_labels_gone(w.labels);
    pass(&w, 1);
    ck_assert_uint_eq(json_object_size(w.node), 0);
    world_free(&w);
}
END_TEST

/* The heartbeat's own time counts, however late its report is seen. */
START_TEST(old_heartbeat_is_no_sign_of_life)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 100, 100);
    settle(&w);
    w.silent = TRUE;
    warm_labels_report(w.labels, w.held, w.n, w.now_ms - 80000, w.now_ms);
    pass(&w, 10);
    ck_assert_str_eq(label(&w, A), "100");
    pass(&w, 1);
    ck_assert_str_eq(label(&w, A), "-");
    world_free(&w);
}
END_TEST

START_TEST(patch_that_failed_comes_again_after_30_s)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 100, 100);
    w.now_ms += 60000;
    report(&w);
    json_t *first = warm_labels_patch(w.labels, w.now_ms);
    ck_assert_ptr_nonnull(first);
    ck_assert_ptr_null(warm_labels_patch(w.labels, w.now_ms + 29999));
    json_t *second = warm_labels_patch(w.labels, w.now_ms + 30000);
    ck_assert(json_equal(first, second));
    json_decref(first);
    json_decref(second);
    /* Nor does one that clears storm. */
    warm_labels_have(w.labels, json_object_get(w.node, "none"));
    json_object_set_new(w.node, WARM_LABEL_PREFIX A, json_string("100"));
    warm_labels_have(w.labels, w.node);
    warm_labels_gone(w.labels);
    first = warm_labels_patch(w.labels, w.now_ms + 30001);
    ck_assert_ptr_nonnull(first);
    json_decref(first);
    ck_assert_ptr_null(warm_labels_patch(w.labels, w.now_ms + 30002));
    world_free(&w);
}
END_TEST

START_TEST(labels_of_ours_that_nobody_knows_are_removed)
{
    World w;
    world_new(&w);
    json_object_set_new(w.node, WARM_LABEL_PREFIX B, json_string("50"));
    json_object_set_new(w.node, WARM_LABEL_PREFIX "nonsense", json_string("1"));
    json_object_set_new(w.node, WARM_LABEL_PREFIX A, json_string("lukewarm"));
    json_object_set_new(w.node, "kubernetes.io/hostname", json_string("n1"));
    warm_labels_have(w.labels, w.node);
    hold(&w, 0, A, 10, 100);
    settle(&w);
    ck_assert_uint_eq(json_object_size(w.node), 1);
    ck_assert_ptr_nonnull(json_object_get(w.node, "kubernetes.io/hostname"));
    world_free(&w);
}
END_TEST

START_TEST(someone_elses_change_is_put_right)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 100, 100);
    settle(&w);
    json_object_clear(w.node);
    warm_labels_have(w.labels, w.node);
    pass(&w, 31);
    ck_assert_str_eq(label(&w, A), "100");
    world_free(&w);
}
END_TEST

START_TEST(another_controller_goes_on_from_what_is_there)
{
    World w;
    world_new(&w);
    hold(&w, 0, A, 100, 100);
    hold(&w, 1, B, 70, 100);
    settle(&w);
    hold(&w, 1, B, 45, 100); /* still 50 */
    settle(&w);
    const unsigned patches = w.patches;
    warm_labels_free(w.labels);
    w.labels = warm_labels_new(w.now_ms);
    warm_labels_have(w.labels, w.node);
    /* Before it has heard of the node, and after. */
    w.silent = TRUE;
    pass(&w, 20);
    w.silent = FALSE;
    report(&w);
    pass(&w, 200);
    ck_assert_uint_eq(w.patches, patches);
    ck_assert_str_eq(label(&w, B), "50");
    world_free(&w);
}
END_TEST

START_TEST(controller_that_hears_nothing_clears_after_90_s)
{
    World w;
    world_new(&w);
    json_object_set_new(w.node, WARM_LABEL_PREFIX A, json_string("100"));
    warm_labels_have(w.labels, w.node);
    w.silent = TRUE;
    pass(&w, 90);
    ck_assert_str_eq(label(&w, A), "100");
    pass(&w, 1);
    ck_assert_str_eq(label(&w, A), "-");
    world_free(&w);
}
END_TEST

START_TEST(malformed_ids_are_passed_over)
{
    World w;
    world_new(&w);
    const char *ids[] = {
        "", "aaaaaaaaaaaaaaa", "aaaaaaaaaaaaaaaaa", "AAAAAAAAAAAAAAAA", "aaaaaaaaaaaaaa/a", NULL};
    for (gsize i = 0; i < G_N_ELEMENTS(ids); i++)
        hold(&w, i, ids[i], 100, 100);
    settle(&w);
    ck_assert_uint_eq(w.patches, 0);
    world_free(&w);
}
END_TEST

static const char *node_label(World *w, const char *name)
{
    const char *value = json_string_value(json_object_get(w->node, name));
    return value ? value : "-";
}

static void node_has(World *w, const char *tier, const char *zone)
{
    json_object_set_new(w->node, TOPOLOGY_TIER, json_string(tier));
    json_object_set_new(w->node, TOPOLOGY_ZONE, json_string(zone));
    json_object_set_new(w->node, TOPOLOGY_NODE, json_string("n1"));
    warm_labels_have(w->labels, w->node);
}

/* As kubelet wrote them when they were topology, which nobody could change. */
START_TEST(a_tier_and_a_zone_that_change_are_put_right)
{
    World w;
    world_new(&w);
    node_has(&w, "none", "old");
    warm_labels_place(w.labels, "nvme", "rack-7");
    hold(&w, 0, A, 50, 100);
    settle(&w);
    ck_assert_str_eq(node_label(&w, TOPOLOGY_TIER), "nvme");
    ck_assert_str_eq(node_label(&w, TOPOLOGY_ZONE), "rack-7");
    ck_assert_uint_eq(w.patches, 1);
    warm_labels_place(w.labels, "none", NULL);
    settle(&w);
    ck_assert_str_eq(node_label(&w, TOPOLOGY_TIER), "none");
    ck_assert_str_eq(node_label(&w, TOPOLOGY_ZONE), "-");
    ck_assert_str_eq(node_label(&w, TOPOLOGY_NODE), "n1");
    ck_assert_uint_eq(w.patches, 2);
    world_free(&w);
}
END_TEST

START_TEST(a_silent_node_keeps_its_tier_and_its_zone)
{
    World w;
    world_new(&w);
    warm_labels_place(w.labels, "nvme", "rack-7");
    hold(&w, 0, A, 50, 100);
    settle(&w);
    w.silent = TRUE;
    pass(&w, 200);
    ck_assert_str_eq(label(&w, A), "-");
    ck_assert_str_eq(node_label(&w, TOPOLOGY_TIER), "nvme");
    ck_assert_str_eq(node_label(&w, TOPOLOGY_ZONE), "rack-7");
    warm_labels_gone(w.labels);
    pass(&w, 200);
    ck_assert_str_eq(node_label(&w, TOPOLOGY_TIER), "nvme");
    world_free(&w);
}
END_TEST

/* Its plugin has not been upgraded yet: kubelet keeps them. */
START_TEST(the_topology_of_an_earlier_release_is_let_be)
{
    World w;
    world_new(&w);
    node_has(&w, "nvme", "rack-7");
    hold(&w, 0, A, 50, 100);
    settle(&w);
    w.silent = TRUE;
    pass(&w, 200);
    ck_assert_str_eq(node_label(&w, TOPOLOGY_TIER), "nvme");
    ck_assert_str_eq(node_label(&w, TOPOLOGY_ZONE), "rack-7");
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/warmth/labels", a_tier_and_a_zone_that_change_are_put_right,
             a_silent_node_keeps_its_tier_and_its_zone,
             the_topology_of_an_earlier_release_is_let_be, steps_are_quarters_and_100_is_complete,
             step_is_left_10_points_below_its_edge, label_stays_60_s,
             dataset_that_warms_slowly_climbs, nothing_is_patched_when_nothing_crossed_an_edge,
             node_is_patched_every_30_s_at_most, those_with_most_bytes_have_the_32_labels,
             labels_do_not_take_turns, silent_node_loses_all_labels_after_90_s,
             gone_node_loses_all_labels_at_once, old_heartbeat_is_no_sign_of_life,
             patch_that_failed_comes_again_after_30_s, labels_of_ours_that_nobody_knows_are_removed,
             someone_elses_change_is_put_right, another_controller_goes_on_from_what_is_there,
             controller_that_hears_nothing_clears_after_90_s, malformed_ids_are_passed_over)
