/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SELinux contexts of mounts. With one (mount(8), "context=") all files of a mount have it,
 * whatever is stored with them, so that nobody has to walk the files and label them; FUSE and what
 * is read-only could not be labelled at all. A file system has one context for as long as it is
 * mounted, wherever it is bound, and /proc/self/mountinfo shows it: kubelet reads it there after a
 * restart, and so does Hearth. It is recorded nowhere else, and hearthd need not know it.
 *
 * libselinux is not used: mounts are made by fsconfig(2), which hands a context to the kernel as it
 * is, and nothing is looked up in a policy here.
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_SELINUX_H
#define HEARTH_DRIVER_NODE_MOUNT_SELINUX_H

#include <glib.h>
#include "common/error.h"

/* Whether the kernel of this node labels files. Where it does not, a context means nothing. */
gboolean selinux_is_enabled(void);

/* Whether a mount option is a context (not "fscontext=" and the like, which nobody needs). */
gboolean selinux_is_option(const char *word);
/*
 * Takes the context of such an option over into *context (NULL before, the caller's).
 * INVALID_ARGUMENT: it is none, or another one than that of an option before it.
 */
gboolean selinux_take_option(const char *word, char **context, GError **error);

/*
 * Whether both mean the same. The kernel writes categories in order and in ranges, pods have them
 * in any order: s0:c26,c10 is s0:c10,c26.
 */
gboolean selinux_same(const char *a, const char *b);

/* For messages of an option that is not known, behind a context (or not): what to do about a
 * context that was cut at its comma. */
const char *selinux_hint(gboolean labelled);
/* For messages of a mount that failed: " with the SELinux context C", or ""; the caller's. */
char *selinux_shown(const char *context);

#endif
