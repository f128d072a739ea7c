/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/report/disk_reads.h"
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define SECTOR 512

gboolean disk_reads_of_device(const char *dir, guint64 *bytes)
{
    struct stat st;
    g_autofree char *text = NULL;
    guint64 sectors;
    if (stat(dir, &st) != 0)
        return FALSE;
    g_autofree char *path =
        g_strdup_printf("/sys/dev/block/%u:%u/stat", major(st.st_dev), minor(st.st_dev));
    if (!g_file_get_contents(path, &text, NULL, NULL) ||
        sscanf(text, "%*u %*u %" G_GUINT64_FORMAT, &sectors) != 1)
        return FALSE;
    *bytes = sectors * SECTOR;
    return TRUE;
}

gboolean disk_reads_native(const char *dir, guint64 *bytes)
{
    guint64 all, own;
    if (!disk_reads_of_device(dir, &all) || !disk_reads_of_process(&own))
        return FALSE;
    *bytes = all - MIN(all, own);
    return TRUE;
}

gboolean disk_reads_of_process(guint64 *bytes)
{
    static const char name[] = "\nread_bytes: ";
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/io", &text, NULL, NULL))
        return FALSE;
    const char *found = strstr(text, name);
    if (!found)
        return FALSE;
    *bytes = g_ascii_strtoull(found + strlen(name), NULL, 10);
    return TRUE;
}
