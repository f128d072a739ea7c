/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors of the Kubernetes client. The code tells a caller what to do; the HTTP status, the
 * reason and the delay that the API server gave are kept with it. Messages name the request and
 * never hold a token or key.
 *
 * Source: Kubernetes API conventions, "Response Status Kind" (Status.reason).
 */
#ifndef HEARTH_DRIVER_KUBE_ERROR_H
#define HEARTH_DRIVER_KUBE_ERROR_H

#include <glib.h>
#include <jansson.h>

typedef enum KubeErrorCode {
    KUBE_ERROR_CONFIG = 1,     /* kubeconfig or service account: the message names file and key */
    KUBE_ERROR_UNREACHABLE,    /* no connection, TLS, or the connection broke */
    KUBE_ERROR_DEADLINE,       /* no answer in the caller's time */
    KUBE_ERROR_CANCELLED,      /* by the caller */
    KUBE_ERROR_MALFORMED,      /* the answer is none of the API, or too large */
    KUBE_ERROR_INVALID,        /* 400, 422: the request itself */
    KUBE_ERROR_UNAUTHORIZED,   /* 401 */
    KUBE_ERROR_FORBIDDEN,      /* 403 */
    KUBE_ERROR_NOT_FOUND,      /* 404: the object, or its kind */
    KUBE_ERROR_CONFLICT,       /* 409: a newer resourceVersion, or another field manager */
    KUBE_ERROR_ALREADY_EXISTS, /* 409 with that reason */
    KUBE_ERROR_GONE,           /* 410: a resourceVersion or continue token that is too old */
    KUBE_ERROR_TOO_MANY_REQUESTS, /* 429 */
    KUBE_ERROR_SERVER,            /* 5xx */
    KUBE_ERROR_REFUSED,           /* any other status */
} KubeErrorCode;

#define KUBE_ERROR (kube_error_quark())
GQuark kube_error_quark(void);

/* 0: the error is not an answer of the API server's. */
int kube_error_status(const GError *error);
/* Status.reason, "" when there is none. Belongs to the error. */
const char *kube_error_reason(const GError *error);
/* Retry-After, -1 when there was none. */
gint64 kube_error_retry_after_ms(const GError *error);

/*
 * Sets the error of an answer that is no success. `what` is the request ("PATCH /api/v1/nodes/a");
 * body may be a Status object or anything else.
 */
void kube_error_set_answer(GError **error, const char *what, int status, gint64 retry_after_ms,
                           const char *body, gsize bytes);
/* The error that an ERROR event of a watch holds; `object` is its Status. */
void kube_error_set_event(GError **error, const char *what, const json_t *object);

#endif
