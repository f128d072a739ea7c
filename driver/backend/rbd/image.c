/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images: making, looking and growing. librbd makes an image in steps: an entry in the pool's
 * directory, the object that leads from the name to the ID, the header, the object map. One that
 * was interrupted before the header cannot be opened, though its name is taken; librbd's removal
 * clears it away. One interrupted later is whole, but for an object map that librbd then does
 * without.
 *
 * What does not show is noted beside the records: a copy that is not finished (librbd makes the
 * image before it has a parent, and gives it the parent before that knows of its child), and the
 * shell that a deleted volume leaves for its snapshots. A note is not image metadata, because
 * copies inherit that.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/rbd/internal.h"

static guint64 feature_bits(const char *names)
{
    static const struct {
        const char *name;
        guint64 bit;
    } known[] = {
        {"layering", RBD_FEATURE_LAYERING},         {"exclusive-lock", RBD_FEATURE_EXCLUSIVE_LOCK},
        {"object-map", RBD_FEATURE_OBJECT_MAP},     {"fast-diff", RBD_FEATURE_FAST_DIFF},
        {"deep-flatten", RBD_FEATURE_DEEP_FLATTEN}, {"journaling", RBD_FEATURE_JOURNALING}};
    g_auto(GStrv) list = g_strsplit(names, ",", -1);
    guint64 bits = 0;
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        if (g_strv_contains((const char *const *)list, known[i].name))
            bits |= known[i].bit;
    }
    return bits;
}

void rbd_call_set_options(RbdCall *call, const VolumeParams *params)
{
    rbd_image_options_create(&call->options);
    rbd_image_options_t o = call->options;
    /* Hearth keeps nothing of an image that several may write without a lock: added, also to the
     * "layering" of ceph-csi's sample class. */
    rbd_image_options_set_uint64(o, RBD_IMAGE_OPTION_FEATURES_SET, RBD_FEATURE_EXCLUSIVE_LOCK);
    if (params->image_features)
        rbd_image_options_set_uint64(o, RBD_IMAGE_OPTION_FEATURES,
                                     feature_bits(params->image_features));
    if (params->object_size)
        rbd_image_options_set_uint64(o, RBD_IMAGE_OPTION_ORDER,
                                     (guint64)(63 - __builtin_clzll(params->object_size)));
    if (params->stripe_unit)
        rbd_image_options_set_uint64(o, RBD_IMAGE_OPTION_STRIPE_UNIT, params->stripe_unit);
    if (params->stripe_count)
        rbd_image_options_set_uint64(o, RBD_IMAGE_OPTION_STRIPE_COUNT, params->stripe_count);
    if (params->data_pool)
        rbd_image_options_set_string(o, RBD_IMAGE_OPTION_DATA_POOL, params->data_pool);
    call->data_pool = g_strdup(params->data_pool);
}

gboolean rbd_image_is(rbd_image_t image, const char *id)
{
    char own[RBD_ID_MAX];
    return id && rbd_get_id(image, own, sizeof(own)) == 0 && strcmp(own, id) == 0;
}

static int no_progress(uint64_t done, uint64_t all, void *data)
{
    (void)done, (void)all, (void)data;
    return 0;
}

int rbd_image_resize(rbd_image_t image, gint64 bytes)
{
    return rbd_resize2(image, (uint64_t)bytes, bytes == 0, no_progress, NULL);
}

static BackendVolume *volume_new(const RbdCall *call, guint64 bytes)
{
    BackendVolume *volume = g_new0(BackendVolume, 1);
    volume->path = rbd_spec(&call->at, call->image);
    volume->bytes = (gint64)bytes;
    return volume;
}

static void look_at(RbdCall *call, rbd_image_t image)
{
    g_autofree char *clone = NULL, *shell = NULL;
    guint64 bytes = 0, overlap = 0;
    int rc = rbd_get_size(image, &bytes);
    if (rc == 0)
        rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    if (rc != 0) {
        rbd_call_fail(call, rc, "looking at");
        return;
    }
    if (rbd_image_is(image, shell)) {
        rbd_call_missing(call);
        return;
    }
    call->volume = volume_new(call, bytes);
    struct timespec created;
    if (rbd_get_create_timestamp(image, &created) == 0)
        call->volume->created = created.tv_sec;
    gboolean parent = rbd_get_overlap(image, &overlap) == 0 && overlap > 0;
    if (g_strcmp0(clone, RBD_CLONE_FLATTEN) == 0) {
        call->volume->incomplete = call->volume->copying = call->volume->resume = parent;
    } else if (clone) {
        call->volume->incomplete = TRUE;
    }
}

int rbd_name_id(rados_ioctx_t io, const char *name, char *id)
{
    gsize length = strlen(name);
    guint32 prefix = GUINT32_TO_LE((guint32)length), id_length;
    char out[sizeof(id_length) + RBD_ID_MAX];
    g_autofree char *encoded = g_malloc(sizeof(prefix) + length);
    memcpy(encoded, &prefix, sizeof(prefix));
    memcpy(encoded + sizeof(prefix), name, length);
    int rc = rados_exec(io, "rbd_directory", "rbd", "dir_get_id", encoded, sizeof(prefix) + length,
                        out, sizeof(out));
    if (rc < 0)
        return rc;
    memcpy(&id_length, out, sizeof(id_length));
    id_length = GUINT32_FROM_LE(id_length);
    if ((gsize)rc < sizeof(id_length) || id_length > (gsize)rc - sizeof(id_length) ||
        id_length >= RBD_ID_MAX)
        return -EBADMSG;
    memcpy(id, out + sizeof(id_length), id_length);
    id[id_length] = '\0';
    return 0;
}

static void look_run(RbdCall *call)
{
    rbd_image_t image;
    char id[RBD_ID_MAX];
    int rc = rbd_name_id(call->io, call->image, id);
    if (rc == -ENOENT) {
        rbd_call_missing(call);
        return;
    }
    if (rc == 0)
        rc = rbd_open_read_only(call->io, call->image, &image, NULL);
    if (rc == -ENOENT) {
        call->volume = volume_new(call, 0);
        call->volume->incomplete = TRUE;
        return;
    }
    if (rc != 0) {
        rbd_call_fail(call, rc, "opening");
        return;
    }
    look_at(call, image);
    rbd_close(image);
}

BackendVolume *rbd_volume_look(void *session, const VolumeId *id, gint64 deadline_us,
                               GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    if (!rbd_call_run(call, "looking at", look_run, RBD_LOOK_MS, deadline_us, error))
        return NULL;
    BackendVolume *volume = g_steal_pointer(&call->volume);
    rbd_call_free(call);
    return volume;
}

/* librbd says ENOENT of a namespace and of a data pool alike. */
gboolean rbd_create_failed(RbdCall *call, int rc)
{
    if (rc != -ENOENT)
        return rbd_call_fail(call, rc, "creating image");
    if (call->data_pool) {
        rados_t cluster = rados_ioctx_get_cluster(call->io);
        if (rados_pool_lookup(cluster, call->data_pool) < 0)
            return rbd_call_refuse(call, HEARTH_ERROR_INVALID_ARGUMENT,
                                   "dataPool \"%s\": the cluster has no such pool",
                                   call->data_pool);
    }
    if (*call->at.nspace)
        return rbd_call_refuse(call, HEARTH_ERROR_INVALID_ARGUMENT,
                               "radosNamespace \"%s\" of config.json: pool %s has no such "
                               "namespace; make it with `rbd "
                               "namespace create %s/%s`",
                               call->at.nspace, call->at.pool, call->at.pool, call->at.nspace);
    return rbd_call_fail(call, rc, "creating image");
}

/*
 * The shell of a deleted volume becomes the new one's image: emptied, were it not yet, and grown.
 * Only then it counts as a volume.
 */
static gboolean revive(RbdCall *call, rbd_image_t image)
{
    guint64 bytes = 0;
    int rc = rbd_get_size(image, &bytes);
    if (rc == 0 && bytes != 0)
        rc = rbd_image_resize(image, 0);
    if (rc == 0)
        rc = rbd_image_resize(image, call->bytes);
    if (rc == 0)
        rc = rbd_note_clear(call->io, RBD_NOTE_SHELL, call->image);
    return rc == 0 || rbd_call_fail(call, rc, "reviving image");
}

/* The name is taken: by a whole image, a shell, or half an image. *again: it is free now. */
static gboolean take_up(RbdCall *call, gboolean *again)
{
    rbd_image_t image;
    int rc = rbd_open(call->io, call->image, &image, NULL);
    if (rc == -ENOENT)
        return *again = rbd_clear_name(call);
    if (rc != 0)
        return rbd_call_fail(call, rc, "opening");
    g_autofree char *clone = NULL, *shell = NULL;
    rc = rbd_notes_read(call->io, call->image, &clone, &shell);
    gboolean good = rc == 0 || rbd_call_fail(call, rc, "looking at");
    if (good && rbd_image_is(image, shell))
        good = revive(call, image);
    rbd_close(image);
    return good;
}

static void create_run(RbdCall *call)
{
    gboolean again = TRUE;
    for (int attempt = 0; again && attempt < 2; attempt++) {
        again = FALSE;
        int rc = rbd_create4(call->io, call->image, (guint64)call->bytes, call->options);
        if (rc == -EEXIST && attempt == 0) {
            if (!take_up(call, &again))
                return;
        } else if (rc != 0) {
            rbd_create_failed(call, rc);
            return;
        }
    }
    call->volume = volume_new(call, (guint64)call->bytes);
}

gboolean rbd_volume_create(void *session, const VolumeId *id, const VolumeParams *params,
                           gint64 bytes, BackendVolume **made, gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    rbd_call_set_options(call, params);
    call->bytes = bytes;
    if (!rbd_call_run(call, "creating image", create_run, RBD_CHANGE_MS, deadline_us, error))
        return FALSE;
    *made = g_steal_pointer(&call->volume);
    rbd_call_free(call);
    return TRUE;
}

int rbd_list_all(rados_ioctx_t io, rbd_image_spec_t **list, gsize *n)
{
    int rc;
    *list = NULL;
    *n = 256;
    do {
        g_free(*list);
        *list = g_new0(rbd_image_spec_t, *n);
        rc = rbd_list2(io, *list, n);
    } while (rc == -ERANGE);
    if (rc < 0)
        g_clear_pointer(list, g_free);
    return MIN(rc, 0);
}

/* The pool's directory has what is whole, half made and a shell. */
static void list_run(RbdCall *call)
{
    gsize n;
    rbd_image_spec_t *list;
    int rc = rbd_list_all(call->io, &list, &n);
    if (rc < 0) {
        rbd_call_fail(call, rc, "listing the images of");
        return;
    }
    call->names = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < n; i++)
        g_ptr_array_add(call->names, g_strdup(list[i].name));
    rbd_image_spec_list_cleanup(list, n);
    g_free(list);
}

GPtrArray *rbd_volume_list(void *session, const VolumeId *where, gint64 deadline_us, GError **error)
{
    (void)where;
    RbdCall *call = rbd_call_new(session, NULL, NULL);
    if (!rbd_call_run(call, "listing the images of", list_run, RBD_CHANGE_MS, deadline_us, error))
        return NULL;
    GPtrArray *names = g_steal_pointer(&call->names);
    rbd_call_free(call);
    return names;
}

static int resize(RbdCall *call, rbd_image_t image)
{
    return rbd_image_resize(image, call->bytes);
}

static void resize_run(RbdCall *call)
{
    rbd_call_on_image(call, resize, 0, "resizing image");
}

gboolean rbd_volume_resize(void *session, const VolumeId *id, gint64 bytes, gint64 deadline_us,
                           GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    call->bytes = bytes;
    return rbd_call_do(call, "resizing image", resize_run, RBD_CHANGE_MS, deadline_us, error);
}
