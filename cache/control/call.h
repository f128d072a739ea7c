/* SPDX-License-Identifier: Apache-2.0 */
/* One request while it is handled, for the operations. */
#ifndef HEARTH_CACHE_CONTROL_CALL_H
#define HEARTH_CACHE_CONTROL_CALL_H

#include "cache/control/ops.h"

typedef struct Call {
    Control *control;
    const ConnectionPeer *peer;
    const json_t *request;
    int fd;       /* a handler that keeps it steals it */
    int reply_fd; /* likewise to send */
    json_t *reply;
} Call;

/* Members of the request: NULL or 0 when there is none. */
static inline const char *call_string(const Call *call, const char *name)
{
    return json_string_value(json_object_get(call->request, name));
}

static inline uint64_t call_count(const Call *call, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(call->request, name));
}

/* Adds all members of an object, which it takes over, to the reply. */
static inline void call_add(Call *call, json_t *members)
{
    json_auto_t *owned = members;
    json_object_update(call->reply, owned);
}

#endif
