/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part that all lists have in common. Elements are ordered by type, cluster, file system or
 * pool, and name. A token is the ID of the last element given, so the next page begins after it,
 * whether that element still exists or not. A cluster that does not answer fails the whole list,
 * because a CO takes an element that is not in a list for gone.
 */
#include <string.h>
#include "driver/service/controller/internal.h"

/* The largest page, because an answer must fit into a call. */
#define PAGE_MAX 500

static gint compare_locations(gconstpointer a, gconstpointer b)
{
    const VolumeId *x = *(VolumeId *const *)a, *y = *(VolumeId *const *)b;
    return volume_id_compare_locations(x, y);
}

int controller_location_order(const VolumeId *location, const VolumeId *token)
{
    if (!token)
        return 1;
    if (location->type != token->type)
        return location->type < token->type ? -1 : 1;
    int order = compare_locations(&location, &token);
    return order < 0 ? -1 : order > 0;
}

gboolean controller_page(gint32 max_entries, guint *max, GError **error)
{
    if (max_entries < 0)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "max_entries is negative");
    *max = max_entries > 0 ? MIN((guint)max_entries, PAGE_MAX) : PAGE_MAX;
    return max_entries >= 0;
}

void controller_bad_token(GError **error)
{
    hearth_fail(error, HEARTH_ERROR_ABORTED,
                "starting_token is none of this driver; begin the list again without one");
}

static gboolean secrets_of(const Controller *c, const Backend *b, const VolumeId *cluster,
                           GHashTable *given, Secrets **secrets, GError **error)
{
    if (given && g_hash_table_size(given) > 0)
        return controller_secrets(b, given, secrets, error);
    return controller_own_secrets(c, b, cluster->cluster_id, secrets, error);
}

/* The visits of all locations. A cluster that denies the user its list is skipped, unless no other
 * has any location. */
typedef struct Visits {
    const Controller *controller;
    GHashTable *given;
    LocationVisit visit;
    void *data;
    gint64 deadline_us;
    gboolean stop;
    guint locations; /* seen */
    GError *denied;
} Visits;

static gboolean each_of_backend(Visits *v, const Backend *b, GError **error)
{
    g_autoptr(GPtrArray) clusters = b->ops->clusters(b->impl, error);
    if (!clusters)
        return FALSE;
    g_ptr_array_sort(clusters, compare_locations);
    for (guint i = 0; i < clusters->len && !v->stop; i++) {
        const VolumeId *cluster = clusters->pdata[i];
        g_autoptr(Secrets) secrets = NULL;
        if (!secrets_of(v->controller, b, cluster, v->given, &secrets, error))
            return FALSE;
        g_autoptr(GError) cause = NULL;
        g_autoptr(GPtrArray) locations =
            b->ops->locations(b->impl, cluster, secrets, v->deadline_us, &cause);
        /* The request's user belongs to one cluster; the others need not know it. */
        if (!locations && v->given && clusters->len > 1 &&
            g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_UNAUTHENTICATED))
            continue;
        if (!locations && g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_PERMISSION_DENIED)) {
            if (!v->denied)
                v->denied = g_steal_pointer(&cause);
            continue;
        }
        if (!locations) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FALSE;
        }
        g_ptr_array_sort(locations, compare_locations);
        v->locations += locations->len;
        for (guint k = 0; k < locations->len && !v->stop; k++) {
            const ProvisionTarget at = {b, locations->pdata[k], secrets, v->deadline_us};
            if (!v->visit(&at, v->data, &v->stop, error))
                return FALSE;
        }
    }
    return TRUE;
}

gboolean controller_each_location(const Controller *c, GHashTable *given, LocationVisit visit,
                                  void *data, gint64 deadline_us, GError **error)
{
    gboolean good = TRUE;
    Visits v = {
        .controller = c, .given = given, .visit = visit, .data = data, .deadline_us = deadline_us};
    for (int type = 0; type <= VOLUME_DIR && !v.stop && good; type++) {
        for (gsize i = 0; i < c->n_backends && !v.stop && good; i++) {
            if (c->backends[i]->ops->type == (VolumeType)type)
                good = each_of_backend(&v, c->backends[i], error);
        }
    }
    if (good && v.denied && v.locations == 0) {
        g_propagate_error(error, g_steal_pointer(&v.denied));
        good = FALSE;
    }
    g_clear_error(&v.denied);
    return good;
}
