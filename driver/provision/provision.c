/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/provision/internal.h"
#include <string.h>

void work_close(Work *work)
{
    if (work->session && !work->borrowed)
        work->ops->close(work->session);
}

gboolean work_open(Work *work, const Backend *backend, const VolumeId *id, const Secrets *secrets,
                   gint64 deadline_us, GError **error)
{
    work->ops = backend->ops;
    work->id = id;
    work->deadline_us = deadline_us;
    work->session = backend->ops->open(backend->impl, id, secrets, deadline_us, error);
    return work->session != NULL;
}

gboolean work_open_beside(const Work *w, const VolumeId *id, Work *other, GError **error)
{
    *other = *w;
    other->id = id;
    other->borrowed = volume_id_same_place_within(w->id, id);
    if (other->borrowed)
        return TRUE;
    other->session = NULL;
    if (w->ops->open_beside)
        other->session = w->ops->open_beside(w->session, id, w->deadline_us, error);
    else
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "type=%s: copies stay within one place", volume_type_name(id->type));
    return other->session != NULL;
}

gboolean work_is_not_found(const GError *error)
{
    return g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND);
}

gboolean work_find_record(Work *w, VolumeRecord **record, GError **error)
{
    if (w->id->adopted) {
        *record = adopted_record(w->id);
        return TRUE;
    }
    g_autoptr(GError) cause = NULL;
    gsize length;
    *record = NULL;
    g_autofree char *key = record_key(w->id->name);
    g_autofree char *text = w->ops->record_read(w->session, key, &length, w->deadline_us, &cause);
    if (!text && work_is_not_found(cause))
        return TRUE;
    if (!text) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    *record = record_decode(w->id->name, text, length, error);
    return *record != NULL;
}

gboolean work_find_volume(Work *w, BackendVolume **volume, GError **error)
{
    g_autoptr(GError) cause = NULL;
    *volume = w->ops->volume_look(w->session, w->id, w->deadline_us, &cause);
    if (*volume || work_is_not_found(cause))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

gboolean work_find_recorded(Work *w, const VolumeRecord *record, BackendVolume **volume,
                            GError **error)
{
    return record && record->backing ? shallow_look(w, record, volume, error)
                                     : work_find_volume(w, volume, error);
}

static gboolean remove_record(Work *w, GError **error)
{
    g_autofree char *key = record_key(w->id->name);
    return w->ops->record_remove(w->session, key, w->deadline_us, error);
}

/*
 * Writes the record of a new name, at which `foreign` was seen, or nothing. FALSE also when a
 * volume stands there without a record. *fresh is FALSE when there is one.
 */
static gboolean claim_name(Work *w, const BackendVolume *foreign, const char *text, gboolean *fresh,
                           GError **error)
{
    if (foreign) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s (%s) exists and has no record of this driver: someone else made it; "
                    "choose another volumeNamePrefix or remove it",
                    w->id->name, foreign->path);
        return FALSE;
    }
    gboolean existed = FALSE;
    g_autofree char *key = record_key(w->id->name);
    if (!w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error))
        return FALSE;
    *fresh = !existed;
    return TRUE;
}

/* A refusal that left nothing behind: the name must be free again for the mended request. */
static void release_name(Work *w, const GError *cause)
{
    if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT))
        remove_record(w, NULL);
}

/* The size to record: the source must fit, and gives the size when none is asked for. */
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
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_OUT_OF_RANGE,
                "the source %s has %" G_GINT64_FORMAT " bytes, more than the %" G_GINT64_FORMAT
                " asked for; ask for at least its size",
                r->source, least, *bytes);
    return FALSE;
}

/* Whether no volume of the name was there a moment ago, where the backend knows without asking. */
static gboolean is_known_free(Work *w, const ProvisionRequest *r, gboolean *is_free, GError **error)
{
    *is_free = FALSE;
    return r->source || r->params->dataset || !w->ops->volume_is_free ||
           w->ops->volume_is_free(w->session, w->id, is_free, w->deadline_us, error);
}

/*
 * The record of the request's name, made when there is none, and what stands there. A name is new
 * mostly, so that the record is not looked for where there is no volume: creating it, which is
 * exclusive, tells. A copy has to know before, for what becomes of a source that has gone.
 */
static gboolean take_name(Work *w, const ProvisionRequest *r, VolumeRecord **record,
                          BackendVolume **volume, GError **error)
{
    gboolean is_free, fresh = FALSE;
    if (!is_known_free(w, r, &is_free, error) ||
        (!is_free && !work_find_volume(w, volume, error)) ||
        ((*volume || r->source || r->params->dataset) && !work_find_record(w, record, error)))
        return FALSE;
    if (!*record) {
        gint64 bytes;
        g_autoptr(VolumeBacking) backing = NULL;
        if (!choose_bytes(w, r, &bytes, error) ||
            (r->backing_snapshot && !(backing = shallow_backing(w, r, &bytes, error))))
            return FALSE;
        g_autofree char *text = record_encode(r->name, r->params, r->id, r->source, r->source_at,
                                              backing, r->changes, bytes);
        if (!claim_name(w, *volume, text, &fresh, error))
            return FALSE;
        if (fresh)
            *record = record_decode(r->id->name, text, strlen(text), error);
        else if (!work_find_record(w, record, error) ||
                 (is_free && !work_find_volume(w, volume, error)))
            return FALSE;
        if (fresh && !*record)
            return FALSE;
    }
    if (!*record) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED,
                    "volume %s is being deleted by another controller; try again", r->id->name);
        return FALSE;
    }
    if (!record_check_same(*record, r->name, r->params, r->id, r->source, r->changes, r->range,
                           error))
        return FALSE;
    gboolean same = r->backing_snapshot == ((*record)->backing != NULL);
    if (!same)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                    "volume %s exists and is %s; use another name", r->id->name,
                    r->backing_snapshot ? "a copy, not the snapshot itself"
                                        : "a snapshot itself, for reading only, not a copy");
    /* The record outlives its volume when a removal is cut short. */
    gboolean may_be_cut = !fresh && w->ops->volume_clear;
    return same && (!may_be_cut || w->ops->volume_clear(w->session, w->id, w->deadline_us, error));
}

static gboolean make_empty(Work *w, const ProvisionRequest *r, gint64 bytes, BackendVolume **volume,
                           GError **error)
{
    if (*volume && (*volume)->incomplete)
        g_clear_pointer(volume, backend_volume_free);
    if (*volume)
        return TRUE;
    GError *cause = NULL;
    if (!w->ops->volume_create(w->session, r->id, r->params, bytes, volume, w->deadline_us,
                               &cause)) {
        release_name(w, cause);
        g_propagate_error(error, cause);
        return FALSE;
    }
    if (!*volume)
        *volume = w->ops->volume_look(w->session, r->id, w->deadline_us, error);
    return *volume != NULL;
}

static gboolean make_copy(Work *w, const ProvisionRequest *r, const VolumeRecord *record,
                          BackendVolume **volume, GError **error)
{
    gboolean spent = FALSE;
    if (copy_finish(w, r, record, volume, &spent, error))
        return TRUE;
    if (spent)
        remove_record(w, NULL);
    return FALSE;
}

static gboolean make_shallow(Work *w, const VolumeRecord *record, BackendVolume **volume,
                             GError **error)
{
    gboolean spent = FALSE;
    if (shallow_finish(w, record, volume, &spent, error))
        return TRUE;
    if (spent)
        remove_record(w, NULL);
    return FALSE;
}

gboolean provision_create(const Backend *backend, const ProvisionRequest *r, const Secrets *secrets,
                          gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                          GError **error)
{
    gint64 bytes;
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) made = NULL;
    if (!capacity_choose(r->range, r->params->type, &bytes, error) ||
        !work_open(&w, backend, r->id, secrets, deadline_us, error) ||
        !modify_check(&w, r->changes, error) || !take_name(&w, r, &found, &made, error))
        return FALSE;
    if (found->backing)
        g_clear_pointer(&made, backend_volume_free);
    if (found->backing ? !make_shallow(&w, found, &made, error)
        : r->source    ? !make_copy(&w, r, found, &made, error)
                       : !make_empty(&w, r, found->bytes, &made, error))
        return FALSE;
    /* By every call, since nothing tells whether an earlier one came this far. */
    if (r->params->mds_pin && !found->backing &&
        !w.ops->volume_pin(w.session, r->id, r->params->mds_pin, deadline_us, error))
        return FALSE;
    if (!modify_limit(&w, found, made->bytes, error))
        return FALSE;
    *record = g_steal_pointer(&found);
    *volume = g_steal_pointer(&made);
    return TRUE;
}

gboolean work_remove_volume(Work *w, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (w->ops->volume_remove(w->session, w->id, FALSE, w->deadline_us, &cause))
        return TRUE;
    if (!w->ops->snapshot_list ||
        !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    return snapshot_check_kept(w, error) &&
           w->ops->volume_remove(w->session, w->id, TRUE, w->deadline_us, error);
}

gboolean provision_delete(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                          gint64 deadline_us, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    if (!work_open(&w, backend, id, secrets, deadline_us, error) ||
        !work_find_record(&w, &record, error))
        return FALSE;
    /* A record of another group is of another volume, which has this one's name. */
    if (record && strcmp(record->group, id->group ? id->group : "") != 0)
        g_clear_pointer(&record, record_free);
    if (id->adopted)
        return adopted_delete(&w, error);
    if (!record) {
        g_autoptr(BackendVolume) foreign = NULL;
        if (!work_find_volume(&w, &foreign, error))
            return FALSE;
        if (foreign)
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volume %s (%s) has no record of this driver, which therefore does not "
                        "delete it; remove it by hand if its data is not needed",
                        id->name, foreign->path);
        return foreign == NULL;
    }
    if (record->backing)
        return shallow_release(&w, record, error) && remove_record(&w, error);
    return work_remove_volume(&w, error) && copy_clean(&w, record, error) &&
           remove_record(&w, error);
}

gboolean provision_look(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                        gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                        GError **error)
{
    work_auto Work w = {0};
    return work_open(&w, backend, id, secrets, deadline_us, error) &&
           work_look(&w, record, volume, error);
}

gboolean provision_recorded(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                            gint64 deadline_us, gboolean *recorded, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    if (!work_open(&w, backend, id, secrets, deadline_us, error) ||
        !work_find_record(&w, &record, error))
        return FALSE;
    *recorded = record != NULL;
    return TRUE;
}

gboolean provision_inspect(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                           gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                           GError **error)
{
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) seen = NULL;
    if (!work_open(&w, backend, id, secrets, deadline_us, error) ||
        !work_find_record(&w, &found, error) ||
        (found && !work_find_recorded(&w, found, &seen, error)))
        return FALSE;
    /* Of a volume without a record of ours there is only the volume. */
    if (!found || (id->adopted && !seen) || (seen && seen->incomplete) ||
        strcmp(found->group, id->group ? id->group : "") != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "volume %s does not exist",
                    id->name);
        return FALSE;
    }
    *record = g_steal_pointer(&found);
    *volume = g_steal_pointer(&seen);
    return TRUE;
}

gboolean work_look(Work *w, VolumeRecord **record, BackendVolume **volume, GError **error)
{
    const VolumeId *id = w->id;
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) seen = NULL;
    if (!work_find_record(w, &found, error) || !work_find_recorded(w, found, &seen, error))
        return FALSE;
    if (!found || !seen || seen->incomplete ||
        strcmp(found->group, id->group ? id->group : "") != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "volume %s does not exist",
                    id->name);
        return FALSE;
    }
    *record = g_steal_pointer(&found);
    *volume = g_steal_pointer(&seen);
    return TRUE;
}
