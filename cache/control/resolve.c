/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/control/resolve.h"
#include <string.h>
#include "cache/control/ops_cache.h"
#include "cache/report/datasets.h"
#include "cache/report/status.h"
#include "common/dataset_key.h"
#include "common/field.h"
#include "common/suggest.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

/* Names in a message. */
#define LISTED_MAX 8
/* Of more open volumes than this only the first can be named otherwise than by ID. */
#define VOLUMES_MAX 4096

enum { RANK_KNOWN, RANK_OPEN, RANK_ATTACHED };

/* ---- words ---- */

ResolveEntry *resolve_entry_new(const char *id, const char *name, const char *thing, int rank)
{
    ResolveEntry *entry = g_new0(ResolveEntry, 1);
    *entry = (ResolveEntry){g_strdup(id), g_strdup(name), g_strdup(thing), rank,
                            g_ptr_array_new_with_free_func(g_free)};
    resolve_entry_add(entry, id);
    resolve_entry_add(entry, name);
    return entry;
}

void resolve_entry_add(ResolveEntry *entry, const char *word)
{
    if (word && *word)
        g_ptr_array_add(entry->words, g_strdup(word));
}

void resolve_entry_add_title(ResolveEntry *entry, const char *title)
{
    const char *at = strchr(title, '@'), *slash = strchr(title, '/');
    if (!at || title[0] == '/')
        return;
    resolve_entry_add(entry, title);
    if (slash && slash < at) {
        resolve_entry_add(entry, slash + 1);
    } else {
        g_autofree char *full = g_strconcat(DATASET_DEFAULT_GROUP "/", title, NULL);
        resolve_entry_add(entry, full);
    }
}

void resolve_entry_free(ResolveEntry *entry)
{
    if (!entry)
        return;
    g_free(entry->id);
    g_free(entry->name);
    g_free(entry->thing);
    g_ptr_array_unref(entry->words);
    g_free(entry);
}

/* ---- picking ---- */

static gboolean has_word(const ResolveEntry *entry, const char *word, gboolean begins)
{
    for (guint i = 0; i < entry->words->len; i++) {
        const char *one = entry->words->pdata[i];
        if (begins ? g_str_has_prefix(one, word) : strcmp(one, word) == 0)
            return TRUE;
    }
    return FALSE;
}

static ResolveEntry *best_of(const GPtrArray *entries, const char *thing)
{
    ResolveEntry *best = NULL;
    for (guint i = 0; i < entries->len; i++) {
        ResolveEntry *entry = entries->pdata[i];
        if (strcmp(entry->thing, thing) == 0 && (!best || entry->rank > best->rank))
            best = entry;
    }
    return best;
}

/* The best entry of each thing that matches; the array is the caller's, the entries borrowed. */
static GPtrArray *matching(const GPtrArray *entries, const char *word, gboolean begins)
{
    GPtrArray *found = g_ptr_array_new();
    g_autoptr(GHashTable) things = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < entries->len; i++) {
        const ResolveEntry *entry = entries->pdata[i];
        if (has_word(entry, word, begins) && g_hash_table_add(things, entry->thing))
            g_ptr_array_add(found, best_of(entries, entry->thing));
    }
    return found;
}

/* "a, b and 3 more"; the caller's. */
static char *list_names(const GPtrArray *entries)
{
    GString *text = g_string_new(NULL);
    const guint shown = MIN(entries->len, LISTED_MAX);
    for (guint i = 0; i < shown; i++)
        g_string_append_printf(text, "%s%s", i ? ", " : "",
                               ((const ResolveEntry *)entries->pdata[i])->name);
    if (entries->len > shown)
        g_string_append_printf(text, " and %u more", entries->len - shown);
    return g_string_free(text, FALSE);
}

/* The word that few edits make of this one, or that is it but for a namespace or group; borrowed,
 * NULL: there is none. */
static const char *meant(const GPtrArray *entries, const char *word)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    for (guint i = 0; i < entries->len; i++) {
        const ResolveEntry *entry = entries->pdata[i];
        g_ptr_array_extend(words, entry->words, NULL, NULL);
    }
    g_ptr_array_add(words, NULL);
    g_autofree char *end = g_strconcat("/", word, NULL);
    for (guint i = 0; *word && i + 1 < words->len; i++)
        if (g_str_has_suffix(words->pdata[i], end))
            return words->pdata[i];
    return suggest(word, (const char *const *)words->pdata);
}

static const char *fail_unknown(const GPtrArray *entries, const char *word, GError **error)
{
    g_autoptr(GPtrArray) things = matching(entries, "", TRUE);
    g_autofree char *list = list_names(things);
    const char *near = meant(entries, word);
    if (!*word)
        wire_fail(error, WIRE_ERROR_NOT_FOUND, "the volume's name is empty; there are: %s", list);
    else if (things->len)
        wire_fail(error, WIRE_ERROR_NOT_FOUND,
                  "volume %s is not open on this node and nothing of it is cached%s%s; there are: "
                  "%s",
                  word, near ? "; did you mean " : "", near ? near : "", list);
    else
        wire_fail(error, WIRE_ERROR_NOT_FOUND,
                  "volume %s is not open on this node and nothing of it is cached; no volume is",
                  word);
    return NULL;
}

const char *resolve_pick(const GPtrArray *entries, const char *word, GError **error)
{
    for (guint i = 0; i < entries->len; i++)
        if (strcmp(((const ResolveEntry *)entries->pdata[i])->id, word) == 0)
            return ((const ResolveEntry *)entries->pdata[i])->id;
    g_autoptr(GPtrArray) found = matching(entries, word, FALSE);
    if (found->len == 0 && *word) {
        g_ptr_array_unref(found);
        found = matching(entries, word, TRUE);
    }
    if (found->len == 1)
        return ((const ResolveEntry *)found->pdata[0])->id;
    if (found->len == 0)
        return fail_unknown(entries, word, error);
    g_autofree char *list = list_names(found);
    wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
              "%s may be one of %u volumes: %s; write more of the name, or the ID of 'hearthctl "
              "status --json'",
              word, found->len, list);
    return NULL;
}

/* ---- what there is ---- */

/* What volumes share: a dataset by its number, everything else by its ID. */
static const char *thing_of(const char *id)
{
    const gsize prefix = strlen(WIRE_DATASET_PREFIX);
    return g_str_has_prefix(id, WIRE_DATASET_PREFIX) ? id + prefix : id;
}

static void add_volume(GPtrArray *entries, const VolumeReport *v)
{
    ResolveEntry *entry =
        resolve_entry_new(v->volume, v->name, v->dataset ? v->dataset : thing_of(v->volume),
                          v->attached ? RANK_ATTACHED : RANK_OPEN);
    g_autofree char *title = dataset_key_title(v->root_path);
    g_autofree char *label = dataset_key(v->cluster_id, v->fs_name, v->root_path);
    resolve_entry_add(entry, v->claim);
    resolve_entry_add(entry, v->pv);
    resolve_entry_add(entry, label);
    if (label)
        resolve_entry_add_title(entry, title);
    g_ptr_array_add(entries, entry);
}

static void add_dataset(GPtrArray *entries, const json_t *dataset, const json_t *claims)
{
    const char *number = field_text(dataset, WIRE_KEY_DATASET);
    g_autofree char *id = g_strconcat(WIRE_DATASET_PREFIX, number, NULL);
    ResolveEntry *entry =
        resolve_entry_new(id, field_text(dataset, WIRE_KEY_NAME), number, RANK_KNOWN);
    const json_t *claim;
    size_t i;
    resolve_entry_add(entry, number);
    resolve_entry_add(entry, field_text(dataset, WIRE_KEY_LABEL));
    resolve_entry_add_title(entry, field_text(dataset, WIRE_KEY_NAME));
    json_array_foreach (claims, i, claim) {
        if (strcmp(field_text(claim, WIRE_KEY_DATASET), number) != 0)
            continue;
        resolve_entry_add(entry, field_text(claim, WIRE_KEY_VOLUME));
        resolve_entry_add(entry, field_text(claim, WIRE_KEY_CLAIM));
        resolve_entry_add(entry, field_text(claim, WIRE_KEY_PERSISTENT_VOLUME));
    }
    g_ptr_array_add(entries, entry);
}

static void add_datasets(GPtrArray *entries, Control *c)
{
    json_auto_t *claims = volumes_claims(c->volumes);
    g_autofree char *after = NULL;
    gboolean more = TRUE;
    while (more) {
        json_auto_t *page = datasets_list(c->datasets, after, &more);
        const size_t n = json_array_size(page);
        for (size_t i = 0; i < n; i++)
            add_dataset(entries, json_array_get(page, i), claims);
        g_free(after);
        after = n ? g_strdup(field_text(json_array_get(page, n - 1), WIRE_KEY_DATASET)) : NULL;
        more = more && n;
    }
}

static GPtrArray *list_entries(Control *c)
{
    GPtrArray *entries = g_ptr_array_new_with_free_func((GDestroyNotify)resolve_entry_free);
    g_autoptr(GPtrArray) open = volumes_list(c->volumes, NULL, VOLUMES_MAX);
    for (guint i = 0; i < open->len; i++)
        add_volume(entries, open->pdata[i]);
    add_datasets(entries, c);
    g_autoptr(GArray) pins = ops_pins(c);
    for (guint i = 0; i < pins->len; i++) {
        const ReportPin *pin = &g_array_index(pins, ReportPin, i);
        g_ptr_array_add(
            entries, resolve_entry_new(pin->volume, pin->name, thing_of(pin->volume), RANK_KNOWN));
    }
    return entries;
}

/* Whether something that a volume left is in the cache. */
static gboolean is_cached(Control *c, const char *id)
{
    uint64_t bytes = 0, objects = 0;
    g_autofree char *tag = volumes_tag(c->volumes, id);
    if (c->store)
        store_tag_usage(c->store, tag, &bytes, &objects);
    return objects > 0;
}

char *resolve_volume(Control *c, const char *word, GError **error)
{
    if (is_cached(c, word))
        return g_strdup(word);
    g_autoptr(GPtrArray) entries = list_entries(c);
    return g_strdup(resolve_pick(entries, word, error));
}
