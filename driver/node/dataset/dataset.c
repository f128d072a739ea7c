/* SPDX-License-Identifier: Apache-2.0 */
#include <pthread.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/dataset/internal.h"
#include "driver/node/hearthd/spec.h"

/* Kept back of a call's time when a manifest is waited for: to answer in, or to mount in. */
#define MOUNT_MS 5000

void staging_take_layers(Staging *s, NodeLayers *layers, unsigned refresh_ms)
{
    s->datasets = g_new0(NodeDatasets, 1);
    s->datasets->layers = layers;
    pthread_mutex_init(&s->datasets->lock, NULL);
    s->datasets->building =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)hearthd_close);
    s->datasets->refresh_ms = (int)refresh_ms;
    dataset_refresh_start(s);
}

void node_datasets_free(Staging *s)
{
    NodeDatasets *d = s->datasets;
    if (!d)
        return;
    dataset_refresh_stop(s);
    node_layers_free(d->layers);
    g_hash_table_unref(d->building);
    pthread_mutex_destroy(&d->lock);
    g_free(d);
}

/* ---- builds ---- */

/* The connection on which a volume was opened whose manifest is being built; the caller's. */
static HearthdLink *take_building(NodeDatasets *d, const char *volume)
{
    gpointer key = NULL, link = NULL;
    pthread_mutex_lock(&d->lock);
    g_hash_table_steal_extended(d->building, volume, &key, &link);
    pthread_mutex_unlock(&d->lock);
    g_free(key);
    return link;
}

/* hearthd closes what was opened on a connection when that ends, and builds no further. */
static void keep_building(NodeDatasets *d, const char *volume, HearthdLink *link)
{
    pthread_mutex_lock(&d->lock);
    g_hash_table_replace(d->building, g_strdup(volume), link);
    pthread_mutex_unlock(&d->lock);
}

static HearthdLink *open_claim(Staging *s, const char *volume, const json_t *spec,
                               gboolean *attached, Deadline deadline, GError **error)
{
    g_autoptr(HearthdLink) link = take_building(s->datasets, volume);
    if (link && hearthd_open(link, spec, left_ms(deadline, G_MAXINT64), attached, NULL))
        return g_steal_pointer(&link);
    /* None, or that of a hearthd that is gone. */
    g_clear_pointer(&link, hearthd_close);
    link = hearthd_connect(s->socket_path, NULL, error);
    return link && hearthd_open(link, spec, left_ms(deadline, G_MAXINT64), attached, error)
               ? g_steal_pointer(&link)
               : NULL;
}

/* 1234567 as "1,234,567". */
static void write_number(guint64 number, char text[32])
{
    char plain[24], *to = text;
    const int n = g_snprintf(plain, sizeof(plain), "%" G_GUINT64_FORMAT, number);
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0)
            *to++ = ',';
        *to++ = plain[i];
    }
    *to = '\0';
}

static void say_progress(const char *volume, const HearthdManifest *m, GError **error)
{
    char files[32];
    write_number(m->files, files);
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED,
                "manifest of volume %s is being built: %s files so far; ask again", volume, files);
}

/* ---- claims ---- */

/* A claim while it is being mounted. */
typedef struct Claim {
    const char *volume, *path;
    const json_t *spec;
    gboolean over_stack; /* a stack that is not served any more is at the path */
    const MountOptions *options;
    HearthdLink *link; /* on which it is open */
    HearthdManifest manifest;
} Claim;

static void claim_clear(Claim *c)
{
    g_autoptr(GError) cause = NULL;
    /* Not left to the end of the connection: a session may be next to open it. */
    if (c->link && !hearthd_detach(c->link, c->volume, STAGING_ASK_MS, &cause))
        g_message("volume %s: %s", c->volume, cause->message);
    g_clear_pointer(&c->link, hearthd_close);
    hearthd_manifest_clear(&c->manifest);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Claim, claim_clear)

static void say_fuse(const char *volume, const char *why)
{
    g_message("volume %s is served by FUSE alone: %s", volume, why);
}

/* Opens the claim and asks for its manifest. *native: there is one, and it may be mounted. */
static gboolean ask(Staging *s, Claim *c, gboolean *native, Deadline deadline, GError **error)
{
    gboolean attached;
    g_autoptr(GError) cause = NULL;
    *native = FALSE;
    g_autoptr(HearthdLink) link = open_claim(s, c->volume, c->spec, &attached, deadline, error);
    if (!link)
        return FALSE;
    if (attached)
        return TRUE; /* by a session, at another path */
    const gint64 wait = MAX(left_ms(deadline, G_MAXINT64) - MOUNT_MS, 0);
    const gboolean told = hearthd_manifest(link, c->volume, wait, &c->manifest, &cause);
    if (told && !c->manifest.ready) {
        say_progress(c->volume, &c->manifest, error);
        keep_building(s->datasets, c->volume, g_steal_pointer(&link));
        return FALSE;
    }
    c->link = g_steal_pointer(&link);
    if (!told && (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION) ||
                  g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_UNIMPLEMENTED))) {
        say_fuse(c->volume, cause->message);
        return TRUE;
    }
    if (!told) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    *native = c->manifest.readable || !json_object_get(c->spec, "mountGroup");
    if (!*native)
        say_fuse(c->volume, "not everybody may read all of it, and the pod has an fsGroup");
    return TRUE;
}

/* Takes over what may differ between claims of one dataset; the newer counts. */
static gboolean renew(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                      Deadline deadline, GError **error)
{
    if (!watch_fetch(s->keeper, link, volume, error))
        return FALSE;
    json_t *kept = keeper_spec(s->keeper, volume);
    gboolean good = kept && (!node_spec_update(kept, spec) ||
                             staging_renew(s, link, volume, kept, deadline, error));
    node_spec_free(kept);
    return good;
}

static gboolean place_stack(Staging *s, Claim *c, int mount, gboolean *made, GError **error)
{
    NodeMounter *m = s->mounter;
    return (c->over_stack
                ? staging_clear(s, c->volume, c->path, TRUE, deadline_in(STAGING_CLEANUP_MS), error)
                : m->ops->make_dir(m, c->path, made, error)) &&
           m->ops->place(m, mount, c->path, error);
}

static void warn_of(const char *volume, const GError *cause)
{
    g_warning("volume %s: taking a failed staging back: %s", volume, cause->message);
}

/* All of the claim's stack, or nothing. */
static gboolean mount_native(Staging *s, Claim *c, Deadline deadline, GError **error)
{
    NodeLayers *l = s->datasets->layers;
    const HearthdManifest *manifest = &c->manifest;
    g_autofree char *shared = g_strconcat(DATASET_VOLUME_PREFIX, manifest->dataset, NULL);
    g_autofree char *source = g_strconcat(MOUNT_SOURCE_PREFIX, c->volume, NULL);
    g_auto(DatasetPlace) place = {0};
    gboolean made = FALSE;
    g_autoptr(BusyHold) hold = busy_take_until(s->busy, shared, deadline, error);
    if (!hold ||
        !dataset_place_find(s, c->link, manifest->dataset, c->spec, &place, deadline, error))
        return FALSE;
    const LayerStack stack = {.source = source,
                              .manifest = place.manifest,
                              .objects = manifest->objects,
                              .fill = place.fill,
                              .attrs = c->options->attrs,
                              .context = c->options->context};
    hearth_autofd int fd = -1;
    if (dataset_place_mount(s, &place, c->spec, manifest->path, deadline, error) &&
        renew(s, c->link, place.volume, c->spec, deadline, error) &&
        (fd = l->ops->mount_stack(l, &stack, left_ms(deadline, G_MAXINT64), error)) >= 0 &&
        l->ops->verify(l, fd, left_ms(deadline, G_MAXINT64), error) &&
        place_stack(s, c, fd, &made, error))
        return TRUE;
    g_autoptr(GError) dir = NULL, cause = NULL;
    if (made && !s->mounter->ops->remove_dir(s->mounter, c->path, &dir))
        warn_of(c->volume, dir);
    if (fd >= 0)
        close(hearth_steal_fd(&fd));
    if (!dataset_place_remove_unused(s, &place, deadline_in(STAGING_CLEANUP_MS), &cause))
        warn_of(c->volume, cause);
    return FALSE;
}

/* Mounts the claim, natively if that can be. */
static gboolean mount_claim(Staging *s, const char *volume, const char *path, const json_t *spec,
                            gboolean over_stack, const MountOptions *options, Deadline deadline,
                            GError **error)
{
    if (s->datasets && s->datasets->layers->usable &&
        json_is_true(json_object_get(spec, "cache"))) {
        g_auto(Claim) c = {.volume = volume,
                           .path = path,
                           .spec = spec,
                           .over_stack = over_stack,
                           .options = options};
        gboolean native;
        g_autoptr(GError) cause = NULL;
        if (!ask(s, &c, &native, deadline, error))
            return FALSE;
        if (native && mount_native(s, &c, deadline, &cause))
            return TRUE;
        if (cause && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION)) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
        if (cause)
            say_fuse(volume, cause->message);
    }
    return (!over_stack || staging_clear(s, volume, path, TRUE, deadline, error)) &&
           staging_mount_at(s, volume, path, spec, NULL, options, deadline, error);
}

gboolean dataset_is_at(const GPtrArray *table, const char *path, DatasetPlace *place)
{
    const MountEntry *entry = mount_find(table, path);
    return entry && dataset_place_of(entry, place);
}

/* ---- staging ---- */

/* Whether the claim's bytes are those of the dataset that is mounted; *own: with the user and key
 * that it is served with. Others are tried by hearthd, and an error when Ceph refuses them. */
static gboolean is_same(Staging *s, HearthdLink *link, const char *volume, const json_t *spec,
                        const DatasetPlace *place, gboolean *same, gboolean *own, Deadline deadline,
                        GError **error)
{
    if (!watch_fetch(s->keeper, link, place->volume, error))
        return FALSE;
    json_t *kept = keeper_spec(s->keeper, place->volume);
    json_t *shared = dataset_spec(spec, place->volume);
    *own = kept && node_spec_same_authority(kept, shared);
    *same = *own && node_spec_same_volume(kept, shared);
    node_spec_free(shared);
    node_spec_free(kept);
    if (*same || !json_is_true(json_object_get(spec, "cache")))
        return TRUE;
    /* Two ways of saying the same: only hearthd knows. */
    gboolean native;
    g_auto(Claim) c = {.volume = volume, .spec = spec};
    if (!ask(s, &c, &native, deadline, error))
        return FALSE;
    *same = g_strcmp0(c.manifest.dataset, place->id) == 0;
    return TRUE;
}

/* *staged: the claim is mounted at `path` as asked for. FALSE with ALREADY_EXISTS: as something
 * else. */
static gboolean check_staged(Staging *s, const char *volume, const char *path, const json_t *spec,
                             const char *context, const GPtrArray *table, gboolean *staged,
                             Deadline deadline, GError **error)
{
    g_auto(DatasetPlace) place = {0};
    gboolean same, own;
    *staged = FALSE;
    if (!dataset_is_at(table, path, &place))
        return TRUE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link || !dataset_place_is_served(s, link, table, &place, staged, deadline, error))
        return FALSE;
    if (!*staged)
        return TRUE;
    if (!staging_check_context(mount_find(table, path), volume, context,
                               HEARTH_ERROR_ALREADY_EXISTS, error))
        return FALSE;
    if (!is_same(s, link, volume, spec, &place, &same, &own, deadline, error))
        return FALSE;
    if (same && !own)
        return TRUE;
    if (same)
        return renew(s, link, place.volume, spec, deadline, error);
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ALREADY_EXISTS,
                "volume %s is staged at %s already, with other parameters; unstage it first",
                volume, path);
    return FALSE;
}

gboolean dataset_stage(Staging *s, const char *volume, const char *path, const json_t *spec,
                       const MountOptions *options, gint64 timeout_ms, GError **error)
{
    Deadline deadline = deadline_in(timeout_ms);
    g_autoptr(BusyHold) hold = busy_take(s->busy, volume, path, error);
    g_autoptr(GPtrArray) table = hold ? staging_list(s, error) : NULL;
    const MountEntry *entry = table ? mount_find(table, path) : NULL;
    gboolean staged;
    if (!table || (entry && !staging_check_owner(s, entry, volume, error)))
        return FALSE;
    if (entry && mount_served_volume(entry)) /* by a session; that is kept */
        return staging_mount_at(s, volume, path, spec, NULL, options, deadline, error);
    return check_staged(s, volume, path, spec, options->context, table, &staged, deadline, error) &&
           (staged || mount_claim(s, volume, path, spec, entry != NULL, options, deadline, error));
}

/* ---- publishing ---- */

static gboolean fits_group(HearthdLink *link, const DatasetPlace *place, gint64 group,
                           gboolean *fits, GError **error)
{
    g_auto(HearthdManifest) manifest = {0};
    *fits = group < 0;
    if (*fits)
        return TRUE;
    if (!hearthd_manifest(link, place->volume, 0, &manifest, error))
        return FALSE;
    *fits = manifest.readable;
    return TRUE;
}

/* Mounts the claim anew: hearthd lost its dataset, or it is for a group now. */
static gboolean mount_again(Staging *s, const char *volume, const char *staged,
                            const DatasetPlace *place, const char *context, gint64 group,
                            Deadline deadline, GError **error)
{
    json_t *kept = keeper_spec(s->keeper, place->volume);
    if (!kept) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                    "volume %s is staged at %s but hearthd no longer serves it; unstage it and "
                    "stage it again",
                    volume, staged);
        return FALSE;
    }
    json_t *own = dataset_spec(kept, volume);
    if (group >= 0)
        json_object_set_new(own, "mountGroup", json_integer((json_int_t)group));
    const MountOptions options = {.attrs = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY,
                                  .context = context};
    gboolean mounted = mount_claim(s, volume, staged, own, TRUE, &options, deadline, error);
    /* For the next attempt: taking back has dropped it. */
    if (!mounted && !keeper_is_complete(s->keeper, place->volume))
        keeper_put(s->keeper, place->volume, kept, -1);
    node_spec_free(own);
    node_spec_free(kept);
    return mounted;
}

gboolean dataset_ensure_served(Staging *s, const char *volume, const char *staged,
                               const DatasetPlace *place, const char *context, gint64 group,
                               dev_t *dev, Deadline deadline, GError **error)
{
    gboolean served, fits = FALSE;
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    g_autoptr(GPtrArray) table = link ? staging_list(s, error) : NULL;
    const MountEntry *entry = table ? mount_find(table, staged) : NULL;
    if (!table ||
        (entry &&
         !staging_check_context(entry, volume, context, HEARTH_ERROR_FAILED_PRECONDITION, error)) ||
        !dataset_place_is_served(s, link, table, place, &served, deadline, error) ||
        (served && !fits_group(link, place, group, &fits, error)))
        return FALSE;
    if (served && !fits) {
        const MountEntry *other =
            entry ? staging_find_publication(table, entry->dev, staged, NULL) : NULL;
        if (other)
            return staging_other_group(volume, other, group, error);
    }
    if ((!served || !fits) &&
        !mount_again(s, volume, staged, place, entry ? entry->context : context, group, deadline,
                     error))
        return FALSE;
    if (!served)
        g_message("volume %s: mounted anew at %s after hearthd lost it", volume, staged);
    g_autoptr(GPtrArray) now = staging_list(s, error);
    entry = now ? mount_find(now, staged) : NULL;
    if (now && !entry)
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED, "%s: unmounted meanwhile; try again",
                    staged);
    if (entry)
        *dev = entry->dev;
    return entry != NULL;
}

gboolean dataset_statvfs(Staging *s, const DatasetPlace *place, struct statvfs *st, GError **error)
{
    g_auto(HearthdManifest) manifest = {0};
    g_autoptr(HearthdLink) link = hearthd_connect(s->socket_path, NULL, error);
    if (!link || !hearthd_manifest(link, place->volume, 0, &manifest, error))
        return FALSE;
    *st = (struct statvfs){.f_bsize = 1,
                           .f_frsize = 1,
                           .f_blocks = manifest.bytes,
                           .f_files = manifest.files + manifest.directories};
    return TRUE;
}

/* ---- taking away ---- */

gboolean dataset_remove_unused(Staging *s, const char *volume, const DatasetPlace *mine,
                               gboolean unstaging, Deadline deadline, GError **error)
{
    if (!s->datasets)
        return TRUE;
    if (unstaging)
        hearthd_close(take_building(s->datasets, volume));
    g_autoptr(GPtrArray) places = dataset_places(s);
    for (guint i = 0; i < places->len; i++) {
        const DatasetPlace *place = places->pdata[i];
        const gboolean is_mine = strcmp(place->fill, mine->fill ? mine->fill : "") == 0;
        g_autoptr(GError) cause = NULL;
        g_autoptr(BusyHold) hold =
            busy_take_until(s->busy, place->busy, is_mine ? deadline : 0, &cause);
        if (hold && dataset_place_remove_unused(s, place, deadline, &cause))
            continue;
        if (is_mine) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
        if (hold)
            g_warning("dataset %s: %s", place->id, cause->message);
    }
    return TRUE;
}
