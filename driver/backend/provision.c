#include "driver/backend/provision_internal.h"
#include <string.h>

void work_close(Work *work)
{
    if (work->session)
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

gboolean work_is_not_found(const GError *error)
{
    return g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND);
}

gboolean work_find_record(Work *w, VolumeRecord **record, GError **error)
{
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

static gboolean remove_record(Work *w, GError **error)
{
    g_autofree char *key = record_key(w->id->name);
    return w->ops->record_remove(w->session, key, w->deadline_us, error);
}

/*
 * Writes the record of a new name. FALSE also when a volume stands there without one. *fresh is
 * FALSE when another controller was faster.
 */
static gboolean claim_name(Work *w, const char *text, gboolean *fresh, GError **error)
{
    g_autoptr(BackendVolume) foreign = NULL;
    if (!work_find_volume(w, &foreign, error))
        return FALSE;
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

gboolean provision_create(const Backend *backend, const VolumeId *id, const char *request_name,
                          const VolumeParams *params, CapacityRange range, const Secrets *secrets,
                          gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                          GError **error)
{
    gint64 bytes;
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) made = NULL;
    if (!capacity_choose(range, &bytes, error) ||
        !work_open(&w, backend, id, secrets, deadline_us, error) ||
        !work_find_record(&w, &found, error))
        return FALSE;

    gboolean fresh = FALSE;
    if (!found) {
        g_autofree char *text = record_encode(request_name, params, id, NULL, bytes);
        if (!claim_name(&w, text, &fresh, error))
            return FALSE;
        if (!work_find_record(&w, &found, error))
            return FALSE;
        if (!found) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED,
                        "volume %s is being deleted by another controller; try again", id->name);
            return FALSE;
        }
    }
    if (!record_check_same(found, request_name, params, id, NULL, range, error))
        return FALSE;
    if (!fresh && !work_find_volume(&w, &made, error))
        return FALSE;
    if (made && made->incomplete)
        g_clear_pointer(&made, backend_volume_free);
    if (!made) {
        GError *cause = NULL;
        if (!w.ops->volume_create(w.session, id, params, found->bytes, deadline_us, &cause)) {
            release_name(&w, cause);
            g_propagate_error(error, cause);
            return FALSE;
        }
        made = w.ops->volume_look(w.session, id, deadline_us, error);
        if (!made)
            return FALSE;
    }
    *record = g_steal_pointer(&found);
    *volume = g_steal_pointer(&made);
    return TRUE;
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
    return w.ops->volume_remove(w.session, id, deadline_us, error) && remove_record(&w, error);
}

gboolean provision_look(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                        gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                        GError **error)
{
    work_auto Work w = {0};
    return work_open(&w, backend, id, secrets, deadline_us, error) &&
           work_look(&w, record, volume, error);
}

gboolean work_look(Work *w, VolumeRecord **record, BackendVolume **volume, GError **error)
{
    const VolumeId *id = w->id;
    g_autoptr(VolumeRecord) found = NULL;
    g_autoptr(BackendVolume) seen = NULL;
    if (!work_find_record(w, &found, error) || !work_find_volume(w, &seen, error))
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
