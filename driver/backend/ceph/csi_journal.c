/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function is one job at a pool: it reads or changes the omaps of one handle. An entry of a
 * request is removed only if it still leads to the handle's UUID, because a later volume may have
 * the name. Both backends call this.
 */
#include "driver/backend/ceph/csi_journal.h"
#include <errno.h>
#include <string.h>

#define COMMON "csi."
#define IMAGE_KEY COMMON "imagename"
#define POOL_KEY COMMON "journalpool"
#define SOURCE_KEY COMMON "source"
#define KMS_KEY COMMON "volume.encryptKMS"
#define BACKING_KEY COMMON "volume.backingsnapshotid"
#define REFERENCES "rt-backingsnapshot-"
/* An object of a volume has ten keys at most. */
#define KEYS_MAX 64
#define JOURNAL_MS (20 * 1000)
#define READING "reading ceph-csi's journal of"
#define REMOVING "removing from ceph-csi's journal"

static const struct {
    const char *directory, *prefix, *name_key, *image_prefix;
} kinds[] = {
    [JOURNAL_VOLUME] = {COMMON "volumes.default", COMMON "volume.", COMMON "volname", "csi-vol-"},
    [JOURNAL_SNAPSHOT] = {COMMON "snaps.default", COMMON "snap.", COMMON "snapname", "csi-snap-"},
};

static void take_value(JournalEntry *entry, JournalKind kind, const char *key, const char *value)
{
    if (strcmp(key, kinds[kind].name_key) == 0)
        entry->request_name = g_strdup(value);
    else if (strcmp(key, IMAGE_KEY) == 0)
        entry->name = g_strdup(value);
    else if (strcmp(key, SOURCE_KEY) == 0)
        entry->source = g_strdup(value);
    else if (strcmp(key, POOL_KEY) == 0)
        entry->directory_pool = (gint64)g_ascii_strtoull(value, NULL, 16);
    else if (strcmp(key, KMS_KEY) == 0)
        entry->encrypted = *value != '\0';
    else if (strcmp(key, BACKING_KEY) == 0)
        entry->shows_snapshot = *value != '\0';
}

typedef struct FindJob {
    PoolJob job;
    char *object;
    char *references; /* the object that is there once the snapshot was shown, or NULL */
    GPtrArray *pairs; /* keys and their values, in turn; NULL: there is no such object */
    gboolean shown;
} FindJob;

static int read_pairs(rados_ioctx_t io, const char *object, GPtrArray **pairs)
{
    rados_read_op_t op = rados_create_read_op();
    rados_omap_iter_t iter = NULL;
    unsigned char more = 0;
    int rc_get = 0;
    rados_read_op_omap_get_vals2(op, "", COMMON, KEYS_MAX, &iter, &more, &rc_get);
    int rc = rados_read_op_operate(op, io, object, 0);
    if (rc == 0)
        rc = rc_get;
    if (rc == 0)
        *pairs = g_ptr_array_new_with_free_func(g_free);
    while (rc == 0) {
        char *key = NULL, *value = NULL;
        size_t key_length = 0, length = 0;
        if (rados_omap_get_next2(iter, &key, &value, &key_length, &length) != 0 || !key)
            break;
        g_ptr_array_add(*pairs, g_strndup(key, key_length));
        g_ptr_array_add(*pairs, g_strndup(value, length));
    }
    if (iter)
        rados_omap_get_end(iter);
    rados_release_read_op(op);
    return rc;
}

static int find_run(PoolJob *data, rados_ioctx_t io)
{
    FindJob *job = (FindJob *)data;
    int rc = read_pairs(io, job->object, &job->pairs);
    if (rc == 0 && job->references) {
        rc = rados_stat(io, job->references, NULL, NULL);
        job->shown = rc == 0;
    }
    return rc == -ENOENT ? 0 : rc;
}

static void find_clear(PoolJob *data)
{
    FindJob *job = (FindJob *)data;
    g_free(job->object);
    g_free(job->references);
    g_clear_pointer(&job->pairs, g_ptr_array_unref);
}

/* Sets the error for what a job has answered other than 0. Frees the job. */
static gboolean end_job(PoolJob *job, const char *what, GError **error)
{
    gboolean good = job->rc == 0;
    if (!good)
        ceph_conn_fail(error, job->conn, job->rc, what, NULL);
    pool_job_free(job);
    return good;
}

/* "reading ceph-csi's journal of POOL[/NAMESPACE]/OBJECT", the caller's. */
static char *describe_work(const char *verb, const CephPool *at, const char *object)
{
    return g_strdup_printf("%s %s%s%s/%s", verb, at->pool, *at->nspace ? "/" : "", at->nspace,
                           object);
}

static JournalEntry *entry_of_pairs(JournalKind kind, const GPtrArray *pairs, const char *uuid)
{
    JournalEntry *entry = g_new0(JournalEntry, 1);
    entry->directory_pool = -1;
    for (guint i = 0; i + 1 < pairs->len; i += 2)
        take_value(entry, kind, pairs->pdata[i], pairs->pdata[i + 1]);
    if (!entry->name)
        entry->name = g_strconcat(kinds[kind].image_prefix, uuid, NULL);
    return entry;
}

gboolean ceph_csi_journal_find(const CephPool *at, JournalKind kind, const char *handle,
                               JournalEntry **entry, gint64 deadline_us, GError **error)
{
    g_autoptr(AdoptedId) id = adopted_id_decode(handle);
    FindJob *job = g_new0(FindJob, 1);
    job->job.run = find_run;
    job->job.clear = find_clear;
    job->object = g_strconcat(kinds[kind].prefix, id->uuid, NULL);
    if (kind == JOURNAL_SNAPSHOT)
        job->references = g_strconcat(REFERENCES, handle, NULL);
    *entry = NULL;
    g_autofree char *what = describe_work(READING, at, job->object);
    const CephOperation reading = {READING, what, JOURNAL_MS};
    if (!pool_job_run(&job->job, at, &reading, deadline_us, error))
        return FALSE;
    if (job->job.rc == 0 && job->pairs) {
        *entry = entry_of_pairs(kind, job->pairs, id->uuid);
        (*entry)->shown = job->shown;
    }
    return end_job(&job->job, what, error);
}

/* The value of a key; NULL when there is none. */
static int read_key(rados_ioctx_t io, const char *object, const char *key, char **value)
{
    rados_read_op_t op = rados_create_read_op();
    rados_omap_iter_t iter = NULL;
    size_t key_length = strlen(key), length = 0;
    char *found_key = NULL, *found = NULL;
    int rc_get = 0;
    *value = NULL;
    rados_read_op_omap_get_vals_by_keys2(op, &key, 1, &key_length, &iter, &rc_get);
    int rc = rados_read_op_operate(op, io, object, 0);
    if (rc == 0)
        rc = rc_get;
    if (rc == 0 && rados_omap_get_next2(iter, &found_key, &found, &key_length, &length) == 0 &&
        found_key)
        *value = g_strndup(found, length);
    if (iter)
        rados_omap_get_end(iter);
    rados_release_read_op(op);
    return rc == -ENOENT ? 0 : rc;
}

/* The key of the request, if it leads to this UUID: a later volume may have the name by now. */
static int remove_key(rados_ioctx_t io, const char *directory, const char *key, const char *uuid)
{
    g_autofree char *value = NULL;
    int rc = read_key(io, directory, key, &value), unequal = 0;
    if (rc != 0 || !value || !g_str_has_suffix(value, uuid))
        return rc;
    size_t key_length = strlen(key);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_cmp2(op, key, LIBRADOS_CMPXATTR_OP_EQ, value, key_length, strlen(value),
                             &unequal);
    rados_write_op_omap_rm_keys2(op, &key, &key_length, 1);
    rc = rados_write_op_operate(op, io, directory, NULL, 0);
    rados_release_write_op(op);
    return rc == -ENOENT || rc == -ECANCELED ? 0 : rc;
}

typedef struct ForgetJob {
    PoolJob job;
    const char *directory; /* a constant */
    char *object, *uuid;
    char *key;             /* of the request, in the directory; NULL: not known */
    gint64 directory_pool; /* its number; -1: the job's own */
} ForgetJob;

/* Removes the request's key; a directory whose pool is gone has none. */
static int forget_request(const ForgetJob *job, rados_ioctx_t io)
{
    if (job->directory_pool < 0)
        return remove_key(io, job->directory, job->key, job->uuid);
    rados_ioctx_t other;
    int rc = rados_ioctx_create2(rados_ioctx_get_cluster(io), job->directory_pool, &other);
    if (rc != 0)
        return rc == -ENOENT ? 0 : rc;
    rados_ioctx_set_namespace(other, job->job.nspace);
    rc = remove_key(other, job->directory, job->key, job->uuid);
    rados_ioctx_destroy(other);
    return rc;
}

/* Removes the key first: after a crash the handle still leads to the object. */
static int forget_run(PoolJob *data, rados_ioctx_t io)
{
    const ForgetJob *job = (const ForgetJob *)data;
    int rc = job->key ? forget_request(job, io) : 0;
    if (rc == 0)
        rc = rados_remove(io, job->object);
    return rc == -ENOENT ? 0 : rc;
}

static void forget_clear(PoolJob *data)
{
    ForgetJob *job = (ForgetJob *)data;
    g_free(job->object);
    g_free(job->uuid);
    g_free(job->key);
}

gboolean ceph_csi_journal_forget(const CephPool *at, JournalKind kind, const char *handle,
                                 const JournalEntry *entry, gint64 deadline_us, GError **error)
{
    g_autoptr(AdoptedId) id = adopted_id_decode(handle);
    ForgetJob *job = g_new0(ForgetJob, 1);
    job->job.run = forget_run;
    job->job.clear = forget_clear;
    job->directory = kinds[kind].directory;
    job->object = g_strconcat(kinds[kind].prefix, id->uuid, NULL);
    job->uuid = g_strdup(id->uuid);
    if (entry->request_name)
        job->key = g_strconcat(kinds[kind].prefix, entry->request_name, NULL);
    job->directory_pool = entry->directory_pool;
    g_autofree char *what = describe_work(REMOVING, at, job->object);
    const CephOperation removing = {REMOVING, what, JOURNAL_MS};
    return pool_job_run(&job->job, at, &removing, deadline_us, error) &&
           end_job(&job->job, what, error);
}
