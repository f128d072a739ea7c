/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "driver/warmup/events.h"
#include <string.h>

/* "REASON MESSAGE;" of each Event, the caller's. */
static char *events_of(const char *before, const char *after)
{
    const Warmup w = {.namespace = (char *)"team",
                      .name = (char *)"imagenet",
                      .uid = (char *)"u",
                      .generation = 1,
                      .dataset = (char *)"imagenet@2026-11"};
    json_t *was = json_loads(before, 0, NULL), *is = json_loads(after, 0, NULL);
    g_autoptr(GPtrArray) events = warmup_events(&w, was, is);
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    GString *text = g_string_new(NULL);
    for (guint i = 0; i < events->len; i++) {
        const WarmupEvent *e = events->pdata[i];
        ck_assert_int_eq(e->warning, strcmp(e->reason, "Failed") == 0);
        ck_assert(g_str_has_prefix(e->name, "imagenet."));
        ck_assert(g_hash_table_add(names, e->name));
        g_string_append_printf(text, "%s %s;", e->reason, e->message);
    }
    json_decref(was);
    json_decref(is);
    return g_string_free(text, FALSE);
}

static void expect(const char *before, const char *after, const char *wanted)
{
    g_autofree char *text = events_of(before, after);
    ck_assert_str_eq(text, wanted);
}

#define NODE(name, state) "{\"name\": \"" name "\", \"state\": \"" state "\", \"totalBytes\": 1024}"
#define RUN(phase, run, nodes)                                                                     \
    "{\"phase\": \"" phase "\", \"run\": \"" run "\", \"warmNodes\": \"2/2\", \"nodes\": [" nodes  \
    "]}"
#define FAILED                                                                                     \
    "{\"phase\": \"Failed\", \"run\": \"u.1.0\", \"conditions\": [{\"type\": \"Failed\", "         \
    "\"message\": "                                                                                \
    "\"n1: no space\"}]}"

START_TEST(a_run_says_when_it_begins_and_ends)
{
    expect("{}", RUN("Warming", "u.1.0", NODE("n1", "Pending") ", " NODE("n2", "Pending")),
           "Started warming dataset imagenet@2026-11 on 2 nodes;");
    expect(RUN("Warming", "u.1.0", NODE("n1", "Running")),
           RUN("Warming", "u.1.0", NODE("n1", "Succeeded") ", " NODE("n2", "Running")),
           "NodeWarm n1 has 1.0 KiB of it;");
    expect(RUN("Warming", "u.1.0", NODE("n1", "Succeeded") ", " NODE("n2", "Running")),
           RUN("Warm", "u.1.0", NODE("n1", "Succeeded") ", " NODE("n2", "Succeeded")),
           "NodeWarm n2 has 1.0 KiB of it;"
           "Completed dataset imagenet@2026-11 is warm on 2/2 nodes;");
    expect(RUN("Warming", "u.1.0", NODE("n1", "Running")), FAILED, "Failed n1: no space;");
}
END_TEST

START_TEST(what_is_as_it_was_says_nothing)
{
    expect(RUN("Warming", "u.1.0", NODE("n1", "Running")),
           RUN("Warming", "u.1.0", NODE("n1", "Running")), "");
    expect(RUN("Warm", "u.1.0", NODE("n1", "Succeeded")),
           RUN("Warm", "u.1.0", NODE("n1", "Succeeded")), "");
    expect(FAILED, FAILED, "");
    expect("{}", "{\"phase\": \"Pending\"}", "");
}
END_TEST

START_TEST(the_next_run_says_it_again)
{
    expect(RUN("Warm", "u.1.0", NODE("n1", "Succeeded")),
           RUN("Warming", "u.1.60", NODE("n1", "Succeeded")),
           "Started warming dataset imagenet@2026-11 on 1 node;NodeWarm n1 has 1.0 KiB of it;");
}
END_TEST

START_TEST(many_nodes_are_not_told_one_by_one)
{
    GString *nodes = g_string_new(NULL);
    for (int i = 0; i <= WARMUP_EVENTS_NODES; i++)
        g_string_append_printf(nodes, "%s{\"name\": \"n%d\", \"state\": \"Succeeded\"}",
                               i ? ", " : "", i);
    g_autofree char *after = g_strdup_printf(
        "{\"phase\": \"Warm\", \"run\": \"u.1.0\", \"warmNodes\": \"17/17\", \"nodes\": [%s]}",
        nodes->str);
    expect(RUN("Warming", "u.1.0", NODE("n1", "Running")), after,
           "Completed dataset imagenet@2026-11 is warm on 17/17 nodes;");
    g_string_free(nodes, TRUE);
}
END_TEST

HARNESS_MAIN("driver/warmup/events", a_run_says_when_it_begins_and_ends,
             what_is_as_it_was_says_nothing, the_next_run_says_it_again,
             many_nodes_are_not_told_one_by_one)
