/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/client/mounts.h"
#include <gio/gio.h>
#include <string.h>
#include "proto/wire.h"

/* One line: ID parent major:minor root mountpoint options [optional...] - fstype source options */
typedef struct Mount {
    char *root, *point, *fstype, *source;
    char *options; /* of the file system, as the kernel writes them */
} Mount;

static void clear_mount(Mount *m)
{
    g_free(m->root);
    g_free(m->point);
    g_free(m->fstype);
    g_free(m->source);
    g_free(m->options);
    *m = (Mount){0};
}

/* The kernel writes space, tab, newline and backslash as three octal digits. */
static char *unescape(const char *field)
{
    GString *text = g_string_new(NULL);
    for (const char *p = field; *p; p++) {
        if (p[0] == '\\' && p[1] >= '0' && p[1] <= '3' && p[2] >= '0' && p[2] <= '7' &&
            p[3] >= '0' && p[3] <= '7') {
            g_string_append_c(text, (char)((p[1] - '0') * 64 + (p[2] - '0') * 8 + (p[3] - '0')));
            p += 3;
        } else {
            g_string_append_c(text, *p);
        }
    }
    return g_string_free(text, FALSE);
}

static gboolean parse_line(const char *line, Mount *m)
{
    g_auto(GStrv) fields = g_strsplit(line, " ", -1);
    guint n = g_strv_length(fields);
    guint dash = 6;
    while (dash < n && strcmp(fields[dash], "-") != 0)
        dash++;
    if (dash + 2 >= n)
        return FALSE;
    m->root = unescape(fields[3]);
    m->point = unescape(fields[4]);
    m->fstype = unescape(fields[dash + 1]);
    m->source = unescape(fields[dash + 2]);
    m->options = g_strdup(dash + 3 < n ? fields[dash + 3] : "");
    return TRUE;
}

/* What of `path` is beneath `point`, without a leading slash; NULL when it is not. */
static const char *beneath(const char *path, const char *point)
{
    if (strcmp(point, "/") == 0)
        return path + 1;
    size_t length = strlen(point);
    if (strncmp(path, point, length) != 0)
        return NULL;
    if (path[length] == '\0')
        return path + length;
    return path[length] == '/' ? path + length + 1 : NULL;
}

/* The deepest mount point above the path; of several on one point the last covers the others. */
static gboolean find_mount(const char *mountinfo, const char *path, Mount *found)
{
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
    gboolean any = FALSE;
    for (char **line = lines; *line; line++) {
        Mount m = {0};
        if (parse_line(*line, &m) && beneath(path, m.point) &&
            (!any || strlen(m.point) >= strlen(found->point))) {
            clear_mount(found);
            *found = m;
            any = TRUE;
        } else {
            clear_mount(&m);
        }
    }
    return any;
}

/* The volume that serves a mount; NULL when it is none of Hearth's. */
static char *volume_of(const Mount *m)
{
    static const char suffix[] = ".manifest";
    if (!g_str_has_prefix(m->source, MOUNTS_SOURCE_PREFIX))
        return NULL;
    if (strcmp(m->fstype, MOUNTS_FSTYPE) == 0)
        return g_strdup(m->source + strlen(MOUNTS_SOURCE_PREFIX));
    const char *end =
        strcmp(m->fstype, MOUNTS_STACK_FSTYPE) == 0 ? strstr(m->options, suffix) : NULL;
    if (!end)
        return NULL;
    g_autofree char *path = g_strndup(m->options, (gsize)(end - m->options));
    char *name = strrchr(path, '/');
    char *number = name ? strchr(name, '.') : NULL, dataset[WIRE_DATASET_DIGITS + 1];
    if (!number)
        return NULL;
    *number = '\0';
    g_autofree char *volume = g_strconcat(WIRE_DATASET_PREFIX, name + 1, NULL);
    return wire_dataset_of(volume, dataset) ? g_steal_pointer(&volume) : NULL;
}

char *mounts_served_volume(const char *mountinfo, const char *volume)
{
    char *served = NULL;
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
    for (char **line = lines; *line && !served; line++) {
        Mount m = {0};
        if (parse_line(*line, &m) && g_str_has_prefix(m.source, MOUNTS_SOURCE_PREFIX) &&
            strcmp(m.source + strlen(MOUNTS_SOURCE_PREFIX), volume) == 0)
            served = volume_of(&m);
        clear_mount(&m);
    }
    return served ? served : g_strdup(volume);
}

gboolean mounts_find_volume(const char *mountinfo, const char *path, char **volume, char **inside,
                            GError **error)
{
    Mount m = {0};
    gboolean found = find_mount(mountinfo, path, &m);
    *volume = found ? volume_of(&m) : NULL;
    if (!*volume) {
        const char *fstype = found ? m.fstype : "nothing known";
        const char *point = found ? m.point : "-";
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND,
                    "%s is on no Hearth volume (it is on %s, mounted at %s)", path, fstype, point);
        clear_mount(&m);
        return FALSE;
    }
    const char *root = m.root[0] == '/' ? m.root + 1 : m.root;
    const char *rest = beneath(path, m.point);
    *inside = g_strdup_printf("%s%s%s", root, root[0] && rest[0] ? "/" : "", rest);
    clear_mount(&m);
    return TRUE;
}
