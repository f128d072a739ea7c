/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists records first, then volumes, then the snapshots of each. Calls go on meanwhile, so a record
 * or volume whose other side seems to be missing is looked up again before it is reported.
 * hearth-csi audit calls this through driver/service/controller/audit.h.
 */
#include "driver/provision/audit.h"
#include <string.h>
#include "driver/provision/internal.h"

#define SNAPSHOT_DEFAULT_PREFIX "csi-snap-"
#define GROUP_DEFAULT_PREFIX "csi-vol-group-"

typedef struct Audit {
    Work w; /* its id is the location */
    gint64 step_ms;
    AuditReport *report;
    GHashTable *records;   /* volume -> VolumeRecord */
    GHashTable *snapshots; /* snapshot -> SnapshotRecord */
    GHashTable *volume_prefixes, *snapshot_prefixes;
    GHashTable *groups;
} Audit;

static void free_record(gpointer record)
{
    volume_record_free(record);
}

static void free_snapshot_record(gpointer record)
{
    snapshot_record_free(record);
}

static GHashTable *new_set(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

/* The session at one volume, with time for one more step. */
static Work work_at(Audit *a, const VolumeId *id)
{
    Work w = a->w;
    w.id = id;
    w.deadline_us = g_get_monotonic_time() + a->step_ms * 1000;
    return w;
}

static VolumeId *id_of(const Audit *a, const char *group, const char *name)
{
    VolumeId *id = volume_id_copy(a->w.id);
    if (group && *group) {
        g_free(id->group);
        id->group = g_strdup(group);
    }
    g_free(id->name);
    id->name = g_strdup(name);
    return id;
}

static AuditFinding *add_finding(Audit *a, AuditKind kind, const VolumeId *id, const char *snapshot,
                                 gint64 created)
{
    AuditFinding *f = g_new0(AuditFinding, 1);
    f->kind = kind;
    f->id = volume_id_copy(id);
    f->snapshot = g_strdup(snapshot);
    f->created = created;
    g_ptr_array_add(a->report->findings, f);
    return f;
}

/* Ends with an error of one element. TRUE: only that element is left out. FALSE: the error concerns
 * the whole location and is propagated. */
static gboolean ignore_or_fail(GError *cause, GError **error)
{
    gboolean spoils = work_spoils_list(cause);
    if (spoils)
        g_propagate_error(error, cause);
    else
        g_error_free(cause);
    return !spoils;
}

/* Adds the part of a name that stands before the name of its request. */
static void learn_prefix(GHashTable *set, const char *name, const char *request_name)
{
    if (g_str_has_suffix(name, request_name) && strlen(name) > strlen(request_name))
        g_hash_table_add(set, g_strndup(name, strlen(name) - strlen(request_name)));
}

/* ceph-csi's: a UUID, and perhaps the suffix of the image through which it makes a clone. */
static gboolean is_of_ceph_csi(const char *rest)
{
    g_autofree char *plain = g_strndup(rest, ADOPTED_UUID_LENGTH);
    return g_uuid_string_is_valid(plain) &&
           (strlen(rest) == ADOPTED_UUID_LENGTH ||
            strcmp(rest + ADOPTED_UUID_LENGTH, ADOPTED_TEMPORARY) == 0);
}

static gboolean is_ours(GHashTable *prefixes, const char *name)
{
    GHashTableIter iter;
    gpointer prefix;
    g_hash_table_iter_init(&iter, prefixes);
    while (g_hash_table_iter_next(&iter, &prefix, NULL)) {
        if (g_str_has_prefix(name, prefix) && !is_of_ceph_csi(name + strlen(prefix)))
            return TRUE;
    }
    return FALSE;
}

static gboolean check_group(Audit *a, const char *name, GError **error)
{
    g_autoptr(VolumeId) id = id_of(a, NULL, name);
    g_clear_pointer(&id->group, g_free);
    Work w = work_at(a, id);
    GError *cause = NULL;
    gboolean unfinished;
    gint64 created;
    if (!group_is_unfinished(&w, &unfinished, &created, &cause))
        return ignore_or_fail(cause, error);
    if (unfinished)
        add_finding(a, AUDIT_GROUP_UNFINISHED, id, NULL, created);
    return TRUE;
}

static gboolean read_record(Audit *a, const char *key, GError **error)
{
    const char *volume = volume_record_key_name(key), *snapshot = snapshot_record_key_name(key);
    const char *group = group_record_key_name(key);
    if (group)
        return check_group(a, group, error);
    if (!volume && !snapshot)
        return TRUE;
    g_autoptr(VolumeId) id = id_of(a, NULL, volume ? volume : NULL);
    Work w = work_at(a, id);
    GError *cause = NULL;
    VolumeRecord *record = NULL;
    SnapshotRecord *snapshot_record = NULL;
    a->report->records++;
    if (volume && work_find_record(&w, &record, &cause)) {
        if (record) {
            learn_prefix(a->volume_prefixes, volume, record->request_name);
            g_hash_table_add(a->groups, g_strdup(record->group));
            g_hash_table_insert(a->records, g_strdup(volume), record);
        }
    } else if (snapshot && work_find_snapshot(&w, snapshot, &snapshot_record, &cause)) {
        if (snapshot_record) {
            learn_prefix(a->snapshot_prefixes, snapshot, snapshot_record->request_name);
            g_hash_table_add(a->groups, g_strdup(snapshot_record->source_group));
            g_hash_table_insert(a->snapshots, g_strdup(snapshot), snapshot_record);
        }
    } else {
        if (work_spoils_list(cause)) {
            g_propagate_error(error, cause);
            return FALSE;
        }
        add_finding(a, AUDIT_RECORD_DAMAGED, id, snapshot, 0)->detail = g_strdup(cause->message);
        g_error_free(cause);
        /* Its volume does have a record. */
        if (volume)
            g_hash_table_insert(a->records, g_strdup(volume), NULL);
        else
            g_hash_table_insert(a->snapshots, g_strdup(snapshot), NULL);
    }
    return TRUE;
}

static gboolean read_records(Audit *a, GError **error)
{
    Work w = work_at(a, a->w.id);
    g_autoptr(GPtrArray) keys = w.ops->record_list(w.session, w.deadline_us, error);
    if (!keys)
        return FALSE;
    g_ptr_array_sort(keys, work_compare_names);
    for (guint i = 0; i < keys->len; i++) {
        if (!read_record(a, keys->pdata[i], error))
            return FALSE;
    }
    return TRUE;
}

/* A record that leads to another name: that has a record, and this one no volume. */
static gboolean check_moved(Audit *a, const VolumeId *id, const VolumeRecord *record,
                            GError **error)
{
    g_autoptr(VolumeId) to = id_of(a, record->group, record->moved);
    Work here = work_at(a, id), there = work_at(a, to);
    g_autoptr(BackendVolume) volume = NULL;
    g_autoptr(VolumeRecord) again = NULL, next = NULL;
    GError *cause = NULL;
    if (!work_find_volume(&here, &volume, &cause) || !work_find_record(&there, &next, &cause) ||
        !work_find_record(&here, &again, &cause))
        return ignore_or_fail(cause, error);
    if (!again || g_strcmp0(again->moved, record->moved) != 0)
        return TRUE;
    if (volume)
        add_finding(a, AUDIT_COPY_FAILED, id, NULL, record->created)->detail =
            g_strdup_printf("the volume has the name %s now", record->moved);
    else if (!next)
        add_finding(a, AUDIT_RECORD_WITHOUT_VOLUME, id, NULL, record->created);
    return TRUE;
}

/* Checks that the volume of a record exists and is complete. */
static gboolean check_record(Audit *a, const char *name, const VolumeRecord *record, GError **error)
{
    g_autoptr(VolumeId) id = id_of(a, record->group, name);
    Work w = work_at(a, id);
    g_autoptr(BackendVolume) volume = NULL;
    g_autoptr(VolumeRecord) again = NULL;
    GError *cause = NULL;
    if (record->moved)
        return check_moved(a, id, record, error);
    if (!work_find_recorded(&w, record, &volume, &cause))
        return ignore_or_fail(cause, error);
    if (volume && volume->copying)
        return TRUE;
    gboolean copied = record->source && !record->backing;
    if (volume && !volume->incomplete && !(copied && volume->bytes < record->bytes))
        return TRUE;
    if (!work_find_record(&w, &again, &cause))
        return ignore_or_fail(cause, error);
    if (!again)
        return TRUE;
    if (!volume)
        add_finding(a, AUDIT_RECORD_WITHOUT_VOLUME, id, NULL, again->created);
    else if (volume->failure)
        add_finding(a, AUDIT_COPY_FAILED, id, NULL, again->created)->detail =
            g_strdup(volume->failure);
    else if (volume->incomplete)
        add_finding(a, AUDIT_VOLUME_INCOMPLETE, id, NULL, again->created);
    else if (w.ops->volume_resize)
        add_finding(a, AUDIT_COPY_UNFINISHED, id, NULL, again->created);
    return TRUE;
}

/* Whether the volume `target` is still being copied through a snapshot of `source`, as the target's
 * record says. */
static gboolean is_in_use(Audit *a, const VolumeId *source, VolumeId *target, gboolean *in_use,
                          gint64 *created, GError **error)
{
    Work here = work_at(a, source);
    work_auto Work w = {0};
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    if (!work_open_beside(&here, target, &w, error) || !work_find_record(&w, &record, error))
        return FALSE;
    *created = record ? record->created : 0;
    *in_use = copy_is_of(record, source);
    if (!*in_use)
        return TRUE;
    g_free(target->group);
    target->group = *record->group ? g_strdup(record->group) : NULL;
    if (!work_find_volume(&w, &volume, error))
        return FALSE;
    *in_use = !volume || volume->incomplete;
    return TRUE;
}

/* A snapshot through which a volume is copied: a finding, unless the copy is under way. */
static gboolean check_copy(Audit *a, const VolumeId *source, const char *snapshot, VolumeId *target,
                           GError **error)
{
    gboolean in_use = FALSE;
    gint64 created = 0;
    GError *cause = NULL;
    if (!is_in_use(a, source, target, &in_use, &created, &cause) && !work_is_not_found(cause)) {
        /* A pool that this user may not read is skipped. */
        gboolean elsewhere = !volume_id_same_location_within(source, target) &&
                             g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_PERMISSION_DENIED);
        if (!elsewhere)
            return ignore_or_fail(cause, error);
        g_error_free(cause);
        return TRUE;
    }
    g_clear_error(&cause);
    if (in_use)
        return TRUE;
    Work at = work_at(a, source);
    gboolean there = FALSE;
    if (!work_snapshot_there(&at, source, snapshot, &there, &cause))
        return ignore_or_fail(cause, error);
    if (there)
        add_finding(a, AUDIT_COPY_SNAPSHOT, source, snapshot, created);
    return TRUE;
}

static gboolean check_snapshot(Audit *a, const VolumeId *source, const char *name, GError **error)
{
    g_autoptr(VolumeId) target = copy_snapshot_target(source, name);
    if (target)
        return check_copy(a, source, name, target, error);
    a->report->snapshots++;
    gpointer known = NULL;
    gboolean recorded = g_hash_table_lookup_extended(a->snapshots, name, NULL, &known);
    const SnapshotRecord *of = known;
    if ((recorded && (!of || strcmp(of->source_name, source->name) == 0)) ||
        !is_ours(a->snapshot_prefixes, name))
        return TRUE;
    Work w = work_at(a, source);
    g_autoptr(SnapshotRecord) record = NULL;
    GError *cause = NULL;
    if (!work_find_snapshot(&w, name, &record, &cause))
        return ignore_or_fail(cause, error);
    if ((!record || strcmp(record->source_name, source->name) != 0) &&
        w.ops->snapshot_look(w.session, source, name, w.deadline_us, NULL))
        add_finding(a, AUDIT_SNAPSHOT_WITHOUT_RECORD, source, name, 0);
    return TRUE;
}

static gboolean check_volume(Audit *a, const VolumeId *id, GError **error)
{
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    GError *cause = NULL;
    Work w = work_at(a, id);
    gboolean recorded = g_hash_table_contains(a->records, id->name);
    if (!recorded && !is_ours(a->volume_prefixes, id->name))
        return TRUE;
    a->report->volumes++;
    if (!recorded && !work_find_record(&w, &record, &cause))
        return ignore_or_fail(cause, error);
    if (!recorded && !record) {
        /* A deleted volume of which only snapshots are kept is not found. */
        if (!work_find_volume(&w, &volume, &cause))
            return ignore_or_fail(cause, error);
        if (volume)
            add_finding(a, AUDIT_VOLUME_WITHOUT_RECORD, id, NULL, volume->created);
    }
    if (!w.ops->snapshot_list)
        return TRUE;
    g_autoptr(GPtrArray) names = w.ops->snapshot_list(w.session, id, w.deadline_us, &cause);
    if (!names)
        return ignore_or_fail(cause, error);
    for (guint i = 0; i < names->len; i++) {
        if (!check_snapshot(a, id, names->pdata[i], error))
            return FALSE;
    }
    return TRUE;
}

static gboolean check_volumes(Audit *a, const char *group, GError **error)
{
    g_autoptr(VolumeId) where = id_of(a, group, NULL);
    Work w = work_at(a, where);
    g_autoptr(GPtrArray) names = w.ops->volume_list(w.session, where, w.deadline_us, error);
    if (!names)
        return FALSE;
    g_ptr_array_sort(names, work_compare_names);
    for (guint i = 0; i < names->len; i++) {
        g_autoptr(VolumeId) id = id_of(a, group, names->pdata[i]);
        if (!check_volume(a, id, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean check_leftovers(Audit *a, GError **error)
{
    Work w = work_at(a, a->w.id);
    if (!w.ops->leftovers)
        return TRUE;
    g_autoptr(GPtrArray) names = w.ops->leftovers(w.session, w.deadline_us, error);
    if (!names)
        return FALSE;
    g_ptr_array_sort(names, work_compare_names);
    for (guint i = 0; i < names->len; i++) {
        g_autoptr(VolumeId) id = id_of(a, NULL, names->pdata[i]);
        add_finding(a, AUDIT_LEFTOVER, id, NULL, 0);
    }
    return TRUE;
}

/* Checks that the snapshot of a record exists. */
static gboolean check_snapshot_record(Audit *a, const char *name, const SnapshotRecord *record,
                                      GError **error)
{
    g_autoptr(VolumeId) source = id_of(a, record->source_group, record->source_name);
    Work w = work_at(a, source);
    g_autoptr(SnapshotRecord) again = NULL;
    GError *cause = NULL;
    if (w.ops->snapshot_look(w.session, source, name, w.deadline_us, &cause))
        return TRUE;
    if (!work_is_not_found(cause))
        return ignore_or_fail(cause, error);
    g_clear_error(&cause);
    if (!work_find_snapshot(&w, name, &again, &cause))
        return ignore_or_fail(cause, error);
    if (again)
        add_finding(a, AUDIT_RECORD_WITHOUT_SNAPSHOT, source, name, again->created);
    return TRUE;
}

static gboolean audit_location(Audit *a, GError **error)
{
    if (!read_records(a, error))
        return FALSE;
    GHashTableIter iter;
    gpointer name, record;
    g_hash_table_iter_init(&iter, a->records);
    while (g_hash_table_iter_next(&iter, &name, &record)) {
        if (record && !check_record(a, name, record, error))
            return FALSE;
    }
    g_hash_table_iter_init(&iter, a->groups);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (!check_volumes(a, name, error))
            return FALSE;
    }
    g_hash_table_iter_init(&iter, a->snapshots);
    while (g_hash_table_iter_next(&iter, &name, &record)) {
        if (record && !check_snapshot_record(a, name, record, error))
            return FALSE;
    }
    return check_leftovers(a, error);
}

gboolean provision_audit(const Backend *backend, const VolumeId *location, const Secrets *secrets,
                         gint64 step_ms, AuditReport *report, GError **error)
{
    work_auto Work w = {0};
    const ProvisionTarget at = {backend, location, secrets,
                                g_get_monotonic_time() + step_ms * 1000};
    if (!work_open(&w, &at, error))
        return FALSE;
    Audit a = {.w = w, .step_ms = step_ms, .report = report};
    g_autoptr(GHashTable) records =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_record);
    g_autoptr(GHashTable) snapshots =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_snapshot_record);
    g_autoptr(GHashTable) volume_prefixes = new_set();
    g_autoptr(GHashTable) snapshot_prefixes = new_set();
    g_autoptr(GHashTable) groups = new_set();
    a.records = records;
    a.snapshots = snapshots;
    a.volume_prefixes = volume_prefixes;
    a.snapshot_prefixes = snapshot_prefixes;
    a.groups = groups;
    g_hash_table_add(volume_prefixes, g_strdup(PARAMS_DEFAULT_PREFIX));
    g_hash_table_add(snapshot_prefixes, g_strdup(SNAPSHOT_DEFAULT_PREFIX));
    g_hash_table_add(snapshot_prefixes, g_strdup(GROUP_DEFAULT_PREFIX));
    g_hash_table_add(groups, g_strdup(location->group ? location->group : ""));
    return audit_location(&a, error);
}
