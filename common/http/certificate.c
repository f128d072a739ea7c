/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/certificate.h"
#include <errno.h>
#include <fcntl.h>
#include <gnutls/x509.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/error.h"

/* A Secret has 1 MiB at most. */
#define FILE_MAX (1024 * 1024)
#define CHAIN_MAX 16
#define FIX "mount a Secret of type kubernetes.io/tls there"

struct HttpCertificate {
    guint refs;
    gnutls_pcert_st chain[CHAIN_MAX];
    unsigned chain_length;
    gnutls_privkey_t key;
    gint64 expires_s;
};

G_GNUC_PRINTF(2, 3) static gboolean fail(GError **error, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_autofree char *text = g_strdup_vprintf(format, values);
    va_end(values);
    return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, "%s; " FIX, text);
}

static void contents_clear(gnutls_datum_t *contents)
{
    if (contents->data)
        explicit_bzero(contents->data, contents->size);
    g_clear_pointer(&contents->data, g_free);
    contents->size = 0;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(gnutls_datum_t, contents_clear)

/* Of the size it has beforehand, since a buffer that grows leaves copies behind. */
static gboolean read_file(const char *path, gnutls_datum_t *contents, GError **error)
{
    struct stat st;
    gsize size = 0;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(error, "%s: %s", path, g_strerror(errno));
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size == 0 || st.st_size > FILE_MAX) {
        close(fd);
        return fail(error, "%s: no file of 1 byte to 1 MiB", path);
    }
    contents->size = (unsigned)st.st_size;
    contents->data = g_malloc(contents->size);
    while (size < contents->size) {
        const ssize_t n = read(fd, contents->data + size, contents->size - size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        size += (gsize)n;
    }
    close(fd);
    return size == contents->size ? TRUE : fail(error, "%s: it changes while it is read", path);
}

/* ---- the chain ---- */

static gboolean same_key(gnutls_x509_crt_t certificate, gnutls_x509_privkey_t key)
{
    unsigned char of_certificate[32], of_key[32];
    size_t certificate_size = sizeof(of_certificate), key_size = sizeof(of_key);
    return gnutls_x509_crt_get_key_id(certificate, GNUTLS_KEYID_USE_SHA256, of_certificate,
                                      &certificate_size) == 0 &&
           gnutls_x509_privkey_get_key_id(key, GNUTLS_KEYID_USE_SHA256, of_key, &key_size) == 0 &&
           certificate_size == key_size && memcmp(of_certificate, of_key, key_size) == 0;
}

static gboolean take_chain(HttpCertificate *c, const char *path, gnutls_x509_privkey_t key,
                           GError **error)
{
    g_auto(gnutls_datum_t) text = {0};
    gnutls_x509_crt_t *list = NULL;
    unsigned n = 0;
    if (!read_file(path, &text, error))
        return FALSE;
    int rc = gnutls_x509_crt_list_import2(&list, &n, &text, GNUTLS_X509_FMT_PEM, 0);
    if (rc < 0)
        return fail(error, "%s: no certificate in PEM: %s", path, gnutls_strerror(rc));
    const gboolean pair = same_key(list[0], key), fits = n <= CHAIN_MAX;
    c->expires_s = gnutls_x509_crt_get_expiration_time(list[0]);
    for (unsigned i = 0; pair && fits && rc >= 0 && i < n; i++) {
        rc = gnutls_pcert_import_x509(&c->chain[i], list[i], 0);
        c->chain_length += rc >= 0;
    }
    for (unsigned i = 0; i < n; i++)
        gnutls_x509_crt_deinit(list[i]);
    gnutls_free(list);
    if (!pair)
        return fail(error, "%s: its first certificate is not that of " HTTP_KEY_FILE, path);
    if (!fits)
        return fail(error, "%s: more than %d certificates", path, CHAIN_MAX);
    return rc >= 0 ? TRUE : fail(error, "%s: %s", path, gnutls_strerror(rc));
}

/* ---- the key ---- */

/*
 * The PEM is taken off here: GnuTLS (3.7), given PEM of PKCS #8, frees what it decoded without
 * wiping it. der->data is of g_malloc().
 */
static gboolean decode(const gnutls_datum_t *text, gnutls_datum_t *der)
{
    static const char *const kinds[] = {"PRIVATE KEY", "EC PRIVATE KEY", "RSA PRIVATE KEY"};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++) {
        g_autofree char *begin = g_strdup_printf("-----BEGIN %s-----", kinds[i]);
        const guchar *from = memmem(text->data, text->size, begin, strlen(begin));
        const gsize at = from ? (gsize)(from - text->data) + strlen(begin) : 0;
        const guchar *to = from ? memmem(text->data + at, text->size - at, "-----END", 8) : NULL;
        gint state = 0;
        guint save = 0;
        if (!to)
            continue;
        der->data = g_malloc(text->size);
        der->size = (unsigned)g_base64_decode_step(
            (const char *)text->data + at, (gsize)(to - text->data) - at, der->data, &state, &save);
        return TRUE;
    }
    return FALSE;
}

static gboolean read_key(const char *path, gnutls_x509_privkey_t key, GError **error)
{
    g_auto(gnutls_datum_t) text = {0}, der = {0};
    if (!read_file(path, &text, error))
        return FALSE;
    if (memmem(text.data, text.size, "ENCRYPTED", 9))
        return fail(error, "%s: the key is encrypted", path);
    if (!decode(&text, &der))
        return fail(error, "%s: no private key in PEM", path);
    const int rc = gnutls_x509_privkey_import2(key, &der, GNUTLS_X509_FMT_DER, NULL, 0);
    return rc >= 0 ? TRUE : fail(error, "%s: no private key: %s", path, gnutls_strerror(rc));
}

static gboolean take(HttpCertificate *c, const char *directory, gnutls_x509_privkey_t key,
                     GError **error)
{
    g_autofree char *certificate_path = g_build_filename(directory, HTTP_CERTIFICATE_FILE, NULL);
    g_autofree char *key_path = g_build_filename(directory, HTTP_KEY_FILE, NULL);
    if (!read_key(key_path, key, error) || !take_chain(c, certificate_path, key, error))
        return FALSE;
    const int rc = gnutls_privkey_import_x509(c->key, key, GNUTLS_PRIVKEY_IMPORT_COPY);
    return rc >= 0 ? TRUE : fail(error, "%s: %s", key_path, gnutls_strerror(rc));
}

HttpCertificate *http_certificate_load(const char *directory, GError **error)
{
    g_autoptr(HttpCertificate) c = g_new0(HttpCertificate, 1);
    gnutls_x509_privkey_t key = NULL;
    c->refs = 1;
    if (gnutls_privkey_init(&c->key) < 0 || gnutls_x509_privkey_init(&key) < 0)
        g_error("GnuTLS is out of memory");
    const gboolean good = take(c, directory, key, error);
    gnutls_x509_privkey_deinit(key);
    return good ? g_steal_pointer(&c) : NULL;
}

HttpCertificate *http_certificate_ref(HttpCertificate *c)
{
    c->refs++;
    return c;
}

void http_certificate_unref(HttpCertificate *c)
{
    if (!c || --c->refs > 0)
        return;
    for (unsigned i = 0; i < c->chain_length; i++)
        gnutls_pcert_deinit(&c->chain[i]);
    gnutls_privkey_deinit(c->key);
    g_free(c);
}

gint64 http_certificate_expires_s(const HttpCertificate *c)
{
    return c->expires_s;
}

void http_certificate_show(HttpCertificate *c, gnutls_pcert_st **chain, unsigned *chain_length,
                           gnutls_privkey_t *key)
{
    *chain = c->chain;
    *chain_length = c->chain_length;
    *key = c->key;
}
