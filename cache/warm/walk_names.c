/* SPDX-License-Identifier: Apache-2.0 */
/* Names of a manifest are in the order of the walk that built it: a directory stands before its
 * entries, and its files follow each other. */
#include "cache/warm/walk_names.h"
#include <string.h>

#define AHEAD_STEP 1024
#define AHEAD_DIRS 16 /* the builder lists a few directories at once, so they are mixed */

/* Whether a directory is the one wanted or beneath it. */
static gboolean is_beneath(const Names *names, uint64_t at, uint64_t wanted)
{
    Name name;
    while (at > wanted && names_read(names, at, &name))
        at = name.parent;
    return at == wanted;
}

/* FALSE when the path has no name in the manifest, as empty files and symbolic links. */
static gboolean find_path(const Names *names, const char *path, Name *found)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    char **part = parts;
    uint64_t in = 0;
    Name name;
    if (!path[0])
        return names_read(names, 0, found);
    /* A directory comes before what is in it, so one pass finds all parts. */
    for (uint64_t at = 0; names_read(names, at, &name); at = name.next) {
        if (at == 0 || name.parent != in || name.length != strlen(*part) ||
            memcmp(name.text, *part, name.length) != 0)
            continue;
        in = at;
        if (*++part)
            continue;
        *found = name;
        return TRUE;
    }
    return FALSE;
}

static char *join_path(const char *directory, const char *text, size_t length)
{
    return g_strdup_printf("%s%s%.*s", directory, directory[0] ? "/" : "", (int)length, text);
}

gboolean walk_names(const Manifest *manifest, const char *path,
                    gboolean (*file)(void *data, const NamedFile *file), void *data)
{
    const Names *names = &manifest->names;
    Name top, name;
    gboolean go_on = TRUE, inside = FALSE;
    uint64_t parent = UINT64_MAX;
    g_autofree char *directory = NULL;
    if (!find_path(names, path, &top))
        return TRUE;
    for (uint64_t at = top.at; go_on && names_read(names, at, &name); at = name.next) {
        if (name.is_file && name.parent != parent) {
            parent = name.parent;
            inside = top.is_file || is_beneath(names, parent, top.at);
            g_free(directory);
            directory = inside ? names_path(names, parent) : NULL;
        }
        if (name.is_file && inside && directory) {
            g_autofree char *whole = join_path(directory, name.text, name.length);
            NamedFile f = {whole, directory, parent, name.key};
            memcpy(f.key.space, manifest->footer.space, sizeof(f.key.space));
            go_on = file(data, &f);
        }
        if (top.is_file)
            break;
    }
    return go_on;
}

/* ---- listing ahead */

typedef struct Listing {
    uint64_t parent;
    int64_t off;
    int ahead; /* names listed that the walk has not reached */
    gboolean used, ended;
} Listing;

struct Ahead {
    Origin *origin;
    Listing listings[AHEAD_DIRS];
    unsigned next; /* to be replaced */
};

Ahead *ahead_new(Origin *origin)
{
    Ahead *a = g_new0(Ahead, 1);
    a->origin = origin;
    return a;
}

void ahead_free(Ahead *a)
{
    g_free(a);
}

static Listing *listing_of(Ahead *a, uint64_t parent)
{
    for (unsigned i = 0; i < AHEAD_DIRS; i++)
        if (a->listings[i].used && a->listings[i].parent == parent)
            return &a->listings[i];
    Listing *l = &a->listings[a->next++ % AHEAD_DIRS];
    *l = (Listing){.parent = parent, .off = a->origin->ops->after_dots, .used = TRUE};
    return l;
}

/* Files that it cannot list are looked up by name later, which reports the error. */
static void list_more(Ahead *a, Listing *l, const char *directory)
{
    const OriginOps *ops = a->origin->ops;
    OriginNode *node;
    OriginAttr attr;
    OriginDir *dir;
    OriginEntry entry = {.node = NULL};
    l->ended = TRUE;
    if (origin_find(a->origin, directory, &node, &attr) < 0)
        return;
    /* Asked for by themselves, a directory's attributes come with the right to trust its names. */
    if (ops->getattr(a->origin, node, &attr) == 0 && ops->opendir(a->origin, node, &dir) == 0) {
        for (unsigned i = 0; i < AHEAD_STEP; i++) {
            entry.node = NULL;
            if (ops->readdir(a->origin, dir, l->off, TRUE, &entry) <= 0)
                break;
            l->off = entry.next;
            l->ended = i + 1 < AHEAD_STEP;
            l->ahead += entry.node && S_ISREG(entry.attr.st.st_mode) && entry.attr.st.st_size > 0;
            if (entry.node)
                ops->put(a->origin, entry.node);
        }
        ops->closedir(a->origin, dir);
    }
    ops->put(a->origin, node);
}

void ahead_of(Ahead *a, const NamedFile *file)
{
    Listing *l = listing_of(a, file->parent);
    if (l->ahead <= 0 && !l->ended)
        list_more(a, l, file->directory);
    l->ahead--;
}
