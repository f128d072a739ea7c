/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of an image, in its metadata in the form that `rbd config image set` writes. librbd reads
 * them wherever the image is open, and follows changes.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include "driver/backend/rbd/internal.h"

static const struct {
    const char *name, *key;
} limits[] = {
    {"iopsPerSecond", "conf_rbd_qos_iops_limit"},
    {"bytesPerSecond", "conf_rbd_qos_bps_limit"},
    {"readIopsPerSecond", "conf_rbd_qos_read_iops_limit"},
    {"writeIopsPerSecond", "conf_rbd_qos_write_iops_limit"},
    {"readBytesPerSecond", "conf_rbd_qos_read_bps_limit"},
    {"writeBytesPerSecond", "conf_rbd_qos_write_bps_limit"},
};

static int set_limit(rbd_image_t image, const char *key, json_int_t value)
{
    if (value == 0) {
        int rc = rbd_metadata_remove(image, key);
        return rc == -ENOENT ? 0 : rc;
    }
    g_autofree char *text = g_strdup_printf("%" JSON_INTEGER_FORMAT, value);
    return rbd_image_has_text(image, key, text) ? 0 : rbd_metadata_set(image, key, text);
}

static int set_limits(RbdCall *call, rbd_image_t image)
{
    int rc = 0;
    json_auto_t *wanted = json_loads(call->text, 0, NULL);
    for (gsize i = 0; rc == 0 && i < G_N_ELEMENTS(limits); i++) {
        const json_t *value = json_object_get(wanted, limits[i].name);
        if (value)
            rc = set_limit(image, limits[i].key, json_integer_value(value));
    }
    return rc;
}

static void limit_run(RbdCall *call)
{
    rbd_call_on_image(call, set_limits, 0, "setting limits of image");
}

gboolean rbd_volume_limit(void *session, const VolumeId *id, const json_t *wanted,
                          gint64 deadline_us, GError **error)
{
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    char *text = json_dumps(wanted, JSON_COMPACT);
    call->text = g_strdup(text);
    free(text);
    return rbd_call_do(call, "setting limits of image", limit_run, RBD_CHANGE_MS, deadline_us,
                       error);
}
