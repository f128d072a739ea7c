/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/begin.h"
#include "common/error.h"
#include "common/field.h"
#include "driver/kube/list.h"
#include "driver/warmup/nodes.h"
#include "driver/warmup/status.h"

#define LIST_MS 30000

static const KubeResource nodes = {"", "v1", "nodes"};

typedef struct Candidates {
    GArray *list;      /* WarmupCandidate */
    GPtrArray *names;  /* that it borrows */
    GPtrArray *labels; /* the same */
} Candidates;

/* Keeps only the needed parts of a Node: there may be thousands. */
static void take_node(const json_t *object, void *data)
{
    Candidates *c = data;
    WarmupCandidate candidate = {.name = NULL};
    if (!warmup_candidate_of_node(object, &candidate))
        return;
    char *name = g_strdup(candidate.name);
    g_ptr_array_add(c->names, name);
    candidate.name = name;
    if (candidate.labels)
        g_ptr_array_add(c->labels, json_incref((json_t *)candidate.labels));
    g_array_append_val(c->list, candidate);
}

static gboolean was_part(const json_t *status, const char *name)
{
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(status, "nodes"), i, node) {
        if (g_str_equal(field_text(node, "name"), name))
            return TRUE;
    }
    return FALSE;
}

/* The bytes that a run has not fetched yet on the node. */
static guint64 missing_on(const WarmupBegin *begin, const json_t *status, const char *name)
{
    const json_t *node;
    size_t i;
    json_array_foreach (json_object_get(status, "nodes"), i, node) {
        WarmthOf of;
        if (!g_str_equal(field_text(node, "name"), name))
            continue;
        guint64 total = field_count(node, "totalBytes");
        if (!total && warmth_of(begin->warmth, field_text(status, "dataset"), NULL, &of))
            total = of.total;
        return total - MIN(field_count(node, "bytes"), total);
    }
    return 0;
}

/* Runs of other namespaces count for half of the room at most, so that no namespace can take all of
 * it: newer data displaces the oldest. */
static guint64 promised(const WarmupBegin *begin, const Warmup *to, const char *name, guint64 room)
{
    guint64 own = 0, others = 0;
    for (guint i = 0; i < begin->under_way->len; i++) {
        const WarmupObject *other = begin->under_way->pdata[i];
        if (g_str_equal(other->warmup->uid, to->uid))
            continue;
        g_autoptr(GPtrArray) parts = warmup_status_parts(other);
        if (!g_ptr_array_find_with_equal_func(parts, name, g_str_equal, NULL))
            continue;
        if (g_str_equal(other->warmup->namespace, to->namespace))
            own += missing_on(begin, other->status, name);
        else
            others += missing_on(begin, other->status, name);
    }
    return MIN(own + MIN(others, room / 2), room);
}

static void choose(const WarmupBegin *begin, const WarmupObject *object,
                   const DatasetOrigin *origin, const Candidates *c, WarmupChoice *choice)
{
    const Warmup *warmup = object->warmup;
    WarmthOf of = {.total = 0};
    if (warmup->paths->len == 0)
        warmth_of(begin->warmth, origin->id, NULL, &of);
    for (guint i = 0; i < c->list->len; i++) {
        WarmupCandidate *one = &g_array_index(c->list, WarmupCandidate, i);
        WarmthCache cache;
        warmth_cache(begin->warmth, origin->id, one->name, &cache);
        one->age_ms = cache.age_ms;
        one->disk = cache.disk;
        one->bytes = cache.bytes;
        one->room = cache.room - promised(begin, warmup, one->name, cache.room);
        one->before = was_part(object->status, one->name);
    }
    warmup_nodes_choose(warmup, of.total, (const WarmupCandidate *)(void *)c->list->data,
                        c->list->len, choice);
}

json_t *warmup_begin(const WarmupBegin *begin, const WarmupObject *object, const WarmupRun *run,
                     gint64 now_s, GError **error)
{
    const KubeSelection all = {.resource = nodes};
    g_auto(DatasetOrigin) origin = {.cluster_id = NULL};
    g_autoptr(GError) cause = NULL;
    if (!warmup_target_find(&begin->targets, object->warmup, &origin, &cause)) {
        if (cause->domain == HEARTH_ERROR)
            return warmup_status_idle(object, WARMUP_WAITING, cause->message, now_s);
        g_propagate_error(error, g_steal_pointer(&cause));
        return NULL;
    }
    g_autoptr(GArray) list = g_array_new(FALSE, FALSE, sizeof(WarmupCandidate));
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free),
                         labels = g_ptr_array_new_with_free_func((GDestroyNotify)json_decref);
    Candidates candidates = {list, names, labels};
    const KubeListing listing = {.timeout_ms = LIST_MS,
                                 .cancel = begin->targets.cancel,
                                 .on_object = take_node,
                                 .data = &candidates};
    if (!kube_list(begin->targets.client, &all, &listing, NULL, error))
        return NULL;
    g_auto(WarmupChoice) choice = {.names = NULL};
    choose(begin, object, &origin, &candidates, &choice);
    g_autofree char *message = warmup_choice_message(object->warmup, &choice);
    return choice.names->len
               ? warmup_status_begin(object, run, &origin, choice.names, message, now_s)
               : warmup_status_idle(object, WARMUP_WAITING, message, now_s);
}
