/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/ceph/csi_journal.h"
#include <errno.h>
#include <string.h>

#define COMMON "csi."
#define IMAGE_KEY COMMON "imagename"
#define POOL_KEY COMMON "journalpool"
#define SOURCE_KEY COMMON "source"
#define KMS_KEY COMMON "volume.encryptKMS"
#define BACKING_KEY COMMON "volume.backingsnapshotid"
#define REFERENCES "rt-backingsnapshot-"
/* An object of a volume has ten keys at most. */
#define KEYS_MAX 64

static const struct {
    const char *directory, *prefix, *name_key, *image_prefix;
} kinds[] = {
    [JOURNAL_VOLUME] = {COMMON "volumes.default", COMMON "volume.", COMMON "volname", "csi-vol-"},
    [JOURNAL_SNAPSHOT] = {COMMON "snaps.default", COMMON "snap.", COMMON "snapname", "csi-snap-"},
};

void journal_entry_free(JournalEntry *entry)
{
    if (!entry)
        return;
    g_free(entry->request_name);
    g_free(entry->name);
    g_free(entry->source);
    g_free(entry);
}

static void take_value(JournalEntry *entry, JournalKind kind, const char *key, const char *value)
{
    if (strcmp(key, kinds[kind].name_key) == 0)
        entry->request_name = g_strdup(value);
    else if (strcmp(key, IMAGE_KEY) == 0)
        entry->name = g_strdup(value);
    else if (strcmp(key, SOURCE_KEY) == 0)
        entry->source = g_strdup(value);
    else if (strcmp(key, POOL_KEY) == 0)
        entry->directory_pool = (gint64)g_ascii_strtoull(value, NULL, 16);
    else if (strcmp(key, KMS_KEY) == 0)
        entry->encrypted = *value != '\0';
    else if (strcmp(key, BACKING_KEY) == 0)
        entry->shows_snapshot = *value != '\0';
}

/* The keys of the object call->image and their values, in turn, into call->names; NULL: none. */
static void find_run(RbdCall *call)
{
    rados_read_op_t op = rados_create_read_op();
    rados_omap_iter_t iter = NULL;
    unsigned char more = 0;
    int rc_get = 0;
    rados_read_op_omap_get_vals2(op, "", COMMON, KEYS_MAX, &iter, &more, &rc_get);
    int rc = rados_read_op_operate(op, call->io, call->image, 0);
    if (rc == 0)
        rc = rc_get;
    if (rc == 0)
        call->names = g_ptr_array_new_with_free_func(g_free);
    while (rc == 0) {
        char *key = NULL, *value = NULL;
        size_t key_length = 0, length = 0;
        if (rados_omap_get_next2(iter, &key, &value, &key_length, &length) != 0 || !key)
            break;
        g_ptr_array_add(call->names, g_strndup(key, key_length));
        g_ptr_array_add(call->names, g_strndup(value, length));
    }
    if (iter)
        rados_omap_get_end(iter);
    rados_release_read_op(op);
    if (rc == 0 && call->text) {
        int found = rados_stat(call->io, call->text, NULL, NULL);
        call->flag = found == 0;
        rc = found == -ENOENT ? 0 : found;
    }
    if (rc != 0 && rc != -ENOENT)
        rbd_call_fail(call, rc, "reading ceph-csi's journal of");
}

gboolean ceph_csi_journal_find(const RbdPlace *at, JournalKind kind, const char *handle,
                               JournalEntry **entry, gint64 deadline_us, GError **error)
{
    g_autoptr(AdoptedId) id = adopted_id_decode(handle);
    g_autofree char *object = g_strconcat(kinds[kind].prefix, id->uuid, NULL);
    *entry = NULL;
    RbdCall *call = rbd_call_new(at, object, NULL);
    call->text = kind == JOURNAL_SNAPSHOT ? g_strconcat(REFERENCES, handle, NULL) : NULL;
    if (!rbd_call_run(call, "reading ceph-csi's journal of", find_run, RBD_LOOK_MS, deadline_us,
                      error))
        return FALSE;
    if (call->names) {
        *entry = g_new0(JournalEntry, 1);
        (*entry)->directory_pool = -1;
        (*entry)->shown = call->flag;
        for (guint i = 0; i + 1 < call->names->len; i += 2)
            take_value(*entry, kind, call->names->pdata[i], call->names->pdata[i + 1]);
        if (!(*entry)->name)
            (*entry)->name = g_strconcat(kinds[kind].image_prefix, id->uuid, NULL);
    }
    rbd_call_free(call);
    return TRUE;
}

/* The value of a key; NULL when there is none. */
static int read_key(rados_ioctx_t io, const char *object, const char *key, char **value)
{
    rados_read_op_t op = rados_create_read_op();
    rados_omap_iter_t iter = NULL;
    size_t key_length = strlen(key), length = 0;
    char *found_key = NULL, *found = NULL;
    int rc_get = 0;
    *value = NULL;
    rados_read_op_omap_get_vals_by_keys2(op, &key, 1, &key_length, &iter, &rc_get);
    int rc = rados_read_op_operate(op, io, object, 0);
    if (rc == 0)
        rc = rc_get;
    if (rc == 0 && rados_omap_get_next2(iter, &found_key, &found, &key_length, &length) == 0 &&
        found_key)
        *value = g_strndup(found, length);
    if (iter)
        rados_omap_get_end(iter);
    rados_release_read_op(op);
    return rc == -ENOENT ? 0 : rc;
}

/* The key of the request, if it leads to this UUID: a later volume may have the name by now. */
static int remove_key(rados_ioctx_t io, const char *directory, const char *key, const char *uuid)
{
    g_autofree char *value = NULL;
    int rc = read_key(io, directory, key, &value), unequal = 0;
    if (rc != 0 || !value || !g_str_has_suffix(value, uuid))
        return rc;
    size_t key_length = strlen(key);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_cmp2(op, key, LIBRADOS_CMPXATTR_OP_EQ, value, key_length, strlen(value),
                             &unequal);
    rados_write_op_omap_rm_keys2(op, &key, &key_length, 1);
    rc = rados_write_op_operate(op, io, directory, NULL, 0);
    rados_release_write_op(op);
    return rc == -ENOENT || rc == -ECANCELED ? 0 : rc;
}

/*
 * The key first: what is left by a crash is then found by the handle again. call->image is the
 * object, call->source the directory, call->snapshot the key or NULL, call->text the UUID,
 * call->bytes the directory's pool.
 */
static void forget_run(RbdCall *call)
{
    int rc = 0;
    rados_ioctx_t directory = call->io;
    if (call->snapshot && call->bytes >= 0) {
        rc = rados_ioctx_create2(rados_ioctx_get_cluster(call->io), call->bytes, &directory);
        if (rc == 0)
            rados_ioctx_set_namespace(directory, call->at.nspace);
    }
    if (rc == 0 && call->snapshot)
        rc = remove_key(directory, call->source, call->snapshot, call->text);
    if (directory != call->io && directory)
        rados_ioctx_destroy(directory);
    rc = rc == -ENOENT ? 0 : rc; /* that pool is gone */
    if (rc == 0)
        rc = rados_remove(call->io, call->image);
    if (rc != 0 && rc != -ENOENT)
        rbd_call_fail(call, rc, "removing from ceph-csi's journal");
}

gboolean ceph_csi_journal_forget(const RbdPlace *at, JournalKind kind, const char *handle,
                                 const JournalEntry *entry, gint64 deadline_us, GError **error)
{
    g_autoptr(AdoptedId) id = adopted_id_decode(handle);
    g_autofree char *object = g_strconcat(kinds[kind].prefix, id->uuid, NULL);
    RbdCall *call = rbd_call_new(at, object, NULL);
    call->source = g_strdup(kinds[kind].directory);
    call->snapshot =
        entry->request_name ? g_strconcat(kinds[kind].prefix, entry->request_name, NULL) : NULL;
    call->text = g_strdup(id->uuid);
    call->bytes = entry->directory_pool;
    return rbd_call_do(call, "removing from ceph-csi's journal", forget_run, RBD_LOOK_MS,
                       deadline_us, error);
}
