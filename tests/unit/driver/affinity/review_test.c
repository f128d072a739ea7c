/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/review.h"
#include <stdlib.h>
#include <string.h>
#include "common/error.h"
#include "tests/unit/harness.h"

static gboolean find(const char *namespace, const char *claim, char dataset[17], void *data)
{
    (void)data;
    g_strlcpy(dataset, "aaaaaaaaaaaaaaaa", 17);
    return g_str_equal(namespace, "jobs") && g_str_equal(claim, "data");
}
static const PreferencesHints hints = {.find = find};

static char *review(const char *request)
{
    return g_strdup_printf(
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{%s}}",
        request);
}

/* request: without what each has. The `response` of the answer. */
static json_t *response_to(const char *operation, const char *resource, const char *more)
{
    g_autofree char *request = g_strdup_printf(
        "\"uid\":\"u-1\",\"operation\":\"%s\",\"namespace\":\"jobs\",\"resource\":{%s},%s"
        "\"object\":{\"spec\":{\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"data\"}}]}"
        "}",
        operation, resource, more);
    g_autofree char *text = review(request);
    g_autoptr(GError) error = NULL;
    char *answer = review_answer(text, strlen(text), &hints, &error);
    ck_assert_msg(answer != NULL, "%s", error ? error->message : "");
    json_t *object = json_loads(answer, 0, NULL);
    ck_assert_str_eq(json_string_value(json_object_get(object, "apiVersion")),
                     "admission.k8s.io/v1");
    ck_assert_str_eq(json_string_value(json_object_get(object, "kind")), "AdmissionReview");
    json_t *response = json_incref(json_object_get(object, "response"));
    ck_assert_str_eq(json_string_value(json_object_get(response, "uid")), "u-1");
    ck_assert(json_is_true(json_object_get(response, "allowed")));
    json_decref(object);
    free(answer);
    return response;
}

#define PODS "\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\""

START_TEST(pod_of_a_dataset_is_allowed_with_a_patch)
{
    json_t *response = response_to("CREATE", PODS, "");
    gsize size;
    ck_assert_str_eq(json_string_value(json_object_get(response, "patchType")), "JSONPatch");
    g_autofree guchar *text =
        g_base64_decode(json_string_value(json_object_get(response, "patch")), &size);
    json_t *patch = json_loadb((const char *)text, size, 0, NULL);
    ck_assert_uint_eq(json_array_size(patch), 9);
    json_decref(patch);
    json_decref(response);
}
END_TEST

START_TEST(all_else_is_allowed_as_it_is)
{
    const char *const cases[][3] = {
        {"UPDATE", PODS, ""},
        {"DELETE", PODS, ""},
        {"CREATE", PODS, "\"subResource\":\"binding\","},
        {"CREATE", "\"group\":\"apps\",\"version\":\"v1\",\"resource\":\"pods\"", ""},
        {"CREATE", "\"version\":\"v1\",\"resource\":\"services\"", ""},
        {"CREATE", "\"version\":\"v2\",\"resource\":\"pods\"", ""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        json_t *response = response_to(cases[i][0], cases[i][1], cases[i][2]);
        ck_assert_ptr_null(json_object_get(response, "patch"));
        ck_assert_ptr_null(json_object_get(response, "patchType"));
        json_decref(response);
    }
}
END_TEST

START_TEST(what_is_no_review_has_no_answer)
{
    const char *const wrong[] = {
        "",
        "{}",
        "[]",
        "null",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\"}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{}}",
        "{\"apiVersion\":\"admission.k8s.io/"
        "v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":7}}",
        "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\",\"request\":{"
        "\"uid\":\"u\"}}",
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"Pod\",\"request\":{\"uid\":\"u\"}}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wrong); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(review_answer(wrong[i], strlen(wrong[i]), &hints, &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    }
}
END_TEST

START_TEST(odd_requests_are_allowed)
{
    const char *const odd[] = {
        "\"uid\":\"u\"",
        "\"uid\":\"u\",\"operation\":\"CREATE\",\"resource\":{" PODS "}",
        "\"uid\":\"u\",\"operation\":\"CREATE\",\"resource\":{" PODS "},\"object\":null",
        "\"uid\":\"u\",\"operation\":\"CREATE\",\"resource\":[],\"object\":[]",
        "\"uid\":\"\\u00fc\\u0000\",\"operation\":{}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(odd); i++) {
        g_autofree char *text = review(odd[i]);
        char *answer = review_answer(text, strlen(text), &hints, NULL);
        ck_assert_msg(answer && strstr(answer, "\"allowed\":true"), "%s", odd[i]);
        free(answer);
    }
}
END_TEST

HARNESS_MAIN("driver/affinity/review", pod_of_a_dataset_is_allowed_with_a_patch,
             all_else_is_allowed_as_it_is, what_is_no_review_has_no_answer,
             odd_requests_are_allowed)
