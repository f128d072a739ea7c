/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin that outlives its connection. Ceph can end a client's session at any time: the MDS
 * evicts a client that was cut off or frozen for longer than the session timeout, and what the
 * client had written and not synced is lost then, without an error from its library. A client that
 * continues as if nothing had happened may also overwrite what others have written since.
 *
 * So a connection that was lost is never used again. Nodes, files and listings of it are found or
 * opened again on the next connection when they are used, reads are repeated, and operations that
 * change something answer -EIO. A writer compares session() before the write and after the sync:
 * with another number, the write may be lost.
 *
 * The connection is checked while it is in use. Ceph keeps the promises of a lease for as long as
 * it hears from its client. We rely on a lease only for as long as Ceph answers (vouches()), and
 * then drop all leases (OriginListener.leases_void), well before the MDS gives them to others.
 *
 * A connection that nobody uses rests (rest.c): it ends, and the next use makes another one.
 */
#ifndef HEARTH_CACHE_ORIGIN_RECONNECT_RECONNECT_H
#define HEARTH_CACHE_ORIGIN_RECONNECT_RECONNECT_H

#include "cache/origin/origin.h"

/* How one connection is made, checked and ended. All may block on the network. */
typedef struct ReconnectOps {
    /* As OriginOps.reach; may run beside the other functions. NULL: not needed. */
    void (*reach)(void *data, const char *monitors, const char *key, unsigned timeout_sec);
    /* A new connection; NULL with an error. after_loss: the one before was lost, else it has ended
     * or is about to. */
    Origin *(*connect)(void *data, gboolean after_loss, GError **error);
    /*
     * Asks Ceph whether the session is still the one that connect() began: 0; -EIO, -ESHUTDOWN or
     * -ENOTCONN: it is lost; another error: unknown. Returns only with an answer.
     */
    int (*check)(Origin *connection);
    /* Whether Ceph answers a new client. */
    gboolean (*answers)(void *data);
    /* For how long no monitor has answered, in milliseconds; UINT64_MAX: none has been heard from.
     * Has one asked, and does not wait. NULL: not known. */
    uint64_t (*monitors_silent_ms)(void *data);
    /* Ends the session that a connection without an answer may still have. TRUE: Ceph answered, and
     * there is no such session any more. */
    gboolean (*fence)(void *data);
    /* Has calls that wait on a lost connection return. Called again after a while when it was not
     * done. TRUE: done. NULL: they return by themselves. */
    gboolean (*end_calls)(void *data, Origin *connection);
    /* Releases what a lost connection has, without writing anything to Ceph. Only put(), close(),
     * closedir() and destroy() are called afterwards, and free memory. */
    void (*abandon)(Origin *connection);
    /* A connection is abandoned only when it has been lost for this long. */
    int64_t quiet_ms;
    /* How long a call waits for the next connection; longer while a monitor answers. */
    int64_t wait_ms;
    /* A connection that nobody has used for this long is closed, until its next use; sooner if the
     * process has many. Its nodes are not put before. 0: never. */
    int64_t rest_ms;
    void (*free_data)(void *data);
} ReconnectOps;

/* Takes over the first connection, and `data`. NULL: no thread could be made, and both are freed.
 */
Origin *origin_reconnect_new(Origin *first, const ReconnectOps *ops, void *data);
/* How many connections the process has that do not rest and are not lost. */
unsigned reconnect_connections(void);

#endif
