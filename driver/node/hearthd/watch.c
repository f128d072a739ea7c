/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/watch.h"
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/hearthd/peer.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/hearthd/hand_over.h"
#include "proto/wire.h"

/* Readers wait meanwhile. */
#define RECONNECT_MS 100
#define FETCH_TIMEOUT_MS 5000
/* How often it is checked whether hearthd was killed. One that is still there at the second time
 * does not end by itself. */
#define DYING_CHECK_MS 3000
/* It ends itself after 10 s. */
#define LEAVE_MS 12000

struct Watch {
    char *socket_path;
    NodeMounter *mounter;
    Keeper *keeper;
    Busy *busy;
    HandOver *hand_over;
    gint64 wait_ms;
    int stop; /* eventfd: readable when the thread is to end */
    pthread_t thread;
};

char *watch_busy_name(const char *volume)
{
    char id[WIRE_DATASET_DIGITS + 1];
    return wire_dataset_of(volume, id) ? g_strconcat(WIRE_DATASET_PREFIX, id, NULL)
                                       : g_strdup(volume);
}

json_t *watch_spec(Keeper *keeper, HearthdLink *link, const char *volume, GError **error)
{
    int fd = -1;
    g_autofree char *note = NULL;
    json_t *spec = keeper_is_complete(keeper, volume) ? keeper_spec(keeper, volume) : NULL;
    if (spec)
        return spec;
    spec = hearthd_fetch(link, volume, FETCH_TIMEOUT_MS, &fd, &note, error);
    if (!spec)
        return NULL;
    const KeptResume resume = {note, note ? -1 : hearthd_state(link, volume, FETCH_TIMEOUT_MS)};
    HearthdServing serving;
    /* What was loaded may have the state, if hearthd is ending just now. */
    if (!note && resume.state_fd < 0 && keeper_has_descriptor(keeper, volume) &&
        !hearthd_serving(link, volume, FETCH_TIMEOUT_MS, &serving, NULL))
        close(fd);
    else
        keeper_put(keeper, volume, spec, &resume, fd);
    return spec;
}

static void hand_over_waiting(Watch *w)
{
    g_autoptr(GPtrArray) waiting = keeper_waiting(w->keeper);
    for (guint i = 0; i < waiting->len; i++)
        hand_over_begin(w->hand_over, waiting->pdata[i]);
}

static void abort_mount(Watch *w, const MountEntry *entry)
{
    g_autoptr(GError) cause = NULL;
    if (!w->mounter->ops->abort_fuse(w->mounter, entry->dev, &cause))
        g_warning("%s: %s", entry->target, cause->message);
}

/* Whether it is of this hearthd (another driver may be on the node), and no later one can serve it.
 */
static gboolean ends(Watch *w, const MountEntry *entry)
{
    const char *volume = mount_served_volume(entry);
    return volume && strcmp(entry->type, MOUNT_TYPE) == 0 && keeper_ends(w->keeper, volume);
}

/* hearthd does not serve the mount. The volume is held. */
static void release_or_hand_over(Watch *w, const MountEntry *entry)
{
    const char *volume = mount_served_volume(entry);
    if (keeper_may_wait(w->keeper, volume)) {
        hand_over_begin(w->hand_over, volume);
    } else if (!hand_over_is_under_way(w->hand_over, volume)) {
        if (ends(w, entry))
            abort_mount(w, entry);
        keeper_release_volume(w->keeper, volume);
    }
}

/* Of volumes that were unmounted while no node plugin could say so. */
static void drop_unmounted(Watch *w, GHashTable *mounted)
{
    g_autoptr(GPtrArray) loaded = keeper_loaded(w->keeper);
    for (guint i = 0; i < loaded->len; i++) {
        const char *volume = loaded->pdata[i];
        g_autofree char *name = watch_busy_name(volume);
        g_autoptr(BusyHold) hold = busy_take_background(w->busy, name);
        if (hold && !g_hash_table_contains(mounted, volume))
            keeper_drop_loaded(w->keeper, volume);
    }
}

/* hearthd has said that it does not serve the volume. Other errors say nothing. */
static gboolean is_answer(const GError *cause)
{
    return g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND) ||
           g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION);
}

/* FALSE: hearthd does not answer any more. */
static gboolean fetch_all(Watch *w, HearthdLink *link)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) table = w->mounter->ops->list(w->mounter, &error);
    if (!table) {
        g_warning("%s", error->message);
        return TRUE;
    }
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < table->len; i++) {
        const char *volume = mount_served_volume(table->pdata[i]);
        if (!volume || !g_hash_table_add(seen, (gpointer)volume))
            continue;
        /* A volume that is held is kept, or dropped, by the call that holds it; one that was loaded
         * is looked at again. */
        g_autofree char *name = watch_busy_name(volume);
        g_autoptr(BusyHold) hold = busy_take_background(w->busy, name);
        if (!hold || hand_over_is_under_way(w->hand_over, volume))
            continue;
        if (keeper_is_complete(w->keeper, volume)) {
            /* A hearthd that came and went since the last check took its volumes with it. */
            HearthdServing serving;
            if (hearthd_serving(link, volume, FETCH_TIMEOUT_MS, &serving, NULL) &&
                !serving.attached)
                release_or_hand_over(w, table->pdata[i]);
            continue;
        }
        g_autoptr(GError) cause = NULL;
        node_spec_auto_t *spec = watch_spec(w->keeper, link, volume, &cause);
        if (spec)
            g_message("volume %s: taken over from hearthd after a restart", volume);
        else if (!keeper_may_yet_wait(w->keeper, volume))
            g_warning("volume %s is mounted but hearthd does not serve it: %s; it is mounted again "
                      "when it is next staged or published",
                      volume, cause->message);
        else if (is_answer(cause))
            release_or_hand_over(w, table->pdata[i]);
        else
            return FALSE;
    }
    drop_unmounted(w, seen);
    return TRUE;
}

/* The link may end while hearthd lives: a call took too long, or there were too many. */
static gboolean is_absent(Watch *w)
{
    gboolean absent = FALSE;
    g_autoptr(HearthdLink) link = hearthd_connect(w->socket_path, &absent, NULL);
    return !link && absent;
}

/* Ends the mounts that no later hearthd can serve. `only_if_absent`: none that a hearthd which
 * began meanwhile may serve. */
static void abort_all(Watch *w, gboolean only_if_absent)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(GPtrArray) table = w->mounter->ops->list(w->mounter, &error);
    if (!table)
        g_warning("%s", error->message);
    for (guint i = 0; table && i < table->len; i++) {
        const MountEntry *entry = table->pdata[i];
        if (!ends(w, entry))
            continue;
        g_autofree char *name = watch_busy_name(mount_served_volume(entry));
        g_autoptr(BusyHold) hold = only_if_absent ? busy_take_background(w->busy, name) : NULL;
        if (!only_if_absent || (hold && is_absent(w)))
            abort_mount(w, entry);
    }
}

static gboolean has_exited(int peer)
{
    struct pollfd fd = {.fd = peer, .events = POLLIN};
    return peer >= 0 && poll(&fd, 1, 0) > 0;
}

/* A thread of a hearthd that was killed waits for an answer that only hearthd could give, and keeps
 * the connections open: their readers, and sync(2) of the whole node, wait with it. Volumes that
 * the next hearthd can serve are not those: it takes no pages of datasets, and all of what it has
 * left. */
static void abort_stuck(Watch *w)
{
    g_warning("hearthd at %s cannot end: its mounts are ended", w->socket_path);
    abort_all(w, FALSE);
}

/* hearthd has ended. A descriptor that hearth-keeper has, or another process got, would keep a
 * mount. */
static void release(Watch *w)
{
    if (keeper_any_ends(w->keeper))
        abort_all(w, TRUE);
    const unsigned released = keeper_release(w->keeper);
    if (released > 0)
        g_warning("hearthd at %s went away; %u volumes are not served and answer with errors until "
                  "they are staged again",
                  w->socket_path, released);
}

static void release_overdue(Watch *w)
{
    const unsigned released = keeper_release_overdue(w->keeper, w->wait_ms);
    if (released > 0)
        g_warning("hearthd at %s has not come back; %u volumes answer with errors until they are "
                  "staged again",
                  w->socket_path, released);
}

/* FALSE: hearthd does not answer. */
static gboolean look_at_loaded(Watch *w, HearthdLink *link)
{
    g_autoptr(GPtrArray) loaded = keeper_loaded(w->keeper);
    return loaded->len == 0 || fetch_all(w, link);
}

/* Waits until the link ends (TRUE) or the thread is to stop (FALSE). */
static gboolean wait_for_end(Watch *w, HearthdLink *link, int peer)
{
    struct pollfd fds[] = {
        {.fd = hearthd_link_fd(link), .events = POLLIN | POLLRDHUP},
        {.fd = w->stop, .events = POLLIN},
    };
    unsigned dying = 0; /* times in a row */
    int n;
    while ((n = poll(fds, 2, DYING_CHECK_MS)) <= 0) {
        dying = n == 0 && peer_is_dying(peer) ? dying + 1 : 0;
        if (dying == 2)
            abort_stuck(w);
        if (!dying)
            hand_over_waiting(w);
        release_overdue(w);
        if (!dying && !look_at_loaded(w, link))
            return TRUE;
    }
    return fds[1].revents == 0;
}

/* TRUE: the thread is to stop. */
static gboolean pause_ms(Watch *w, int ms)
{
    struct pollfd fd = {.fd = w->stop, .events = POLLIN};
    return poll(&fd, 1, ms) > 0;
}

/* A hearthd that is asked to end closes its socket first, and then leaves its mounts. The next one
 * begins when all are left. `peer` -1: it is not known, and what it leaves tells. FALSE: the thread
 * is to stop. */
static gboolean await_left(Watch *w, int peer)
{
    const gint64 until = g_get_monotonic_time() + LEAVE_MS * 1000;
    while (keeper_awaits_state(w->keeper) && !has_exited(peer) && is_absent(w)) {
        if (g_get_monotonic_time() > until) {
            abort_stuck(w);
            return TRUE;
        }
        if (pause_ms(w, RECONNECT_MS))
            return FALSE;
    }
    /* What was not left is for the next node plugin. */
    return !pause_ms(w, 0);
}

/* FALSE: the thread is to stop. */
static gboolean end_if_dying(Watch *w, int peer)
{
    struct pollfd fds[] = {{.fd = peer, .events = POLLIN}, {.fd = w->stop, .events = POLLIN}};
    if (peer_is_dying(peer) && poll(fds, 2, DYING_CHECK_MS) == 0 && peer_is_dying(peer))
        abort_stuck(w);
    return fds[1].revents == 0;
}

/* Serves the link until it ends. *ended: hearthd has, too; the link may end while it lives. FALSE:
 * the thread is to stop. */
static gboolean follow(Watch *w, HearthdLink *link, gboolean *ended)
{
    hearth_autofd int peer = peer_open(hearthd_link_fd(link));
    hand_over_waiting(w);
    fetch_all(w, link);
    if (!wait_for_end(w, link, peer) || !end_if_dying(w, peer) || !await_left(w, peer))
        return FALSE;
    *ended = has_exited(peer) || is_absent(w);
    return TRUE;
}

static void tell_waiting(Watch *w)
{
    g_autoptr(GPtrArray) waiting = keeper_waiting(w->keeper);
    if (waiting->len > 0)
        g_warning("hearthd at %s went away; %u volumes wait for the next one, for %" G_GINT64_FORMAT
                  " s at most",
                  w->socket_path, waiting->len, w->wait_ms / 1000);
}

static void *watch_thread(void *data)
{
    Watch *w = data;
    for (;;) {
        gboolean absent, ended = FALSE;
        g_autoptr(HearthdLink) link = hearthd_connect(w->socket_path, &absent, NULL);
        if (link ? !follow(w, link, &ended) : absent && !await_left(w, -1))
            return NULL;
        if (ended || (!link && is_absent(w)))
            release(w);
        if (ended)
            tell_waiting(w);
        release_overdue(w);
        if (pause_ms(w, RECONNECT_MS))
            return NULL;
    }
}

Watch *watch_new(const WatchConfig *config)
{
    Watch *w = g_new0(Watch, 1);
    w->socket_path = g_strdup(config->socket_path);
    w->mounter = config->mounter;
    w->keeper = config->keeper;
    w->busy = config->busy;
    w->wait_ms = (gint64)config->wait_sec * 1000;
    w->hand_over = hand_over_new(config->socket_path, config->keeper);
    w->stop = eventfd(0, EFD_CLOEXEC);
    if (w->stop < 0)
        g_error("eventfd: %s", g_strerror(errno));
    int rc = pthread_create(&w->thread, NULL, watch_thread, w);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    return w;
}

void watch_hand_over(Watch *w, const char *volume)
{
    hand_over_begin(w->hand_over, volume);
}

void watch_free(Watch *w)
{
    if (!w)
        return;
    eventfd_write(w->stop, 1);
    pthread_join(w->thread, NULL);
    close(w->stop);
    hand_over_free(w->hand_over);
    g_free(w->socket_path);
    g_free(w);
}
