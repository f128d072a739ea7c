/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between hearthd and its clients: one JSON object for each SOCK_SEQPACKET message, with
 * at most one file descriptor. docs/design/protocol.md has the operations, wire_keys.h their names.
 */
#ifndef HEARTH_PROTO_WIRE_H
#define HEARTH_PROTO_WIRE_H

#include <glib.h>
#include <jansson.h>
#include "common/autofd.h"

#define WIRE_DEFAULT_SOCKET "/run/hearth/hearthd.sock"
/* Names of volumes that are Hearth's own (cache/volume/own_names.h): those that serve the mounts of
 * a dataset, with its 32 hex digits, and those that a CacheWarmup has open. */
#define WIRE_DATASET_PREFIX "dataset-"
#define WIRE_DATASET_DIGITS 32
#define WIRE_WARMUP_PREFIX "warmup-"
/* Copies the ID of the dataset in the name of a volume to `dataset`. The name is dataset-<ID>, or
 * dataset-<ID>-<number> for a further user and key. FALSE: it is neither. */
gboolean wire_dataset_of(const char *volume, char dataset[WIRE_DATASET_DIGITS + 1]);
static inline gboolean wire_is_own_name(const char *volume)
{
    return g_str_has_prefix(volume, WIRE_DATASET_PREFIX) ||
           g_str_has_prefix(volume, WIRE_WARMUP_PREFIX);
}
#define WIRE_MAX_MESSAGE (128 * 1024)
#define WIRE_SEND_TIMEOUT_MS 10000

/*
 * Makes jansson overwrite what it frees, so that no secret outlives its message in memory. Call it
 * first in main(), before any JSON; a string of json_dumps() is still freed by free().
 */
void wire_wipe_freed_json(void);

/*
 * Connects. Errors: G_IO_ERROR (NOT_FOUND, CONNECTION_REFUSED, ..., TIMED_OUT when the process
 * accepts nothing for WIRE_SEND_TIMEOUT_MS), message names the path.
 * Returns the descriptor (CLOEXEC) or -1.
 */
int wire_connect(const char *path, GError **error);
/*
 * Listens: first connects, to refuse a live socket; removes the file only on ECONNREFUSED;
 * mode 0600. Makes the directory (0700) when there is none. Returns the descriptor or -1.
 */
int wire_listen(const char *path, GError **error);
/* Accepts: -1 with G_IO_ERROR. The descriptor is CLOEXEC, its buffers hold a whole message. */
int wire_accept(int listener, GError **error);

/*
 * Sends one message, with descriptor `fd` unless it is -1 (borrowed). A peer that does not read
 * for WIRE_SEND_TIMEOUT_MS is an error, TIMED_OUT. MESSAGE_TOO_LARGE past WIRE_MAX_MESSAGE.
 */
gboolean wire_send(int socket, const json_t *message, int fd, GError **error);
/*
 * Receives one message; *fd gets the descriptor or -1 (caller's; fd may be NULL: then a descriptor
 * received is closed). timeout_ms -1: no limit. NULL with error G_IO_ERROR_CLOSED at end of
 * connection, TIMED_OUT, INVALID_DATA for what is no JSON object, too large, or carries more than
 * one descriptor. Buffers that held the message are wiped.
 */
json_t *wire_receive(int socket, int *fd, int timeout_ms, GError **error);

/* Whether what "state" gave (docs/design/protocol.md) holds all that the next hearthd needs. */
gboolean wire_state_is_left(int fd);

/*
 * One request and its reply. NULL on transport errors as above, or when the reply is not ok:
 * then domain WIRE_ERROR, with the code of the list above and the peer's text.
 */
json_t *wire_call(int socket, const json_t *request, int send_fd, int *receive_fd, int timeout_ms,
                  GError **error);

/* The reply to a request that was sent, as above. After TIMED_OUT it may be asked for again. */
json_t *wire_reply(int socket, int *receive_fd, int timeout_ms, GError **error);

#define WIRE_ERROR (wire_error_quark())
GQuark wire_error_quark(void);
typedef enum WireError {
    WIRE_ERROR_INTERNAL,
    WIRE_ERROR_INVALID_ARGUMENT,
    WIRE_ERROR_NOT_FOUND,
    WIRE_ERROR_ALREADY_EXISTS,
    WIRE_ERROR_FAILED_PRECONDITION,
    WIRE_ERROR_UNAVAILABLE,
    WIRE_ERROR_PERMISSION_DENIED,
    WIRE_ERROR_DEADLINE_EXCEEDED,
    WIRE_ERROR_ABORTED,
    WIRE_ERROR_UNIMPLEMENTED,
    WIRE_ERROR_RESOURCE_EXHAUSTED,
} WireError;
const char *wire_error_name(WireError code);
/* Sets the error. Returns FALSE, so that a caller can fail with `return wire_fail(...)`. */
gboolean wire_fail(GError **error, WireError code, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* The reply that reports `error`, whose domain is WIRE_ERROR or G_IO_ERROR. */
json_t *wire_error_reply(const GError *error);

#endif
