/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is opened before the node holds its object is resolved to the fill layer, and stays
 * there as long as the kernel remembers it: read through FUSE although its object has come, and
 * lost when hearthd dies. The reverse holds for an object that was evicted: its space is free only
 * when the kernel forgets it. So one thread looks now and then where fill layers were read from or
 * objects went, and has the kernel forget the names of the stacks there; the next open looks anew.
 * It also closes stacks whose user and key Ceph has refused since they were mounted.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "driver/node/dataset/internal.h"

/* The first stack of every superblock on each place: binds are of the same. */
static void refresh_stacks(Staging *s, const GPtrArray *table, const char *volume)
{
    NodeLayers *l = s->datasets->layers;
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        g_auto(DatasetPlace) place = {0};
        g_autoptr(GError) cause = NULL;
        if (dataset_place_of(entry, &place) && strcmp(place.volume, volume) == 0 &&
            mount_find(table, entry->target) == entry &&
            g_hash_table_add(seen, GSIZE_TO_POINTER(entry->dev)) &&
            !l->ops->refresh(l, entry->target, entry->dev, &cause))
            g_message("dataset %s: %s", place.id, cause->message);
    }
}

static gboolean is_among(const json_t *list, const char *text)
{
    size_t i;
    json_t *one;
    json_array_foreach (list, i, one)
        if (g_strcmp0(json_string_value(one), text) == 0)
            return TRUE;
    return FALSE;
}

/* What Ceph has refused since it was mounted without it is closed, until hearthd serves it again.
 */
static void close_refused(Staging *s, HearthdLink *link, const GPtrArray *table)
{
    NodeLayers *l = s->datasets->layers;
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    json_t *refused = hearthd_refused(link, STAGING_ASK_MS);
    for (guint i = 0; refused && i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        g_auto(DatasetPlace) place = {0};
        g_autoptr(GError) cause = NULL;
        if (dataset_place_of(entry, &place) && mount_find(table, entry->target) == entry &&
            g_hash_table_add(seen, GSIZE_TO_POINTER(entry->dev)) &&
            !l->ops->close_stack(l, entry->target, entry->dev, is_among(refused, place.volume),
                                 &cause))
            g_warning("dataset %s: %s", place.id, cause->message);
    }
    json_decref(refused);
}

static gboolean has_stack(const GPtrArray *table)
{
    for (guint i = 0; table && i < table->len; i++) {
        g_auto(DatasetPlace) place = {0};
        if (dataset_place_of(table->pdata[i], &place))
            return TRUE;
    }
    return FALSE;
}

static void look(Staging *s, GHashTable *before)
{
    g_autoptr(GPtrArray) table = staging_list(s, NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(HearthdLink) link =
        has_stack(table) ? hearthd_connect(s->socket_path, NULL, NULL) : NULL;
    if (link)
        close_refused(s, link, table);
    for (guint i = 0; table && i < table->len; i++) {
        const char *volume = mount_served_volume(table->pdata[i]);
        HearthdUse use;
        if (!volume || !g_str_has_prefix(volume, DATASET_VOLUME_PREFIX) ||
            !g_hash_table_add(seen, (gpointer)volume))
            continue;
        if (!link && !(link = hearthd_connect(s->socket_path, NULL, NULL)))
            return;
        if (!hearthd_use(link, volume, STAGING_ASK_MS, &use, NULL))
            continue;
        const HearthdUse *last = g_hash_table_lookup(before, volume);
        /* At first, what went before it was looked at is not known. */
        if (!last || last->bytes != use.bytes || last->objects > use.objects)
            refresh_stacks(s, table, volume);
        g_hash_table_replace(before, g_strdup(volume), g_memdup2(&use, sizeof(use)));
    }
}

static void *run(void *data)
{
    Staging *s = data;
    g_autoptr(GHashTable) before = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    struct pollfd stop = {.fd = s->datasets->stop, .events = POLLIN};
    for (;;) {
        int n = poll(&stop, 1, s->datasets->refresh_ms);
        if (n > 0)
            return NULL;
        if (n == 0)
            look(s, before);
    }
}

void dataset_refresh_start(Staging *s)
{
    s->datasets->stop = eventfd(0, EFD_CLOEXEC);
    if (s->datasets->stop < 0)
        g_error("eventfd: %s", g_strerror(errno));
    int rc = pthread_create(&s->datasets->thread, NULL, run, s);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
}

void dataset_refresh_stop(Staging *s)
{
    eventfd_write(s->datasets->stop, 1);
    pthread_join(s->datasets->thread, NULL);
    close(s->datasets->stop);
}
