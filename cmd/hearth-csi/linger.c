/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearth-csi/linger.h"
#include <glib.h>
#include <string.h>
#include "common/bounded.h"

/* With GRACE_MS of main.c below terminationGracePeriodSeconds of charts/hearth. */
#define LINGER_SEC 90
#define CHECK_MS 100

/* State D, proc_pid_stat(5): no signal ends the wait. */
static gboolean waits_in_kernel(const char *thread)
{
    g_autofree char *path = g_build_filename("/proc/self/task", thread, "stat", NULL);
    g_autofree char *stat = NULL;
    if (!g_file_get_contents(path, &stat, NULL, NULL))
        return FALSE;
    const char *after_name = strrchr(stat, ')');
    return after_name && g_str_has_prefix(after_name, ") D");
}

/* A job on a FUSE mount sleeps as if signals could wake it, until one tries: a request that was
 * read is waited for. */
static gboolean any_waits(void)
{
    if (bounded_any_of_mounts())
        return TRUE;
    g_autoptr(GDir) threads = g_dir_open("/proc/self/task", 0, NULL);
    const char *thread;
    while (threads && (thread = g_dir_read_name(threads)) != NULL) {
        if (waits_in_kernel(thread))
            return TRUE;
    }
    return FALSE;
}

void linger_for_mounts(void)
{
    const gint64 until = g_get_monotonic_time() + LINGER_SEC * G_USEC_PER_SEC;
    for (gboolean said = FALSE; any_waits() && g_get_monotonic_time() < until; said = TRUE) {
        if (!said)
            g_message("a thread waits for a mount: mounts are given to the next hearthd meanwhile");
        g_usleep(CHECK_MS * 1000);
    }
}
