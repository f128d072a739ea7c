/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a Lease, and the content to write next: the rules of lease.h without I/O or a
 * clock. For one thread.
 */
#ifndef HEARTH_DRIVER_KUBE_LEASE_RECORD_H
#define HEARTH_DRIVER_KUBE_LEASE_RECORD_H

#include <glib.h>
#include <jansson.h>

typedef struct LeaseRecord {
    json_t *object; /* as last seen or written; NULL: none */
    gint64 seen_ms; /* when this spec was first seen */
} LeaseRecord;

void lease_record_clear(LeaseRecord *record);
/* Takes `object` over. */
void lease_record_see(LeaseRecord *record, json_t *object, gint64 now_ms);
/* "": it has no holder. */
const char *lease_record_holder(const LeaseRecord *record);
/* Whether someone else than `identity` holds it, and has renewed it in time. default_s: for a lease
 * that states no duration. */
gboolean lease_record_is_taken(const LeaseRecord *record, const char *identity, guint default_s,
                               gint64 now_ms);
/* The object by which `identity` takes or renews it, the caller's; unix_us: the wall clock, for
 * people. */
json_t *lease_record_claim(const LeaseRecord *record, const char *namespace, const char *name,
                           const char *identity, guint duration_s, gint64 unix_us);
/* The object by which its holder gives it back. */
json_t *lease_record_release(const LeaseRecord *record, gint64 unix_us);

#endif
