/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/review.h"
#include <stdlib.h>
#include <string.h>
#include "common/error.h"
#include "common/field.h"

#define API_VERSION "admission.k8s.io/v1"

static gboolean is_pod_being_created(const json_t *request)
{
    const json_t *resource = json_object_get(request, "resource");
    return g_str_equal(field_text(request, "operation"), "CREATE") &&
           !*field_text(request, "subResource") && !*field_text(resource, "group") &&
           g_str_equal(field_text(resource, "version"), "v1") &&
           g_str_equal(field_text(resource, "resource"), "pods");
}

static char *base64_of(const json_t *patch)
{
    char *text = json_dumps(patch, JSON_COMPACT);
    char *encoded = text ? g_base64_encode((const guchar *)text, strlen(text)) : NULL;
    free(text);
    return encoded;
}

static json_t *answer_to(const json_t *request, const PreferencesHints *hints)
{
    json_t *response =
        json_pack("{s:O, s:b}", "uid", json_object_get(request, "uid"), "allowed", 1);
    json_auto_t *patch = is_pod_being_created(request)
                             ? preferences_patch(json_object_get(request, "object"),
                                                 field_text(request, "namespace"), hints)
                             : NULL;
    g_autofree char *encoded = patch ? base64_of(patch) : NULL;
    if (encoded) {
        json_object_set_new(response, "patchType", json_string("JSONPatch"));
        json_object_set_new(response, "patch", json_string(encoded));
    }
    return json_pack("{s:s, s:s, s:o}", "apiVersion", API_VERSION, "kind", "AdmissionReview",
                     "response", response);
}

char *review_answer(const char *text, gsize size, const PreferencesHints *hints, GError **error)
{
    json_auto_t *review = json_loadb(text, size, JSON_ALLOW_NUL, NULL);
    const json_t *request = json_object_get(review, "request");
    char *answer = NULL;
    if (g_str_equal(field_text(review, "apiVersion"), API_VERSION) &&
        g_str_equal(field_text(review, "kind"), "AdmissionReview") && *field_text(request, "uid")) {
        json_auto_t *object = answer_to(request, hints);
        answer = json_dumps(object, JSON_COMPACT);
    }
    if (!answer)
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "no AdmissionReview of " API_VERSION " with a request");
    return answer;
}
