/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/harness.h"
#include "cache/control/resolve.h"
#include "proto/wire.h"
#include <string.h>

static void add(GPtrArray *entries, const char *id, const char *name, const char *thing, int rank)
{
    g_ptr_array_add(entries, resolve_entry_new(id, name, thing, rank));
}

/* Two claims, a static volume, and two datasets; of one a claim is open, too. */
static GPtrArray *node(void)
{
    GPtrArray *entries = g_ptr_array_new_with_free_func((GDestroyNotify)resolve_entry_free);
    add(entries, "h1~a", "train/data", "h1~a", 2);
    resolve_entry_add(entries->pdata[0], "pvc-0a1b");
    add(entries, "h1~b", "train/data-2", "h1~b", 2);
    resolve_entry_add(entries->pdata[1], "pvc-0c2d");
    add(entries, "scratch", "scratch", "scratch", 1);
    add(entries, "h1~c", "train/photos", "0011", 1);
    resolve_entry_add_title(entries->pdata[3], "imagenet@2026-11");
    add(entries, "dataset-0011", "imagenet@2026-11", "0011", 2);
    resolve_entry_add_title(entries->pdata[4], "imagenet@2026-11");
    add(entries, "dataset-0022", "team/laion@v3", "0022", 0);
    resolve_entry_add_title(entries->pdata[5], "team/laion@v3");
    add(entries, "dataset-0022", "team/laion@v3", "0022", 0); /* it is pinned, too */
    return entries;
}

static void means(const char *word, const char *id)
{
    g_autoptr(GPtrArray) entries = node();
    g_autoptr(GError) error = NULL;
    const char *found = resolve_pick(entries, word, &error);
    ck_assert_msg(g_strcmp0(found, id) == 0, "%s: %s, %s", word, found ? found : "none",
                  error ? error->message : "");
}

START_TEST(every_name_of_a_volume_means_it)
{
    means("h1~a", "h1~a");
    means("train/data", "h1~a"); /* though another begins with it */
    means("pvc-0a1b", "h1~a");
    means("dataset-0011", "dataset-0011");
    means("imagenet@2026-11", "dataset-0011");
    means("csi/imagenet@2026-11", "dataset-0011");
    means("team/laion@v3", "dataset-0022");
    means("laion@v3", "dataset-0022");
}
END_TEST

START_TEST(a_beginning_is_enough_when_only_one_has_it)
{
    means("pvc-0a", "h1~a");
    means("train/data-", "h1~b");
    means("scr", "scratch");
    means("imagenet", "dataset-0011");
    means("h1~c", "h1~c"); /* an ID is taken at its word */
    means("train/ph", "dataset-0011");
    means("dataset-002", "dataset-0022");
}
END_TEST

static void fails(const GPtrArray *entries, const char *word, WireError code, const char *says)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(resolve_pick(entries, word, &error));
    ck_assert(g_error_matches(error, WIRE_ERROR, (int)code));
    ck_assert_msg(strstr(error->message, says) != NULL, "%s", error->message);
}

START_TEST(what_is_ambiguous_or_unknown_lists_the_choice)
{
    g_autoptr(GPtrArray) entries = node();
    fails(entries, "train/d", WIRE_ERROR_INVALID_ARGUMENT,
          "train/d may be one of 2 volumes: train/data, train/data-2;");
    fails(entries, "pvc-0", WIRE_ERROR_INVALID_ARGUMENT, "train/data, train/data-2;");
    fails(entries, "train/dta-2", WIRE_ERROR_NOT_FOUND, "; did you mean train/data-2; there are: ");
    fails(entries, "imagent@2026-11", WIRE_ERROR_NOT_FOUND, "; did you mean imagenet@2026-11; ");
    fails(entries, "data-2", WIRE_ERROR_NOT_FOUND, "; did you mean train/data-2; ");
    fails(entries, "xyz", WIRE_ERROR_NOT_FOUND, "is cached; there are: ");
    fails(entries, "xyz", WIRE_ERROR_NOT_FOUND,
          "there are: train/data, train/data-2, scratch, imagenet@2026-11, team/laion@v3");
    fails(entries, "", WIRE_ERROR_NOT_FOUND, "name is empty; there are: ");
    g_autoptr(GPtrArray) none = g_ptr_array_new();
    fails(none, "xyz", WIRE_ERROR_NOT_FOUND, "no volume is");
    g_autoptr(GPtrArray) many = g_ptr_array_new_with_free_func((GDestroyNotify)resolve_entry_free);
    for (int i = 0; i < 20; i++) {
        g_autofree char *id = g_strdup_printf("v%02d", i);
        add(many, id, id, id, 0);
    }
    fails(many, "v", WIRE_ERROR_INVALID_ARGUMENT, "v07 and 12 more;");
}
END_TEST

HARNESS_MAIN("cache/control/resolve", every_name_of_a_volume_means_it,
             a_beginning_is_enough_when_only_one_has_it,
             what_is_ambiguous_or_unknown_lists_the_choice)
