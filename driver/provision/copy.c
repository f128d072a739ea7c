/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volumes that start as a copy. Ceph copies in the background, from a snapshot: either the one that
 * the request names, or one that is made of the source volume for the copy. The name of the latter
 * is a function of the target's, so that any later call finds it. The order, each step repeatable:
 *
 *     snapshot of the source volume → copy → (until it is complete) → size → remove the snapshot
 *
 * The source may be at another location of the cluster, another pool say: its snapshot and its
 * record are there, the copy and its record at the target's. The snapshot's name is then the
 * target's whole ID, since each location may have a volume of the name.
 *
 * A call waits for a small copy and answers ABORTED for a large one. A copy that failed is removed
 * with all that was made for it; the next call begins again, under another name where Ceph's
 * removal may come late (moved.c).
 */
#include <string.h>
#include "driver/provision/internal.h"

#define SNAPSHOT_PREFIX "hearth-clone-"
/*
 * How long a call waits, and the pause between two checks. Ceph does not signal a complete copy; an
 * empty one mostly took 0.3 s, and sometimes 5 s (Ceph 16), until the cloner woke up.
 */
#define WAIT_US (20 * G_USEC_PER_SEC)
#define CHECK_FIRST_US (20 * 1000)
#define CHECK_MAX_US (400 * 1000)

char *copy_snapshot_name(const VolumeId *source, const VolumeId *target)
{
    if (volume_id_same_location_within(source, target))
        return g_strconcat(SNAPSHOT_PREFIX, target->name, NULL);
    g_autofree char *id = volume_id_encode(target, NULL);
    return g_strconcat(SNAPSHOT_PREFIX, id, NULL);
}

VolumeId *copy_snapshot_target(const VolumeId *source, const char *snapshot)
{
    if (!g_str_has_prefix(snapshot, SNAPSHOT_PREFIX))
        return NULL;
    const char *name = snapshot + strlen(SNAPSHOT_PREFIX);
    VolumeId *target = volume_id_decode(name, NULL);
    if (!target) {
        target = volume_id_copy(source);
        g_free(target->name);
        target->name = g_strdup(name);
        g_clear_pointer(&target->handle, g_free); /* copies are ours, also those of ceph-csi's */
        target->adopted = FALSE;
    }
    return target;
}

gboolean copy_is_of(const VolumeRecord *record, const VolumeId *source)
{
    g_autoptr(VolumeId) of = record && !record->moved ? work_source_volume(record) : NULL;
    return of && strcmp(of->name, source->name) == 0 && volume_id_same_location_within(of, source);
}

gboolean copy_is_out_of_reach(const Work *at, const GError *error)
{
    return !at->borrowed && (work_is_not_found(error) ||
                             g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_PERMISSION_DENIED));
}

/* The wait before the next check. */
typedef struct Patience {
    gint64 until_us, step_us;
} Patience;

static Patience patience_new(const Work *w)
{
    gint64 now = g_get_monotonic_time();
    return (Patience){MIN(w->deadline_us, now + WAIT_US), CHECK_FIRST_US};
}

/* FALSE when there is no time for another check. */
static gboolean patience_wait(Patience *p)
{
    if (g_get_monotonic_time() + p->step_us > p->until_us)
        return FALSE;
    g_usleep((gulong)p->step_us);
    p->step_us = MIN(p->step_us * 2, CHECK_MAX_US);
    return TRUE;
}

static gboolean source_missing(GError **error, const char *source)
{
    return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "the source %s does not exist", source);
}

static gboolean check_can_copy(const Work *w, GError **error)
{
    if (w->ops->volume_copy)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume_content_source: type=%s has no snapshots and clones",
                       volume_type_name(w->id->type));
}

static gboolean open_source(const Work *w, const ProvisionRequest *r, Work *source, GError **error)
{
    return work_open_beside(w, r->from_snapshot ? r->from_snapshot : r->from_volume, source, error);
}

gboolean copy_source_size(Work *w, const ProvisionRequest *r, gint64 *bytes, GError **error)
{
    if (!check_can_copy(w, error))
        return FALSE;
    work_auto Work source = {0};
    if (!open_source(w, r, &source, error))
        return FALSE;
    if (r->from_snapshot) {
        g_autoptr(SnapshotRecord) snapshot = NULL;
        if (!adopted_or_own_snapshot(&source, r->from_snapshot, &snapshot, error))
            return FALSE;
        if (!snapshot)
            return source_missing(error, r->source);
        g_autoptr(VolumeId) of = provision_snapshot_source(r->from_snapshot, snapshot);
        *bytes = snapshot->bytes;
        return w->ops->snapshot_look(source.session, of, r->from_snapshot->name, w->deadline_us,
                                     error);
    }
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    if (!work_look(&source, &record, &volume, error))
        return FALSE;
    *bytes = volume->bytes ? volume->bytes : record->bytes;
    return TRUE;
}

/* Starts the copy in Ceph. */
static gboolean start_copy(Work *w, const ProvisionRequest *r, GError **error)
{
    const BackendOps *ops = w->ops;
    work_auto Work source = {0};
    if (!open_source(w, r, &source, error))
        return FALSE;
    if (r->from_snapshot) {
        g_autoptr(SnapshotRecord) snapshot = NULL;
        if (!adopted_or_own_snapshot(&source, r->from_snapshot, &snapshot, error))
            return FALSE;
        if (!snapshot)
            return source_missing(error, r->source);
        g_autoptr(VolumeId) of = provision_snapshot_source(r->from_snapshot, snapshot);
        const BackendSnapshot from = {of, r->from_snapshot->name};
        return ops->volume_copy(w->session, w->id, r->params, &from, w->deadline_us, error);
    }
    g_autoptr(VolumeRecord) record = NULL;
    if (!work_find_record(&source, &record, error))
        return FALSE;
    if (record && record->backing) {
        /* A shallow volume: its own snapshot is copied. */
        VolumeId of = *r->from_volume;
        of.group = record->backing->group;
        of.name = record->backing->name;
        const BackendSnapshot shown = {&of, record->backing->snapshot};
        return ops->volume_copy(w->session, w->id, r->params, &shown, w->deadline_us, error);
    }
    g_autofree char *name = copy_snapshot_name(r->from_volume, w->id);
    const BackendSnapshot made = {r->from_volume, name};
    return ops->snapshot_create(source.session, r->from_volume, name, w->deadline_us, error) &&
           ops->volume_copy(w->session, w->id, r->params, &made, w->deadline_us, error);
}

gboolean copy_clean(Work *w, const VolumeRecord *record, GError **error)
{
    g_autoptr(VolumeId) source = work_source_volume(record);
    if (!source)
        return TRUE;
    g_autofree char *name = copy_snapshot_name(source, w->id);
    Patience patience = patience_new(w);
    work_auto Work at = {0};
    for (;;) {
        g_autoptr(GError) cause = NULL;
        if ((at.session || work_open_beside(w, source, &at, &cause)) &&
            w->ops->snapshot_remove(at.session, source, name, w->deadline_us, &cause))
            return TRUE;
        /* An audit of that location, or the deletion of the source, removes it. */
        if (copy_is_out_of_reach(&at, cause))
            return TRUE;
        /* Ceph still holds the snapshot for a moment after the copy has ended. */
        if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION)) {
            if (patience_wait(&patience))
                continue;
            hearth_fail(error, HEARTH_ERROR_ABORTED, "%s", cause->message);
        } else {
            g_propagate_error(error, g_steal_pointer(&cause));
        }
        return FALSE;
    }
}

/* Removes a copy that cannot become complete. *spent: its record is not needed any more. */
static gboolean give_up_copy(Work *w, const VolumeRecord *record, gboolean *spent, GError **error)
{
    gboolean moves = w->ops->removal_may_be_late;
    if ((moves && !moved_begin(w, record, error)) ||
        !w->ops->volume_remove(w->session, w->id, FALSE, w->deadline_us, error) ||
        !copy_clean(w, record, error))
        return FALSE;
    *spent = !moves || record->first;
    return TRUE;
}

/* Removes a copy that failed, and sets the error. Always FALSE. */
static gboolean remove_failed_copy(Work *w, const VolumeRecord *record, const BackendVolume *failed,
                                   gboolean *spent, GError **error)
{
    if (!give_up_copy(w, record, spent, error))
        return FALSE;
    if (!failed->failure)
        return hearth_fail(error, HEARTH_ERROR_ABORTED,
                           "copying %s to volume %s has ended half way; ask again, and it begins "
                           "again",
                           record->source, w->id->name);
    return hearth_fail(
        error, failed->no_space ? HEARTH_ERROR_RESOURCE_EXHAUSTED : HEARTH_ERROR_INTERNAL,
        "copying %s to volume %s failed: %s; what was copied is removed, and the next "
        "attempt begins again",
        record->source, w->id->name, failed->failure);
}

/* Grows a complete copy, which has its source's size, to the recorded size, and removes the
 * snapshot it was made through. */
static gboolean end_copy(Work *w, const VolumeRecord *record, BackendVolume **volume,
                         GError **error)
{
    if ((*volume)->bytes < record->bytes) {
        if (!w->ops->volume_resize(w->session, w->id, record->bytes, w->deadline_us, error))
            return FALSE;
        g_clear_pointer(volume, backend_volume_free);
        *volume = w->ops->volume_look(w->session, w->id, w->deadline_us, error);
    }
    return *volume && copy_clean(w, record, error);
}

/* When the request's name leads elsewhere by now: the copy that this call began, and perhaps its
 * record, are removed. ABORTED. */
static gboolean check_is_here(Work *w, const VolumeRecord *record, GError **error)
{
    gboolean here;
    if (!moved_is_here(w, record, &here, error) || here)
        return here;
    return w->ops->volume_remove(w->session, w->id, FALSE, w->deadline_us, error) &&
           copy_clean(w, record, error) && (!record->first || work_remove_record(w, error)) &&
           moved_fail(w->id->name, error);
}

/* Whether the source is gone, or the pool is wrong, so that there is nothing to continue. The
 * snapshot is gone, too, when another controller has made the volume meanwhile. */
static gboolean is_hopeless(Work *w, const VolumeRecord *record, const GError *cause)
{
    g_autoptr(BackendVolume) volume = NULL;
    return (work_is_not_found(cause) ||
            g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT)) &&
           work_find_volume(w, &volume, NULL) && !volume && check_is_here(w, record, NULL);
}

gboolean copy_finish(Work *w, const ProvisionRequest *r, const VolumeRecord *record,
                     BackendVolume **volume, gboolean *spent, GError **error)
{
    if (!check_can_copy(w, error))
        return FALSE;
    Patience patience = patience_new(w);
    gboolean resumed = FALSE, started = FALSE;
    for (;;) {
        if (*volume && !(*volume)->incomplete)
            return (!started || check_is_here(w, record, error)) &&
                   end_copy(w, record, volume, error);
        /* A mgr that died may have left half of it, which cannot be continued. */
        gboolean is_half = *volume && !(*volume)->copying;
        if (is_half && ((*volume)->failure || w->ops->removal_may_be_late))
            return remove_failed_copy(w, record, *volume, spent, error);
        if (is_half) {
            if (!w->ops->volume_remove(w->session, w->id, FALSE, w->deadline_us, error))
                return FALSE;
            g_clear_pointer(volume, backend_volume_free);
        }
        if (!*volume) {
            GError *cause = NULL;
            if (!start_copy(w, r, &cause)) {
                *spent = is_hopeless(w, record, cause) && copy_clean(w, record, NULL) &&
                         moved_forget(w, record, NULL);
                g_propagate_error(error, cause);
                return FALSE;
            }
            started = TRUE;
        } else if ((*volume)->resume && !resumed) {
            if (!w->ops->volume_copy(w->session, w->id, r->params, NULL, w->deadline_us, error))
                return FALSE;
            resumed = TRUE;
        } else if (!patience_wait(&patience)) {
            return hearth_fail(error, HEARTH_ERROR_ABORTED,
                               "volume %s is being copied from %s; ask again", w->id->name,
                               record->source);
        }
        g_clear_pointer(volume, backend_volume_free);
        if (!work_find_volume(w, volume, error))
            return FALSE;
    }
}
