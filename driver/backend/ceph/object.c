/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row an operation. Holders are keys of the object's omap, the seal is an attribute; both go
 * with the object. Taking or leaving a hold costs the same with any number of holders, and no two
 * of them wait for each other.
 */
#include "driver/backend/ceph/object.h"
#include <errno.h>
#include <string.h>

#define OBJECT_MS (20 * 1000)
#define LIST_MS (60 * 1000)
#define SEAL "hearth.seal"
#define SEALED "1"
#define HOLDERS_PAGE 1000

typedef struct ObjectJob {
    PoolJob job;
    CephObjectOp op;
    char *object, *text, *expected;
    gsize max, length;
    char *data;
    int compared;
    GPtrArray *holders;
} ObjectJob;

static int create_object(ObjectJob *job, rados_ioctx_t io)
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_create(op, LIBRADOS_CREATE_EXCLUSIVE, NULL);
    rados_write_op_write_full(op, job->text, strlen(job->text));
    int rc = rados_write_op_operate(op, io, job->object, NULL, 0);
    rados_release_write_op(op);
    return rc;
}

static int read_object(ObjectJob *job, rados_ioctx_t io)
{
    /* One byte more than allowed shows what is too large, one for the NUL. */
    job->data = g_malloc0(job->max + 2);
    int rc = rados_read(io, job->object, job->data, job->max + 1, 0);
    if (rc < 0)
        return rc;
    job->length = (gsize)rc;
    return job->length > job->max ? -EFBIG : 0;
}

static int remove_object(ObjectJob *job, rados_ioctx_t io)
{
    return rados_remove(io, job->object);
}

static int change_object(ObjectJob *job, rados_ioctx_t io,
                         void (*change)(rados_write_op_t op, ObjectJob *job))
{
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_assert_exists(op);
    change(op, job);
    int rc = rados_write_op_operate(op, io, job->object, NULL, 0);
    rados_release_write_op(op);
    /* A failed comparison of content gives its offset, below -MAX_ERRNO; one of an attribute
     * gives ECANCELED. */
    return rc <= -4095 ? -ECANCELED : rc;
}

/* Only the start is compared, but no JSON text is the start of another. */
static void set_content(rados_write_op_t op, ObjectJob *job)
{
    rados_write_op_cmpext(op, job->expected, strlen(job->expected), 0, &job->compared);
    if (job->text)
        rados_write_op_write_full(op, job->text, strlen(job->text));
    else
        rados_write_op_remove(op);
}

static void add_holder(rados_write_op_t op, ObjectJob *job)
{
    const char *key = job->text, *value = "";
    size_t length = strlen(key), none = 0;
    rados_write_op_cmpxattr(op, SEAL, LIBRADOS_CMPXATTR_OP_NE, SEALED, strlen(SEALED));
    rados_write_op_omap_set2(op, &key, &value, &length, &none, 1);
}

static void remove_holder(rados_write_op_t op, ObjectJob *job)
{
    const char *key = job->text;
    size_t length = strlen(key);
    rados_write_op_omap_rm_keys2(op, &key, &length, 1);
}

static void set_seal(rados_write_op_t op, ObjectJob *job)
{
    const char *value = job->op == CEPH_OBJECT_SEAL ? SEALED : "0";
    rados_write_op_setxattr(op, SEAL, value, strlen(value));
}

static int list_holders(ObjectJob *job, rados_ioctx_t io)
{
    g_autofree char *after = g_strdup("");
    for (unsigned char more = 1; more;) {
        int each = 0, rc;
        rados_omap_iter_t iter = NULL;
        rados_read_op_t op = rados_create_read_op();
        rados_read_op_omap_get_keys2(op, after, HOLDERS_PAGE, &iter, &more, &each);
        rc = rados_read_op_operate(op, io, job->object, 0);
        char *key = NULL, *value = NULL;
        size_t key_length = 0, value_length = 0;
        while (rc == 0 && each == 0 &&
               rados_omap_get_next2(iter, &key, &value, &key_length, &value_length) == 0 && key) {
            g_free(after);
            after = g_strndup(key, key_length);
            g_ptr_array_add(job->holders, g_strdup(after));
        }
        if (iter)
            rados_omap_get_end(iter);
        rados_release_read_op(op);
        if (rc != 0 || each != 0)
            return rc ? rc : each;
    }
    return 0;
}

static int replace_object(ObjectJob *job, rados_ioctx_t io)
{
    return change_object(job, io, set_content);
}

static int hold_object(ObjectJob *job, rados_ioctx_t io)
{
    return change_object(job, io, add_holder);
}

static int release_object(ObjectJob *job, rados_ioctx_t io)
{
    return change_object(job, io, remove_holder);
}

static int seal_object(ObjectJob *job, rados_ioctx_t io)
{
    job->holders = g_ptr_array_new_with_free_func(g_free);
    int rc = change_object(job, io, set_seal);
    return rc == 0 ? list_holders(job, io) : rc;
}

static int unseal_object(ObjectJob *job, rados_ioctx_t io)
{
    return change_object(job, io, set_seal);
}

static const struct {
    const char *verb; /* for messages */
    int (*run)(ObjectJob *job, rados_ioctx_t io);
} rows[] = {
    [CEPH_OBJECT_CREATE] = {"creating", create_object},
    [CEPH_OBJECT_READ] = {"reading", read_object},
    [CEPH_OBJECT_REMOVE] = {"removing", remove_object},
    [CEPH_OBJECT_REPLACE] = {"changing", replace_object},
    [CEPH_OBJECT_HOLD] = {"changing", hold_object},
    [CEPH_OBJECT_RELEASE] = {"changing", release_object},
    [CEPH_OBJECT_SEAL] = {"changing", seal_object},
    [CEPH_OBJECT_UNSEAL] = {"changing", unseal_object},
};

static int object_run(PoolJob *data, rados_ioctx_t io)
{
    ObjectJob *job = (ObjectJob *)data;
    return rows[job->op].run(job, io);
}

static void object_clear(PoolJob *data)
{
    ObjectJob *job = (ObjectJob *)data;
    g_free(job->object);
    g_free(job->text);
    g_free(job->expected);
    g_free(job->data);
    g_clear_pointer(&job->holders, g_ptr_array_unref);
}

gboolean ceph_object(const CephPool *at, const CephObjectRequest *request, CephObjectAnswer *answer,
                     gint64 deadline_us, GError **error)
{
    *answer = (CephObjectAnswer){0};
    ObjectJob *job = g_new0(ObjectJob, 1);
    job->job.run = object_run;
    job->job.clear = object_clear;
    job->op = request->op;
    job->object = g_strdup(request->object);
    job->text = g_strdup(request->text);
    job->expected = g_strdup(request->expected);
    job->max = request->max;
    g_autofree char *what = g_strdup_printf("%s record %s in pool %s", rows[request->op].verb,
                                            request->object, at->pool);
    const CephOperation operation = {"record", what, OBJECT_MS};
    if (!pool_job_run(&job->job, at, &operation, deadline_us, error))
        return FALSE;
    answer->rc = job->job.rc;
    if (answer->rc == 0) {
        answer->data = g_steal_pointer(&job->data);
        answer->length = job->length;
        answer->holders = g_steal_pointer(&job->holders);
    }
    pool_job_free(&job->job);
    return TRUE;
}

typedef struct ListJob {
    PoolJob job;
    GPtrArray *names;
} ListJob;

static int list_run(PoolJob *data, rados_ioctx_t io)
{
    ListJob *job = (ListJob *)data;
    rados_list_ctx_t list;
    int rc = rados_nobjects_list_open(io, &list);
    if (rc != 0)
        return rc;
    const char *name;
    while ((rc = rados_nobjects_list_next(list, &name, NULL, NULL)) == 0)
        g_ptr_array_add(job->names, g_strdup(name));
    rados_nobjects_list_close(list);
    return rc == -ENOENT ? 0 : rc; /* the end of the list */
}

static void list_clear(PoolJob *data)
{
    ListJob *job = (ListJob *)data;
    g_clear_pointer(&job->names, g_ptr_array_unref);
}

gboolean ceph_object_list(const CephPool *at, GPtrArray **names, int *rc, gint64 deadline_us,
                          GError **error)
{
    ListJob *job = g_new0(ListJob, 1);
    job->job.run = list_run;
    job->job.clear = list_clear;
    job->names = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *what = g_strdup_printf("listing records in pool %s", at->pool);
    const CephOperation listing = {"records", what, LIST_MS};
    if (!pool_job_run(&job->job, at, &listing, deadline_us, error))
        return FALSE;
    *rc = job->job.rc;
    if (*rc == 0)
        *names = g_steal_pointer(&job->names);
    pool_job_free(&job->job);
    return TRUE;
}
