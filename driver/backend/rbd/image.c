/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single requests about images that several files need: the ID of a name, the list of a pool, the
 * options of a new image, its snapshots and size. The operations on volumes are in the files above:
 * volume.c, snap.c, clone.c, remove.c.
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
    /* Hearth caches only images with an exclusive lock, so the feature is always added, also to the
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

/* librbd answers ENOENT for a missing namespace and a missing data pool. */
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

int rbd_snapshots_read(rbd_image_t image, GPtrArray *names, guint *hidden)
{
    int max = 32, n;
    g_autofree rbd_snap_info_t *list = NULL;
    do {
        g_free(list);
        list = g_new0(rbd_snap_info_t, (gsize)max);
        n = rbd_snap_list(image, list, &max);
    } while (n == -ERANGE);
    *hidden = 0;
    int rc = n < 0 ? n : 0;
    for (int i = 0; i < n && rc == 0; i++) {
        rbd_snap_namespace_type_t type;
        rc = rbd_snap_get_namespace_type(image, list[i].id, &type);
        if (rc == 0 && type == RBD_SNAP_NAMESPACE_TYPE_TRASH)
            (*hidden)++;
        else if (rc == 0)
            g_ptr_array_add(names, g_strdup(list[i].name));
    }
    if (n > 0)
        rbd_snap_list_end(list);
    return rc;
}
