/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocking calls on a connection. Each is a job that owns copies of what it needs, since its
 * thread may outlive the request; the answer is moved out of the job when it came in time.
 */
#include "driver/backend/ceph/internal.h"
#include <errno.h>
#include <string.h>

/* What an answer takes at most where all is well, with much to spare. */
#define MON_MS (15 * 1000)
#define MGR_MS (60 * 1000)
#define OBJECT_MS (20 * 1000)
#define LIST_MS (60 * 1000)

void ceph_reply_clear(CephReply *reply)
{
    g_free(reply->output);
    g_free(reply->status);
    *reply = (CephReply){0};
}

typedef struct CommandJob {
    CephConn *conn;
    CephTarget target;
    char *command; /* of jansson, malloc() */
    CephReply reply;
} CommandJob;

static char *take_buffer(char *buffer, size_t length)
{
    char *text = buffer ? g_strndup(buffer, length) : g_strdup("");
    rados_buffer_free(buffer);
    return text;
}

static void command_run(void *data)
{
    CommandJob *job = data;
    const char *command[] = {job->command};
    char *output = NULL, *status = NULL;
    size_t output_length = 0, status_length = 0;
    job->reply.rc = (job->target == CEPH_MON ? rados_mon_command : rados_mgr_command)(
        job->conn->cluster, command, 1, NULL, 0, &output, &output_length, &status, &status_length);
    job->reply.output = take_buffer(output, output_length);
    job->reply.status = take_buffer(status, status_length);
}

static void command_free(void *data)
{
    CommandJob *job = data;
    ceph_conn_unref(job->conn);
    free(job->command);
    ceph_reply_clear(&job->reply);
    g_free(job);
}

/* The cluster evicted this client or the connection was shut down: the next request makes another.
 */
void ceph_conn_note(CephConn *conn, int rc)
{
    if (rc == -ESHUTDOWN || rc == -ENOTCONN)
        atomic_store(&conn->broken, TRUE);
}

gboolean ceph_conn_command(CephConn *conn, CephTarget target, const json_t *command,
                           CephReply *reply, gint64 deadline_us, GError **error)
{
    const char *what = json_string_value(json_object_get(command, "prefix"));
    CommandJob *job = g_new0(CommandJob, 1);
    job->conn = ceph_conn_ref(conn);
    job->target = target;
    job->command = json_dumps(command, JSON_COMPACT);
    if (!ceph_conn_run(conn, what, what, command_run, job, command_free,
                       target == CEPH_MON ? MON_MS : MGR_MS, deadline_us, error))
        return FALSE;
    *reply = job->reply;
    job->reply = (CephReply){0};
    command_free(job);
    ceph_conn_note(conn, reply->rc);
    return TRUE;
}

typedef struct ObjectJob {
    CephConn *conn;
    CephObjectOp op;
    char *pool, *nspace, *object, *text;
    gsize max, length;
    char *data;
    int rc;
} ObjectJob;

static int object_create(rados_ioctx_t io, const ObjectJob *job)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_write_full(op, job->text, strlen(job->text));
    int rc = rados_write_op_operate(op, io, job->object, NULL, 0);
    rados_release_write_op(op);
    return rc;
}

static int object_read(rados_ioctx_t io, ObjectJob *job)
{
    /* One byte more than allowed shows what is too large, one for the NUL. */
    job->data = g_malloc0(job->max + 2);
    int rc = rados_read(io, job->object, job->data, job->max + 1, 0);
    if (rc < 0)
        return rc;
    job->length = (gsize)rc;
    return job->length > job->max ? -EFBIG : 0;
}

static void object_run(void *data)
{
    ObjectJob *job = data;
    rados_ioctx_t io;
    job->rc = rados_ioctx_create(job->conn->cluster, job->pool, &io);
    if (job->rc != 0) {
        /* A pool that is not there must not look like an object that is not. */
        if (job->rc == -ENOENT)
            job->rc = -ENXIO;
        return;
    }
    rados_ioctx_set_namespace(io, job->nspace);
    switch (job->op) {
    case CEPH_OBJECT_CREATE:
        job->rc = object_create(io, job);
        break;
    case CEPH_OBJECT_READ:
        job->rc = object_read(io, job);
        break;
    case CEPH_OBJECT_REMOVE:
        job->rc = rados_remove(io, job->object);
        break;
    }
    rados_ioctx_destroy(io);
}

static void object_free(void *data)
{
    ObjectJob *job = data;
    ceph_conn_unref(job->conn);
    g_free(job->pool);
    g_free(job->nspace);
    g_free(job->object);
    g_free(job->text);
    g_free(job->data);
    g_free(job);
}

gboolean ceph_conn_object(CephConn *conn, CephObjectOp op, const char *pool, const char *nspace,
                          const char *object, const char *text, gsize max, int *rc, char **data,
                          gsize *length, gint64 deadline_us, GError **error)
{
    static const char *const verbs[] = {[CEPH_OBJECT_CREATE] = "creating",
                                        [CEPH_OBJECT_READ] = "reading",
                                        [CEPH_OBJECT_REMOVE] = "removing"};
    ObjectJob *job = g_new0(ObjectJob, 1);
    job->conn = ceph_conn_ref(conn);
    job->op = op;
    job->pool = g_strdup(pool);
    job->nspace = g_strdup(nspace);
    job->object = g_strdup(object);
    job->text = g_strdup(text);
    job->max = max;
    g_autofree char *what = g_strdup_printf("%s record %s in pool %s", verbs[op], object, pool);
    if (!ceph_conn_run(conn, "record", what, object_run, job, object_free, OBJECT_MS, deadline_us,
                       error))
        return FALSE;
    *rc = job->rc;
    if (data && job->rc == 0) {
        *data = g_steal_pointer(&job->data);
        *length = job->length;
    }
    object_free(job);
    ceph_conn_note(conn, *rc);
    return TRUE;
}

typedef struct ListJob {
    CephConn *conn;
    char *pool, *nspace;
    GPtrArray *names;
    int rc;
} ListJob;

static void list_run(void *data)
{
    ListJob *job = data;
    rados_ioctx_t io;
    job->rc = rados_ioctx_create(job->conn->cluster, job->pool, &io);
    if (job->rc != 0)
        return;
    rados_ioctx_set_namespace(io, job->nspace);
    rados_list_ctx_t list;
    job->rc = rados_nobjects_list_open(io, &list);
    if (job->rc == 0) {
        const char *name;
        while ((job->rc = rados_nobjects_list_next(list, &name, NULL, NULL)) == 0)
            g_ptr_array_add(job->names, g_strdup(name));
        rados_nobjects_list_close(list);
        if (job->rc == -ENOENT) /* the end */
            job->rc = 0;
    }
    rados_ioctx_destroy(io);
}

static void list_free(void *data)
{
    ListJob *job = data;
    ceph_conn_unref(job->conn);
    g_free(job->pool);
    g_free(job->nspace);
    if (job->names)
        g_ptr_array_unref(job->names);
    g_free(job);
}

gboolean ceph_conn_list(CephConn *conn, const char *pool, const char *nspace, GPtrArray **names,
                        int *rc, gint64 deadline_us, GError **error)
{
    ListJob *job = g_new0(ListJob, 1);
    job->conn = ceph_conn_ref(conn);
    job->pool = g_strdup(pool);
    job->nspace = g_strdup(nspace);
    job->names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *what = g_strdup_printf("listing records in pool %s", pool);
    if (!ceph_conn_run(conn, "records", what, list_run, job, list_free, LIST_MS, deadline_us,
                       error))
        return FALSE;
    *rc = job->rc;
    if (job->rc == 0)
        *names = g_steal_pointer(&job->names);
    list_free(job);
    ceph_conn_note(conn, *rc);
    return TRUE;
}

static HearthError code_of(int rc)
{
    switch (-rc) {
    case EACCES:
    case EPERM:
        return HEARTH_ERROR_PERMISSION_DENIED;
    case EINVAL:
        return HEARTH_ERROR_INVALID_ARGUMENT;
    case ENOSPC:
    case EDQUOT:
        return HEARTH_ERROR_RESOURCE_EXHAUSTED;
    case ENOTEMPTY:
    case EOPNOTSUPP:
    case ENXIO:
        return HEARTH_ERROR_FAILED_PRECONDITION;
    case EAGAIN:
    case EBUSY:
        return HEARTH_ERROR_ABORTED;
    case ETIMEDOUT:
    case ESHUTDOWN:
    case ENOTCONN:
    case ECONNREFUSED:
    case EIO:
        return HEARTH_ERROR_UNAVAILABLE;
    default:
        return HEARTH_ERROR_INTERNAL;
    }
}

static const char *mend_of(int rc)
{
    switch (-rc) {
    case EACCES:
    case EPERM:
        return "; give the user the capabilities in the manual, hearth-csi(8)";
    case EOPNOTSUPP:
        return "; enable it: `ceph mgr module enable volumes`";
    case ENOSPC:
    case EDQUOT:
        return "; the pool is full";
    case ENOTEMPTY:
        return "; remove its snapshots first";
    case EAGAIN:
    case EBUSY:
    case ETIMEDOUT:
    case ESHUTDOWN:
    case ENOTCONN:
        return "; try again";
    default:
        return "";
    }
}

void ceph_conn_fail(GError **error, CephConn *conn, int rc, const char *what, const char *status)
{
    g_autofree char *line = g_strdup(status ? status : "");
    g_strdelimit(g_strstrip(line), "\r\n", ' ');
    if (strlen(line) > 300)
        line[300] = '\0';
    /* What the mgr's volumes module makes of a pool that is full. */
    if (rc == -EINVAL && strstr(line, "No space left on device"))
        rc = -ENOSPC;
    g_set_error(error, HEARTH_ERROR, code_of(rc), "%s as client.%s on cluster %s: %s%s%s%s", what,
                conn->user, conn->cluster_id, g_strerror(-rc), *line ? ": " : "", line,
                mend_of(rc));
}
