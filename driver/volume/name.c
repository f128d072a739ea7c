/* SPDX-License-Identifier: Apache-2.0 */
/* Ceph's own rule for names of file systems and subvolumes is [A-Za-z0-9._-]; see name.h. */
#include "driver/volume/name.h"
#include <string.h>

static gboolean plain_characters(const char *text)
{
    for (const char *p = text; *p; p++) {
        if (!g_ascii_isalnum(*p) && *p != '.' && *p != '_' && *p != '-')
            return FALSE;
    }
    return TRUE;
}

gboolean name_is_plain(const char *text)
{
    return *text && *text != '.' && *text != '-' && plain_characters(text);
}

gboolean name_check_request(const char *name, GError **error)
{
    if (!name || !*name)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "name is empty");
    gsize length = strlen(name);
    if (length > NAME_REQUEST_MAX)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                           "name has %" G_GSIZE_FORMAT " bytes; CSI allows %d", length,
                           NAME_REQUEST_MAX);
    if (!g_utf8_validate(name, -1, NULL))
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "name is not UTF-8");
    for (const char *p = name; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char(p);
        if (g_unichar_iscntrl(c))
            return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                               "name has the control character U+%04X at byte %d", c,
                               (int)(p - name));
    }
    return TRUE;
}

char *name_backend(const char *prefix, const char *name, gsize room, GError **error)
{
    if (!name_check_request(name, error))
        return NULL;
    gsize prefix_length = strlen(prefix);
    if (plain_characters(name) && prefix_length + strlen(name) <= room)
        return g_strconcat(prefix, name, NULL);
    if (prefix_length + NAME_HASH_DIGITS > room) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "clusterID, fsName and subvolume group leave %" G_GSIZE_FORMAT
                    " of the volume ID's bytes for a name, and volumeNamePrefix \"%s\" with a hash "
                    "takes %" G_GSIZE_FORMAT "; shorten one of them",
                    room, prefix, prefix_length + NAME_HASH_DIGITS);
        return NULL;
    }
    g_autofree char *hash = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
    hash[NAME_HASH_DIGITS] = '\0';
    return g_strconcat(prefix, hash, NULL);
}
