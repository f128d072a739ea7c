/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/publications.h"
#include <string.h>
#include "driver/node/mount/kubelet_paths.h"
#include "driver/node/mount/mount.h"
#include "proto/wire.h"

#define DEVICES "/dev/"
#define LOOP "loop"

void publication_free(void *data)
{
    Publication *p = data;
    g_free(p->volume);
    g_free(p->target);
    g_free(p->pod);
    g_free(p);
}

Publication *publication_copy(const Publication *p)
{
    Publication *copy = g_new0(Publication, 1);
    *copy = (Publication){g_strdup(p->volume), g_strdup(p->target), g_strdup(p->pod)};
    return copy;
}

static char *kernel_backing(const char *loop)
{
    g_autofree char *path = g_strdup_printf("/sys/block/%s/loop/backing_file", loop);
    char *file = NULL;
    return g_file_get_contents(path, &file, NULL, NULL) ? g_strchomp(file) : NULL;
}

/* Of the layers of a dataset: <devices>/<dataset>.<number>.manifest. */
static char *dataset_volume(const MountEntry *entry)
{
    char id[WIRE_DATASET_DIGITS + 1];
    if (!mount_volume(entry) || !entry->lower)
        return NULL;
    g_autofree char *name = g_path_get_basename(entry->lower);
    name[strcspn(name, ".")] = '\0';
    g_autofree char *volume = g_strconcat(WIRE_DATASET_PREFIX, name, NULL);
    return wire_dataset_of(volume, id) ? g_steal_pointer(&volume) : NULL;
}

/* The loop device that is mounted, or bound, there; NULL: none. Borrowed. */
static const char *loop_of(const MountEntry *entry)
{
    const char *name = NULL;
    if (g_str_has_prefix(entry->source, DEVICES LOOP))
        name = entry->source + strlen(DEVICES);
    else if (strcmp(entry->type, "devtmpfs") == 0 && g_str_has_prefix(entry->root, "/" LOOP))
        name = entry->root + 1;
    return name && !strchr(name, '/') ? name : NULL;
}

/* The image whose mount a file is on. */
static char *volume_below(const GPtrArray *table, const char *file)
{
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        const char *volume = mount_served_volume(entry);
        const gsize length = strlen(entry->target);
        if (volume && strncmp(file, entry->target, length) == 0 &&
            (file[length] == '/' || file[length] == '\0'))
            return g_strdup(volume);
    }
    return NULL;
}

static char *volume_of(const GPtrArray *table, const MountEntry *entry, PublicationsBacking backing)
{
    const char *live = mount_served_volume(entry), *loop = loop_of(entry);
    if (live)
        return g_strdup(live);
    if (!loop)
        return dataset_volume(entry);
    g_autofree char *file = backing(loop);
    return file ? volume_below(table, file) : NULL;
}

GPtrArray *publications_of(const char *mountinfo, PublicationsBacking backing)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(publication_free);
    g_autoptr(GPtrArray) table = mount_parse(mountinfo);
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        g_autofree char *pod = kubelet_pod_of(entry->target);
        char *volume = pod ? volume_of(table, entry, backing ? backing : kernel_backing) : NULL;
        if (!volume)
            continue;
        Publication *p = g_new0(Publication, 1);
        *p = (Publication){volume, g_strdup(entry->target), g_steal_pointer(&pod)};
        g_ptr_array_add(all, p);
    }
    return all;
}
