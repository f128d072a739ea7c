/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The difference between the hints that volumes need and the hints that exist. Changes of both go
 * in; the hints to be written come out. It holds only that, so a controller without the lease keeps
 * up at little cost. No I/O, and no clock but the caller's (monotonic, ms).
 *
 * A hint that was removed by someone else is written again only after a while: mostly it is removed
 * with its claim, and then the released volume needs none.
 *
 * For one thread at a time.
 */
#ifndef HEARTH_DRIVER_AFFINITY_HINT_DIFF_H
#define HEARTH_DRIVER_AFFINITY_HINT_DIFF_H

#include "driver/affinity/hint.h"

#define HINT_REMOVED_MS 5000
#define HINT_RETRY_FIRST_MS 1000
#define HINT_RETRY_MOST_MS 60000

typedef struct HintDiff HintDiff;

HintDiff *hint_diff_new(void);
void hint_diff_free(HintDiff *diff);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(HintDiff, hint_diff_free)

/* The volume with that name needs this hint; NULL: none. */
void hint_diff_want(HintDiff *diff, const char *volume, const Hint *hint);
/* The hint exists, with this content. */
void hint_diff_there(HintDiff *diff, const Hint *hint);
/* The hint with that name does not exist, or no longer. */
void hint_diff_gone(HintDiff *diff, const Hint *hint, gint64 now_ms);

/* A claim of the namespace that shows the dataset, by its volume; the caller's, NULL: none does. */
char *hint_diff_claim(const HintDiff *diff, const char *namespace, const char *dataset);
/* How many differ. */
guint hint_diff_count(const HintDiff *diff);
/* Keys ("namespace/claim") of the hints that may be written now; the caller unrefs. */
GPtrArray *hint_diff_due(const HintDiff *diff, gint64 now_ms);

typedef enum HintAct { HINT_RIGHT, HINT_APPLY, HINT_DELETE } HintAct;
/* The action for it; *hint is the caller's, and empty for HINT_RIGHT. */
HintAct hint_diff_act(const HintDiff *diff, const char *key, Hint *hint);
/* The action was done; a watch will show it later. */
void hint_diff_done(HintDiff *diff, const Hint *hint, HintAct act);
/* The action failed; it is due again after a delay that grows. */
void hint_diff_failed(HintDiff *diff, const char *key, gint64 now_ms);
/* Whether the action for a hint that still differs has failed. */
gboolean hint_diff_any_failed(const HintDiff *diff);

#endif
