/* SPDX-License-Identifier: Apache-2.0 */
/* Facts for the rules, from two samples of hearthd and the waits of the job between them. */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_FACTS_H
#define HEARTH_CMD_HEARTHCTL_WHY_FACTS_H

#include <jansson.h>
#include "cmd/hearthctl/report/rates.h"
#include "cmd/hearthctl/why/causes.h"

/* What was sampled of one volume of the job. */
typedef struct FactsWait {
    const char *volume; /* that hearthd serves */
    guint64 kinds[WAIT_KINDS];
    gboolean lost;
} FactsWait;

/* What was sampled of the job. Thread-samples, except for `looks` and `cpu_sec`. */
typedef struct FactsJob {
    guint looks; /* 0: its processes cannot be seen */
    guint64 running;
    guint64 elsewhere; /* waited for files that are on none of its volumes */
    guint64 pages;     /* waited for a page, whose volume is not known */
    guint64 async;     /* waited for completions of io_uring or aio, the same */
    gboolean ended;    /* it had no process at the last look */
    double cpu_sec;
} FactsJob;

/* The volume that the rules are about: one that is lost, else the one that the job waited for most,
 * else the one most bytes were read of; -1 without volumes. */
int facts_volume(const FactsWait *waits, guint n, const RatesLook *before, const RatesLook *now);
/* `waits` of all volumes, `at` the one that the rules are about. */
WhyFacts facts_of(const FactsJob *job, const FactsWait *waits, guint n, guint at,
                  const RatesLook *before, const RatesLook *now);
/* The description of a volume in a sample; NULL: hearthd does not have it. */
const json_t *facts_find(const RatesLook *look, const char *volume);

#endif
