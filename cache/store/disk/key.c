/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of objects. The id is a hash of everything that makes content what it is, packed without
 * padding and little-endian so that every build gives one file the same name.
 *
 * It is a cryptographic one: a tenant chooses size and times of its own files, and must not find
 * any with which one of them has the name of another tenant's object. XXH3, which costs a tenth,
 * can be solved for that.
 */
#include "cache/store/disk/key.h"
#include <endian.h>
#include <gnutls/crypto.h>
#include <string.h>
#include <xxhash.h>

typedef struct __attribute__((packed)) PackedKey {
    uint8_t space[24];
    uint64_t ino, version, size, mtime_sec;
    uint32_t mtime_nsec;
} PackedKey;

void object_key_init(ObjectKey *key, const Origin *origin, const OriginAttr *attr)
{
    memset(key, 0, sizeof(*key));
    memcpy(key->space, origin->space, sizeof(key->space));
    key->ino = attr->st.st_ino;
    key->version = attr->version;
    key->size = attr->st.st_size < 0 ? 0 : (uint64_t)attr->st.st_size;
    key->mtime_sec = attr->st.st_mtim.tv_sec;
    key->mtime_nsec = (uint32_t)attr->st.st_mtim.tv_nsec;
}

static void store_hash(XXH128_hash_t hash, uint8_t bytes[16])
{
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    memcpy(bytes, canonical.digest, 16);
}

void object_key_id(const ObjectKey *key, ObjectId *id)
{
    PackedKey packed = {
        .ino = htole64(key->ino),
        .version = htole64(key->version),
        .size = htole64(key->size),
        .mtime_sec = htole64((uint64_t)key->mtime_sec),
        .mtime_nsec = htole32(key->mtime_nsec),
    };
    uint8_t digest[32];
    memcpy(packed.space, key->space, sizeof(packed.space));
    if (gnutls_hash_fast(GNUTLS_DIG_SHA256, &packed, sizeof(packed), digest) < 0)
        g_error("no SHA-256 in GnuTLS");
    memcpy(id->bytes, digest, sizeof(id->bytes));
}

void object_id_hex(const ObjectId *id, char hex[OBJECT_ID_HEX + 1])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < 16; i++) {
        hex[2 * i] = digits[id->bytes[i] >> 4];
        hex[2 * i + 1] = digits[id->bytes[i] & 15];
    }
    hex[OBJECT_ID_HEX] = '\0';
}

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

gboolean object_id_parse(const char *hex, ObjectId *id)
{
    for (int i = 0; i < 16; i++) {
        int high = hex_digit(hex[2 * i]);
        int low = high < 0 ? -1 : hex_digit(hex[2 * i + 1]);
        if (low < 0)
            return FALSE;
        id->bytes[i] = (uint8_t)(high << 4 | low);
    }
    return hex[OBJECT_ID_HEX] == '\0';
}

int64_t object_id_seal(const ObjectId *id)
{
    uint32_t bits;
    memcpy(&bits, id->bytes + 8, sizeof(bits));
    return le32toh(bits) & 0x7fffffff; /* file systems of 32-bit time end there */
}

guint object_id_hash(gconstpointer id)
{
    guint hash;
    memcpy(&hash, ((const ObjectId *)id)->bytes, sizeof(hash));
    return hash;
}

gboolean object_id_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(ObjectId)) == 0;
}

void tag_id(const char *tag, TagId *id)
{
    if (!tag)
        tag = "";
    store_hash(XXH3_128bits(tag, strlen(tag)), id->bytes);
}
