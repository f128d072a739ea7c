/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/affinity/webhook.h"
#include <curl/curl.h>
#include "driver/affinity/hint.h"
#include "tests/unit/driver/http/certificates.h"
#include "tests/unit/driver/kube/fake_api.h"

#define HINTS "/apis/csi.hearth.dev/v1alpha1/datasethints"

typedef struct World {
    FakeApi api;
    FakeStream stream;
    KubeClient *client;
    Webhook *webhook;
    char *dir;
    Pair pair;
    CURL *curl;
    GString *answer;
} World;

static size_t on_bytes(char *bytes, size_t size, size_t n, void *data)
{
    g_string_append_len(data, bytes, (gssize)(size * n));
    return size * n;
}

static char *hint(const char *claim, const char *version, const char *dataset)
{
    return g_strdup_printf(
        "{\"metadata\":{\"namespace\":\"jobs\",\"name\":\"%s\",\"uid\":\"%s\","
        "\"resourceVersion\":\"%s\"},\"spec\":{\"dataset\":\"%s\",\"label\":\"warm.csi.hearth.dev/"
        "%s\"}}",
        claim, claim, version, dataset, dataset);
}

static void handler(const FakeRequest *request, FakeReply *reply, void *data)
{
    World *w = data;
    ck_assert_str_eq(request->path, HINTS);
    /* Also those that nobody of ours wrote. */
    ck_assert_ptr_null(fake_query(request, "labelSelector"));
    if (fake_query(request, "watch")) {
        reply->stream = &w->stream;
        return;
    }
    g_autofree char *one = hint("data", "1", "aaaaaaaaaaaaaaaa");
    reply->text = g_strdup_printf("{\"metadata\":{\"resourceVersion\":\"1\"},\"items\":[%s]}", one);
}

static void world_new(World *w)
{
    g_autoptr(GError) error = NULL;
    *w = (World){.dir = harness_tmpdir(), .pair = pair_new("webhook", 3600)};
    pair_put(w->dir, w->pair.certificate, w->pair.key);
    fake_stream_init(&w->stream);
    fake_api_new(&w->api, handler, w);
    w->client = fake_client(&w->api, NULL);
    const WebhookConfig config = {.address = "127.0.0.1:0", .certificate = w->dir};
    w->webhook = webhook_new(w->client, &config, &error);
    ck_assert_msg(w->webhook != NULL, "%s", error ? error->message : "");
    w->answer = g_string_new(NULL);
    w->curl = curl_easy_init();
    struct curl_blob blob = {w->pair.certificate, strlen(w->pair.certificate), CURL_BLOB_COPY};
    curl_easy_setopt(w->curl, CURLOPT_CAINFO_BLOB, &blob);
    curl_easy_setopt(w->curl, CURLOPT_CAPATH, NULL);
    curl_easy_setopt(w->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(w->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(w->curl, CURLOPT_WRITEDATA, w->answer);
}

static void world_free(World *w)
{
    curl_easy_cleanup(w->curl);
    webhook_free(w->webhook);
    kube_client_free(w->client);
    fake_stream_stop(&w->stream);
    fake_api_free(&w->api);
    for (char *piece; (piece = g_queue_pop_head(&w->stream.pieces));)
        g_free(piece);
    g_string_free(w->answer, TRUE);
    pair_clear(&w->pair);
    harness_remove(w->dir);
}

static long post(World *w, const char *body)
{
    long status = 0;
    g_autofree char *url =
        g_strdup_printf("https://127.0.0.1:%d/mutate--v1-pod?timeout=2s", webhook_port(w->webhook));
    g_string_truncate(w->answer, 0);
    curl_easy_setopt(w->curl, CURLOPT_URL, url);
    curl_easy_setopt(w->curl, CURLOPT_POSTFIELDS, body);
    ck_assert_int_eq(curl_easy_perform(w->curl), CURLE_OK);
    curl_easy_getinfo(w->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

static gboolean patched(World *w, const char *claim)
{
    g_autofree char *body = g_strdup_printf(
        "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"request\":{\"uid\":"
        "\"u\",\"operation\":\"CREATE\",\"namespace\":\"jobs\",\"resource\":{\"group\":\"\","
        "\"version\":\"v1\",\"resource\":\"pods\"},\"object\":{\"metadata\":{},\"spec\":{"
        "\"volumes\":[{\"persistentVolumeClaim\":{\"claimName\":\"%s\"}}]}}}}",
        claim);
    ck_assert_int_eq(post(w, body), 200);
    ck_assert_ptr_nonnull(strstr(w->answer->str, "\"allowed\":true"));
    return strstr(w->answer->str, "\"patch\":") != NULL;
}

static void await(World *w, const char *claim, gboolean wanted)
{
    for (int i = 0; i < 1000 && patched(w, claim) != wanted; i++)
        g_usleep(10000);
    ck_assert_int_eq(patched(w, claim), wanted);
}

static void see(World *w, const char *type, const char *claim, const char *version,
                const char *dataset)
{
    g_autofree char *object = hint(claim, version, dataset);
    g_autofree char *line = g_strdup_printf("{\"type\":\"%s\",\"object\":%s}\n", type, object);
    fake_stream_push(&w->stream, line);
}

START_TEST(pods_are_patched_by_the_hints_there_are)
{
    World w;
    world_new(&w);
    await(&w, "data", TRUE);
    ck_assert(!patched(&w, "labels"));
    see(&w, "ADDED", "labels", "2", "bbbbbbbbbbbbbbbb");
    await(&w, "labels", TRUE);
    see(&w, "DELETED", "data", "3", "aaaaaaaaaaaaaaaa");
    await(&w, "data", FALSE);
    ck_assert(patched(&w, "labels"));
    /* One that contradicts itself is none. */
    see(&w, "MODIFIED", "labels", "4", "short");
    await(&w, "labels", FALSE);
    world_free(&w);
}
END_TEST

START_TEST(what_is_no_review_is_a_bad_request)
{
    World w;
    world_new(&w);
    ck_assert_int_eq(post(&w, "{}"), 400);
    ck_assert_int_eq(post(&w, "none"), 400);
    await(&w, "data", TRUE);
    world_free(&w);
}
END_TEST

START_TEST(review_of_256_kib_is_taken_and_more_is_not)
{
    World w;
    world_new(&w);
    GString *body = g_string_new("{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":"
                                 "\"AdmissionReview\",\"request\":{\"uid\":\"u\",\"object\":\"");
    const gsize tail = strlen("\"}}"), fill = 256 * 1024 - body->len - tail;
    g_autofree char *filler = g_strnfill(fill, 'x');
    g_string_append(body, filler);
    g_string_append(body, "\"}}");
    ck_assert_uint_eq(body->len, 256 * 1024);
    ck_assert_int_eq(post(&w, body->str), 200);
    g_string_append_c(body, ' ');
    struct curl_slist *headers = curl_slist_append(NULL, "Expect: 100-continue");
    curl_easy_setopt(w.curl, CURLOPT_HTTPHEADER, headers);
    ck_assert_int_eq(post(&w, body->str), 413);
    curl_slist_free_all(headers);
    g_string_free(body, TRUE);
    world_free(&w);
}
END_TEST

START_TEST(bad_certificate_or_address_is_named_at_once)
{
    World w;
    world_new(&w);
    g_autoptr(GError) error = NULL, other = NULL;
    const WebhookConfig bad[] = {
        {.address = "9443", .certificate = w.dir},
        {.address = "127.0.0.1:0", .certificate = w.dir},
        {.address = "127.0.0.1:0", .certificate = w.dir, .client_ca = "/dev/null"}};
    g_autoptr(GError) empty = NULL;
    ck_assert_ptr_null(webhook_new(w.client, &bad[2], &empty));
    ck_assert_msg(strstr(empty->message, "--webhook-client-ca=/dev/null") != NULL, "%s",
                  empty->message);
    ck_assert_ptr_null(webhook_new(w.client, &bad[0], &other));
    ck_assert_ptr_nonnull(strstr(other->message, "--webhook-address"));
    pair_put(w.dir, w.pair.certificate, NULL);
    ck_assert_ptr_null(webhook_new(w.client, &bad[1], &error));
    ck_assert_ptr_nonnull(strstr(error->message, "tls.key"));
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/affinity/webhook", pods_are_patched_by_the_hints_there_are,
             what_is_no_review_is_a_bad_request, review_of_256_kib_is_taken_and_more_is_not,
             bad_certificate_or_address_is_named_at_once)
