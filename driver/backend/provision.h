/*
 * Provisioning over any backend, repeatable after a crash at any step:
 *
 *     create   record, then volume      a record without a volume: the next create finishes it
 *     delete   volume, then record      the same state: the next delete finishes it
 *
 * A volume without a record was made by someone else: it is neither adopted nor deleted. The
 * caller holds the lock of the volume's name (service/locks.h).
 */
#ifndef HEARTH_DRIVER_BACKEND_PROVISION_H
#define HEARTH_DRIVER_BACKEND_PROVISION_H

#include "driver/backend/backend.h"
#include "driver/volume/record.h"

/*
 * A session is opened for each. On success *record and *volume are the caller's.
 * ALREADY_EXISTS: the name is taken by another request or by a volume of someone else.
 */
gboolean provision_create(const Backend *backend, const VolumeId *id, const char *request_name,
                          const VolumeParams *params, CapacityRange range, const Secrets *secrets,
                          gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                          GError **error);

/* What is not there is deleted already. FAILED_PRECONDITION: a volume without a record, or
 * snapshots. */
gboolean provision_delete(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                          gint64 deadline_us, GError **error);

/* NOT_FOUND unless both the record and the complete volume are there. */
gboolean provision_look(const Backend *backend, const VolumeId *id, const Secrets *secrets,
                        gint64 deadline_us, VolumeRecord **record, BackendVolume **volume,
                        GError **error);

/*
 * Makes the volume as large as the range asks; *bytes is its size then. A volume that is large
 * enough stays as it is. OUT_OF_RANGE: it is larger than the range allows. NOT_FOUND.
 */
gboolean provision_expand(const Backend *backend, const VolumeId *id, CapacityRange range,
                          const Secrets *secrets, gint64 deadline_us, gint64 *bytes,
                          GError **error);

/* One volume of a list; `id` is whole. */
typedef struct ProvisionEntry {
    VolumeId *id;
    VolumeRecord *record;
    BackendVolume *volume;
} ProvisionEntry;

void provision_entry_free(gpointer entry);

/*
 * The complete volumes of a place in the order of their names, from the first after `after` (NULL:
 * from the start), `max` at most; ProvisionEntry*, owned by the array. *more: there are others.
 */
GPtrArray *provision_list(const Backend *backend, const VolumeId *place, const char *after,
                          guint max, const Secrets *secrets, gint64 deadline_us, gboolean *more,
                          GError **error);

/* Bytes that new data of such volumes can take at the place. */
gboolean provision_capacity(const Backend *backend, const VolumeId *place, const char *pool,
                            const Secrets *secrets, gint64 deadline_us, gint64 *available,
                            GError **error);

#endif
