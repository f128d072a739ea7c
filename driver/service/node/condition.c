/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/condition.h"

Csi__V1__VolumeCondition *condition_new(RpcCall *call, const char *ill, const char *well)
{
    Csi__V1__VolumeCondition *c = rpc_alloc(call, sizeof(*c));
    if (!c)
        return NULL;
    csi__v1__volume_condition__init(c);
    c->abnormal = ill != NULL;
    c->message = rpc_strdup(call, ill ? ill : well);
    return c->message ? c : NULL;
}
