/* What the monitors know of file systems and pools. */
#include "driver/backend/cephfs_internal.h"
#include <string.h>

/* The parsed answer to a command without arguments, the caller's; NULL with the error. */
static json_t *ask(CephConn *conn, const char *prefix, gint64 deadline_us, GError **error)
{
    reply_auto CephReply reply = {0};
    json_t *command = json_pack("{s:s, s:s}", "prefix", prefix, "format", "json");
    gboolean answered = ceph_conn_command(conn, CEPH_MON, command, &reply, deadline_us, error);
    json_decref(command);
    if (!answered)
        return NULL;
    if (reply.rc != 0) {
        ceph_conn_fail(error, conn, reply.rc, prefix, reply.status);
        return NULL;
    }
    json_t *answer = json_loads(reply.output, 0, NULL);
    if (!answer)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INTERNAL, "%s: the answer is no JSON",
                    prefix);
    return answer;
}

static const char *text_of(const json_t *object, const char *name)
{
    return json_string_value(json_object_get(object, name));
}

gboolean cephfs_mgr_pools(CephConn *conn, const char *fs_name, char **metadata, char **data,
                          gint64 deadline_us, GError **error)
{
    json_t *list = ask(conn, "fs ls", deadline_us, error);
    if (!list)
        return FALSE;
    g_autoptr(GString) known = g_string_new(NULL);
    gboolean found = FALSE;
    gsize i;
    json_t *fs;
    json_array_foreach(list, i, fs)
    {
        const char *name = text_of(fs, "name"), *meta = text_of(fs, "metadata_pool");
        const char *first = json_string_value(json_array_get(json_object_get(fs, "data_pools"), 0));
        if (!name || !meta || !first)
            continue;
        g_string_append_printf(known, "%s%s", known->len ? ", " : "", name);
        if (found || strcmp(name, fs_name) != 0)
            continue;
        found = TRUE;
        if (metadata)
            *metadata = g_strdup(meta);
        if (data)
            *data = g_strdup(first);
    }
    json_decref(list);
    if (!found)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "fsName \"%s\": client.%s sees no such file system on the cluster; there are: "
                    "%s",
                    fs_name, ceph_conn_user(conn), known->len ? known->str : "none");
    return found;
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

char **cephfs_mgr_file_systems(CephConn *conn, gint64 deadline_us, GError **error)
{
    json_t *list = ask(conn, "fs ls", deadline_us, error);
    if (!list)
        return NULL;
    GPtrArray *names = g_ptr_array_new();
    gsize i;
    json_t *fs;
    json_array_foreach(list, i, fs)
    {
        if (text_of(fs, "name"))
            g_ptr_array_add(names, g_strdup(text_of(fs, "name")));
    }
    json_decref(list);
    g_ptr_array_sort(names, compare_names);
    g_ptr_array_add(names, NULL);
    return (char **)g_ptr_array_free(names, FALSE);
}

char *cephfs_mgr_file_system(CephConn *conn, guint64 id, gint64 deadline_us, GError **error)
{
    json_t *map = ask(conn, "fs dump", deadline_us, error);
    char *name = NULL;
    gsize i;
    json_t *fs;
    json_array_foreach(json_object_get(map, "filesystems"), i, fs)
    {
        if (json_integer_value(json_object_get(fs, "id")) == (json_int_t)id)
            name = g_strdup(text_of(json_object_get(fs, "mdsmap"), "fs_name"));
    }
    json_decref(map);
    return name;
}

gboolean cephfs_mgr_available(CephConn *conn, const char *pool, gint64 *bytes, gint64 deadline_us,
                              GError **error)
{
    json_t *answer = ask(conn, "df", deadline_us, error);
    if (!answer)
        return FALSE;
    gboolean found = FALSE;
    gsize i;
    json_t *entry;
    json_array_foreach(json_object_get(answer, "pools"), i, entry)
    {
        if (g_strcmp0(text_of(entry, "name"), pool) != 0)
            continue;
        const json_t *stats = json_object_get(entry, "stats");
        const json_t *available = json_object_get(stats, "max_avail");
        found = json_is_number(available);
        *bytes = (gint64)json_number_value(available);
    }
    json_decref(answer);
    if (!found)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "pool \"%s\": the cluster has no such pool", pool);
    return found;
}
