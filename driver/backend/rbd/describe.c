/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts in an image's metadata (`rbd image-meta list`). A text that is there already is not written
 * again: each write makes a new version of the header, from which nodes conclude that the image was
 * changed elsewhere.
 */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include "driver/backend/rbd/internal.h"

gboolean rbd_image_has_text(rbd_image_t image, const char *key, const char *text)
{
    g_autofree char *now = g_malloc(RBD_TEXT_MAX);
    size_t length = RBD_TEXT_MAX;
    return rbd_metadata_get(image, key, now, &length) == 0 && strcmp(now, text) == 0;
}

static int set_texts(RbdCall *call, rbd_image_t image)
{
    int rc = 0;
    const char *key;
    json_t *value;
    json_auto_t *texts = json_loads(call->text, 0, NULL);
    json_object_foreach (texts, key, value) {
        const char *text = json_string_value(value);
        if (rc == 0 && !rbd_image_has_text(image, key, text))
            rc = rbd_metadata_set(image, key, text);
    }
    return rc;
}

static void describe_run(RbdCall *call)
{
    rbd_call_on_image(call, set_texts, 0, "setting metadata of image");
}

gboolean rbd_volume_describe(void *session, const VolumeId *id, const char *snapshot,
                             const json_t *texts, gint64 deadline_us, GError **error)
{
    if (snapshot)
        return TRUE; /* librbd keeps nothing with one */
    RbdCall *call = rbd_call_new(session, id->name, NULL);
    char *text = json_dumps(texts, JSON_COMPACT);
    call->text = g_strdup(text);
    free(text);
    return rbd_call_do(call, "setting metadata of image", describe_run, RBD_LOOK_MS, deadline_us,
                       error);
}
