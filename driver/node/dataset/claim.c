/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mounts a claim of a dataset: asks hearthd for its manifest, then puts a stack of its own over the
 * layers that all claims share (shared.c). A claim that cannot be mounted so is served by FUSE, as
 * a live volume.
 */
#include <string.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/dataset/internal.h"
#include "driver/node/hearthd/spec.h"
#include "proto/wire_keys.h"

/* Kept back of a call's time when a manifest is waited for: to answer in, or to mount in. */
#define MOUNT_MS 5000

/* ---- builds ---- */

HearthdLink *dataset_steal_build(NodeDatasets *d, const char *volume)
{
    gpointer key = NULL, link = NULL;
    pthread_mutex_lock(&d->lock);
    g_hash_table_steal_extended(d->building, volume, &key, &link);
    pthread_mutex_unlock(&d->lock);
    g_free(key);
    return link;
}

/* hearthd closes a volume with the connection that opened it, and then stops to build. */
static void keep_build(NodeDatasets *d, const char *volume, HearthdLink *link)
{
    pthread_mutex_lock(&d->lock);
    g_hash_table_replace(d->building, g_strdup(volume), link);
    pthread_mutex_unlock(&d->lock);
}

static HearthdLink *open_claim(Staging *s, const char *volume, const json_t *spec,
                               gboolean *attached, Deadline deadline, GError **error)
{
    g_autoptr(HearthdLink) link = dataset_steal_build(s->datasets, volume);
    if (link && hearthd_open(link, spec, left_ms(deadline, G_MAXINT64), attached, NULL))
        return g_steal_pointer(&link);
    /* There is none, or its hearthd is gone. */
    g_clear_pointer(&link, hearthd_close);
    return hearthd_connect_and_open(s->socket_path, spec, left_ms(deadline, G_MAXINT64), attached,
                                    error);
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

static gboolean fail_with_progress(const char *volume, const HearthdManifest *m, GError **error)
{
    char files[32];
    write_number(m->files, files);
    return hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "manifest of volume %s is being built: %s files so far; ask again", volume,
                       files);
}

/* ---- claims ---- */

void dataset_claim_clear(DatasetClaim *c)
{
    g_autoptr(GError) cause = NULL;
    /* Not left to the end of the connection: a session may be next to open it. */
    if (c->link && !hearthd_detach(c->link, c->volume, SERVED_ASK_MS, &cause))
        g_message("volume %s: %s", c->volume, cause->message);
    g_clear_pointer(&c->link, hearthd_close);
    hearthd_manifest_clear(&c->manifest);
}

static void log_fuse_alone(const char *volume, const char *why)
{
    g_message("volume %s is served by FUSE alone: %s", volume, why);
}

gboolean dataset_claim_ask(Staging *s, DatasetClaim *c, gboolean *native, Deadline deadline,
                           GError **error)
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
    const gboolean answered = hearthd_manifest(link, c->volume, wait, &c->manifest, &cause);
    if (answered && !c->manifest.ready) {
        keep_build(s->datasets, c->volume, g_steal_pointer(&link));
        return fail_with_progress(c->volume, &c->manifest, error);
    }
    c->link = g_steal_pointer(&link);
    if (!answered && (g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION) ||
                      g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_UNIMPLEMENTED))) {
        log_fuse_alone(c->volume, cause->message);
        return TRUE;
    }
    if (!answered) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    *native = c->manifest.readable || !json_object_get(c->spec, WIRE_KEY_MOUNT_GROUP);
    if (!*native)
        log_fuse_alone(c->volume, "some files are not readable by everyone, and the pod has an "
                                  "fsGroup");
    return TRUE;
}

static void warn_of_take_back(const char *volume, const GError *cause)
{
    g_warning("volume %s: taking a failed staging back: %s", volume, cause->message);
}

/* Places the stack where nothing is mounted; or takes the directory back. */
static gboolean place_on_directory(Staging *s, const DatasetClaim *c, int mount, GError **error)
{
    NodeMounter *m = s->mounter;
    gboolean made;
    g_autoptr(GError) cause = NULL;
    if (!m->ops->make_dir(m, c->path, &made, error))
        return FALSE;
    if (m->ops->place(m, mount, c->path, error))
        return TRUE;
    if (made && !m->ops->remove_dir(m, c->path, &cause))
        warn_of_take_back(c->volume, cause);
    return FALSE;
}

/* Mounts the claim's stack over layers that are mounted. */
static gboolean mount_stack(Staging *s, const DatasetClaim *c, const SharedLayers *shared,
                            Deadline deadline, GError **error)
{
    NodeMounter *m = s->mounter;
    NodeLayers *l = s->datasets->layers;
    g_autofree char *source = g_strconcat(MOUNT_SOURCE_PREFIX, c->volume, NULL);
    const LayerStack stack = {.source = source,
                              .manifest = shared->manifest,
                              .objects = c->manifest.objects,
                              .fill = shared->fill,
                              .attrs = c->options.attrs,
                              .context = c->options.context};
    hearth_autofd int fd = l->ops->mount_stack(l, &stack, left_ms(deadline, G_MAXINT64), error);
    if (fd < 0)
        return FALSE;
    if (!c->over_stack)
        return place_on_directory(s, c, fd, error);
    return served_clear(s, c->volume, c->path, TRUE, deadline_in(SERVED_CLEANUP_MS), error) &&
           m->ops->place(m, fd, c->path, error);
}

/* All of the claim's stack, or nothing. */
static gboolean mount_native(Staging *s, const DatasetClaim *c, Deadline deadline, GError **error)
{
    g_autofree char *busy = g_strconcat(DATASET_VOLUME_PREFIX, c->manifest.dataset, NULL);
    g_auto(SharedLayers) shared = {0};
    g_autoptr(GError) cause = NULL;
    g_autoptr(BusyHold) hold = busy_take_until(s->busy, busy, deadline, error);
    if (!hold)
        return FALSE;
    if (shared_layers_mount(s, c, &shared, deadline, error) &&
        mount_stack(s, c, &shared, deadline, error))
        return TRUE;
    if (shared.id &&
        !shared_layers_remove_unused(s, &shared, deadline_in(SERVED_CLEANUP_MS), &cause))
        warn_of_take_back(c->volume, cause);
    return FALSE;
}

/* Tries to mount the claim natively. *mounted FALSE without an error: it must be served by FUSE. */
static gboolean try_native(Staging *s, DatasetClaim *c, gboolean *mounted, Deadline deadline,
                           GError **error)
{
    gboolean native;
    g_autoptr(GError) cause = NULL;
    *mounted = FALSE;
    if (!dataset_claim_ask(s, c, &native, deadline, error))
        return FALSE;
    if (!native)
        return TRUE;
    *mounted = mount_native(s, c, deadline, &cause);
    if (*mounted)
        return TRUE;
    if (!g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    log_fuse_alone(c->volume, cause->message);
    return TRUE;
}

gboolean dataset_claim_mount(Staging *s, DatasetClaim *c, Deadline deadline, GError **error)
{
    if (s->datasets && s->datasets->layers->usable &&
        json_is_true(json_object_get(c->spec, WIRE_KEY_CACHE))) {
        gboolean mounted;
        const gboolean tried = try_native(s, c, &mounted, deadline, error);
        dataset_claim_clear(c);
        if (!tried || mounted)
            return tried;
    }
    const ServedMount mount = {
        .volume = c->volume, .path = c->path, .spec = c->spec, .options = c->options};
    if (c->over_stack && !served_clear(s, c->volume, c->path, TRUE, deadline, error))
        return FALSE;
    return served_mount(s, &mount, deadline, error);
}
