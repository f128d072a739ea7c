/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/lease/record.h"
#include <string.h>
#include "driver/kube/time.h"

/* The longest duration that is believed of another process; client-go's default is 15. */
#define DURATION_MAX_S 3600

static const json_t *spec_of(const json_t *object)
{
    return json_object_get(object, "spec");
}

void lease_record_clear(LeaseRecord *r)
{
    g_clear_pointer(&r->object, json_decref);
}

void lease_record_see(LeaseRecord *r, json_t *object, gint64 now_ms)
{
    if (!r->object || !json_equal(spec_of(r->object), spec_of(object)))
        r->seen_ms = now_ms;
    lease_record_clear(r);
    r->object = object;
}

const char *lease_record_holder(const LeaseRecord *r)
{
    const char *holder = json_string_value(json_object_get(spec_of(r->object), "holderIdentity"));
    return holder ? holder : "";
}

gboolean lease_record_is_taken(const LeaseRecord *r, const char *identity, guint default_s,
                               gint64 now_ms)
{
    const char *holder = lease_record_holder(r);
    if (!*holder || g_str_equal(holder, identity))
        return FALSE;
    const json_int_t stated =
        json_integer_value(json_object_get(spec_of(r->object), "leaseDurationSeconds"));
    const gint64 seconds = stated > 0 ? MIN(stated, DURATION_MAX_S) : default_s;
    return now_ms < r->seen_ms + seconds * 1000;
}

static void set_time(json_t *spec, const char *key, gint64 unix_us)
{
    g_autofree char *text = kube_time_format_micro(unix_us);
    json_object_set_new(spec, key, json_string(text));
}

json_t *lease_record_claim(const LeaseRecord *r, const char *namespace, const char *name,
                           const char *identity, guint duration_s, gint64 unix_us)
{
    /* What others keep in it stays. */
    json_t *object =
        r->object ? json_deep_copy(r->object)
                  : json_pack("{s:s, s:s, s:{s:s, s:s}}", "apiVersion", "coordination.k8s.io/v1",
                              "kind", "Lease", "metadata", "name", name, "namespace", namespace);
    json_t *spec = json_object_get(object, "spec");
    if (!json_is_object(spec)) {
        spec = json_object();
        json_object_set_new(object, "spec", spec);
    }
    if (!g_str_equal(lease_record_holder(r), identity)) {
        const json_int_t before = json_integer_value(json_object_get(spec, "leaseTransitions"));
        json_object_set_new(spec, "leaseTransitions", json_integer(r->object ? before + 1 : 0));
        set_time(spec, "acquireTime", unix_us);
    }
    json_object_set_new(spec, "holderIdentity", json_string(identity));
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(duration_s));
    set_time(spec, "renewTime", unix_us);
    return object;
}

json_t *lease_record_release(const LeaseRecord *r, gint64 unix_us)
{
    json_t *object = json_deep_copy(r->object);
    json_t *spec = json_object_get(object, "spec");
    json_object_del(spec, "holderIdentity");
    json_object_set_new(spec, "leaseDurationSeconds", json_integer(1));
    set_time(spec, "renewTime", unix_us);
    set_time(spec, "acquireTime", unix_us);
    return object;
}
