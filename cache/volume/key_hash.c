/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/volume/key_hash.h"
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <string.h>

#define NAME "pbkdf2-sha256"
#define ITERATIONS 600000
/* Bounds for a hash that is read: fewer iterations are not from this program, more would keep
 * hearthd busy. */
#define LEAST_ITERATIONS 1000
#define MOST_ITERATIONS 10000000
#define SALT_BYTES 16
#define HASH_BYTES 32

static gboolean derive_hash(const char *key, const guchar salt[SALT_BYTES], unsigned iterations,
                            guchar hash[HASH_BYTES])
{
    const gnutls_datum_t secret = {(guchar *)key, (unsigned)strlen(key)},
                         salted = {(guchar *)salt, SALT_BYTES};
    return gnutls_pbkdf2(GNUTLS_MAC_SHA256, &secret, &salted, iterations, hash, HASH_BYTES) == 0;
}

char *key_hash_new(const char *key)
{
    guchar salt[SALT_BYTES], hash[HASH_BYTES];
    if (gnutls_rnd(GNUTLS_RND_NONCE, salt, sizeof(salt)) != 0 ||
        !derive_hash(key, salt, ITERATIONS, hash))
        g_error("GnuTLS makes no hash of a key");
    g_autofree char *salt_text = g_base64_encode(salt, sizeof(salt));
    g_autofree char *hash_text = g_base64_encode(hash, sizeof(hash));
    return g_strdup_printf(NAME "$%d$%s$%s", ITERATIONS, salt_text, hash_text);
}

/* FALSE unless the text is n bytes in the form that key_hash_new() writes. */
static gboolean decode_base64(const char *text, guchar *bytes, gsize n)
{
    gsize length;
    g_autofree guchar *decoded = g_base64_decode(text, &length);
    if (length != n)
        return FALSE;
    memcpy(bytes, decoded, n);
    g_autofree char *again = g_base64_encode(bytes, n);
    return strcmp(again, text) == 0;
}

gboolean key_hash_matches(const char *text, const char *key)
{
    guchar salt[SALT_BYTES], hash[HASH_BYTES], of_key[HASH_BYTES];
    guint64 iterations;
    g_auto(GStrv) part = g_strsplit(text, "$", 5);
    return g_strv_length(part) == 4 && strcmp(part[0], NAME) == 0 &&
           g_ascii_string_to_unsigned(part[1], 10, LEAST_ITERATIONS, MOST_ITERATIONS, &iterations,
                                      NULL) &&
           decode_base64(part[2], salt, SALT_BYTES) && decode_base64(part[3], hash, HASH_BYTES) &&
           derive_hash(key, salt, (unsigned)iterations, of_key) &&
           gnutls_memcmp(hash, of_key, HASH_BYTES) == 0;
}
