/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/adopted_id.h"
#include <string.h>
#include "driver/volume/id.h"
#include "driver/volume/params.h"

#define VERSION "0001-"
#define LOCATION_DIGITS 16
#define LENGTH_DIGITS 4

void adopted_id_free(AdoptedId *id)
{
    if (!id)
        return;
    g_free(id->cluster_id);
    g_free(id->uuid);
    g_free(id);
}

/* Lower-case digits and a '-' after them, which *text is moved past. */
static gboolean take_hex(const char **text, guint digits, guint64 *value)
{
    *value = 0;
    for (guint i = 0; i < digits; i++) {
        char c = (*text)[i];
        if (!g_ascii_isxdigit(c) || g_ascii_isupper(c))
            return FALSE;
        *value = *value << 4 | (guint64)g_ascii_xdigit_value(c);
    }
    if ((*text)[digits] != '-')
        return FALSE;
    *text += digits + 1;
    return TRUE;
}

static gboolean is_uuid(const char *text)
{
    for (guint i = 0; i < ADOPTED_UUID_LENGTH; i++) {
        gboolean dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text[i] != '-' : !g_ascii_isxdigit(text[i]) || g_ascii_isupper(text[i]))
            return FALSE;
    }
    return text[ADOPTED_UUID_LENGTH] == '\0';
}

static gboolean is_cluster_id(const char *text, gsize length)
{
    for (gsize i = 0; i < length; i++) {
        if (!g_ascii_isprint(text[i]) || text[i] == '/')
            return FALSE;
    }
    return length > 0;
}

AdoptedId *adopted_id_decode(const char *text)
{
    guint64 length, location;
    if (!text || strlen(text) > VOLUME_ID_MAX || !g_str_has_prefix(text, VERSION))
        return NULL;
    const char *at = text + strlen(VERSION);
    if (!take_hex(&at, LENGTH_DIGITS, &length) || length >= strlen(at) || at[length] != '-' ||
        !is_cluster_id(at, length))
        return NULL;
    const char *cluster_id = at;
    at += length + 1;
    if (!take_hex(&at, LOCATION_DIGITS, &location) || location > G_MAXINT64 || !is_uuid(at))
        return NULL;
    AdoptedId *id = g_new0(AdoptedId, 1);
    id->cluster_id = g_strndup(cluster_id, length);
    id->location = location;
    id->uuid = g_strdup(at);
    return id;
}

char *adopted_id_encode(const AdoptedId *id)
{
    return g_strdup_printf(VERSION "%04x-%s-%016" G_GINT64_MODIFIER "x-%s",
                           (guint)strlen(id->cluster_id), id->cluster_id, id->location, id->uuid);
}

char *adopted_id_volume(const AdoptedId *id)
{
    return g_strconcat(PARAMS_DEFAULT_PREFIX, id->uuid, NULL);
}
