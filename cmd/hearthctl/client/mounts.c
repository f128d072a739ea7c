/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/client/mounts.h"
#include <gio/gio.h>
#include <string.h>
#include "driver/node/mount/kubelet_paths.h"
#include "proto/wire.h"

/* kubelet's, of the pods of a node. */
#define POD_DIRECTORY "/pods/"

/* One line: ID parent major:minor root mountpoint options [optional...] - fstype source options */
typedef struct Mount {
    char *id, *device;
    char *root, *point, *fstype, *source;
    char *options; /* of the file system, as the kernel writes them */
} Mount;

static void clear_mount(Mount *m)
{
    g_free(m->id);
    g_free(m->device);
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
    m->id = g_strdup(fields[0]);
    m->device = g_strdup(fields[2]);
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

static void free_entry(void *data)
{
    MountEntry *entry = data;
    g_free(entry->device);
    g_free(entry->point);
    g_free(entry->source);
    g_free(entry->volume);
    g_free(entry);
}

GPtrArray *mounts_entries(const char *mountinfo)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(free_entry);
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
    for (char **line = lines; *line; line++) {
        Mount m = {0};
        if (parse_line(*line, &m)) {
            MountEntry *entry = g_new0(MountEntry, 1);
            *entry = (MountEntry){.id = (int)g_ascii_strtoll(m.id, NULL, 10),
                                  .device = g_steal_pointer(&m.device),
                                  .point = g_steal_pointer(&m.point),
                                  .volume = volume_of(&m)};
            entry->source = g_steal_pointer(&m.source);
            g_ptr_array_add(all, entry);
        }
        clear_mount(&m);
    }
    return all;
}

const MountEntry *mounts_entry_of(const GPtrArray *entries, const char *path)
{
    const MountEntry *found = NULL;
    for (guint i = 0; i < entries->len; i++) {
        const MountEntry *entry = entries->pdata[i];
        if (beneath(path, entry->point) && (!found || strlen(entry->point) >= strlen(found->point)))
            found = entry;
    }
    return found;
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

void mounts_free_lost(void *data)
{
    LostMount *lost = data;
    g_free(lost->volume);
    g_free(lost->point);
    g_free(lost->pod);
    g_free(lost);
}

const char *mounts_heal_of(char *const *heals, const LostMount *lost)
{
    for (; lost->pod && heals && *heals; heals++)
        if (g_str_has_prefix(*heals, lost->pod) && (*heals)[strlen(lost->pod)] == '=')
            return *heals + strlen(lost->pod) + 1;
    return NULL;
}

gboolean mounts_same_volume(const char *a, const char *b)
{
    char x[WIRE_DATASET_DIGITS + 1], y[WIRE_DATASET_DIGITS + 1];
    return strcmp(a, b) == 0 ||
           (wire_dataset_of(a, x) && wire_dataset_of(b, y) && strcmp(x, y) == 0);
}

gboolean mounts_is_served(const json_t *served, const char *volume)
{
    for (size_t i = 0; i < json_array_size(served); i++) {
        const json_t *one = json_array_get(served, i);
        const char *name = json_string_value(json_object_get(one, "volume"));
        if (name && mounts_same_volume(name, volume) &&
            json_is_true(json_object_get(one, "attached")))
            return TRUE;
    }
    return FALSE;
}

static gboolean is_of_pod(const LostMount *lost)
{
    return strstr(lost->point, POD_DIRECTORY) != NULL;
}

static gboolean has_pod(const GPtrArray *all, const char *volume)
{
    for (guint i = 0; i < all->len; i++)
        if (is_of_pod(all->pdata[i]) && strcmp(((LostMount *)all->pdata[i])->volume, volume) == 0)
            return TRUE;
    return FALSE;
}

GPtrArray *mounts_lost(const char *mountinfo, const json_t *served, const char *within)
{
    GPtrArray *all = g_ptr_array_new_with_free_func(mounts_free_lost);
    g_auto(GStrv) lines = g_strsplit(mountinfo, "\n", -1);
    for (char **line = lines; *line; line++) {
        Mount m = {0};
        g_autofree char *volume = NULL;
        if (parse_line(*line, &m) && strcmp(m.fstype, MOUNTS_FSTYPE) == 0 &&
            strstr(m.point, within))
            volume = volume_of(&m);
        if (volume && !mounts_is_served(served, volume)) {
            LostMount *lost = g_new0(LostMount, 1);
            char *pod = kubelet_pod_of(m.point);
            *lost = (LostMount){g_steal_pointer(&volume), g_steal_pointer(&m.point), pod};
            g_ptr_array_add(all, lost);
        }
        clear_mount(&m);
    }
    for (guint i = all->len; i-- > 0;) {
        const LostMount *lost = all->pdata[i];
        if (!is_of_pod(lost) && has_pod(all, lost->volume))
            g_ptr_array_remove_index(all, i);
    }
    return all;
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
