/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys of Ceph users, as `ceph auth print-key` prints them, and which libraries know them. Source:
 * Ceph, src/auth/Crypto.cc (CryptoKey::encode), src/include/ceph_fs.h (CEPH_CRYPTO_*).
 */
#ifndef HEARTH_DRIVER_CLUSTER_CEPH_KEY_H
#define HEARTH_DRIVER_CLUSTER_CEPH_KEY_H

#include <glib.h>

/* The second is made since Ceph 19.2.6, 20.2.4 and 21 (CVE-2025-30156). */
typedef enum CephKeyType { CEPH_KEY_BAD, CEPH_KEY_AES, CEPH_KEY_AES256K } CephKeyType;

/* CEPH_KEY_BAD: it is no key, or of a type that is not known here. */
CephKeyType ceph_key_type(const char *text);

typedef struct CephVersion {
    int major, minor, patch;
} CephVersion;

#define CEPH_VERSIONS_WITH_AES256K "19.2.6, 20.2.4 or 21"
gboolean ceph_version_has_aes256k(CephVersion version);
/* That of the libcephfs that is installed. FALSE: there is none. It stays loaded. */
gboolean ceph_library_version(CephVersion *version);

#endif
