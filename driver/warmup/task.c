/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/task.h"
#include "proto/wire.h"
#include "common/error.h"
#include "common/field.h"
#include "driver/kube/client.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/manifest.h"
#include "driver/node/hearthd/spec.h"
#include "driver/cluster/secret_dir.h"
#include "driver/warmup/status.h"

#define OPEN_MS 60000
#define ANSWER_MS 10000
#define LOOK_MS 500
#define FIRST_PAUSE_MS 1000
#define MOST_PAUSE_MS 30000

typedef struct Task {
    const WarmupOrder *order;
    const WarmupConfig *config;
    GCancellable *cancel;
    void (*on_progress)(const WarmupDoing *doing, void *data);
    void *data;
    char *volume; /* as hearthd knows it while it is open for this */
    HearthdLink *link;
    WarmupDoing doing;
    guint64 bytes_before; /* of the paths that are done */
    gint64 taken_us;      /* when its place was taken */
    gint64 listing_us;    /* for how much longer than a turn it may read the tree */
    gboolean over;        /* another namespace waits for the place */
} Task;

static gboolean is_cancelled(const Task *t)
{
    return g_cancellable_is_cancelled(t->cancel);
}

static void report_state(Task *t, const char *state, const char *message)
{
    g_free(t->doing.message);
    t->doing.message = g_strdup(message);
    t->doing.state = state;
    t->on_progress(&t->doing, t->data);
}

/* ---- opening ---- */

/* As for a mount of it; the caller's, with node_spec_free(). */
static json_t *spec_of(const Task *t, GError **error)
{
    const DatasetOrigin *origin = &t->order->origin;
    if (!t->config->secret_dir) {
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "CacheWarmups are off: the node plugin has no Ceph user for them; set "
                    "warmth.secretName in the chart, or give hearth-csi --secret-dir");
        return NULL;
    }
    g_autoptr(Secrets) own = secret_dir_read(t->config->secret_dir, origin->cluster_id, error);
    if (!own)
        return NULL;
    g_autoptr(GHashTable) secrets = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_insert(secrets, (gpointer) "userID", own->user);
    g_hash_table_insert(secrets, (gpointer) "userKey", own->key);
    const VolumeAttributes attributes = {.volume = t->volume,
                                         .type = VOLUME_CEPHFS,
                                         .cluster_id = origin->cluster_id,
                                         .root_path = origin->root_path,
                                         .fs_name = *origin->fs_name ? origin->fs_name : NULL};
    const NodeSpecSource source = {.attributes = &attributes,
                                   .secrets = secrets,
                                   .config_path = t->config->cluster_config,
                                   .crush_location = t->config->crush_location,
                                   .read_only = TRUE};
    return node_spec_new(&source, error);
}

static gboolean open_volume(Task *t, GError **error)
{
    gboolean attached;
    node_spec_auto_t *spec = spec_of(t, error);
    if (spec)
        t->link =
            hearthd_connect_and_open(t->config->hearthd_socket, spec, OPEN_MS, &attached, error);
    return t->link != NULL;
}

/* hearthd closes volumes that are not attached when the connection ends. */
static void close_volume(Task *t)
{
    g_clear_pointer(&t->link, hearthd_close);
}

/* ---- fetching ---- */

static gboolean is_over(Task *t, gint64 more_us)
{
    const WarmupConfig *c = t->config;
    t->over =
        c->places && warmup_places_over(c->places, t->order->namespace, t->taken_us + more_us);
    return t->over;
}

/* Reading the tree begins again in its next turn, which is twice as long, so that it comes to an
 * end. */
static gboolean is_over_listing(Task *t)
{
    if (!is_over(t, t->listing_us))
        return FALSE;
    t->listing_us = g_get_monotonic_time() - t->taken_us;
    return TRUE;
}

/* Also TRUE when it was cancelled, or its turn is over. */
static gboolean await_manifest(Task *t, GError **error)
{
    for (;;) {
        g_auto(HearthdManifest) manifest = {.ready = FALSE};
        if (!hearthd_manifest(t->link, t->volume, LOOK_MS, &manifest, error))
            return FALSE;
        if (t->order->paths->len == 0)
            t->doing.total = manifest.bytes;
        if (manifest.ready || is_cancelled(t))
            return TRUE;
        g_autofree char *message =
            g_strdup_printf("reading its tree: %" G_GUINT64_FORMAT " files so far", manifest.files);
        t->doing.percent = 0;
        report_state(t, "Running", message);
        if (is_over_listing(t))
            return TRUE;
    }
}

static void take_progress(Task *t, const json_t *job, guint index)
{
    const guint64 done = field_count(job, "bytesDone"), held = field_count(job, "bytesHeld"),
                  total = field_count(job, "bytesTotal"), ms = field_count(job, "elapsedMs");
    const guint paths = MAX(t->order->paths->len, 1);
    const guint64 of_hundred = total ? MIN(100 * done / total, 100) : 0;
    t->doing.bytes = t->bytes_before + done;
    t->doing.total = MAX(paths > 1 ? t->bytes_before + total : total, t->doing.bytes);
    /* Bytes that were there before were not fetched, and say nothing about the rate. */
    t->doing.bytes_per_second = ms && done > held ? (done - held) * 1000 / ms : 0;
    t->doing.percent = (int)((100 * index + of_hundred) / paths);
}

static gboolean came_well(const json_t *job, GError **error)
{
    const char *state = field_text(job, "state"), *why = field_text(job, "error");
    const guint64 failed = field_count(job, "filesFailed");
    if (g_str_equal(state, "cancelled"))
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, "its job was cancelled on the node");
    else if (!g_str_equal(state, "done"))
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s", why);
    else if (failed)
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "%" G_GUINT64_FORMAT " files could not be fetched; the first: %s", failed, why);
    else
        return TRUE;
    return FALSE;
}

/* Also TRUE when it was cancelled, or its turn is over. */
static gboolean fetch(Task *t, guint index, const char *path, GError **error)
{
    guint64 id;
    const HearthdWarm warm = {
        .volume = t->volume, .path = path, .bytes_per_second = t->order->rate};
    if (!hearthd_warm(t->link, &warm, OPEN_MS, &id, error))
        return FALSE;
    for (;;) {
        json_auto_t *job = hearthd_job(t->link, id, ANSWER_MS, error);
        if (!job)
            return FALSE;
        take_progress(t, job, index);
        const gboolean running = g_str_equal(field_text(job, "state"), "running");
        const gboolean good = running || came_well(job, error);
        if (!running) {
            t->bytes_before = t->doing.bytes;
            return good;
        }
        report_state(t, "Running", NULL);
        if (!kube_pause(LOOK_MS, t->cancel, NULL) || is_over(t, 0))
            return hearthd_cancel(t->link, id, ANSWER_MS, error);
    }
}

static gboolean attempt(Task *t, GError **error)
{
    const GPtrArray *paths = t->order->paths;
    t->bytes_before = 0;
    gboolean good = open_volume(t, error) && await_manifest(t, error);
    if (good && paths->len == 0 && !is_cancelled(t) && !t->over)
        good = fetch(t, 0, "", error);
    for (guint i = 0; good && i < paths->len && !is_cancelled(t) && !t->over; i++)
        good = fetch(t, i, paths->pdata[i], error);
    close_volume(t);
    return good;
}

/* ---- again and again ---- */

/* An attempt in a place of its own. FALSE with an error, or without one when it was cancelled. */
static gboolean attempt_in_place(Task *t, GError **error)
{
    WarmupPlaces *places = t->config->places;
    if (places && !warmup_places_take(places, t->order->namespace, t->cancel))
        return FALSE;
    t->taken_us = g_get_monotonic_time();
    /* What made the attempt before fail is told until this one gets further. */
    if (!t->doing.state || t->over)
        report_state(t, "Running", NULL);
    t->over = FALSE;
    const gboolean good = attempt(t, error);
    if (places)
        warmup_places_leave(places, t->order->namespace);
    return good;
}

static gboolean may_pass(const GError *error)
{
    return g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE) ||
           g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED) ||
           g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED);
}

static const char *run_to_the_end(Task *t, GError **error)
{
    const gint64 patience_s = t->config->patience_s ? t->config->patience_s : WARMUP_PATIENCE_S;
    gint64 pause_ms = t->config->first_pause_ms ? t->config->first_pause_ms : FIRST_PAUSE_MS;
    gint64 failing_since_us = 0;
    for (;;) {
        g_autoptr(GError) cause = NULL;
        const guint64 bytes = t->doing.bytes;
        const gboolean good = attempt_in_place(t, &cause);
        const gint64 now_us = g_get_monotonic_time();
        if (is_cancelled(t))
            return "Cancelled";
        if (good && !t->over)
            return "Succeeded";
        if (good) {
            t->doing.bytes_per_second = 0;
            report_state(t, "Running", "orders of other namespaces have their turn");
            failing_since_us = 0;
            continue;
        }
        /* What got further was not in vain. */
        if (!failing_since_us || t->doing.bytes > bytes)
            failing_since_us = now_us;
        if (!may_pass(cause) || now_us - failing_since_us > patience_s * G_USEC_PER_SEC) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return "Failed";
        }
        t->doing.bytes_per_second = 0;
        report_state(t, "Running", cause->message);
        kube_pause(pause_ms, t->cancel, NULL);
        pause_ms = MIN(pause_ms * 2, MOST_PAUSE_MS);
    }
}

static char *volume_of(const char *run)
{
    g_autofree char *plain = g_strdelimit(g_strdup(run), ".", '-');
    return g_strconcat(WIRE_WARMUP_PREFIX, plain, NULL);
}

void warmup_task_run(const WarmupOrder *order, const WarmupConfig *config, GCancellable *cancel,
                     void (*on_progress)(const WarmupDoing *doing, void *data), void *data)
{
    Task t = {.order = order,
              .config = config,
              .cancel = cancel,
              .on_progress = on_progress,
              .data = data};
    g_autoptr(GError) error = NULL;
    t.volume = volume_of(order->run);
    t.doing.percent = 0;
    const char *state = run_to_the_end(&t, &error);
    t.doing.bytes_per_second = 0;
    report_state(&t, state, error ? error->message : NULL);
    g_free(t.doing.message);
    g_free(t.volume);
}
