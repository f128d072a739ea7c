/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group snapshots. First comes the group's record, which says which snapshots of which volumes are
 * its members; then each member's own record, as every snapshot has; then all snapshots at once;
 * and then the group's record says that they are taken. Snapshots without that note do not count:
 * an attempt that failed may leave all of them, the last one made by Ceph after the writers had
 * continued.
 *
 * The next attempt claims the record: it gives its snapshots names of their own, and notes which
 * attempt was before it, whose snapshots it then removes. Each change of the record compares it
 * with what this attempt has read. So of two controllers, one that was frozen anywhere in a call
 * and goes on later finds the record changed, and has touched nothing but its own snapshots and
 * those that did not count.
 */
#include <string.h>
#include "driver/provision/internal.h"

static gboolean check_can_group(const Work *w, GError **error)
{
    if (w->ops->snapshot_create_group)
        return TRUE;
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "type=%s has no snapshots of several volumes at one moment; snapshot each on its "
        "own",
        volume_type_name(w->id->type));
}

/* *as: the text that the record was read from, the caller's; `as` may be NULL. */
static gboolean find_group(Work *w, GroupRecord **record, char **as, GError **error)
{
    gsize length;
    g_autofree char *text = NULL;
    g_autofree char *key = group_record_key(w->id->name);
    *record = NULL;
    if (!work_read_record(w, key, &text, &length, error))
        return FALSE;
    if (!text)
        return TRUE;
    *record = group_record_decode(w->id->name, text, length, error);
    if (as && *record)
        *as = g_steal_pointer(&text);
    return *record != NULL;
}

/* The volume of a member, at the group's location; the caller's. */
static VolumeId *volume_of(const Work *w, const GroupMember *member)
{
    VolumeId *id = volume_id_copy(w->id);
    g_free(id->name);
    id->name = g_strdup(member->volume);
    id->group = *member->group ? g_strdup(member->group) : NULL;
    return id;
}

static gint compare_members(gconstpointer a, gconstpointer b)
{
    const GroupMember *x = *(GroupMember *const *)a, *y = *(GroupMember *const *)b;
    return strcmp(x->volume, y->volume);
}

/* Checks that the volumes are there. */
static GPtrArray *plan_members(Work *w, const GPtrArray *sources, GError **error)
{
    g_autoptr(GPtrArray) members = group_members_new();
    for (guint i = 0; i < sources->len; i++) {
        Work of = work_for(w, sources->pdata[i]);
        g_autoptr(VolumeRecord) record = NULL;
        g_autoptr(BackendVolume) volume = NULL;
        if (!work_look(&of, &record, &volume, error))
            return NULL;
        if (record->backing) {
            hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volume %s is the snapshot %s itself; leave it out of the group",
                        of.id->name, record->backing->snapshot);
            return NULL;
        }
        g_ptr_array_add(members, group_member_new(of.id->name, of.id->group, NULL,
                                                  volume->bytes ? volume->bytes : record->bytes));
    }
    g_ptr_array_sort(members, compare_members);
    return g_steal_pointer(&members);
}

static gboolean fail_name_taken(GError **error, const char *what, const char *name)
{
    return hearth_fail(error, HEARTH_ERROR_ALREADY_EXISTS,
                       "%s %s exists and is not of this request; use another name", what, name);
}

static gboolean fail_not_ours(const Work *w, GError **error)
{
    return hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "group snapshot %s is being taken or deleted by another controller; try "
                       "again",
                       w->id->name);
}

static gboolean create_record(Work *w, const char *request_name, const GPtrArray *sources,
                              GroupRecord **record, char **as, GError **error)
{
    g_autoptr(GroupRecord) new = g_new0(GroupRecord, 1);
    new->request_name = g_strdup(request_name);
    new->members = plan_members(w, sources, error);
    if (!new->members)
        return FALSE;
    group_record_begin(new, w->id);
    gboolean existed;
    g_autofree char *text = group_record_encode(new);
    g_autofree char *key = group_record_key(w->id->name);
    if (!w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error))
        return FALSE;
    if (existed)
        return fail_not_ours(w, error);
    *record = g_steal_pointer(&new);
    *as = g_steal_pointer(&text);
    return TRUE;
}

/* Stores `record`, or removes it when that is NULL, in the place of *as, the text that this attempt
 * knows. *ours FALSE: it is another's by now, and nothing has changed. */
static gboolean try_change(Work *w, const GroupRecord *record, char **as, gboolean *ours,
                           GError **error)
{
    g_autofree char *key = group_record_key(w->id->name);
    g_autofree char *text = record ? group_record_encode(record) : NULL;
    g_autoptr(GError) cause = NULL;
    const RecordChange change = {.name = key, .expected = *as, .text = text};
    if (w->ops->record_replace(w->session, &change, ours, w->deadline_us, &cause)) {
        if (*ours) {
            g_free(*as);
            *as = g_steal_pointer(&text);
        }
        return TRUE;
    }
    *ours = !record;
    if (work_is_not_found(cause))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean change_record(Work *w, const GroupRecord *record, char **as, GError **error)
{
    gboolean ours;
    return try_change(w, record, as, &ours, error) && (ours || fail_not_ours(w, error));
}

static gboolean check_same_request(const Work *w, const GroupRecord *record,
                                   const char *request_name, const GPtrArray *sources,
                                   GError **error)
{
    gboolean same =
        strcmp(record->request_name, request_name) == 0 && record->members->len == sources->len;
    for (guint i = 0; same && i < sources->len; i++) {
        const VolumeId *source = sources->pdata[i];
        gboolean found = FALSE;
        for (guint k = 0; !found && k < record->members->len; k++) {
            const GroupMember *m = record->members->pdata[k];
            found = strcmp(m->volume, source->name) == 0 &&
                    strcmp(m->group, source->group ? source->group : "") == 0;
        }
        same = found;
    }
    return same || fail_name_taken(error, "group snapshot", w->id->name);
}

/* The path of the volume, for the record of its snapshot; NULL for a type that needs no path, and
 * when the volume is gone. */
static gboolean find_path(Work *w, const VolumeId *id, char **path, GError **error)
{
    Work of = work_for(w, id);
    g_autoptr(BackendVolume) volume = NULL;
    *path = NULL;
    if (!w->ops->snapshot_path)
        return TRUE;
    if (!work_find_volume(&of, &volume, error))
        return FALSE;
    *path = volume ? g_strdup(volume->path) : NULL;
    return TRUE;
}

static gboolean create_member_record(Work *w, const GroupMember *m, SnapshotRecord **found,
                                     GError **error)
{
    g_autoptr(VolumeId) volume = volume_of(w, m);
    g_autofree char *path = NULL;
    gboolean existed;
    if (!find_path(w, volume, &path, error))
        return FALSE;
    g_autofree char *key = snapshot_record_key(m->snapshot);
    g_autofree char *text =
        snapshot_record_encode(m->snapshot, volume, path, m->bytes, w->id->name);
    return w->ops->record_create(w->session, key, text, &existed, w->deadline_us, error) &&
           (!existed || work_find_snapshot(w, m->snapshot, found, error));
}

static gboolean create_member_records(Work *w, const GroupRecord *record, GError **error)
{
    for (guint i = 0; i < record->members->len; i++) {
        const GroupMember *m = record->members->pdata[i];
        g_autoptr(SnapshotRecord) found = NULL;
        if (!work_find_snapshot(w, m->snapshot, &found, error) ||
            (!found && !create_member_record(w, m, &found, error)))
            return FALSE;
        if (found && g_strcmp0(found->group_snapshot, w->id->name) != 0)
            return fail_name_taken(error, "snapshot", m->snapshot);
    }
    return TRUE;
}

static gboolean count_there(Work *w, const GroupRecord *record, guint *n, GError **error)
{
    *n = 0;
    for (guint i = 0; i < record->members->len; i++) {
        const GroupMember *m = record->members->pdata[i];
        g_autoptr(VolumeId) volume = volume_of(w, m);
        gboolean there;
        if (!work_snapshot_there(w, volume, m->snapshot, &there, error))
            return FALSE;
        *n += there ? 1 : 0;
    }
    return TRUE;
}

/* The snapshots of an attempt and their records. */
static gboolean remove_attempt(Work *w, const GroupRecord *record, const char *attempt,
                               GError **error)
{
    for (guint i = 0; i < record->members->len; i++) {
        g_autoptr(VolumeId) volume = volume_of(w, record->members->pdata[i]);
        g_autofree char *name = group_record_snapshot(w->id, attempt, i);
        if (!w->ops->snapshot_remove(w->session, volume, name, w->deadline_us, error) ||
            !work_remove_snapshot_record(w, name, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean remove_before(Work *w, const GroupRecord *record, GError **error)
{
    return !record->before || remove_attempt(w, record, record->before, error);
}

static gboolean remove_all(Work *w, const GroupRecord *record, char **as, GError **error)
{
    return remove_attempt(w, record, record->attempt, error) && remove_before(w, record, error) &&
           change_record(w, NULL, as, error);
}

/* The record of an attempt that is not known to have succeeded becomes this one's. Only one attempt
 * is noted as the one before, so what that has left must be gone. */
static gboolean claim_record(Work *w, GroupRecord *record, char **as, GError **error)
{
    if (!remove_before(w, record, error))
        return FALSE;
    group_record_begin(record, w->id);
    return change_record(w, record, as, error) && remove_before(w, record, error);
}

/* Before a removal. FAILED_PRECONDITION: volumes show one of the members; then none is sealed. */
static gboolean seal_members(Work *w, const GroupRecord *record, GError **error)
{
    for (guint i = 0; i < record->members->len; i++) {
        const GroupMember *m = record->members->pdata[i];
        if (shallow_seal(w, m->snapshot, error))
            continue;
        while (i-- > 0) {
            const GroupMember *sealed = record->members->pdata[i];
            shallow_unseal(w, sealed->snapshot);
        }
        return FALSE;
    }
    return TRUE;
}

static gboolean take_snapshots(Work *w, const GroupRecord *record, GError **error)
{
    gsize n = record->members->len;
    g_autoptr(GPtrArray) volumes = g_ptr_array_new();
    g_autofree const char **names = g_new0(const char *, n);
    for (gsize i = 0; i < n; i++) {
        const GroupMember *m = record->members->pdata[i];
        g_ptr_array_add(volumes, volume_of(w, m));
        names[i] = m->snapshot;
    }
    gboolean good = w->ops->snapshot_create_group(
        w->session, (const VolumeId *const *)volumes->pdata, names, n, w->deadline_us, error);
    g_ptr_array_foreach(volumes, (GFunc)(void (*)(void))volume_id_free, NULL);
    return good;
}

/* FALSE, and nothing is left, when another attempt has claimed the record meanwhile. A controller
 * of a release without attempts claims nothing, and may have taken the group under this one's
 * names. */
static gboolean note_taken(Work *w, GroupRecord *record, char **as, GError **error)
{
    gboolean ours;
    g_autoptr(GroupRecord) now = NULL;
    record->taken = TRUE;
    if (!try_change(w, record, as, &ours, error))
        return FALSE;
    if (ours)
        return TRUE;
    if (!find_group(w, &now, NULL, error))
        return FALSE;
    if (!now || strcmp(now->attempt, record->attempt) != 0)
        remove_attempt(w, record, record->attempt, NULL);
    return fail_not_ours(w, error);
}

static gboolean take_group(Work *w, GroupRecord *record, char **as, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (!create_member_records(w, record, error))
        return FALSE;
    if (take_snapshots(w, record, &cause))
        return note_taken(w, record, as, error);
    /* It would be refused again. Claimed once more, its snapshots are nobody else's. */
    if ((work_is_not_found(cause) ||
         g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION)) &&
        claim_record(w, record, as, NULL))
        remove_all(w, record, as, NULL);
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean delete_group(Work *w, const GroupRecord *record, char **as, GError **error)
{
    return seal_members(w, record, error) && remove_all(w, record, as, error);
}

/* *found: the group if it is whole. A group that has lost members is deleted. */
static gboolean look_before(Work *w, const char *request_name, const GPtrArray *sources,
                            GroupRecord **found, char **as, GError **error)
{
    guint there;
    if (!find_group(w, found, as, error))
        return FALSE;
    if (!*found)
        return TRUE;
    if (!check_same_request(w, *found, request_name, sources, error) ||
        !count_there(w, *found, &there, error))
        return FALSE;
    if (!(*found)->taken || there == (*found)->members->len)
        return TRUE;
    if (!delete_group(w, *found, as, error))
        return FALSE;
    g_clear_pointer(found, group_record_free);
    return TRUE;
}

gboolean provision_group_create(const ProvisionTarget *at, const char *request_name,
                                const GPtrArray *sources, GroupRecord **record, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(GroupRecord) found = NULL;
    g_autofree char *as = NULL;
    if (!work_open(&w, at, error) || !check_can_group(&w, error) ||
        !look_before(&w, request_name, sources, &found, &as, error))
        return FALSE;
    if (!found || !found->taken) {
        gboolean ours = found ? claim_record(&w, found, &as, error)
                              : create_record(&w, request_name, sources, &found, &as, error);
        if (!ours || !take_group(&w, found, &as, error))
            return FALSE;
    }
    *record = g_steal_pointer(&found);
    return TRUE;
}

static gboolean check_members(const Work *w, const GroupRecord *record, const GPtrArray *snapshots,
                              GError **error)
{
    gboolean same = !snapshots || snapshots->len == record->members->len;
    for (guint i = 0; same && snapshots && i < snapshots->len; i++) {
        gboolean found = FALSE;
        for (guint k = 0; !found && k < record->members->len; k++) {
            const GroupMember *m = record->members->pdata[k];
            found = strcmp(m->snapshot, snapshots->pdata[i]) == 0;
        }
        same = found;
    }
    if (!same)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "snapshot_ids are not those of group snapshot %s, which has %u", w->id->name,
                    record->members->len);
    return same;
}

gboolean provision_group_delete(const ProvisionTarget *at, const GPtrArray *snapshots,
                                GError **error)
{
    work_auto Work w = {0};
    g_autoptr(GroupRecord) record = NULL;
    g_autofree char *as = NULL;
    if (!work_open(&w, at, error) || !find_group(&w, &record, &as, error))
        return FALSE;
    if (!record)
        return TRUE;
    return check_members(&w, record, snapshots, error) && delete_group(&w, record, &as, error);
}

gboolean provision_group_look(const ProvisionTarget *at, const GPtrArray *snapshots,
                              GroupRecord **record, GError **error)
{
    work_auto Work w = {0};
    g_autoptr(GroupRecord) found = NULL;
    guint there = 0;
    if (!work_open(&w, at, error) || !find_group(&w, &found, NULL, error))
        return FALSE;
    if (found && !check_members(&w, found, snapshots, error))
        return FALSE;
    if (found && !count_there(&w, found, &there, error))
        return FALSE;
    if (!found || !found->taken || there < found->members->len)
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "group snapshot %s does not exist",
                           at->id->name);
    *record = g_steal_pointer(&found);
    return TRUE;
}

static gboolean find_unfinished(Work *w, GroupRecord **record, char **as, gboolean *unfinished,
                                GError **error)
{
    guint there = 0;
    *unfinished = FALSE;
    if (!find_group(w, record, as, error) || (*record && !count_there(w, *record, &there, error)))
        return FALSE;
    *unfinished = *record && (!(*record)->taken || there == 0);
    return TRUE;
}

gboolean group_is_unfinished(Work *w, gboolean *unfinished, gint64 *created, GError **error)
{
    g_autoptr(GroupRecord) record = NULL;
    if (!find_unfinished(w, &record, NULL, unfinished, error))
        return FALSE;
    *created = record ? record->created : 0;
    return TRUE;
}

gboolean group_remove_unfinished(Work *w, GError **error)
{
    g_autoptr(GroupRecord) record = NULL;
    g_autofree char *as = NULL;
    gboolean unfinished;
    if (!find_unfinished(w, &record, &as, &unfinished, error))
        return FALSE;
    if (!record)
        return TRUE;
    return unfinished ? delete_group(w, record, &as, error) : fail_not_ours(w, error);
}
