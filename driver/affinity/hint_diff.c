/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/hint_diff.h"
#include <string.h>
#include "driver/kube/backoff.h"

/* The hint that a claim needs, and the one it has. */
typedef struct Claim {
    char *key; /* "namespace/name" */
    char *namespace, *name;
    char *volume;               /* that needs it; NULL: none */
    char *want_uid, *there_uid; /* the claim's */
    char *title;                /* of the dataset that it needs; NULL: not known */
    char want[DATASET_KEY_DIGITS + 1], there[DATASET_KEY_DIGITS + 1];
    gboolean is_there;
    KubeBackoff backoff;
    gint64 not_before_ms;
} Claim;

struct HintDiff {
    GHashTable *claims;  /* key -> Claim that needs or has a hint */
    GHashTable *volumes; /* name -> key of the claim it wants a hint for */
    GHashTable *differ;  /* Claim, borrowed */
};

static void claim_free(void *data)
{
    Claim *c = data;
    g_free(c->key);
    g_free(c->namespace);
    g_free(c->name);
    g_free(c->volume);
    g_free(c->want_uid);
    g_free(c->there_uid);
    g_free(c->title);
    g_free(c);
}

HintDiff *hint_diff_new(void)
{
    HintDiff *d = g_new0(HintDiff, 1);
    d->claims = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, claim_free);
    d->volumes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    d->differ = g_hash_table_new(NULL, NULL);
    return d;
}

void hint_diff_free(HintDiff *d)
{
    if (!d)
        return;
    g_hash_table_unref(d->differ);
    g_hash_table_unref(d->volumes);
    g_hash_table_unref(d->claims);
    g_free(d);
}

static char *key_of(const Hint *hint)
{
    return g_strdup_printf("%s/%s", hint->namespace, hint->claim);
}

static Claim *claim_of(HintDiff *d, const Hint *hint)
{
    g_autofree char *key = key_of(hint);
    Claim *c = g_hash_table_lookup(d->claims, key);
    if (!c) {
        c = g_new0(Claim, 1);
        c->namespace = g_strdup(hint->namespace);
        c->name = g_strdup(hint->claim);
        c->key = g_steal_pointer(&key);
        g_hash_table_insert(d->claims, c->key, c);
    }
    return c;
}

static HintAct act_of(const Claim *c)
{
    if (!c->volume)
        return c->is_there ? HINT_DELETE : HINT_RIGHT;
    return c->is_there && g_str_equal(c->want, c->there) && g_str_equal(c->want_uid, c->there_uid)
               ? HINT_RIGHT
               : HINT_APPLY;
}

/* After a change of it, which may be its end. */
static void look(HintDiff *d, Claim *c)
{
    if (act_of(c) != HINT_RIGHT) {
        g_hash_table_add(d->differ, c);
        return;
    }
    g_hash_table_remove(d->differ, c);
    c->backoff.failures = 0;
    c->not_before_ms = 0;
    if (!c->is_there)
        g_hash_table_remove(d->claims, c->key);
}

char *hint_diff_claim(const HintDiff *d, const char *namespace, const char *dataset)
{
    const Claim *found = NULL;
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, d->claims);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Claim *c = value;
        if (!c->volume || strcmp(c->namespace, namespace) != 0)
            continue;
        if (strcmp(c->want, dataset) == 0)
            return g_strdup(c->name);
        if (!c->title || !dataset_title_matches(c->title, dataset))
            continue;
        if (found && strcmp(found->want, c->want) != 0)
            return NULL; /* two clusters or groups have one of that name */
        found = c;
    }
    return found ? g_strdup(found->name) : NULL;
}

void hint_diff_want(HintDiff *d, const char *volume, const Hint *hint)
{
    const char *had = g_hash_table_lookup(d->volumes, volume);
    g_autofree char *key = hint ? key_of(hint) : NULL;
    Claim *c = had ? g_hash_table_lookup(d->claims, had) : NULL;
    /* Another volume may be bound to a claim of that name by now. */
    if (c && g_strcmp0(had, key) != 0 && g_strcmp0(c->volume, volume) == 0) {
        g_clear_pointer(&c->volume, g_free);
        look(d, c);
    }
    if (!hint) {
        g_hash_table_remove(d->volumes, volume);
        return;
    }
    c = claim_of(d, hint);
    g_free(c->volume);
    g_free(c->want_uid);
    g_free(c->title);
    c->title = g_strdup(hint->title);
    c->volume = g_strdup(volume);
    c->want_uid = g_strdup(hint->claim_uid);
    memcpy(c->want, hint->dataset, sizeof(c->want));
    g_hash_table_replace(d->volumes, g_strdup(volume), g_steal_pointer(&key));
    look(d, c);
}

void hint_diff_there(HintDiff *d, const Hint *hint)
{
    Claim *c = claim_of(d, hint);
    g_free(c->there_uid);
    c->there_uid = g_strdup(hint->claim_uid);
    memcpy(c->there, hint->dataset, sizeof(c->there));
    c->is_there = TRUE;
    look(d, c);
}

void hint_diff_gone(HintDiff *d, const Hint *hint, gint64 now_ms)
{
    Claim *c = claim_of(d, hint);
    if (c->is_there)
        c->not_before_ms = MAX(c->not_before_ms, now_ms + HINT_REMOVED_MS);
    c->is_there = FALSE;
    look(d, c);
}

guint hint_diff_count(const HintDiff *d)
{
    return g_hash_table_size(d->differ);
}

GPtrArray *hint_diff_due(const HintDiff *d, gint64 now_ms)
{
    GPtrArray *keys = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, d->differ);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        const Claim *c = value;
        if (c->not_before_ms <= now_ms)
            g_ptr_array_add(keys, g_strdup(c->key));
    }
    return keys;
}

HintAct hint_diff_act(const HintDiff *d, const char *key, Hint *hint)
{
    const Claim *c = g_hash_table_lookup(d->claims, key);
    const HintAct act = c ? act_of(c) : HINT_RIGHT;
    *hint = (Hint){.namespace = NULL};
    if (act == HINT_RIGHT)
        return act;
    hint->namespace = g_strdup(c->namespace);
    hint->claim = g_strdup(c->name);
    hint->claim_uid = g_strdup(act == HINT_APPLY ? c->want_uid : c->there_uid);
    memcpy(hint->dataset, act == HINT_APPLY ? c->want : c->there, sizeof(hint->dataset));
    return act;
}

void hint_diff_done(HintDiff *d, const Hint *hint, HintAct act)
{
    if (act == HINT_APPLY) {
        hint_diff_there(d, hint);
        return;
    }
    Claim *c = claim_of(d, hint);
    c->is_there = FALSE;
    look(d, c);
}

void hint_diff_failed(HintDiff *d, const char *key, gint64 now_ms)
{
    Claim *c = g_hash_table_lookup(d->claims, key);
    if (!c || act_of(c) == HINT_RIGHT)
        return;
    c->backoff.first_ms = HINT_RETRY_FIRST_MS;
    c->backoff.most_ms = HINT_RETRY_MOST_MS;
    c->not_before_ms = now_ms + kube_backoff_next_ms(&c->backoff);
}

gboolean hint_diff_any_failed(const HintDiff *d)
{
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, d->differ);
    while (g_hash_table_iter_next(&iter, &value, NULL)) {
        if (((const Claim *)value)->backoff.failures > 0)
            return TRUE;
    }
    return FALSE;
}
