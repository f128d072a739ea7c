/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Small objects, and what is done to them in one step of the OSD. Records of CephFS volumes are
 * such objects. A record may have holders, whom its removal has to wait for, and a seal, which lets
 * no more of them come.
 */
#ifndef HEARTH_DRIVER_BACKEND_CEPH_OBJECT_H
#define HEARTH_DRIVER_BACKEND_CEPH_OBJECT_H

#include "driver/backend/ceph/pool.h"

typedef enum CephObjectOp {
    CEPH_OBJECT_CREATE, /* with its content `text`; rc -EEXIST */
    CEPH_OBJECT_READ,   /* rc -ENOENT, -EFBIG */
    CEPH_OBJECT_REMOVE, /* rc -ENOENT */
    /* Changes of an object that exists: rc -ENOENT. */
    /* The whole content `expected` by `text`, or by nothing when that is NULL: the object is
     * removed. rc -ECANCELED: it differs. */
    CEPH_OBJECT_REPLACE,
    CEPH_OBJECT_HOLD,    /* adds the holder `text`; rc -ECANCELED: the object is sealed */
    CEPH_OBJECT_RELEASE, /* removes the holder `text` */
    CEPH_OBJECT_SEAL,    /* no more holders; the answer has those there are */
    CEPH_OBJECT_UNSEAL,
} CephObjectOp;

typedef struct CephObjectRequest {
    CephObjectOp op;
    const char *object;
    const char *text, *expected; /* as the operation says */
    gsize max;                   /* to read; a larger object is -EFBIG */
} CephObjectRequest;

typedef struct CephObjectAnswer {
    int rc;             /* 0 or -errno; the rest is only there for 0 */
    char *data;         /* read, NUL-terminated; the caller's */
    gsize length;       /* of data */
    GPtrArray *holders; /* char*; the caller's */
} CephObjectAnswer;

/* FALSE when no answer came in time: UNAVAILABLE or DEADLINE_EXCEEDED. */
gboolean ceph_object(const CephPool *at, const CephObjectRequest *request, CephObjectAnswer *answer,
                     gint64 deadline_us, GError **error);

/* The names of all objects of a namespace, in no order; *names is the caller's when *rc is 0. FALSE
 * as above. */
gboolean ceph_object_list(const CephPool *at, GPtrArray **names, int *rc, gint64 deadline_us,
                          GError **error);

#endif
