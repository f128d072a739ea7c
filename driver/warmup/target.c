/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/target.h"
#include "common/error.h"
#include "common/field.h"
#include "driver/kube/error.h"
#include "driver/kube/list.h"

#define ASK_MS 15000

static const KubeResource claims = {"", "v1", "persistentvolumeclaims"};
static const KubeResource volumes = {"", "v1", "persistentvolumes"};
static const KubeResource classes = {"storage.k8s.io", "v1", "storageclasses"};

#define none(error, ...) hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION, __VA_ARGS__)

/* *object NULL: there is none of the name. */
static gboolean get(const WarmupTargets *t, const KubeResource *resource, const char *namespace,
                    const char *name, json_t **object, GError **error)
{
    g_autofree char *path = kube_path(resource, namespace, name, NULL);
    const KubeRequest request = {
        .method = "GET", .path = path, .timeout_ms = ASK_MS, .cancel = t->cancel};
    g_autoptr(GError) cause = NULL;
    *object = NULL;
    if (kube_request(t->client, &request, object, &cause) ||
        g_error_matches(cause, KUBE_ERROR, KUBE_ERROR_NOT_FOUND))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&cause));
    return FALSE;
}

static gboolean volume_shows(const WarmupTargets *t, const json_t *volume, DatasetOrigin *origin)
{
    const json_t *csi = json_object_get(json_object_get(volume, "spec"), "csi");
    return g_str_equal(field_text(csi, "driver"), t->driver_name) &&
           dataset_origin_of(json_object_get(csi, "volumeAttributes"), t->cluster_config, origin);
}

static gboolean class_shows(const WarmupTargets *t, const json_t *class, DatasetOrigin *origin)
{
    return g_str_equal(field_text(class, "provisioner"), t->driver_name) &&
           dataset_origin_of(json_object_get(class, "parameters"), t->cluster_config, origin);
}

/* ---- of a claim ---- */

/* A claim may name any volume; the volume says whose it is. By the UID, as a released volume keeps
 * the name of a claim that has gone, and a later namespace may have that name again. */
static gboolean is_bound_to(const json_t *volume, const json_t *claim)
{
    static const char *const fields[] = {"namespace", "name", "uid"};
    const json_t *ref = json_object_get(json_object_get(volume, "spec"), "claimRef");
    const json_t *metadata = json_object_get(claim, "metadata");
    for (gsize i = 0; i < G_N_ELEMENTS(fields); i++) {
        if (!*field_text(ref, fields[i]) ||
            !g_str_equal(field_text(ref, fields[i]), field_text(metadata, fields[i])))
            return FALSE;
    }
    return TRUE;
}

static gboolean of_volume(const WarmupTargets *t, const json_t *claim, const char *name,
                          DatasetOrigin *origin, GError **error)
{
    const char *claim_name = field_text(json_object_get(claim, "metadata"), "name");
    json_auto_t *volume = NULL;
    if (!get(t, &volumes, NULL, name, &volume, error))
        return FALSE;
    const gboolean there = volume != NULL && is_bound_to(volume, claim);
    const gboolean shows = there && volume_shows(t, volume, origin);
    if (!there)
        return none(error, "claim %s is not bound to the volume %s that it names", claim_name,
                    name);
    return shows || none(error,
                         "claim %s has the volume %s, which is no dataset of %s: what can be "
                         "warmed is a snapshot in CephFS",
                         claim_name, name, t->driver_name);
}

static gboolean of_class(const WarmupTargets *t, const char *claim, const char *name,
                         DatasetOrigin *origin, GError **error)
{
    json_auto_t *class = NULL;
    if (*name && !get(t, &classes, NULL, name, &class, error))
        return FALSE;
    const gboolean shows = class_shows(t, class, origin);
    return shows || none(error, "claim %s has no volume yet", claim);
}

static gboolean of_claim(const WarmupTargets *t, const char *namespace, const char *name,
                         DatasetOrigin *origin, GError **error)
{
    json_auto_t *claim = NULL;
    if (!get(t, &claims, namespace, name, &claim, error))
        return FALSE;
    if (!claim)
        return none(error, "there is no claim %s in namespace %s", name, namespace);
    const json_t *spec = json_object_get(claim, "spec");
    const char *volume = field_text(spec, "volumeName");
    if (*volume)
        return of_volume(t, claim, volume, origin, error);
    return of_class(t, name, field_text(spec, "storageClassName"), origin, error);
}

/* ---- of a name ---- */

static gboolean grants(const json_t *class, const char *namespace)
{
    const json_t *annotations = json_object_get(json_object_get(class, "metadata"), "annotations");
    g_auto(GStrv) names = g_strsplit(field_text(annotations, WARMUP_NAMESPACES), ",", -1);
    for (char **name = names; *name; name++) {
        if (g_str_equal(g_strstrip(*name), "*") || g_str_equal(*name, namespace))
            return TRUE;
    }
    return FALSE;
}

typedef struct Search {
    const WarmupTargets *targets;
    const Warmup *warmup;
    DatasetOrigin *origin;
    gboolean found;
} Search;

static void look_at(const json_t *class, void *data)
{
    Search *s = data;
    g_auto(DatasetOrigin) origin = {.cluster_id = NULL};
    if (s->found || !grants(class, s->warmup->namespace) ||
        !class_shows(s->targets, class, &origin) || !dataset_origin_is(&origin, s->warmup->dataset))
        return;
    *s->origin = origin;
    origin = (DatasetOrigin){.cluster_id = NULL};
    s->found = TRUE;
}

static gboolean of_name(const WarmupTargets *t, const Warmup *warmup, DatasetOrigin *origin,
                        GError **error)
{
    const KubeSelection all = {.resource = classes};
    Search search = {.targets = t, .warmup = warmup, .origin = origin};
    g_autofree char *claim = t->claim_of(t->claims, warmup->namespace, warmup->dataset);
    if (claim) {
        if (!of_claim(t, warmup->namespace, claim, origin, error))
            return FALSE;
        if (dataset_origin_is(origin, warmup->dataset))
            return TRUE;
        dataset_origin_clear(origin); /* it was replaced meanwhile */
    }
    const char *several = dataset_title_is(warmup->dataset)
                              ? "; if datasets of two clusters have that name, write the 16 digits"
                              : "";
    const KubeListing listing = {
        .timeout_ms = ASK_MS, .cancel = t->cancel, .on_object = look_at, .data = &search};
    if (!kube_list(t->client, &all, &listing, NULL, error))
        return FALSE;
    return search.found || none(error,
                                "no claim of namespace %s shows dataset %s; make one, or have the "
                                "annotation " WARMUP_NAMESPACES
                                " of a StorageClass that shows it name the namespace%s",
                                warmup->namespace, warmup->dataset, several);
}

gboolean warmup_target_find(const WarmupTargets *t, const Warmup *warmup, DatasetOrigin *origin,
                            GError **error)
{
    *origin = (DatasetOrigin){.cluster_id = NULL};
    return warmup->claim ? of_claim(t, warmup->namespace, warmup->claim, origin, error)
                         : of_name(t, warmup, origin, error);
}
