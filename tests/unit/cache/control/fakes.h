/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store, a FUSE session and a CephFS origin that do what a test says. A program that includes
 * this has its own store_*, session_* and origin_cephfs_open; the linker then takes none from the
 * archive.
 */
#ifndef HEARTH_TESTS_CONTROL_FAKES_H
#define HEARTH_TESTS_CONTROL_FAKES_H

#include "cache/fuse/live/session.h"
#include "cache/origin/origin.h"
#include "cache/store/store.h"
#include <errno.h>
#include <gio/gio.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>

/* ---- store ---- */

struct Store {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GHashTable *held; /* "inode:version:size" -> FakeObject */
    gboolean hold_fills;
    gboolean full;
    int fill_result; /* of every fill */
    int stale_once;  /* that many fills end with ESTALE */
    uint64_t max_bytes;
    StoreDisk disk;
    unsigned started, waiting, live, most_live;
    const Origin *cancelled;
};

typedef struct FakeObject {
    char *tag;
    uint64_t size;
} FakeObject;

struct StoreFill {
    Store *store;
    const Origin *origin;
    char *name, *tag;
    uint64_t size;
    gboolean ended, stale;
    int result;
};

static inline void fake_object_free(gpointer data)
{
    FakeObject *object = data;
    g_free(object->tag);
    g_free(object);
}

static inline Store *fake_store_new(void)
{
    Store *store = g_new0(Store, 1);
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->changed, NULL);
    store->held = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, fake_object_free);
    return store;
}

static inline void fake_store_free(Store *store)
{
    g_hash_table_unref(store->held);
    pthread_cond_destroy(&store->changed);
    pthread_mutex_destroy(&store->lock);
    g_free(store);
}

static inline void fake_store_release_fills(Store *store)
{
    pthread_mutex_lock(&store->lock);
    store->hold_fills = FALSE;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

/* Waits until somebody waits for a fill. */
static inline void fake_store_await_waiter(Store *store)
{
    pthread_mutex_lock(&store->lock);
    while (!store->waiting)
        pthread_cond_wait(&store->changed, &store->lock);
    pthread_mutex_unlock(&store->lock);
}

static inline char *fake_name(const ObjectId *id)
{
    uint64_t words[2];
    memcpy(words, id->bytes, 16);
    return g_strdup_printf("%" G_GINT64_MODIFIER "x:%" G_GINT64_MODIFIER "x", words[0], words[1]);
}

gboolean store_has(Store *store, const ObjectId *id)
{
    g_autofree char *name = fake_name(id);
    pthread_mutex_lock(&store->lock);
    gboolean has = g_hash_table_contains(store->held, name);
    pthread_mutex_unlock(&store->lock);
    return has;
}

StoreFill *store_fill(Store *store, Origin *origin, OriginNode *node, const ObjectKey *key,
                      const char *tag)
{
    (void)node;
    ObjectId id;
    object_key_id(key, &id);
    StoreFill *fill = NULL;
    pthread_mutex_lock(&store->lock);
    if (!store->full) {
        fill = g_new0(StoreFill, 1);
        fill->store = store;
        fill->origin = origin;
        fill->name = fake_name(&id);
        fill->tag = g_strdup(tag);
        fill->size = key->size;
        fill->stale = store->stale_once > 0 && store->stale_once--;
        store->started++;
        store->live++;
        store->most_live = MAX(store->most_live, store->live);
    }
    pthread_mutex_unlock(&store->lock);
    return fill;
}

static inline void fake_fill_finish_locked(StoreFill *fill)
{
    Store *store = fill->store;
    if (fill->ended)
        return;
    fill->ended = TRUE;
    fill->result = store->cancelled == fill->origin ? -ECANCELED
                   : fill->stale                    ? -ESTALE
                                                    : store->fill_result;
    if (fill->result == 0) {
        FakeObject *object = g_new0(FakeObject, 1);
        object->tag = g_strdup(fill->tag);
        object->size = fill->size;
        g_hash_table_replace(store->held, g_strdup(fill->name), object);
    }
}

int store_fill_wait(StoreFill *fill)
{
    Store *store = fill->store;
    pthread_mutex_lock(&store->lock);
    store->waiting++;
    pthread_cond_broadcast(&store->changed);
    while (store->hold_fills && store->cancelled != fill->origin)
        pthread_cond_wait(&store->changed, &store->lock);
    store->waiting--;
    fake_fill_finish_locked(fill);
    int result = fill->result;
    pthread_mutex_unlock(&store->lock);
    return result;
}

/* The first chunk is there at once; later ones when fills are not held. */
ssize_t store_fill_read(StoreFill *fill, void *buf, size_t len, uint64_t off)
{
    if (off >= (4u << 20)) {
        int result = store_fill_wait(fill);
        if (result < 0)
            return result;
    }
    memset(buf, 0, len);
    return (ssize_t)len;
}

void store_fill_unref(StoreFill *fill)
{
    pthread_mutex_lock(&fill->store->lock);
    fill->store->live--;
    pthread_mutex_unlock(&fill->store->lock);
    g_free(fill->name);
    g_free(fill->tag);
    g_free(fill);
}

void store_cancel_fills(Store *store, Origin *origin)
{
    pthread_mutex_lock(&store->lock);
    store->cancelled = origin;
    pthread_cond_broadcast(&store->changed);
    pthread_mutex_unlock(&store->lock);
}

static uint64_t fake_evict(Store *store, const char *tag, uint64_t bytes, gboolean pinned_too)
{
    uint64_t freed = 0;
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&store->lock);
    g_hash_table_iter_init(&iter, store->held);
    while (freed < bytes && g_hash_table_iter_next(&iter, NULL, &value)) {
        FakeObject *object = value;
        if (tag ? strcmp(tag, object->tag) != 0
                : !pinned_too && store_is_pinned(store, object->tag))
            continue;
        freed += object->size;
        g_hash_table_iter_remove(&iter);
    }
    pthread_mutex_unlock(&store->lock);
    return freed;
}

uint64_t store_evict(Store *store, const char *tag, uint64_t bytes)
{
    return fake_evict(store, tag, bytes, FALSE);
}

uint64_t store_evict_parts(Store *store, const char *tag, uint64_t bytes)
{
    (void)store, (void)tag, (void)bytes;
    return 0;
}

uint64_t store_evict_over_quota(Store *store, const char *tag, uint64_t bytes)
{
    return fake_evict(store, tag, bytes, FALSE);
}

const StoreTimes *store_times(const Store *store)
{
    static const StoreTimes times;
    (void)store;
    return &times;
}

static GHashTable *fake_pins, *fake_uses; /* tags; NULL: none */

void store_use(Store *store, const char *tag, gboolean on)
{
    (void)store;
    if (!fake_uses)
        fake_uses = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (on)
        g_hash_table_add(fake_uses, g_strdup(tag));
    else
        g_hash_table_remove(fake_uses, tag);
}

int store_pin(Store *store, const char *tag, gboolean on)
{
    (void)store;
    if (!fake_pins)
        fake_pins = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    if (on)
        g_hash_table_add(fake_pins, g_strdup(tag));
    else
        g_hash_table_remove(fake_pins, tag);
    return 0;
}

gboolean store_is_pinned(Store *store, const char *tag)
{
    (void)store;
    return fake_pins && g_hash_table_contains(fake_pins, tag);
}

GPtrArray *store_pins(Store *store)
{
    (void)store;
    GPtrArray *tags = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer tag;
    if (fake_pins) {
        g_hash_table_iter_init(&iter, fake_pins);
        while (g_hash_table_iter_next(&iter, &tag, NULL))
            g_ptr_array_add(tags, g_strdup(tag));
    }
    return tags;
}

uint64_t store_evict_pinned_too(Store *store, uint64_t bytes)
{
    return fake_evict(store, NULL, bytes, TRUE);
}

size_t store_adopt(Store *store, const char *tag, const ObjectId *ids, size_t n)
{
    (void)store, (void)tag, (void)ids, (void)n;
    return 0;
}

void store_tag_usage(Store *store, const char *tag, uint64_t *bytes, uint64_t *objects)
{
    GHashTableIter iter;
    gpointer value;
    *bytes = *objects = 0;
    pthread_mutex_lock(&store->lock);
    g_hash_table_iter_init(&iter, store->held);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        FakeObject *object = value;
        if (strcmp(tag, object->tag) == 0) {
            *bytes += object->size;
            *objects += 1;
        }
    }
    pthread_mutex_unlock(&store->lock);
}

void store_stats(Store *store, StoreStats *stats)
{
    memset(stats, 0, sizeof(*stats));
    pthread_mutex_lock(&store->lock);
    stats->objects = g_hash_table_size(store->held);
    stats->max_bytes = store->max_bytes;
    stats->disk = store->disk;
    pthread_mutex_unlock(&store->lock);
}

void store_set_other_bytes(Store *store, StoreOther other, uint64_t bytes)
{
    (void)store, (void)other, (void)bytes;
}

uint64_t store_image_room(Store *store)
{
    (void)store;
    return UINT64_MAX;
}

StoreDisk store_disk(Store *store)
{
    return store->disk;
}

void store_report_disk(Store *store, int error)
{
    (void)store, (void)error;
}

const char *store_boot_id(const Store *store)
{
    (void)store;
    return "boot";
}

/* All that is held, and nothing bad. */
int store_verify_some(Store *store, const char *tag, StoreVerify *run, uint64_t max_bytes)
{
    (void)max_bytes;
    uint64_t objects = 0, bytes = 0;
    if (tag)
        store_tag_usage(store, tag, &bytes, &objects);
    run->objects = objects;
    run->bytes = bytes;
    run->end = TRUE;
    return 0;
}

/* What only a fill layer uses; none is started here. */
int store_open_object(Store *store, const ObjectId *id, uint64_t size)
{
    (void)store, (void)id, (void)size;
    return -ENOENT;
}

StoreFill *store_fill_path(Store *store, Origin *origin, const char *path, const ObjectKey *key,
                           const char *tag)
{
    (void)path;
    return store_fill(store, origin, NULL, key, tag);
}

StoreFill *store_fill_ahead(Store *store, const FillRequest *r)
{
    return store_fill(store, r->origin, r->node, r->key, r->tag);
}

int store_fill_await(StoreFill *fill, uint64_t off, unsigned timeout_ms)
{
    (void)timeout_ms;
    /* The first chunk is there at once; the last one is waited for by store_fill_wait(). */
    return off >= (4u << 20) && off + 1 < fill->size ? store_fill_wait(fill) : 0;
}

void store_fill_abandon(StoreFill *fill)
{
    store_fill_unref(fill);
}

StorePace *store_pace_new(uint64_t bytes_per_sec)
{
    (void)bytes_per_sec;
    return NULL;
}

void store_pace_unref(StorePace *pace)
{
    (void)pace;
}

int store_fill_begin_read(StoreFill *fill, FillWait *wait, size_t len, uint64_t off)
{
    (void)fill, (void)wait, (void)len, (void)off;
    return 0;
}

ssize_t store_fill_read_now(StoreFill *fill, void *buf, size_t len, uint64_t off)
{
    return store_fill_read(fill, buf, len, off);
}

void store_fill_withdraw(FillWait *wait, int result)
{
    (void)wait, (void)result;
}

void store_report_bad(Store *store, const ObjectId *id, int error)
{
    (void)store, (void)id, (void)error;
}

/* ---- session ---- */

struct Session {
    int fd;
    void (*ended)(void *data);
    void *data;
    gboolean read_only, cached;
    gint64 group; /* -1: none */
};

/* The session started last, and how many there are. */
static Session *fake_session;
static _Atomic int fake_sessions;
/* Its session_stop() waits until another is named. */
static Session *_Atomic fake_session_stuck;
static gboolean fake_session_fails;

Session *session_start(const SessionConfig *config, int fuse_fd, void (*ended)(void *data),
                       void *data, GError **error)
{
    if (fake_session_fails) {
        close(fuse_fd);
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "the kernel refused");
        return NULL;
    }
    Session *session = g_new0(Session, 1);
    session->fd = fuse_fd;
    session->ended = ended;
    session->data = data;
    session->read_only = config->read_only;
    session->cached = config->store != NULL;
    session->group = config->has_group ? (gint64)config->group : -1;
    fake_session = session;
    fake_sessions++;
    return session;
}

void session_set_group(Session *session, gboolean any, gid_t group)
{
    session->group = any ? (gint64)group : -1;
}

void session_stats(Session *session, FuseStats *stats)
{
    (void)session;
    memset(stats, 0, sizeof(*stats));
    stats->opens = 3;
}

int session_fd(Session *session)
{
    return session->fd;
}

gboolean session_can_be_left(Session *session)
{
    (void)session;
    return FALSE;
}

gboolean session_leave(Session *session, int state_fd, unsigned timeout_ms, GError **error)
{
    (void)state_fd, (void)timeout_ms, (void)error;
    session_stop(session);
    return TRUE;
}

void session_stop(Session *session)
{
    while (fake_session_stuck == session)
        g_usleep(1000);
    close(session->fd);
    fake_sessions--;
    if (fake_session == session)
        fake_session = NULL;
    g_free(session);
}

/* ---- CephFS ---- */

static pthread_mutex_t fake_ceph_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t fake_ceph_changed = PTHREAD_COND_INITIALIZER;
static gboolean fake_ceph_hangs;
static unsigned fake_ceph_callers;
static int fake_ceph_error; /* a GIOErrorEnum, 0: connect to the local directory rootPath */

static _Atomic int fake_ceph_may_read; /* what OSDs say of any file */

static int fake_may_read(Origin *o, OriginNode *node)
{
    (void)o, (void)node;
    return fake_ceph_may_read;
}

static Origin *fake_ceph_open(const char *path, GError **error)
{
    static OriginOps ops; /* the same each time */
    Origin *origin = origin_dir_open(path, error);
    if (!origin)
        return NULL;
    pthread_mutex_lock(&fake_ceph_lock);
    if (!ops.type)
        ops = *origin->ops;
    ops.may_read = fake_may_read;
    pthread_mutex_unlock(&fake_ceph_lock);
    origin->ops = &ops;
    return origin;
}

gboolean origin_cephfs_await_ends(unsigned timeout_ms)
{
    (void)timeout_ms;
    return TRUE;
}

unsigned origin_cephfs_connections(void)
{
    return 0;
}

Origin *origin_cephfs_open(const CephfsOriginConfig *config, GError **error)
{
    pthread_mutex_lock(&fake_ceph_lock);
    fake_ceph_callers++;
    pthread_cond_broadcast(&fake_ceph_changed);
    while (fake_ceph_hangs)
        pthread_cond_wait(&fake_ceph_changed, &fake_ceph_lock);
    int failure = fake_ceph_error;
    pthread_mutex_unlock(&fake_ceph_lock);
    if (failure) {
        g_set_error(error, G_IO_ERROR, failure, "monitors %s: no", config->monitors);
        return NULL;
    }
    return fake_ceph_open(config->root_path, error);
}

static inline void fake_ceph_hang(gboolean hang)
{
    pthread_mutex_lock(&fake_ceph_lock);
    fake_ceph_hangs = hang;
    fake_ceph_callers = hang ? 0 : fake_ceph_callers;
    pthread_cond_broadcast(&fake_ceph_changed);
    pthread_mutex_unlock(&fake_ceph_lock);
}

static inline void fake_ceph_await_caller(void)
{
    pthread_mutex_lock(&fake_ceph_lock);
    while (!fake_ceph_callers)
        pthread_cond_wait(&fake_ceph_changed, &fake_ceph_lock);
    pthread_mutex_unlock(&fake_ceph_lock);
}

#endif
