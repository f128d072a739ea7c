/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of CephFS volumes: objects in the namespace "hearth" of the file system's metadata pool.
 * ceph-csi keeps its own records in that pool, and the capabilities that it documents (osd "allow
 * rw tag cephfs metadata=*") reach it.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPHFS_RECORDS_H
#define HEARTH_DRIVER_BACKEND_CEPHFS_RECORDS_H

#include "driver/backend/backend.h"
#include "driver/backend/ceph/conn.h"

/* The session of a CephFS backend. */
typedef struct CephfsSession {
    CephConn *conn;
    char *fs_name;
    char *pool;              /* for metadata */
    char *journal_namespace; /* of ceph-csi's journal, in that pool */
} CephfsSession;

/* BackendOps of the same names (backend.h); the session is a CephfsSession. */
gboolean cephfs_record_create(void *session, const char *name, const char *text, gboolean *existed,
                              gint64 deadline_us, GError **error);
char *cephfs_record_read(void *session, const char *name, gsize *length, gint64 deadline_us,
                         GError **error);
gboolean cephfs_record_remove(void *session, const char *name, gint64 deadline_us, GError **error);
GPtrArray *cephfs_record_list(void *session, gint64 deadline_us, GError **error);
gboolean cephfs_record_replace(void *session, const RecordChange *change, gboolean *same,
                               gint64 deadline_us, GError **error);
gboolean cephfs_record_hold(void *session, const char *name, const char *holder, gboolean *held,
                            gint64 deadline_us, GError **error);
gboolean cephfs_record_release(void *session, const char *name, const char *holder,
                               gint64 deadline_us, GError **error);
GPtrArray *cephfs_record_seal(void *session, const char *name, gint64 deadline_us, GError **error);
gboolean cephfs_record_unseal(void *session, const char *name, gint64 deadline_us, GError **error);

#endif
