/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearth-csi/scheduling.h"
#include "driver/kube/lease/lease.h"
#include "driver/affinity/hints.h"
#include "driver/warmth/reporter.h"
#include "driver/warmth/uncached.h"
#include "driver/warmup/agent.h"
#include "driver/warmup/controller.h"

/* The labels of a thousand nodes are written within ten seconds. */
#define WRITES_PER_SECOND 100
#define WRITE_BURST 200

struct Scheduling {
    KubeClient *client;
    KubeLease *lease;
    Warmth *warmth;
    DatasetHints *hints;
    Uncached *uncached;
    Warmups *warmups;
    WarmupAgent *agent;
    Reporter *reporter;
};

static Scheduling *begin(const char *kubeconfig, GError **error)
{
    const KubeClientOptions options = {.writes_per_second = WRITES_PER_SECOND,
                                       .write_burst = WRITE_BURST};
    KubeConfig *config = kube_config_load(kubeconfig, error);
    if (!config)
        return NULL;
    Scheduling *s = g_new0(Scheduling, 1);
    s->client = kube_client_new(config, &options);
    return s;
}

static gboolean may_act(void *data)
{
    return kube_lease_is_held(data);
}

static void on_gained(void *data)
{
    (void)data;
    g_message("this controller holds the lease " SCHEDULING_LEASE
              ": it labels nodes, maintains hints and runs CacheWarmups");
}

static void on_lost(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_message("another controller holds the lease: %s", error->message);
}

static void on_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("the lease cannot be read: %s", error->message);
    else
        g_message("the lease can be read again");
}

static void on_hint_trouble(const GError *error, void *data)
{
    (void)data;
    if (error)
        g_warning("DatasetHints are not maintained: %s", error->message);
    else
        g_message("DatasetHints are maintained again");
}

Scheduling *scheduling_of_controller(const char *kubeconfig, const char *driver_name,
                                     const char *cluster_config, GError **error)
{
    DatasetHintsOps hint_ops = {.may_act = may_act,
                                .on_trouble = on_hint_trouble,
                                .cluster_config = cluster_config,
                                .on_volume = uncached_volume};
    WarmupsOps warmup_ops = {.may_act = may_act,
                             .driver_name = driver_name,
                             .cluster_config = cluster_config,
                             .claim_of = dataset_hints_claim};
    static const KubeLeaseOps ops = {
        .on_gained = on_gained, .on_lost = on_lost, .on_trouble = on_trouble};
    Scheduling *s = begin(kubeconfig, error);
    if (!s)
        return NULL;
    const KubeLeaseOptions options = {.namespace = kube_client_namespace(s->client),
                                      .name = SCHEDULING_LEASE};
    s->lease = kube_lease_new(s->client, &options, &ops, NULL);
    s->uncached = uncached_new(s->client, driver_name, may_act, s->lease);
    hint_ops.volume_data = s->uncached;
    s->warmth = warmth_new(s->client, may_act, s->lease);
    warmth_on_uncached(s->warmth, uncached_report, s->uncached);
    s->hints = dataset_hints_new(s->client, driver_name, &hint_ops, s->lease);
    warmup_ops.claims = s->hints;
    s->warmups = warmups_new(s->client, s->warmth, &warmup_ops, s->lease);
    return s;
}

static json_t *report_warmups(void *agent)
{
    return warmup_agent_report(agent);
}

Scheduling *scheduling_of_node(const char *kubeconfig, const ReporterNode *node,
                               const WarmupConfig *config, GError **error)
{
    Scheduling *s = begin(kubeconfig, error);
    if (!s)
        return NULL;
    s->agent = warmup_agent_new(s->client, node->name, config);
    const ReporterWarmups warmups = {.runs = report_warmups, .data = s->agent};
    s->reporter = reporter_new(s->client, node, &warmups);
    return s;
}

void scheduling_free(Scheduling *s)
{
    if (!s)
        return;
    reporter_free(s->reporter);
    warmup_agent_free(s->agent);
    warmups_free(s->warmups);
    dataset_hints_free(s->hints);
    warmth_free(s->warmth);
    uncached_free(s->uncached);
    kube_lease_free(s->lease);
    kube_client_free(s->client);
    g_free(s);
}

Warmth *scheduling_warmth(Scheduling *s)
{
    return s->warmth;
}

KubeClient *scheduling_client(Scheduling *s)
{
    return s->client;
}

gboolean scheduling_leads(Scheduling *s)
{
    return s->lease && kube_lease_is_held(s->lease);
}
