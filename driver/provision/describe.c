/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The claim and pod that a volume is for, stored as metadata of its image or subvolume, where Ceph
 * administrators look. The volume does not depend on it: a failure here is logged, and the request
 * succeeds.
 */
#include "driver/provision/internal.h"

/* More of the call's time is not spent on it. */
#define DESCRIBE_MS 5000

void provision_describe(const ProvisionTarget *at, const char *snapshot, const json_t *texts)
{
    work_auto Work w = {0};
    ProvisionTarget soon = *at;
    g_autoptr(GError) error = NULL;
    if (!at->backend->ops->volume_describe || json_object_size(texts) == 0)
        return;
    soon.deadline_us = MIN(at->deadline_us, g_get_monotonic_time() + DESCRIBE_MS * 1000);
    if (!work_open(&w, &soon, &error) ||
        !w.ops->volume_describe(w.session, w.id, snapshot, texts, w.deadline_us, &error)) {
        const char *kind = snapshot ? "snapshot" : "volume";
        const char *name = snapshot ? snapshot : at->id->name;
        g_warning("%s %s is made, but the names it is for could not be stored as its metadata: %s",
                  kind, name, error->message);
    }
}
