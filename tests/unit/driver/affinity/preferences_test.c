/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/preferences.h"
#include <string.h>
#include "tests/unit/harness.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"
#define L "warm.csi.hearth.dev/"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"
#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"

/* Claims of namespace "jobs" that show a dataset; "twin" shows the same as "data". */
static gboolean find(const char *namespace, const char *claim, char dataset[17], void *data)
{
    const gboolean first = g_str_equal(claim, "data") || g_str_equal(claim, "twin");
    (void)data;
    if (!g_str_equal(namespace, "jobs") || (!first && !g_str_equal(claim, "labels")))
        return FALSE;
    g_strlcpy(dataset, first ? A : B, 17);
    return TRUE;
}

static json_t *parse(const char *text)
{
    json_error_t why;
    g_autofree char *json = g_strdelimit(g_strdup(text), "'", '"');
    json_t *object = json_loads(json, JSON_ALLOW_NUL, &why);
    ck_assert_msg(object != NULL, "%s: %s", why.text, text);
    return object;
}

/* As RFC 6902 has "add"; only for the paths there are. */
static void apply_one(json_t *pod, const json_t *op)
{
    g_auto(GStrv) parts = g_strsplit(json_string_value(json_object_get(op, "path")), "/", -1);
    json_t *at = pod, *value = json_object_get(op, "value");
    ck_assert_str_eq(json_string_value(json_object_get(op, "op")), "add");
    gsize i = 1;
    for (; parts[i + 1]; i++) {
        at = json_object_get(at, parts[i]);
        ck_assert_msg(at != NULL, "no %s", parts[i]);
    }
    if (json_is_array(at)) {
        ck_assert_str_eq(parts[i], "-");
        json_array_append(at, value);
    } else {
        g_auto(GStrv) slashes = g_strsplit(parts[i], "~1", -1);
        g_autofree char *key = g_strjoinv("/", slashes);
        ck_assert(json_is_object(at));
        json_object_set(at, key, value);
    }
}

/* What the pod is afterwards; its claims are in spec.volumes already. */
static json_t *mutated_in(const char *namespace, const char *text)
{
    const PreferencesHints hints = {.find = find};
    json_t *pod = parse(text), *op;
    json_t *patch = preferences_patch(pod, namespace, &hints);
    size_t i;
    json_array_foreach (patch, i, op)
        apply_one(pod, op);
    json_decref(patch);
    return pod;
}

static void gives(const char *before, const char *after)
{
    json_t *got = mutated_in("jobs", before), *wanted = parse(after);
    if (!json_equal(got, wanted)) {
        char *text = json_dumps(got, JSON_COMPACT);
        ck_abort_msg("%s", text);
    }
    json_decref(got);
    json_decref(wanted);
}

static void gives_nothing(const char *text)
{
    const PreferencesHints hints = {.find = find};
    json_t *pod = parse(text);
    ck_assert_msg(preferences_patch(pod, "jobs", &hints) == NULL, "%s", text);
    json_decref(pod);
}

#define TERM(weight, label, value)                                                                 \
    "{'weight': " weight ", 'preference': {'matchExpressions': [{'key': '" label                   \
    "', 'operator': 'In', 'values': ['" value "']}]}}"
#define TERMS(dataset)                                                                             \
    TERM("100", L dataset, "100")                                                                  \
    ", " TERM("75", L dataset, "75") ", " TERM("50", L dataset, "50") ", " TERM("25", L dataset,   \
                                                                                "25")
#define CLAIM(name) "{'name': 'v', 'persistentVolumeClaim': {'claimName': '" name "'}}"
#define VOLUMES(list) "'volumes': [" list "]"
#define POD(metadata, spec) "{'metadata': {" metadata "}, 'spec': {" spec "}}"
#define ADDED(labels) "'annotations': {'csi.hearth.dev/prefers': '" labels "'}"
#define AFFINITY(terms) "'affinity': {'nodeAffinity': {'" PREFERRED "': [" terms "]}}"
#define REQUIRES(key)                                                                              \
    "'affinity': {'nodeAffinity': {'" REQUIRED "': {'nodeSelectorTerms': [{'matchExpressions': "   \
    "[{'key': 'x', 'operator': 'Exists'}]}, {'matchExpressions': [{'key': '" key                   \
    "', 'operator': 'Exists'}]}]}}}"

START_TEST(pod_of_a_dataset_prefers_it_in_four_steps)
{
    gives(POD("", VOLUMES(CLAIM("data"))),
          POD(ADDED(L A), VOLUMES(CLAIM("data")) "," AFFINITY(TERMS(A))));
}
END_TEST

START_TEST(of_two_datasets_each_is_added_once)
{
    gives(POD("", VOLUMES(CLAIM("labels") "," CLAIM("twin") "," CLAIM("data") "," CLAIM("data"))),
          POD(ADDED(L A "," L B),
              VOLUMES(CLAIM("labels") "," CLAIM("twin") "," CLAIM("data") "," CLAIM(
                  "data")) "," AFFINITY(TERMS(A) "," TERMS(B))));
}
END_TEST

START_TEST(others_get_nothing)
{
    gives_nothing("{}");
    gives_nothing(POD("", ""));
    gives_nothing(POD("", VOLUMES("")));
    gives_nothing(POD("", VOLUMES("{'name': 'data', 'emptyDir': {}}")));
    gives_nothing(POD("", VOLUMES(CLAIM("other"))));
    /* The claim of an ephemeral volume comes after the pod. */
    gives_nothing(POD("'name': 'da'", VOLUMES("{'name': 'ta', 'ephemeral': {}}")));
    gives_nothing(POD("", VOLUMES(CLAIM("data\\u0000x"))));
    gives_nothing("{'spec': 7}");
    gives_nothing("{'spec': {'volumes': {'persistentVolumeClaim': {'claimName': 'data'}}}}");
    gives_nothing("['spec']");
    json_t *pod = mutated_in("team", POD("", VOLUMES(CLAIM("data"))));
    ck_assert_ptr_null(json_object_get(json_object_get(pod, "spec"), "affinity"));
    json_decref(pod);
}
END_TEST

START_TEST(pod_that_speaks_of_warmth_is_let_be)
{
    gives_nothing(POD("", VOLUMES(CLAIM("data")) "," AFFINITY(TERM("7", L "ffff", "1"))));
    gives_nothing(POD("", VOLUMES(CLAIM("data")) "," AFFINITY(TERM("7", L A, "1"))));
    gives_nothing(POD("", VOLUMES(CLAIM("data")) "," REQUIRES(L A)));
    gives_nothing(POD("", VOLUMES(CLAIM("data")) "," REQUIRES(L "ffff")));
    gives_nothing(POD("'annotations': {'a': 'b'}",
                      VOLUMES(CLAIM("data")) "," AFFINITY(TERM("7", L "ffff", "1"))));
}
END_TEST

START_TEST(it_is_added_to_what_the_pod_wants)
{
    gives(POD("'annotations': {'a': 'b'}",
              VOLUMES(CLAIM("data")) "," AFFINITY(TERM("7", "zone", "z"))),
          POD("'annotations': {'a': 'b', 'csi.hearth.dev/prefers': '" L A "'}",
              VOLUMES(CLAIM("data")) "," AFFINITY(TERM("7", "zone", "z") "," TERMS(A))));
    gives(POD("", VOLUMES(CLAIM("data")) ",'affinity': {'podAntiAffinity': {}}"),
          POD(ADDED(L A),
              VOLUMES(CLAIM("data")) ",'affinity': {'podAntiAffinity': {}, "
                                     "'nodeAffinity': {'" PREFERRED "': [" TERMS(A) "]}}"));
    gives(POD("", VOLUMES(CLAIM("data")) ",'affinity': {'nodeAffinity': {'" REQUIRED "': {}}}"),
          POD(ADDED(L A), VOLUMES(CLAIM("data")) ",'affinity': {'nodeAffinity': {'" REQUIRED
                                                 "': {}, '" PREFERRED "': [" TERMS(A) "]}}"));
    gives(POD("'annotations': null",
              VOLUMES(CLAIM("data")) ",'affinity': {'nodeAffinity': {'" PREFERRED "': null}}"),
          POD(ADDED(L A), VOLUMES(CLAIM("data")) "," AFFINITY(TERMS(A))));
}
END_TEST

START_TEST(what_was_added_before_is_not_added_again)
{
    gives_nothing(POD(ADDED(L A), VOLUMES(CLAIM("data")) "," AFFINITY(TERMS(A))));
    /* A volume that came later. */
    gives(POD(ADDED(L A), VOLUMES(CLAIM("data") "," CLAIM("labels")) "," AFFINITY(TERMS(A))),
          POD(ADDED(L A "," L B),
              VOLUMES(CLAIM("data") "," CLAIM("labels")) "," AFFINITY(TERMS(A) "," TERMS(B))));
    /* A pod made from what another one was, with another claim. */
    gives(POD(ADDED(L A), VOLUMES(CLAIM("labels")) "," AFFINITY(TERMS(A))),
          POD(ADDED(L A "," L B), VOLUMES(CLAIM("labels")) "," AFFINITY(TERMS(A) "," TERMS(B))));
}
END_TEST

START_TEST(annotation_of_others_is_kept_whatever_it_holds)
{
    gives(POD("'annotations': {'csi.hearth.dev/prefers': ''}", VOLUMES(CLAIM("data"))),
          POD("'annotations': {'csi.hearth.dev/prefers': '," L A "'}",
              VOLUMES(CLAIM("data")) "," AFFINITY(TERMS(A))));
    gives(POD("'annotations': {'csi.hearth.dev/prefers': 'a\\u0000b'}", VOLUMES(CLAIM("data"))),
          POD("'annotations': {'csi.hearth.dev/prefers': 'a\\u0000b," L A "'}",
              VOLUMES(CLAIM("data")) "," AFFINITY(TERMS(A))));
}
END_TEST

HARNESS_MAIN("driver/affinity/preferences", pod_of_a_dataset_prefers_it_in_four_steps,
             of_two_datasets_each_is_added_once, others_get_nothing,
             pod_that_speaks_of_warmth_is_let_be, it_is_added_to_what_the_pod_wants,
             what_was_added_before_is_not_added_again,
             annotation_of_others_is_kept_whatever_it_holds)
