/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each function is one operation on one object (object.h); an answer that the backend's contract
 * expects is no error. The table in ops.c has these functions.
 */
#include "driver/backend/cephfs/records.h"
#include <errno.h>
#include "driver/backend/ceph/object.h"
#include "driver/volume/record.h"

#define NAMESPACE "hearth"

static CephPool records_of(const CephfsSession *s)
{
    return (CephPool){.conn = s->conn, .pool = s->pool, .nspace = NAMESPACE};
}

/* One operation; answers other than 0 and `expected_rc` are errors: NOT_FOUND for -ENOENT. */
static gboolean do_request(CephfsSession *s, const CephObjectRequest *request, int expected_rc,
                           CephObjectAnswer *answer, gint64 deadline_us, GError **error)
{
    const CephPool at = records_of(s);
    if (!ceph_object(&at, request, answer, deadline_us, error))
        return FALSE;
    if (answer->rc == 0 || answer->rc == expected_rc)
        return TRUE;
    g_autofree char *what = g_strdup_printf("record %s in pool %s", request->object, s->pool);
    if (answer->rc == -ENOENT)
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "there is no %s", what);
    ceph_conn_fail(error, s->conn, answer->rc, what, NULL);
    return FALSE;
}

gboolean cephfs_record_create(void *session, const char *name, const char *text, gboolean *existed,
                              gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_CREATE, .object = name, .text = text};
    if (!do_request(session, &request, -EEXIST, &answer, deadline_us, error))
        return FALSE;
    *existed = answer.rc == -EEXIST;
    return TRUE;
}

char *cephfs_record_read(void *session, const char *name, gsize *length, gint64 deadline_us,
                         GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_READ, .object = name, .max = RECORD_MAX};
    if (!do_request(session, &request, 0, &answer, deadline_us, error))
        return NULL;
    *length = answer.length;
    return answer.data;
}

gboolean cephfs_record_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_REMOVE, .object = name};
    return do_request(session, &request, -ENOENT, &answer, deadline_us, error);
}

GPtrArray *cephfs_record_list(void *session, gint64 deadline_us, GError **error)
{
    CephfsSession *s = session;
    const CephPool at = records_of(s);
    int rc;
    GPtrArray *names = NULL;
    if (!ceph_object_list(&at, &names, &rc, deadline_us, error))
        return NULL;
    if (rc != 0) {
        g_autofree char *what = g_strdup_printf("listing the records in pool %s", s->pool);
        ceph_conn_fail(error, s->conn, rc, what, NULL);
    }
    return names;
}

gboolean cephfs_record_replace(void *session, const RecordChange *change, gboolean *same,
                               gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_REPLACE,
                                       .object = change->name,
                                       .text = change->text,
                                       .expected = change->expected};
    *same = FALSE;
    if (!do_request(session, &request, -ECANCELED, &answer, deadline_us, error))
        return FALSE;
    *same = answer.rc == 0;
    return TRUE;
}

gboolean cephfs_record_hold(void *session, const char *name, const char *holder, gboolean *held,
                            gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_HOLD, .object = name, .text = holder};
    *held = FALSE;
    if (!do_request(session, &request, -ECANCELED, &answer, deadline_us, error))
        return FALSE;
    *held = answer.rc == 0;
    return TRUE;
}

gboolean cephfs_record_release(void *session, const char *name, const char *holder,
                               gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_RELEASE, .object = name, .text = holder};
    return do_request(session, &request, -ENOENT, &answer, deadline_us, error);
}

GPtrArray *cephfs_record_seal(void *session, const char *name, gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_SEAL, .object = name};
    return do_request(session, &request, 0, &answer, deadline_us, error) ? answer.holders : NULL;
}

gboolean cephfs_record_unseal(void *session, const char *name, gint64 deadline_us, GError **error)
{
    CephObjectAnswer answer;
    const CephObjectRequest request = {.op = CEPH_OBJECT_UNSEAL, .object = name};
    return do_request(session, &request, 0, &answer, deadline_us, error);
}
