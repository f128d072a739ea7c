/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/origin/ceph_client.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <sched.h>
#include <string.h>
#include "common/autofd.h"
#include "common/io_error.h"

void ceph_client_copy(CephClient *to, const CephClient *from)
{
    *to = (CephClient){
        .cluster = g_strdup(from->cluster),
        .conf = g_strdupv((char **)from->conf),
        .crush_location = g_strdup(from->crush_location),
        .net_namespace = g_strdup(from->net_namespace),
    };
}

void ceph_client_clear(CephClient *copy)
{
    g_free((char *)copy->cluster);
    g_strfreev((char **)copy->conf);
    g_free((char *)copy->crush_location);
    g_free((char *)copy->net_namespace);
    *copy = (CephClient){0};
}

static gboolean same_conf(char *const *a, char *const *b)
{
    const char *const none[] = {NULL};
    return g_strv_equal(a ? (const char *const *)a : none, b ? (const char *const *)b : none);
}

gboolean ceph_client_same(const CephClient *a, const CephClient *b)
{
    return same_conf(a->conf, b->conf) && g_strcmp0(a->crush_location, b->crush_location) == 0 &&
           g_strcmp0(a->net_namespace, b->net_namespace) == 0;
}

static gboolean fail_option(GError **error, const CephClient *client, const char *name,
                            const char *value, int result)
{
    if (result == -ENOENT)
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "cluster %s: \"cephConf\": hearthd's Ceph library knows no option %s: take it "
                    "out of config.json, or correct its name",
                    client->cluster, name);
    else
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_ARGUMENT,
                    "cluster %s: \"cephConf\": hearthd's Ceph library refuses \"%s\" as value of "
                    "option %s: correct it in config.json",
                    client->cluster, value, name);
    return FALSE;
}

gboolean ceph_client_configure(const CephClient *client,
                               int (*set)(void *handle, const char *name, const char *value),
                               void *handle, GError **error)
{
    const char *const affinity[] = {
        "crush_location", client->crush_location, "rbd_read_from_replica_policy", "localize", NULL,
    };
    const char *const *const lists[] = {
        client->crush_location ? affinity : NULL,
        (const char *const *)client->conf, /* later, so that it counts */
    };
    for (guint i = 0; i < G_N_ELEMENTS(lists); i++) {
        for (const char *const *o = lists[i]; o && *o; o += 2) {
            int result = set(handle, o[0], o[1]);
            if (result < 0)
                return fail_option(error, client, o[0], o[1], result);
        }
    }
    return TRUE;
}

gboolean ceph_client_enter_network(const CephClient *client, GError **error)
{
    if (!client->net_namespace)
        return TRUE;
    hearth_autofd int fd = open(client->net_namespace, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && setns(fd, CLONE_NEWNET) == 0)
        return TRUE;
    const int failed = errno;
    return io_fail(
        error, G_IO_ERROR_FAILED,
        "cluster %s: cannot enter the network namespace %s, its \"netNamespaceFilePath\" "
        "in config.json: %s; %s",
        client->cluster, client->net_namespace, g_strerror(failed),
        failed == EPERM ? "hearthd needs the capability SYS_ADMIN for it"
                        : "hearthd must see the file of the namespace at this path");
}
