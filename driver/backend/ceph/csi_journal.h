/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ceph-csi's journal (its internal/journal/voljournal.go): omaps that lead from the UUID in a
 * handle to the name of image, subvolume or snapshot, and from the name of a request to the UUID.
 *
 *     csi.volume.UUID       csi.volname, csi.imagename, csi.journalpool (a number, when it is
 *                           another pool), csi.volume.encryptKMS, csi.volume.backingsnapshotid
 *     csi.volumes.default   csi.volume.NAME-OF-REQUEST: UUID, or POOL/UUID
 *     csi.snap.UUID         csi.snapname, csi.imagename, csi.source
 *     csi.snaps.default     csi.snap.NAME-OF-REQUEST: UUID
 *     rt-backingsnapshot-HANDLE   there once a volume has shown that snapshot, until it is deleted
 *
 * They are in the image's pool and namespace; of CephFS in the metadata pool, namespace "csi".
 * Hearth removes the entries of what it deletes, and adds none.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_CSI_JOURNAL_H
#define HEARTH_DRIVER_BACKEND_CEPH_CSI_JOURNAL_H

#include "driver/backend/backend.h"
#include "driver/backend/ceph/pool.h"

/* BackendOps of the same names, in the pool and namespace of a journal. */
gboolean ceph_csi_journal_find(const CephPool *at, JournalKind kind, const char *handle,
                               JournalEntry **entry, gint64 deadline_us, GError **error);
gboolean ceph_csi_journal_forget(const CephPool *at, JournalKind kind, const char *handle,
                                 const JournalEntry *entry, gint64 deadline_us, GError **error);

#endif
