/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands to monitors and mgr, and what Ceph's answers mean as errors. A command is a job that
 * owns copies of what it needs, because its thread may outlive the request; the answer is moved out
 * of the job when it came in time.
 */
#include "driver/backend/ceph/internal.h"
#include <errno.h>
#include <string.h>

/* What an answer takes at most where all is well, with much to spare. */
#define MON_MS (15 * 1000)
#define MGR_MS (60 * 1000)

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
    const CephOperation operation = {what, what, target == CEPH_MON ? MON_MS : MGR_MS};
    const BoundedJob work = {command_run, job, command_free};
    if (!ceph_conn_run(conn, &operation, &work, deadline_us, error))
        return FALSE;
    *reply = job->reply;
    job->reply = (CephReply){0};
    command_free(job);
    ceph_conn_note(conn, reply->rc);
    return TRUE;
}

static const struct {
    int number;
    HearthError code;
    const char *fix; /* appended to the message */
} meanings[] = {
    {EACCES, HEARTH_ERROR_PERMISSION_DENIED,
     "; give the user the capabilities in the manual, hearth-csi(8)"},
    {EPERM, HEARTH_ERROR_PERMISSION_DENIED,
     "; give the user the capabilities in the manual, hearth-csi(8)"},
    {EINVAL, HEARTH_ERROR_INVALID_ARGUMENT, ""},
    {ENOSPC, HEARTH_ERROR_RESOURCE_EXHAUSTED, "; the pool is full"},
    {EDQUOT, HEARTH_ERROR_RESOURCE_EXHAUSTED, "; the pool is full"},
    {ENOTEMPTY, HEARTH_ERROR_FAILED_PRECONDITION, "; remove its snapshots first"},
    {EOPNOTSUPP, HEARTH_ERROR_FAILED_PRECONDITION, "; enable it: `ceph mgr module enable volumes`"},
    {ENXIO, HEARTH_ERROR_FAILED_PRECONDITION, ""},
    {EAGAIN, HEARTH_ERROR_ABORTED, "; try again"},
    {EBUSY, HEARTH_ERROR_ABORTED, "; try again"},
    {ETIMEDOUT, HEARTH_ERROR_UNAVAILABLE, "; try again"},
    {ESHUTDOWN, HEARTH_ERROR_UNAVAILABLE, "; try again"},
    {ENOTCONN, HEARTH_ERROR_UNAVAILABLE, "; try again"},
    {ECONNREFUSED, HEARTH_ERROR_UNAVAILABLE, ""},
    {EIO, HEARTH_ERROR_UNAVAILABLE, ""},
};

void ceph_conn_fail(GError **error, CephConn *conn, int rc, const char *what, const char *status)
{
    g_autofree char *line = g_strdup(status ? status : "");
    g_strdelimit(g_strstrip(line), "\r\n", ' ');
    if (strlen(line) > 300)
        line[300] = '\0';
    /* What the mgr's volumes module makes of a pool that is full. */
    if (rc == -EINVAL && strstr(line, "No space left on device"))
        rc = -ENOSPC;
    HearthError code = HEARTH_ERROR_INTERNAL;
    const char *fix = "";
    for (guint i = 0; i < G_N_ELEMENTS(meanings); i++) {
        if (meanings[i].number == -rc) {
            code = meanings[i].code;
            fix = meanings[i].fix;
        }
    }
    hearth_fail(error, code, "%s as client.%s on cluster %s: %s%s%s%s", what, conn->user,
                conn->cluster_id, g_strerror(-rc), *line ? ": " : "", line, fix);
}
