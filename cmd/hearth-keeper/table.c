/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearth-keeper/table.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of mounts, a node has a thousand at most. */
#define NAMES_MAX 16384

typedef struct Held {
    char *name;
    int fds[KEEP_FDS_MAX];
    unsigned n_fds;
} Held;

static Held *all; /* by name */
static size_t n, room;

/* The first that is not before `name`. */
static size_t place_of(const char *name)
{
    size_t from = 0, to = n;
    while (from < to) {
        const size_t middle = from + (to - from) / 2;
        if (strcmp(all[middle].name, name) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static int is_at(size_t at, const char *name)
{
    return at < n && strcmp(all[at].name, name) == 0;
}

static void hold(Held *held, KeepMessage *m)
{
    memcpy(held->fds, m->fds, sizeof(held->fds));
    held->n_fds = m->n_fds;
    m->n_fds = 0;
}

static void close_held(const Held *held)
{
    for (unsigned i = 0; i < held->n_fds; i++)
        close(held->fds[i]);
}

static int insert(size_t at, KeepMessage *m)
{
    if (n == NAMES_MAX)
        return ENOSPC;
    if (n == room) {
        Held *more = realloc(all, (room + 64) * sizeof(*all));
        if (!more)
            return ENOMEM;
        all = more;
        room += 64;
    }
    char *name = strdup(m->name);
    if (!name)
        return ENOMEM;
    memmove(all + at + 1, all + at, (n - at) * sizeof(*all));
    n++;
    all[at].name = name;
    hold(&all[at], m);
    return 0;
}

int table_put(KeepMessage *m)
{
    const size_t at = place_of(m->name);
    int rc = 0;
    if (is_at(at, m->name)) {
        close_held(&all[at]);
        hold(&all[at], m);
    } else {
        rc = insert(at, m);
    }
    keep_close(m);
    return rc;
}

void table_drop(const char *name)
{
    const size_t at = place_of(name);
    if (!is_at(at, name))
        return;
    close_held(&all[at]);
    free(all[at].name);
    n--;
    memmove(all + at, all + at + 1, (n - at) * sizeof(*all));
}

int table_next(const char *name, KeepMessage *found)
{
    size_t at = place_of(name);
    if (is_at(at, name))
        at++;
    if (at == n)
        return ENOENT;
    strcpy(found->name, all[at].name);
    memcpy(found->fds, all[at].fds, sizeof(found->fds));
    found->n_fds = all[at].n_fds;
    return 0;
}
