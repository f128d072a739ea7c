/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/nodes.h"
#include <string.h>
#include "common/field.h"
#include "driver/warmth/labels.h"

#define NAMES_A_REASON 3

static const char *const reasons[WARMUP_REASONS] = {
    [WARMUP_NOT_READY] = "not ready",
    [WARMUP_CORDONED] = "cordoned",
    [WARMUP_NO_CACHE] = "no cache that reports",
    [WARMUP_SILENT] = "has not reported for 90 s",
    [WARMUP_CACHE_OFF] = "cache off",
    [WARMUP_BYPASS] = "cache disk in bypass",
    [WARMUP_TOO_SMALL] = "too little room",
};

gboolean warmup_candidate_of_node(const json_t *node, WarmupCandidate *candidate)
{
    const json_t *metadata = json_object_get(node, "metadata"), *condition;
    size_t i;
    candidate->name = field_text(metadata, "name");
    candidate->labels = json_object_get(metadata, "labels");
    candidate->cordoned =
        json_is_true(json_object_get(json_object_get(node, "spec"), "unschedulable"));
    candidate->ready = FALSE;
    json_array_foreach (json_object_get(json_object_get(node, "status"), "conditions"), i,
                        condition) {
        if (g_str_equal(field_text(condition, "type"), "Ready"))
            candidate->ready = g_str_equal(field_text(condition, "status"), "True");
    }
    return *candidate->name != '\0';
}

static gboolean matches(const Warmup *warmup, const json_t *labels)
{
    GHashTableIter iter;
    gpointer label, value;
    g_hash_table_iter_init(&iter, warmup->selector);
    while (g_hash_table_iter_next(&iter, &label, &value)) {
        /* A label whose value is "" is there all the same. */
        const char *has = json_string_value(json_object_get(labels, label));
        if (!has || !g_str_equal(has, value))
            return FALSE;
    }
    return TRUE;
}

static guint64 missing(const WarmupCandidate *c, guint64 total)
{
    return total > c->bytes ? total - c->bytes : 0;
}

/* The first reason that holds, or WARMUP_REASONS. */
static WarmupCannot why_not(const WarmupCandidate *c, guint64 total)
{
    if (!c->ready)
        return WARMUP_NOT_READY;
    if (c->cordoned)
        return WARMUP_CORDONED;
    if (c->age_ms < 0)
        return WARMUP_NO_CACHE;
    if (c->age_ms > WARM_STALE_MS)
        return WARMUP_SILENT;
    if (g_str_equal(c->disk, "bypass"))
        return WARMUP_BYPASS;
    if (!g_str_equal(c->disk, "ok") && !g_str_equal(c->disk, "suspect"))
        return WARMUP_CACHE_OFF;
    return missing(c, total) > c->room ? WARMUP_TOO_SMALL : WARMUP_REASONS;
}

/* More than all of it is no better than all of it. */
static guint64 useful_bytes(const WarmupCandidate *c, guint64 total)
{
    return total ? MIN(c->bytes, total) : c->bytes;
}

static int best_first(gconstpointer a, gconstpointer b, gpointer data)
{
    const WarmupCandidate *x = *(const WarmupCandidate *const *)a,
                          *y = *(const WarmupCandidate *const *)b;
    const guint64 total = *(const guint64 *)data;
    const guint64 p = useful_bytes(x, total), q = useful_bytes(y, total);
    if (p != q)
        return p > q ? -1 : 1;
    if (x->before != y->before)
        return x->before ? -1 : 1;
    if (x->room != y->room)
        return x->room > y->room ? -1 : 1;
    return strcmp(x->name, y->name);
}

static int by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(((const WarmupExcluded *)a)->name, ((const WarmupExcluded *)b)->name);
}

void warmup_nodes_choose(const Warmup *warmup, guint64 total, const WarmupCandidate *candidates,
                         gsize n, WarmupChoice *choice)
{
    g_autoptr(GPtrArray) able = g_ptr_array_new();
    *choice = (WarmupChoice){.names = g_ptr_array_new(),
                             .excluded = g_array_new(FALSE, FALSE, sizeof(WarmupExcluded))};
    for (gsize i = 0; i < n; i++) {
        const WarmupCandidate *c = &candidates[i];
        if (!matches(warmup, c->labels))
            continue;
        const WarmupExcluded excluded = {c->name, why_not(c, total)};
        choice->matching++;
        if (excluded.why == WARMUP_REASONS)
            g_ptr_array_add(able, (gpointer)c);
        else
            g_array_append_val(choice->excluded, excluded);
    }
    g_ptr_array_sort_with_data(able, best_first, &total);
    g_array_sort(choice->excluded, by_name);
    const guint wanted = warmup->nodes ? warmup->nodes : WARMUP_NODES_MAX;
    for (guint i = 0; i < MIN(wanted, able->len); i++)
        g_ptr_array_add(choice->names, (gpointer)((const WarmupCandidate *)able->pdata[i])->name);
}

void warmup_choice_clear(WarmupChoice *choice)
{
    g_clear_pointer(&choice->names, g_ptr_array_unref);
    g_clear_pointer(&choice->excluded, g_array_unref);
}

static void tell_reason(GString *text, const WarmupChoice *choice, WarmupCannot why)
{
    guint count = 0;
    for (guint i = 0; i < choice->excluded->len; i++) {
        const WarmupExcluded *e = &g_array_index(choice->excluded, WarmupExcluded, i);
        if (e->why != why)
            continue;
        if (count == 0)
            g_string_append_printf(text, "; %s: %s", reasons[why], e->name);
        else if (count < NAMES_A_REASON)
            g_string_append_printf(text, ", %s", e->name);
        count++;
    }
    if (count > NAMES_A_REASON)
        g_string_append_printf(text, " and %u more", count - NAMES_A_REASON);
}

char *warmup_choice_message(const Warmup *warmup, const WarmupChoice *choice)
{
    const guint wanted = warmup->nodes ? warmup->nodes : choice->matching;
    if (choice->names->len >= wanted && wanted > 0)
        return g_strdup("");
    g_autoptr(GString) text = g_string_new(NULL);
    if (choice->matching == 0)
        g_string_append(text, g_hash_table_size(warmup->selector)
                                  ? "no node has the labels of spec.nodeSelector"
                                  : "there are no nodes");
    else if (warmup->nodes)
        g_string_append_printf(text, "%u of the %u nodes asked for, of %u there are",
                               choice->names->len, wanted, choice->matching);
    else
        g_string_append_printf(text, "%u of %u nodes", choice->names->len, wanted);
    for (int why = 0; why < WARMUP_REASONS; why++)
        tell_reason(text, choice, (WarmupCannot)why);
    return g_string_free(g_steal_pointer(&text), FALSE);
}
