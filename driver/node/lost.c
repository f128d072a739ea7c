/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/lost.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/mount/publications.h"

#define ANSWER_MS 2000

GPtrArray *lost_publications(const LostQuery *query, GError **error)
{
    g_autofree char *mountinfo = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &mountinfo, NULL, error))
        return NULL;
    g_autoptr(HearthdLink) link = hearthd_connect(query->hearthd_socket, NULL, error);
    if (!link)
        return NULL;
    g_autoptr(GPtrArray) all = publications_of(mountinfo, NULL);
    g_autoptr(GHashTable) known = hearthd_served_new();
    GPtrArray *lost = g_ptr_array_new_with_free_func(publication_free);
    for (guint i = 0; i < all->len; i++) {
        const Publication *p = all->pdata[i];
        gboolean served;
        if (!hearthd_served(link, known, p->volume, ANSWER_MS, &served, error)) {
            g_ptr_array_unref(lost);
            return NULL;
        }
        if (!served && !query->waits(query->data, p->volume))
            g_ptr_array_add(lost, publication_copy(p));
    }
    return lost;
}
