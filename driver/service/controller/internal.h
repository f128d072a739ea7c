/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the Controller service share. */
#ifndef HEARTH_DRIVER_SERVICE_CONTROLLER_INTERNAL_H
#define HEARTH_DRIVER_SERVICE_CONTROLLER_INTERNAL_H

#include <pthread.h>
#include "csi.pb-c.h"
#include "driver/provision/provision.h"
#include "common/busy.h"
#include "driver/service/node/context.h"
#include "driver/service/controller/controller.h"
#include "driver/warmth/warmth.h"

#define CONTROLLER_MAX_BACKENDS 4

struct Controller {
    Backend *backends[CONTROLLER_MAX_BACKENDS];
    gsize n_backends;
    Busy *busy;
    char *secret_dir; /* NULL: none */
    gboolean set_metadata;
    GPtrArray *domains;  /* names of the labels of --domainlabels; NULL: none */
    char *domain_prefix; /* of their topology; NULL as well */
    char *cluster_name;  /* NULL: none */
    Warmth *warmth;      /* NULL: nothing is known of nodes */
    struct Room *room;
    pthread_mutex_t warned_lock;
    GHashTable *warned; /* ignored parameters that were logged; guarded by warned_lock */
};

/* The time by which the answer must be ready. */
gint64 controller_deadline(const RpcCall *call);
/* INVALID_ARGUMENT when the type is not enabled. */
const Backend *controller_backend(const Controller *c, VolumeType type, GError **error);
/* The request's secrets, NULL for a backend without. */
gboolean controller_secrets(const Backend *b, GHashTable *map, Secrets **secrets, GError **error);
/* As above of the driver's own user, for requests that carry none. FAILED_PRECONDITION. */
gboolean controller_own_secrets(const Controller *c, const Backend *b, const char *cluster_id,
                                Secrets **secrets, GError **error);
/* The request's secrets, or the driver's own user when it has none: a class need not name a secret.
 */
gboolean controller_user(const Controller *c, const Backend *b, const VolumeId *id,
                         GHashTable *given, Secrets **secrets, GError **error);
/*
 * The secrets for deleting a snapshot or a group; NULL: use the driver's own user. A snapshot that
 * an administrator has given to Kubernetes by its handle has no class, and so no secret. Without a
 * user of the driver's own, these are the empty ones given.
 */
GHashTable *controller_deleter(const Controller *c, GHashTable *given);

/*
 * A volume's ID with its backend, and the Ceph user: the request's, or the driver's own for `given`
 * NULL. IDs of ceph-csi are looked up in the cluster. NOT_FOUND: there is no such location, or the
 * ID is neither ours nor ceph-csi's.
 */
typedef struct VolumeRef {
    ProvisionTarget at; /* its ID and secrets are the next two */
    VolumeId *id;
    Secrets *secrets;
} VolumeRef;
gboolean controller_resolve(const Controller *c, const char *text, GHashTable *given,
                            gint64 deadline_us, VolumeRef *ref, GError **error);
/* The same of a snapshot's ID. */
gboolean controller_resolve_snapshot(const Controller *c, const char *text, GHashTable *given,
                                     gint64 deadline_us, VolumeRef *ref, GError **error);
void controller_ref_clear(VolumeRef *ref);
#define ref_auto __attribute__((cleanup(controller_ref_clear)))

/* A Volume of the call's memory; NULL when that is exhausted. */
Csi__V1__Volume *controller_volume(RpcCall *call, const char *id, const VolumeId *where,
                                   const VolumeRecord *record, const BackendVolume *volume);

/* The volume's location and name; its ID as text is *text. */
VolumeId *controller_location(const Backend *b, const VolumeParams *params,
                              const char *request_name, char **text, GError **error);

/* One CreateVolume, as its steps need it. Borrowed. */
typedef struct Creation {
    const Controller *controller;
    const Csi__V1__CreateVolumeRequest *request;
    const Backend *backend;
    VolumeParams *params;
    GHashTable *given; /* the request's secrets, as they came */
    gint64 deadline_us;
} Creation;

/*
 * accessible.c: sets params->pool and data_pool to those of the chosen pool, of the params; *chosen
 * is NULL for a class that constrains none. RESOURCE_EXHAUSTED: none is accessible.
 */
gboolean controller_choose_pool(const Creation *creation, const TopologyPool **chosen,
                                GError **error);
/* The same for GetCapacity of a topology (NULL: none); *none: no pool is for it. */
gboolean controller_capacity_pool(const Controller *c, const Csi__V1__Topology *location,
                                  VolumeParams *params, gboolean *none, GError **error);
/* Sets the volume's accessible topology to that of the pool, which may be NULL. */
void controller_accessible(const Controller *c, RpcCall *call, const TopologyPool *pool,
                           Csi__V1__Volume *volume);

/* describe.c: stores the names of claim and cluster with a new volume, or a new snapshot. */
void controller_describe_volume(const Controller *c, const ProvisionTarget *volume,
                                const VolumeParams *params);
void controller_describe_snapshot(const Controller *c, const ProvisionTarget *source,
                                  const char *snapshot, GHashTable *parameters);

/* snapshot.c: a Snapshot of the call's memory; NULL when that is exhausted. */
Csi__V1__Snapshot *controller_snapshot(RpcCall *call, const VolumeId *id,
                                       const SnapshotRecord *record);
/*
 * Checks the parameters of a class of snapshots against a volume it is to be taken of. *prefix,
 * which comes with the default, is the value of the parameter `prefix_name`, borrowed.
 */
gboolean controller_snapshot_class(GHashTable *parameters, const VolumeId *source,
                                   const char *prefix_name, const char **prefix, GError **error);

/* Handlers, in the files named. */
#define CONTROLLER_HANDLER(name)                                                                   \
    gboolean name(RpcCall *call, const ProtobufCMessage *request, ProtobufCMessage *response,      \
                  void *service, GError **error)
/* create.c */
CONTROLLER_HANDLER(controller_create_volume);
CONTROLLER_HANDLER(controller_delete_volume);
/* validate.c */
CONTROLLER_HANDLER(controller_validate_volume_capabilities);
/* volumes.c */
CONTROLLER_HANDLER(controller_expand_volume);
CONTROLLER_HANDLER(controller_modify_volume);
CONTROLLER_HANDLER(controller_list_volumes);
CONTROLLER_HANDLER(controller_get_volume);
/* capacity.c */
CONTROLLER_HANDLER(controller_get_capacity);
/* snapshot.c */
CONTROLLER_HANDLER(controller_create_snapshot);
CONTROLLER_HANDLER(controller_delete_snapshot);
CONTROLLER_HANDLER(controller_list_snapshots);
CONTROLLER_HANDLER(controller_get_snapshot);

/*
 * Visits all locations in the order of lists (lists.c), with the Ceph user for each: the given one,
 * or the driver's own when `given` is empty. *stop ends the visits without an error.
 */
typedef gboolean (*LocationVisit)(const ProvisionTarget *location, void *data, gboolean *stop,
                                  GError **error);
gboolean controller_each_location(const Controller *c, GHashTable *given, LocationVisit visit,
                                  void *data, gint64 deadline_us, GError **error);
/* The order of a location relative to a token's: -1 before, 0 the same, 1 after it or no token. */
int controller_location_order(const VolumeId *location, const VolumeId *token);
/* The number of entries of a page. INVALID_ARGUMENT. */
gboolean controller_page(gint32 max_entries, guint *max, GError **error);
/* Sets ABORTED for a starting_token that is none. */
void controller_bad_token(GError **error);

#endif
