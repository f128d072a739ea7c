/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An answer of Ceph about a location and user is ordered by the moment at which Ceph was asked, not
 * by the moment at which the answer came: an older answer never replaces a newer one. A note on
 * disk (last_seen.h) is never older than the newest answer: it is removed before an answer that
 * differs from it counts, and written again only for the answer that still is the newest one.
 */
#include "cache/volume/offline.h"
#include <fcntl.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "common/autofd.h"
#include "cache/volume/last_seen.h"
#include "cache/volume/rights.h"
#include "proto/wire.h"
#include "cache/origin/deferred.h"

struct Offline {
    Datasets *datasets;
    char *dir;              /* of the manifests and notes */
    guchar hmac_key[32];    /* of the keys in `answers` */
    _Atomic gint64 away_us; /* when a wait for Ceph timed out last; 0: never */
    pthread_mutex_t lock;   /* guards all below */
    GHashTable *answers;    /* Answer by location and user */
    uint64_t asked;         /* number of the last question */
    uint64_t forgotten;     /* answers to questions up to this one were dropped */
};

typedef struct Connect {
    VolumeSpec *spec;
    const Incarnation *incarnation;
    char *manifest; /* its path */
} Connect;

static Manifest *open_manifest(const char *path)
{
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    return fd >= 0 ? manifest_open(fd, FALSE, NULL) : NULL;
}

/* Whether the origin is the tree of the manifest. */
static gboolean is_tree_of(Origin *origin, const Manifest *manifest)
{
    const ManifestFooter *f = &manifest->footer;
    OriginNode *root;
    OriginAttr attr;
    if (origin->ops->root(origin, &root, &attr) < 0)
        return FALSE;
    origin->ops->put(origin, root);
    return attr.st.st_ino == f->root_ino && attr.snapshot == f->snapshot &&
           attr.version == f->root_version;
}

/* An answer of the MDS alone is not enough: OSDs, which hold the cached bytes, may refuse this
 * user. */
static Origin *connect_now(void *data, GError **error)
{
    const Connect *c = data;
    g_autoptr(Origin) origin = spec_connect(c->spec, c->incarnation, error);
    g_autoptr(Manifest) manifest = origin ? open_manifest(c->manifest) : NULL;
    if (manifest && is_tree_of(origin, manifest) && !rights_check(origin, c->spec, manifest, error))
        return NULL;
    return g_steal_pointer(&origin);
}

static void free_connect(gpointer data)
{
    Connect *c = data;
    spec_free(c->spec);
    g_free(c->manifest);
    g_free(c);
}

/* The attributes of the root according to the manifest; FALSE: there is no manifest. */
static gboolean known_root(const char *dir, const char *id, uint8_t space[24], OriginAttr *root)
{
    g_autofree char *path = g_build_filename(dir, id, NULL);
    g_autoptr(Manifest) manifest = open_manifest(path);
    if (!manifest)
        return FALSE;
    const ManifestFooter *f = &manifest->footer;
    memcpy(space, f->space, sizeof(f->space));
    *root = (OriginAttr){.version = f->root_version, .snapshot = f->snapshot};
    root->st.st_ino = f->root_ino;
    return TRUE;
}

/* Reads wait for so long for Ceph, which has been silent for AWAY_WAIT_MS already. */
#define PATIENT_MS (20000 - AWAY_WAIT_MS)

static Origin *connect_known(const char *dir, const VolumeSpec *spec,
                             const Incarnation *incarnation, const char *dataset,
                             const uint8_t space[24], const OriginAttr *root)
{
    Connect *c = g_new0(Connect, 1);
    g_autofree char *name = g_strdup_printf("dataset %s", dataset);
    c->spec = spec_copy(spec);
    c->incarnation = incarnation;
    c->manifest = g_build_filename(dir, dataset, NULL);
    Origin *origin = origin_deferred_new(name, space, root, connect_now, c, free_connect);
    origin_deferred_be_patient(origin, PATIENT_MS);
    return origin;
}

/* ---- the last answer of Ceph about a location ---- */

#define ANSWERS_MAX 4096

typedef struct Answer {
    uint64_t question; /* that it answers */
    char *key;         /* the accepted key, as an HMAC; NULL: none was accepted */
    char *dataset;     /* the dataset at the location */
    gboolean noted;    /* on disk */
} Answer;

static void free_answer(gpointer data)
{
    Answer *a = data;
    g_free(a->key);
    g_free(a->dataset);
    g_free(a);
}

Offline *offline_new(Datasets *datasets)
{
    if (!datasets)
        return NULL;
    Offline *o = g_new0(Offline, 1);
    o->datasets = datasets;
    o->dir = datasets_manifests_dir(datasets);
    o->answers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_answer);
    pthread_mutex_init(&o->lock, NULL);
    if (gnutls_rnd(GNUTLS_RND_KEY, o->hmac_key, sizeof(o->hmac_key)) != 0)
        g_error("GnuTLS has no random numbers");
    return o;
}

void offline_free(Offline *o)
{
    if (!o)
        return;
    g_hash_table_unref(o->answers);
    pthread_mutex_destroy(&o->lock);
    g_free(o->dir);
    g_free(o);
}

static gboolean may_be_noted(const Offline *o, const VolumeSpec *spec)
{
    return o && spec->cache && spec->read_only && spec->kind->is_ceph;
}

static uint64_t begin_question(Offline *o)
{
    pthread_mutex_lock(&o->lock);
    const uint64_t question = ++o->asked;
    pthread_mutex_unlock(&o->lock);
    return question;
}

static Answer *answer_locked(Offline *o, const VolumeSpec *spec)
{
    g_autofree char *location =
        g_strjoin("\n", spec->cluster_id, spec->fs_name, spec->root_path, spec->user_id, NULL);
    Answer *a = g_hash_table_lookup(o->answers, location);
    if (a)
        return a;
    /* With the table cleared, no question that was asked before has an answer that counts. */
    if (g_hash_table_size(o->answers) >= ANSWERS_MAX) {
        g_hash_table_remove_all(o->answers);
        o->forgotten = ++o->asked;
    }
    a = g_new0(Answer, 1);
    a->question = o->forgotten;
    g_hash_table_insert(o->answers, g_steal_pointer(&location), a);
    return a;
}

static void set_answer(Answer *a, uint64_t question, const char *key, const char *dataset)
{
    g_autofree char *old_key = a->key, *old_dataset = a->dataset;
    a->question = question;
    a->key = g_strdup(key);
    a->dataset = g_strdup(dataset);
}

static gboolean answer_is(const Answer *a, const char *key, const char *dataset)
{
    return g_strcmp0(a->key, key) == 0 && g_strcmp0(a->dataset, dataset) == 0;
}

/* A key in memory; its slow hash is for the disk. */
static char *key_hmac(const Offline *o, const VolumeSpec *spec)
{
    return g_compute_hmac_for_string(G_CHECKSUM_SHA256, o->hmac_key, sizeof(o->hmac_key),
                                     spec->user_key, -1);
}

/* readable: the OSDs have accepted the key, too. */
static void accept_answer(Offline *o, const VolumeSpec *spec, const char *dataset,
                          uint64_t question, gboolean readable)
{
    g_autofree char *key = key_hmac(o, spec), *known = last_seen_dataset(o->dir, spec);
    pthread_mutex_lock(&o->lock);
    Answer *a = answer_locked(o, spec);
    const gboolean counts = question > a->question;
    if (counts) {
        a->noted = a->noted && answer_is(a, key, dataset) && g_strcmp0(known, dataset) == 0;
        set_answer(a, question, key, dataset);
        if (!a->noted && !readable)
            last_seen_forget(o->dir, spec);
    }
    pthread_mutex_unlock(&o->lock);
    if (counts && known && readable)
        offline_note(o, spec, dataset);
}

/* At the location there is now another dataset, or none. */
static void forget_dataset(Offline *o, const VolumeSpec *spec, const char *id)
{
    pthread_mutex_lock(&o->lock);
    Answer *a = answer_locked(o, spec);
    set_answer(a, ++o->asked, NULL, NULL);
    a->noted = FALSE;
    last_seen_forget(o->dir, spec);
    pthread_mutex_unlock(&o->lock);
    datasets_drop(o->datasets, id);
}

/* ---- connecting ---- */

static Origin *connect_online(Offline *o, const VolumeSpec *spec, const Incarnation *incarnation,
                              GError **error)
{
    if (!may_be_noted(o, spec))
        return spec_connect(spec, incarnation, error);
    const uint64_t question = begin_question(o);
    g_autoptr(GError) cause = NULL;
    Origin *origin = spec_connect(spec, incarnation, &cause);
    char id[DATASET_ID];
    if (origin && dataset_id_of(origin, id) == 0)
        accept_answer(o, spec, id, question, FALSE);
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        offline_refused(o, spec);
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    return origin;
}

/* Ceph does not answer: whether the note is enough to open the dataset. */
static gboolean check_note(Offline *o, const VolumeSpec *spec, const char *id, GError **error)
{
    atomic_store(&o->away_us, g_get_monotonic_time());
    if (!last_seen_key_matches(o->dir, spec))
        return wire_fail(
            error, WIRE_ERROR_UNAVAILABLE,
            "volume %s: Ceph does not answer, and the key of user %s is not the one that "
            "it accepted last on this node; try again when Ceph is back",
            spec->volume, spec->user_id);
    g_message("volume %s: Ceph does not answer; it is opened as the dataset %s, as which this node "
              "knows it",
              spec->volume, id);
    return TRUE;
}

Origin *offline_connect(Offline *o, const VolumeSpec *spec, const Incarnation *incarnation,
                        GError **error)
{
    uint8_t space[24];
    OriginAttr root;
    g_autofree char *id =
        o && spec->cache && spec->read_only ? last_seen_dataset(o->dir, spec) : NULL;
    if (!id || !known_root(o->dir, id, space, &root))
        return connect_online(o, spec, incarnation, error);
    const uint64_t question = begin_question(o);
    g_autoptr(Origin) origin = connect_known(o->dir, spec, incarnation, id, space, &root);
    const gint64 now = g_get_monotonic_time(), last = atomic_load(&o->away_us);
    const gboolean again = last && now - last < AWAY_AGAIN_SEC * G_USEC_PER_SEC;
    g_autoptr(GError) cause = NULL;
    switch (origin_deferred_wait(origin, again ? AWAY_AGAIN_MS : AWAY_WAIT_MS, &cause)) {
    case ORIGIN_DEFERRED_AWAY:
        return check_note(o, spec, id, error) ? g_steal_pointer(&origin) : NULL;
    case ORIGIN_DEFERRED_HERE:
        accept_answer(o, spec, id, question, TRUE);
        return g_steal_pointer(&origin);
    case ORIGIN_DEFERRED_OTHER:
        forget_dataset(o, spec, id);
        return connect_online(o, spec, incarnation, error);
    case ORIGIN_DEFERRED_REFUSED:
        offline_refused(o, spec);
        break;
    case ORIGIN_DEFERRED_FAILED:
        break;
    }
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        forget_dataset(o, spec, id);
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

void offline_note(Offline *o, const VolumeSpec *spec, const char *dataset)
{
    if (!may_be_noted(o, spec))
        return;
    g_autofree char *key = key_hmac(o, spec);
    pthread_mutex_lock(&o->lock);
    const Answer *before = answer_locked(o, spec);
    const gboolean wanted = answer_is(before, key, dataset) && !before->noted;
    pthread_mutex_unlock(&o->lock);
    if (!wanted)
        return;
    last_seen_note(o->dir, spec, dataset);
    pthread_mutex_lock(&o->lock);
    Answer *a = answer_locked(o, spec);
    a->noted = answer_is(a, key, dataset);
    if (!a->noted)
        last_seen_forget(o->dir, spec); /* a newer answer of Ceph is another one */
    pthread_mutex_unlock(&o->lock);
}

void offline_refused(Offline *o, const VolumeSpec *spec)
{
    if (!may_be_noted(o, spec))
        return;
    g_autofree char *key = key_hmac(o, spec);
    pthread_mutex_lock(&o->lock);
    Answer *a = answer_locked(o, spec);
    if (!a->key || strcmp(a->key, key) == 0) {
        set_answer(a, ++o->asked, NULL, NULL);
        a->noted = FALSE;
    }
    pthread_mutex_unlock(&o->lock);
    if (!last_seen_key_matches(o->dir, spec))
        return;
    g_message("user %s: Ceph refuses the key that it accepted before; without Ceph nothing of %s "
              "is opened with it",
              spec->user_id, spec->root_path);
    pthread_mutex_lock(&o->lock);
    /* A key that was accepted since has a note of its own, or will have one. */
    if (!answer_locked(o, spec)->key)
        last_seen_forget(o->dir, spec);
    pthread_mutex_unlock(&o->lock);
}
