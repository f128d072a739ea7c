/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/hint_diff.h"
#include <string.h>
#include "tests/unit/harness.h"

#define A "aaaaaaaaaaaaaaaa"
#define B "bbbbbbbbbbbbbbbb"

static Hint hint(const char *claim, const char *uid, const char *dataset)
{
    Hint h = {"jobs", (char *)claim, (char *)uid, "", NULL};
    g_strlcpy(h.dataset, dataset, sizeof(h.dataset));
    return h;
}

static void want(HintDiff *d, const char *volume, const char *claim, const char *uid,
                 const char *dataset)
{
    const Hint h = hint(claim, uid, dataset);
    hint_diff_want(d, volume, &h);
}

static void there(HintDiff *d, const char *claim, const char *uid, const char *dataset)
{
    const Hint h = hint(claim, uid, dataset);
    hint_diff_there(d, &h);
}

static void gone(HintDiff *d, const char *claim, gint64 now_ms)
{
    const Hint h = hint(claim, "", "");
    hint_diff_gone(d, &h, now_ms);
}

/* "apply DATASET", "delete" or "right". */
static const char *act(const HintDiff *d, const char *claim)
{
    static char text[64];
    g_auto(Hint) h = {0};
    g_autofree char *key = g_strconcat("jobs/", claim, NULL);
    switch (hint_diff_act(d, key, &h)) {
    case HINT_APPLY:
        g_snprintf(text, sizeof(text), "apply %s %s", h.claim_uid, h.dataset);
        return text;
    case HINT_DELETE:
        return "delete";
    default:
        return "right";
    }
}

static guint due(const HintDiff *d, gint64 now_ms)
{
    g_autoptr(GPtrArray) keys = hint_diff_due(d, now_ms);
    return keys->len;
}

START_TEST(what_is_right_does_not_differ_whoever_was_first)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    ck_assert_str_eq(act(d, "x"), "apply u1 " A);
    there(d, "x", "u1", A);
    ck_assert_str_eq(act(d, "x"), "right");
    there(d, "y", "u2", B);
    ck_assert_str_eq(act(d, "y"), "delete");
    want(d, "pv2", "y", "u2", B);
    ck_assert_uint_eq(hint_diff_count(d), 0);
    ck_assert_uint_eq(due(d, 0), 0);
}
END_TEST

START_TEST(another_dataset_or_another_claim_of_the_name_differs)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    there(d, "x", "u1", B);
    ck_assert_str_eq(act(d, "x"), "apply u1 " A);
    there(d, "x", "u0", A);
    ck_assert_str_eq(act(d, "x"), "apply u1 " A);
    there(d, "x", "u1", A);
    ck_assert_uint_eq(hint_diff_count(d), 0);
}
END_TEST

START_TEST(volume_that_wants_none_any_more_has_its_hint_deleted)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    there(d, "x", "u1", A);
    hint_diff_want(d, "pv1", NULL);
    ck_assert_str_eq(act(d, "x"), "delete");
    const Hint h = hint("x", "u1", A);
    hint_diff_done(d, &h, HINT_DELETE);
    ck_assert_uint_eq(hint_diff_count(d), 0);
    gone(d, "x", 0); /* what the watch shows of it */
    ck_assert_uint_eq(hint_diff_count(d), 0);
    hint_diff_want(d, "pv1", NULL);
    hint_diff_want(d, "pv-other", NULL);
    ck_assert_uint_eq(hint_diff_count(d), 0);
}
END_TEST

START_TEST(release_of_an_old_volume_takes_nothing_from_the_new_one)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    want(d, "pv2", "x", "u2", B); /* the claim was made anew */
    hint_diff_want(d, "pv1", NULL);
    ck_assert_str_eq(act(d, "x"), "apply u2 " B);
}
END_TEST

START_TEST(volume_bound_to_another_claim_leaves_the_first)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    there(d, "x", "u1", A);
    want(d, "pv1", "y", "u2", A);
    ck_assert_str_eq(act(d, "x"), "delete");
    ck_assert_str_eq(act(d, "y"), "apply u2 " A);
}
END_TEST

START_TEST(hint_removed_by_others_is_due_after_a_while)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    ck_assert_uint_eq(due(d, 1000), 1);
    there(d, "x", "u1", A);
    gone(d, "x", 1000);
    ck_assert_uint_eq(hint_diff_count(d), 1);
    ck_assert_uint_eq(due(d, 1000 + HINT_REMOVED_MS - 1), 0);
    ck_assert_uint_eq(due(d, 1000 + HINT_REMOVED_MS), 1);
    hint_diff_want(d, "pv1", NULL); /* it went with its claim */
    ck_assert_uint_eq(hint_diff_count(d), 0);
}
END_TEST

START_TEST(failure_waits_longer_each_time_and_is_forgotten_when_it_is_right)
{
    g_autoptr(HintDiff) d = hint_diff_new();
    want(d, "pv1", "x", "u1", A);
    want(d, "pv2", "y", "u2", B);
    hint_diff_failed(d, "jobs/x", 0);
    ck_assert(hint_diff_any_failed(d));
    ck_assert_uint_eq(due(d, 0), 1); /* y */
    ck_assert_uint_eq(due(d, HINT_RETRY_FIRST_MS), 2);
    for (guint i = 0; i < 12; i++)
        hint_diff_failed(d, "jobs/x", 0);
    ck_assert_uint_eq(due(d, HINT_RETRY_MOST_MS / 2 - 1), 1);
    ck_assert_uint_eq(due(d, HINT_RETRY_MOST_MS), 2);
    there(d, "x", "u1", A);
    ck_assert(!hint_diff_any_failed(d));
    there(d, "x", "u1", B);
    ck_assert_uint_eq(due(d, 0), 2);
    hint_diff_failed(d, "jobs/none", 0);
    ck_assert(!hint_diff_any_failed(d));
}
END_TEST

START_TEST(a_claim_is_found_by_the_title_of_its_dataset)
{
    HintDiff *d = hint_diff_new();
    Hint one = hint("one", "u1", A), two = hint("two", "u2", B), same = hint("same", "u3", A);
    one.title = same.title = (char *)"imagenet@v1";
    two.title = (char *)"team/imagenet@v1";
    hint_diff_want(d, "v1", &one);
    g_autofree char *found = hint_diff_claim(d, "jobs", "imagenet@v1");
    g_autofree char *with_group = hint_diff_claim(d, "jobs", "csi/imagenet@v1");
    ck_assert_str_eq(found, "one");
    ck_assert_str_eq(with_group, "one");
    ck_assert_ptr_null(hint_diff_claim(d, "others", "imagenet@v1"));
    ck_assert_ptr_null(hint_diff_claim(d, "jobs", "imagenet@v2"));
    hint_diff_want(d, "v3", &same);
    g_autofree char *any = hint_diff_claim(d, "jobs", "imagenet@v1");
    ck_assert_ptr_nonnull(any);
    /* One of another group has the name too. */
    hint_diff_want(d, "v2", &two);
    ck_assert_ptr_null(hint_diff_claim(d, "jobs", "imagenet@v1"));
    g_autofree char *exact = hint_diff_claim(d, "jobs", "team/imagenet@v1");
    g_autofree char *by_key = hint_diff_claim(d, "jobs", B);
    ck_assert_str_eq(exact, "two");
    ck_assert_str_eq(by_key, "two");
    hint_diff_free(d);
}
END_TEST

HARNESS_MAIN("driver/affinity/hint_diff", a_claim_is_found_by_the_title_of_its_dataset,
             what_is_right_does_not_differ_whoever_was_first,
             another_dataset_or_another_claim_of_the_name_differs,
             volume_that_wants_none_any_more_has_its_hint_deleted,
             release_of_an_old_volume_takes_nothing_from_the_new_one,
             volume_bound_to_another_claim_leaves_the_first,
             hint_removed_by_others_is_due_after_a_while,
             failure_waits_longer_each_time_and_is_forgotten_when_it_is_right)
