/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of `why` as lines and as JSON: the cause, what to do, and the figures behind it. */
#ifndef HEARTH_CMD_HEARTHCTL_WHY_ANSWER_H
#define HEARTH_CMD_HEARTHCTL_WHY_ANSWER_H

#include <jansson.h>
#include "cmd/hearthctl/report/style.h"
#include "cmd/hearthctl/why/causes.h"

typedef struct Answer {
    const char *who;     /* the job, on the screen */
    const char *volume;  /* its ID; NULL: the job has no volume of Hearth */
    const char *none;    /* what is said when it has none */
    const char *name;    /* what people call it */
    const char *command; /* that a user types before "warm": "hearthctl", "kubectl hearth" */
    const char *heal;    /* what restarts the job, for a lost mount */
    WhyFacts facts;
    guint64 warm_rate; /* bytes a second of the last warm job of the volume; 0: there was none */
} Answer;

/* The caller's, no wider than the view. */
char **answer_lines(const Answer *answer, const View *view);
json_t *answer_json(const Answer *answer);

#endif
