/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cluster/ceph_key.h"
#include <dlfcn.h>
#include <string.h>

/* Type (2 bytes), time (8), length (2), all little-endian; then the secret. */
#define HEADER 12
#define AES_SECRET 16
#define AES256K_SECRET 32

static CephKeyType type_of(const guchar *raw, gsize length)
{
    if (length <= HEADER || (gsize)(raw[10] | raw[11] << 8) != length - HEADER || raw[1])
        return CEPH_KEY_BAD;
    if (raw[0] == 1 && length == HEADER + AES_SECRET)
        return CEPH_KEY_AES;
    return raw[0] == 2 && length == HEADER + AES256K_SECRET ? CEPH_KEY_AES256K : CEPH_KEY_BAD;
}

/* Ceph prints into the log what it cannot decode, and GLib's decoder passes over what is not
 * base64. */
static gboolean encodes_to(const guchar *raw, gsize length, const char *text)
{
    char *again = g_base64_encode(raw, length);
    gboolean same = strcmp(again, text) == 0;
    explicit_bzero(again, strlen(again));
    g_free(again);
    return same;
}

CephKeyType ceph_key_type(const char *text)
{
    gsize length;
    guchar *raw = g_base64_decode(text, &length);
    CephKeyType type = encodes_to(raw, length, text) ? type_of(raw, length) : CEPH_KEY_BAD;
    explicit_bzero(raw, length);
    g_free(raw);
    return type;
}

gboolean ceph_version_has_aes256k(CephVersion v)
{
    if (v.major == 19 || v.major == 20)
        return v.minor > 2 || (v.minor == 2 && v.patch >= (v.major == 19 ? 6 : 4));
    return v.major > 20;
}

gboolean ceph_library_version(CephVersion *version)
{
    /* As <cephfs/libcephfs.h> declares it. Not linked: hearth-csi has no other use of libcephfs. */
    const char *(*ceph_version)(int *major, int *minor, int *patch);
    void *library = dlopen("libcephfs.so.2", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "ceph_version") : NULL;
    if (!symbol)
        return FALSE;
    memcpy(&ceph_version, &symbol, sizeof(symbol));
    ceph_version(&version->major, &version->minor, &version->patch);
    return TRUE;
}
