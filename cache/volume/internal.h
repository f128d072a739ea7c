/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share; the lowest of them is first: table.c, serve.c, refused.c,
 * report.c, upkeep.c, volumes.c. */
#ifndef HEARTH_CACHE_VOLUME_INTERNAL_H
#define HEARTH_CACHE_VOLUME_INTERNAL_H

#include "cache/volume/volumes.h"
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>
#include "cache/fuse/device.h"
#include "cache/fuse/layer/fill_layer.h"
#include "cache/fuse/live/session.h"
#include "cache/volume/faith.h"
#include "cache/volume/offline.h"

/* What a volume is connected to. */
typedef enum VolumeContent {
    CONTENT_NONE,
    CONTENT_TREE,  /* of files: `origin` */
    CONTENT_IMAGE, /* `image` */
} VolumeContent;

/* What serves the mount of a volume. */
typedef enum VolumeServer {
    SERVER_NONE,
    SERVER_SESSION,    /* a tree: `session` */
    SERVER_FILL_LAYER, /* a tree that is a dataset: `layer` */
    SERVER_DEVICE,     /* an image: `device` */
} VolumeServer;

struct Volume {
    char *id;
    VolumeSpec *spec; /* NULL until it is connected */
    VolumeContent content;
    union {
        Origin *origin; /* NULL while it is closed */
        Image *image;
    };
    VolumeServer server;
    union {
        Session *session;
        FillLayer *layer;
        Device *device;
    };
    const char *uncached; /* ImageContent.uncached, of one that was to be cached */
    Dataset *dataset;     /* joined: its manifest was asked for */
    int state_fd;         /* what is left to the next process (mount_state.h); -1: none */
    int left_fd;          /* what another process has left; -1: nothing. The reserving thread's */
    gboolean state_taken; /* the node plugin has a descriptor of state_fd */
    Device *leaving;      /* stopped, but requests are still under way; the reserving thread's */
    gboolean readable;    /* Ceph lets its user read the dataset's bytes */
    gboolean cached;
    char *in_use; /* the tag that the store holds as in use; the reserving thread's */
    _Atomic uint64_t quota_bytes;
    gboolean reserved;
    unsigned uses;
    uint64_t opener;       /* connection that opened it; 0 once attached */
    int64_t bytes_total;   /* according to the origin; -1: not known */
    FuseStats measured;    /* when that was last asked for */
    int64_t bytes_counted; /* according to a walk; -1: not known */
    gboolean measuring;
    /* Not under the lock: set by a session's thread, read in loops over files. */
    atomic_bool ended, closing;
};

struct Volumes {
    Store *store;
    Datasets *datasets;
    Offline *offline;
    ImageCache *images;
    Faith *faith;
    GHashTable
        *refused;   /* lock: IDs of volumes that Ceph has refused, until they are opened again */
    json_t *claims; /* lock: volumes_claims() */
    const Incarnation *incarnation;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* a reservation or a use ended, or stopping */
    GHashTable *by_id;
    gboolean stopping;
    gboolean leaving;   /* lock; the process ends: nothing is opened, and another goes on serving */
    unsigned measuring; /* volumes, of which the upkeep has begun it */
    pthread_t upkeep;
};

static inline gboolean volume_is_connected(const Volume *v)
{
    return v->content != CONTENT_NONE;
}

static inline gboolean volume_is_served(const Volume *v)
{
    return v->server != SERVER_NONE;
}

/* table.c */
/*
 * Waits until no other operation has the volume, and reserves it. *volume is NULL when there is
 * none, unless `make`. FALSE: another operation took too long, or hearthd stops.
 */
gboolean volumes_reserve(Volumes *vs, const char *id, gboolean make, Volume **volume,
                         GError **error);
/* Ends a reservation. A volume that is not connected leaves the table. */
void volumes_release(Volumes *vs, Volume *v);
gboolean volumes_is_open(const Volume *v, const void *after);
/* The IDs for which `wanted` holds under the lock, copied, in order. */
GPtrArray *volumes_collect_ids(Volumes *vs, gboolean (*wanted)(const Volume *, const void *),
                               const void *data);

/* A reserved volume that is being closed was a claim of this dataset. */
void volumes_note_claim(Volumes *vs, const Volume *v, const char *dataset);

/* serve.c: all but volumes_measure and volume_stats of a reserved volume. */
gboolean volumes_connect(Volumes *vs, Volume *v, const VolumeSpec *spec, GError **error);
/* Whether the user and key of a spec may read its volume: opens another connection and closes it.
 */
gboolean volumes_try(Volumes *vs, const VolumeSpec *spec, GError **error);
/* `claimed`: the dataset that a claim was opened as, whose key is verified when Ceph is back; NULL:
 * none. */
void volumes_disconnect(Volumes *vs, Volume *v, const char *claimed);
gboolean volumes_serve(Volumes *vs, Volume *v, const VolumeMount *mount, void (*ended)(void *data),
                       GError **error);
/* FALSE: requests to Ceph are still under way; call it again. */
gboolean volumes_stop_serving(Volumes *vs, Volume *v, gint64 timeout_ms);
/* FALSE: its manifest is being made with the origin; call it again. */
gboolean volumes_leave_dataset(Volumes *vs, Volume *v, gint64 timeout_ms);
/* The FUSE descriptor of a volume that is served. */
int volume_fd(const Volume *v);
void volume_stats(const Volume *v, FuseStats *stats);
int64_t volumes_measure(Origin *origin); /* bytes of its files, -1: not known */

/* refused.c */
/* Whether Ceph lets a volume's user read the data of its dataset, which is ready. For one that was
 * opened without an answer of Ceph this is checked as soon as Ceph answers (offline.c). */
gboolean volumes_check_rights(Volumes *vs, const char *id, Dataset *dataset, GError **error);
/* Ends volumes that were opened without an answer of Ceph and were refused since, or whose snapshot
 * does not exist any more. */
void volumes_end_refused(Volumes *vs);

/* upkeep.c */
void *volumes_run_upkeep(void *volumes);

#endif
