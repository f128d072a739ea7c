/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The trash: deleted images that others were copied from. They can be removed when the last of
 * those is deleted or flattened. librbd does not signal that, so each removal of an image sweeps
 * the trash.
 */
#include <errno.h>
#include <string.h>
#include "driver/backend/rbd/internal.h"

/* A removal tries the images that it has made free, and this many others of the trash, which a
 * crash or `rbd flatten` may have made free. Few, because trying many would make removals slow. */
#define EXTRA_TRIES 2
#define NAMESPACE_MAX 256

struct RbdFreed {
    gint64 pool;
    char *nspace, *id;
};

static void freed_free(gpointer data)
{
    RbdFreed *freed = data;
    g_free(freed->nspace);
    g_free(freed->id);
    g_free(freed);
}
G_DEFINE_AUTOPTR_CLEANUP_FUNC(RbdFreed, freed_free)

void rbd_freed_clear(GQueue *freed)
{
    g_queue_clear_full(freed, freed_free);
}

static void add_freed(GQueue *freed, gint64 pool, const char *nspace, const char *id)
{
    RbdFreed *one = g_new0(RbdFreed, 1);
    *one = (RbdFreed){pool, g_strdup(nspace), g_strdup(id)};
    g_queue_push_tail(freed, one);
}

static void read_namespace(rados_ioctx_t io, char *nspace, unsigned size)
{
    if (rados_ioctx_get_namespace(io, nspace, size) < 0)
        *nspace = '\0';
}

void rbd_trash_note(rados_ioctx_t io, const char *id, GQueue *freed)
{
    char nspace[NAMESPACE_MAX];
    read_namespace(io, nspace, sizeof(nspace));
    add_freed(freed, rados_ioctx_get_id(io), nspace, id);
}

void rbd_trash_note_parent(rbd_image_t image, GQueue *freed)
{
    rbd_linked_image_spec_t parent = {0};
    rbd_snap_spec_t snapshot = {0};
    if (rbd_get_parent(image, &parent, &snapshot) != 0)
        return;
    if (parent.trash)
        add_freed(freed, parent.pool_id, parent.pool_namespace, parent.image_id);
    rbd_linked_image_spec_cleanup(&parent);
    rbd_snap_spec_cleanup(&snapshot);
}

/* Removes an image from the trash if nothing depends on it any more. */
static void try_trash(rados_ioctx_t io, const char *id, GQueue *freed)
{
    rbd_image_t image;
    GQueue next = G_QUEUE_INIT;
    int rc = rbd_open_by_id_read_only(io, id, &image, NULL);
    if (rc == 0) {
        rbd_trash_note_parent(image, &next);
        rbd_close(image);
    }
    /* An image that is half removed is removed again; a missing one needs nothing more. */
    if (rc == 0 || rc == -ENOENT)
        rc = rbd_trash_remove(io, id, false);
    if (rc == 0 || (rc == -ENOENT && rbd_open_by_id_read_only(io, id, &image, NULL) == -ENOENT)) {
        rbd_note_clear(io, RBD_NOTE_TRASH, id);
        for (RbdFreed *one; (one = g_queue_pop_head(&next));)
            g_queue_push_tail(freed, one);
        return;
    }
    if (rc == -ENOENT)
        rbd_close(image);   /* about to be moved there by another call */
    rbd_freed_clear(&next); /* nothing was freed that it depends on */
}

/* An image of another location, whose notes say whether it is ours. */
static void try_elsewhere(rados_ioctx_t io, RbdFreed *one)
{
    rados_ioctx_t there;
    g_autoptr(GHashTable) trash = NULL;
    GQueue freed = G_QUEUE_INIT;
    if (rados_ioctx_create2(rados_ioctx_get_cluster(io), one->pool, &there) != 0)
        return;
    rados_ioctx_set_namespace(there, one->nspace);
    if (rbd_notes_of_trash(there, &trash, NULL) == 0 && g_hash_table_contains(trash, one->id)) {
        rbd_trash_note(there, one->id, &freed);
        rbd_trash_sweep(there, trash, &freed);
    }
    rbd_freed_clear(&freed);
    rados_ioctx_destroy(there);
}

void rbd_trash_sweep(rados_ioctx_t io, GHashTable *trash, GQueue *freed)
{
    char nspace[NAMESPACE_MAX];
    read_namespace(io, nspace, sizeof(nspace));
    for (;;) {
        g_autoptr(RbdFreed) one = g_queue_pop_head(freed);
        if (!one)
            break;
        if (one->pool != rados_ioctx_get_id(io) || strcmp(one->nspace, nspace) != 0)
            try_elsewhere(io, one);
        else if (g_hash_table_remove(trash, one->id))
            try_trash(io, one->id, freed);
    }
    for (guint i = 0; i < EXTRA_TRIES && g_hash_table_size(trash) > 0; i++) {
        g_autofree gpointer *ids = g_hash_table_get_keys_as_array(trash, NULL);
        const char *pick = ids[g_random_int_range(0, (gint32)g_hash_table_size(trash))];
        try_trash(io, pick, freed);
        g_hash_table_remove(trash, pick);
        rbd_freed_clear(freed);
    }
}

/* Whether nothing depends on an image of the trash: while something does, librbd keeps a hidden
 * snapshot. Of a missing image only the note is left. */
static gboolean is_free(RbdCall *call, const char *id)
{
    rbd_image_t image;
    guint hidden = 0;
    int rc = rbd_open_by_id_read_only(call->io, id, &image, NULL);
    if (rc != 0)
        return rc == -ENOENT;
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    rc = rbd_snapshots_read(image, names, &hidden);
    rbd_close(image);
    return rc == 0 && hidden == 0;
}

static void list_run(RbdCall *call)
{
    g_autoptr(GHashTable) trash = NULL;
    GHashTableIter iter;
    gpointer id;
    int rc = rbd_notes_of_trash(call->io, &trash, NULL);
    if (rc != 0) {
        rbd_call_fail(call, rc, "listing the trash of");
        return;
    }
    call->names = g_ptr_array_new_with_free_func(g_free);
    g_hash_table_iter_init(&iter, trash);
    while (g_hash_table_iter_next(&iter, &id, NULL)) {
        if (is_free(call, id))
            g_ptr_array_add(call->names, g_strdup(id));
    }
}

GPtrArray *rbd_leftovers(void *session, gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, NULL, NULL);
    if (!rbd_call_run(call, "listing the trash of", list_run, RBD_CHANGE_MS, deadline_us, error))
        return NULL;
    GPtrArray *names = g_steal_pointer(&call->names);
    rbd_call_free(call);
    return names;
}

static void remove_run(RbdCall *call)
{
    g_autoptr(GHashTable) trash = NULL;
    GQueue freed = G_QUEUE_INIT;
    int rc = rbd_notes_of_trash(call->io, &trash, NULL);
    if (rc != 0) {
        rbd_call_fail(call, rc, "reading the notes of");
        return;
    }
    rbd_trash_note(call->io, call->image, &freed);
    rbd_trash_sweep(call->io, trash, &freed);
    rbd_freed_clear(&freed);
}

gboolean rbd_leftover_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, name, NULL), "removing from the trash image",
                       remove_run, G_MAXINT64, deadline_us, error);
}
