/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/ceph/net_namespace.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include "common/autofd.h"
#include "driver/backend/ceph/monitor_probe.h"
#include "common/error.h"

gboolean net_namespace_enter(const char *path, GError **error)
{
    if (!path)
        return TRUE;
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && setns(fd, CLONE_NEWNET) == 0)
        return TRUE;
    return hearth_fail(
        error, HEARTH_ERROR_FAILED_PRECONDITION,
        "cannot enter the network namespace %s, \"netNamespaceFilePath\" in config.json: "
        "%s; its file must be at this path on the node",
        path, g_strerror(errno));
}

typedef struct Reach {
    const char *path;
    char *const *monitors;
    gint64 deadline_us;
    char **answer;
    GError *error;
} Reach;

static void *reach_thread(void *data)
{
    Reach *r = data;
    if (net_namespace_enter(r->path, &r->error))
        r->answer = reach_explicit(r->monitors, r->deadline_us);
    return NULL;
}

char **net_namespace_reach(const char *path, char *const *monitors, gint64 deadline_us,
                           GError **error)
{
    Reach r = {.path = path, .monitors = monitors, .deadline_us = deadline_us};
    pthread_t thread;
    if (!path)
        return reach_explicit(monitors, deadline_us);
    int failed = pthread_create(&thread, NULL, reach_thread, &r);
    if (failed) {
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE, "no thread to reach Ceph: %s",
                    g_strerror(failed));
        return NULL;
    }
    pthread_join(thread, NULL);
    if (r.error)
        g_propagate_error(error, r.error);
    return r.answer;
}
