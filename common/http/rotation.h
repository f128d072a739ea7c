/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate that is shown to whoever connects now. kubelet replaces the files of a Secret
 * while we run; who is connected keeps the one that was shown to him, who connects later gets the
 * new one. Files are looked at when somebody connects, and once a second at most: nobody sees an
 * old one for longer, and nothing has to be watched. While they are no pair - kubelet exchanges the
 * directory as a whole, others may not - the one there was is shown on.
 *
 * Alternative rejected: to begin a new server on the same socket. What was connected to the old one
 * would have to be waited for, or cut off.
 *
 * For one thread.
 */
#ifndef HEARTH_COMMON_HTTP_ROTATION_H
#define HEARTH_COMMON_HTTP_ROTATION_H

#include "common/http/certificate.h"

typedef struct HttpRotation HttpRotation;

/* Reads it; errors are http_certificate_load()'s. on_change (may be NULL) is told of each later
 * reading: NULL when there is a new one, which expires then, else why there is none, once. */
HttpRotation *http_rotation_new(const char *directory,
                                void (*on_change)(const GError *error, gint64 expires_s,
                                                  void *data),
                                void *data, GError **error);
void http_rotation_free(HttpRotation *rotation);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpRotation, http_rotation_free)

/* A reference of the caller's. now_us is monotonic. */
HttpCertificate *http_rotation_get(HttpRotation *rotation, gint64 now_us);
/* Borrowed, without a look. */
const HttpCertificate *http_rotation_latest(const HttpRotation *rotation);

#endif
