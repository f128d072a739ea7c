/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One log line a call, at the edge: method, code, ms, request (rpc_call_id()), volume (its ID, or
 * the name of one to create) and the error. Never a request's or response's body. Probes and
 * queries of capabilities, which come every few seconds, are logged as debug while they succeed.
 */
#ifndef HEARTH_DRIVER_SERVICE_CALL_LOG_H
#define HEARTH_DRIVER_SERVICE_CALL_LOG_H

#include "driver/rpc/server.h"
#include "common/metrics/timings.h"

typedef struct CallLog CallLog;

CallLog *call_log_new(void);
/* After the RPC server has stopped. */
void call_log_free(CallLog *log);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(CallLog, call_log_free)

/* Of all calls, by method ("/csi.v1.Node/NodePublishVolume") and code. Borrowed. */
Timings *call_log_timings(const CallLog *log);

/* rpc_server_add() of the table, with a line for every call of its handlers. */
void call_log_add(CallLog *log, RpcServer *server, const RpcMethod *methods, void *service);

/* gRPC's name of a code, "OK" for 0. */
const char *call_log_code_name(int code);

#endif
