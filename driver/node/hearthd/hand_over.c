/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/hand_over.h"
#include <pthread.h>
#include <time.h>
#include "common/monotonic.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/manifest.h"
#include "proto/wire_keys.h"

/* Volumes at once. Those that were not tried yet come before those that were in vain. */
#define THREADS_MAX 64
/* hearthd itself waits for Ceph for a shorter time, then goes on without it. */
#define CALL_MS 60000
#define MANIFEST_MS 5000
#define AGAIN_MS 200

struct HandOver {
    char *socket_path;
    Keeper *keeper;
    GThreadPool *threads;
    pthread_mutex_t lock;
    pthread_cond_t stopped;
    gboolean stopping;     /* lock */
    GHashTable *under_way; /* lock: char * */
};

typedef struct HandOverOne {
    char *volume;
    unsigned tries;
} HandOverOne;

/* Another try would not help. `cause` is of link.h. */
static gboolean is_final(const GError *cause)
{
    switch (cause->code) {
    case HEARTH_ERROR_PERMISSION_DENIED:
    case HEARTH_ERROR_NOT_FOUND:
    case HEARTH_ERROR_INVALID_ARGUMENT:
    case HEARTH_ERROR_ALREADY_EXISTS:
    case HEARTH_ERROR_UNIMPLEMENTED:
        return TRUE;
    default:
        return FALSE;
    }
}

static gboolean is_stopping(HandOver *all)
{
    pthread_mutex_lock(&all->lock);
    const gboolean stopping = all->stopping;
    pthread_mutex_unlock(&all->lock);
    return stopping;
}

/* On one connection: hearthd stops to build it when the connection ends. */
static gboolean await_manifest(HandOver *all, HearthdLink *link, const char *volume, GError **error)
{
    for (;;) {
        g_autoptr(GError) cause = NULL;
        if (hearthd_await_manifest(link, volume, MANIFEST_MS, &cause))
            return TRUE;
        const gboolean builds = g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_ABORTED);
        if (!builds || is_stopping(all) || !keeper_may_wait(all->keeper, volume)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
    }
}

/* The volume is open on the link; what its mount needs is there then. */
static gboolean prepare(HandOver *all, HearthdLink *link, const char *volume, const KeptMount *kept,
                        GError **error)
{
    return kept->note ? await_manifest(all, link, volume, error)
                      : hearthd_restore(link, volume, kept->state_fd, CALL_MS, error);
}

static gboolean attach(HandOver *all, HearthdLink *link, const char *volume, const KeptMount *kept,
                       GError **error)
{
    const HearthdMount mount = {.volume = volume,
                                .layer = kept->note ? WIRE_LAYER_FILL : NULL,
                                .note = kept->note,
                                .restored = !kept->note,
                                .fuse_fd = kept->fuse_fd};
    g_autofree char *note = NULL;
    if (!prepare(all, link, volume, kept, error) ||
        !hearthd_attach(link, &mount, &note, CALL_MS, error))
        return FALSE;
    const KeptResume resume = {note, note ? -1 : hearthd_state(link, volume, CALL_MS)};
    /* Replaced: who did that keeps what hearthd serves now. */
    if (!keeper_served_again(all->keeper, volume, kept->place, &resume) &&
        !keeper_has_descriptor(all->keeper, volume))
        hearthd_detach(link, volume, CALL_MS, NULL);
    return TRUE;
}

/* FALSE with an error: hearthd does not serve it. */
static gboolean serve_again(HandOver *all, const char *volume, const KeptMount *kept,
                            GError **error)
{
    gboolean attached;
    g_autoptr(HearthdLink) link =
        hearthd_connect_and_open(all->socket_path, kept->spec, CALL_MS, &attached, error);
    if (!link)
        return FALSE;
    if (!attached)
        return attach(all, link, volume, kept, error);
    /* A loaded one may be of an earlier mount: it is fetched from hearthd (watch.c). */
    if (!keeper_is_complete(all->keeper, volume))
        return TRUE;
    const KeptResume resume = {kept->note, kept->note ? -1 : hearthd_state(link, volume, CALL_MS)};
    keeper_served_again(all->keeper, volume, kept->place, &resume);
    return TRUE;
}

/* FALSE: once more. */
static gboolean try_once(HandOver *all, const char *volume)
{
    g_auto(KeptMount) kept = KEPT_MOUNT_NONE;
    g_autoptr(GError) cause = NULL;
    if (!keeper_lend(all->keeper, volume, &kept))
        return TRUE;
    const gboolean served = serve_again(all, volume, &kept, &cause);
    if (!served && is_final(cause)) {
        g_warning("volume %s: the new hearthd does not serve its mount: %s; it is mounted again "
                  "when it is next staged or published",
                  volume, cause->message);
        keeper_release_lent(all->keeper, volume, kept.place);
        return TRUE;
    }
    keeper_give_back(all->keeper, volume, kept.place);
    if (served)
        g_message("volume %s: the new hearthd serves its mount", volume);
    return served;
}

/* FALSE: it is to stop. */
static gboolean rest(HandOver *all)
{
    const struct timespec until = deadline_after_ms(AGAIN_MS);
    pthread_mutex_lock(&all->lock);
    if (!all->stopping)
        pthread_cond_timedwait(&all->stopped, &all->lock, &until);
    const gboolean goes_on = !all->stopping;
    pthread_mutex_unlock(&all->lock);
    return goes_on;
}

static void one_free(HandOverOne *one)
{
    g_free(one->volume);
    g_free(one);
}

static void run(gpointer data, gpointer user)
{
    HandOverOne *one = data;
    HandOver *all = user;
    if (!is_stopping(all) && !try_once(all, one->volume) && rest(all)) {
        one->tries++;
        g_thread_pool_push(all->threads, one, NULL);
        return;
    }
    pthread_mutex_lock(&all->lock);
    g_hash_table_remove(all->under_way, one->volume);
    pthread_mutex_unlock(&all->lock);
    one_free(one);
}

static gint fewer_tries_first(gconstpointer a, gconstpointer b, gpointer user)
{
    const HandOverOne *x = a, *y = b;
    (void)user;
    return (x->tries > y->tries) - (x->tries < y->tries);
}

HandOver *hand_over_new(const char *socket_path, Keeper *keeper)
{
    HandOver *all = g_new0(HandOver, 1);
    all->socket_path = g_strdup(socket_path);
    all->keeper = keeper;
    all->threads = g_thread_pool_new(run, all, THREADS_MAX, FALSE, NULL);
    g_thread_pool_set_sort_function(all->threads, fewer_tries_first, NULL);
    pthread_mutex_init(&all->lock, NULL);
    cond_init_monotonic(&all->stopped);
    all->under_way = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    return all;
}

void hand_over_begin(HandOver *all, const char *volume)
{
    if (!keeper_may_wait(all->keeper, volume))
        return;
    pthread_mutex_lock(&all->lock);
    const gboolean begins = !all->stopping && g_hash_table_add(all->under_way, g_strdup(volume));
    pthread_mutex_unlock(&all->lock);
    if (!begins)
        return;
    HandOverOne *one = g_new0(HandOverOne, 1);
    one->volume = g_strdup(volume);
    g_thread_pool_push(all->threads, one, NULL);
}

gboolean hand_over_is_under_way(HandOver *all, const char *volume)
{
    pthread_mutex_lock(&all->lock);
    const gboolean is = g_hash_table_contains(all->under_way, volume);
    pthread_mutex_unlock(&all->lock);
    return is;
}

void hand_over_free(HandOver *all)
{
    if (!all)
        return;
    pthread_mutex_lock(&all->lock);
    all->stopping = TRUE;
    pthread_cond_broadcast(&all->stopped);
    pthread_mutex_unlock(&all->lock);
    g_thread_pool_free(all->threads, FALSE, TRUE);
    g_hash_table_unref(all->under_way);
    pthread_cond_destroy(&all->stopped);
    pthread_mutex_destroy(&all->lock);
    g_free(all->socket_path);
    g_free(all);
}
