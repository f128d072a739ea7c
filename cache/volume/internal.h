/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by volumes.c (life of a volume), serve.c (what it is connected to and served by)
 * and report.c (what is told of it, upkeep). */
#ifndef HEARTH_CACHE_VOLUME_INTERNAL_H
#define HEARTH_CACHE_VOLUME_INTERNAL_H

#include "cache/volume/volumes.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "cache/volume/faith.h"
#include "cache/fuse/device.h"
#include "cache/fuse/layer/fill_layer.h"
#include "common/monotonic.h"

struct Volume {
    char *id;
    VolumeSpec *spec; /* NULL until it is connected */
    /* Connected to one of these; served by the session or the fill layer of the one or the device
     * of the other. */
    Origin *origin;
    Image *image;
    const char *uncached; /* ImageContent.uncached, of one that was to be cached */
    Session *session;
    FillLayer *layer;
    Dataset *dataset; /* joined: its manifest was asked for */
    Device *device;
    Device *leaving;   /* stopped, but requests are still under way; the claimant's alone */
    gboolean readable; /* Ceph lets its user read the dataset's bytes */
    gboolean cached;
    char *in_use; /* the tag that the store was told is in use; the claimant's alone */
    _Atomic uint64_t quota_bytes;
    gboolean busy;
    unsigned pins;
    uint64_t opener;                    /* connection that opened it; 0 once attached */
    int64_t bytes_total, bytes_counted; /* told by the origin; by a walk; -1: not known */
    /* Not under the lock: set by a session's thread, read in loops over files. */
    atomic_bool ended, closing;
};

struct Volumes {
    Store *store;
    Datasets *datasets;
    ImageCache *images;
    Faith *faith;
    GHashTable *refused; /* lock: names of what Ceph has refused, until it is opened again */
    const Incarnation *incarnation;
    unsigned fuse_threads;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a claim or a pin ended, or stopping */
    GHashTable *by_id;
    gboolean stopping;
    pthread_t upkeep;
};

static inline gboolean volume_is_connected(const Volume *v)
{
    return v->origin || v->image;
}

static inline gboolean volume_is_served(const Volume *v)
{
    return v->session || v->layer || v->device;
}

/* serve.c; all but volume_stats under the claim. */
gboolean volumes_connect(Volumes *vs, Volume *v, const VolumeSpec *spec, GError **error);
/* Whether the user and key of a spec may read what it is of: another connection, which ends. */
gboolean volumes_try(Volumes *vs, const VolumeSpec *spec, GError **error);
/* `claimed`: the dataset that a claim was opened as, whose key is verified when Ceph is back; NULL:
 * none. */
void volumes_disconnect(Volumes *vs, Volume *v, const char *claimed);
gboolean volumes_serve(Volumes *vs, Volume *v, gboolean fill_layer, int fuse_fd,
                       void (*ended)(void *data), GError **error);
/* FALSE: requests to Ceph are still under way; call it again. */
gboolean volumes_stop_serving(Volumes *vs, Volume *v, gint64 timeout_ms);
/* FALSE: its manifest is being made with the origin; call it again. */
gboolean volumes_leave_dataset(Volumes *vs, Volume *v, gint64 timeout_ms);
int volume_fd(const Volume *v);
void volume_stats(const Volume *v, SessionStats *stats);

/* refused.c */
/* Whether Ceph lets a volume's user read the data of its dataset, which is ready. Of one that was
 * opened on faith it is asked as soon as Ceph answers (offline.c). */
gboolean volumes_check_rights(Volumes *vs, const char *id, Dataset *dataset, GError **error);
/* Ends what was opened while Ceph was away and was refused since, or is not there any more. */
void volumes_end_refused(Volumes *vs);

/* report.c */
int64_t volumes_measure(Origin *origin); /* bytes of its files, -1: not known */
gboolean volumes_is_open(const Volume *v, const void *after);
/* The IDs for which `wanted` holds under the lock, copied, in order. */
GPtrArray *volumes_collect_ids(Volumes *vs, gboolean (*wanted)(const Volume *, const void *),
                               const void *data);
void *volumes_run_upkeep(void *volumes);

#endif
