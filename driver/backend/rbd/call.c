/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs calls, and turns answers of librbd and librados into error messages. All files of RBD use
 * it.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/ceph/internal.h"
#include "driver/backend/rbd/internal.h"

RbdCall *rbd_call_new(const RbdLocation *location, const char *image, const char *snapshot)
{
    RbdCall *call = g_new0(RbdCall, 1);
    call->at.conn = ceph_conn_ref(location->conn);
    call->at.pool = g_strdup(location->pool);
    call->at.nspace = g_strdup(location->nspace);
    call->image = g_strdup(image);
    call->snapshot = g_strdup(snapshot);
    return call;
}

void rbd_call_free(RbdCall *call)
{
    if (!call)
        return;
    ceph_conn_unref(call->at.conn);
    if (call->options)
        rbd_image_options_destroy(call->options);
    char *const texts[] = {call->at.pool,       call->at.nspace, call->image,
                           call->snapshot,      call->source,    call->source_pool,
                           call->source_nspace, call->text,      call->data_pool};
    for (guint i = 0; i < G_N_ELEMENTS(texts); i++)
        g_free(texts[i]);
    g_strfreev(call->images);
    g_strfreev(call->snapshots);
    g_clear_error(&call->error);
    backend_volume_free(call->volume);
    if (call->names)
        g_ptr_array_unref(call->names);
    g_free(call);
}

void rbd_call_on_image(RbdCall *call, int (*use)(RbdCall *call, rbd_image_t image), int fine,
                       const char *what)
{
    rbd_image_t image;
    int rc = rbd_open(call->io, call->image, &image, NULL);
    if (rc == -ENOENT) {
        rbd_call_missing(call);
        return;
    }
    if (rc == 0) {
        rc = use(call, image);
        rbd_close(image);
        if (rc == fine)
            rc = 0;
    }
    if (rc != 0)
        rbd_call_fail(call, rc, what);
}

/* A call as a job of ceph_conn_run(). */
typedef struct Job {
    RbdCall *call;
    void (*run)(RbdCall *call);
} Job;

static void job_run(void *data)
{
    Job *job = data;
    RbdCall *call = job->call;
    int rc = rados_ioctx_create(call->at.conn->cluster, call->at.pool, &call->io);
    if (rc == -ENOENT) {
        rbd_call_refuse(call, HEARTH_ERROR_INVALID_ARGUMENT,
                        "pool \"%s\": cluster %s has no such pool; make one for RBD, or correct "
                        "the class",
                        call->at.pool, call->at.conn->cluster_id);
        return;
    }
    if (rc != 0) {
        rbd_call_fail(call, rc, "opening the pool of");
        return;
    }
    rados_ioctx_set_namespace(call->io, call->at.nspace);
    /* A full pool answers with an error, instead of letting the call wait for space. */
    rados_set_pool_full_try(call->io);
    job->run(call);
    rados_ioctx_destroy(call->io);
}

static void job_free(void *data)
{
    Job *job = data;
    rbd_call_free(job->call);
    g_free(job);
}

gboolean rbd_call_run(RbdCall *call, const char *what, void (*run)(RbdCall *), gint64 limit_ms,
                      gint64 deadline_us, GError **error)
{
    g_autofree char *spec = rbd_spec(&call->at, call->image);
    g_autofree char *text = g_strdup_printf("%s %s", what, spec);
    Job *job = g_new0(Job, 1);
    job->call = call;
    job->run = run;
    call->deadline_us = deadline_us;
    const CephOperation operation = {what, text, limit_ms};
    const BoundedJob work = {job_run, job, job_free};
    if (!ceph_conn_run(call->at.conn, &operation, &work, deadline_us, error))
        return FALSE;
    g_free(job);
    if (!call->error)
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&call->error));
    rbd_call_free(call);
    return FALSE;
}

gboolean rbd_call_do(RbdCall *call, const char *what, void (*run)(RbdCall *), gint64 limit_ms,
                     gint64 deadline_us, GError **error)
{
    gboolean good = rbd_call_run(call, what, run, limit_ms, deadline_us, error);
    if (good)
        rbd_call_free(call);
    return good;
}

char *rbd_spec(const RbdLocation *location, const char *image)
{
    const char *parts[4];
    guint n = 0;
    parts[n++] = location->pool;
    if (*location->nspace)
        parts[n++] = location->nspace;
    if (image)
        parts[n++] = image;
    parts[n] = NULL;
    return g_strjoinv("/", (char **)parts);
}

typedef struct Meaning {
    int number;
    HearthError code;
    const char *fix;
} Meaning;

static const Meaning meanings[] = {
    {EACCES, HEARTH_ERROR_PERMISSION_DENIED,
     "give the user the capabilities in the manual, hearth-csi(8): mon and mgr \"profile rbd\", "
     "osd "
     "\"profile rbd\" for the pool, the data pool and the namespace"},
    {EPERM, HEARTH_ERROR_PERMISSION_DENIED,
     "give the user the capabilities in the manual, hearth-csi(8): mon and mgr \"profile rbd\", "
     "osd "
     "\"profile rbd\" for the pool, the data pool and the namespace"},
    {EOPNOTSUPP, HEARTH_ERROR_INVALID_ARGUMENT,
     "the pool is erasure-coded, or of a release without this: give a replicated pool as \"pool\", "
     "and an erasure-coded one with overwrites allowed as \"dataPool\""},
    {ENOSYS, HEARTH_ERROR_INVALID_ARGUMENT,
     "the cluster does not know one of the imageFeatures, or layering is missing for a copy"},
    {EINVAL, HEARTH_ERROR_INVALID_ARGUMENT,
     "librbd or the pool refuses the size, imageFeatures, striping or objectSize asked for"},
    {EDOM, HEARTH_ERROR_INVALID_ARGUMENT, "objectSize must be a power of two, 4 KiB to 32 MiB"},
    {EFBIG, HEARTH_ERROR_OUT_OF_RANGE, "the image is too large for its object-map; ask for less"},
    {ENOSPC, HEARTH_ERROR_RESOURCE_EXHAUSTED, "the cluster is full; add disks or delete data"},
    {EDQUOT, HEARTH_ERROR_RESOURCE_EXHAUSTED,
     "the pool's quota is used up; see `ceph osd pool get-quota`"},
    {EBUSY, HEARTH_ERROR_FAILED_PRECONDITION,
     "it is in use; `rbd status` lists by whom. Unpublish it there first"},
    {EMLINK, HEARTH_ERROR_FAILED_PRECONDITION,
     "it is in an RBD group; take it out with `rbd group image rm`"},
    {EROFS, HEARTH_ERROR_UNAVAILABLE, "another client holds its lock; try again"},
    {EAGAIN, HEARTH_ERROR_ABORTED, "try again"},
    {ETIMEDOUT, HEARTH_ERROR_UNAVAILABLE, "check `ceph status`, then try again"},
    {ESHUTDOWN, HEARTH_ERROR_UNAVAILABLE, "the cluster shut this client out; try again"},
    {ENOTCONN, HEARTH_ERROR_UNAVAILABLE, "try again"},
    {EIO, HEARTH_ERROR_UNAVAILABLE, "check `ceph status`"},
};

static const Meaning *meaning_of(int rc)
{
    static const Meaning unknown = {0, HEARTH_ERROR_INTERNAL, ""};
    for (guint i = 0; i < G_N_ELEMENTS(meanings); i++) {
        if (meanings[i].number == -rc)
            return &meanings[i];
    }
    return &unknown;
}

gboolean rbd_call_fail(RbdCall *call, int rc, const char *what)
{
    if (call->error)
        return FALSE;
    ceph_conn_note(call->at.conn, rc);
    const Meaning *meaning = meaning_of(rc);
    g_autofree char *spec = rbd_spec(&call->at, call->image);
    return hearth_fail(&call->error, meaning->code, "%s %s as client.%s on cluster %s: %s%s%s",
                       what, spec, call->at.conn->user, call->at.conn->cluster_id, g_strerror(-rc),
                       *meaning->fix ? "; " : "", meaning->fix);
}

gboolean rbd_call_refuse(RbdCall *call, HearthError code, const char *format, ...)
{
    if (call->error)
        return FALSE;
    va_list args;
    va_start(args, format);
    call->error = g_error_new_valist(HEARTH_ERROR, (int)code, format, args);
    va_end(args);
    return FALSE;
}

gboolean rbd_call_missing(RbdCall *call)
{
    g_autofree char *spec = rbd_spec(&call->at, call->image);
    return rbd_call_refuse(call, HEARTH_ERROR_NOT_FOUND, "image %s does not exist", spec);
}
