/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies are clones of a snapshot, which exist at once and share its data. Reading through a chain
 * of clones costs a request for each, and Linux follows 16 at most; so a clone that makes the chain
 * longer than the limit is flattened by the mgr in the background, and counts as being copied until
 * it has no parent.
 *
 *     note "begun" → clone → its ID noted as copied and the note gone, in one step, or
 *     note "begun" → clone → its ID noted and note "flatten", in one step → the mgr's task → no
 *     parent
 *
 * An attempt may be stopped at any place, as a controller that is frozen, and go on after a later
 * attempt has made the volume and somebody has used it. So "begun" says nothing of an image whose
 * ID is noted, and half a copy is removed by its ID (remove.c).
 *
 * An image with the note "begun" must not be used: librbd makes the image, then its link to the
 * parent, then the parent's link to it. A crash between them would show an empty volume, or one
 * whose data disappears with the parent's snapshot.
 *
 * librbd gives a clone its parent's metadata. Keys that concern the parent alone are removed again:
 * hearthd's notes, the names of the claim, and the limits, which come from the volume's own record.
 */
#include <errno.h>
#include <jansson.h>
#include <string.h>
#include "driver/backend/ceph/internal.h"
#include "driver/backend/rbd/internal.h"

/* Opens the next image of a chain, by its ID, because it may be in the trash. */
static int open_parent(rados_ioctx_t at, const rbd_linked_image_spec_t *parent, rbd_image_t *image)
{
    rados_ioctx_t io;
    int rc = rados_ioctx_create(rados_ioctx_get_cluster(at), parent->pool_name, &io);
    if (rc != 0)
        return rc;
    rados_ioctx_set_namespace(io, parent->pool_namespace);
    rc = rbd_open_by_id_read_only(io, parent->image_id, image, NULL);
    rados_ioctx_destroy(io); /* librbd has its own */
    return rc;
}

/* How many images `image`, which is closed, depends on, counting no further than `limit`. */
static int count_parents(rados_ioctx_t io, rbd_image_t image, guint limit, guint *depth)
{
    int rc = 0;
    for (*depth = 0; image && rc == 0;) {
        rbd_linked_image_spec_t parent = {0};
        rbd_snap_spec_t snapshot = {0};
        rbd_image_t next = NULL;
        rc = rbd_get_parent(image, &parent, &snapshot);
        if (rc == 0 && ++*depth < limit)
            rc = open_parent(io, &parent, &next);
        if (rc == -ENOENT)
            rc = 0; /* the chain ends here */
        rbd_close(image);
        rbd_linked_image_spec_cleanup(&parent);
        rbd_snap_spec_cleanup(&snapshot);
        image = next;
    }
    if (image)
        rbd_close(image);
    return rc;
}

/* A task that exists is fine, also for the mgr. */
static gboolean add_flatten_task(RbdCall *call)
{
    g_autofree char *spec = rbd_spec(&call->at, call->image);
    json_auto_t *json = json_pack("{s:s, s:s, s:s}", "prefix", "rbd task add flatten", "image_spec",
                                  spec, "format", "json");
    char *command = json_dumps(json, JSON_COMPACT), *output = NULL, *status = NULL;
    const char *commands[] = {command};
    size_t output_length = 0, status_length = 0;
    int rc = rados_mgr_command(rados_ioctx_get_cluster(call->io), commands, 1, NULL, 0, &output,
                               &output_length, &status, &status_length);
    free(command);
    g_autofree char *line = g_strndup(status ? status : "", MIN(status_length, 200));
    rados_buffer_free(output);
    rados_buffer_free(status);
    if (rc == 0)
        return TRUE;
    if (rc == -EPERM || rc == -EACCES)
        return rbd_call_fail(call, rc, "flattening by the mgr of");
    g_autofree char *why =
        call->limit > 0
            ? g_strdup_printf("it is deeper than %u (--rbd-max-clone-depth)", call->limit)
            : g_strdup("it is in a pool of topologyConstrainedPools and its source is elsewhere");
    const HearthError code =
        rc == -EAGAIN ? HEARTH_ERROR_ABORTED : HEARTH_ERROR_FAILED_PRECONDITION;
    return rbd_call_refuse(call, code,
                           "image %s is to be flattened, as %s, and the mgr does not take the "
                           "task: %s%s%s; see `ceph mgr module ls` for rbd_support and `rbd task "
                           "list`",
                           spec, why, g_strerror(-rc), *line ? ": " : "", line);
}

/* The name is taken, though no volume has it. *again: it is free now. */
static gboolean reuse_name(RbdCall *call, gboolean *again)
{
    rbd_image_t image;
    g_autofree char *clone = NULL, *shell = NULL;
    int rc = rbd_open_read_only(call->io, call->image, &image, NULL);
    if (rc == -ENOENT) {
        *again = rbd_clear_name(call);
        return *again;
    }
    if (rc != 0)
        return rbd_call_fail(call, rc, "opening");
    rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    gboolean kept = rbd_image_is(image, shell);
    rbd_close(image);
    if (rc != 0)
        return rbd_call_fail(call, rc, "looking at");
    if (kept)
        return rbd_call_refuse(call, HEARTH_ERROR_INVALID_ARGUMENT,
                               "image %s is kept for the snapshots of a deleted volume of this "
                               "name; copy to another name, or delete those snapshots",
                               call->image);
    return rbd_call_refuse(call, HEARTH_ERROR_ABORTED, "image %s was made just now; try again",
                           call->image);
}

static gboolean is_of_one_image(const char *key)
{
    static const char *const own[] = {"hearth.", "conf_rbd_qos_", "csi.storage.k8s.io/",
                                      "csi.ceph.com/"};
    for (guint i = 0; i < G_N_ELEMENTS(own); i++) {
        if (g_str_has_prefix(key, own[i]))
            return TRUE;
    }
    return FALSE;
}

/* Collects the keys of `image` that its clone must not keep. */
static int read_own_keys(rbd_image_t image, GPtrArray *keys)
{
    size_t key_room = 4096, value_room = 16384;
    for (;;) {
        g_autofree char *names = g_malloc(key_room);
        g_autofree char *values = g_malloc(value_room);
        size_t key_bytes = key_room, value_bytes = value_room;
        int rc = rbd_metadata_list(image, "", 0, names, &key_bytes, values, &value_bytes);
        if (rc == -ERANGE) {
            key_room = MAX(key_bytes, key_room) + 1024;
            value_room = MAX(value_bytes, value_room) + 4096;
            continue;
        }
        for (const char *key = names; rc == 0 && key < names + key_bytes; key += strlen(key) + 1) {
            if (is_of_one_image(key))
                g_ptr_array_add(keys, g_strdup(key));
        }
        return rc;
    }
}

/* Nothing of an image that a later attempt has finished meanwhile: its keys are its own. */
static gboolean drop_keys(RbdCall *call)
{
    rbd_image_t image;
    char id[RBD_ID_MAX];
    gboolean half = FALSE;
    if (call->names->len == 0)
        return TRUE;
    int rc = rbd_open(call->io, call->image, &image, NULL);
    if (rc == 0) {
        rc = rbd_get_id(image, id, sizeof(id));
        if (rc == 0)
            rc = rbd_note_is_half(call->io, call->image, id, &half);
        for (guint i = 0; rc == 0 && half && i < call->names->len; i++) {
            rc = rbd_metadata_remove(image, call->names->pdata[i]);
            rc = rc == -ENOENT ? 0 : rc;
        }
        rbd_close(image);
    }
    return rc == 0 || rbd_call_fail(call, rc, "removing its source's metadata from");
}

/* As rbd_call_fail(), for requests that may lack rights at the source's location. */
static gboolean source_fail(RbdCall *call, int rc, const char *what)
{
    const RbdLocation from = {.pool = call->source_pool, .nspace = call->source_nspace};
    g_autofree char *source = rbd_spec(&from, call->source);
    g_autofree char *text = g_strdup_printf("%s %s@%s to copy it to", what, source, call->snapshot);
    return rbd_call_fail(call, rc, text);
}

/* Checks the source, counts its parents, and collects its own keys in call->names. */
static gboolean look_at_source(RbdCall *call, rados_ioctx_t from, guint *depth)
{
    rbd_image_t image;
    int rc = rbd_open_read_only(from, call->source, &image, call->snapshot);
    if (rc == -ENOENT)
        return rbd_call_refuse(call, HEARTH_ERROR_NOT_FOUND,
                               "snapshot %s of image %s does not exist", call->snapshot,
                               call->source);
    call->names = g_ptr_array_new_with_free_func(g_free);
    if (rc == 0) {
        rc = read_own_keys(image, call->names);
        if (rc != 0)
            rbd_close(image);
        else
            rc = count_parents(from, image, call->limit, depth);
    }
    return rc == 0 || source_fail(call, rc, "looking at");
}

static gboolean make_clone(RbdCall *call, rados_ioctx_t from)
{
    gboolean again = TRUE;
    int rc = call->flag ? rbd_note_elsewhere(call->io) : 0;
    if (rc == 0)
        rc = rbd_note_set(call->io, RBD_NOTE_CLONE, call->image, RBD_CLONE_BEGUN);
    if (rc != 0)
        return rbd_call_fail(call, rc, "noting the copy of");
    for (int attempt = 0; again; attempt++) {
        again = FALSE;
        rc = rbd_clone3(from, call->source, call->snapshot, call->io, call->image, call->options);
        if (rc == -EEXIST && attempt == 0 && !reuse_name(call, &again))
            return FALSE;
    }
    if (rc == -EPERM || rc == -EACCES)
        return source_fail(call, rc, "cloning");
    return rc == 0 || rbd_create_failed(call, rc);
}

static gboolean clone_run(RbdCall *call, guint *depth)
{
    rados_ioctx_t from;
    int rc = rados_ioctx_create(rados_ioctx_get_cluster(call->io), call->source_pool, &from);
    if (rc != 0)
        return source_fail(call, rc, "opening the pool of");
    rados_ioctx_set_namespace(from, call->source_nspace);
    gboolean good = look_at_source(call, from, depth) && make_clone(call, from) && drop_keys(call);
    rados_ioctx_destroy(from);
    return good;
}

/* The clone is there. Notes that are missing after a crash are on the safe side. */
static int note_copied(RbdCall *call, gboolean deep)
{
    char id[RBD_ID_MAX];
    int rc = rbd_name_id(call->io, call->image, id);
    return rc != 0 ? rc : rbd_note_copied(call->io, call->image, id, deep);
}

static void copy_run(RbdCall *call)
{
    guint depth = 0;
    if (!clone_run(call, &depth))
        return;
    gboolean deep = depth + 1 > call->limit;
    int rc = note_copied(call, deep);
    if (rc != 0)
        rbd_call_fail(call, rc, "noting the copy of");
    else if (deep)
        add_flatten_task(call);
}

static void resume_run(RbdCall *call)
{
    add_flatten_task(call);
}

gboolean rbd_volume_copy(void *session, const VolumeId *id, const VolumeParams *params,
                         const BackendSnapshot *source, gint64 deadline_us, GError **error)
{
    const RbdLocation *location = session;
    RbdCall *call = rbd_call_new(location, id->name, source ? source->name : NULL);
    call->limit = location->max_clone_depth;
    if (!source)
        return rbd_call_do(call, "flattening", resume_run, RBD_CHANGE_MS, deadline_us, error);
    /* Nodes that have the pool of their topology may not reach the source's pool. */
    call->flag = !volume_id_same_location_within(source->volume, id);
    if (params->topology_pools && call->flag)
        call->limit = 0;
    call->source = g_strdup(source->volume->name);
    call->source_pool = g_strdup(source->volume->pool);
    call->source_nspace = g_strdup(source->volume->rados_namespace);
    rbd_call_set_options(call, params);
    rbd_image_options_set_uint64(call->options, RBD_IMAGE_OPTION_CLONE_FORMAT, 2);
    return rbd_call_do(call, "copying to image", copy_run, RBD_CHANGE_MS, deadline_us, error);
}
