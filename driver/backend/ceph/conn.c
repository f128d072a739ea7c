/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cache of connections. A connection is found by a hash of cluster, monitors, user and key: a
 * changed Secret or config.json makes a new one, and the old one is closed after IDLE_US without
 * use. The key itself is given to librados and not kept. The backends of both types call this.
 *
 * Locks: CephConns.lock guards the table and the fields said in internal.h; it is not held
 * across any call of librados.
 */
#include "driver/backend/ceph/internal.h"
#include "driver/backend/ceph/net_namespace.h"
#include "driver/backend/ceph/monitor_probe.h"
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#define CONNECT_SECONDS 10
#define GREETING_SECONDS 3
#define IDLE_US (10 * 60 * G_USEC_PER_SEC)
#define MAX_CONNECTIONS 32
#define MAX_STUCK 64

struct CephConns {
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a state changed */
    GHashTable *table;      /* key -> CephConn, a reference each */
};

CephConns *ceph_conns_new(void)
{
    CephConns *c = g_new0(CephConns, 1);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&c->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    c->table = g_hash_table_new(g_str_hash, g_str_equal);
    return c;
}

void ceph_conns_free(CephConns *c)
{
    if (!c)
        return;
    GHashTableIter iter;
    gpointer conn;
    g_hash_table_iter_init(&iter, c->table);
    while (g_hash_table_iter_next(&iter, NULL, &conn)) {
        g_hash_table_iter_remove(&iter);
        ceph_conn_unref(conn);
    }
    g_hash_table_unref(c->table);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    g_free(c);
}

CephConn *ceph_conn_ref(CephConn *conn)
{
    atomic_fetch_add(&conn->references, 1);
    return conn;
}

void ceph_conn_unref(CephConn *conn)
{
    if (!conn || atomic_fetch_sub(&conn->references, 1) != 1)
        return;
    if (conn->cluster)
        rados_shutdown(conn->cluster);
    g_clear_error(&conn->failure);
    bounded_free(conn->bounded);
    bounded_free(conn->checks);
    g_hash_table_unref(conn->memos);
    pthread_mutex_destroy(&conn->memo_lock);
    g_free(conn->cluster_id);
    g_free(conn->user);
    g_free(conn->monitors);
    g_free(conn->key);
    g_free(conn);
}

const char *ceph_conn_user(const CephConn *conn)
{
    return conn->user;
}

/* SHA-256 over the parts with their ends, so that no two lists are the same text. */
static char *table_key(const ClusterConfig *cluster, const char *monitors, const Secrets *secrets)
{
    const char *parts[] = {cluster->cluster_id, monitors, secrets->user, secrets->key,
                           cluster->net_namespace ? cluster->net_namespace : ""};
    g_autoptr(GChecksum) sum = g_checksum_new(G_CHECKSUM_SHA256);
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++)
        g_checksum_update(sum, (const guchar *)parts[i], (gssize)strlen(parts[i]) + 1);
    for (char **text = cluster->ceph_conf; text && *text; text++)
        g_checksum_update(sum, (const guchar *)*text, (gssize)strlen(*text) + 1);
    return g_strdup(g_checksum_get_string(sum));
}

static gboolean set_option(CephConn *conn, const char *name, const char *value, GError **error)
{
    int rc = rados_conf_set(conn->cluster, name, value);
    if (rc != 0)
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "librados option %s: %s", name, g_strerror(-rc));
    return rc == 0;
}

/* An option of the administrator's (cephConf); config.json was checked for options of ours. */
static gboolean set_cluster_option(CephConn *conn, const char *name, const char *value,
                                   GError **error)
{
    int rc = rados_conf_set(conn->cluster, name, value);
    if (rc == -ENOENT)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "cluster %s: \"cephConf\": the Ceph library here knows no option %s: take "
                    "it out of config.json, or correct its name",
                    conn->cluster_id, name);
    else if (rc != 0)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "cluster %s: \"cephConf\": the Ceph library here refuses \"%s\" as value of "
                    "option %s: correct it in config.json",
                    conn->cluster_id, value, name);
    return rc == 0;
}

/* No ceph.conf and no keyring file is read: what a request may do is in the request alone. */
static gboolean configure(CephConn *conn, char *const *ceph_conf, const Secrets *secrets,
                          GError **error)
{
    const char *const options[][2] = {
        {"key", secrets->key},
        {"client_mount_timeout", G_STRINGIFY(CONNECT_SECONDS)},
        {"rados_osd_op_timeout", "30"},
        {"ms_async_op_threads", "1"},
        /* One thread for librbd's callbacks: with two, one can close and free an image under the
         * other, which still ends the open of it (ImageState, Ceph 16). */
        {"librados_thread_count", "1"},
        {"log_to_stderr", "false"},
        {"err_to_stderr", "false"},
        {"log_file", ""},
        {"admin_socket", ""},
        {"rbd_cache", "false"}, /* no data goes through here */
    };
    g_autofree char *entity = g_strconcat("client.", conn->user, NULL);
    int rc = rados_create2(&conn->cluster, "ceph", entity, 0);
    if (rc != 0)
        return hearth_fail(error, HEARTH_ERROR_INTERNAL, "librados for %s: %s", entity,
                           g_strerror(-rc));
    gboolean good = TRUE;
    for (guint i = 0; good && i < G_N_ELEMENTS(options); i++)
        good = set_option(conn, options[i][0], options[i][1], error);
    for (char *const *o = ceph_conf; good && o && *o; o += 2)
        good = set_cluster_option(conn, o[0], o[1], error);
    return good;
}

typedef struct ConnectJob {
    CephConn *conn;
    char **monitors;
    char *net_namespace;
    int rc;
    GError *error; /* there is no way to the cluster's network */
} ConnectJob;

static void connect_run(void *data)
{
    ConnectJob *job = data;
    /* The connection's calls are run by this thread and its like, which serve no other. */
    if (!net_namespace_enter(job->net_namespace, &job->error))
        return;
    gint64 until_us = g_get_monotonic_time() + GREETING_SECONDS * G_USEC_PER_SEC;
    g_auto(GStrv) monitors = reach_explicit(job->monitors, until_us);
    g_autofree char *hosts = g_strjoinv(",", monitors);
    job->rc = rados_conf_set(job->conn->cluster, "mon_host", hosts);
    if (job->rc == 0)
        job->rc = rados_connect(job->conn->cluster);
}

static void connect_free(void *data)
{
    ConnectJob *job = data;
    ceph_conn_unref(job->conn);
    g_strfreev(job->monitors);
    g_free(job->net_namespace);
    g_clear_error(&job->error);
    g_free(job);
}

static void fail_unreachable(GError **error, const CephConn *conn)
{
    hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                "no monitor of cluster %s served client.%s at %s; check the addresses in "
                "config.json, and with `ceph status` that the monitors have a quorum",
                conn->cluster_id, conn->user, conn->monitors);
}

static gboolean connect_now(CephConn *conn, const ClusterConfig *cluster, const Secrets *secrets,
                            gint64 deadline_us, GError **error)
{
    if (!configure(conn, cluster->ceph_conf, secrets, error))
        return FALSE;
    ConnectJob *job = g_new0(ConnectJob, 1);
    job->conn = ceph_conn_ref(conn);
    job->monitors = g_strdupv(cluster->monitors);
    job->net_namespace = g_strdup(cluster->net_namespace);
    /* librados gives up by itself; the limit is for a resolver that hangs. */
    const CephOperation connecting = {"connecting", "connecting",
                                      (CONNECT_SECONDS + GREETING_SECONDS) * 1000};
    const BoundedJob work = {connect_run, job, connect_free};
    g_autoptr(GError) cause = NULL;
    if (!ceph_conn_run(conn, &connecting, &work, deadline_us, &cause)) {
        fail_unreachable(error, conn);
        return FALSE;
    }
    int rc = job->rc;
    const gboolean no_network = job->error != NULL;
    if (no_network)
        g_propagate_prefixed_error(error, g_steal_pointer(&job->error),
                                   "cluster %s: ", conn->cluster_id);
    connect_free(job);
    if (no_network)
        return FALSE;
    if (rc == -EACCES || rc == -EPERM || rc == -EKEYREJECTED || rc == -ENOENT)
        hearth_fail(error, HEARTH_ERROR_UNAUTHENTICATED,
                    "cluster %s refuses client.%s: the user is not there or the key in the Secret "
                    "is not its key; compare with `ceph auth get client.%s`",
                    conn->cluster_id, conn->user, conn->user);
    else if (rc == -EINVAL)
        hearth_fail(error, HEARTH_ERROR_UNAUTHENTICATED,
                    "cluster %s: librados refuses the key of client.%s or the addresses %s; the "
                    "key must be what `ceph auth print-key client.%s` prints",
                    conn->cluster_id, conn->user, conn->monitors, conn->user);
    else if (rc == -ETIMEDOUT)
        fail_unreachable(error, conn);
    else if (rc != 0)
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                    "connecting to cluster %s at %s as client.%s: %s", conn->cluster_id,
                    conn->monitors, conn->user, g_strerror(-rc));
    return rc == 0;
}

Timings *ceph_timings(void)
{
    static gsize timings;
    if (g_once_init_enter(&timings))
        g_once_init_leave(&timings, (gsize)timings_new());
    return (Timings *)timings;
}

gboolean ceph_conn_run(CephConn *conn, const CephOperation *operation, const BoundedJob *job,
                       gint64 deadline_us, GError **error)
{
    static atomic_uint serial;
    g_autofree char *key = g_strdup_printf("%u", atomic_fetch_add(&serial, 1));
    gint64 left_ms = MAX((deadline_us - g_get_monotonic_time()) / 1000, 0);
    gint64 wait_ms = MIN(left_ms, operation->limit_ms);
    const gint64 began_us = g_get_monotonic_time();
    g_autoptr(GError) cause = NULL;
    const gboolean answered =
        bounded_run(conn->bounded, key, operation->what, job, wait_ms, &cause);
    timings_add(ceph_timings(), operation->name, answered ? "answered" : "late",
                g_get_monotonic_time() - began_us);
    if (answered)
        return TRUE;
    if (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_DEADLINE_EXCEEDED))
        hearth_fail(error,
                    left_ms > operation->limit_ms ? HEARTH_ERROR_UNAVAILABLE
                                                  : HEARTH_ERROR_DEADLINE_EXCEEDED,
                    "%s: cluster %s (%s) did not answer within %" G_GINT64_FORMAT
                    " ms; check `ceph status`, then try again",
                    operation->what, conn->cluster_id, conn->monitors, wait_ms);
    else
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                    "%s: too many calls to Ceph hang; check `ceph status` of cluster %s (%s)",
                    operation->what, conn->cluster_id, conn->monitors);
    return FALSE;
}

/* Takes broken, long idle and surplus connections out of the table; the caller unrefs them
 * unlocked. */
static GPtrArray *sweep_locked(CephConns *c)
{
    GPtrArray *out = g_ptr_array_new();
    gint64 now = g_get_monotonic_time();
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, c->table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        CephConn *conn = value;
        gboolean full = g_hash_table_size(c->table) >= MAX_CONNECTIONS;
        gboolean idle =
            atomic_load(&conn->references) == 1 && (full || now - conn->used_us > IDLE_US);
        if (conn->state == CONN_READY && (idle || atomic_load(&conn->broken))) {
            g_hash_table_iter_remove(&iter);
            g_ptr_array_add(out, conn);
        }
    }
    return out;
}

/* Waits for another's attempt. TRUE when it succeeded. */
static gboolean await_locked(CephConns *c, CephConn *conn, gint64 deadline_us, GError **error)
{
    struct timespec until = {.tv_sec = deadline_us / G_USEC_PER_SEC,
                             .tv_nsec = deadline_us % G_USEC_PER_SEC * 1000};
    while (conn->state == CONN_CONNECTING) {
        if (pthread_cond_timedwait(&c->changed, &c->lock, &until) == ETIMEDOUT &&
            conn->state == CONN_CONNECTING) {
            fail_unreachable(error, conn);
            return FALSE;
        }
    }
    if (conn->state == CONN_FAILED)
        g_propagate_error(error, g_error_copy(conn->failure));
    return conn->state == CONN_READY;
}

typedef struct Memo {
    gint64 stored_us;
    char *text;
} Memo;

static void memo_free(gpointer data)
{
    Memo *memo = data;
    g_free(memo->text);
    g_free(memo);
}

void ceph_conn_remember(CephConn *conn, const char *name, const char *text)
{
    Memo *memo = g_new0(Memo, 1);
    memo->stored_us = g_get_monotonic_time();
    memo->text = g_strdup(text);
    pthread_mutex_lock(&conn->memo_lock);
    g_hash_table_replace(conn->memos, g_strdup(name), memo);
    pthread_mutex_unlock(&conn->memo_lock);
}

char *ceph_conn_recall(CephConn *conn, const char *name, gint64 max_age_us)
{
    pthread_mutex_lock(&conn->memo_lock);
    const Memo *memo = g_hash_table_lookup(conn->memos, name);
    gboolean good = memo && g_get_monotonic_time() - memo->stored_us <= max_age_us;
    char *text = good ? g_strdup(memo->text) : NULL;
    pthread_mutex_unlock(&conn->memo_lock);
    return text;
}

static CephConn *conn_new(const ClusterConfig *cluster, const Secrets *secrets, const char *key,
                          const char *monitors)
{
    CephConn *conn = g_new0(CephConn, 1);
    atomic_init(&conn->references, 1);
    pthread_mutex_init(&conn->memo_lock, NULL);
    conn->memos = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, memo_free);
    conn->cluster_id = g_strdup(cluster->cluster_id);
    conn->user = g_strdup(secrets->user);
    conn->monitors = g_strdup(monitors);
    conn->key = g_strdup(key);
    /* One for each connection: calls that hang at one cluster leave the others their threads. */
    conn->bounded = bounded_new(MAX_STUCK);
    conn->checks = bounded_new(1);
    conn->state = CONN_CONNECTING;
    return conn;
}

CephConn *ceph_conns_get(CephConns *c, const ClusterConfig *cluster, const Secrets *secrets,
                         gint64 deadline_us, GError **error)
{
    g_autofree char *monitors = g_strjoinv(",", cluster->monitors);
    g_autofree char *key = table_key(cluster, monitors, secrets);

    pthread_mutex_lock(&c->lock);
    g_autoptr(GPtrArray) old = sweep_locked(c);
    CephConn *conn = g_hash_table_lookup(c->table, key);
    gboolean good = FALSE;
    if (conn) {
        ceph_conn_ref(conn);
        good = await_locked(c, conn, deadline_us, error);
        conn->used_us = g_get_monotonic_time();
        pthread_mutex_unlock(&c->lock);
    } else {
        conn = conn_new(cluster, secrets, key, monitors);
        g_hash_table_insert(c->table, conn->key, ceph_conn_ref(conn));
        pthread_mutex_unlock(&c->lock);

        g_autoptr(GError) failure = NULL;
        good = connect_now(conn, cluster, secrets, deadline_us, &failure);

        pthread_mutex_lock(&c->lock);
        conn->state = good ? CONN_READY : CONN_FAILED;
        conn->used_us = g_get_monotonic_time();
        if (!good) {
            g_hash_table_remove(c->table, conn->key);
            g_ptr_array_add(old, conn); /* the table's reference */
            conn->failure = g_error_copy(failure);
            g_propagate_error(error, g_steal_pointer(&failure));
        }
        pthread_cond_broadcast(&c->changed);
        pthread_mutex_unlock(&c->lock);
    }
    for (guint i = 0; i < old->len; i++)
        ceph_conn_unref(old->pdata[i]);
    if (!good)
        g_clear_pointer(&conn, ceph_conn_unref);
    return conn;
}

typedef struct CheckJob {
    CephConn *conn;
} CheckJob;

static void check_run(void *data)
{
    CheckJob *job = data;
    const char *command = "{\"prefix\": \"fsid\"}";
    char *output = NULL, *status = NULL;
    size_t output_length, status_length;
    rados_mon_command(job->conn->cluster, &command, 1, NULL, 0, &output, &output_length, &status,
                      &status_length);
    rados_buffer_free(output);
    rados_buffer_free(status);
}

static void check_free(void *data)
{
    CheckJob *job = data;
    ceph_conn_unref(job->conn);
    g_free(job);
}

gboolean ceph_conns_check(CephConns *c, const char *cluster_id, gint64 deadline_us, GError **error)
{
    g_autoptr(GPtrArray) conns = g_ptr_array_new();
    pthread_mutex_lock(&c->lock);
    GHashTableIter iter;
    gpointer value;
    g_hash_table_iter_init(&iter, c->table);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        CephConn *conn = value;
        if (conn->state == CONN_READY && strcmp(conn->cluster_id, cluster_id) == 0)
            g_ptr_array_add(conns, ceph_conn_ref(conn));
    }
    pthread_mutex_unlock(&c->lock);

    gboolean good = TRUE;
    for (guint i = 0; i < conns->len; i++) {
        CephConn *conn = conns->pdata[i];
        if (good) {
            CheckJob *job = g_new0(CheckJob, 1);
            job->conn = ceph_conn_ref(conn);
            gint64 left_ms = MAX((deadline_us - g_get_monotonic_time()) / 1000, 0);
            good = bounded_run(conn->checks, "check", "asking the monitors",
                               &(BoundedJob){check_run, job, check_free}, left_ms, NULL);
            if (good)
                check_free(job);
            else
                fail_unreachable(error, conn);
        }
        ceph_conn_unref(conn);
    }
    return good;
}
