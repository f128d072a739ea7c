/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Volume capabilities (CSI 1.12, VolumeCapability): whether a list is well formed, and whether
 * volumes of a type can do what it asks. Directories and subvolumes are file systems that any
 * number of nodes can mount, so every access mode is fine and block access is not. An image is a
 * device: it can be given as one in every mode, but a file system on it may be written on one node
 * only. Mount flags are the node's.
 */
#ifndef HEARTH_DRIVER_SERVICE_CAPABILITY_H
#define HEARTH_DRIVER_SERVICE_CAPABILITY_H

#include <glib.h>
#include "csi.pb-c.h"
#include "driver/volume/id.h"

/* INVALID_ARGUMENT: an empty list, or an element without an access type or a known access mode. */
gboolean capability_check_form(Csi__V1__VolumeCapability *const *list, gsize n, GError **error);

/* A well-formed list. INVALID_ARGUMENT names what volumes of the type cannot do. */
gboolean capability_check_supported(Csi__V1__VolumeCapability *const *list, gsize n,
                                    VolumeType type, GError **error);

/* The group a mount's files are to be for, -1 without one. INVALID_ARGUMENT. */
gboolean capability_mount_group(const Csi__V1__VolumeCapability *capability, gint64 *group,
                                GError **error);
/* Whether every element only reads. */
gboolean capability_reads_only(Csi__V1__VolumeCapability *const *list, gsize n);

#endif
