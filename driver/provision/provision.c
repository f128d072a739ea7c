/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation of volumes, and lookups of single ones. The record comes first: it is created
 * exclusively, so of two requests for one name one is refused, and a call that finds a record
 * without its volume continues what an earlier call began. A volume without a record belongs to
 * someone else and is never taken over. The Controller service calls this with the name locked.
 */
#include "driver/provision/internal.h"
#include <string.h>

static VolumeRequest as_recorded(const Work *w, const ProvisionRequest *r, const char *first)
{
    return (VolumeRequest){.name = r->name,
                           .first = first,
                           .params = r->params,
                           .id = w->id,
                           .source = r->source,
                           .source_at = r->source_at,
                           .changes = r->changes};
}

/* Creates the record of a name. `foreign` is a volume of that name that was found without a record,
 * which is an error; or NULL. *fresh is FALSE when there is a record already. */
static gboolean claim_name(Work *w, const BackendVolume *foreign, const char *text, gboolean *fresh,
                           GError **error)
{
    if (foreign)
        return hearth_fail(
            error, HEARTH_ERROR_ALREADY_EXISTS,
            "volume %s (%s) exists and has no record of this driver: someone else made it; "
            "choose another volumeNamePrefix or remove it",
            w->id->name, foreign->path);
    gboolean existed = FALSE;
    g_autofree char *key = volume_record_key(w->id->name);
    if (!w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error))
        return FALSE;
    *fresh = !existed;
    return TRUE;
}

/* Frees the name after a refusal that made nothing, for the corrected request. */
static void release_name(Work *w, const GError *cause)
{
    if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT))
        work_remove_record(w, NULL);
}

/* The size to record. It must hold the source, and is the source's when none is asked for. */
static gboolean choose_bytes(Work *w, const ProvisionRequest *r, gint64 *bytes, GError **error)
{
    gint64 least = 0;
    if (!capacity_choose(r->range, r->params->type, bytes, error))
        return FALSE;
    if (!r->source)
        return TRUE;
    if (!copy_source_size(w, r, &least, error))
        return FALSE;
    if (*bytes >= least)
        return TRUE;
    if (r->range.required == 0 && (r->range.limit == 0 || least <= r->range.limit)) {
        *bytes = least;
        return TRUE;
    }
    return hearth_fail(error, HEARTH_ERROR_OUT_OF_RANGE,
                       "the source %s has %" G_GINT64_FORMAT
                       " bytes, more than the %" G_GINT64_FORMAT
                       " asked for; ask for at least its size",
                       r->source, least, *bytes);
}

/* Whether the backend knows, without asking Ceph, that no volume had the name a moment ago. */
static gboolean is_known_free(Work *w, const ProvisionRequest *r, gboolean *is_free, GError **error)
{
    *is_free = FALSE;
    return r->source || r->params->dataset || !w->ops->volume_is_free ||
           w->ops->volume_is_free(w->session, w->id, is_free, w->deadline_us, error);
}

/* What there is of the request's name. */
typedef struct Taken {
    VolumeRecord *record;
    BackendVolume *volume;
    gboolean is_free; /* no volume had the name a moment ago, so it was not looked for */
    gboolean fresh;   /* the record was written by this call */
    VolumeId *moved;  /* in place of the request's, when a copy to that name failed */
} Taken;

static void taken_clear(Taken *t)
{
    g_clear_pointer(&t->record, volume_record_free);
    g_clear_pointer(&t->volume, backend_volume_free);
    g_clear_pointer(&t->moved, volume_id_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Taken, taken_clear)

/*
 * Writes the record of a name that has none. Not fresh: another call was faster; its record is
 * read, and its volume where that was not looked for before. No record: it is gone again.
 */
static gboolean write_record(Work *w, const ProvisionRequest *r, const char *first, Taken *t,
                             GError **error)
{
    gint64 bytes;
    g_autoptr(VolumeBacking) backing = NULL;
    if (!choose_bytes(w, r, &bytes, error))
        return FALSE;
    if (r->backing_snapshot) {
        backing = shallow_backing(w, r, &bytes, error);
        if (!backing)
            return FALSE;
    }
    const VolumeRequest recorded = as_recorded(w, r, first);
    g_autofree char *text = volume_record_encode(&recorded, backing, bytes);
    if (!claim_name(w, t->volume, text, &t->fresh, error))
        return FALSE;
    if (t->fresh) {
        t->record = volume_record_decode(w->id->name, text, strlen(text), error);
        return t->record != NULL;
    }
    if (!work_find_record(w, &t->record, error))
        return FALSE;
    return !t->is_free || work_find_volume(w, &t->volume, error);
}

static gboolean check_same_request(const Work *w, const VolumeRecord *record,
                                   const ProvisionRequest *r, GError **error)
{
    const VolumeRequest recorded = as_recorded(w, r, NULL);
    if (!volume_record_check_same(record, &recorded, r->range, error))
        return FALSE;
    if (r->backing_snapshot == (record->backing != NULL))
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                       "volume %s exists and is %s; use another name", w->id->name,
                       r->backing_snapshot ? "a copy, not the snapshot itself"
                                           : "a snapshot itself, for reading only, not a copy");
}

/*
 * Finds or writes the record of the name, and finds the volume. Most names are new, so the record
 * of a name without a volume is not looked for: creating it, which is exclusive, shows whether
 * there is one. A copy or a dataset has to know first, because its source may be gone by now.
 * `first`: the request's name, when the volume has moved from that; else NULL.
 */
static gboolean take_one(Work *w, const ProvisionRequest *r, const char *first, Taken *t,
                         GError **error)
{
    if (!is_known_free(w, r, &t->is_free, error))
        return FALSE;
    if (!t->is_free && !work_find_volume(w, &t->volume, error))
        return FALSE;
    gboolean must_look = t->volume || r->source || r->params->dataset;
    if (must_look && !work_find_record(w, &t->record, error))
        return FALSE;
    if (!t->record && !write_record(w, r, first, t, error))
        return FALSE;
    if (!t->record)
        return hearth_fail(error, HEARTH_ERROR_ABORTED,
                           "volume %s is being deleted by another controller; try again",
                           w->id->name);
    return check_same_request(w, t->record, r, error);
}

static gboolean take_name(Work *w, const ProvisionRequest *r, Taken *t, GError **error)
{
    if (!take_one(w, r, NULL, t, error))
        return FALSE;
    if (t->record->moved) {
        g_autoptr(VolumeId) moved = remove_and_follow(w, t->record, error);
        if (!moved)
            return FALSE;
        taken_clear(t);
        *t = (Taken){.moved = g_steal_pointer(&moved)};
        const char *first = w->id->name;
        w->id = t->moved;
        if (!take_one(w, r, first, t, error))
            return FALSE;
    }
    /* The record outlives its volume when a removal is cut short. */
    gboolean may_be_cut = !t->fresh && w->ops->volume_clear;
    return !may_be_cut || w->ops->volume_clear(w->session, w->id, w->deadline_us, error);
}

static gboolean make_empty(Work *w, const ProvisionRequest *r, gint64 bytes, BackendVolume **volume,
                           GError **error)
{
    if (*volume && (*volume)->incomplete)
        g_clear_pointer(volume, backend_volume_free);
    if (*volume)
        return TRUE;
    GError *cause = NULL;
    *volume = w->ops->volume_create(w->session, w->id, r->params, bytes, w->deadline_us, &cause);
    if (*volume)
        return TRUE;
    release_name(w, cause);
    g_propagate_error(error, cause);
    return FALSE;
}

static gboolean make_copy(Work *w, const ProvisionRequest *r, const VolumeRecord *record,
                          BackendVolume **volume, GError **error)
{
    gboolean spent = FALSE;
    if (copy_finish(w, r, record, volume, &spent, error))
        return TRUE;
    if (spent)
        work_remove_record(w, NULL);
    return FALSE;
}

static gboolean make_shallow(Work *w, const VolumeRecord *record, BackendVolume **volume,
                             GError **error)
{
    gboolean spent = FALSE;
    if (shallow_finish(w, record, volume, &spent, error))
        return TRUE;
    if (spent)
        work_remove_record(w, NULL);
    return FALSE;
}

static gboolean make_volume(Work *w, const ProvisionRequest *r, const VolumeRecord *record,
                            BackendVolume **volume, GError **error)
{
    if (record->backing) {
        g_clear_pointer(volume, backend_volume_free);
        return make_shallow(w, record, volume, error);
    }
    return r->source ? make_copy(w, r, record, volume, error)
                     : make_empty(w, r, record->bytes, volume, error);
}

gboolean provision_create(const ProvisionTarget *at, const ProvisionRequest *r,
                          VolumeRecord **record, BackendVolume **volume, GError **error)
{
    gint64 bytes;
    work_auto Work w = {0};
    g_auto(Taken) t = {.record = NULL};
    if (!capacity_choose(r->range, r->params->type, &bytes, error) || !work_open(&w, at, error))
        return FALSE;
    if (!modify_check(&w, r->changes, error) || !take_name(&w, r, &t, error))
        return FALSE;
    if (!make_volume(&w, r, t.record, &t.volume, error))
        return FALSE;
    /* Every call pins again, because nothing shows whether an earlier one came this far. */
    if (r->params->mds_pin && !t.record->backing &&
        !w.ops->volume_pin(w.session, w.id, r->params->mds_pin, at->deadline_us, error))
        return FALSE;
    if (!modify_limit(&w, t.record, t.volume->bytes, error))
        return FALSE;
    *record = g_steal_pointer(&t.record);
    *volume = g_steal_pointer(&t.volume);
    return TRUE;
}

gboolean provision_look(const ProvisionTarget *at, VolumeRecord **record, BackendVolume **volume,
                        GError **error)
{
    work_auto Work w = {0};
    return work_open(&w, at, error) && work_look(&w, record, volume, error);
}

gboolean provision_recorded(const ProvisionTarget *at, gboolean *recorded, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    if (!work_open(&w, at, error) || !work_find_record(&w, &record, error))
        return FALSE;
    *recorded = record != NULL;
    return TRUE;
}

gboolean provision_inspect(const ProvisionTarget *at, VolumeRecord **record, BackendVolume **volume,
                           GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) seen = NULL;
    if (!work_open(&w, at, error) || !work_find_record(&w, &found, error))
        return FALSE;
    if (found && !work_find_recorded(&w, found, &seen, error))
        return FALSE;
    /* A volume of ceph-csi has no record of ours, so it exists only while Ceph has it. */
    if (!found || found->moved || (at->id->adopted && !seen) || (seen && seen->incomplete) ||
        !work_in_group(found->group, at->id))
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "volume %s does not exist", at->id->name);
    *record = g_steal_pointer(&found);
    *volume = g_steal_pointer(&seen);
    return TRUE;
}
