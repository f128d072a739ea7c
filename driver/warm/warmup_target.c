#include "driver/warm/warmup_target.h"
#include "driver/error.h"
#include "driver/field.h"
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

static gboolean of_volume(const WarmupTargets *t, const char *claim, const char *name,
                          DatasetOrigin *origin, GError **error)
{
    json_t *volume;
    if (!get(t, &volumes, NULL, name, &volume, error))
        return FALSE;
    const gboolean there = volume != NULL, shows = volume_shows(t, volume, origin);
    json_decref(volume);
    if (!there)
        return none(error, "claim %s has the volume %s, which is not there", claim, name);
    return shows || none(error,
                         "claim %s has the volume %s, which is no dataset of %s: what can be "
                         "warmed is a snapshot in CephFS",
                         claim, name, t->driver_name);
}

static gboolean of_class(const WarmupTargets *t, const char *claim, const char *name,
                         DatasetOrigin *origin, GError **error)
{
    json_t *class = NULL;
    if (*name && !get(t, &classes, NULL, name, &class, error))
        return FALSE;
    const gboolean shows = class_shows(t, class, origin);
    json_decref(class);
    return shows || none(error, "claim %s has no volume yet", claim);
}

static gboolean of_claim(const WarmupTargets *t, const Warmup *warmup, DatasetOrigin *origin,
                         GError **error)
{
    json_t *claim;
    if (!get(t, &claims, warmup->namespace, warmup->claim, &claim, error))
        return FALSE;
    if (!claim)
        return none(error, "there is no claim %s in namespace %s", warmup->claim,
                    warmup->namespace);
    const json_t *spec = json_object_get(claim, "spec");
    const char *volume = field_text(spec, "volumeName");
    const gboolean good =
        *volume ? of_volume(t, warmup->claim, volume, origin, error)
                : of_class(t, warmup->claim, field_text(spec, "storageClassName"), origin, error);
    json_decref(claim);
    return good;
}

/* ---- of a name ---- */

typedef struct Search {
    const WarmupTargets *targets;
    const char *id;
    gboolean (*shows)(const WarmupTargets *t, const json_t *object, DatasetOrigin *origin);
    DatasetOrigin *origin;
    gboolean found;
} Search;

static void look_at(const json_t *object, void *data)
{
    Search *s = data;
    g_auto(DatasetOrigin) origin = {.cluster_id = NULL};
    if (s->found || !s->shows(s->targets, object, &origin) || !g_str_equal(origin.id, s->id))
        return;
    *s->origin = origin;
    origin = (DatasetOrigin){.cluster_id = NULL};
    s->found = TRUE;
}

static gboolean of_name(const WarmupTargets *t, const char *id, DatasetOrigin *origin,
                        GError **error)
{
    const KubeSelection all[] = {{.resource = volumes}, {.resource = classes}};
    Search search = {.targets = t, .id = id, .origin = origin};
    for (gsize i = 0; i < G_N_ELEMENTS(all) && !search.found; i++) {
        search.shows = i == 0 ? volume_shows : class_shows;
        if (!kube_list(t->client, &all[i], 0, ASK_MS, t->cancel, look_at, &search, NULL, error))
            return FALSE;
    }
    return search.found ||
           none(error, "no PersistentVolume and no StorageClass shows dataset %s", id);
}

gboolean warmup_target_find(const WarmupTargets *t, const Warmup *warmup, DatasetOrigin *origin,
                            GError **error)
{
    *origin = (DatasetOrigin){.cluster_id = NULL};
    return warmup->claim ? of_claim(t, warmup, origin, error)
                         : of_name(t, warmup->dataset, origin, error);
}
