/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader election with a Lease, by the rules of client-go, so that processes with either can take
 * over from each other.
 *
 * A holder renews its lease every retry_ms. It stops acting when renew_ms have passed since it
 * *sent* the last renewal that succeeded. Others take the lease when it has not changed for the
 * duration that it states, measured from when they first saw it so: clocks of different machines
 * are not compared, and renew_ms < duration keeps both from acting. All times are of
 * CLOCK_BOOTTIME, because a machine that has slept is no holder any more.
 *
 * Source: client-go, tools/leaderelection (package documentation); API reference, "Lease v1
 * coordination.k8s.io".
 */
#ifndef HEARTH_DRIVER_KUBE_LEASE_LEASE_H
#define HEARTH_DRIVER_KUBE_LEASE_LEASE_H

#include "driver/kube/client.h"

typedef struct KubeLeaseOptions {
    const char *namespace, *name;
    const char *identity; /* of this process; NULL: host name and a UUID */
    guint duration_s;     /* 0: 15 */
    gint64 renew_ms;      /* 0: 10 s; less than duration_s */
    gint64 retry_ms;      /* 0: 2 s; less than renew_ms */
} KubeLeaseOptions;

/* On the lease's thread, with no lock held; none may call kube_lease_free(). */
typedef struct KubeLeaseOps {
    void (*on_gained)(void *data);
    /* The lease is lost, or will be: all acting must have stopped when this returns. error: why;
     * NULL when kube_lease_free() was called. */
    void (*on_lost)(const GError *error, void *data);
    /* Called once when the lease cannot be read, and with NULL when it can again. May be NULL. */
    void (*on_trouble)(const GError *error, void *data);
} KubeLeaseOps;

typedef struct KubeLease KubeLease;

/* Begins to compete. client is borrowed until kube_lease_free(); options are copied. */
KubeLease *kube_lease_new(KubeClient *client, const KubeLeaseOptions *options,
                          const KubeLeaseOps *ops, void *data);
/* Stops. A holder calls on_lost, then gives the lease back, which takes 2 s at most. */
void kube_lease_free(KubeLease *lease);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(KubeLease, kube_lease_free)

/* Whether this process may act now; from any thread. To be called before each act that must not be
 * done twice: on_lost comes late in a process that was stopped for a while. */
gboolean kube_lease_is_held(KubeLease *lease);
const char *kube_lease_identity(const KubeLease *lease);

#endif
