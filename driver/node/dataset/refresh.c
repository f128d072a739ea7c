/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is opened before the node holds its object is resolved to the fill layer, and stays
 * there as long as the kernel remembers it: it is read through FUSE although its object has come,
 * and is lost when hearthd dies. An evicted object is the reverse: its space is free only when the
 * kernel forgets it. So one thread checks regularly which fill layers were read from and which
 * datasets lost objects, and has the kernel forget the names of their stacks; the next open
 * resolves them again. It also closes stacks whose user and key Ceph has refused since they were
 * mounted.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "driver/node/dataset/internal.h"

/* Whether the mount is a stack that is visible, the first of its superblock: binds of it show the
 * same. *shared are its layers. */
static gboolean is_new_stack(const GPtrArray *table, const MountEntry *entry, GHashTable *seen,
                             SharedLayers *shared)
{
    if (!shared_layers_of(entry, shared) || mount_find(table, entry->target) != entry)
        return FALSE;
    return g_hash_table_add(seen, GSIZE_TO_POINTER(entry->dev));
}

static void refresh_stacks(Staging *s, const GPtrArray *table, const char *volume)
{
    NodeLayers *l = s->datasets->layers;
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (guint i = 0; i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        g_auto(SharedLayers) shared = {0};
        g_autoptr(GError) cause = NULL;
        if (!is_new_stack(table, entry, seen, &shared) || strcmp(shared.volume, volume) != 0)
            continue;
        if (!l->ops->refresh(l, entry->target, entry->dev, &cause))
            g_message("dataset %s: %s", shared.id, cause->message);
    }
}

/* Closes the stacks whose volume Ceph has refused since they were mounted, until hearthd serves it
 * again. */
static void close_refused(Staging *s, HearthdLink *link, const GPtrArray *table)
{
    NodeLayers *l = s->datasets->layers;
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    g_autoptr(GHashTable) known = hearthd_served_new();
    json_auto_t *refused = hearthd_refused(link, SERVED_ASK_MS);
    for (guint i = 0; refused && i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        g_auto(SharedLayers) shared = {0};
        g_autoptr(GError) cause = NULL;
        if (!is_new_stack(table, entry, seen, &shared))
            continue;
        const gboolean closed = shared_list_has(refused, shared.volume);
        gboolean served = FALSE;
        /* A hearthd that was restarted does not know what was refused before. */
        if (!closed &&
            (!hearthd_served(link, known, shared.volume, SERVED_ASK_MS, &served, NULL) || !served))
            continue;
        if (!l->ops->close_stack(l, entry->target, entry->dev, closed, &cause))
            g_warning("dataset %s: %s", shared.id, cause->message);
    }
}

static gboolean has_stack(const GPtrArray *table)
{
    for (guint i = 0; table && i < table->len; i++) {
        g_auto(SharedLayers) shared = {0};
        if (shared_layers_of(table->pdata[i], &shared))
            return TRUE;
    }
    return FALSE;
}

static void refresh_all(Staging *s, GHashTable *before)
{
    g_autoptr(GPtrArray) table = served_list(s, NULL);
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    g_autoptr(HearthdLink) link =
        has_stack(table) ? hearthd_connect(s->socket_path, NULL, NULL) : NULL;
    if (link)
        close_refused(s, link, table);
    for (guint i = 0; table && i < table->len; i++) {
        const char *volume = mount_served_volume(table->pdata[i]);
        HearthdCounters now;
        if (!volume || !g_str_has_prefix(volume, DATASET_VOLUME_PREFIX) ||
            !g_hash_table_add(seen, (gpointer)volume))
            continue;
        if (!link && !(link = hearthd_connect(s->socket_path, NULL, NULL)))
            return;
        if (!hearthd_counters(link, volume, SERVED_ASK_MS, &now, NULL))
            continue;
        const HearthdCounters *last = g_hash_table_lookup(before, volume);
        /* At first it is not known how many objects there were before. */
        if (!last || last->bytes != now.bytes || last->objects > now.objects)
            refresh_stacks(s, table, volume);
        g_hash_table_replace(before, g_strdup(volume), g_memdup2(&now, sizeof(now)));
    }
}

static void *refresh_thread(void *data)
{
    Staging *s = data;
    g_autoptr(GHashTable) before = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    struct pollfd stop = {.fd = s->datasets->stop, .events = POLLIN};
    for (;;) {
        int n = poll(&stop, 1, s->datasets->refresh_ms);
        if (n > 0)
            return NULL;
        if (n == 0)
            refresh_all(s, before);
    }
}

void dataset_refresh_start(Staging *s)
{
    s->datasets->stop = eventfd(0, EFD_CLOEXEC);
    if (s->datasets->stop < 0)
        g_error("eventfd: %s", g_strerror(errno));
    int rc = pthread_create(&s->datasets->thread, NULL, refresh_thread, s);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
}

void dataset_refresh_stop(Staging *s)
{
    eventfd_write(s->datasets->stop, 1);
    pthread_join(s->datasets->thread, NULL);
    close(s->datasets->stop);
}
