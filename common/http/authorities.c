/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The chain is verified here, and not by gnutls_certificate_verify_peers(): that asks the
 * credentials, which are libmicrohttpd's, shared by all sessions and not to be changed under them.
 */
#include "common/http/authorities.h"
#include <gnutls/x509.h>
#include <string.h>
#include "common/error.h"
#include "common/http/trace.h"

#define FILE_MAX (1024 * 1024)
#define CHAIN_MAX 16
/* As the priority NORMAL has it. */
#define VERIFY_FLAGS GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_LOW)

struct HttpAuthorities {
    char *path, *flag, *first;
    void (*on_change)(const GError *error, void *data);
    void *data;
    gnutls_x509_trust_list_t list;
    HttpTrace seen; /* when `list` was read, or last could not be */
    gint64 looked_us;
    gboolean troubled;
};

static gboolean read_pem(const HttpAuthorities *a, char **pem, GError **error)
{
    g_autoptr(GError) cause = NULL;
    gsize size = 0;
    if (!g_file_get_contents(a->path, pem, &size, &cause))
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s: %s", a->flag, cause->message);
    return size <= FILE_MAX || hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                                           "%s=%s: more than 1 MiB", a->flag, a->path);
}

/* pem: what was read; the caller's. */
static gnutls_x509_trust_list_t read_list(const HttpAuthorities *a, char **pem, GError **error)
{
    gnutls_x509_trust_list_t list = NULL;
    if (!read_pem(a, pem, error))
        return NULL;
    const gnutls_datum_t text = {(unsigned char *)*pem, (unsigned)strlen(*pem)};
    if (gnutls_x509_trust_list_init(&list, 0) < 0)
        g_error("GnuTLS is out of memory");
    if (gnutls_x509_trust_list_add_trust_mem(list, &text, NULL, GNUTLS_X509_FMT_PEM, 0, 0) > 0)
        return list;
    gnutls_x509_trust_list_deinit(list, 1);
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                "%s=%s has no certificate; give the authorities as PEM", a->flag, a->path);
    return NULL;
}

HttpAuthorities *http_authorities_new(const char *path, const char *flag,
                                      void (*on_change)(const GError *error, void *data),
                                      void *data, GError **error)
{
    HttpAuthorities *a = g_new0(HttpAuthorities, 1);
    a->path = g_strdup(path);
    a->flag = g_strdup(flag);
    a->on_change = on_change;
    a->data = data;
    /* Before the reading, so that a change during it is seen later. */
    a->seen = http_trace_of(path);
    a->list = read_list(a, &a->first, error);
    if (a->list)
        return a;
    http_authorities_free(a);
    return NULL;
}

void http_authorities_free(HttpAuthorities *a)
{
    if (!a)
        return;
    if (a->list)
        gnutls_x509_trust_list_deinit(a->list, 1);
    g_free(a->path);
    g_free(a->flag);
    g_free(a->first);
    g_free(a);
}

const char *http_authorities_first(const HttpAuthorities *a)
{
    return a->first;
}

static void look(HttpAuthorities *a)
{
    const HttpTrace now = http_trace_of(a->path);
    if (!a->troubled && http_trace_same(&now, &a->seen))
        return;
    g_autoptr(GError) error = NULL;
    g_autofree char *pem = NULL;
    gnutls_x509_trust_list_t next = read_list(a, &pem, &error);
    const gboolean news = next || !a->troubled;
    a->seen = now;
    a->troubled = !next;
    if (next) {
        gnutls_x509_trust_list_deinit(a->list, 1);
        a->list = next;
    }
    if (news && a->on_change)
        a->on_change(error, a->data);
}

static gboolean verify(const HttpAuthorities *a, gnutls_x509_crt_t *chain, unsigned n)
{
    gnutls_typed_vdata_st client = {.type = GNUTLS_DT_KEY_PURPOSE_OID,
                                    .data = (unsigned char *)GNUTLS_KP_TLS_WWW_CLIENT};
    unsigned status = 0;
    return gnutls_x509_trust_list_verify_crt2(a->list, chain, n, &client, 1, VERIFY_FLAGS, &status,
                                              NULL) == 0 &&
           status == 0;
}

gboolean http_authorities_know(HttpAuthorities *a, gnutls_session_t session, gint64 now_us)
{
    gnutls_x509_crt_t chain[CHAIN_MAX];
    unsigned shown_length = 0, n = 0;
    gboolean good = TRUE;
    if (now_us - a->looked_us >= HTTP_LOOK_US) {
        a->looked_us = now_us;
        look(a);
    }
    const gnutls_datum_t *shown = gnutls_certificate_get_peers(session, &shown_length);
    if (!shown || shown_length == 0 || shown_length > CHAIN_MAX)
        return FALSE;
    while (good && n < shown_length) {
        if (gnutls_x509_crt_init(&chain[n]) < 0)
            g_error("GnuTLS is out of memory");
        good = gnutls_x509_crt_import(chain[n], &shown[n], GNUTLS_X509_FMT_DER) >= 0;
        n++;
    }
    good = good && verify(a, chain, n);
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(chain[i]);
    return good;
}
