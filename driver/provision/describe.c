/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For whom a volume is, kept where people of Ceph look: with the image or the subvolume itself. It
 * is no part of the volume: a request that has made one succeeds whatever becomes of this.
 */
#include "driver/provision/internal.h"

/* It is not worth more of a call. */
#define DESCRIBE_MS 5000

void provision_describe(const Backend *backend, const VolumeId *id, const char *snapshot,
                        const json_t *texts, const Secrets *secrets, gint64 deadline_us)
{
    work_auto Work w = {0};
    g_autoptr(GError) error = NULL;
    if (!backend->ops->volume_describe || json_object_size(texts) == 0)
        return;
    deadline_us = MIN(deadline_us, g_get_monotonic_time() + DESCRIBE_MS * 1000);
    if (!work_open(&w, backend, id, secrets, deadline_us, &error) ||
        !w.ops->volume_describe(w.session, id, snapshot, texts, deadline_us, &error))
        g_warning("%s %s is made, and has not got the names of what it is for as metadata: %s",
                  snapshot ? "snapshot" : "volume", snapshot ? snapshot : id->name, error->message);
}
