/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/live/name_change.h"
#include "cache/fuse/live/known_names.h"

static Node *begin_locked(Nodes *nodes, const Node *parent, const char *name)
{
    Node *node = parent ? known_names_find_locked(nodes_names(nodes), parent, name) : NULL;
    /* One that is about to be freed is not in use any more. */
    node = node ? nodes_use(nodes, node->id) : NULL;
    if (node)
        atomic_fetch_add(&node->moving, 1);
    return node;
}

void name_change_begin(Nodes *nodes, NameChange *change)
{
    KnownNames *names = nodes_names(nodes);
    known_names_lock(names);
    change->moving[0] = begin_locked(nodes, change->from, change->name);
    change->moving[1] = begin_locked(nodes, change->to, change->new_name);
    known_names_unlock(names);
}

static void done_locked(KnownNames *names, const NameChange *change)
{
    Node *moved = known_names_find_locked(names, change->from, change->name);
    Node *there = change->to ? known_names_find_locked(names, change->to, change->new_name) : NULL;
    if (there)
        known_names_rename_locked(names, there, NULL, NULL);
    if (moved && moved != there)
        known_names_rename_locked(names, moved, change->to, change->new_name);
}

/* Both keep the rest of their time. */
static void exchanged_locked(KnownNames *names, const NameChange *change)
{
    Node *one = known_names_find_locked(names, change->from, change->name);
    Node *other = known_names_find_locked(names, change->to, change->new_name);
    if (one)
        known_names_rename_locked(names, one, change->to, change->new_name);
    if (other)
        known_names_rename_locked(names, other, change->from, change->name);
}

void name_change_end(Nodes *nodes, NameChange *change, gboolean done)
{
    KnownNames *names = nodes_names(nodes);
    known_names_lock(names);
    atomic_fetch_add(&change->from->changes, 1);
    if (change->to)
        atomic_fetch_add(&change->to->changes, 1);
    if (done && change->exchange)
        exchanged_locked(names, change);
    else if (done)
        done_locked(names, change);
    for (int i = 0; i < 2; i++) {
        Node *node = change->moving[i];
        if (!node)
            continue;
        /* In this order: a check that finds no change running finds that one has ended. */
        atomic_fetch_add(&node->moves, 1);
        atomic_fetch_sub(&node->moving, 1);
    }
    known_names_unlock(names);
    nodes_done(nodes, change->moving[0]);
    nodes_done(nodes, change->moving[1]);
}
