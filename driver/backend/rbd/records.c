/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of a location: entries in the omap of one object. The object is in the images' own pool
 * and namespace, because a user may be confined to them. RBD keeps its objects in the same
 * namespace, so records that are objects of their own, as for CephFS, could only be found by
 * listing the pool.
 *
 * Exclusive creation is an assertion in the same operation: for the OSD, a missing key equals the
 * empty value (Ceph 16 and 18).
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/rbd/internal.h"
#include "driver/volume/record.h"

#define OBJECT "hearth.records"
/* The OSD's own limit on an answer (osd_max_omap_entries_per_request). */
#define PAGE 1000

static const char *const prefixes[] = {[RBD_NOTE_CLONE] = "clone.",
                                       [RBD_NOTE_SHELL] = "shell.",
                                       [RBD_NOTE_COPIED] = "copied.",
                                       [RBD_NOTE_TRASH] = "trash."};

static char *note_key(RbdNote note, const char *name)
{
    return g_strconcat(prefixes[note], name, NULL);
}

static int create_entry(rados_ioctx_t io, const char *key, const char *text)
{
    size_t key_length = strlen(key), length = strlen(text);
    rados_write_op_t op = rados_create_write_op();
    int unequal = 0;
    rados_write_op_create(op, LIBRADOS_CREATE_IDEMPOTENT, NULL);
    rados_write_op_omap_cmp2(op, key, LIBRADOS_CMPXATTR_OP_EQ, "", key_length, 0, &unequal);
    rados_write_op_omap_set2(op, &key, &text, &key_length, &length, 1);
    int rc = rados_write_op_operate(op, io, OBJECT, NULL, 0);
    rados_release_write_op(op);
    return rc == -ECANCELED ? -EEXIST : rc;
}

static int set_entry(rados_ioctx_t io, const char *key, const char *text)
{
    size_t key_length = strlen(key), length = strlen(text);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_set2(op, &key, &text, &key_length, &length, 1);
    int rc = rados_write_op_operate(op, io, OBJECT, NULL, 0);
    rados_release_write_op(op);
    return rc;
}

static int remove_entries(rados_ioctx_t io, const char *const *keys, gsize n)
{
    g_autofree size_t *lengths = g_new(size_t, n);
    for (gsize i = 0; i < n; i++)
        lengths[i] = strlen(keys[i]);
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_rm_keys2(op, (char const *const *)keys, lengths, n);
    int rc = rados_write_op_operate(op, io, OBJECT, NULL, 0);
    rados_release_write_op(op);
    return rc == -ENOENT ? 0 : rc;
}

/* values[i] is NULL for a missing key; else the caller's, NUL-terminated. */
static int get_entries(rados_ioctx_t io, const char *const *keys, gsize n, char **values,
                       gsize *lengths)
{
    size_t key_lengths[2] = {strlen(keys[0]), n > 1 ? strlen(keys[1]) : 0};
    rados_read_op_t op = rados_create_read_op();
    rados_omap_iter_t iter = NULL;
    int rc_get = 0;
    rados_read_op_omap_get_vals_by_keys2(op, keys, n, key_lengths, &iter, &rc_get);
    int rc = rados_read_op_operate(op, io, OBJECT, 0);
    if (rc == 0)
        rc = rc_get;
    for (gsize i = 0; i < n; i++)
        values[i] = NULL;
    while (rc == 0) {
        char *key = NULL, *value = NULL;
        size_t key_length = 0, length = 0;
        if (rados_omap_get_next2(iter, &key, &value, &key_length, &length) != 0 || !key)
            break;
        for (gsize i = 0; i < n; i++) {
            if (key_length == key_lengths[i] && memcmp(key, keys[i], key_length) == 0) {
                values[i] = g_malloc(length + 1);
                memcpy(values[i], value, length);
                values[i][length] = '\0';
                if (lengths)
                    lengths[i] = length;
            }
        }
    }
    if (iter)
        rados_omap_get_end(iter);
    rados_release_read_op(op);
    return rc == -ENOENT ? 0 : rc;
}

/* Called for each entry; the value is NULL where only keys are read. */
typedef void (*Visit)(void *to, const char *key, const char *value);

/* One page of entries after *after, whose key begins with `prefix`; *after is the last one then. */
static int read_page(rados_ioctx_t io, const char *prefix, char **after, Visit visit, void *to,
                     gboolean *more)
{
    rados_read_op_t op = rados_create_read_op();
    rados_omap_iter_t iter = NULL;
    unsigned char left = 0;
    int rc_get = 0;
    if (prefix)
        rados_read_op_omap_get_vals2(op, *after, prefix, PAGE, &iter, &left, &rc_get);
    else
        rados_read_op_omap_get_keys2(op, *after, PAGE, &iter, &left, &rc_get);
    int rc = rados_read_op_operate(op, io, OBJECT, 0);
    if (rc == 0)
        rc = rc_get;
    while (rc == 0) {
        char *bytes = NULL, *value_bytes = NULL;
        size_t length = 0, value_length = 0;
        if (rados_omap_get_next2(iter, &bytes, &value_bytes, &length, &value_length) != 0 || !bytes)
            break;
        g_autofree char *value = prefix ? g_strndup(value_bytes, value_length) : NULL;
        g_free(*after);
        *after = g_strndup(bytes, length);
        visit(to, *after, value);
    }
    if (iter)
        rados_omap_get_end(iter);
    rados_release_read_op(op);
    *more = rc == 0 && left;
    return rc == -ENOENT ? 0 : rc;
}

static int read_all(rados_ioctx_t io, const char *prefix, Visit visit, void *to)
{
    g_autofree char *after = g_strdup("");
    gboolean more = TRUE;
    int rc = 0;
    while (more && rc == 0)
        rc = read_page(io, prefix, &after, visit, to, &more);
    return rc;
}

int rbd_note_set(rados_ioctx_t io, RbdNote note, const char *name, const char *value)
{
    g_autofree char *key = note_key(note, name);
    return set_entry(io, key, value);
}

int rbd_note_clear(rados_ioctx_t io, RbdNote note, const char *name)
{
    g_autofree char *key = note_key(note, name);
    return remove_entries(io, (const char *const[]){key}, 1);
}

int rbd_notes_read(rados_ioctx_t io, const char *name, char **clone, char **shell)
{
    g_autofree char *clone_key = note_key(RBD_NOTE_CLONE, name);
    g_autofree char *shell_key = note_key(RBD_NOTE_SHELL, name);
    char *values[2];
    int rc = get_entries(io, (const char *const[]){clone_key, shell_key}, 2, values, NULL);
    *clone = values[0];
    *shell = values[1];
    return rc;
}

int rbd_note_copied(rados_ioctx_t io, const char *name, const char *id, gboolean flatten)
{
    g_autofree char *copied = note_key(RBD_NOTE_COPIED, name);
    g_autofree char *clone = note_key(RBD_NOTE_CLONE, name);
    const char *const keys[] = {copied, clone}, *const values[] = {id, RBD_CLONE_FLATTEN};
    const size_t key_lengths[] = {strlen(copied), strlen(clone)};
    const size_t lengths[] = {strlen(id), strlen(RBD_CLONE_FLATTEN)};
    rados_write_op_t op = rados_create_write_op();
    rados_write_op_omap_set2(op, keys, values, key_lengths, lengths, flatten ? 2 : 1);
    if (!flatten)
        rados_write_op_omap_rm_keys2(op, keys + 1, key_lengths + 1, 1);
    int rc = rados_write_op_operate(op, io, OBJECT, NULL, 0);
    rados_release_write_op(op);
    return rc;
}

static void add_trash(void *to, const char *key, const char *value)
{
    const char *id = key + strlen(prefixes[RBD_NOTE_TRASH]);
    g_hash_table_insert(to, g_strdup(id), g_strdup(value));
}

/* Among the notes of the trash, so that one request reads both; no ID of an image. */
#define ELSEWHERE "@elsewhere"

int rbd_note_is_half(rados_ioctx_t io, const char *name, const char *id, gboolean *half)
{
    g_autofree char *clone_key = note_key(RBD_NOTE_CLONE, name);
    g_autofree char *copied_key = note_key(RBD_NOTE_COPIED, name);
    char *values[2];
    int rc = get_entries(io, (const char *const[]){clone_key, copied_key}, 2, values, NULL);
    *half = rc == 0 && g_strcmp0(values[0], RBD_CLONE_BEGUN) == 0 && g_strcmp0(values[1], id) != 0;
    g_free(values[0]);
    g_free(values[1]);
    return rc;
}

int rbd_notes_of_trash(rados_ioctx_t io, GHashTable **trash, gboolean *elsewhere)
{
    *trash = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    int rc = read_all(io, prefixes[RBD_NOTE_TRASH], add_trash, *trash);
    gboolean noted = g_hash_table_remove(*trash, ELSEWHERE);
    if (elsewhere)
        *elsewhere = noted;
    return rc;
}

int rbd_note_elsewhere(rados_ioctx_t io)
{
    return rbd_note_set(io, RBD_NOTE_TRASH, ELSEWHERE, "1");
}

int rbd_records_there(rados_ioctx_t io)
{
    return rados_stat(io, OBJECT, NULL, NULL);
}

static void create_run(RbdCall *call)
{
    int rc = create_entry(call->io, call->image, call->text);
    call->flag = rc == -EEXIST;
    if (rc != 0 && rc != -EEXIST)
        rbd_call_fail(call, rc, "creating the record");
}

gboolean rbd_record_create(void *session, const char *name, const char *text, gboolean *existed,
                           gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, name, NULL);
    call->text = g_strdup(text);
    if (!rbd_call_run(call, "creating the record", create_run, RBD_LOOK_MS, deadline_us, error))
        return FALSE;
    *existed = call->flag;
    rbd_call_free(call);
    return TRUE;
}

static void read_run(RbdCall *call)
{
    int rc =
        get_entries(call->io, (const char *const *)&call->image, 1, &call->text, &call->length);
    if (rc != 0)
        rbd_call_fail(call, rc, "reading the record");
    else if (!call->text)
        rbd_call_refuse(call, HEARTH_ERROR_NOT_FOUND, "there is no record %s", call->image);
    else if (call->length > RECORD_MAX)
        rbd_call_refuse(call, HEARTH_ERROR_INTERNAL, "record %s has %" G_GSIZE_FORMAT " bytes",
                        call->image, call->length);
}

char *rbd_record_read(void *session, const char *name, gsize *length, gint64 deadline_us,
                      GError **error)
{
    RbdCall *call = rbd_call_new(session, name, NULL);
    if (!rbd_call_run(call, "reading the record", read_run, RBD_LOOK_MS, deadline_us, error))
        return NULL;
    char *text = g_steal_pointer(&call->text);
    *length = call->length;
    rbd_call_free(call);
    return text;
}

static int replace_entry(rados_ioctx_t io, const char *key, const char *expected, const char *text)
{
    size_t key_length = strlen(key), length = text ? strlen(text) : 0;
    rados_write_op_t op = rados_create_write_op();
    int unequal = 0;
    rados_write_op_omap_cmp2(op, key, LIBRADOS_CMPXATTR_OP_EQ, expected, key_length,
                             strlen(expected), &unequal);
    if (text)
        rados_write_op_omap_set2(op, &key, &text, &key_length, &length, 1);
    else
        rados_write_op_omap_rm_keys2(op, &key, &key_length, 1);
    int rc = rados_write_op_operate(op, io, OBJECT, NULL, 0);
    rados_release_write_op(op);
    return rc;
}

static void replace_run(RbdCall *call)
{
    int rc = replace_entry(call->io, call->image, call->source, call->text);
    call->flag = rc == 0;
    if (rc == -ECANCELED || rc == -ENOENT) {
        g_autofree char *found = NULL;
        rc = get_entries(call->io, (const char *const *)&call->image, 1, &found, NULL);
        if (rc == 0 && !found)
            rbd_call_refuse(call, HEARTH_ERROR_NOT_FOUND, "there is no record %s", call->image);
    }
    if (rc != 0)
        rbd_call_fail(call, rc, "replacing the record");
}

gboolean rbd_record_replace(void *session, const RecordChange *change, gboolean *same,
                            gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, change->name, NULL);
    call->source = g_strdup(change->expected);
    call->text = g_strdup(change->text);
    if (!rbd_call_run(call, "replacing the record", replace_run, RBD_LOOK_MS, deadline_us, error))
        return FALSE;
    *same = call->flag;
    rbd_call_free(call);
    return TRUE;
}

/* The notes about a copy are removed with the volume's record. */
static void remove_run(RbdCall *call)
{
    const char *volume = volume_record_key_name(call->image);
    g_autofree char *clone = volume ? note_key(RBD_NOTE_CLONE, volume) : NULL;
    g_autofree char *copied = volume ? note_key(RBD_NOTE_COPIED, volume) : NULL;
    const char *keys[] = {call->image, clone, copied};
    int rc = remove_entries(call->io, keys, volume ? 3 : 1);
    if (rc != 0)
        rbd_call_fail(call, rc, "removing the record");
}

gboolean rbd_record_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, name, NULL), "removing the record", remove_run,
                       RBD_LOOK_MS, deadline_us, error);
}

static void add_name(void *to, const char *key, const char *value)
{
    (void)value;
    g_ptr_array_add(to, g_strdup(key));
}

static void list_run(RbdCall *call)
{
    call->names = g_ptr_array_new_with_free_func(g_free);
    int rc = read_all(call->io, NULL, add_name, call->names);
    if (rc != 0)
        rbd_call_fail(call, rc, "listing the records of");
}

GPtrArray *rbd_record_list(void *session, gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, NULL, NULL);
    if (!rbd_call_run(call, "listing the records of", list_run, RBD_CHANGE_MS, deadline_us, error))
        return NULL;
    GPtrArray *names = g_steal_pointer(&call->names);
    rbd_call_free(call);
    return names;
}
