/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/view/node.h"
#include "cmd/hearthctl/report/style.h"
#include "common/size.h"
#include "proto/wire_keys.h"
#include <string.h>

typedef struct Disk {
    const char *state, *text;
    Style style;
} Disk;

static const Disk disks[] = {
    {WIRE_DISK_OK, "ok", STYLE_GOOD},
    {WIRE_DISK_SUSPECT, "SUSPECT, an I/O error was seen", STYLE_WARN},
    {WIRE_DISK_BYPASS, "BYPASS, reads go to Ceph", STYLE_BAD},
    {WIRE_DISK_OFF, "off, reads go to Ceph", STYLE_WARN},
};

char *node_disk_text(const char *disk, gboolean colour)
{
    for (guint i = 0; i < G_N_ELEMENTS(disks); i++)
        if (strcmp(disk, disks[i].state) == 0)
            return style_text(disks[i].text, disks[i].style, colour);
    return g_strdup(disk[0] ? disk : "?");
}

char *node_bytes_text(double bytes)
{
    if (bytes < 0)
        return NULL;
    return bytes < 1 ? g_strdup("0") : size_format((uint64_t)bytes);
}
