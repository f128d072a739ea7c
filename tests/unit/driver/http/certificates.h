/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Certificates for a loopback server, made on the spot, as files of a mounted Secret. Each is its
 * own authority: a client that trusts one of them knows which one it was shown.
 */
#ifndef HEARTH_TESTS_CERTIFICATES_H
#define HEARTH_TESTS_CERTIFICATES_H

#include <gnutls/x509.h>
#include <string.h>
#include <time.h>
#include "tests/unit/harness.h"

typedef struct Pair {
    char *certificate, *key; /* PEM */
} Pair;

static inline char *pair_text(gnutls_datum_t *text)
{
    char *copy = g_strndup((const char *)text->data, text->size);
    gnutls_free(text->data);
    return copy;
}

/* valid_s: from now on; negative: it has expired. */
static inline Pair pair_new_of(const char *name, gint64 valid_s, gnutls_pk_algorithm_t algorithm,
                               unsigned bits)
{
    gnutls_x509_privkey_t key;
    gnutls_x509_crt_t crt;
    gnutls_datum_t text;
    Pair pair;
    const guint32 serial = g_random_int() | 1;
    ck_assert_int_eq(gnutls_x509_privkey_init(&key), 0);
    ck_assert_int_eq(gnutls_x509_privkey_generate(key, algorithm, bits, 0), 0);
    ck_assert_int_eq(gnutls_x509_crt_init(&crt), 0);
    gnutls_x509_crt_set_version(crt, 3);
    gnutls_x509_crt_set_serial(crt, &serial, sizeof(serial));
    gnutls_x509_crt_set_dn_by_oid(crt, GNUTLS_OID_X520_COMMON_NAME, 0, name,
                                  (unsigned)strlen(name));
    gnutls_x509_crt_set_subject_alt_name(crt, GNUTLS_SAN_IPADDRESS, "\x7f\0\0\1", 4, 0);
    gnutls_x509_crt_set_activation_time(crt, time(NULL) - 7200);
    gnutls_x509_crt_set_expiration_time(crt, time(NULL) + valid_s);
    gnutls_x509_crt_set_basic_constraints(crt, 1, -1);
    gnutls_x509_crt_set_key(crt, key);
    ck_assert_int_eq(gnutls_x509_crt_sign2(crt, crt, key, GNUTLS_DIG_SHA256, 0), 0);
    ck_assert_int_eq(gnutls_x509_crt_export2(crt, GNUTLS_X509_FMT_PEM, &text), 0);
    pair.certificate = pair_text(&text);
    ck_assert_int_eq(gnutls_x509_privkey_export2(key, GNUTLS_X509_FMT_PEM, &text), 0);
    pair.key = pair_text(&text);
    gnutls_x509_crt_deinit(crt);
    gnutls_x509_privkey_deinit(key);
    return pair;
}

static inline Pair pair_new(const char *name, gint64 valid_s)
{
    return pair_new_of(name, valid_s, GNUTLS_PK_ECDSA,
                       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1));
}

static inline void pair_clear(Pair *pair)
{
    g_clear_pointer(&pair->certificate, g_free);
    g_clear_pointer(&pair->key, g_free);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Pair, pair_clear)

/* NULL: that file is removed. New files by new names, as kubelet makes them. */
static inline void pair_put(const char *dir, const char *certificate, const char *key)
{
    g_autofree char *crt_path = g_build_filename(dir, "tls.crt", NULL);
    g_autofree char *key_path = g_build_filename(dir, "tls.key", NULL);
    if (certificate)
        ck_assert(g_file_set_contents(crt_path, certificate, -1, NULL));
    else
        g_unlink(crt_path);
    if (key)
        ck_assert(g_file_set_contents(key_path, key, -1, NULL));
    else
        g_unlink(key_path);
}

#endif
