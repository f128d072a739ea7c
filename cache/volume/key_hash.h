/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A slow hash of the key of a Ceph user: it recognizes the key and does not reveal it.
 * "pbkdf2-sha256$<iterations>$<salt>$<hash>", the last two in base64. Both calls take some 0.2 s of
 * CPU, on purpose.
 */
#ifndef HEARTH_CACHE_VOLUME_KEY_HASH_H
#define HEARTH_CACHE_VOLUME_KEY_HASH_H

#include <glib.h>

/* Of a new salt; the caller's. */
char *key_hash_new(const char *key);
/* FALSE also for what is no such text. */
gboolean key_hash_matches(const char *hash, const char *key);

#endif
