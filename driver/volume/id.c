/* See id.h for the format. Decoding is strict: what it accepts, encoding reproduces. */
#include "driver/volume/id.h"
#include "driver/volume/name.h"
#include <string.h>

#define SEPARATOR '~'
#define VERSION "h1"
#define MAX_PARTS 4

static const char *const type_names[] = {[VOLUME_CEPHFS] = "cephfs", [VOLUME_DIR] = "dir"};

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
    g_free(id->name);
    g_free(id);
}

VolumeId *volume_id_copy(const VolumeId *id)
{
    VolumeId *copy = g_new0(VolumeId, 1);
    copy->type = id->type;
    copy->cluster_id = g_strdup(id->cluster_id);
    copy->fs_name = g_strdup(id->fs_name);
    copy->group = g_strdup(id->group);
    copy->name = g_strdup(id->name);
    return copy;
}

/* The fields of an ID in their order after the type; the table both directions follow. */
static guint parts_of(VolumeId *id, char ***parts)
{
    guint n = 0;
    if (id->type == VOLUME_CEPHFS) {
        parts[n++] = &id->cluster_id;
        parts[n++] = &id->fs_name;
        parts[n++] = &id->group;
    }
    parts[n++] = &id->name;
    return n;
}

static gboolean plain(unsigned char c)
{
    return g_ascii_isalnum(c) || c == '.' || c == '_' || c == '-';
}

static void append_escaped(GString *out, const char *part)
{
    for (const unsigned char *p = (const unsigned char *)part; *p; p++) {
        if (plain(*p))
            g_string_append_c(out, (char)*p);
        else
            g_string_append_printf(out, "%%%02X", *p);
    }
}

static char *encode(const VolumeId *id)
{
    VolumeId copy = *id;
    char **parts[MAX_PARTS];
    guint n = parts_of(&copy, parts);
    GString *out = g_string_new(VERSION);
    g_string_append_c(out, SEPARATOR);
    g_string_append(out, volume_type_name(id->type));
    for (guint i = 0; i < n; i++) {
        g_string_append_c(out, SEPARATOR);
        append_escaped(out, *parts[i]);
    }
    return g_string_free(out, FALSE);
}

char *volume_id_encode(const VolumeId *id, GError **error)
{
    g_autofree char *text = encode(id);
    gsize length = strlen(text);
    if (length > VOLUME_ID_MAX) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "the volume ID would have %" G_GSIZE_FORMAT
                    " bytes, and CSI allows %d: it holds clusterID \"%s\", fsName \"%s\", "
                    "subvolume group \"%s\" and the volume's name; shorten the longest of them",
                    length, VOLUME_ID_MAX, id->cluster_id ? id->cluster_id : "",
                    id->fs_name ? id->fs_name : "", id->group ? id->group : "");
        return NULL;
    }
    return g_steal_pointer(&text);
}

gsize volume_id_room(const VolumeId *id)
{
    VolumeId unnamed = *id;
    unnamed.name = (char *)"";
    g_autofree char *text = encode(&unnamed);
    gsize length = strlen(text);
    return length < VOLUME_ID_MAX ? VOLUME_ID_MAX - length : 0;
}

/* NULL for what encoding would not write. */
static char *unescape(const char *text)
{
    GString *out = g_string_new(NULL);
    gboolean good = *text != '\0';
    for (const char *p = text; good && *p; p++) {
        if (plain((unsigned char)*p)) {
            g_string_append_c(out, *p);
            continue;
        }
        int high = *p == '%' ? g_ascii_xdigit_value(p[1]) : -1;
        int low = high >= 0 ? g_ascii_xdigit_value(p[2]) : -1;
        int byte = high * 16 + low;
        good = high >= 0 && low >= 0 && byte >= ' ' && byte != 0x7f && byte != '/' &&
               !plain((unsigned char)byte) && !g_ascii_islower(p[1]) && !g_ascii_islower(p[2]);
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

VolumeId *volume_id_decode(const char *text, GError **error)
{
    if (!text || !*text) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT, "volume_id is empty");
        return NULL;
    }
    /* It may be anything, so a message shows its start, made printable. */
    g_autofree char *start = g_strndup(text, VOLUME_ID_MAX);
    g_autofree char *shown = g_strescape(start, NULL);
    g_autoptr(VolumeId) id = NULL;
    if (strlen(text) <= VOLUME_ID_MAX) {
        const char separator[] = {SEPARATOR, '\0'};
        g_auto(GStrv) words = g_strsplit(text, separator, MAX_PARTS + 3);
        guint n_words = g_strv_length(words);
        VolumeType type;
        if (n_words >= 2 && strcmp(words[0], VERSION) == 0 && volume_type_parse(words[1], &type)) {
            id = g_new0(VolumeId, 1);
            id->type = type;
            char **parts[MAX_PARTS];
            guint n = parts_of(id, parts);
            gboolean good = n_words == n + 2;
            for (guint i = 0; good && i < n; i++)
                good = (*parts[i] = unescape(words[i + 2])) != NULL;
            /* All but the cluster's ID become names in Ceph or components of paths. */
            for (guint i = 0; good && i < n; i++)
                good = parts[i] == &id->cluster_id || name_is_plain(*parts[i]);
            if (good)
                return g_steal_pointer(&id);
        } else if (later_version(text)) {
            g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION,
                        "volume ID \"%s\" was written by another version of this driver; run that "
                        "version or a later one",
                        shown);
            return NULL;
        }
    }
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND,
                "volume \"%s\" does not exist: the ID is not of this driver", shown);
    return NULL;
}
