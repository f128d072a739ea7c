/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/certificate.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include "common/error.h"
#include "tests/unit/driver/http/certificates.h"

typedef struct World {
    char *dir;
    Pair a, b;
} World;

static void world_new(World *w)
{
    *w = (World){harness_tmpdir(), pair_new("a", 3600), pair_new("b", 7200)};
    pair_put(w->dir, w->a.certificate, w->a.key);
}

static void world_free(World *w)
{
    pair_clear(&w->a);
    pair_clear(&w->b);
    harness_remove(w->dir);
}

/* The message has the file's name, and the fix; nothing of the key. */
static void refused(World *w, const char *file, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *path = g_build_filename(w->dir, file, NULL);
    ck_assert_ptr_null(http_certificate_load(w->dir, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    ck_assert_ptr_nonnull(strstr(error->message, path));
    ck_assert_msg(strstr(error->message, why) != NULL, "%s", error->message);
    ck_assert_ptr_nonnull(strstr(error->message, "kubernetes.io/tls"));
    ck_assert_ptr_null(strstr(error->message, "PRIVATE"));
}

START_TEST(pair_of_a_secret_is_read)
{
    World w;
    world_new(&w);
    g_autoptr(GError) error = NULL;
    g_autoptr(HttpCertificate) c = http_certificate_load(w.dir, &error);
    gnutls_pcert_st *chain;
    gnutls_privkey_t key;
    unsigned n;
    ck_assert_msg(c != NULL, "%s", error ? error->message : "");
    http_certificate_show(c, &chain, &n, &key);
    ck_assert_uint_eq(n, 1);
    ck_assert_ptr_nonnull(key);
    const gint64 left_s = http_certificate_expires_s(c) - time(NULL);
    ck_assert_int_ge(left_s, 3590);
    ck_assert_int_le(left_s, 3600);
    world_free(&w);
}
END_TEST

/* Of the key in the other form that there is. */
static char *as_pkcs8(const char *pem)
{
    gnutls_x509_privkey_t key;
    const gnutls_datum_t text = {(unsigned char *)pem, (unsigned)strlen(pem)};
    gnutls_datum_t other;
    ck_assert_int_eq(gnutls_x509_privkey_init(&key), 0);
    ck_assert_int_eq(gnutls_x509_privkey_import(key, &text, GNUTLS_X509_FMT_PEM), 0);
    ck_assert_int_eq(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL,
                                                       GNUTLS_PKCS_PLAIN, &other),
                     0);
    gnutls_x509_privkey_deinit(key);
    return pair_text(&other);
}

START_TEST(keys_of_all_forms_are_read)
{
    World w;
    world_new(&w);
    g_auto(Pair) rsa = pair_new_of("rsa", 3600, GNUTLS_PK_RSA, 2048);
    const Pair *const pairs[] = {&w.a, &rsa};
    for (gsize i = 0; i < G_N_ELEMENTS(pairs); i++) {
        g_autofree char *pkcs8 = as_pkcs8(pairs[i]->key);
        /* openssl may write which curve it is before the key. */
        g_autofree char *more = g_strconcat("-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n"
                                            "-----END EC PARAMETERS-----\n",
                                            pairs[i]->key, NULL);
        const char *const keys[] = {pairs[i]->key, pkcs8, more};
        for (gsize j = 0; j < G_N_ELEMENTS(keys); j++) {
            g_autoptr(GError) error = NULL;
            pair_put(w.dir, pairs[i]->certificate, keys[j]);
            g_autoptr(HttpCertificate) c = http_certificate_load(w.dir, &error);
            ck_assert_msg(c != NULL, "%s", error ? error->message : "");
        }
    }
    world_free(&w);
}
END_TEST

START_TEST(chain_is_shown_as_a_whole)
{
    World w;
    world_new(&w);
    gnutls_pcert_st *chain;
    gnutls_privkey_t key;
    unsigned n;
    g_autofree char *two = g_strconcat(w.a.certificate, w.b.certificate, NULL);
    pair_put(w.dir, two, w.a.key);
    g_autoptr(HttpCertificate) c = http_certificate_load(w.dir, NULL);
    ck_assert_ptr_nonnull(c);
    http_certificate_show(c, &chain, &n, &key);
    ck_assert_uint_eq(n, 2);
    world_free(&w);
}
END_TEST

START_TEST(what_is_missing_or_malformed_is_named)
{
    World w;
    world_new(&w);
    pair_put(w.dir, w.a.certificate, NULL);
    refused(&w, "tls.key", "No such file");
    pair_put(w.dir, NULL, w.a.key);
    refused(&w, "tls.crt", "No such file");
    pair_put(w.dir, "", w.a.key);
    refused(&w, "tls.crt", "no file of 1 byte");
    pair_put(w.dir, "none", w.a.key);
    refused(&w, "tls.crt", "no certificate in PEM");
    pair_put(w.dir, w.a.certificate, "none");
    refused(&w, "tls.key", "no private key in PEM");
    pair_put(w.dir, w.a.certificate, w.a.certificate);
    refused(&w, "tls.key", "no private key in PEM");
    world_free(&w);
}
END_TEST

START_TEST(certificate_of_another_key_is_refused)
{
    World w;
    world_new(&w);
    pair_put(w.dir, w.b.certificate, w.a.key);
    refused(&w, "tls.crt", "is not that of tls.key");
    /* The server's own comes first. */
    g_autofree char *turned = g_strconcat(w.b.certificate, w.a.certificate, NULL);
    pair_put(w.dir, turned, w.a.key);
    refused(&w, "tls.crt", "is not that of tls.key");
    world_free(&w);
}
END_TEST

START_TEST(encrypted_key_is_refused)
{
    World w;
    world_new(&w);
    gnutls_x509_privkey_t key;
    const gnutls_datum_t text = {(unsigned char *)w.a.key, (unsigned)strlen(w.a.key)};
    gnutls_datum_t encrypted;
    ck_assert_int_eq(gnutls_x509_privkey_init(&key), 0);
    ck_assert_int_eq(gnutls_x509_privkey_import(key, &text, GNUTLS_X509_FMT_PEM), 0);
    ck_assert_int_eq(gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, "sesame",
                                                       GNUTLS_PKCS_PBES2_AES_256, &encrypted),
                     0);
    g_autofree char *pem = pair_text(&encrypted);
    pair_put(w.dir, w.a.certificate, pem);
    refused(&w, "tls.key", "encrypted");
    gnutls_x509_privkey_deinit(key);
    world_free(&w);
}
END_TEST

START_TEST(expired_one_is_read)
{
    World w;
    world_new(&w);
    g_auto(Pair) old = pair_new("old", -3600);
    pair_put(w.dir, old.certificate, old.key);
    g_autoptr(HttpCertificate) c = http_certificate_load(w.dir, NULL);
    ck_assert_ptr_nonnull(c);
    ck_assert_int_lt(http_certificate_expires_s(c), time(NULL));
    world_free(&w);
}
END_TEST

/* How often the bytes are in writable memory, but for the stack and where `text` itself is; wiped
 * there if asked to. Memory that a sanitizer keeps back counts too, so this is for builds without.
 */
static guint copies_in_memory(const char *text, gsize size, gboolean wipe)
{
    guint found = 0;
    g_autofree char *maps = NULL;
    ck_assert(g_file_get_contents("/proc/self/maps", &maps, NULL, NULL));
    g_auto(GStrv) lines = g_strsplit(maps, "\n", -1);
    const int fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (gsize i = 0; lines[i]; i++) {
        unsigned long from, to;
        char rights[8];
        if (sscanf(lines[i], "%lx-%lx %7s", &from, &to, rights) != 3 || rights[1] != 'w' ||
            strstr(lines[i], "[stack]"))
            continue;
        /* Of its own, which was not there when the maps were read. */
        char *copy =
            mmap(NULL, to - from, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        ck_assert_ptr_ne(copy, MAP_FAILED);
        const ssize_t n = pread(fd, copy, to - from, (off_t)from);
        for (char *at = copy; n > 0 && (at = memmem(at, (gsize)(copy + n - at), text, size));
             at++) {
            char *there = (char *)from + (at - copy);
            if (there == text)
                continue;
            found++;
            if (wipe)
                memset(there, 0, size);
        }
        munmap(copy, to - from);
    }
    close(fd);
    return found;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED TRUE
#else
#define SANITIZED FALSE
#endif

START_TEST(key_is_nowhere_once_it_is_freed)
{
    /* "EC PRIVATE KEY", and "PRIVATE KEY", which openssl makes. */
    for (int pkcs8 = 0; pkcs8 < 2 && !SANITIZED; pkcs8++) {
        World w;
        world_new(&w);
        gnutls_x509_privkey_t key;
        const gnutls_datum_t text = {(unsigned char *)w.a.key, (unsigned)strlen(w.a.key)};
        gnutls_datum_t x, y, k;
        gnutls_ecc_curve_t curve;
        ck_assert_int_eq(gnutls_x509_privkey_init(&key), 0);
        ck_assert_int_eq(gnutls_x509_privkey_import(key, &text, GNUTLS_X509_FMT_PEM), 0);
        ck_assert_int_eq(gnutls_x509_privkey_export_ecc_raw(key, &curve, &x, &y, &k), 0);
        if (pkcs8) {
            char *pem = as_pkcs8(w.a.key);
            g_free(w.a.key);
            w.a.key = pem;
            pair_put(w.dir, w.a.certificate, w.a.key);
        }
        gnutls_x509_privkey_deinit(key);
        /* In the order of files, and that of GnuTLS's numbers; here, they are on the stack. */
        char straight[24], turned[24];
        for (gsize i = 0; i < sizeof(straight); i++)
            straight[i] = turned[sizeof(turned) - 1 - i] =
                (char)k.data[k.size - sizeof(straight) + i];
        gnutls_memset(k.data, 0, k.size);
        /* The first bytes of what was freed are malloc's. */
        const char *line = strchr(w.a.key, '\n') + 1 + 20;
        copies_in_memory(straight, sizeof(straight), TRUE);
        copies_in_memory(turned, sizeof(turned), TRUE);
        copies_in_memory(line, 40, TRUE);
        HttpCertificate *c = http_certificate_load(w.dir, NULL);
        ck_assert_ptr_nonnull(c);
        ck_assert_uint_eq(copies_in_memory(line, 40, FALSE), 0);
        ck_assert_uint_gt(copies_in_memory(turned, sizeof(turned), FALSE), 0);
        http_certificate_unref(c);
        ck_assert_uint_eq(copies_in_memory(line, 40, FALSE), 0);
        ck_assert_uint_eq(copies_in_memory(straight, sizeof(straight), FALSE), 0);
        ck_assert_uint_eq(copies_in_memory(turned, sizeof(turned), FALSE), 0);
        gnutls_free(x.data);
        gnutls_free(y.data);
        gnutls_free(k.data);
        world_free(&w);
    }
}
END_TEST

HARNESS_MAIN("common/http/certificate", pair_of_a_secret_is_read, keys_of_all_forms_are_read,
             chain_is_shown_as_a_whole, what_is_missing_or_malformed_is_named,
             certificate_of_another_key_is_refused, encrypted_key_is_refused, expired_one_is_read,
             key_is_nowhere_once_it_is_freed)
