/* SPDX-License-Identifier: Apache-2.0 */
/*
 * /proc/self/cgroup has a line for each hierarchy: "0::PATH" for version 2, "N:CONTROLLERS:PATH"
 * for version 1. A limit of a cgroup holds for those below it, so all of them up to the mount are
 * read. A container may have the path of the host there, which it does not see; then the mount
 * itself is its cgroup.
 */
#include "common/cgroup.h"
#include <string.h>

/* Version 1 says "no limit" by the largest number of pages. */
#define NO_MEMORY_LIMIT (UINT64_C(1) << 62)

typedef struct Hierarchy {
    const char *below; /* the mounts */
    gboolean v2;
} Hierarchy;

/* "/a/b" of the line of this hierarchy; NULL: there is none. */
static char *path_in(const char *lines, const char *controller, gboolean v2)
{
    g_auto(GStrv) all = g_strsplit(lines, "\n", -1);
    for (char **line = all; *line; line++) {
        g_auto(GStrv) fields = g_strsplit(*line, ":", 3);
        if (g_strv_length(fields) != 3)
            continue;
        g_auto(GStrv) controllers = g_strsplit(fields[1], ",", -1);
        if (v2 ? strcmp(fields[0], "0") == 0 && !fields[1][0]
               : g_strv_contains((const char *const *)controllers, controller))
            return g_strdup(fields[2]);
    }
    return NULL;
}

static uint64_t number_in(const char *dir, const char *name)
{
    g_autofree char *file = g_build_filename(dir, name, NULL);
    g_autofree char *text = NULL;
    guint64 n;
    if (!g_file_get_contents(file, &text, NULL, NULL))
        return CGROUP_NONE;
    return g_ascii_string_to_unsigned(g_strstrip(text), 10, 0, G_MAXUINT64, &n, NULL) ? n
                                                                                      : CGROUP_NONE;
}

typedef void (*See)(const char *dir, gboolean v2, void *data);

static void see_up(const char *top, const char *path, gboolean v2, See see, void *data)
{
    g_autofree char *below = g_strdup(path);
    for (;;) {
        g_autofree char *dir = g_strconcat(top, below, NULL);
        see(dir, v2, data);
        char *slash = strrchr(below, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

static void see_all(const Cgroup *cgroup, const char *controller, See see, void *data)
{
    const Hierarchy hierarchies[] = {{"", TRUE}, {"unified", TRUE}, {controller, FALSE}};
    g_autofree char *lines = NULL;
    if (!g_file_get_contents(cgroup->membership, &lines, NULL, NULL))
        return;
    for (gsize i = 0; i < G_N_ELEMENTS(hierarchies); i++) {
        const Hierarchy *h = &hierarchies[i];
        g_autofree char *path = path_in(lines, controller, h->v2);
        g_autofree char *top = g_build_filename(cgroup->mounts, h->below, NULL);
        if (path)
            see_up(top, path, h->v2, see, data);
    }
}

typedef struct Least {
    uint64_t left, most;
    char *file;
} Least;

static void see_threads(const char *dir, gboolean v2, void *data)
{
    (void)v2;
    Least *least = data;
    const uint64_t most = number_in(dir, "pids.max"), used = number_in(dir, "pids.current");
    const uint64_t left = most > used ? most - used : 0;
    if (most == CGROUP_NONE || used == CGROUP_NONE || left >= least->left)
        return;
    least->left = left;
    least->most = most;
    g_free(least->file);
    least->file = g_build_filename(dir, "pids.max", NULL);
}

uint64_t cgroup_threads_left(const Cgroup *cgroup, char **file, uint64_t *most)
{
    Least least = {.left = CGROUP_NONE};
    see_all(cgroup, "pids", see_threads, &least);
    if (!least.file)
        return CGROUP_NONE;
    g_free(*file);
    *file = least.file;
    *most = least.most;
    return least.left;
}

static void see_memory(const char *dir, gboolean v2, void *data)
{
    uint64_t *most = data;
    const uint64_t n = number_in(dir, v2 ? "memory.max" : "memory.limit_in_bytes");
    if (n < NO_MEMORY_LIMIT)
        *most = MIN(*most, n);
}

uint64_t cgroup_memory_most(const Cgroup *cgroup)
{
    uint64_t most = CGROUP_NONE;
    see_all(cgroup, "memory", see_memory, &most);
    return most;
}
