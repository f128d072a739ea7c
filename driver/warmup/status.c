/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/status.h"
#include <string.h>
#include "common/field.h"
#include "driver/kube/time.h"
#include "common/quantity.h"
#include "driver/warmth/labels.h"

#define NAMES_IN_MESSAGE 3
/* Three years: as good as never. */
#define ETA_MAX_S 100000000

static json_t *time_json(gint64 s)
{
    g_autofree char *text = kube_time_format(s * G_USEC_PER_SEC);
    return json_string(text);
}

/* 0: it is none. */
static gint64 time_of(const json_t *object, const char *name)
{
    gint64 us;
    return kube_time_parse(field_text(object, name), &us) ? us / G_USEC_PER_SEC : 0;
}

/* ---- a node ---- */

static gboolean is_one_of(const char *state, const char *const *states)
{
    return g_strv_contains(states, state);
}

static gboolean is_final(const char *state)
{
    static const char *const states[] = {"Succeeded", "Failed", "Cancelled", NULL};
    return is_one_of(state, states);
}

static void set_number(json_t *node, const char *name, guint64 value)
{
    if (value > 0)
        json_object_set_new(node, name, json_integer((json_int_t)value));
}

/* What is nothing is left out. `of` has the numbers, of a report or of the node as it was. */
static json_t *node_json(const json_t *was, const char *state, const json_t *of,
                         const char *message, gint64 now_s)
{
    json_t *node = json_pack("{s:s, s:s}", "name", field_text(was, "name"), "state", state);
    const gboolean same = g_str_equal(field_text(was, "state"), state);
    const gboolean whole = g_str_equal(state, "Succeeded");
    g_autofree char *text = warmup_message(message);
    json_object_set_new(node, "since", time_json(same ? time_of(was, "since") : now_s));
    json_object_set_new(node, "percent",
                        json_integer(whole ? 100 : MIN(field_count(of, "percent"), 100)));
    set_number(node, "bytes", field_count(of, "bytes"));
    set_number(node, "totalBytes", field_count(of, "totalBytes"));
    if (g_str_equal(state, "Running")) {
        set_number(node, "bytesPerSecond", field_count(of, "bytesPerSecond"));
        set_number(node, "etaSeconds", MIN(field_count(of, "etaSeconds"), ETA_MAX_S));
    }
    if (*text)
        json_object_set_new(node, "message", json_string(text));
    return node;
}

static const json_t *entry_of(const json_t *warmups, const char *run)
{
    const json_t *entry;
    size_t i;
    json_array_foreach (warmups, i, entry) {
        if (g_str_equal(field_text(entry, "run"), run))
            return entry;
    }
    return NULL;
}

/* The state that the node reports; an unknown one counts as Running. */
static const char *state_said(const json_t *entry)
{
    const char *state = field_text(entry, "state");
    return is_final(state) || g_str_equal(state, "Pending") ? state : "Running";
}

static json_t *node_now(const json_t *was, const char *run, const WarmupReport *report,
                        gint64 now_s)
{
    const json_t *entry = report ? entry_of(report->warmups, run) : NULL;
    const gint64 in_state_s = now_s - time_of(was, "since");
    const gint64 age_ms = report && report->age_ms >= 0 ? report->age_ms : in_state_s * 1000;
    const char *state = field_text(was, "state");
    if (is_final(state))
        return json_deep_copy(was);
    if (entry && is_final(state_said(entry)))
        return node_json(was, state_said(entry), entry, field_text(entry, "message"), now_s);
    /* One that is lost stays so until it reports. */
    if (age_ms > WARM_STALE_MS || (g_str_equal(state, "Lost") && (!report || report->age_ms < 0)))
        return node_json(was, "Lost", entry ? entry : was, "it has not reported for 90 s", now_s);
    if (entry && in_state_s > WARMUP_DEADLINE_S && g_str_equal(state, "Running") &&
        !is_final(state_said(entry)))
        return node_json(was, "Failed", entry, "it was not done within 24 hours", now_s);
    if (entry)
        return node_json(was, state_said(entry), entry, field_text(entry, "message"), now_s);
    if (g_str_equal(state, "Pending") && in_state_s > WARMUP_PATIENCE_S)
        return node_json(was, "Failed", was,
                         "its plugin did not take it up within 10 minutes; is it of this version?",
                         now_s);
    return node_json(was, "Pending", was, "", now_s);
}

/* Ended, with any result. */
static gboolean has_ended(const json_t *node, gint64 now_s)
{
    const char *state = field_text(node, "state");
    return is_final(state) ||
           (g_str_equal(state, "Lost") && now_s - time_of(node, "since") > WARMUP_PATIENCE_S);
}

/* ---- all nodes ---- */

typedef struct Sum {
    guint nodes, ended, succeeded;
    guint64 percents, rate;
    gint64 eta_s; /* 0: not known */
} Sum;

static Sum sum_up(const json_t *nodes, gint64 now_s)
{
    Sum sum = {0};
    const json_t *node;
    size_t i;
    json_array_foreach (nodes, i, node) {
        sum.nodes++;
        sum.ended += has_ended(node, now_s);
        sum.succeeded += g_str_equal(field_text(node, "state"), "Succeeded");
        sum.percents += field_count(node, "percent");
        sum.rate += field_count(node, "bytesPerSecond");
        sum.eta_s = MAX(sum.eta_s, (gint64)field_count(node, "etaSeconds"));
    }
    return sum;
}

static char *rate_text(guint64 rate)
{
    g_autofree char *text = quantity_text(rate);
    return rate ? g_strconcat(text, "/s", NULL) : g_strdup("");
}

static char *eta_text(gint64 s)
{
    const long long minutes = (s + 59) / 60, hours = minutes / 60;
    if (s <= 0)
        return g_strdup("");
    if (s < 60)
        return g_strdup_printf("%llds", (long long)s);
    if (hours < 1)
        return g_strdup_printf("%lldm", minutes);
    return hours < 24 ? g_strdup_printf("%lldh%lldm", hours, minutes % 60)
                      : g_strdup_printf("%lldd%lldh", hours / 24, hours % 24);
}

/* ---- conditions ---- */

static json_t *condition(const WarmupObject *object, const char *type, gboolean is,
                         const char *reason, const char *message, gint64 now_s)
{
    const char *status = is ? "True" : "False";
    const json_t *old;
    gint64 since_s = now_s;
    size_t i;
    json_array_foreach (json_object_get(object->status, "conditions"), i, old) {
        if (g_str_equal(field_text(old, "type"), type) &&
            g_str_equal(field_text(old, "status"), status))
            since_s = time_of(old, "lastTransitionTime");
    }
    return json_pack("{s:s, s:s, s:I, s:o, s:s, s:s}", "type", type, "status", status,
                     "observedGeneration", (json_int_t)object->warmup->generation,
                     "lastTransitionTime", time_json(since_s), "reason", reason, "message",
                     message);
}

/* What there is to say of nodes that ended otherwise: a few by name. */
static char *failures(const json_t *nodes, const Sum *sum)
{
    g_autoptr(GString) text = g_string_new(NULL);
    const json_t *node;
    guint told = 0;
    size_t i;
    g_string_append_printf(text, "%u of %u nodes", sum->nodes - sum->succeeded, sum->nodes);
    json_array_foreach (nodes, i, node) {
        if (g_str_equal(field_text(node, "state"), "Succeeded") || ++told > NAMES_IN_MESSAGE)
            continue;
        const char *message = field_text(node, "message");
        g_string_append_printf(text, "; %s %s%s%s", field_text(node, "name"),
                               field_text(node, "state"), *message ? ": " : "", message);
    }
    if (told > NAMES_IN_MESSAGE)
        g_string_append_printf(text, "; and %u more", told - NAMES_IN_MESSAGE);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* ---- the whole ---- */

typedef struct Verdict {
    const char *phase, *reason, *message;
    gboolean complete, failed;
} Verdict;

/* Takes nodes. Run, dataset, its origin and time stay as they are. */
static json_t *status_json(const WarmupObject *object, const Verdict *verdict, json_t *nodes,
                           gint64 now_s)
{
    const json_t *before = object->status;
    const Sum sum = sum_up(nodes, now_s);
    const int percent = sum.nodes ? (int)(sum.percents / sum.nodes) : 0;
    g_autofree char *warm = g_strdup_printf("%u/%u", sum.succeeded, sum.nodes);
    g_autofree char *rate = rate_text(sum.rate), *eta = eta_text(sum.eta_s);
    json_t *conditions = json_array();
    json_array_append_new(conditions, condition(object, "Complete", verdict->complete,
                                                verdict->reason, verdict->message, now_s));
    json_array_append_new(conditions, condition(object, "Failed", verdict->failed, verdict->reason,
                                                verdict->failed ? verdict->message : "", now_s));
    json_t *status = json_pack(
        "{s:s, s:I, s:s, s:s, s:s, s:i, s:s, s:s, s:o, s:o}", "phase", verdict->phase,
        "observedGeneration", (json_int_t)object->warmup->generation, "run",
        field_text(before, "run"), "dataset", field_text(before, "dataset"), "warmNodes", warm,
        "percent", percent, "rate", rate, "eta", eta, "nodes", nodes, "conditions", conditions);
    if (json_object_get(before, "origin"))
        json_object_set(status, "origin", json_object_get(before, "origin"));
    if (time_of(before, "lastScheduleTime"))
        json_object_set_new(status, "lastScheduleTime",
                            time_json(time_of(before, "lastScheduleTime")));
    return status;
}

json_t *warmup_status_begin(const WarmupObject *object, const WarmupRun *run,
                            const DatasetOrigin *origin, const GPtrArray *nodes,
                            const char *message, gint64 now_s)
{
    const Verdict verdict = {.phase = "Warming", .reason = "Warming", .message = message};
    g_autofree char *name = warmup_run_name(object->warmup->uid, run);
    json_t *list = json_array();
    for (guint i = 0; i < nodes->len; i++) {
        json_auto_t *was = json_pack("{s:s}", "name", (const char *)nodes->pdata[i]);
        json_array_append_new(list, node_json(was, "Pending", NULL, "", now_s));
    }
    json_t *status = status_json(object, &verdict, list, now_s);
    json_object_set_new(status, "run", json_string(name));
    json_object_set_new(status, "dataset", json_string(origin->id));
    json_object_set_new(status, "origin", dataset_origin_json(origin));
    if (run->time_s)
        json_object_set_new(status, "lastScheduleTime", time_json(run->time_s));
    return status;
}

/* The message that the run began on fewer nodes than requested, while that is so. */
static const char *message_before(const json_t *before)
{
    const json_t *old;
    size_t i;
    json_array_foreach (json_object_get(before, "conditions"), i, old) {
        if (g_str_equal(field_text(old, "type"), "Complete"))
            return field_text(old, "message");
    }
    return "";
}

json_t *warmup_status_progress(const WarmupObject *object, GHashTable *reports, gint64 now_s)
{
    const json_t *before = object->status;
    json_t *list = json_array();
    const json_t *was;
    size_t i;
    json_array_foreach (json_object_get(before, "nodes"), i, was) {
        json_array_append_new(list, node_now(was, field_text(before, "run"),
                                             g_hash_table_lookup(reports, field_text(was, "name")),
                                             now_s));
    }
    const Sum sum = sum_up(list, now_s);
    g_autofree char *failed = failures(list, &sum);
    Verdict verdict = {.phase = "Warming", .reason = "Warming", .message = message_before(before)};
    if (sum.nodes > 0 && sum.succeeded == sum.nodes)
        verdict = (Verdict){
            .phase = "Warm", .reason = "Warm", .message = message_before(before), .complete = TRUE};
    else if (sum.ended == sum.nodes)
        verdict = (Verdict){
            .phase = "Failed", .reason = "NodesFailed", .message = failed, .failed = TRUE};
    return status_json(object, &verdict, list, now_s);
}

json_t *warmup_status_idle(const WarmupObject *object, WarmupIdle why, const char *message,
                           gint64 now_s)
{
    const Verdict verdicts[] = {
        [WARMUP_WAITING] = {.phase = "Pending", .reason = "Waiting", .message = message},
        [WARMUP_SUSPENDED] = {.phase = "Suspended", .reason = "Suspended", .message = message},
        [WARMUP_REFUSED] = {.phase = "Failed",
                            .reason = "SpecRefused",
                            .message = message,
                            .failed = TRUE},
        [WARMUP_LOST] = {.phase = "Failed",
                         .reason = "DatasetLost",
                         .message = message,
                         .failed = TRUE},
    };
    json_t *list = json_array();
    const json_t *was;
    size_t i;
    json_array_foreach (json_object_get(object->status, "nodes"), i, was) {
        const gboolean ended = why == WARMUP_WAITING || is_final(field_text(was, "state"));
        json_array_append_new(list, ended ? json_deep_copy(was)
                                          : node_json(was, "Cancelled", was, "", now_s));
    }
    return status_json(object, &verdicts[why], list, now_s);
}

GPtrArray *warmup_status_parts(const WarmupObject *object)
{
    const Warmup *warmup = object->warmup;
    const json_t *status = object->status;
    GPtrArray *names = g_ptr_array_new();
    WarmupDone done;
    const json_t *node;
    size_t i;
    warmup_done_read(warmup, status, &done);
    if (!done.under_way || done.run.generation != warmup->generation || warmup->suspend ||
        warmup->going)
        return names;
    json_array_foreach (json_object_get(status, "nodes"), i, node) {
        if (!is_final(field_text(node, "state")))
            g_ptr_array_add(names, (gpointer)field_text(node, "name"));
    }
    return names;
}

/* ---- writes ---- */

/* The status without the fields that need no write; `refresh` keeps rate and ETA. */
static json_t *what_counts(const json_t *status, gboolean refresh)
{
    static const char *const plain[] = {"bytes", "totalBytes", "bytesPerSecond", "etaSeconds"};
    json_t *copy = json_deep_copy(status), *node;
    size_t i;
    json_array_foreach (json_object_get(copy, "nodes"), i, node) {
        for (gsize k = 0; k < G_N_ELEMENTS(plain); k++)
            json_object_del(node, plain[k]);
    }
    if (!refresh) {
        json_object_del(copy, "rate");
        json_object_del(copy, "eta");
    }
    return copy;
}

gboolean warmup_status_is_worth(const json_t *before, const json_t *after, gint64 since_write_ms)
{
    const gint64 pause_ms =
        (gint64)json_array_size(json_object_get(after, "nodes")) * WARMUP_WRITE_NODE_MS;
    if (!g_str_equal(field_text(before, "phase"), field_text(after, "phase")))
        return TRUE;
    if (since_write_ms >= 0 && since_write_ms < MAX(WARMUP_WRITE_MS, pause_ms))
        return FALSE;
    const gboolean refresh = since_write_ms < 0 || since_write_ms >= WARMUP_REFRESH_MS;
    json_auto_t *old = what_counts(before, refresh), *new = what_counts(after, refresh);
    return !json_equal(old, new);
}
