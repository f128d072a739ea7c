/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of images by ceph-csi's rules, for a StorageClass or a VolumeAttributesClass:
 *
 *     baseIops, maxIops, iopsPerGiB, and the same of reads, writes and bytes per second (Bps)
 *     baseVolSizeBytes
 *
 * The limit is the base, more by perGiB for each whole GiB of the volume above baseVolSizeBytes,
 * when both are given, and never above the maximum. A maximum alone is the limit. What is added to
 * no base means nothing, so perGiB alone is refused (qos_check()).
 */
#ifndef HEARTH_DRIVER_VOLUME_QOS_H
#define HEARTH_DRIVER_VOLUME_QOS_H

#include <glib.h>
#include <jansson.h>
#include "common/error.h"

/* INVALID_ARGUMENT for a perGiB with neither base nor maximum beside it; NULL is fine. */
gboolean qos_check(const json_t *given, GError **error);

/*
 * The limits in force of a volume of `bytes`: an object of "iopsPerSecond", "readBytesPerSecond"
 * and so on, 0 for none; a new reference, or NULL when nothing says any. What `changes` (mutable
 * parameters) says of a limit, by rule or outright, takes the place of what `params` says of it.
 */
json_t *qos_limits(const json_t *params, const json_t *changes, gint64 bytes);

/* Removes from `now` everything about the limits that `changes` names, by rule or outright. */
void qos_forget(json_t *now, const json_t *changes);

#endif
