/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/transport.h"
#include <curl/curl.h>
#include <pthread.h>
#include <string.h>
#include "driver/kube/error.h"

/* More are closed when their exchange is over. */
#define IDLE_MAX 8
/* The API server closes connections that were idle for 90 s. */
#define IDLE_SECONDS 60
#define CONNECT_MS 10000L
#define RETRY_AFTER_MAX_S 3600
/* The longest answer that is kept with a status that is no success. */
#define REFUSAL_MAX (64 * 1024)

typedef struct Line {
    CURLM *multi; /* owns the connection */
    CURL *easy;
} Line;

struct KubeTransport {
    const KubeConfig *config;
    pthread_mutex_t lock;
    GPtrArray *idle; /* of Line, the last used last; guarded by lock */
};

/* What libcurl's callbacks see of an exchange. */
typedef struct Course {
    KubeExchange *exchange;
    CURL *easy;
    GError *error; /* why a callback ended it */
} Course;

static void line_free(void *data)
{
    Line *line = data;
    curl_easy_cleanup(line->easy);
    curl_multi_cleanup(line->multi);
    g_free(line);
}

static void global_init(void)
{
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        g_error("libcurl cannot be initialized");
}

KubeTransport *kube_transport_new(const KubeConfig *config)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, global_init);
    KubeTransport *t = g_new0(KubeTransport, 1);
    t->config = config;
    pthread_mutex_init(&t->lock, NULL);
    t->idle = g_ptr_array_new_with_free_func(line_free);
    return t;
}

void kube_transport_free(KubeTransport *t)
{
    if (!t)
        return;
    g_ptr_array_unref(t->idle);
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

static Line *line_take(KubeTransport *t)
{
    pthread_mutex_lock(&t->lock);
    Line *line = t->idle->len ? g_ptr_array_steal_index(t->idle, t->idle->len - 1) : NULL;
    pthread_mutex_unlock(&t->lock);
    if (line)
        return line;
    line = g_new0(Line, 1);
    line->multi = curl_multi_init();
    line->easy = curl_easy_init();
    if (!line->multi || !line->easy)
        g_error("libcurl has no memory");
    return line;
}

static void line_give(KubeTransport *t, Line *line)
{
    pthread_mutex_lock(&t->lock);
    const gboolean keep = t->idle->len < IDLE_MAX;
    if (keep)
        g_ptr_array_add(t->idle, line);
    pthread_mutex_unlock(&t->lock);
    if (!keep)
        line_free(line);
}

static gboolean is_success(CURL *easy)
{
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    return status >= 200 && status <= 299;
}

static size_t on_header(char *text, size_t size, size_t n, void *data)
{
    static const char name[] = "retry-after:";
    Course *course = data;
    KubeExchange *x = course->exchange;
    if (size * n <= 2 && x->on_bytes && is_success(course->easy))
        return x->on_bytes("", 0, x->data, &course->error) ? size * n : 0;
    if (size * n > strlen(name) && g_ascii_strncasecmp(text, name, strlen(name)) == 0) {
        g_autofree char *value = g_strndup(text + strlen(name), size * n - strlen(name));
        guint64 seconds;
        /* The API server gives seconds, never a date. */
        if (g_ascii_string_to_unsigned(g_strstrip(value), 10, 0, G_MAXUINT32, &seconds, NULL))
            x->retry_after_ms = (gint64)MIN(seconds, RETRY_AFTER_MAX_S) * 1000;
    }
    return size * n;
}

static size_t on_body(char *bytes, size_t size, size_t n, void *data)
{
    Course *course = data;
    KubeExchange *x = course->exchange;
    const gboolean success = is_success(course->easy);
    if (success && x->on_bytes)
        return x->on_bytes(bytes, size * n, x->data, &course->error) ? size * n : 0;
    const gsize most = success ? x->answer_max : REFUSAL_MAX;
    if (size * n > most - MIN(x->answer->len, most)) {
        g_set_error(&course->error, KUBE_ERROR, KUBE_ERROR_MALFORMED,
                    "%s %s: the answer is larger than %" G_GSIZE_FORMAT " bytes", x->method,
                    x->target, most);
        return 0;
    }
    g_string_append_len(x->answer, bytes, (gssize)(size * n));
    return size * n;
}

static CURLcode set_blob(CURL *easy, CURLoption option, GBytes *bytes)
{
    gsize size;
    const void *data = g_bytes_get_data(bytes, &size);
    struct curl_blob blob = {.data = (void *)data, .len = size, .flags = CURL_BLOB_NOCOPY};
    return curl_easy_setopt(easy, option, &blob);
}

/* The first failure counts. */
#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = curl_easy_setopt(easy, option, value);                                          \
    } while (0)
#define SET_BLOB(option, bytes)                                                                    \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = set_blob(easy, option, bytes);                                                  \
    } while (0)

static CURLcode set_identity(CURL *easy, const KubeConfig *c)
{
    CURLcode code = CURLE_OK;
    if (c->ca_data)
        SET_BLOB(CURLOPT_CAINFO_BLOB, c->ca_data);
    else if (c->ca_file)
        SET(CURLOPT_CAINFO, c->ca_file);
    /* The cluster's own authority alone: libcurl would take the system's as well. */
    if (c->ca_data || c->ca_file)
        SET(CURLOPT_CAPATH, NULL);
    /* It is read again when a cluster's authority changes. */
    SET(CURLOPT_CA_CACHE_TIMEOUT, 600L);
    SET(CURLOPT_SSL_VERIFYPEER, c->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, c->insecure ? 0L : 2L);
    if (c->cert_data)
        SET_BLOB(CURLOPT_SSLCERT_BLOB, c->cert_data);
    else if (c->cert_file)
        SET(CURLOPT_SSLCERT, c->cert_file);
    if (c->key_data)
        SET_BLOB(CURLOPT_SSLKEY_BLOB, c->key_data);
    else if (c->key_file)
        SET(CURLOPT_SSLKEY, c->key_file);
    return code;
}

static CURLcode set_request(CURL *easy, const KubeConfig *c, const KubeExchange *x, Course *course,
                            struct curl_slist *headers)
{
    CURLcode code = CURLE_OK;
    g_autofree char *url = g_strconcat(c->server, x->target, NULL);
    curl_easy_reset(easy);
    SET(CURLOPT_NOSIGNAL, 1L);
    SET(CURLOPT_URL, url);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_NOPROXY, "*");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_USERAGENT, "hearth-csi/" HEARTH_VERSION);
    SET(CURLOPT_CUSTOMREQUEST, x->method);
    SET(CURLOPT_HTTPHEADER, headers);
    if (x->body) {
        SET(CURLOPT_POSTFIELDS, x->body);
        SET(CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)x->body_bytes);
    }
    SET(CURLOPT_TIMEOUT_MS, (long)MAX(x->timeout_ms, 1));
    SET(CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
    SET(CURLOPT_MAXAGE_CONN, (long)IDLE_SECONDS);
    /* An API server whose machine is gone is noticed within a minute. */
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_TCP_KEEPIDLE, 15L);
    SET(CURLOPT_TCP_KEEPINTVL, 5L);
    SET(CURLOPT_HEADERFUNCTION, on_header);
    SET(CURLOPT_HEADERDATA, course);
    SET(CURLOPT_WRITEFUNCTION, on_body);
    SET(CURLOPT_WRITEDATA, course);
    return code != CURLE_OK ? code : set_identity(easy, c);
}

static struct curl_slist *headers_of(const KubeExchange *x)
{
    g_autofree char *accept =
        g_strconcat("Accept: ", x->accept ? x->accept : "application/json", NULL);
    struct curl_slist *list = curl_slist_append(NULL, accept);
    list = curl_slist_append(list, "Expect:");
    if (x->body) {
        g_autofree char *type = g_strconcat("Content-Type: ", x->content_type, NULL);
        list = curl_slist_append(list, type);
    }
    if (x->token) {
        char *bearer = g_strconcat("Authorization: Bearer ", x->token, NULL);
        list = curl_slist_append(list, bearer);
        kube_token_wipe(bearer);
    }
    return list;
}

static void headers_free(struct curl_slist *list)
{
    for (struct curl_slist *one = list; one; one = one->next)
        explicit_bzero(one->data, strlen(one->data));
    curl_slist_free_all(list);
}

/* FALSE: it was cancelled. *code is how it ended. */
static gboolean perform(Line *line, GCancellable *cancel, CURLcode *code)
{
    GPollFD poll;
    const gboolean can = cancel && g_cancellable_make_pollfd(cancel, &poll);
    struct curl_waitfd extra = {.fd = can ? poll.fd : -1, .events = CURL_WAIT_POLLIN};
    /* Without a descriptor, which a process can run out of, it has to be looked at. */
    const int nap_ms = can || !cancel ? 60000 : 500;
    gboolean cancelled = FALSE;
    *code = CURLE_FAILED_INIT;
    curl_multi_add_handle(line->multi, line->easy);
    for (int running = 1; running;) {
        cancelled = g_cancellable_is_cancelled(cancel);
        if (cancelled || curl_multi_perform(line->multi, &running) != CURLM_OK)
            break;
        if (running)
            curl_multi_poll(line->multi, &extra, can ? 1 : 0, nap_ms, NULL);
    }
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(line->multi, &left));) {
        if (message->msg == CURLMSG_DONE)
            *code = message->data.result;
    }
    /* One that has not ended closes its connection here. */
    curl_multi_remove_handle(line->multi, line->easy);
    if (can)
        g_cancellable_release_fd(cancel);
    return !cancelled;
}

static gboolean never_sent(CURLcode code)
{
    switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_PEER_FAILED_VERIFICATION:
        return TRUE;
    default:
        return FALSE;
    }
}

static void set_error(const KubeTransport *t, const KubeExchange *x, CURLcode code,
                      const char *detail, GError **error)
{
    const char *why = *detail ? detail : curl_easy_strerror(code);
    if (code == CURLE_OPERATION_TIMEDOUT)
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_DEADLINE, "%s %s: %s did not answer in %d ms: %s",
                    x->method, x->target, t->config->server, (int)MIN(x->timeout_ms, G_MAXINT),
                    why);
    else
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_UNREACHABLE, "%s %s: API server %s: %s",
                    x->method, x->target, t->config->server, why);
}

gboolean kube_exchange(KubeTransport *t, KubeExchange *x, GError **error)
{
    char detail[CURL_ERROR_SIZE] = "";
    kube_exchange_clear(x);
    x->answer = g_string_new(NULL);
    x->retry_after_ms = -1;
    if (x->timeout_ms <= 0) {
        x->unsent = TRUE;
        set_error(t, x, CURLE_OPERATION_TIMEDOUT, "no time was left", error);
        return FALSE;
    }
    Line *line = line_take(t);
    Course course = {.exchange = x, .easy = line->easy};
    struct curl_slist *headers = headers_of(x);
    CURLcode code = set_request(line->easy, t->config, x, &course, headers);
    const gboolean ready = code == CURLE_OK;
    curl_easy_setopt(line->easy, CURLOPT_ERRORBUFFER, detail);
    const gboolean whole = !ready || perform(line, x->cancel, &code);
    long status = 0;
    curl_easy_getinfo(line->easy, CURLINFO_RESPONSE_CODE, &status);
    x->status = (int)status;
    /* Nothing of ours stays in it. */
    curl_easy_reset(line->easy);
    headers_free(headers);
    line_give(t, line);
    if (course.error) {
        g_propagate_error(error, course.error);
        return FALSE;
    }
    if (!whole) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CANCELLED, "%s %s: cancelled", x->method,
                    x->target);
        return FALSE;
    }
    if (code != CURLE_OK) {
        x->unsent = !ready || never_sent(code);
        set_error(t, x, code, detail, error);
        return FALSE;
    }
    return TRUE;
}

void kube_exchange_clear(KubeExchange *x)
{
    if (x->answer)
        g_string_free(x->answer, TRUE);
    x->answer = NULL;
    x->status = 0;
    x->unsent = FALSE;
}
