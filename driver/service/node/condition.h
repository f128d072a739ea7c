/* SPDX-License-Identifier: Apache-2.0 */
/* VolumeCondition, as lists, looks and statistics tell it (CSI 1.12, VOLUME_CONDITION). */
#ifndef HEARTH_DRIVER_SERVICE_NODE_CONDITION_H
#define HEARTH_DRIVER_SERVICE_NODE_CONDITION_H

#include "csi.pb-c.h"
#include "driver/rpc/server.h"

/* `ill` says what is wrong; NULL: nothing, and `well` is told. NULL without memory. */
Csi__V1__VolumeCondition *condition_new(RpcCall *call, const char *ill, const char *well);

#endif
