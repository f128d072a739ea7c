/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Commands to the monitors, with JSON answers. The answer to `df` is remembered for seconds, and
 * the fsid for the life of the connection. Both backends call this.
 */
#include "driver/backend/ceph/mon.h"
#include <string.h>

/* Takes over the command. */
static json_t *send_command(CephConn *conn, json_t *owned_command, gint64 deadline_us,
                            GError **error)
{
    json_auto_t *command = owned_command;
    CephReply reply = {0};
    g_autofree char *prefix = g_strdup(json_string_value(json_object_get(command, "prefix")));
    json_object_set_new(command, "format", json_string("json"));
    if (!ceph_conn_command(conn, CEPH_MON, command, &reply, deadline_us, error))
        return NULL;
    json_t *answer = reply.rc == 0 ? json_loads(reply.output, 0, NULL) : NULL;
    if (reply.rc != 0)
        ceph_conn_fail(error, conn, reply.rc, prefix, reply.status);
    else if (!answer)
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "%s: the answer is no JSON", prefix);
    ceph_reply_clear(&reply);
    return answer;
}

json_t *ceph_mon_ask(CephConn *conn, const char *prefix, gint64 deadline_us, GError **error)
{
    return send_command(conn, json_pack("{s:s}", "prefix", prefix), deadline_us, error);
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

char *ceph_mon_fsid(CephConn *conn, gint64 deadline_us, GError **error)
{
    char *fsid = ceph_conn_recall(conn, "fsid", G_MAXINT64);
    if (fsid)
        return fsid;
    json_auto_t *answer = ceph_mon_ask(conn, "fsid", deadline_us, error);
    if (!answer)
        return NULL;
    fsid = g_strdup(text_of(answer, "fsid"));
    if (fsid)
        ceph_conn_remember(conn, "fsid", fsid);
    else
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "fsid: the answer has none");
    return fsid;
}

/* One answer has all pools, and external-provisioner asks for one class after another. */
#define DF_AGE_US (5 * G_USEC_PER_SEC)

static json_t *ask_df(CephConn *conn, gint64 deadline_us, GError **error)
{
    g_autofree char *known = ceph_conn_recall(conn, "df", DF_AGE_US);
    if (known)
        return json_loads(known, 0, NULL);
    json_t *answer = ceph_mon_ask(conn, "df", deadline_us, error);
    if (!answer)
        return NULL;
    char *text = json_dumps(answer, JSON_COMPACT);
    ceph_conn_remember(conn, "df", text);
    free(text);
    return answer;
}

gboolean ceph_mon_available(CephConn *conn, const char *pool, gint64 *bytes, gint64 deadline_us,
                            GError **error)
{
    json_auto_t *answer = ask_df(conn, deadline_us, error);
    if (!answer)
        return FALSE;
    gboolean found = FALSE;
    gsize i;
    json_t *entry;
    json_array_foreach (json_object_get(answer, "pools"), i, entry) {
        if (g_strcmp0(text_of(entry, "name"), pool) != 0)
            continue;
        const json_t *stats = json_object_get(entry, "stats");
        const json_t *available = json_object_get(stats, "max_avail");
        found = json_is_number(available);
        *bytes = (gint64)json_number_value(available);
    }
    if (!found)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "pool \"%s\": the cluster has no such pool", pool);
    return found;
}

/* Calls visit(name, number) for the pools an application is enabled for. */
static gboolean each_pool(CephConn *conn, const char *application,
                          void (*visit)(const char *name, guint64 number, void *data), void *data,
                          gint64 deadline_us, GError **error)
{
    json_t *command = json_pack("{s:s, s:s}", "prefix", "osd pool ls", "detail", "detail");
    json_auto_t *answer = send_command(conn, command, deadline_us, error);
    if (!answer)
        return FALSE;
    gsize i;
    json_t *pool;
    json_array_foreach (answer, i, pool) {
        const char *name = text_of(pool, "pool_name");
        if (name && json_object_get(json_object_get(pool, "application_metadata"), application))
            visit(name, (guint64)json_integer_value(json_object_get(pool, "pool_id")), data);
    }
    return TRUE;
}

static void add_name(const char *name, guint64 number, void *data)
{
    (void)number;
    g_ptr_array_add(data, g_strdup(name));
}

GPtrArray *ceph_mon_pools(CephConn *conn, const char *application, gint64 deadline_us,
                          GError **error)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    if (!each_pool(conn, application, add_name, names, deadline_us, error))
        return NULL;
    return g_steal_pointer(&names);
}

typedef struct Numbered {
    guint64 number;
    char *name;
} Numbered;

static void take_numbered(const char *name, guint64 number, void *data)
{
    Numbered *wanted = data;
    if (number == wanted->number && !wanted->name)
        wanted->name = g_strdup(name);
}

char *ceph_mon_pool(CephConn *conn, const char *application, guint64 number, gint64 deadline_us,
                    GError **error)
{
    Numbered wanted = {.number = number};
    each_pool(conn, application, take_numbered, &wanted, deadline_us, error);
    return wanted.name;
}
