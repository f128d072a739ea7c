/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may ask: clients that show a certificate which one of these authorities signed. From a file
 * of PEM, as the ca.crt of a mounted ConfigMap, which is looked at again as certificates are
 * (rotation.h): hearthd serves mounts, so an authority must be replaceable without its restart.
 * While the file cannot be read, or has no certificate, those that were there count on.
 *
 * For one thread.
 */
#ifndef HEARTH_COMMON_HTTP_AUTHORITIES_H
#define HEARTH_COMMON_HTTP_AUTHORITIES_H

#include <glib.h>
#include <gnutls/gnutls.h>

typedef struct HttpAuthorities HttpAuthorities;

/* flag: "--metrics-client-ca", begins the messages: HEARTH_ERROR_INVALID_ARGUMENT. on_change (may
 * be NULL) is told of each later reading: NULL when there are new ones, else why not, once. */
HttpAuthorities *http_authorities_new(const char *path, const char *flag,
                                      void (*on_change)(const GError *error, void *data),
                                      void *data, GError **error);
void http_authorities_free(HttpAuthorities *authorities);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpAuthorities, http_authorities_free)

/* What was read first, in PEM; borrowed. */
const char *http_authorities_first(const HttpAuthorities *authorities);
/* Whether the client of a session, whose handshake is over, is one of theirs: now, for who was
 * known on this connection may not be any more. now_us is monotonic. */
gboolean http_authorities_know(HttpAuthorities *authorities, gnutls_session_t session,
                               gint64 now_us);

#endif
