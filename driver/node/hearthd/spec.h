/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A volume's spec: the "open" request to hearthd (proto/wire.h, without its op), made of a
 * NodeStageVolume request. It holds the Ceph key: free it with node_spec_free(), or declare it as
 * node_spec_auto_t.
 */
#ifndef HEARTH_DRIVER_NODE_HEARTHD_SPEC_H
#define HEARTH_DRIVER_NODE_HEARTHD_SPEC_H

#include <glib.h>
#include <jansson.h>
#include "common/error.h"
#include "driver/node/hearthd/crush_location.h"
#include "driver/volume/attributes.h"

/* What a spec is made of. Borrowed. */
typedef struct NodeSpecSource {
    const VolumeAttributes *attributes;
    GHashTable *secrets;     /* name -> value */
    const char *config_path; /* the cluster file: monitors, the configuration of Ceph clients */
    CrushLocation *crush_location; /* of this node, for readAffinity; NULL: not known */
    gboolean read_only;
} NodeSpecSource;

/* INVALID_ARGUMENT, or FAILED_PRECONDITION for the cluster file. */
json_t *node_spec_new(const NodeSpecSource *source, GError **error);
/* Takes over from `newer` what may change while a volume is staged: the quota, and user and key.
 * Wipes the old key. TRUE: something differs. */
gboolean node_spec_update(json_t *spec, const json_t *newer);
/* Overwrites every string, then frees. It must have no other holder. NULL is fine. */
void node_spec_free(json_t *spec);

static inline void node_spec_clear(json_t **spec)
{
    node_spec_free(*spec);
}

/* Declare with an initial value: `node_spec_auto_t *spec = ...;` */
#define node_spec_auto_t json_t __attribute__((cleanup(node_spec_clear)))

/* Replaces values of the context by mutable parameters (volume/mutable.h). */
void node_spec_change(json_t *spec, const json_t *changes);

/*
 * Whether both mean the same bytes, seen the same way. How to reach them (monitors, user and key,
 * time limit) and how many to keep may differ: keys are rotated, monitors move and quotas change
 * while a volume is staged.
 */
gboolean node_spec_same_volume(const json_t *a, const json_t *b);

/* Whether both are the same Ceph user with the same key. */
gboolean node_spec_same_authority(const json_t *a, const json_t *b);
/* And whether their reads wait equally long for Ceph. */
gboolean node_spec_same_reads(const json_t *a, const json_t *b);

/* "10Gi", "500M", "1048576": Kubernetes' quantities without fractions. */
gboolean node_spec_parse_quantity(const char *text, gint64 *bytes);

#endif
