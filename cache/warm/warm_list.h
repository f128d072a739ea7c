/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a warm job is asked for by name: paths, one a line, in a sealed memfd. The text
 * stays there; of each path 16 bytes are kept here.
 */
#ifndef HEARTH_CACHE_WARM_WARM_LIST_H
#define HEARTH_CACHE_WARM_WARM_LIST_H

#include <glib.h>

#define WARM_LIST_MAX (4u << 20)

typedef struct WarmList WarmList;

/*
 * Paths are below `beneath`, a clean path. Empty lines are ignored, and a path counts once.
 * WIRE_ERROR_INVALID_ARGUMENT: not sealed against shrinking and writing, no path in it, more than
 * WARM_LIST_MAX, or one with "..", whose line is named.
 */
WarmList *warm_list_read(int fd, const char *beneath, GError **error);
void warm_list_free(WarmList *list);
/* Whether the clean path is in it; `take`: it is not among the rest any more. */
gboolean warm_list_has(WarmList *list, const char *path, gboolean take);
/* Calls `each` with every path that was not taken, in the order given; FALSE ends it, and is the
 * result then. */
gboolean warm_list_rest(WarmList *list, gboolean (*each)(void *data, const char *path), void *data);

#endif
