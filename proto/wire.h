/* SPDX-License-Identifier: Apache-2.0 */
/* clang-format off */
/*
 * The control protocol of hearthd: JSON objects, one per SOCK_SEQPACKET message, with at most one
 * file descriptor by SCM_RIGHTS. Client: hearth-csi --role=node, hearthctl. One request is
 * answered by one reply before the next is read from the same connection; a client may open
 * several connections. The socket is mode 0600; the server also checks SO_PEERCRED for uid 0 or
 * its own.
 *
 * Request  {"op": "...", ...}
 * Reply    {"ok": true, ...} or {"ok": false, "code": "<CODE>", "error": "<what and the mend>"}
 *          CODE: INVALID_ARGUMENT NOT_FOUND ALREADY_EXISTS FAILED_PRECONDITION UNAVAILABLE
 *                PERMISSION_DENIED DEADLINE_EXCEEDED ABORTED INTERNAL UNIMPLEMENTED
 *                (gRPC's names, so the node plugin passes them on)
 *
 * op "hello"   -> {"version": "0.1.0", "pid": N, "cacheDir": "...", "protocol": 1}
 * op "open"    {"volume": ID, "origin": ORIGIN, "cache": bool, "cacheQuota": bytes,
 *               "readOnly": bool, "warm": bool, "mountGroup": gid} -> {"attached": bool}
 *              Connects to the origin and checks that rootPath exists; one that is a dataset this
 *              node knows is opened without Ceph when that does not answer (cache/volume/offline.h). Repeating it with the same
 *              spec is fine; with another, ALREADY_EXISTS, unless the mount of the first is gone:
 *              then it is opened anew. Another "userKey" is tried first. "monitors", "userKey" and "timeoutSec" say how to reach the
 *              same bytes, "cacheQuota" how many may be kept, and "mountGroup" for which group
 *              all files are (absent: as they are in the origin): they may differ, and the newer
 *              count at once. "cache" (default true), "cacheQuota" (0: none), "readOnly" (false)
 *              and "warm" (false: true begins a job as "warm" does when a mount is attached, whose
 *              failure is only logged) may be absent. A volume that was opened on a
 *              connection that ends before "attach" is closed again. IDs that begin with "dataset-" or "warmup-" are
 *              Hearth's own: INVALID_ARGUMENT for what is no cached snapshot. The former serves the
 *              fill layer of the dataset it is named by, the latter is never attached.
 *   ORIGIN     {"type": "cephfs", "clusterID": s, "monitors": [s...], "fsName": s,
 *               "rootPath": s, "userID": s, "userKey": s, "timeoutSec": n}
 *              {"type": "rbd", "clusterID": s, "monitors": [s...], "pool": s, "radosNamespace": s
 *               ("": the default), "image": s, "snapshot": s (absent: the image itself),
 *               "userID": s, "userKey": s, "timeoutSec": n, "shared": bool}: its mount has one
 *               file, "image". A snapshot needs "readOnly". FAILED_PRECONDITION, naming the
 *              holder, while somebody else has the image open for writing, unless "shared" (default false)
 *              Both may have, for connections made from then on, "cephConf": {OPTION: s...}, options of Ceph's
 *               client library; "crushLocation": s, as "zone=a host=b", for reads of the nearest copy; and
 *               "netNamespaceFilePath": s, the network namespace to connect in.
 *              {"type": "dir", "rootPath": s}: FAILED_PRECONDITION unless it is below --dir-root
 * op "attach"  {"volume": ID} + the mounted /dev/fuse descriptor: serve it. ALREADY_EXISTS while a
 *              mount of the volume is served. With "layer": "fill" (absent: the whole tree) what is
 *              served is the fill layer of the volume's dataset (cache/fuse/layer/fill_layer.h);
 *              FAILED_PRECONDITION while its manifest is not ready.
 * op "detach"  {"volume": ID}: stop serving and disconnect. Fine when unknown.
 *              Send it after the unmount.
 * op "manifest" {"volume": ID, "waitMs": N (default 0)} -> {"state": "ready"|"building",
 *              "dataset": 32 hex digits, "path": s, "objects": s, "files": N, "directories": N,
 *              "bytes": N, "readable": bool}: for an open volume that is a snapshot. Finds its
 *              manifest on this node or in Ceph, or begins to build it, and waits for that as long
 *              as asked. "path", when ready, is the EROFS image, "objects" the data-only layer it
 *              redirects to; the numbers tell how far it has come. "readable" (absent: false):
 *              every file may be read, and every directory searched, by everybody, so that it does
 *              not matter which group they have. FAILED_PRECONDITION, saying why, when there can be
 *              none: then a session serves the volume as any other.
 * op "fetch"   {"volume": ID} -> {"spec": <as given to open>} + a duplicate of the descriptor. For
 *              a restarted node plugin. Secrets stay in memory on both sides.
 *              FAILED_PRECONDITION when no mount is served.
 * op "resize"  {"volume": ID} -> {"bytes": N}: looks at the image's size again, and the file has
 *              it. FAILED_PRECONDITION when the volume is no image, or no mount is served.
 * op "status"  -> {"daemon": {"version", "pid", "uptimeSec", "ioFlusher": bool (whether its threads
 *              are kept from waiting for their own write-back)}, "cache": {"dir", "disk": "ok"|
 *              "suspect"|"bypass"|"off", "objects", "bytes", "maxBytes", "maxInodes", "freeBytes",
 *              "evictedObjects", "evictedBytes", "originBytes", "fillsActive", "fillsCompleted",
 *              "fillsFailed", "diskErrors", "highPercent", "lowPercent" (watermarks), "verity": "off"|"on"|
 *              "unavailable" (here, though asked for), "badObjects" (found by verifying, since start),
 *              "scrub": {"bytesPerSec" (0: off), "objects", "bytes" (of this pass or the last),
 *              "endedMs" (when a pass last ended, since 1970; 0: none has since start)},
 *              "pins": [{"volume", "bytes", "objects"}...]}, "volumes": N, "uncached": [{"volume",
 *              "uncached": as of a VOLUME}...] (open ones; 64 at most)}
 * op "volumes" {"after": ID or ""} -> {"volumes": [VOLUME...], "more": bool}, ordered by ID
 *   VOLUME     {"volume", "type", "clusterID", "fsName", "rootPath" (of type rbd: what `rbd` calls
 *               the image), "attached", "cache",
 *               "readOnly", "bytesCached", "bytesTotal" (of its files; -1: not known), "objects",
 *               "opens", "hits", "misses", "bytesStore", "bytesFill", "bytesOrigin",
 *               "bytesWritten", "nodes", "dataset" (32 hex digits; "": none, or its manifest was
 *               not asked for), "filesTotal" (of a dataset, else -1), "pinned": bool,
 *               "uncached": s (why nothing of it is cached though "cache" is true; "": it is)}. Of a
 *              dataset, bytesTotal is of all its names, and bytesCached and objects are of those the
 *              cache holds, whoever had them fetched.
 * op "volume"  {"volume": ID} -> {"volume": VOLUME} or NOT_FOUND
 * op "refused" -> {"volumes": [ID...]}: what was opened while Ceph was away and refused since. It serves
 *              nothing more; what is mounted over it is to be closed. Until it is opened again.
 * op "warm"    {"volume": ID, "path": "sub/tree" (default ""), "wait": false, "rate": bytes a second
 *              (0: no bound)} -> {"job": N}
 *              A running job of the same volume and path is joined. "wait": answers when it ended.
 *              Of a snapshot whose manifest is ready, and that is not attached, it is the dataset that
 *              has what was fetched, and keeps it when the volume is closed.
 *              With a memfd, sealed against shrinking and writing, of paths beneath "path", one a
 *              line: these files alone.
 * op "job"     {"job": N} -> {"job": N, "volume", "path", "state": "running"|"done"|"failed"|
 *              "cancelled", "filesDone", "filesTotal", "bytesDone", "bytesHeld" (of these,
 *              what was cached before), "bytesTotal", "filesFailed", "scanning": bool, "elapsedMs", "error"}
 *              "error" is the reason of "failed", or the first file's of filesFailed, or "". The
 *              last 64 jobs that ended can be asked for.
 * op "cancel"  {"job": N}
 * op "evict"   {"volume": ID (absent: everything), "bytes": N (absent: all), "pinned": false} ->
 *              {"freedBytes": N, "pinnedBytes": N}
 *              What is pinned stays unless "pinned" is given: of everything it is passed over, and
 *              pinnedBytes tells how much; a pinned volume is FAILED_PRECONDITION.
 * op "pin"     {"volume": ID, "on": true}: from now on nothing but an "evict" by name, or its own
 *              quota, evicts it, also over restarts; "on": false ends that. NOT_FOUND for what is
 *              neither open nor cached.
 * op "datasets" {"after": s (absent: from the first)} -> {"datasets": [{"dataset": 32 hex digits, "places":
 *              [{"clusterID", "fsName", "rootPath"}...], "filesTotal": N, "bytesTotal": N, "filesCached": N,
 *              "bytesCached": N, "pinned": bool}...], "more": bool}: all that this node has manifests of, in use or
 *              not, by ID. With "more" ask again, "after" the last one's. "places" are where they were seen.
 * op "verify"  {"volume": ID (absent: everything), "after": s ("": from the beginning)} ->
 *              {"objects": N, "bytes": N, "unchecked": N, "bad": [{"object": 32 hex digits, "path"}...],
 *              "after": s, "more": bool}
 *              Reads objects and compares them with the checksums taken when they were fetched; what
 *              is bad is dropped. A part at a time: with "more", ask again with "after". "path" is
 *              the file's in its dataset, or "". "unchecked" have no checksum, as the index was lost.
 *
 * A second "open", "attach" or "detach" of one volume waits for the first; ABORTED after 30 s.
 * Unknown ops answer UNIMPLEMENTED; unknown or ill-typed fields INVALID_ARGUMENT, naming the field.
 */
/* clang-format on */
#ifndef HEARTH_PROTO_WIRE_H
#define HEARTH_PROTO_WIRE_H

#include <glib.h>
#include <jansson.h>
#include "common/autofd.h"

#define WIRE_DEFAULT_SOCKET "/run/hearth/hearthd.sock"
/* Names of volumes that are Hearth's own (cache/volume/own_names.h): what is served for the mounts
 * of a dataset, with its 32 hex digits, and what a CacheWarmup has open. */
#define WIRE_DATASET_PREFIX "dataset-"
#define WIRE_DATASET_DIGITS 32
#define WIRE_WARMUP_PREFIX "warmup-"
/* The ID of the dataset that a volume is named by, copied to `dataset`: dataset-<ID>, or
 * dataset-<ID>-<number> for a further user and key. FALSE: by none. */
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
 * first thing in main(), before any JSON; what json_dumps() returns is still freed by free().
 */
void wire_wipe_freed_json(void);

/*
 * Connects. Errors: G_IO_ERROR (NOT_FOUND, CONNECTION_REFUSED, ...), message names the path.
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

/*
 * One request and its reply. NULL on transport errors as above, or when the reply is not ok:
 * then domain WIRE_ERROR, with the code of the list above and the peer's text.
 */
json_t *wire_call(int socket, const json_t *request, int send_fd, int *receive_fd, int timeout_ms,
                  GError **error);

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
} WireError;
const char *wire_error_name(WireError code);
/* Sets the error. Returns FALSE, so that a caller can fail with `return wire_fail(...)`. */
gboolean wire_fail(GError **error, WireError code, const char *format, ...) G_GNUC_PRINTF(3, 4);
/* The reply that reports `error`, whose domain is WIRE_ERROR or G_IO_ERROR. */
json_t *wire_error_reply(const GError *error);

#endif
