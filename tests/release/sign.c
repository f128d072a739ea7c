/* SPDX-License-Identifier: Apache-2.0 */
/* sign KEY < FILE: the signature of FILE by ECDSA on P-256 with SHA-256, in base64, as `cosign
 * sign-blob` and `openssl dgst -sha256 -sign` make it, but that it follows from key and file alone
 * (RFC 6979): a release that is made twice is the same. KEY is PEM, as `openssl ecparam -name
 * prime256v1 -genkey` makes it; its passphrase, if it has one, is in RELEASE_PASSPHRASE. OpenSSL
 * signs so only from 3.2 on.
 */
#include <gnutls/abstract.h>
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>

static int digest_input(unsigned char digest[32])
{
    unsigned char buffer[65536];
    gnutls_hash_hd_t hash;
    size_t got;
    int ret = gnutls_hash_init(&hash, GNUTLS_DIG_SHA256);

    while (ret == 0 && (got = fread(buffer, 1, sizeof buffer, stdin)) > 0)
        ret = gnutls_hash(hash, buffer, got);
    if (ret == 0)
        gnutls_hash_deinit(hash, digest);
    return ret != 0 || ferror(stdin) ? -1 : 0;
}

static int load_key(const char *path, gnutls_privkey_t key)
{
    gnutls_datum_t pem = {NULL, 0};
    gnutls_ecc_curve_t curve;
    int ret = gnutls_load_file(path, &pem);

    if (ret == 0)
        ret = gnutls_privkey_import_x509_raw(key, &pem, GNUTLS_X509_FMT_PEM,
                                             getenv("RELEASE_PASSPHRASE"), 0);
    if (pem.data != NULL) {
        gnutls_memset(pem.data, 0, pem.size);
        gnutls_free(pem.data);
    }
    if (ret == 0 && (gnutls_privkey_export_ecc_raw2(key, &curve, NULL, NULL, NULL, 0) != 0 ||
                     curve != GNUTLS_ECC_CURVE_SECP256R1)) {
        fprintf(stderr,
                "sign: %s is no key on the curve P-256; make one by openssl ecparam -name "
                "prime256v1 -genkey -noout\n",
                path);
        return -1;
    }
    if (ret != 0)
        fprintf(stderr, "sign: %s: %s\n", path, gnutls_strerror(ret));
    return ret;
}

int main(int argc, char **argv)
{
    unsigned char digest[32];
    gnutls_datum_t hash = {digest, sizeof digest}, signature, text;
    gnutls_privkey_t key;
    int ret;

    if (argc != 2) {
        fprintf(stderr, "Usage: sign KEY < FILE\n");
        return 2;
    }
    if (gnutls_privkey_init(&key) != 0 || load_key(argv[1], key) != 0)
        return 1;
    if (digest_input(digest) != 0) {
        fprintf(stderr, "sign: cannot read what is to be signed\n");
        return 1;
    }
    ret = gnutls_privkey_sign_hash2(key, GNUTLS_SIGN_ECDSA_SHA256, GNUTLS_PRIVKEY_FLAG_REPRODUCIBLE,
                                    &hash, &signature);
    if (ret == 0)
        ret = gnutls_base64_encode2(&signature, &text);
    if (ret != 0) {
        fprintf(stderr, "sign: %s\n", gnutls_strerror(ret));
        return 1;
    }
    return printf("%.*s\n", (int)text.size, text.data) < 0 || fflush(stdout) != 0;
}
