/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/keeper.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/hearthd/spec.h"
#include "proto/wire.h"

struct Keeper {
    pthread_mutex_t lock;
    GHashTable *volumes; /* char * -> KeptVolume; guarded by lock */
    guint64 places;      /* guarded by lock */
    void (*changed)(void *data, const char *volume);
    void *changed_data;
};

typedef struct KeptVolume {
    json_t *spec; /* no one else holds a reference: it is wiped when freed */
    char *note;   /* with neither, the next hearthd cannot serve it */
    int state_fd;
    int fuse_fd;
    gboolean loaded;
    gboolean lent; /* who has it uses up the state that was left */
    guint64 place;
    gint64 lost_us; /* when hearthd ended; 0: not known to have */
} KeptVolume;

static void kept_free(void *data)
{
    KeptVolume *kept = data;
    node_spec_free(kept->spec);
    hearth_close_fd(&kept->fuse_fd);
    hearth_close_fd(&kept->state_fd);
    g_free(kept->note);
    g_free(kept);
}

Keeper *keeper_new(void)
{
    Keeper *k = g_new0(Keeper, 1);
    pthread_mutex_init(&k->lock, NULL);
    k->volumes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, kept_free);
    return k;
}

void keeper_free(Keeper *k)
{
    if (!k)
        return;
    g_hash_table_unref(k->volumes);
    pthread_mutex_destroy(&k->lock);
    g_free(k);
}

void keeper_on_change(Keeper *k, void (*changed)(void *data, const char *volume), void *data)
{
    k->changed = changed;
    k->changed_data = data;
}

static void tell_locked(Keeper *k, const char *volume)
{
    if (k->changed)
        k->changed(k->changed_data, volume);
}

static KeptVolume *kept_new(const json_t *spec, const KeptResume *resume, int fuse_fd)
{
    KeptVolume *kept = g_new0(KeptVolume, 1);
    kept->spec = json_deep_copy(spec);
    kept->note = g_strdup(resume->note);
    kept->state_fd = resume->state_fd;
    kept->fuse_fd = fuse_fd;
    return kept;
}

static void put_locked(Keeper *k, const char *volume, KeptVolume *kept)
{
    kept->place = ++k->places;
    g_hash_table_replace(k->volumes, g_strdup(volume), kept);
    tell_locked(k, volume);
}

void keeper_put(Keeper *k, const char *volume, const json_t *spec, const KeptResume *resume,
                int fuse_fd)
{
    KeptVolume *kept = kept_new(spec, resume, fuse_fd);
    pthread_mutex_lock(&k->lock);
    put_locked(k, volume, kept);
    pthread_mutex_unlock(&k->lock);
}

void keeper_put_loaded(Keeper *k, const char *volume, const json_t *spec, const KeptResume *resume,
                       int fuse_fd)
{
    KeptVolume *kept = kept_new(spec, resume, fuse_fd);
    kept->loaded = TRUE;
    pthread_mutex_lock(&k->lock);
    if (g_hash_table_contains(k->volumes, volume))
        kept_free(kept);
    else
        put_locked(k, volume, kept);
    pthread_mutex_unlock(&k->lock);
}

void keeper_renew(Keeper *k, const char *volume, const json_t *spec)
{
    pthread_mutex_lock(&k->lock);
    KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    if (kept) {
        node_spec_free(kept->spec);
        kept->spec = json_deep_copy(spec);
        tell_locked(k, volume);
    }
    pthread_mutex_unlock(&k->lock);
}

json_t *keeper_spec(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    const KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    json_t *spec = kept ? json_deep_copy(kept->spec) : NULL;
    pthread_mutex_unlock(&k->lock);
    return spec;
}

/* ---- what is true of a volume */

static gboolean has_descriptor(const KeptVolume *kept)
{
    return kept->fuse_fd >= 0;
}

static gboolean is_complete(const KeptVolume *kept)
{
    return has_descriptor(kept) && !kept->loaded;
}

static gboolean may_yet_wait(const KeptVolume *kept)
{
    return has_descriptor(kept) && (kept->note || kept->state_fd >= 0);
}

static gboolean may_wait(const KeptVolume *kept)
{
    return may_yet_wait(kept) && (kept->lent || kept->note || wire_state_is_left(kept->state_fd));
}

static gboolean ends(const KeptVolume *kept)
{
    return has_descriptor(kept) && !may_wait(kept);
}

/* FALSE for a volume that is not kept. */
static gboolean volume_is(Keeper *k, const char *volume, gboolean (*is)(const KeptVolume *kept))
{
    pthread_mutex_lock(&k->lock);
    const KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    const gboolean it_is = kept && is(kept);
    pthread_mutex_unlock(&k->lock);
    return it_is;
}

gboolean keeper_is_complete(Keeper *k, const char *volume)
{
    return volume_is(k, volume, is_complete);
}

gboolean keeper_has_descriptor(Keeper *k, const char *volume)
{
    return volume_is(k, volume, has_descriptor);
}

gboolean keeper_may_yet_wait(Keeper *k, const char *volume)
{
    return volume_is(k, volume, may_yet_wait);
}

gboolean keeper_may_wait(Keeper *k, const char *volume)
{
    return volume_is(k, volume, may_wait);
}

gboolean keeper_ends(Keeper *k, const char *volume)
{
    return volume_is(k, volume, ends);
}

/* ---- letting go */

void keeper_drop(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    if (g_hash_table_remove(k->volumes, volume))
        tell_locked(k, volume);
    pthread_mutex_unlock(&k->lock);
}

void keeper_drop_loaded(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    const KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    if (kept && kept->loaded && g_hash_table_remove(k->volumes, volume))
        tell_locked(k, volume);
    pthread_mutex_unlock(&k->lock);
}

static gboolean release_locked(Keeper *k, const char *volume, KeptVolume *kept)
{
    if (!kept || kept->fuse_fd < 0)
        return FALSE;
    hearth_close_fd(&kept->fuse_fd);
    kept->loaded = kept->lent = FALSE;
    tell_locked(k, volume);
    return TRUE;
}

void keeper_release_volume(Keeper *k, const char *volume)
{
    pthread_mutex_lock(&k->lock);
    release_locked(k, volume, g_hash_table_lookup(k->volumes, volume));
    pthread_mutex_unlock(&k->lock);
}

static gboolean any_is(Keeper *k, gboolean (*is)(const KeptVolume *kept))
{
    GHashTableIter iter;
    gpointer value;
    gboolean any = FALSE;
    pthread_mutex_lock(&k->lock);
    g_hash_table_iter_init(&iter, k->volumes);
    while (!any && g_hash_table_iter_next(&iter, NULL, &value))
        any = is(value);
    pthread_mutex_unlock(&k->lock);
    return any;
}

gboolean keeper_any_ends(Keeper *k)
{
    return any_is(k, ends);
}

static gboolean awaits_state(const KeptVolume *kept)
{
    return may_yet_wait(kept) && !may_wait(kept);
}

gboolean keeper_awaits_state(Keeper *k)
{
    return any_is(k, awaits_state);
}

unsigned keeper_release(Keeper *k)
{
    unsigned released = 0;
    GHashTableIter iter;
    gpointer name, value;
    const gint64 now = g_get_monotonic_time();
    pthread_mutex_lock(&k->lock);
    g_hash_table_iter_init(&iter, k->volumes);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        KeptVolume *kept = value;
        if (!may_wait(kept))
            released += release_locked(k, name, kept) ? 1 : 0;
        else if (!kept->lost_us)
            kept->lost_us = now;
    }
    pthread_mutex_unlock(&k->lock);
    return released;
}

/* ---- volumes that the next hearthd can serve */

static GPtrArray *those_that(Keeper *k, gboolean (*is)(const KeptVolume *kept))
{
    GPtrArray *all = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer name, value;
    pthread_mutex_lock(&k->lock);
    g_hash_table_iter_init(&iter, k->volumes);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        if (is(value))
            g_ptr_array_add(all, g_strdup(name));
    }
    pthread_mutex_unlock(&k->lock);
    return all;
}

static gboolean is_waiting(const KeptVolume *kept)
{
    return may_wait(kept) && kept->lost_us;
}

GPtrArray *keeper_waiting(Keeper *k)
{
    return those_that(k, is_waiting);
}

static gboolean is_loaded(const KeptVolume *kept)
{
    return kept->loaded;
}

GPtrArray *keeper_loaded(Keeper *k)
{
    return those_that(k, is_loaded);
}

unsigned keeper_release_overdue(Keeper *k, gint64 wait_ms)
{
    unsigned released = 0;
    GHashTableIter iter;
    gpointer name, value;
    const gint64 before = g_get_monotonic_time() - wait_ms * 1000;
    pthread_mutex_lock(&k->lock);
    g_hash_table_iter_init(&iter, k->volumes);
    while (g_hash_table_iter_next(&iter, &name, &value)) {
        KeptVolume *kept = value;
        if (kept->lost_us && kept->lost_us <= before)
            released += release_locked(k, name, kept) ? 1 : 0;
    }
    pthread_mutex_unlock(&k->lock);
    return released;
}

void kept_mount_clear(KeptMount *m)
{
    node_spec_free(m->spec);
    g_free(m->note);
    hearth_close_fd(&m->fuse_fd);
    hearth_close_fd(&m->state_fd);
    *m = (KeptMount)KEPT_MOUNT_NONE;
}

/* -1, and a warning, when there is none. */
static int duplicate(const char *volume, int fd)
{
    const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        g_warning("volume %s: its descriptor cannot be duplicated: %s", volume, g_strerror(errno));
    return copy;
}

/* FALSE: no descriptor can be had. */
static gboolean lend_locked(const KeptVolume *kept, const char *volume, KeptMount *m)
{
    m->fuse_fd = duplicate(volume, kept->fuse_fd);
    if (m->fuse_fd >= 0 && !kept->note)
        m->state_fd = duplicate(volume, kept->state_fd);
    if (m->fuse_fd < 0 || (!kept->note && m->state_fd < 0))
        return FALSE;
    m->spec = json_deep_copy(kept->spec);
    m->note = g_strdup(kept->note);
    m->place = kept->place;
    return TRUE;
}

gboolean keeper_look(Keeper *k, const char *volume, KeptMount *m)
{
    *m = (KeptMount)KEPT_MOUNT_NONE;
    pthread_mutex_lock(&k->lock);
    const KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    const gboolean found = kept && may_yet_wait(kept);
    if (found)
        lend_locked(kept, volume, m);
    pthread_mutex_unlock(&k->lock);
    return found;
}

static gboolean is_any(const KeptVolume *kept)
{
    return kept != NULL;
}

GPtrArray *keeper_volumes(Keeper *k)
{
    return those_that(k, is_any);
}

gboolean keeper_lend(Keeper *k, const char *volume, KeptMount *m)
{
    gboolean lent = FALSE;
    *m = (KeptMount)KEPT_MOUNT_NONE;
    pthread_mutex_lock(&k->lock);
    KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    if (kept && may_wait(kept)) {
        if (!kept->lost_us)
            kept->lost_us = g_get_monotonic_time();
        lent = kept->lent = lend_locked(kept, volume, m);
    }
    pthread_mutex_unlock(&k->lock);
    return lent;
}

void keeper_give_back(Keeper *k, const char *volume, guint64 place)
{
    pthread_mutex_lock(&k->lock);
    KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    if (kept && kept->place == place)
        kept->lent = FALSE;
    pthread_mutex_unlock(&k->lock);
}

void keeper_release_lent(Keeper *k, const char *volume, guint64 place)
{
    pthread_mutex_lock(&k->lock);
    KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    if (kept && kept->place == place)
        release_locked(k, volume, kept);
    pthread_mutex_unlock(&k->lock);
}

gboolean keeper_served_again(Keeper *k, const char *volume, guint64 place, const KeptResume *resume)
{
    hearth_autofd int state_fd = resume->state_fd;
    pthread_mutex_lock(&k->lock);
    KeptVolume *kept = g_hash_table_lookup(k->volumes, volume);
    const gboolean same = kept && kept->fuse_fd >= 0 && kept->place == place;
    if (same) {
        g_free(kept->note);
        kept->note = g_strdup(resume->note);
        hearth_close_fd(&kept->state_fd);
        kept->state_fd = hearth_steal_fd(&state_fd);
        kept->lost_us = 0;
        kept->loaded = kept->lent = FALSE;
        tell_locked(k, volume);
    }
    pthread_mutex_unlock(&k->lock);
    return same;
}
