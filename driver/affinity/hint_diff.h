/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which hints are not as they ought to be: what volumes want and what hints there are go in, each
 * as it changes; the difference comes out. Holds no more than that, so that one who does not act
 * (or not yet) keeps up at no cost. No I/O, and no clock but the caller's (monotonic, ms).
 *
 * A hint that somebody removed is only written again after a while: it mostly goes with its
 * claim, and the volume that is released then wants none any more.
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

/* The volume of that name wants this hint; NULL: none. */
void hint_diff_want(HintDiff *diff, const char *volume, const Hint *hint);
/* It is there, so. */
void hint_diff_there(HintDiff *diff, const Hint *hint);
/* The hint of that name is not there, or not any more. */
void hint_diff_gone(HintDiff *diff, const Hint *hint, gint64 now_ms);

/* A claim of the namespace that shows the dataset, by its volume; the caller's, NULL: none does. */
char *hint_diff_claim(const HintDiff *diff, const char *namespace, const char *dataset);
/* How many differ. */
guint hint_diff_count(const HintDiff *diff);
/* Keys ("namespace/claim") of those that may be written now, the caller's, who unrefs. */
GPtrArray *hint_diff_due(const HintDiff *diff, gint64 now_ms);

typedef enum HintAct { HINT_RIGHT, HINT_APPLY, HINT_DELETE } HintAct;
/* What is to be done about it; *hint is the caller's, and of HINT_RIGHT empty. */
HintAct hint_diff_act(const HintDiff *diff, const char *key, Hint *hint);
/* That was done, which a watch will show later. */
void hint_diff_done(HintDiff *diff, const Hint *hint, HintAct act);
/* It failed, and is due again after a while that grows. */
void hint_diff_failed(HintDiff *diff, const char *key, gint64 now_ms);
/* Whether one differs that was tried in vain. */
gboolean hint_diff_any_failed(const HintDiff *diff);

#endif
