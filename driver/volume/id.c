/* SPDX-License-Identifier: Apache-2.0 */
/* See id.h for the format. Decoding is strict: what it accepts, encoding reproduces. */
#include "driver/volume/id.h"
#include "driver/volume/adopted_id.h"
#include "driver/volume/name.h"
#include <string.h>

#define SEPARATOR '~'
#define VERSION "h1"
#define MAX_PARTS 4

static const char *const type_names[] = {
    [VOLUME_CEPHFS] = "cephfs", [VOLUME_RBD] = "rbd", [VOLUME_DIR] = "dir"};

const char *volume_type_name(VolumeType type)
{
    return type_names[type];
}

gboolean volume_type_parse(const char *name, VolumeType *type)
{
    for (guint i = 0; i < G_N_ELEMENTS(type_names); i++) {
        if (strcmp(name, type_names[i]) == 0) {
            *type = (VolumeType)i;
            return TRUE;
        }
    }
    return FALSE;
}

void volume_id_free(VolumeId *id)
{
    if (!id)
        return;
    g_free(id->cluster_id);
    g_free(id->fs_name);
    g_free(id->group);
    g_free(id->pool);
    g_free(id->rados_namespace);
    g_free(id->name);
    g_free(id->handle);
    g_free(id);
}

VolumeId *volume_id_copy(const VolumeId *id)
{
    VolumeId *copy = g_new0(VolumeId, 1);
    copy->type = id->type;
    copy->cluster_id = g_strdup(id->cluster_id);
    copy->fs_name = g_strdup(id->fs_name);
    copy->group = g_strdup(id->group);
    copy->pool = g_strdup(id->pool);
    copy->rados_namespace = g_strdup(id->rados_namespace);
    copy->name = g_strdup(id->name);
    copy->adopted = id->adopted;
    copy->handle = g_strdup(id->handle);
    return copy;
}

static int compare_within(const VolumeId *a, const VolumeId *b)
{
    int order = g_strcmp0(a->fs_name, b->fs_name);
    if (order == 0)
        order = g_strcmp0(a->pool, b->pool);
    return order ? order : g_strcmp0(a->rados_namespace, b->rados_namespace);
}

int volume_id_compare_locations(const VolumeId *a, const VolumeId *b)
{
    int order = g_strcmp0(a->cluster_id, b->cluster_id);
    return order ? order : compare_within(a, b);
}

gboolean volume_id_same_location(const VolumeId *a, const VolumeId *b)
{
    return a->type == b->type && volume_id_compare_locations(a, b) == 0;
}

gboolean volume_id_same_location_within(const VolumeId *a, const VolumeId *b)
{
    return a->type == b->type && compare_within(a, b) == 0;
}

char *volume_id_location_text(const VolumeId *id)
{
    switch (id->type) {
    case VOLUME_CEPHFS:
        return g_strdup_printf("file system %s of cluster %s", id->fs_name, id->cluster_id);
    case VOLUME_RBD:
        return *id->rados_namespace
                   ? g_strdup_printf("namespace %s of pool %s of cluster %s", id->rados_namespace,
                                     id->pool, id->cluster_id)
                   : g_strdup_printf("pool %s of cluster %s", id->pool, id->cluster_id);
    case VOLUME_DIR:
        break;
    }
    return g_strdup("the directory of --dir-root");
}

/* One row a kind of ID: the words before the type, and whether it names a group. */
typedef struct Form {
    const char *prefix, *what;
    gboolean has_group;
} Form;

static const Form volume_form = {VERSION "~", "volume", TRUE};
static const Form snapshot_form = {VERSION "~snap~", "snapshot", FALSE};
static const Form group_form = {VERSION "~group~", "group_snapshot", FALSE};

/* The fields of an ID in their order after the type; the table both directions follow. */
static guint parts_of(const Form *form, VolumeId *id, char ***parts)
{
    guint n = 0;
    if (id->type == VOLUME_CEPHFS) {
        parts[n++] = &id->cluster_id;
        parts[n++] = &id->fs_name;
        if (form->has_group)
            parts[n++] = &id->group;
    } else if (id->type == VOLUME_RBD) {
        parts[n++] = &id->cluster_id;
        parts[n++] = &id->pool;
        parts[n++] = &id->rados_namespace;
    }
    parts[n++] = &id->name;
    return n;
}

static gboolean is_plain(unsigned char c)
{
    return g_ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
}

static void append_escaped(GString *out, const char *part)
{
    for (const unsigned char *p = (const unsigned char *)part; *p; p++) {
        if (is_plain(*p))
            g_string_append_c(out, (char)*p);
        else
            g_string_append_printf(out, "%%%02X", *p);
    }
}

static char *encode(const Form *form, const VolumeId *id)
{
    VolumeId copy = *id;
    char **parts[MAX_PARTS];
    guint n = parts_of(form, &copy, parts);
    GString *out = g_string_new(form->prefix);
    g_string_append(out, volume_type_name(id->type));
    for (guint i = 0; i < n; i++) {
        g_string_append_c(out, SEPARATOR);
        append_escaped(out, *parts[i]);
    }
    return g_string_free(out, FALSE);
}

static const char *given(const char *part)
{
    return part ? part : "";
}

static char *encode_checked(const Form *form, const VolumeId *id, GError **error)
{
    g_autofree char *text = encode(form, id);
    gsize length = strlen(text);
    if (length > VOLUME_ID_MAX) {
        const char *outer = "fsName", *outer_value = given(id->fs_name);
        const char *inner = "subvolume group", *inner_value = given(id->group);
        if (id->pool) {
            outer = "pool";
            outer_value = id->pool;
            inner = "radosNamespace";
            inner_value = given(id->rados_namespace);
        }
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "the %s ID would have %" G_GSIZE_FORMAT
                    " bytes, and CSI allows %d: it holds clusterID \"%s\", %s \"%s\", "
                    "%s \"%s\" and the %s's name; shorten the longest of them",
                    form->what, length, VOLUME_ID_MAX, given(id->cluster_id), outer, outer_value,
                    inner, inner_value, form->what);
        return NULL;
    }
    return g_steal_pointer(&text);
}

static gsize name_room(const Form *form, const VolumeId *id)
{
    VolumeId unnamed = *id;
    unnamed.name = (char *)"";
    g_autofree char *text = encode(form, &unnamed);
    gsize length = strlen(text);
    return length < VOLUME_ID_MAX ? VOLUME_ID_MAX - length : 0;
}

char *volume_id_encode(const VolumeId *id, GError **error)
{
    return id->handle ? g_strdup(id->handle) : encode_checked(&volume_form, id, error);
}

gsize volume_id_room(const VolumeId *id)
{
    return name_room(&volume_form, id);
}

char *snapshot_id_encode(const VolumeId *snapshot, GError **error)
{
    return snapshot->handle ? g_strdup(snapshot->handle)
                            : encode_checked(&snapshot_form, snapshot, error);
}

gsize snapshot_id_room(const VolumeId *snapshot)
{
    return name_room(&snapshot_form, snapshot);
}

/* NULL for a text that encoding would not write. */
static char *unescape(const char *text)
{
    GString *out = g_string_new(NULL);
    gboolean good = *text != '\0';
    for (const char *p = text; good && *p; p++) {
        if (is_plain((unsigned char)*p)) {
            g_string_append_c(out, *p);
            continue;
        }
        int high = *p == '%' ? g_ascii_xdigit_value(p[1]) : -1;
        int low = high >= 0 ? g_ascii_xdigit_value(p[2]) : -1;
        int byte = high * 16 + low;
        good = high >= 0 && low >= 0 && byte >= ' ' && byte != 0x7f && byte != '/' &&
               !is_plain((unsigned char)byte) && !g_ascii_islower(p[1]) && !g_ascii_islower(p[2]);
        if (good)
            g_string_append_c(out, (char)byte);
        p += good ? 2 : 0;
    }
    good = good && strcmp(out->str, ".") != 0 && strcmp(out->str, "..") != 0 &&
           g_utf8_validate(out->str, -1, NULL);
    return g_string_free(out, !good);
}

static gboolean later_version(const char *text)
{
    const char *p = text + 1;
    while (g_ascii_isdigit(*p))
        p++;
    return text[0] == 'h' && p > text + 1 && *p == SEPARATOR &&
           strncmp(text, VERSION, (gsize)(p - text)) != 0;
}

/* NULL for a text that is no ID of the form. */
static VolumeId *parse(const Form *form, const char *text)
{
    if (strlen(text) > VOLUME_ID_MAX || !g_str_has_prefix(text, form->prefix))
        return NULL;
    const char separator[] = {SEPARATOR, '\0'};
    g_auto(GStrv) words = g_strsplit(text + strlen(form->prefix), separator, MAX_PARTS + 2);
    g_autoptr(VolumeId) id = g_new0(VolumeId, 1);
    if (!words[0] || !volume_type_parse(words[0], &id->type))
        return NULL;
    char **parts[MAX_PARTS];
    guint n = parts_of(form, id, parts);
    gboolean good = g_strv_length(words) == n + 1;
    for (guint i = 0; good && i < n; i++) {
        gboolean may_be_empty = parts[i] == &id->rados_namespace;
        *parts[i] = may_be_empty && !*words[i + 1] ? g_strdup("") : unescape(words[i + 1]);
        good = *parts[i] != NULL;
    }
    /* These become names of images and subvolumes, or components of paths. */
    for (guint i = 0; good && i < n; i++)
        good = parts[i] == &id->cluster_id || parts[i] == &id->pool ||
               parts[i] == &id->rados_namespace || name_is_plain(*parts[i]);
    return good ? g_steal_pointer(&id) : NULL;
}

static VolumeId *decode(const Form *form, const char *text, GError **error)
{
    if (!text || !*text) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s_id is empty", form->what);
        return NULL;
    }
    VolumeId *id = parse(form, text);
    if (id)
        return id;
    /* It may be anything, so a message shows its start, made printable. */
    g_autofree char *start = g_strndup(text, VOLUME_ID_MAX);
    g_autofree char *shown = g_strescape(start, NULL);
    g_autoptr(AdoptedId) adopted = adopted_id_decode(text);
    if (strlen(text) <= VOLUME_ID_MAX && later_version(text))
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "%s ID \"%s\" was written by another version of this driver; run that version "
                    "or a later one",
                    form->what, shown);
    else
        hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "%s \"%s\" %s", form->what, shown,
                    adopted ? "is ceph-csi's, which cannot be here"
                            : "does not exist: the ID is not of this driver");
    return NULL;
}

VolumeId *volume_id_decode(const char *text, GError **error)
{
    return decode(&volume_form, text, error);
}

VolumeId *snapshot_id_decode(const char *text, GError **error)
{
    return decode(&snapshot_form, text, error);
}

char *group_id_encode(const VolumeId *group, GError **error)
{
    return encode_checked(&group_form, group, error);
}

VolumeId *group_id_decode(const char *text, GError **error)
{
    return decode(&group_form, text, error);
}

gsize group_id_room(const VolumeId *group)
{
    return name_room(&group_form, group);
}
