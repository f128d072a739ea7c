/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mount options as one line has them: mount flags of a capability, and what /proc/self/mountinfo
 * tells of a file system. Commas divide them, but for those of a value in double quotes, as in
 *
 *     noatime,context="system_u:object_r:container_file_t:s0:c1,c2",ro
 */
#ifndef HEARTH_DRIVER_NODE_MOUNT_MOUNT_WORDS_H
#define HEARTH_DRIVER_NODE_MOUNT_MOUNT_WORDS_H

#include <glib.h>
#include "common/error.h"

/*
 * The options, quotes kept, without empty ones; for g_strfreev(). A quote counts only where a value
 * begins, for the kernel does not escape one in a path; in quotes a backslash takes away the
 * meaning of the next character. INVALID_ARGUMENT: a quote that does not end, or with something
 * behind its end.
 */
char **mount_words(const char *line, GError **error);
/* For messages: its beginning, as valid UTF-8; the caller's. */
char *mount_word_shown(const char *word);
/* What stands behind "name=", without its quotes; the caller's. NULL: it is another option. */
char *mount_word_value(const char *word, const char *name);

#endif
