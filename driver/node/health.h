/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a mounted volume works, for CSI's VolumeCondition: that hearthd is there and serves it,
 * that Ceph answers for it, that its root is still there. Each is asked afresh and for a bounded
 * time; what is cached says nothing about health.
 */
#ifndef HEARTH_DRIVER_NODE_HEALTH_H
#define HEARTH_DRIVER_NODE_HEALTH_H

#include "driver/node/staging.h"

/*
 * *ill: what is wrong and the mend, the caller's; NULL: all is well, and *st is its usage.
 * `device`: it is published as one, so there is no root and no usage. NOT_FOUND: the volume is not
 * mounted at `path`.
 */
gboolean health_look(Staging *s, const char *volume, const char *path, gboolean device,
                     gint64 timeout_ms, struct statvfs *st, char **ill, GError **error);

#endif
