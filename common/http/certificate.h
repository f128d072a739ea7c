/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificate and key that a server shows, from a directory as a mounted Secret of type
 * kubernetes.io/tls is one: tls.crt (PEM, the server's own first, then those between it and the
 * authority) and tls.key (PEM, not encrypted). Read once and never changed: what was rotated is
 * another one (rotation.h).
 *
 * The key is in GnuTLS's memory alone, which is wiped when it is freed, as is what the file was
 * read into; no message says anything of it.
 */
#ifndef HEARTH_COMMON_HTTP_CERTIFICATE_H
#define HEARTH_COMMON_HTTP_CERTIFICATE_H

#include <glib.h>
#include <gnutls/abstract.h>

#define HTTP_CERTIFICATE_FILE "tls.crt"
#define HTTP_KEY_FILE "tls.key"

/* Counted, not atomically: for one thread. */
typedef struct HttpCertificate HttpCertificate;

/* HEARTH_ERROR_FAILED_PRECONDITION names the file and the fix: one that is missing or malformed,
 * a key that is encrypted or another certificate's. One that has expired is no error here. */
HttpCertificate *http_certificate_load(const char *directory, GError **error);
HttpCertificate *http_certificate_ref(HttpCertificate *certificate);
void http_certificate_unref(HttpCertificate *certificate);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HttpCertificate, http_certificate_unref)

/* Seconds since 1970 after which clients refuse it. */
gint64 http_certificate_expires_s(const HttpCertificate *certificate);
/* What a handshake needs; borrowed as long as the certificate is held. */
void http_certificate_show(HttpCertificate *certificate, gnutls_pcert_st **chain,
                           unsigned *chain_length, gnutls_privkey_t *key);

#endif
