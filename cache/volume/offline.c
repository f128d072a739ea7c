/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/offline.h"
#include <fcntl.h>
#include <string.h>
#include "common/autofd.h"
#include "cache/dataset/internal.h"
#include "cache/volume/last_seen.h"
#include "cache/volume/rights.h"
#include "proto/wire.h"
#include "cache/origin/deferred.h"

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

/* Whether it is the tree of the manifest; else there is nothing to ask of it. */
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

/* An answer of the MDS alone is none: what is warm is of OSDs that may refuse this user. */
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

static char *dir_of(const Datasets *all)
{
    return g_build_filename(all->cache_dir, "manifests", NULL);
}

/* What the manifest says the root is; FALSE: there is none. */
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

static Origin *connect_known(const char *dir, const VolumeSpec *spec,
                             const Incarnation *incarnation, const char *dataset,
                             const uint8_t space[24], const OriginAttr *root)
{
    Connect *c = g_new0(Connect, 1);
    g_autofree char *name = g_strdup_printf("dataset %s", dataset);
    c->spec = spec_copy(spec);
    c->incarnation = incarnation;
    c->manifest = g_build_filename(dir, dataset, NULL);
    return origin_later_new(name, space, root, connect_now, c, free_connect);
}

/* ---- what Ceph said last of a place ---- */

#define WORDS_MAX 4096

/* Of a place and user. */
typedef struct Word {
    uint64_t since; /* when it was asked */
    char *key;      /* that it accepted, as an HMAC; NULL: none */
    char *dataset;  /* that is there */
    gboolean noted;
} Word;

static void free_word(gpointer data)
{
    Word *w = data;
    g_free(w->key);
    g_free(w->dataset);
    g_free(w);
}

GHashTable *away_words_new(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_word);
}

static gboolean may_be_noted(const Datasets *all, const VolumeSpec *spec)
{
    return all && spec->cache && spec->read_only && spec->monitors;
}

static uint64_t ask(Datasets *all)
{
    pthread_mutex_lock(&all->lock);
    const uint64_t now = ++all->asked;
    pthread_mutex_unlock(&all->lock);
    return now;
}

static Word *word_locked(Datasets *all, const VolumeSpec *spec)
{
    g_autofree char *place =
        g_strjoin("\n", spec->cluster_id, spec->fs_name, spec->root_path, spec->user_id, NULL);
    Word *w = g_hash_table_lookup(all->words, place);
    if (w)
        return w;
    /* Of what is lost here, no answer on its way counts. */
    if (g_hash_table_size(all->words) >= WORDS_MAX) {
        g_hash_table_remove_all(all->words);
        all->words_lost = ++all->asked;
    }
    w = g_new0(Word, 1);
    w->since = all->words_lost;
    g_hash_table_insert(all->words, g_steal_pointer(&place), w);
    return w;
}

static void set_word_locked(Word *w, uint64_t since, const char *key, const char *dataset)
{
    g_autofree char *old_key = w->key, *old_dataset = w->dataset;
    w->since = since;
    w->key = g_strdup(key);
    w->dataset = g_strdup(dataset);
}

static gboolean is_word(const Word *w, const char *key, const char *dataset)
{
    return g_strcmp0(w->key, key) == 0 && g_strcmp0(w->dataset, dataset) == 0;
}

/* A key in memory; its slow hash is for the disk. */
static char *name_key(const Datasets *all, const VolumeSpec *spec)
{
    return g_compute_hmac_for_string(G_CHECKSUM_SHA256, all->words_key, sizeof(all->words_key),
                                     spec->user_key, -1);
}

/* readable: its OSDs were asked, too. */
static void accepted(Datasets *all, const VolumeSpec *spec, const char *dataset, uint64_t since,
                     gboolean readable)
{
    g_autofree char *dir = dir_of(all), *key = name_key(all, spec), *known = places_find(dir, spec);
    pthread_mutex_lock(&all->lock);
    Word *w = word_locked(all, spec);
    const gboolean counts = since > w->since;
    if (counts) {
        w->noted = w->noted && is_word(w, key, dataset) && g_strcmp0(known, dataset) == 0;
        set_word_locked(w, since, key, dataset);
        if (!w->noted && !readable)
            places_forget(dir, spec);
    }
    pthread_mutex_unlock(&all->lock);
    /* What is noted is never older than what Ceph said. */
    if (counts && known && readable)
        away_note(all, spec, dataset);
}

/* Where it was there is something else, or nothing. */
static void forget(Datasets *all, const char *dir, const VolumeSpec *spec, const char *id)
{
    pthread_mutex_lock(&all->lock);
    Word *w = word_locked(all, spec);
    set_word_locked(w, ++all->asked, NULL, NULL);
    w->noted = FALSE;
    places_forget(dir, spec);
    pthread_mutex_unlock(&all->lock);
    datasets_drop(all, id);
}

/* ---- connecting ---- */

static Origin *connect_plain(Datasets *all, const VolumeSpec *spec, const Incarnation *incarnation,
                             GError **error)
{
    if (!may_be_noted(all, spec))
        return spec_connect(spec, incarnation, error);
    const uint64_t since = ask(all);
    g_autoptr(GError) cause = NULL;
    Origin *origin = spec_connect(spec, incarnation, &cause);
    char id[DATASET_ID];
    if (origin && dataset_id_of(origin, id) == 0)
        accepted(all, spec, id, since, FALSE);
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        away_refused(all, spec);
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    return origin;
}

static gboolean believe(Datasets *all, const char *dir, const VolumeSpec *spec, const char *id,
                        GError **error)
{
    atomic_store(&all->away_us, g_get_monotonic_time());
    if (!places_accept(dir, spec)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_UNAVAILABLE,
                    "volume %s: Ceph does not answer, and the key of user %s is not the one that "
                    "it accepted last on this node; try again when Ceph is back",
                    spec->volume, spec->user_id);
        return FALSE;
    }
    g_message("volume %s: Ceph does not answer; it is opened as the dataset %s, as which this node "
              "knows it",
              spec->volume, id);
    return TRUE;
}

Origin *away_connect(Datasets *all, const VolumeSpec *spec, const Incarnation *incarnation,
                     GError **error)
{
    uint8_t space[24];
    OriginAttr root;
    g_autofree char *dir = all ? dir_of(all) : NULL;
    g_autofree char *id = all && spec->cache && spec->read_only ? places_find(dir, spec) : NULL;
    if (!id || !known_root(dir, id, space, &root))
        return connect_plain(all, spec, incarnation, error);
    const uint64_t since = ask(all);
    g_autoptr(Origin) origin = connect_known(dir, spec, incarnation, id, space, &root);
    const gint64 now = g_get_monotonic_time(), last = atomic_load(&all->away_us);
    const gboolean again = last && now - last < AWAY_AGAIN_SEC * G_USEC_PER_SEC;
    g_autoptr(GError) cause = NULL;
    switch (origin_later_wait(origin, again ? AWAY_AGAIN_MS : AWAY_WAIT_MS, &cause)) {
    case ORIGIN_LATER_AWAY:
        return believe(all, dir, spec, id, error) ? g_steal_pointer(&origin) : NULL;
    case ORIGIN_LATER_HERE:
        accepted(all, spec, id, since, TRUE);
        return g_steal_pointer(&origin);
    case ORIGIN_LATER_OTHER:
        forget(all, dir, spec, id);
        return connect_plain(all, spec, incarnation, error);
    case ORIGIN_LATER_REFUSED:
        away_refused(all, spec);
        break;
    case ORIGIN_LATER_FAILED:
        break;
    }
    if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_FOUND))
        forget(all, dir, spec, id);
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

void away_note(Datasets *all, const VolumeSpec *spec, const char *dataset)
{
    if (!may_be_noted(all, spec))
        return;
    g_autofree char *dir = dir_of(all), *key = name_key(all, spec);
    pthread_mutex_lock(&all->lock);
    const Word *before = word_locked(all, spec);
    const gboolean wanted = is_word(before, key, dataset) && !before->noted;
    pthread_mutex_unlock(&all->lock);
    if (!wanted)
        return;
    places_note(dir, spec, dataset);
    pthread_mutex_lock(&all->lock);
    Word *w = word_locked(all, spec);
    w->noted = is_word(w, key, dataset);
    if (!w->noted)
        places_forget(dir, spec); /* Ceph has said something else meanwhile */
    pthread_mutex_unlock(&all->lock);
}

void away_refused(Datasets *all, const VolumeSpec *spec)
{
    if (!may_be_noted(all, spec))
        return;
    g_autofree char *dir = dir_of(all), *key = name_key(all, spec);
    pthread_mutex_lock(&all->lock);
    Word *w = word_locked(all, spec);
    if (!w->key || strcmp(w->key, key) == 0) {
        set_word_locked(w, ++all->asked, NULL, NULL);
        w->noted = FALSE;
    }
    pthread_mutex_unlock(&all->lock);
    if (!places_accept(dir, spec))
        return;
    g_message("user %s: Ceph refuses the key that it accepted before; without Ceph nothing of %s "
              "is opened with it",
              spec->user_id, spec->root_path);
    pthread_mutex_lock(&all->lock);
    /* A key that was accepted since is noted, or will be, in its place. */
    if (!word_locked(all, spec)->key)
        places_forget(dir, spec);
    pthread_mutex_unlock(&all->lock);
}
