/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row for each parameter, with the types of volume that it is for. To add a parameter, add a
 * row; tests/layout/docs.sh then asks for it in docs/storageclass.md.
 */
#include "driver/volume/params.h"
#include "common/suggest.h"
#include "driver/volume/name.h"
#include "driver/volume/qos.h"
#include <stddef.h>
#include <string.h>

#define K8S "csi.storage.k8s.io/"

typedef enum Kind {
    KIND_TYPE,
    KIND_TEXT,        /* printable */
    KIND_NAME,        /* [A-Za-z0-9._-] */
    KIND_ON_OFF,      /* see params_parse_switch() */
    KIND_SIZE,        /* a Kubernetes quantity above 0 */
    KIND_SECONDS,     /* see params_parse_seconds() */
    KIND_QOS,         /* a quantity, 0 too; see qos.h */
    KIND_FEATURES,    /* names of image features with commas between */
    KIND_WARM,        /* none, onStage */
    KIND_PIN,         /* see parse_pin() */
    KIND_BACKING,     /* true, false */
    KIND_DATASET,     /* [GROUP/]SUBVOLUME@SNAPSHOT */
    KIND_POOLS,       /* topology_pools.h */
    KIND_ANY,         /* of the sidecars: any value */
    KIND_STATIC,      /* belongs in a static PV */
    KIND_ENCRYPTED,   /* false: nothing is encrypted here */
    KIND_MEANINGLESS, /* for ceph-csi's mounting or encryption: accepted and ignored */
} Kind;

enum {
    CEPHFS = 1 << VOLUME_CEPHFS,
    RBD = 1 << VOLUME_RBD,
    LOCAL = 1 << VOLUME_DIR,
    CEPH = CEPHFS | RBD,
    ALL = CEPH | LOCAL
};

#define SECONDS_MAX (24 * 3600)
#define NOWHERE G_MAXSIZE
#define AT(field) offsetof(VolumeParams, field)

typedef struct Row {
    const char *name;
    Kind kind;
    int types;
    gsize offset;
} Row;

static const Row rows[] = {
    {"type", KIND_TYPE, ALL, AT(type)},
    {"clusterID", KIND_TEXT, CEPH, AT(cluster_id)},
    {"fsName", KIND_NAME, CEPHFS, AT(fs_name)},
    {"pool", KIND_TEXT, CEPH, AT(pool)},
    {"volumeNamePrefix", KIND_NAME, ALL, AT(name_prefix)},
    {"cache", KIND_ON_OFF, ALL, AT(cache)},
    {"cacheQuota", KIND_SIZE, ALL, AT(cache_quota)},
    {"warm", KIND_WARM, ALL, AT(warm)},
    {"readTimeout", KIND_SECONDS, CEPHFS, AT(read_timeout)},
    {"dataset", KIND_DATASET, CEPHFS, AT(dataset)},
    {"mdsPin", KIND_PIN, CEPHFS, AT(mds_pin)},
    {"backingSnapshot", KIND_BACKING, CEPHFS, AT(backing_snapshot)},
    {"dataPool", KIND_TEXT, RBD, AT(data_pool)},
    {"imageFeatures", KIND_FEATURES, RBD, AT(image_features)},
    {"mkfsOptions", KIND_TEXT, RBD, AT(mkfs_options)},
    {"stripeUnit", KIND_SIZE, RBD, AT(stripe_unit)},
    {"stripeCount", KIND_SIZE, RBD, AT(stripe_count)},
    {"objectSize", KIND_SIZE, RBD, AT(object_size)},
    {"baseIops", KIND_QOS, RBD, NOWHERE},
    {"maxIops", KIND_QOS, RBD, NOWHERE},
    {"baseReadIops", KIND_QOS, RBD, NOWHERE},
    {"maxReadIops", KIND_QOS, RBD, NOWHERE},
    {"baseWriteIops", KIND_QOS, RBD, NOWHERE},
    {"maxWriteIops", KIND_QOS, RBD, NOWHERE},
    {"baseBps", KIND_QOS, RBD, NOWHERE},
    {"maxBps", KIND_QOS, RBD, NOWHERE},
    {"baseReadBps", KIND_QOS, RBD, NOWHERE},
    {"maxReadBps", KIND_QOS, RBD, NOWHERE},
    {"baseWriteBps", KIND_QOS, RBD, NOWHERE},
    {"maxWriteBps", KIND_QOS, RBD, NOWHERE},
    {"iopsPerGiB", KIND_QOS, RBD, NOWHERE},
    {"readIopsPerGiB", KIND_QOS, RBD, NOWHERE},
    {"writeIopsPerGiB", KIND_QOS, RBD, NOWHERE},
    {"bpsPerGiB", KIND_QOS, RBD, NOWHERE},
    {"readBpsPerGiB", KIND_QOS, RBD, NOWHERE},
    {"writeBpsPerGiB", KIND_QOS, RBD, NOWHERE},
    {"baseVolSizeBytes", KIND_QOS, RBD, NOWHERE},
    {"encrypted", KIND_ENCRYPTED, CEPH, NOWHERE},
    {"encryptionKMSID", KIND_MEANINGLESS, CEPH, NOWHERE},
    {"encryptionType", KIND_MEANINGLESS, CEPH, NOWHERE},
    {"encryptionCipher", KIND_MEANINGLESS, RBD, NOWHERE},
    {"encryptionKeySize", KIND_MEANINGLESS, RBD, NOWHERE},
    {"encryptionSectorSize", KIND_MEANINGLESS, RBD, NOWHERE},
    {"integrityMode", KIND_MEANINGLESS, RBD, NOWHERE},
    {"mounter", KIND_MEANINGLESS, CEPH, NOWHERE},
    {"fuseMountOptions", KIND_MEANINGLESS, CEPHFS, NOWHERE},
    {"kernelMountOptions", KIND_MEANINGLESS, CEPHFS, NOWHERE},
    {"tryOtherMounters", KIND_MEANINGLESS, RBD, NOWHERE},
    {"mapOptions", KIND_MEANINGLESS, RBD, NOWHERE},
    {"unmapOptions", KIND_MEANINGLESS, RBD, NOWHERE},
    {"cephLogDir", KIND_MEANINGLESS, RBD, NOWHERE},
    {"cephLogStrategy", KIND_MEANINGLESS, RBD, NOWHERE},
    {"topologyConstrainedPools", KIND_POOLS, RBD, NOWHERE},
    {"staticVolume", KIND_STATIC, 0, NOWHERE},
    {"rootPath", KIND_STATIC, 0, NOWHERE},
    {K8S "pv/name", KIND_ANY, ALL, AT(pv_name)},
    {K8S "pvc/name", KIND_ANY, ALL, AT(pvc_name)},
    {K8S "pvc/namespace", KIND_ANY, ALL, AT(pvc_namespace)},
    {K8S "fstype", KIND_ANY, ALL, NOWHERE},
    {K8S "provisioner-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "provisioner-secret-namespace", KIND_ANY, ALL, NOWHERE},
    {K8S "controller-publish-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "controller-publish-secret-namespace", KIND_ANY, ALL, NOWHERE},
    {K8S "controller-expand-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "controller-expand-secret-namespace", KIND_ANY, ALL, NOWHERE},
    {K8S "controller-modify-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "controller-modify-secret-namespace", KIND_ANY, ALL, NOWHERE},
    {K8S "node-stage-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "node-stage-secret-namespace", KIND_ANY, ALL, NOWHERE},
    {K8S "node-publish-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "node-publish-secret-namespace", KIND_ANY, ALL, NOWHERE},
    {K8S "node-expand-secret-name", KIND_ANY, ALL, NOWHERE},
    {K8S "node-expand-secret-namespace", KIND_ANY, ALL, NOWHERE},
};

#define refuse(error, ...) hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

void params_free(VolumeParams *params)
{
    if (!params)
        return;
    g_free(params->cluster_id);
    g_free(params->fs_name);
    g_free(params->pool);
    g_free(params->data_pool);
    g_free(params->image_features);
    g_free(params->mkfs_options);
    dataset_name_free(params->dataset);
    g_free(params->mds_pin);
    g_free(params->name_prefix);
    g_clear_pointer(&params->qos, json_decref);
    if (params->topology_pools)
        g_ptr_array_unref(params->topology_pools);
    g_free(params->pv_name);
    g_free(params->pvc_name);
    g_free(params->pvc_namespace);
    if (params->meaningless)
        g_ptr_array_unref(params->meaningless);
    g_free(params);
}

gboolean params_parse_size(const char *text, guint64 *bytes)
{
    static const char letters[] = "kMGTPE", binary[] = "KMGTPE";
    guint64 value = 0;
    const char *p = text;
    for (; g_ascii_isdigit(*p); p++) {
        guint64 digit = (guint64)(*p - '0');
        if (value > (G_MAXINT64 - digit) / 10)
            return FALSE;
        value = value * 10 + digit;
    }
    if (p == text)
        return FALSE;
    guint64 unit = 1;
    if (*p) {
        gboolean is_binary = p[1] == 'i';
        const char *found = strchr(is_binary ? binary : letters, *p);
        if (!found || p[is_binary ? 2 : 1] != '\0')
            return FALSE;
        for (long i = found - (is_binary ? binary : letters); i >= 0; i--)
            unit *= is_binary ? 1024 : 1000;
    }
    if (value > G_MAXINT64 / unit)
        return FALSE;
    *bytes = value * unit;
    return TRUE;
}

gboolean params_parse_seconds(const char *text, guint64 *seconds)
{
    char *unit;
    if (!g_ascii_isdigit(text[0]))
        return FALSE;
    *seconds = g_ascii_strtoull(text, &unit, 10);
    if (*seconds > SECONDS_MAX)
        return FALSE;
    if (strcmp(unit, "m") == 0)
        *seconds *= 60;
    else if (strcmp(unit, "h") == 0)
        *seconds *= 3600;
    else if (*unit && strcmp(unit, "s") != 0)
        return FALSE;
    return *seconds > 0 && *seconds <= SECONDS_MAX;
}

gboolean params_parse_switch(const char *text, gboolean *on)
{
    *on = strcmp(text, "on") == 0 || strcmp(text, "true") == 0;
    return *on || strcmp(text, "off") == 0 || strcmp(text, "false") == 0;
}

/* The start of a value, printable, for messages; the caller's. */
static char *printable_start(const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value, (gssize)strnlen(value, 100));
    return g_strescape(valid, NULL);
}

static gboolean is_printable(const char *text)
{
    if (!g_utf8_validate(text, -1, NULL))
        return FALSE;
    for (const char *p = text; *p; p = g_utf8_next_char(p)) {
        if (g_unichar_iscntrl(g_utf8_get_char(p)))
            return FALSE;
    }
    return TRUE;
}

static gboolean parse_type(const char *value, VolumeType *type, GError **error)
{
    if (volume_type_parse(value, type))
        return TRUE;
    g_autofree char *text = printable_start(value);
    return refuse(error, "type=\"%s\" is not known; use cephfs or rbd", text);
}

/* In librbd's order of bits; `needs` is one before it. */
static const struct {
    const char *name, *needs;
} features[] = {
    {"layering", NULL},          {"exclusive-lock", NULL}, {"object-map", "exclusive-lock"},
    {"fast-diff", "object-map"}, {"deep-flatten", NULL},   {"journaling", "exclusive-lock"},
};

/* The names in the order above, so that one set has one spelling. */
static gboolean parse_features(const char *value, char **set, GError **error)
{
    gboolean have[G_N_ELEMENTS(features)] = {FALSE};
    g_auto(GStrv) names = g_strsplit(value, ",", -1);
    for (char **name = names; *name; name++) {
        guint i = 0;
        g_strstrip(*name);
        while (i < G_N_ELEMENTS(features) && strcmp(features[i].name, *name) != 0)
            i++;
        if (i == G_N_ELEMENTS(features)) {
            g_autofree char *text = printable_start(*name);
            return refuse(error,
                          "imageFeatures: \"%s\" is not known; use layering, exclusive-lock, "
                          "object-map, fast-diff, deep-flatten, journaling, with commas between",
                          text);
        }
        have[i] = TRUE;
    }
    g_autoptr(GString) joined = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(features); i++) {
        for (guint k = 0; have[i] && features[i].needs && k < i; k++) {
            if (!have[k] && strcmp(features[k].name, features[i].needs) == 0)
                return refuse(error, "imageFeatures: %s needs %s; add it", features[i].name,
                              features[k].name);
        }
        if (have[i])
            g_string_append_printf(joined, "%s%s", joined->len ? "," : "", features[i].name);
    }
    *set = g_strdup(joined->str);
    return TRUE;
}

/* The kinds of `fs subvolume pin` and what Ceph's MDS takes for them (ceph.dir.pin and so on). */
static gboolean is_pin(const char *value)
{
    const char *setting = strchr(value, ':');
    if (!setting || !*++setting || strspn(setting, "0123456789.") != strlen(setting))
        return FALSE;
    guint64 number;
    if (g_str_has_prefix(value, "export:"))
        return g_ascii_string_to_unsigned(setting, 10, 0, 255, &number, NULL);
    if (g_str_has_prefix(value, "distributed:"))
        return g_ascii_string_to_unsigned(setting, 10, 0, 1, &number, NULL);
    char *end;
    double fraction = g_ascii_strtod(setting, &end);
    return g_str_has_prefix(value, "random:") && !*end && fraction > 0 && fraction <= 1;
}

static gboolean parse_qos(const char *name, const char *value, VolumeParams *params, GError **error)
{
    guint64 number;
    if (!params_parse_size(value, &number)) {
        g_autofree char *text = printable_start(value);
        return refuse(error, "%s=\"%s\": write a number or a quantity such as 100Mi; 0 for none",
                      name, text);
    }
    if (!params->qos)
        params->qos = json_object();
    json_object_set_new(params->qos, name, json_integer((json_int_t)number));
    return TRUE;
}

static gboolean parse_row(const Row *row, const char *value, VolumeParams *params, GError **error)
{
    g_autofree char *text = printable_start(value);
    gpointer at = row->offset == NOWHERE ? NULL : G_STRUCT_MEMBER_P(params, row->offset);
    if (!*value && row->kind != KIND_ANY)
        return refuse(error, "parameter %s is empty; give it a value or leave it out", row->name);
    /* It is JSON, mostly of several lines. */
    if (row->kind == KIND_POOLS && strlen(value) <= TOPOLOGY_POOLS_MAX) {
        params->topology_pools = topology_pools_parse(value, error);
        return params->topology_pools != NULL;
    }
    if (strlen(value) > 1024 || !is_printable(value))
        return refuse(error, "parameter %s is longer than 1024 bytes or not printable", row->name);
    switch (row->kind) {
    case KIND_TYPE:
        return TRUE; /* read before the others */
    case KIND_NAME:
        if (!name_is_plain(value))
            return refuse(error,
                          "%s=\"%s\": use letters, digits, '.', '_', '-', and begin with a letter, "
                          "digit or '_'",
                          row->name, text);
        break;
    case KIND_ON_OFF:
        return params_parse_switch(value, at) ||
               refuse(error, "%s=\"%s\": use on or off", row->name, text);
    case KIND_SIZE:
        if (!params_parse_size(value, at) || *(guint64 *)at == 0)
            return refuse(error, "%s=\"%s\" is no size; write bytes or a quantity such as 100Gi",
                          row->name, text);
        return TRUE;
    case KIND_SECONDS:
        return params_parse_seconds(value, at) ||
               refuse(error, "%s=\"%s\": write a time such as 30s or 5m, up to 24h", row->name,
                      text);
    case KIND_QOS:
        return parse_qos(row->name, value, params, error);
    case KIND_WARM:
        if (strcmp(value, "none") != 0 && strcmp(value, "onStage") != 0)
            return refuse(error, "%s=\"%s\": use none or onStage", row->name, text);
        params->warm = strcmp(value, "onStage") == 0;
        return TRUE;
    case KIND_PIN:
        if (!is_pin(value))
            return refuse(error,
                          "mdsPin=\"%s\": use export:RANK (0 to 255), distributed:1, or "
                          "random:FRACTION (above 0, at most 1)",
                          text);
        break;
    case KIND_BACKING:
        if (strcmp(value, "true") != 0 && strcmp(value, "false") != 0)
            return refuse(error, "%s=\"%s\": use true or false", row->name, text);
        params->backing_snapshot = strcmp(value, "true") == 0 ? BACKING_ALWAYS : BACKING_NEVER;
        return TRUE;
    case KIND_DATASET:
        params->dataset = dataset_name_parse(value, error);
        return params->dataset != NULL;
    case KIND_FEATURES:
        return parse_features(value, at, error);
    case KIND_STATIC:
        return refuse(error,
                      "parameter %s describes a volume that exists; it belongs in the "
                      "volumeAttributes of a static PersistentVolume, not in a StorageClass",
                      row->name);
    case KIND_ENCRYPTED:
        return strcmp(value, "false") == 0 ||
               refuse(error,
                      "encrypted=\"%s\": this driver does not encrypt volumes; leave it out, and "
                      "keep volumes that need it with ceph-csi",
                      text);
    case KIND_MEANINGLESS:
        g_ptr_array_add(params->meaningless, (char *)row->name);
        return TRUE;
    case KIND_POOLS: /* too long for above */
    case KIND_TEXT:
    case KIND_ANY:
        break;
    }
    if (at)
        *(char **)at = g_strdup(value);
    return TRUE;
}

static gboolean refuse_unknown(const char *name, GError **error)
{
    const char *known[G_N_ELEMENTS(rows) + 1];
    guint n = 0;
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!g_str_has_prefix(rows[i].name, K8S) && rows[i].kind != KIND_STATIC &&
            rows[i].kind != KIND_MEANINGLESS && rows[i].kind != KIND_ENCRYPTED)
            known[n++] = rows[i].name;
    }
    known[n] = NULL;
    g_autofree char *text = printable_start(name);
    g_autofree char *all = g_strjoinv(", ", (char **)known);
    const char *meant = suggest(name, known);
    return refuse(error, "parameter \"%s\" is not known%s%s%s; known: %s, and those of " K8S, text,
                  meant ? ", did you mean " : "", meant ? meant : "", meant ? "?" : "", all);
}

/* In the order of names, so that of several faults the same one is reported every time. */
static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

static gboolean parse_all(GHashTable *map, VolumeParams *params, GError **error)
{
    g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(map), compare_names);
    for (GList *l = names; l; l = l->next) {
        const Row *row = NULL;
        for (guint i = 0; !row && i < G_N_ELEMENTS(rows); i++) {
            if (strcmp(rows[i].name, l->data) == 0)
                row = &rows[i];
        }
        if (!row)
            return refuse_unknown(l->data, error);
        if (row->kind != KIND_STATIC && !(row->types & (1 << params->type)))
            return refuse(error, "parameter %s has no meaning with type=%s", row->name,
                          volume_type_name(params->type));
        if (!parse_row(row, g_hash_table_lookup(map, l->data), params, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean is_power_of_two(guint64 n)
{
    return n && (n & (n - 1)) == 0;
}

/* The rules of librbd's create, checked before anything is made. */
static gboolean check_striping(const VolumeParams *p, GError **error)
{
    if (p->object_size && (!is_power_of_two(p->object_size) || p->object_size < 4096 ||
                           p->object_size > 32 * 1024 * 1024))
        return refuse(error, "objectSize must be a power of two from 4Ki to 32Mi");
    if (!p->stripe_unit != !p->stripe_count)
        return refuse(error, "stripeUnit and stripeCount go together; give both or neither");
    guint64 object = p->object_size ? p->object_size : 4 * 1024 * 1024;
    if (p->stripe_unit && (p->stripe_unit > object || object % p->stripe_unit != 0))
        return refuse(error,
                      "stripeUnit must divide the object's size (%" G_GUINT64_FORMAT
                      " bytes) without rest",
                      object);
    if (p->stripe_count > 1024)
        return refuse(error, "stripeCount must be at most 1024");
    return TRUE;
}

/* Parameters that say how a volume is made have no meaning with a snapshot, which exists. */
static gboolean check_dataset(const VolumeParams *p, GError **error)
{
    const char *other = NULL;
    if (p->pool)
        other = "pool";
    else if (p->mds_pin)
        other = "mdsPin";
    else if (p->backing_snapshot == BACKING_NEVER)
        other = "backingSnapshot=false";
    return !p->dataset || !other ||
           refuse(error,
                  "%s has no meaning with dataset, whose volumes are that snapshot itself; leave "
                  "one of them out",
                  other);
}

static gboolean check_whole(VolumeParams *params, GError **error)
{
    if (params->type != VOLUME_DIR && !params->cluster_id)
        return refuse(error, "parameter clusterID is missing; it says which cluster of the "
                             "driver's config.json to use");
    if (params->type == VOLUME_CEPHFS && !params->fs_name)
        return refuse(error, "parameter fsName is missing; `ceph fs ls` lists the file systems");
    if (params->type == VOLUME_RBD && !params->pool && !params->topology_pools)
        return refuse(error, "parameter pool is missing; `ceph osd pool ls detail` lists the pools "
                             "with application rbd");
    if (params->type == VOLUME_RBD && params->pool &&
        (strchr(params->pool, '/') || strchr(params->pool, '@')))
        return refuse(error, "pool must have no '/' and no '@'");
    if (!check_striping(params, error) || !check_dataset(params, error))
        return FALSE;
    if (!qos_check(params->qos, error))
        return FALSE;
    if (params->cluster_id && strchr(params->cluster_id, '/'))
        return refuse(error, "clusterID must have no '/'");
    if (params->cluster_id &&
        (strcmp(params->cluster_id, ".") == 0 || strcmp(params->cluster_id, "..") == 0))
        return refuse(error, "clusterID \"%s\" is no name", params->cluster_id);
    if (strlen(params->name_prefix) > PARAMS_PREFIX_MAX || *params->name_prefix == '_')
        return refuse(
            error, "volumeNamePrefix must have at most %d bytes and begin with a letter or digit",
            PARAMS_PREFIX_MAX);
    if (params->warm && params->type == VOLUME_RBD)
        return refuse(error, "warm=onStage: images have no cache in this release; use none");
    if (params->warm && !params->cache)
        return refuse(error, "warm has no meaning with cache=off; leave one of them out");
    if (params->cache_quota && !params->cache)
        return refuse(error, "cacheQuota has no meaning with cache=off; leave one of them out");
    return TRUE;
}

VolumeParams *params_parse(GHashTable *map, GError **error)
{
    g_autoptr(GHashTable) none = g_hash_table_new(g_str_hash, g_str_equal);
    if (!map)
        map = none;
    g_autoptr(VolumeParams) params = g_new0(VolumeParams, 1);
    params->cache = TRUE;
    params->meaningless = g_ptr_array_new();
    /* ceph-csi has a driver for each type: its classes say it by what they name. */
    gboolean of_pool = g_hash_table_contains(map, "pool") ||
                       g_hash_table_contains(map, "topologyConstrainedPools");
    params->type = of_pool && !g_hash_table_contains(map, "fsName") ? VOLUME_RBD : VOLUME_CEPHFS;
    const char *type = g_hash_table_lookup(map, "type");
    if (type && !parse_type(type, &params->type, error))
        return NULL;
    if (!parse_all(map, params, error))
        return NULL;
    if (!params->name_prefix)
        params->name_prefix = g_strdup(PARAMS_DEFAULT_PREFIX);
    return check_whole(params, error) ? g_steal_pointer(&params) : NULL;
}

static void set_text(json_t *object, const char *name, const char *value)
{
    if (value)
        json_object_set_new(object, name, json_string(value));
}

static void set_size(json_t *object, const char *name, guint64 value)
{
    if (value)
        json_object_set_new(object, name, json_integer((json_int_t)value));
}

json_t *params_to_json(const VolumeParams *params)
{
    json_t *object = json_object();
    g_autofree char *dataset = params->dataset ? dataset_name_text(params->dataset) : NULL;
    set_text(object, "dataset", dataset);
    set_text(object, "type", volume_type_name(params->type));
    set_text(object, "clusterID", params->cluster_id);
    set_text(object, "fsName", params->fs_name);
    set_text(object, "pool", params->pool);
    set_text(object, "mdsPin", params->mds_pin);
    set_text(object, "volumeNamePrefix", params->name_prefix);
    set_text(object, "cache", params->cache ? "on" : "off");
    set_size(object, "cacheQuota", params->cache_quota);
    set_size(object, "readTimeout", params->read_timeout);
    set_text(object, "warm", params->warm ? "onStage" : NULL);
    set_text(object, "dataPool", params->data_pool);
    set_text(object, "imageFeatures", params->image_features);
    set_text(object, "mkfsOptions", params->mkfs_options);
    set_size(object, "stripeUnit", params->stripe_unit);
    set_size(object, "stripeCount", params->stripe_count);
    set_size(object, "objectSize", params->object_size);
    if (params->qos)
        json_object_update(object, params->qos);
    return object;
}
