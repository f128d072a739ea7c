/* SPDX-License-Identifier: Apache-2.0 */
/* The table of operations. */
#include "cache/origin/reconnect/calls.h"

static OriginOps all = {
    .type = "cephfs",
    .after_dots = 2,
    .destroy = reconnect_destroy,
    .listen = reconnect_listen,
    .session = reconnect_session,
    .reach = reconnect_reach,
    .vouches = reconnect_vouches,
    .silent_ms = reconnect_silent_ms,
    .rests = reconnect_rests,
};

static void set_all(void)
{
    reconnect_node_ops(&all);
    reconnect_file_ops(&all);
    reconnect_name_ops(&all);
}

Origin *origin_reconnect_new(Origin *first, const ReconnectOps *ops, void *data)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, set_all);
    return reconnect_begin(&all, first, ops, data);
}
