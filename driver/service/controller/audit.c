/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth-csi audit: every location of every cluster is audited with the driver's own user, then
 * what may be fixed is. A cluster that fails is reported, and the others are audited. The checks
 * themselves are in driver/provision/audit.c and repair.c.
 */
#include "driver/service/controller/audit.h"
#include <string.h>
#include "driver/cluster/secret_dir.h"

/* For one call to Ceph. */
#define STEP_MS (60 * 1000)

static void add_error(AuditResult *result, const VolumeId *where, const GError *error)
{
    g_autofree char *location =
        where ? volume_id_location_text(where) : g_strdup("the cluster configuration");
    g_ptr_array_add(result->errors, g_strdup_printf("%s: %s", location, error->message));
}

static gboolean secrets_for(const AuditConfig *c, const Backend *b, const char *cluster_id,
                            Secrets **secrets, GError **error)
{
    *secrets = NULL;
    if (!b->ops->needs_secrets)
        return TRUE;
    if (!c->secret_dir)
        return hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                           "the audit needs a Ceph user: give --secret-dir, see hearth-csi(8)");
    *secrets = secret_dir_read(c->secret_dir, cluster_id, error);
    return *secrets != NULL;
}

static gint64 step_deadline(void)
{
    return g_get_monotonic_time() + STEP_MS * 1000;
}

static void audit_cluster(const AuditConfig *c, const Backend *b, const VolumeId *cluster,
                          AuditResult *result)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(Secrets) secrets = NULL;
    g_autoptr(GPtrArray) locations = NULL;
    if (secrets_for(c, b, cluster->cluster_id, &secrets, &error))
        locations = b->ops->locations(b->impl, cluster, secrets, step_deadline(), &error);
    if (!locations) {
        g_autofree char *text =
            g_strdup_printf("%s of cluster %s: %s", volume_type_name(b->ops->type),
                            cluster->cluster_id ? cluster->cluster_id : "-", error->message);
        g_ptr_array_add(result->errors, g_steal_pointer(&text));
        return;
    }
    for (guint i = 0; i < locations->len; i++) {
        g_clear_error(&error);
        result->locations++;
        if (!provision_audit(b, locations->pdata[i], secrets, STEP_MS, result->report, &error))
            add_error(result, locations->pdata[i], error);
    }
}

static void audit_clusters(const AuditConfig *c, AuditResult *result)
{
    for (gsize i = 0; i < c->n_backends; i++) {
        const Backend *b = c->backends[i];
        g_autoptr(GError) error = NULL;
        g_autoptr(GPtrArray) clusters = b->ops->clusters(b->impl, &error);
        if (!clusters) {
            add_error(result, NULL, error);
            continue;
        }
        for (guint k = 0; k < clusters->len; k++) {
            const VolumeId *cluster = clusters->pdata[k];
            if (!c->cluster_id || g_strcmp0(c->cluster_id, cluster->cluster_id) == 0)
                audit_cluster(c, b, cluster, result);
        }
    }
}

static gint compare_findings(gconstpointer a, gconstpointer b)
{
    const AuditFinding *x = *(AuditFinding *const *)a, *y = *(AuditFinding *const *)b;
    if (x->id->type != y->id->type)
        return x->id->type < y->id->type ? -1 : 1;
    int order = volume_id_compare_locations(x->id, y->id);
    if (order == 0)
        order = g_strcmp0(x->id->name, y->id->name);
    return order ? order : g_strcmp0(x->snapshot, y->snapshot);
}

/* By its name, or by "CLUSTER:" and its name, which several clusters may have. */
static gboolean is_called(const AuditFinding *f, const char *word)
{
    g_autofree char *name = audit_finding_name(f);
    g_autofree char *full =
        g_strconcat(f->id->cluster_id ? f->id->cluster_id : "", ":", name, NULL);
    return strcmp(name, word) == 0 || strcmp(full, word) == 0;
}

/* The findings of --remove. A name must fit exactly one. */
static GHashTable *find_named(const AuditConfig *c, AuditResult *result)
{
    GHashTable *set = g_hash_table_new(NULL, NULL);
    for (char *const *word = c->remove; word && *word; word++) {
        AuditFinding *only = NULL;
        guint n = 0;
        for (guint i = 0; i < result->report->findings->len; i++) {
            AuditFinding *f = result->report->findings->pdata[i];
            if (audit_text(f->kind)->fix == AUDIT_FIX_BY_NAME && is_called(f, *word)) {
                only = f;
                n++;
            }
        }
        if (n == 1)
            g_hash_table_add(set, only);
        else
            g_ptr_array_add(result->errors,
                            g_strdup_printf(n ? "--remove %s: several clusters have one; write "
                                                "CLUSTERID:%s"
                                              : "--remove %s: there is no such volume or snapshot "
                                                "without a record",
                                            *word, *word));
    }
    return set;
}

static const Backend *backend_of(const AuditConfig *c, const AuditFinding *f)
{
    for (gsize i = 0; i < c->n_backends; i++) {
        if (c->backends[i]->ops->type == f->id->type)
            return c->backends[i];
    }
    g_assert_not_reached();
}

static void fix_findings(const AuditConfig *c, AuditResult *result)
{
    g_autoptr(GHashTable) chosen = find_named(c, result);
    for (guint i = 0; i < result->report->findings->len; i++) {
        AuditFinding *f = result->report->findings->pdata[i];
        gboolean is_named = g_hash_table_contains(chosen, f);
        if (!c->repair && !is_named)
            continue;
        const Backend *b = backend_of(c, f);
        g_autoptr(GError) error = NULL;
        g_autoptr(Secrets) secrets = NULL;
        if (secrets_for(c, b, f->id->cluster_id, &secrets, &error)) {
            const ProvisionTarget at = {b, f->id, secrets, step_deadline()};
            f->fixed = provision_repair(&at, f, c->min_age_seconds, is_named, &error);
        }
        if (!f->fixed)
            f->failure = g_strdup(error->message);
    }
}

AuditResult *audit_run(const AuditConfig *c)
{
    AuditResult *result = g_new0(AuditResult, 1);
    result->report = audit_report_new();
    result->errors = g_ptr_array_new_with_free_func(g_free);
    audit_clusters(c, result);
    g_ptr_array_sort(result->report->findings, compare_findings);
    fix_findings(c, result);
    return result;
}

void audit_result_free(AuditResult *result)
{
    if (!result)
        return;
    audit_report_free(result->report);
    g_ptr_array_unref(result->errors);
    g_free(result);
}
