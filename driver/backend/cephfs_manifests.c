/*
 * A list goes after what it names, so a crash leaves something that leads to the rest. A node that
 * puts a manifest meanwhile appends to the list first: it may be left as one that is on no list.
 */
#include "driver/backend/cephfs_manifests.h"
#include <errno.h>
#include <string.h>
#include "driver/backend/cephfs_snap.h"

#define NAMESPACE "hearth"
#define MANIFEST "manifest."
#define LIST "manifest-of."
#define LIST_MAX (1 << 20)
#define ID_LENGTH 32

static gboolean remove_object(CephConn *conn, const char *pool, const char *name,
                              gint64 deadline_us, GError **error)
{
    int rc;
    if (!ceph_conn_object(conn, CEPH_OBJECT_REMOVE, pool, NAMESPACE, name, NULL, 0, &rc, NULL, NULL,
                          deadline_us, error))
        return FALSE;
    if (rc == 0 || rc == -ENOENT)
        return TRUE;
    g_autofree char *what = g_strdup_printf("removing %s of pool %s", name, pool);
    ceph_conn_fail(error, conn, rc, what, NULL);
    return FALSE;
}

static gboolean is_id(const char *text, gsize length)
{
    return length == ID_LENGTH && strspn(text, "0123456789abcdef") >= ID_LENGTH;
}

/* "<id> <nonce> <parts>"; what is none is passed over. */
static gboolean remove_line(CephConn *conn, const char *pool, const char *line, gint64 deadline_us,
                            GError **error)
{
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    guint64 parts;
    if (g_strv_length(words) != 3 || !is_id(words[0], strlen(words[0])) ||
        !g_ascii_string_to_unsigned(words[2], 16, 0, G_MAXUINT32, &parts, NULL))
        return TRUE;
    /* The header first: without it nobody takes the parts for a manifest. */
    g_autofree char *header = g_strconcat(MANIFEST, words[0], NULL);
    if (!remove_object(conn, pool, header, deadline_us, error))
        return FALSE;
    for (guint64 i = 0; i < parts; i++) {
        g_autofree char *part =
            g_strdup_printf(MANIFEST "%s.%s.%08" G_GINT64_MODIFIER "x", words[0], words[1], i);
        if (!remove_object(conn, pool, part, deadline_us, error))
            return FALSE;
    }
    return TRUE;
}

/* *lines NULL: there is no such list. */
static gboolean read_list(CephConn *conn, const char *pool, const char *name, char ***lines,
                          gint64 deadline_us, GError **error)
{
    int rc;
    gsize length;
    g_autofree char *text = NULL;
    *lines = NULL;
    if (!ceph_conn_object(conn, CEPH_OBJECT_READ, pool, NAMESPACE, name, NULL, LIST_MAX, &rc, &text,
                          &length, deadline_us, error))
        return FALSE;
    if (rc != 0 && rc != -ENOENT) {
        g_autofree char *what = g_strdup_printf("reading %s of pool %s", name, pool);
        ceph_conn_fail(error, conn, rc, what, NULL);
        return FALSE;
    }
    if (rc == 0)
        *lines = g_strsplit(text, "\n", -1);
    return TRUE;
}

static gboolean remove_list(CephConn *conn, const char *pool, const char *name, gint64 deadline_us,
                            GError **error)
{
    g_auto(GStrv) lines = NULL;
    if (!read_list(conn, pool, name, &lines, deadline_us, error))
        return FALSE;
    for (char **line = lines; line && *line; line++) {
        if (!remove_line(conn, pool, *line, deadline_us, error))
            return FALSE;
    }
    return !lines || remove_object(conn, pool, name, deadline_us, error);
}

gboolean cephfs_manifests_forget(CephConn *conn, const Subvolume *s, const char *snapshot,
                                 gint64 deadline_us, GError **error)
{
    g_autofree char *name =
        g_strdup_printf(LIST "/volumes/%s/%s/.snap/%s", s->group, s->name, snapshot);
    g_auto(GStrv) pools = cephfs_mgr_data_pools(conn, s->fs_name, deadline_us, error);
    for (char **pool = pools; pool && *pool; pool++) {
        if (!remove_list(conn, *pool, name, deadline_us, error))
            return FALSE;
    }
    return pools != NULL;
}

/* ---- the audit ---- */

/*
 * Whether the snapshot of a list is gone. Paths that are no subvolume's are not known here, so
 * theirs is taken to be there.
 */
static gboolean is_gone(CephConn *conn, const char *fs_name, const char *list, gboolean *gone,
                        gint64 deadline_us, GError **error)
{
    g_auto(GStrv) parts = g_strsplit(list + strlen(LIST), "/", -1); /* "", volumes, ... */
    g_autoptr(GError) cause = NULL;
    *gone = FALSE;
    if (g_strv_length(parts) != 6 || strcmp(parts[1], "volumes") != 0 ||
        strcmp(parts[4], ".snap") != 0)
        return TRUE;
    const Subvolume s = {.fs_name = fs_name, .group = parts[2], .name = parts[3]};
    if (cephfs_snap_look(conn, &s, parts[5], deadline_us, &cause))
        return TRUE;
    *gone = g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND);
    if (!*gone)
        g_propagate_error(error, g_steal_pointer(&cause));
    return *gone;
}

static gboolean look_at_list(CephConn *conn, const char *fs_name, const char *pool,
                             const char *name, GHashTable *listed, GPtrArray *orphans,
                             gint64 deadline_us, GError **error)
{
    g_auto(GStrv) lines = NULL;
    gboolean gone;
    if (!read_list(conn, pool, name, &lines, deadline_us, error) ||
        !is_gone(conn, fs_name, name, &gone, deadline_us, error))
        return FALSE;
    if (gone)
        g_ptr_array_add(orphans, g_strdup(name));
    for (char **line = lines; line && *line; line++)
        g_hash_table_add(listed, g_strndup(*line, ID_LENGTH));
    return TRUE;
}

/* The names of a pool; *names NULL without an error: this user may not see them. */
static gboolean list_pool(CephConn *conn, const char *pool, GPtrArray **names, gint64 deadline_us,
                          GError **error)
{
    int rc;
    *names = NULL;
    if (!ceph_conn_list(conn, pool, NAMESPACE, names, &rc, deadline_us, error))
        return FALSE;
    if (rc == 0 || rc == -EPERM || rc == -EACCES)
        return TRUE;
    g_autofree char *what = g_strdup_printf("listing the manifests in pool %s", pool);
    ceph_conn_fail(error, conn, rc, what, NULL);
    return FALSE;
}

/* The names are of before the lists are read, and a list is older than what it names. */
static gboolean look_at_pool(CephConn *conn, const char *fs_name, const char *pool,
                             GPtrArray *orphans, gint64 deadline_us, GError **error)
{
    g_autoptr(GPtrArray) names = NULL;
    g_autoptr(GHashTable) listed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (!list_pool(conn, pool, &names, deadline_us, error))
        return FALSE;
    for (guint i = 0; names && i < names->len; i++) {
        if (g_str_has_prefix(names->pdata[i], LIST) &&
            !look_at_list(conn, fs_name, pool, names->pdata[i], listed, orphans, deadline_us,
                          error))
            return FALSE;
    }
    for (guint i = 0; names && i < names->len; i++) {
        const char *id = (const char *)names->pdata[i] + strlen(MANIFEST);
        if (!g_str_has_prefix(names->pdata[i], MANIFEST) || !is_id(id, strcspn(id, ".")))
            continue;
        char *bare = g_strndup(id, ID_LENGTH);
        if (g_hash_table_contains(listed, bare)) {
            g_free(bare);
            continue;
        }
        g_ptr_array_add(orphans, g_strconcat(MANIFEST, bare, NULL));
        g_hash_table_add(listed, bare); /* once, however many parts there are */
    }
    return TRUE;
}

GPtrArray *cephfs_manifests_orphans(CephConn *conn, const char *fs_name, gint64 deadline_us,
                                    GError **error)
{
    g_auto(GStrv) pools = cephfs_mgr_data_pools(conn, fs_name, deadline_us, error);
    g_autoptr(GPtrArray) orphans = g_ptr_array_new_with_free_func(g_free);
    for (char **pool = pools; pool && *pool; pool++) {
        if (!look_at_pool(conn, fs_name, *pool, orphans, deadline_us, error))
            return NULL;
    }
    return pools ? g_steal_pointer(&orphans) : NULL;
}

static gboolean remove_unlisted(CephConn *conn, const char *pool, const char *name,
                                gint64 deadline_us, GError **error)
{
    g_autoptr(GPtrArray) names = NULL;
    g_autofree char *parts = g_strconcat(name, ".", NULL);
    if (!list_pool(conn, pool, &names, deadline_us, error) ||
        !remove_object(conn, pool, name, deadline_us, error))
        return FALSE;
    for (guint i = 0; names && i < names->len; i++) {
        if (g_str_has_prefix(names->pdata[i], parts) &&
            !remove_object(conn, pool, names->pdata[i], deadline_us, error))
            return FALSE;
    }
    return TRUE;
}

gboolean cephfs_manifests_remove(CephConn *conn, const char *fs_name, const char *name,
                                 gint64 deadline_us, GError **error)
{
    const gboolean list = g_str_has_prefix(name, LIST);
    gboolean gone = TRUE;
    g_auto(GStrv) pools = cephfs_mgr_data_pools(conn, fs_name, deadline_us, error);
    if (!pools || (list && !is_gone(conn, fs_name, name, &gone, deadline_us, error)))
        return FALSE;
    for (char **pool = pools; gone && *pool; pool++) {
        if (!(list ? remove_list : remove_unlisted)(conn, *pool, name, deadline_us, error))
            return FALSE;
    }
    return TRUE;
}
