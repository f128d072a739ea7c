/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a monitor answers. */
#ifndef HEARTH_CACHE_ORIGIN_CEPHFS_CLIENT_MONITORS_H
#define HEARTH_CACHE_ORIGIN_CEPHFS_CLIENT_MONITORS_H

#include "cache/origin/origin.h"

typedef struct CephfsMonitors CephfsMonitors;
CephfsMonitors *cephfs_monitors_new(void);
void cephfs_monitors_unref(CephfsMonitors *m);
/* For how long none has answered, in milliseconds; UINT64_MAX: none was heard from. Has one asked
 * now and then; does not wait. */
uint64_t cephfs_monitors_silent_ms(CephfsMonitors *m, const CephfsOriginConfig *config);

#endif
