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

#endif
