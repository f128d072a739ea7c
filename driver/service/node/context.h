/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The volume context: CreateVolume gives it to the node, so that staging needs neither the mgr
 * nor the record. It holds no secret. Names: type, clusterID, cache, cacheQuota
 * (bytes; absent without a quota); warm, readTimeout
 * (absent for none); of CephFS and dir also fsName, rootPath and, for a snapshot itself,
 * backingSnapshot; of RBD pool, radosNamespace, imageName and mkfsOptions; and whom the volume was
 * made for, under the keys of external-provisioner (driver/volume/attributes.h).
 */
#ifndef HEARTH_DRIVER_SERVICE_NODE_CONTEXT_H
#define HEARTH_DRIVER_SERVICE_NODE_CONTEXT_H

#include <glib.h>
#include "driver/backend/backend.h"
#include "driver/volume/record.h"

#define CONTEXT_MAX 16

typedef struct ContextPair {
    const char *name;
    char *value; /* see context_clear() */
} ContextPair;

/* Fills pairs[CONTEXT_MAX]; the number of them. */
gsize context_of(const VolumeId *id, const VolumeRecord *record, const BackendVolume *volume,
                 ContextPair *pairs);
void context_clear(ContextPair *pairs, gsize n);

/*
 * The first name that `given` has with another value, or NULL. Other names belong to the
 * CO and are ignored.
 */
const char *context_difference(const ContextPair *pairs, gsize n, GHashTable *given);

/* A map field of a request as a hash table of borrowed strings. */
#define CONTEXT_TABLE(entries, n)                                                                  \
    ({                                                                                             \
        GHashTable *table_ = g_hash_table_new(g_str_hash, g_str_equal);                            \
        for (gsize i_ = 0; i_ < (n); i_++)                                                         \
            g_hash_table_insert(table_, (entries)[i_]->key, (entries)[i_]->value);                 \
        table_;                                                                                    \
    })

#endif
