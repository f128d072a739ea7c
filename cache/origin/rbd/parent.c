/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a clone has from its parent. Objects that the clone does not have itself are read from the
 * parent snapshot. Their bytes are the same for every clone and for ever, also when the clone is
 * flattened, which copies them. The clone's object map says which objects it has; the map is never
 * behind the objects.
 */
#include <errno.h>
#include <string.h>
#include "cache/origin/rbd/internal.h"

void image_parent_free(ImageParent *parent)
{
    if (!parent)
        return;
    g_free(parent->name);
    g_free(parent->owns);
    g_free(parent);
}

typedef struct Owned {
    ImageParent *parent;
    uint64_t object_bytes;
} Owned;

/* Of what was there once and is not any more, too: zeros are not the parent's. */
static int on_extent(uint64_t off, size_t len, int exists, void *data)
{
    const Owned *owned = data;
    (void)exists;
    for (uint64_t at = off - off % owned->object_bytes; at < MIN(off + len, owned->parent->end);
         at += owned->object_bytes)
        owned->parent->owns[at / owned->object_bytes] = 1;
    return 0;
}

/* Else to know what it owns takes a look at each object there could be. */
static gboolean has_map(RbdImage *r)
{
    uint64_t features, flags, stripes;
    return rbd_get_features(r->image, &features) == 0 && features & RBD_FEATURE_FAST_DIFF &&
           rbd_get_flags(r->image, &flags) == 0 &&
           !(flags & (RBD_FLAG_OBJECT_MAP_INVALID | RBD_FLAG_FAST_DIFF_INVALID)) &&
           rbd_get_stripe_count(r->image, &stripes) == 0 && stripes == 1;
}

/*
 * The name of the parent's content, if this image's user may read the parent itself. The image's
 * header alone is no proof: a user that may write it can make it name any snapshot, and cached
 * bytes would be read without asking Ceph, which would refuse.
 */
static char *readable_name(const RbdImage *r, const rbd_linked_image_spec_t *spec, uint64_t snap)
{
    char *name = NULL;
    rados_ioctx_t io;
    rbd_image_t image;
    if (rados_ioctx_create2(r->cluster, spec->pool_id, &io) < 0)
        return NULL;
    rados_ioctx_set_namespace(io, spec->pool_namespace);
    if (rbd_open_by_id_read_only(io, spec->image_id, &image, NULL) == 0) {
        if (rbd_snap_set_by_id(image, snap) == 0)
            name = rbd_content_name(r->cluster, io, image, snap);
        rbd_close(image);
    }
    rados_ioctx_destroy(io);
    return name;
}

void rbd_parent_read(RbdImage *r)
{
    rbd_linked_image_spec_t image;
    rbd_snap_spec_t snap;
    uint64_t overlap = 0;
    if (!r->base.content.name || !has_map(r) || rbd_get_overlap(r->image, &overlap) < 0 ||
        overlap == 0 || rbd_get_parent(r->image, &image, &snap) < 0)
        return;
    g_autoptr(ImageParent) parent = g_new0(ImageParent, 1);
    const Owned owned = {parent, r->base.object_bytes};
    parent->name = readable_name(r, &image, snap.id);
    parent->end = overlap;
    parent->owns = g_new0(uint8_t, (overlap + owned.object_bytes - 1) / owned.object_bytes);
    rbd_linked_image_spec_cleanup(&image);
    rbd_snap_spec_cleanup(&snap);
    if (parent->name &&
        rbd_diff_iterate2(r->image, NULL, 0, overlap, 0, 1, on_extent, (void *)&owned) == 0)
        r->base.content.parent = g_steal_pointer(&parent);
}
