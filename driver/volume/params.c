/*
 * One row a parameter. A row says for which types of volume the name means something and, for a
 * feature of a later release, which values ask for it: those are refused, since a class that asks
 * for a warm dataset must not silently get something else.
 */
#include "driver/volume/params.h"
#include "driver/volume/name.h"
#include <stddef.h>
#include <string.h>

#define K8S "csi.storage.k8s.io/"

typedef enum Kind {
    KIND_TYPE,
    KIND_TEXT,    /* printable */
    KIND_NAME,    /* [A-Za-z0-9._-] */
    KIND_ON_OFF,  /* on, off */
    KIND_SIZE,    /* a Kubernetes quantity above 0 */
    KIND_ANY,     /* of the sidecars: taken as it is */
    KIND_DEFAULT, /* a later release's: only row.only is taken */
    KIND_STATIC,  /* belongs in a static PV */
} Kind;

enum { CEPHFS = 1 << VOLUME_CEPHFS, ALL = CEPHFS | 1 << VOLUME_DIR, RBD = 1 << 16 };

#define NOWHERE G_MAXSIZE
#define AT(field) offsetof(VolumeParams, field)

typedef struct Row {
    const char *name;
    Kind kind;
    int types;
    gsize offset;
    const char *only; /* KIND_DEFAULT: the value that asks for nothing, or NULL */
} Row;

static const Row rows[] = {
    {"type", KIND_TYPE, ALL, AT(type), NULL},
    {"clusterID", KIND_TEXT, CEPHFS, AT(cluster_id), NULL},
    {"fsName", KIND_NAME, CEPHFS, AT(fs_name), NULL},
    {"pool", KIND_TEXT, CEPHFS, AT(pool), NULL},
    {"volumeNamePrefix", KIND_NAME, ALL, AT(name_prefix), NULL},
    {"cache", KIND_ON_OFF, ALL, AT(cache), NULL},
    {"cacheQuota", KIND_SIZE, ALL, AT(cache_quota), NULL},
    {"warm", KIND_DEFAULT, ALL, NOWHERE, "none"},
    {"dataset", KIND_DEFAULT, ALL, NOWHERE, NULL},
    {"mdsPin", KIND_DEFAULT, CEPHFS, NOWHERE, NULL},
    {"backingSnapshot", KIND_DEFAULT, CEPHFS, NOWHERE, "false"},
    {"dataPool", KIND_TEXT, RBD, NOWHERE, NULL},
    {"imageFeatures", KIND_TEXT, RBD, NOWHERE, NULL},
    {"mkfsOptions", KIND_TEXT, RBD, NOWHERE, NULL},
    {"stripeUnit", KIND_TEXT, RBD, NOWHERE, NULL},
    {"stripeCount", KIND_TEXT, RBD, NOWHERE, NULL},
    {"objectSize", KIND_TEXT, RBD, NOWHERE, NULL},
    {"staticVolume", KIND_STATIC, 0, NOWHERE, NULL},
    {"rootPath", KIND_STATIC, 0, NOWHERE, NULL},
    {K8S "pv/name", KIND_ANY, ALL, AT(pv_name), NULL},
    {K8S "pvc/name", KIND_ANY, ALL, AT(pvc_name), NULL},
    {K8S "pvc/namespace", KIND_ANY, ALL, AT(pvc_namespace), NULL},
    {K8S "fstype", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "provisioner-secret-name", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "provisioner-secret-namespace", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "controller-publish-secret-name", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "controller-publish-secret-namespace", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "controller-expand-secret-name", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "controller-expand-secret-namespace", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "node-stage-secret-name", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "node-stage-secret-namespace", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "node-publish-secret-name", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "node-publish-secret-namespace", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "node-expand-secret-name", KIND_ANY, ALL, NOWHERE, NULL},
    {K8S "node-expand-secret-namespace", KIND_ANY, ALL, NOWHERE, NULL},
};

G_GNUC_PRINTF(2, 3)
static gboolean refuse(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_set_error_literal(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, text);
    return FALSE;
}

void params_free(VolumeParams *params)
{
    if (!params)
        return;
    g_free(params->cluster_id);
    g_free(params->fs_name);
    g_free(params->pool);
    g_free(params->name_prefix);
    g_free(params->pv_name);
    g_free(params->pvc_name);
    g_free(params->pvc_namespace);
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

/* The value as it may appear in a message: short, printable. */
static char *shown(const char *value)
{
    g_autofree char *valid = g_utf8_make_valid(value, (gssize)strnlen(value, 100));
    return g_strescape(valid, NULL);
}

static gboolean printable(const char *text)
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
    if (strcmp(value, "rbd") == 0)
        return refuse(error, "type=rbd: this release provisions CephFS only; use type=cephfs");
    g_autofree char *text = shown(value);
    return refuse(error, "type=\"%s\" is not known; use cephfs", text);
}

static gboolean parse_row(const Row *row, const char *value, VolumeParams *params, GError **error)
{
    g_autofree char *text = shown(value);
    gpointer at = row->offset == NOWHERE ? NULL : G_STRUCT_MEMBER_P(params, row->offset);
    if (!*value && row->kind != KIND_ANY)
        return refuse(error, "parameter %s is empty; give it a value or leave it out", row->name);
    if (strlen(value) > 1024 || !printable(value))
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
        if (strcmp(value, "on") != 0 && strcmp(value, "off") != 0)
            return refuse(error, "%s=\"%s\": use on or off", row->name, text);
        *(gboolean *)at = strcmp(value, "on") == 0;
        return TRUE;
    case KIND_SIZE:
        if (!params_parse_size(value, at) || *(guint64 *)at == 0)
            return refuse(error, "%s=\"%s\" is no size; write bytes or a quantity such as 100Gi",
                          row->name, text);
        return TRUE;
    case KIND_DEFAULT:
        if (row->only && strcmp(value, row->only) == 0)
            return TRUE;
        return row->only
                   ? refuse(error, "%s=\"%s\" is not in this release; use %s or leave it out",
                            row->name, text, row->only)
                   : refuse(error, "parameter %s is not in this release; leave it out", row->name);
    case KIND_STATIC:
        return refuse(error,
                      "parameter %s describes a volume that exists; it belongs in the "
                      "volumeAttributes of a static PersistentVolume, not in a StorageClass",
                      row->name);
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
    g_autoptr(GString) known = g_string_new(NULL);
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        if (!g_str_has_prefix(rows[i].name, K8S) && rows[i].kind != KIND_STATIC)
            g_string_append_printf(known, "%s%s", known->len ? ", " : "", rows[i].name);
    }
    g_autofree char *text = shown(name);
    return refuse(error, "parameter \"%s\" is not known; known: %s, and those of " K8S, text,
                  known->str);
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
        if (row->types == RBD)
            return refuse(error, "parameter %s is for type=rbd, which is not in this release",
                          row->name);
        if (row->kind != KIND_STATIC && !(row->types & (1 << params->type)))
            return refuse(error, "parameter %s has no meaning with type=%s", row->name,
                          volume_type_name(params->type));
        if (!parse_row(row, g_hash_table_lookup(map, l->data), params, error))
            return FALSE;
    }
    return TRUE;
}

static gboolean check_whole(VolumeParams *params, GError **error)
{
    if (params->type == VOLUME_CEPHFS && !params->cluster_id)
        return refuse(error, "parameter clusterID is missing; it says which cluster of the "
                             "driver's config.json to use");
    if (params->type == VOLUME_CEPHFS && !params->fs_name)
        return refuse(error, "parameter fsName is missing; `ceph fs ls` lists the file systems");
    if (params->cluster_id && strchr(params->cluster_id, '/'))
        return refuse(error, "clusterID must have no '/'");
    if (params->cluster_id &&
        (strcmp(params->cluster_id, ".") == 0 || strcmp(params->cluster_id, "..") == 0))
        return refuse(error, "clusterID \"%s\" is no name", params->cluster_id);
    if (strlen(params->name_prefix) > PARAMS_PREFIX_MAX || *params->name_prefix == '_')
        return refuse(
            error, "volumeNamePrefix must have at most %d bytes and begin with a letter or digit",
            PARAMS_PREFIX_MAX);
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
    params->type = VOLUME_CEPHFS;
    params->cache = TRUE;
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

json_t *params_to_json(const VolumeParams *params)
{
    json_t *object = json_object();
    set_text(object, "type", volume_type_name(params->type));
    set_text(object, "clusterID", params->cluster_id);
    set_text(object, "fsName", params->fs_name);
    set_text(object, "pool", params->pool);
    set_text(object, "volumeNamePrefix", params->name_prefix);
    set_text(object, "cache", params->cache ? "on" : "off");
    if (params->cache_quota)
        json_object_set_new(object, "cacheQuota", json_integer((json_int_t)params->cache_quota));
    return object;
}
