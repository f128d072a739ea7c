/* SPDX-License-Identifier: Apache-2.0 */
/* Open files of a session and their leases. Only cache/fuse/live/ includes this. */
#ifndef HEARTH_CACHE_FUSE_LIVE_HANDLES_H
#define HEARTH_CACHE_FUSE_LIVE_HANDLES_H

#include "cache/fuse/live/handle.h"
#include "cache/fuse/opened.h"

/* Takes over `file`, which was opened with these flags. */
Handle *handle_new(Session *session, Node *node, OriginFile *file, int flags);
/* The same for what an earlier process had open. */
Handle *handle_reopened(Session *session, Node *node, OriginFile *file, const Reopen *before);
/* Ends the opening: the kernel asks for it, or the reply to it was lost. */
void handle_release(Handle *handle);
/* Releases all that the kernel did not before the end. No worker is running. */
void handles_close_all(Session *session);

/*
 * Tries to get the file guaranteed unchanged, with handle->content of that version. FALSE: it is
 * used in a way that conflicts; *attr is then filled for an opener only: a read holds pages locked
 * and must not ask for more than its bytes.
 */
gboolean handle_take_lease(Handle *handle, gboolean opener, OriginAttr *attr, int *r);
/* Whether only the right to read was missing to look at what the store has, and a read has shown it
 * since. */
gboolean handle_looks_again(const Handle *handle);
/* Looks, under the handle's lease. It may wait for Ceph: the pages of a read are noted before. */
void handle_look_again(Handle *handle);
/* Whether any handle of the node has a lease: no other client changes the file. */
gboolean handles_leased(Node *node);
/* Whether a read through this handle may ask for a lease now, after it was refused one. */
gboolean handle_may_ask(const Handle *handle);
/* Gives back the leases of a node's readers and drops the kernel's pages, before a writer opens the
 * file here. */
void handles_return_leases(Session *session, Node *node);

/* What the notifier calls. */
extern const NotifierLeases handles_notifier_leases;

/* For how long the kernel may use the node's attributes without asking (seconds): not at all while
 * it is open without a lease, as the size tells a reader where the file ends. */
double handles_attr_valid(Session *session, Node *node);

#endif
