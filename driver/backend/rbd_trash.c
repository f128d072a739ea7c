/*
 * The trash: deleted images that others were copied from. They go when the last of those is deleted
 * or flattened, which librbd tells nobody; so removals look after it.
 */
#include <errno.h>
#include "driver/backend/rbd_internal.h"

/* Beside what a removal has made free, this many of the trash are tried each time: what a crash or
 * `rbd flatten` made free must go too, and many that are not must not make removals slow. */
#define EXTRA_TRIES 2

void rbd_trash_note_parent(rbd_image_t image, GHashTable *trash, GQueue *next)
{
    rbd_linked_image_spec_t parent = {0};
    rbd_snap_spec_t snapshot = {0};
    if (rbd_get_parent(image, &parent, &snapshot) != 0)
        return;
    if (parent.trash && g_hash_table_contains(trash, parent.image_id))
        g_queue_push_tail(next, g_strdup(parent.image_id));
    rbd_linked_image_spec_cleanup(&parent);
    rbd_snap_spec_cleanup(&snapshot);
}

/* Removes an image from the trash if nothing depends on it any more. */
static void try_trash(RbdCall *call, const char *id, GHashTable *trash, GQueue *next)
{
    rbd_image_t image;
    int rc = rbd_open_by_id_read_only(call->io, id, &image, NULL);
    if (rc == 0) {
        rbd_trash_note_parent(image, trash, next);
        rbd_close(image);
    }
    /* Half removed is to be removed again; what is not there is done with. */
    if (rc == 0 || rc == -ENOENT)
        rc = rbd_trash_remove(call->io, id, false);
    if (rc == 0 ||
        (rc == -ENOENT && rbd_open_by_id_read_only(call->io, id, &image, NULL) == -ENOENT))
        rbd_note_clear(call->io, RBD_NOTE_TRASH, id);
    else if (rc == -ENOENT)
        rbd_close(image); /* about to be moved there by another call */
    else
        g_queue_clear_full(next, g_free); /* so nothing was freed that it depends on */
}

void rbd_trash_sweep(RbdCall *call, GHashTable *trash, GQueue *freed)
{
    g_autofree char *id = NULL;
    while ((id = g_queue_pop_head(freed))) {
        try_trash(call, id, trash, freed);
        g_hash_table_remove(trash, id);
        g_clear_pointer(&id, g_free);
    }
    for (guint i = 0; i < EXTRA_TRIES && g_hash_table_size(trash) > 0; i++) {
        g_autofree gpointer *ids = g_hash_table_get_keys_as_array(trash, NULL);
        const char *pick = ids[g_random_int_range(0, (gint32)g_hash_table_size(trash))];
        try_trash(call, pick, trash, freed);
        g_hash_table_remove(trash, pick);
        g_queue_clear_full(freed, g_free);
    }
}

/* Whether nothing depends on an image of the trash: librbd keeps a hidden snapshot while something
 * does. One that is not there has only its note left. */
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
    int rc = rbd_notes_of_trash(call->io, &trash);
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
    int rc = rbd_notes_of_trash(call->io, &trash);
    if (rc != 0) {
        rbd_call_fail(call, rc, "reading the notes of");
        return;
    }
    g_queue_push_tail(&freed, g_strdup(call->image));
    rbd_trash_sweep(call, trash, &freed);
    g_queue_clear_full(&freed, g_free);
}

gboolean rbd_leftover_remove(void *session, const char *name, gint64 deadline_us, GError **error)
{
    return rbd_call_do(rbd_call_new(session, name, NULL), "removing from the trash image",
                       remove_run, G_MAXINT64, deadline_us, error);
}
