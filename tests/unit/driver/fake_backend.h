/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A backend in memory: records and volumes in two hash tables. It can fail one primitive, before or
 * after it had its effect, as a crash or a lost answer would leave it. It can do something else
 * before one, as other controllers do while this one is frozen. A second one may be beside it,
 * another location of the cluster.
 */
#ifndef HEARTH_TESTS_FAKE_BACKEND_H
#define HEARTH_TESTS_FAKE_BACKEND_H

#include <pthread.h>
#include <string.h>
#include "driver/backend/backend.h"

typedef struct Fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    GHashTable *records, *volumes; /* name -> text; name -> "" */
    GHashTable *sizes;             /* volume -> gint64* */
    GHashTable *snapshots;         /* volume@snapshot -> its moment */
    GHashTable *holders;           /* record/holder -> "" */
    GHashTable *sealed;            /* record -> "" */
    GHashTable *copies;            /* target -> volume@snapshot it is being copied from */
    int copy_looks;                /* looks at a volume until its copy is complete */
    gboolean copy_fails;           /* instead of ever being complete */
    GHashTable *failed;            /* copies that are known to have failed -> "" */
    const char *group;             /* what locate() gives */
    int fail_at;                   /* the primitive's number from 1, counted down; 0: none */
    gboolean fail_after;           /* it had its effect */
    int fail_code;
    int frozen_at; /* as fail_at; before it, `meanwhile` is called once */
    void (*meanwhile)(void *data);
    void *meanwhile_data;
    int creations; /* of volumes that were not there */
    int moments;   /* at which snapshots were taken */
    int resizes;
    char pin[32];        /* the last one */
    gint64 available;    /* half of it where a pool is named */
    gboolean hold, held; /* volume_create waits while hold; held: one waits */
    gboolean unhealthy;
    gboolean incomplete; /* what is there was half made; creating finishes it */
    gboolean stalls;     /* copies go on only when they are resumed */
    gboolean tells;      /* creating a volume does not look at it */
    int looks;           /* at volumes */
    gboolean says_free;  /* what it says of every name, without a look */
    gboolean leftover;   /* one is there, "trash" */
    struct Fake *beside; /* the location of file system "beside"; NULL: none */
    struct Fake *main;   /* of that one: whose failures it shares */
} Fake;

#define FAKE_BESIDE "beside"

static inline Fake *fake_new(void)
{
    Fake *f = g_new0(Fake, 1);
    pthread_mutexattr_t recursive; /* for `meanwhile` */
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&f->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    pthread_cond_init(&f->changed, NULL);
    f->records = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    f->volumes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    f->sizes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    f->snapshots = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->holders = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->sealed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->copies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    f->failed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    f->group = "csi";
    f->fail_code = HEARTH_ERROR_UNAVAILABLE;
    return f;
}

static inline Fake *fake_new_with_beside(void)
{
    Fake *f = fake_new();
    f->beside = fake_new();
    f->beside->main = f;
    return f;
}

static inline void fake_free(void *backend)
{
    Fake *f = backend;
    if (f->beside)
        fake_free(f->beside);
    g_hash_table_unref(f->records);
    g_hash_table_unref(f->volumes);
    g_hash_table_unref(f->sizes);
    g_hash_table_unref(f->snapshots);
    g_hash_table_unref(f->copies);
    g_hash_table_unref(f->failed);
    g_hash_table_unref(f->holders);
    g_hash_table_unref(f->sealed);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    g_free(f);
}

/* TRUE when this primitive fails now; called before and after its effect. */
static inline gboolean fake_fails(Fake *f, gboolean after, GError **error)
{
    f = f->main ? f->main : f;
    if (!after && f->frozen_at > 0 && --f->frozen_at == 0)
        f->meanwhile(f->meanwhile_data);
    if (f->fail_at == 0 || f->fail_after != after || --f->fail_at != 0)
        return FALSE;
    g_set_error(error, HEARTH_ERROR, f->fail_code, "the fake fails");
    return TRUE;
}

static inline VolumeId *fake_locate(void *backend, const VolumeParams *params, GError **error)
{
    (void)error;
    Fake *f = backend;
    VolumeId *id = g_new0(VolumeId, 1);
    id->type = VOLUME_CEPHFS;
    id->cluster_id = g_strdup(params->cluster_id);
    id->fs_name = g_strdup(params->fs_name);
    id->group = g_strdup(f->group);
    return id;
}

/* The location; NULL: there is none. */
static inline Fake *fake_at(Fake *f, const VolumeId *where)
{
    Fake *main = f->main ? f->main : f;
    return where && g_strcmp0(where->fs_name, FAKE_BESIDE) == 0 ? main->beside : main;
}

static inline void *fake_open_beside(void *session, const VolumeId *where, gint64 deadline_us,
                                     GError **error)
{
    (void)deadline_us;
    Fake *there = fake_at(session, where);
    if (!there)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no such location");
    return there;
}

static inline gboolean fake_check_reach(void *backend, const VolumeId *from, const VolumeId *to,
                                        const Secrets *secrets, gint64 deadline_us, GError **error)
{
    (void)from, (void)secrets, (void)deadline_us;
    if (fake_at(backend, to) != backend)
        return TRUE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, "the fake does not reach it");
    return FALSE;
}

static inline void *fake_open(void *backend, const VolumeId *where, const Secrets *secrets,
                              gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    if (!secrets || strcmp(secrets->key, "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==") != 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_UNAUTHENTICATED, "the fake refuses");
        return NULL;
    }
    return fake_open_beside(backend, where, 0, error);
}

static inline void fake_close(void *session)
{
    (void)session;
}

static inline gboolean fake_record_create(void *session, const char *name, const char *text,
                                          gboolean *existed, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    pthread_mutex_lock(&f->lock);
    gboolean good = !fake_fails(f, FALSE, error);
    if (good) {
        *existed = g_hash_table_contains(f->records, name);
        if (!*existed)
            g_hash_table_insert(f->records, g_strdup(name), g_strdup(text));
        good = !fake_fails(f, TRUE, error);
    }
    pthread_mutex_unlock(&f->lock);
    return good;
}

static inline char *fake_record_read(void *session, const char *name, gsize *length,
                                     gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    pthread_mutex_lock(&f->lock);
    char *text = g_strdup(g_hash_table_lookup(f->records, name));
    pthread_mutex_unlock(&f->lock);
    if (text)
        *length = strlen(text);
    else
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no record");
    return text;
}

static inline gboolean fake_remove(Fake *f, GHashTable *table, const char *name, GError **error)
{
    pthread_mutex_lock(&f->lock);
    gboolean good = !fake_fails(f, FALSE, error);
    if (good) {
        g_hash_table_remove(table, name);
        good = !fake_fails(f, TRUE, error);
    }
    pthread_mutex_unlock(&f->lock);
    return good;
}

static inline gboolean fake_record_remove(void *session, const char *name, gint64 deadline_us,
                                          GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    /* The seal and the holders are the record's, and go with it. */
    if (f->fail_at != 1 || f->fail_after)
        g_hash_table_remove(f->sealed, name);
    return fake_remove(f, f->records, name, error);
}

static inline gboolean fake_record_replace(void *session, const RecordChange *change,
                                           gboolean *same, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    if (fake_fails(f, FALSE, error))
        return FALSE;
    const char *now = g_hash_table_lookup(f->records, change->name);
    *same = g_strcmp0(now, change->expected) == 0;
    if (*same && change->text)
        g_hash_table_insert(f->records, g_strdup(change->name), g_strdup(change->text));
    else if (*same)
        g_hash_table_remove(f->records, change->name);
    if (!now)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no record");
    return now && !fake_fails(f, TRUE, error);
}

static inline gboolean fake_record_hold(void *session, const char *name, const char *holder,
                                        gboolean *held, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    if (fake_fails(f, FALSE, error))
        return FALSE;
    if (!g_hash_table_contains(f->records, name)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no record");
        return FALSE;
    }
    *held = !g_hash_table_contains(f->sealed, name);
    if (*held)
        g_hash_table_insert(f->holders, g_strconcat(name, "/", holder, NULL), (char *)"");
    return !fake_fails(f, TRUE, error);
}

static inline gboolean fake_record_release(void *session, const char *name, const char *holder,
                                           gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    g_autofree char *key = g_strconcat(name, "/", holder, NULL);
    return fake_remove(f, f->holders, key, error);
}

static inline GPtrArray *fake_record_seal(void *session, const char *name, gint64 deadline_us,
                                          GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    if (fake_fails(f, FALSE, error))
        return NULL;
    g_autofree char *prefix = g_strconcat(name, "/", NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer key;
    g_hash_table_insert(f->sealed, g_strdup(name), (char *)"");
    g_hash_table_iter_init(&iter, f->holders);
    while (g_hash_table_iter_next(&iter, &key, NULL)) {
        if (g_str_has_prefix(key, prefix))
            g_ptr_array_add(names, g_strdup((char *)key + strlen(prefix)));
    }
    return fake_fails(f, TRUE, error) ? NULL : g_steal_pointer(&names);
}

static inline gboolean fake_record_unseal(void *session, const char *name, gint64 deadline_us,
                                          GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    return fake_remove(f, f->sealed, name, error);
}

static inline char *fake_snapshot_path(const char *path, const char *snapshot)
{
    return g_strdup_printf("%s/.snap/%s", path, snapshot);
}

static inline GPtrArray *fake_record_list(void *session, gint64 deadline_us, GError **error)
{
    (void)deadline_us, (void)error;
    Fake *f = session;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    pthread_mutex_lock(&f->lock);
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, f->records);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, g_strdup(name));
    pthread_mutex_unlock(&f->lock);
    return names;
}

static inline void fake_set_size(Fake *f, const char *name, gint64 bytes)
{
    g_hash_table_insert(f->sizes, g_strdup(name), g_memdup2(&bytes, sizeof(bytes)));
}

static inline gboolean fake_volume_resize(void *session, const VolumeId *id, gint64 bytes,
                                          gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    pthread_mutex_lock(&f->lock);
    gboolean good = !fake_fails(f, FALSE, error);
    if (good) {
        fake_set_size(f, id->name, bytes);
        f->resizes++;
        good = !fake_fails(f, TRUE, error);
    }
    pthread_mutex_unlock(&f->lock);
    return good;
}

static inline gboolean fake_volume_pin(void *session, const VolumeId *id, const char *pin,
                                       gint64 deadline_us, GError **error)
{
    (void)id, (void)deadline_us;
    Fake *f = session;
    if (fake_fails(f, FALSE, error))
        return FALSE;
    g_strlcpy(f->pin, pin, sizeof(f->pin));
    return !fake_fails(f, TRUE, error);
}

static inline gboolean fake_capacity(void *session, const char *pool, gint64 *available,
                                     gint64 deadline_us, GError **error)
{
    (void)deadline_us, (void)error;
    Fake *f = session;
    *available = pool ? f->available / 2 : f->available;
    return TRUE;
}

static inline void fake_free_location(gpointer location)
{
    volume_id_free(location);
}

static inline GPtrArray *fake_one_location(const char *fs_name)
{
    VolumeId location = {.type = VOLUME_CEPHFS,
                         .cluster_id = (char *)"c",
                         .fs_name = (char *)fs_name,
                         .group = (char *)"csi"};
    GPtrArray *list = g_ptr_array_new_with_free_func(fake_free_location);
    g_ptr_array_add(list, volume_id_copy(&location));
    return list;
}

static inline GPtrArray *fake_clusters(void *backend, GError **error)
{
    (void)backend, (void)error;
    return fake_one_location(NULL);
}

static inline GPtrArray *fake_locations(void *backend, const VolumeId *cluster,
                                        const Secrets *secrets, gint64 deadline_us, GError **error)
{
    (void)cluster, (void)deadline_us;
    return fake_open(backend, NULL, secrets, 0, error) ? fake_one_location("f") : NULL;
}

static inline BackendVolume *fake_volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                                              GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    pthread_mutex_lock(&f->lock);
    f->looks++;
    gboolean there = g_hash_table_contains(f->volumes, id->name);
    gboolean incomplete = f->incomplete;
    pthread_mutex_unlock(&f->lock);
    if (!there) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no volume");
        return NULL;
    }
    BackendVolume *volume = g_new0(BackendVolume, 1);
    volume->incomplete = incomplete;
    pthread_mutex_lock(&f->lock);
    const gint64 *bytes = g_hash_table_lookup(f->sizes, id->name);
    volume->bytes = bytes ? *bytes : 0;
    pthread_mutex_unlock(&f->lock);
    volume->path = g_strconcat("/volumes/csi/", id->name, NULL);
    if (g_hash_table_contains(f->copies, id->name)) {
        volume->incomplete = TRUE;
        if (f->copy_fails)
            g_hash_table_add(f->failed, g_strdup(id->name));
        if (g_hash_table_contains(f->failed, id->name))
            volume->failure = g_strdup("the fake cannot copy");
        else
            volume->copying = f->stalls || f->copy_looks-- > 0;
        volume->resume = volume->copying && f->stalls;
        if (!volume->copying && !volume->failure) {
            volume->incomplete = FALSE;
            g_hash_table_remove(f->copies, id->name);
        }
    }
    return volume;
}

static inline BackendVolume *fake_volume_create(void *session, const VolumeId *id,
                                                const VolumeParams *params, gint64 bytes,
                                                gint64 deadline_us, GError **error)
{
    (void)params;
    Fake *f = session;
    pthread_mutex_lock(&f->lock);
    f->held = f->hold;
    pthread_cond_broadcast(&f->changed);
    while (f->hold)
        pthread_cond_wait(&f->changed, &f->lock);
    gboolean good = !fake_fails(f, FALSE, error);
    if (good) {
        if (g_hash_table_insert(f->volumes, g_strdup(id->name), g_strdup("")))
            f->creations++;
        fake_set_size(f, id->name, bytes);
        f->incomplete = FALSE;
        good = !fake_fails(f, TRUE, error);
    }
    BackendVolume *made = good && f->tells ? g_new0(BackendVolume, 1) : NULL;
    if (made) {
        made->bytes = bytes;
        made->path = g_strconcat("/volumes/csi/", id->name, NULL);
    }
    pthread_mutex_unlock(&f->lock);
    return made || !good ? made : fake_volume_look(f, id, deadline_us, error);
}

static inline gboolean fake_has_snapshots(Fake *f, const char *volume)
{
    g_autofree char *prefix = g_strconcat(volume, "@", NULL);
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, f->snapshots);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (g_str_has_prefix(name, prefix))
            return TRUE;
    }
    return FALSE;
}

static inline gboolean fake_volume_remove(void *session, const VolumeId *id,
                                          gboolean keep_snapshots, gint64 deadline_us,
                                          GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    if (!keep_snapshots && fake_has_snapshots(f, id->name)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "it has snapshots");
        return FALSE;
    }
    if (!fake_remove(f, f->volumes, id->name, error))
        return FALSE;
    g_hash_table_remove(f->copies, id->name);
    g_hash_table_remove(f->failed, id->name);
    return TRUE;
}

static inline gboolean fake_snapshot_create(void *session, const VolumeId *volume,
                                            const char *snapshot, gint64 deadline_us,
                                            GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    if (fake_fails(f, FALSE, error))
        return FALSE;
    if (!g_hash_table_contains(f->volumes, volume->name)) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no volume");
        return FALSE;
    }
    g_autofree char *key = g_strconcat(volume->name, "@", snapshot, NULL);
    if (!g_hash_table_contains(f->snapshots, key))
        g_hash_table_insert(f->snapshots, g_steal_pointer(&key), GINT_TO_POINTER(f->moments));
    return !fake_fails(f, TRUE, error);
}

static inline gboolean fake_snapshot_create_group(void *session, const VolumeId *const *volumes,
                                                  const char *const *snapshots, gsize n,
                                                  gint64 deadline_us, GError **error)
{
    Fake *f = session;
    f->moments++;
    for (gsize i = 0; i < n; i++) {
        if (!fake_snapshot_create(session, volumes[i], snapshots[i], deadline_us, error))
            return FALSE; /* as a crash in the middle would */
    }
    return TRUE;
}

static inline gboolean fake_snapshot_remove(void *session, const VolumeId *volume,
                                            const char *snapshot, gint64 deadline_us,
                                            GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    g_autofree char *key = g_strconcat(volume->name, "@", snapshot, NULL);
    GHashTableIter iter;
    gpointer source;
    g_hash_table_iter_init(&iter, f->copies);
    while (g_hash_table_iter_next(&iter, NULL, &source)) {
        if (strcmp(source, key) == 0) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION, "it is in use");
            return FALSE;
        }
    }
    return fake_remove(f, f->snapshots, key, error);
}

static inline gboolean fake_snapshot_look(void *session, const VolumeId *volume,
                                          const char *snapshot, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = session;
    g_autofree char *key = g_strconcat(volume->name, "@", snapshot, NULL);
    if (g_hash_table_contains(f->snapshots, key))
        return TRUE;
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND, "no snapshot");
    return FALSE;
}

static inline GPtrArray *fake_snapshot_list(void *session, const VolumeId *volume,
                                            gint64 deadline_us, GError **error)
{
    (void)deadline_us, (void)error;
    Fake *f = session;
    g_autofree char *prefix = g_strconcat(volume->name, "@", NULL);
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer name;
    g_hash_table_iter_init(&iter, f->snapshots);
    while (g_hash_table_iter_next(&iter, &name, NULL)) {
        if (g_str_has_prefix(name, prefix))
            g_ptr_array_add(names, g_strdup((char *)name + strlen(prefix)));
    }
    return names;
}

/* The copy has the size of its source. */
static inline gboolean fake_volume_copy(void *session, const VolumeId *id,
                                        const VolumeParams *params,
                                        const BackendSnapshot *from_snapshot, gint64 deadline_us,
                                        GError **error)
{
    (void)params;
    Fake *f = session;
    const VolumeId *source = from_snapshot ? from_snapshot->volume : NULL;
    const char *snapshot = from_snapshot ? from_snapshot->name : NULL;
    if (!source) {
        f->stalls = FALSE;
        f->copy_looks = 0;
        return !fake_fails(f, FALSE, error);
    }
    Fake *from = fake_at(f, source);
    if (fake_fails(f, FALSE, error) ||
        !fake_snapshot_look(from, source, snapshot, deadline_us, error))
        return FALSE;
    if (g_hash_table_insert(f->volumes, g_strdup(id->name), g_strdup(""))) {
        f->creations++;
        g_hash_table_insert(f->copies, g_strdup(id->name),
                            g_strconcat(source->name, "@", snapshot, NULL));
        const gint64 *bytes = g_hash_table_lookup(from->sizes, source->name);
        fake_set_size(f, id->name, bytes ? *bytes : 0);
    }
    return !fake_fails(f, TRUE, error);
}

static inline gboolean fake_volume_is_free(void *session, const VolumeId *id, gboolean *is_free,
                                           gint64 deadline_us, GError **error)
{
    (void)id;
    (void)deadline_us;
    (void)error;
    Fake *f = session;
    *is_free = f->says_free;
    return TRUE;
}

static inline GPtrArray *fake_leftovers(void *session, gint64 deadline_us, GError **error)
{
    (void)deadline_us, (void)error;
    Fake *f = session;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    if (f->leftover)
        g_ptr_array_add(names, g_strdup("trash"));
    return names;
}

static inline gboolean fake_leftover_remove(void *session, const char *name, gint64 deadline_us,
                                            GError **error)
{
    (void)deadline_us, (void)error;
    Fake *f = session;
    f->leftover = f->leftover && strcmp(name, "trash") != 0;
    return TRUE;
}

static inline GPtrArray *fake_volume_list(void *session, const VolumeId *where, gint64 deadline_us,
                                          GError **error)
{
    (void)where, (void)deadline_us, (void)error;
    Fake *f = session;
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer name;
    pthread_mutex_lock(&f->lock);
    g_hash_table_iter_init(&iter, f->volumes);
    while (g_hash_table_iter_next(&iter, &name, NULL))
        g_ptr_array_add(names, g_strdup(name));
    pthread_mutex_unlock(&f->lock);
    return names;
}

static inline gboolean fake_probe(void *backend, gint64 deadline_us, GError **error)
{
    (void)deadline_us;
    Fake *f = backend;
    if (f->unhealthy)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_UNAVAILABLE, "the fake is ill");
    return !f->unhealthy;
}

static const BackendOps fake_ops = {
    .type = VOLUME_CEPHFS,
    .needs_secrets = TRUE,
    .locate = fake_locate,
    .open = fake_open,
    .close = fake_close,
    .check_reach = fake_check_reach,
    .open_beside = fake_open_beside,
    .record_create = fake_record_create,
    .record_read = fake_record_read,
    .record_remove = fake_record_remove,
    .record_list = fake_record_list,
    .record_replace = fake_record_replace,
    .record_hold = fake_record_hold,
    .record_release = fake_record_release,
    .record_seal = fake_record_seal,
    .record_unseal = fake_record_unseal,
    .snapshot_path = fake_snapshot_path,
    .volume_create = fake_volume_create,
    .volume_remove = fake_volume_remove,
    .volume_is_free = fake_volume_is_free,
    .volume_look = fake_volume_look,
    .volume_list = fake_volume_list,
    .volume_resize = fake_volume_resize,
    .volume_pin = fake_volume_pin,
    .capacity = fake_capacity,
    .snapshot_create = fake_snapshot_create,
    .snapshot_create_group = fake_snapshot_create_group,
    .snapshot_remove = fake_snapshot_remove,
    .snapshot_look = fake_snapshot_look,
    .snapshot_list = fake_snapshot_list,
    .volume_copy = fake_volume_copy,
    .leftovers = fake_leftovers,
    .leftover_remove = fake_leftover_remove,
    .clusters = fake_clusters,
    .locations = fake_locations,
    .probe = fake_probe,
    .free = fake_free,
};

static inline Backend *fake_backend(Fake *f)
{
    Backend *backend = g_new0(Backend, 1);
    backend->ops = &fake_ops;
    backend->impl = f;
    return backend;
}

#endif
