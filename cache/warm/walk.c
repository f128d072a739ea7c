/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack holds one open directory a level. A directory that is deeper than MAX_DEPTH is reported
 * rather than entered: PATH_MAX allows no path that long, and each level costs descriptors.
 */
#include "cache/warm/walk.h"
#include <errno.h>
#include <string.h>

#define MAX_DEPTH 512

typedef struct Level {
    OriginNode *node;
    OriginDir *dir;
    int64_t off;
    gsize path_length; /* of this directory's own path */
} Level;

typedef struct Walk {
    Origin *origin;
    const WalkVisitor *visitor;
    GArray *levels;
    GString *path;
} Walk;

static void report_failure(Walk *w, int result)
{
    if (w->visitor->failed)
        w->visitor->failed(w->visitor->data, w->path->str, -result);
}

/* Enters the directory w->path names; takes a reference of its own. */
static void enter_directory(Walk *w, OriginNode *node)
{
    Level level = {.path_length = w->path->len};
    int result = w->levels->len < MAX_DEPTH ? w->origin->ops->opendir(w->origin, node, &level.dir)
                                            : -ENAMETOOLONG;
    if (result < 0) {
        report_failure(w, result);
        return;
    }
    level.node = w->origin->ops->get(w->origin, node);
    g_array_append_val(w->levels, level);
}

static void leave_directory(Walk *w)
{
    Level *level = &g_array_index(w->levels, Level, w->levels->len - 1);
    w->origin->ops->closedir(w->origin, level->dir);
    w->origin->ops->put(w->origin, level->node);
    g_array_set_size(w->levels, w->levels->len - 1);
}

static gboolean visit_entry(Walk *w, const OriginEntry *entry)
{
    if (!entry->node || strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
        return TRUE;
    g_string_append_printf(w->path, "%s%s", w->path->len ? "/" : "", entry->name);
    mode_t mode = entry->attr.st.st_mode;
    if (S_ISDIR(mode))
        enter_directory(w, entry->node);
    else if (S_ISREG(mode))
        return w->visitor->file(w->visitor->data, w->path->str, entry->node, &entry->attr);
    return TRUE;
}

/* One entry of the deepest directory. */
static gboolean read_next(Walk *w)
{
    OriginEntry entry;
    Level *level = &g_array_index(w->levels, Level, w->levels->len - 1);
    g_string_truncate(w->path, level->path_length);
    entry.node = NULL;
    int result = w->origin->ops->readdir(w->origin, level->dir, level->off, TRUE, &entry);
    if (result <= 0) {
        if (result < 0)
            report_failure(w, result);
        leave_directory(w);
        return TRUE;
    }
    level->off = entry.next;
    gboolean go_on = visit_entry(w, &entry);
    if (entry.node)
        w->origin->ops->put(w->origin, entry.node);
    return go_on;
}

gboolean walk(Origin *origin, OriginNode *node, const OriginAttr *attr, const char *path,
              const WalkVisitor *visitor)
{
    if (S_ISREG(attr->st.st_mode))
        return visitor->file(visitor->data, path, node, attr);
    Walk w = {.origin = origin,
              .visitor = visitor,
              .levels = g_array_new(FALSE, FALSE, sizeof(Level)),
              .path = g_string_new(path)};
    gboolean go_on = TRUE;
    if (S_ISDIR(attr->st.st_mode))
        enter_directory(&w, node);
    while (go_on && w.levels->len)
        go_on = read_next(&w);
    while (w.levels->len)
        leave_directory(&w);
    g_array_unref(w.levels);
    g_string_free(w.path, TRUE);
    return go_on;
}
