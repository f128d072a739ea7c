/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/error.h"
#include <string.h>

/* An API server's message may quote the whole object. */
#define MESSAGE_MAX 600

typedef struct KubeErrorPrivate {
    int status;
    char *reason;
    gint64 retry_after_ms;
} KubeErrorPrivate;

static void kube_error_private_init(KubeErrorPrivate *p)
{
    p->retry_after_ms = -1;
}

static void kube_error_private_copy(const KubeErrorPrivate *from, KubeErrorPrivate *to)
{
    to->status = from->status;
    to->reason = g_strdup(from->reason);
    to->retry_after_ms = from->retry_after_ms;
}

static void kube_error_private_clear(KubeErrorPrivate *p)
{
    g_free(p->reason);
}

typedef GError KubeError;
G_DEFINE_EXTENDED_ERROR(KubeError, kube_error)

static const KubeErrorPrivate *private_of(const GError *error)
{
    return error && error->domain == KUBE_ERROR ? kube_error_get_private(error) : NULL;
}

int kube_error_status(const GError *error)
{
    const KubeErrorPrivate *p = private_of(error);
    return p ? p->status : 0;
}

const char *kube_error_reason(const GError *error)
{
    const KubeErrorPrivate *p = private_of(error);
    return p && p->reason ? p->reason : "";
}

gint64 kube_error_retry_after_ms(const GError *error)
{
    const KubeErrorPrivate *p = private_of(error);
    return p ? p->retry_after_ms : -1;
}

static KubeErrorCode code_of(int status, const char *reason)
{
    switch (status) {
    case 400:
    case 422:
        return KUBE_ERROR_INVALID;
    case 401:
        return KUBE_ERROR_UNAUTHORIZED;
    case 403:
        return KUBE_ERROR_FORBIDDEN;
    case 404:
        return KUBE_ERROR_NOT_FOUND;
    case 409:
        return g_str_equal(reason, "AlreadyExists") ? KUBE_ERROR_ALREADY_EXISTS
                                                    : KUBE_ERROR_CONFLICT;
    case 410:
        return KUBE_ERROR_GONE;
    case 429:
        return KUBE_ERROR_TOO_MANY_REQUESTS;
    default:
        return status >= 500 && status <= 599 ? KUBE_ERROR_SERVER : KUBE_ERROR_REFUSED;
    }
}

static const char *fix_of(KubeErrorCode code)
{
    switch (code) {
    case KUBE_ERROR_UNAUTHORIZED:
        return "; the token or certificate is not accepted: see the service account, or kubeconfig";
    case KUBE_ERROR_FORBIDDEN:
        return "; see the ClusterRole of this service account";
    default:
        return "";
    }
}

/* What the server said, fit for a log line. */
static char *plain(const char *text, gsize bytes)
{
    g_autofree char *valid = g_utf8_make_valid(text, (gssize)bytes);
    if (g_utf8_strlen(valid, -1) > MESSAGE_MAX) {
        char *end = g_utf8_offset_to_pointer(valid, MESSAGE_MAX);
        *end = '\0';
    }
    for (char *p = valid; *p; p++) {
        if (g_ascii_iscntrl(*p))
            *p = ' ';
    }
    return g_strdup(g_strstrip(valid));
}

/* What the server says went wrong. Borrowed. */
typedef struct Answer {
    int status;
    gint64 retry_after_ms; /* < 0: it does not say */
    const char *reason;
    const char *message;
    gsize message_bytes;
} Answer;

static void set(GError **error, const char *what, const Answer *a)
{
    if (!error)
        return;
    const KubeErrorCode code = code_of(a->status, a->reason);
    g_autofree char *why = plain(a->message, a->message_bytes);
    g_autofree char *named = plain(a->reason, strlen(a->reason));
    const char *space = *named ? " " : "";
    const char *colon = *why ? ": " : "";
    g_set_error(error, KUBE_ERROR, code, "%s: %d%s%s%s%s%s", what, a->status, space, named, colon,
                why, fix_of(code));
    KubeErrorPrivate *p = kube_error_get_private(*error);
    p->status = a->status;
    p->reason = g_steal_pointer(&named);
    p->retry_after_ms = a->retry_after_ms;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

void kube_error_set_answer(GError **error, const char *what, int status, gint64 retry_after_ms,
                           const char *body, gsize bytes)
{
    json_auto_t *object = json_loadb(body, bytes, JSON_ALLOW_NUL, NULL);
    Answer answer = {.status = status,
                     .retry_after_ms = retry_after_ms,
                     .reason = "",
                     .message = body,
                     .message_bytes = bytes};
    if (g_str_equal(text_of(object, "kind"), "Status")) {
        answer.reason = text_of(object, "reason");
        answer.message = text_of(object, "message");
        answer.message_bytes = strlen(answer.message);
    }
    set(error, what, &answer);
}

void kube_error_set_event(GError **error, const char *what, const json_t *object)
{
    const json_int_t code = json_integer_value(json_object_get(object, "code"));
    const char *message = text_of(object, "message");
    const json_t *delay = json_object_get(json_object_get(object, "details"), "retryAfterSeconds");
    const gint64 seconds = json_is_integer(delay) ? json_integer_value(delay) : -1;
    const Answer answer = {.status = code >= 400 && code <= 599 ? (int)code : 500,
                           .retry_after_ms = seconds >= 0 ? MIN(seconds, 3600) * 1000 : -1,
                           .reason = text_of(object, "reason"),
                           .message = message,
                           .message_bytes = strlen(message)};
    set(error, what, &answer);
}
