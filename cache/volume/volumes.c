/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a volume: open, attach, detach, and what comes between them.
 *
 * One lock guards the table and the fields of every volume; it is never held across a call to an
 * origin, to the store or to session_start() and session_stop(). A reservation of the volume is
 * what makes those calls one at a time.
 *
 * Invariants, under the lock:
 * 1. A volume is freed only by the thread that reserved it, when it has no uses, after it left the
 *    table.
 * 2. content, server and spec change only while the volume is reserved (and under the lock, for
 *    readers).
 * 3. Once closing is set no use is granted until the origin is gone.
 */
#include "cache/volume/internal.h"
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include "cache/origin/aside.h"
#include "cache/origin/deferred.h"
#include "cache/volume/own_names.h"
#include "common/autofd.h"
#include "common/monotonic.h"
#include "proto/wire.h"

#define CLOSE_TIMEOUT_SEC 60

/* ---- open, attach, detach ---- */

static gboolean still_waiting(const Volume *v, GError **error)
{
    return wire_fail(error, WIRE_ERROR_UNAVAILABLE,
                     "volume %s: Ceph does not answer a request that is still under way; it is "
                     "no longer served, detach it again to disconnect",
                     v->id);
}

static void end_patience(const Volume *v)
{
    if (v->content == CONTENT_TREE && origin_is_deferred(v->origin))
        origin_deferred_be_patient(v->origin, 0);
}

/*
 * Stops serving a reserved volume and disconnects it. FALSE: a request still waits for Ceph; the
 * volume stays, closing, and another detach goes on from there.
 */
static gboolean close_reserved(Volumes *vs, Volume *v, GError **error)
{
    pthread_mutex_lock(&vs->lock);
    atomic_store(&v->closing, TRUE);
    const gboolean leaving = vs->leaving;
    pthread_mutex_unlock(&vs->lock);
    /* What is left to the next hearthd must not fail first. */
    if (!leaving)
        end_patience(v);
    if (!volumes_stop_serving(vs, v, CLOSE_TIMEOUT_SEC * 1000))
        return still_waiting(v, error);
    end_patience(v);
    if (!volume_is_connected(v))
        return TRUE;

    gint64 deadline = g_get_monotonic_time() + CLOSE_TIMEOUT_SEC * G_TIME_SPAN_SECOND;
    pthread_mutex_lock(&vs->lock);
    while (v->uses && g_get_monotonic_time() < deadline) {
        /* Again each time: a job may have begun one more fill before it saw `closing`. */
        pthread_mutex_unlock(&vs->lock);
        if (vs->store)
            store_cancel_fills(vs->store, v->origin);
        pthread_mutex_lock(&vs->lock);
        struct timespec soon = deadline_after_ms(100);
        if (v->uses)
            pthread_cond_timedwait(&vs->changed, &vs->lock, &soon);
    }
    gboolean free_to_go = v->uses == 0;
    pthread_mutex_unlock(&vs->lock);
    /* A claim that is a dataset was opened and never attached: its mount is native. */
    g_autofree char *claimed = v->dataset && v->opener ? g_strdup(dataset_id(v->dataset)) : NULL;
    if (!free_to_go || !volumes_leave_dataset(vs, v, CLOSE_TIMEOUT_SEC * 1000))
        return still_waiting(v, error);
    if (claimed)
        volumes_note_claim(vs, v, claimed);
    volumes_disconnect(vs, v, claimed);
    return TRUE;
}

static void set_spec(Volumes *vs, Volume *v, VolumeSpec *spec)
{
    pthread_mutex_lock(&vs->lock);
    VolumeSpec *old = v->spec;
    v->spec = spec;
    atomic_store(&v->quota_bytes, spec->quota_bytes);
    if (v->server == SERVER_SESSION)
        session_set_group(v->session, spec->mount_group >= 0, (gid_t)spec->mount_group);
    pthread_mutex_unlock(&vs->lock);
    spec_free(old);
}

static gboolean connect_reserved(Volumes *vs, Volume *v, VolumeSpec *spec, GError **error)
{
    /* Reports show the spec as soon as the volume is connected. */
    set_spec(vs, v, spec);
    if (volumes_connect(vs, v, spec, error))
        return TRUE;
    pthread_mutex_lock(&vs->lock);
    v->spec = NULL; /* the caller's again */
    pthread_mutex_unlock(&vs->lock);
    return FALSE;
}

/* Uses a volume that is open already; FALSE with *error NULL: it is to be opened. */
static gboolean reuse_reserved(Volumes *vs, Volume *v, VolumeSpec **spec, GError **error)
{
    if (!volume_is_connected(v))
        return FALSE;
    if (atomic_load(&v->ended) || atomic_load(&v->closing)) {
        close_reserved(vs, v, error);
        return FALSE;
    }
    g_autofree char *difference = spec_difference(v->spec, *spec);
    if (difference)
        return wire_fail(error, WIRE_ERROR_ALREADY_EXISTS,
                         "volume %s is open with another %s; unmount and detach it first", v->id,
                         difference);
    const gboolean same_key = spec_same_authority(v->spec, *spec);
    if (!same_key && !volume_is_served(v)) {
        close_reserved(vs, v, error);
        return FALSE;
    }
    /* A served volume keeps its connection. */
    if (!same_key && !volumes_try(vs, *spec, error))
        return FALSE;
    if ((*spec)->kind->is_ceph && v->content == CONTENT_TREE)
        origin_reach(v->origin, (*spec)->monitors, (*spec)->user_key, (*spec)->timeout_sec);
    set_spec(vs, v, g_steal_pointer(spec));
    return TRUE;
}

gboolean volumes_open(Volumes *vs, VolumeSpec *given, uint64_t connection, gboolean *attached,
                      GError **error)
{
    g_autoptr(VolumeSpec) spec = given;
    Volume *v;
    if (!volumes_reserve(vs, spec->volume, TRUE, &v, error))
        return FALSE;
    GError *failed = NULL;
    gboolean open = reuse_reserved(vs, v, &spec, &failed);
    if (!open && !failed) {
        open = connect_reserved(vs, v, spec, &failed);
        if (open)
            g_steal_pointer(&spec);
    }
    if (open) {
        pthread_mutex_lock(&vs->lock);
        g_hash_table_remove(vs->refused, v->id);
        pthread_mutex_unlock(&vs->lock);
        *attached = volume_is_served(v);
        if (!*attached) {
            pthread_mutex_lock(&vs->lock);
            v->opener = connection;
            pthread_mutex_unlock(&vs->lock);
        }
    }
    volumes_release(vs, v);
    if (failed)
        g_propagate_prefixed_error(error, failed, "open: ");
    return open;
}

/* On a thread of the server, which may hold its locks: so it takes no lock of the volumes. */
static void on_ended(void *data)
{
    Volume *v = data;
    atomic_store(&v->ended, TRUE);
}

static gboolean attach_reserved(Volumes *vs, Volume *v, const VolumeMount *mount, GError **error)
{
    hearth_autofd int fd = mount->fuse_fd;
    if (atomic_load(&v->closing))
        return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                         "volume %s is being detached; open it again first", v->id);
    if (volume_is_served(v) && !atomic_load(&v->ended))
        return wire_fail(error, WIRE_ERROR_ALREADY_EXISTS,
                         "volume %s is attached to another mount; unmount and detach it first",
                         v->id);
    if (!mount->restored)
        hearth_close_fd(&v->left_fd);
    else if (v->left_fd < 0)
        return wire_fail(error, WIRE_ERROR_ABORTED,
                         "volume %s: \"restore\" was for another attach; begin again", v->id);
    if (mount->note && !mount->fill_layer)
        return wire_fail(error, WIRE_ERROR_UNIMPLEMENTED,
                         "volume %s: only the fill layer of a dataset can be taken over", v->id);
    if (mount->fill_layer && !volumes_ready_manifest(vs, v))
        return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                         "volume %s: its manifest is not ready; op \"manifest\" makes it", v->id);
    if (!own_names_check_serving(v->id, mount->fill_layer ? dataset_id(v->dataset) : NULL, error))
        return FALSE;
    if (!volumes_stop_serving(vs, v, CLOSE_TIMEOUT_SEC * 1000))
        return still_waiting(v, error);
    atomic_store(&v->ended, FALSE);
    hearth_steal_fd(&fd);
    if (!volumes_serve(vs, v, mount, on_ended, error))
        return FALSE;
    pthread_mutex_lock(&vs->lock);
    v->opener = 0;
    pthread_mutex_unlock(&vs->lock);
    return TRUE;
}

gboolean volumes_wants_warm(Volumes *vs, const char *id)
{
    pthread_mutex_lock(&vs->lock);
    const Volume *v = g_hash_table_lookup(vs->by_id, id);
    gboolean wants = v && v->spec && v->spec->warm && v->cached;
    pthread_mutex_unlock(&vs->lock);
    return wants;
}

gboolean volumes_attach(Volumes *vs, const char *id, const VolumeMount *mount, GError **error)
{
    Volume *v;
    if (!volumes_reserve(vs, id, FALSE, &v, error)) {
        close(mount->fuse_fd);
        return FALSE;
    }
    if (!v) {
        close(mount->fuse_fd);
        return wire_fail(error, WIRE_ERROR_NOT_FOUND,
                         "volume %s is not open; open it on this connection first", id);
    }
    gboolean attached = attach_reserved(vs, v, mount, error);
    volumes_release(vs, v);
    return attached;
}

/* Why a volume cannot have a manifest; NULL: it can. */
static const char *why_no_manifest(const Volumes *vs, const Volume *v)
{
    if (v->content == CONTENT_IMAGE)
        return "it is an image, not a tree of files";
    if (atomic_load(&v->closing))
        return "it is being detached";
    if (!v->cached)
        return "its cache is off (parameter cache)";
    if (!vs->store || !vs->datasets)
        return "hearthd runs without a cache";
    return NULL;
}

static gboolean join_reserved(Volumes *vs, Volume *v, GError **error)
{
    if (v->dataset)
        return TRUE;
    const char *why = why_no_manifest(vs, v);
    if (why)
        return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION, "volume %s: %s", v->id, why);
    gboolean immutable = v->spec->kind->immutable_if_read_only && v->spec->read_only;
    Dataset *dataset = datasets_join(vs->datasets, v->origin, immutable, error);
    if (!dataset)
        g_prefix_error(error, "volume %s: ", v->id);
    pthread_mutex_lock(&vs->lock);
    v->dataset = dataset;
    pthread_mutex_unlock(&vs->lock);
    return dataset != NULL;
}

/* For the time when Ceph does not answer; the volume may be closed by now. */
static void note_dataset(Volumes *vs, const char *id, const Dataset *d)
{
    Volume *v;
    if (!volumes_reserve(vs, id, FALSE, &v, NULL) || !v)
        return;
    if (v->content == CONTENT_TREE && v->dataset == d)
        offline_note(vs->offline, v->spec, dataset_id(d));
    volumes_release(vs, v);
}

gboolean volumes_manifest(Volumes *vs, const char *id, gint64 wait_ms, Dataset **dataset,
                          DatasetReport *report, GError **error)
{
    Volume *v;
    if (!volumes_reserve(vs, id, FALSE, &v, error))
        return FALSE;
    if (!v)
        return wire_fail(error, WIRE_ERROR_NOT_FOUND,
                         "volume %s is not open; open it on this connection first", id);
    Dataset *d = join_reserved(vs, v, error) ? dataset_ref(v->dataset) : NULL;
    volumes_release(vs, v);
    if (!d)
        return FALSE;
    /* The volume is not reserved meanwhile: a detach ends the wait. */
    if (dataset_wait(d, wait_ms, report, error) &&
        (!report->ready || volumes_check_rights(vs, id, d, error))) {
        if (report->ready)
            note_dataset(vs, id, d);
        *dataset = d;
        return TRUE;
    }
    dataset_unref(d);
    return FALSE;
}

gboolean volumes_detach(Volumes *vs, const char *id, GError **error)
{
    Volume *v;
    if (!volumes_reserve(vs, id, FALSE, &v, error))
        return FALSE;
    if (!v)
        return TRUE;
    gboolean closed = close_reserved(vs, v, error);
    volumes_release(vs, v);
    return closed;
}

static gboolean opened_by(const Volume *v, const void *data)
{
    return v->opener == *(const uint64_t *)data;
}

void volumes_connection_ended(Volumes *vs, uint64_t connection)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, opened_by, &connection);
    for (guint i = 0; i < ids->len; i++) {
        Volume *v;
        g_autoptr(GError) error = NULL;
        if (!volumes_reserve(vs, ids->pdata[i], FALSE, &v, &error)) {
            g_warning("volume %s stays open: %s", (char *)ids->pdata[i], error->message);
            continue;
        }
        if (!v)
            continue;
        if (v->opener == connection && !close_reserved(vs, v, &error))
            g_warning("%s", error->message);
        volumes_release(vs, v);
    }
}

Volumes *volumes_new(const VolumesCaches *caches, const Incarnation *incarnation)
{
    Volumes *vs = g_new0(Volumes, 1);
    vs->store = caches->store;
    vs->datasets = caches->datasets;
    vs->images = caches->images;
    vs->offline = offline_new(caches->datasets);
    vs->faith = faith_new();
    vs->claims = json_array();
    vs->refused = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    vs->incarnation = incarnation;
    pthread_mutex_init(&vs->lock, NULL);
    cond_init_monotonic(&vs->changed);
    vs->by_id = g_hash_table_new(g_str_hash, g_str_equal);
    int failed = pthread_create(&vs->upkeep, NULL, volumes_run_upkeep, vs);
    if (failed)
        g_error("cannot start a thread: %s", g_strerror(failed));
    return vs;
}

/* ---- the end ---- */

/* What volumes_detach_all() waits for. */
typedef struct Ending {
    Volumes *vs;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t ended;
    unsigned left; /* volumes, and the upkeep */
    unsigned refs; /* theirs, and the caller's */
} Ending;

static void ending_unref_locked(Ending *e)
{
    const gboolean last = --e->refs == 0;
    pthread_mutex_unlock(&e->lock);
    if (!last)
        return;
    pthread_cond_destroy(&e->ended);
    pthread_mutex_destroy(&e->lock);
    g_free(e);
}

static void end_upkeep(Volumes *vs)
{
    pthread_mutex_lock(&vs->lock);
    const gboolean ended = vs->stopping;
    vs->stopping = TRUE;
    pthread_cond_broadcast(&vs->changed);
    pthread_mutex_unlock(&vs->lock);
    if (!ended)
        pthread_join(vs->upkeep, NULL);
}

typedef struct EndingOne {
    Ending *e;
    char *id; /* NULL: the upkeep */
} EndingOne;

static void end_one(void *data)
{
    g_autofree EndingOne *one = data;
    g_autofree char *id = one->id;
    Ending *e = one->e;
    g_autoptr(GError) error = NULL;
    if (!id)
        end_upkeep(e->vs);
    else if (!volumes_detach(e->vs, id, &error))
        g_warning("%s", error->message);
    pthread_mutex_lock(&e->lock);
    e->left--;
    pthread_cond_signal(&e->ended);
    ending_unref_locked(e);
}

static void begin_end(Ending *e, const char *id)
{
    EndingOne *one = g_new(EndingOne, 1);
    *one = (EndingOne){e, g_strdup(id)};
    aside_begin(end_one, one);
}

static void tell_left(Volumes *vs)
{
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, volumes_is_open, NULL);
    g_ptr_array_add(ids, NULL);
    g_autofree char *list = g_strjoinv(", ", (char **)ids->pdata);
    if (ids->len > 1)
        g_warning(
            "stopping before these volumes have ended: what was written to them and not synced "
            "may be lost: %s",
            list);
}

static gboolean is_any(const Volume *v, const void *data)
{
    (void)v, (void)data;
    return TRUE;
}

gboolean volumes_detach_all(Volumes *vs, gint64 timeout_ms)
{
    Ending *e = g_new0(Ending, 1);
    pthread_mutex_init(&e->lock, NULL);
    cond_init_monotonic(&e->ended);
    pthread_mutex_lock(&vs->lock);
    vs->leaving = TRUE;
    pthread_mutex_unlock(&vs->lock);
    /* Also those that are only now being opened. */
    g_autoptr(GPtrArray) ids = volumes_collect_ids(vs, is_any, NULL);
    e->vs = vs;
    e->left = ids->len + 1;
    e->refs = e->left + 1;
    begin_end(e, NULL);
    for (guint i = 0; i < ids->len; i++)
        begin_end(e, ids->pdata[i]);
    const struct timespec until = deadline_after_ms((uint64_t)timeout_ms);
    int r = 0;
    pthread_mutex_lock(&e->lock);
    while (e->left && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&e->ended, &e->lock, &until);
    const gboolean all = e->left == 0;
    ending_unref_locked(e);
    if (!all)
        tell_left(vs);
    return all && g_hash_table_size(vs->by_id) == 0;
}

void volumes_free(Volumes *vs)
{
    if (!vs)
        return;
    /* A volume that could not be detached ends with the process. */
    if (!volumes_detach_all(vs, G_MAXINT))
        return;
    g_hash_table_unref(vs->by_id);
    g_hash_table_unref(vs->refused);
    g_clear_pointer(&vs->claims, json_decref);
    faith_free(vs->faith);
    offline_free(vs->offline);
    pthread_cond_destroy(&vs->changed);
    pthread_mutex_destroy(&vs->lock);
    g_free(vs);
}
