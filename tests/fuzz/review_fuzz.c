/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An AdmissionReview: whatever it says, the answer allows, goes to who asked, and a patch of it is
 * one that adds, to places of ours alone. Each claim whose name has an even length shows a dataset.
 */
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include "common/error.h"
#include "driver/affinity/review.h"

static gboolean find(const char *namespace, const char *claim, char dataset[DATASET_KEY_DIGITS + 1],
                     void *data)
{
    (void)namespace, (void)data;
    g_snprintf(dataset, DATASET_KEY_DIGITS + 1, "%016x", g_str_hash(claim));
    return strlen(claim) % 2 == 0;
}

static void check_patch(const char *encoded)
{
    gsize size;
    size_t i;
    json_t *op;
    g_autofree guchar *text = g_base64_decode(encoded, &size);
    json_t *patch = json_loadb((const char *)text, size, JSON_ALLOW_NUL, NULL);
    if (json_array_size(patch) < 5)
        abort();
    json_array_foreach (patch, i, op) {
        const char *path = json_string_value(json_object_get(op, "path"));
        if (strcmp(json_string_value(json_object_get(op, "op")), "add") != 0 ||
            !json_object_get(op, "value") ||
            !(g_str_has_prefix(path, "/spec/affinity") ||
              g_str_has_prefix(path, "/metadata/annotations")))
            abort();
    }
    json_decref(patch);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const PreferencesHints hints = {.find = find};
    g_autoptr(GError) error = NULL;
    char *answer = review_answer((const char *)data, size, &hints, &error);
    if (!answer != (error != NULL) || (error && error->domain != HEARTH_ERROR))
        abort();
    if (!answer)
        return 0;
    json_t *object = json_loads(answer, JSON_ALLOW_NUL, NULL);
    json_t *asked = json_loadb((const char *)data, size, JSON_ALLOW_NUL, NULL);
    const json_t *response = json_object_get(object, "response");
    if (!json_is_true(json_object_get(response, "allowed")) ||
        !json_equal(json_object_get(response, "uid"),
                    json_object_get(json_object_get(asked, "request"), "uid")))
        abort();
    if (json_object_get(response, "patch"))
        check_patch(json_string_value(json_object_get(response, "patch")));
    json_decref(object);
    json_decref(asked);
    free(answer);
    return 0;
}
