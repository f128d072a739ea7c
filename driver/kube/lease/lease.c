/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/lease/lease.h"
#include <pthread.h>
#include <time.h>
#include "driver/kube/error.h"
#include "driver/kube/lease/record.h"
#include "driver/kube/resource.h"

#define RELEASE_MS 2000

static const KubeResource leases = {"coordination.k8s.io", "v1", "leases"};

struct KubeLease {
    KubeClient *client;
    char *namespace, *name, *identity, *path, *all_path;
    guint duration_s;
    gint64 renew_ms, retry_ms;
    KubeLeaseOps ops;
    void *data;
    GCancellable *cancel;
    pthread_t thread;

    /* The thread's. */
    LeaseRecord record;
    gboolean troubled;

    pthread_mutex_t lock;
    gint64 until_ms; /* CLOCK_BOOTTIME; 0: not held; guarded by lock */
};

static gint64 boot_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (gint64)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static gint64 until(KubeLease *l)
{
    pthread_mutex_lock(&l->lock);
    const gint64 until_ms = l->until_ms;
    pthread_mutex_unlock(&l->lock);
    return until_ms;
}

static void set_until(KubeLease *l, gint64 until_ms)
{
    pthread_mutex_lock(&l->lock);
    l->until_ms = until_ms;
    pthread_mutex_unlock(&l->lock);
}

gboolean kube_lease_is_held(KubeLease *l)
{
    return boot_ms() < until(l);
}

const char *kube_lease_identity(const KubeLease *l)
{
    return l->identity;
}

static gboolean request(KubeLease *l, const char *method, const json_t *body, gint64 timeout_ms,
                        GCancellable *cancel, GError **error)
{
    json_auto_t *answer = NULL;
    const KubeRequest r = {.method = method,
                           .path = g_str_equal(method, "POST") ? l->all_path : l->path,
                           .body = body,
                           .timeout_ms = MAX(timeout_ms, 1),
                           .tries = 1,
                           .urgent = TRUE,
                           .cancel = cancel};
    if (!kube_request(l->client, &r, &answer, error))
        return FALSE;
    if (!json_is_object(json_object_get(answer, "metadata"))) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_MALFORMED, "%s %s: the answer is no Lease",
                    method, r.path);
        return FALSE;
    }
    lease_record_see(&l->record, g_steal_pointer(&answer), boot_ms());
    return TRUE;
}

/* Takes the lease as it was last seen. */
static gboolean claim(KubeLease *l, gint64 end_ms, GError **error)
{
    json_auto_t *object = lease_record_claim(&l->record, l->namespace, l->name, l->identity,
                                             l->duration_s, g_get_real_time());
    const gint64 sent_ms = boot_ms();
    const gboolean ok =
        request(l, l->record.object ? "PUT" : "POST", object, end_ms - sent_ms, l->cancel, error);
    if (ok)
        set_until(l, sent_ms + l->renew_ms);
    return ok;
}

typedef enum Attempt { HELD, TAKEN, FAILED } Attempt;

/* Reads the lease, and takes it if allowed. */
static Attempt attempt(KubeLease *l, gint64 end_ms, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (!request(l, "GET", NULL, end_ms - boot_ms(), l->cancel, &cause)) {
        if (cause->code != KUBE_ERROR_NOT_FOUND) {
            g_propagate_error(error, g_steal_pointer(&cause));
            return FAILED;
        }
        lease_record_clear(&l->record);
    }
    if (lease_record_is_taken(&l->record, l->identity, l->duration_s, boot_ms())) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFLICT, "lease %s/%s is held by %s",
                    l->namespace, l->name, lease_record_holder(&l->record));
        return TAKEN;
    }
    g_clear_error(&cause);
    if (claim(l, end_ms, &cause))
        return HELD;
    /* Another process was faster; the next reading shows which. */
    const gboolean race =
        cause->code == KUBE_ERROR_CONFLICT || cause->code == KUBE_ERROR_ALREADY_EXISTS;
    g_propagate_error(error, g_steal_pointer(&cause));
    return race ? TAKEN : FAILED;
}

static void tell_trouble(KubeLease *l, const GError *error)
{
    if (!l->troubled == !error || g_cancellable_is_cancelled(l->cancel))
        return;
    l->troubled = error != NULL;
    if (l->ops.on_trouble)
        l->ops.on_trouble(error, l->data);
}

/* Between once and twice the time, so that competitors do not go in step. */
static gint64 retry_ms(const KubeLease *l)
{
    return l->retry_ms + (gint64)(g_random_double() * (double)l->retry_ms);
}

/* TRUE: the lease is held; FALSE: it is to stop. */
static gboolean acquire(KubeLease *l)
{
    while (!g_cancellable_is_cancelled(l->cancel)) {
        g_autoptr(GError) error = NULL;
        const Attempt a = attempt(l, boot_ms() + l->renew_ms, &error);
        tell_trouble(l, a == FAILED ? error : NULL);
        /* An answer that took too long is of a lease that may be gone again. */
        if (a == HELD && kube_lease_is_held(l))
            return TRUE;
        kube_pause(retry_ms(l), l->cancel, NULL);
    }
    return FALSE;
}

/* Until it is lost, with why, or is to stop. */
static void hold(KubeLease *l, GError **error)
{
    g_autoptr(GError) cause = NULL;
    while (kube_pause(MIN(l->retry_ms, MAX(until(l) - boot_ms(), 0)), l->cancel, NULL)) {
        if (!kube_lease_is_held(l))
            break;
        g_clear_error(&cause);
        /* Renews it without reading it first; a change by another process makes this a conflict. */
        if (claim(l, until(l), &cause)) {
            tell_trouble(l, NULL);
            continue;
        }
        if (cause->code == KUBE_ERROR_CONFLICT || cause->code == KUBE_ERROR_NOT_FOUND) {
            g_clear_error(&cause);
            const Attempt a = attempt(l, until(l), &cause);
            if (a == HELD)
                continue;
            if (a == TAKEN && !g_str_equal(lease_record_holder(&l->record), l->identity))
                break;
        }
        tell_trouble(l, cause);
    }
    if (g_cancellable_is_cancelled(l->cancel))
        return;
    if (cause)
        g_propagate_error(error, g_steal_pointer(&cause));
    else
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_DEADLINE,
                    "lease %s/%s: this process did not come to renew it in time", l->namespace,
                    l->name);
}

static void release(KubeLease *l)
{
    g_autoptr(GError) cause = NULL;
    for (unsigned i = 0; i < 2; i++, g_clear_error(&cause)) {
        json_auto_t *object = lease_record_release(&l->record, g_get_real_time());
        const gboolean done = request(l, "PUT", object, RELEASE_MS / 3, NULL, &cause);
        /* A renewal that was cancelled may have been done. One that cannot be given back runs out.
         */
        if (done || cause->code != KUBE_ERROR_CONFLICT ||
            !request(l, "GET", NULL, RELEASE_MS / 3, NULL, NULL) ||
            !g_str_equal(lease_record_holder(&l->record), l->identity))
            return;
    }
}

static void *lease_thread(void *data)
{
    KubeLease *l = data;
    while (acquire(l)) {
        g_autoptr(GError) error = NULL;
        l->ops.on_gained(l->data);
        hold(l, &error);
        const gboolean ours =
            kube_lease_is_held(l) && g_str_equal(lease_record_holder(&l->record), l->identity);
        set_until(l, 0);
        l->ops.on_lost(error, l->data);
        if (ours && !error)
            release(l);
    }
    return NULL;
}

KubeLease *kube_lease_new(KubeClient *client, const KubeLeaseOptions *o, const KubeLeaseOps *ops,
                          void *data)
{
    KubeLease *l = g_new0(KubeLease, 1);
    g_autofree char *unique = g_uuid_string_random();
    l->client = client;
    l->namespace = g_strdup(o->namespace);
    l->name = g_strdup(o->name);
    l->identity =
        o->identity ? g_strdup(o->identity) : g_strdup_printf("%s_%s", g_get_host_name(), unique);
    l->path = kube_path(&leases, o->namespace, o->name, NULL);
    l->all_path = kube_path(&leases, o->namespace, NULL, NULL);
    l->duration_s = o->duration_s ? o->duration_s : 15;
    l->renew_ms = o->renew_ms > 0 ? o->renew_ms : 10000;
    l->retry_ms = o->retry_ms > 0 ? o->retry_ms : 2000;
    g_assert(l->retry_ms < l->renew_ms && l->renew_ms < (gint64)l->duration_s * 1000);
    l->ops = *ops;
    l->data = data;
    l->cancel = g_cancellable_new();
    pthread_mutex_init(&l->lock, NULL);
    int rc = pthread_create(&l->thread, NULL, lease_thread, l);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    return l;
}

void kube_lease_free(KubeLease *l)
{
    if (!l)
        return;
    g_cancellable_cancel(l->cancel);
    pthread_join(l->thread, NULL);
    g_object_unref(l->cancel);
    lease_record_clear(&l->record);
    pthread_mutex_destroy(&l->lock);
    g_free(l->namespace);
    g_free(l->name);
    g_free(l->identity);
    g_free(l->path);
    g_free(l->all_path);
    g_free(l);
}
