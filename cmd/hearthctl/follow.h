/* SPDX-License-Identifier: Apache-2.0 */
/* A warm job of hearthd, followed to its end by warm and job. */
#ifndef HEARTH_CMD_HEARTHCTL_FOLLOW_H
#define HEARTH_CMD_HEARTHCTL_FOLLOW_H

#include "cmd/hearthctl/client/client.h"

typedef struct Follow {
    Ctl *ctl;
    uint64_t id;
    const char *again; /* the command that continues the job after it was stopped */
    gboolean as_json;  /* print the job that ended as one JSON object */
} Follow;

/* Shows the progress on standard error until the job has ended, then its result. The first Ctrl-C
 * cancels the job, a second one leaves it running. The exit code. */
int follow_job(const Follow *follow);
/* Prints the result of a job that has ended. `came`: bytes it fetched. The exit code. */
int follow_result(const Follow *follow, const json_t *job, uint64_t came);

json_t *follow_ask(Ctl *ctl, uint64_t id, GError **error);
gboolean follow_cancel(Ctl *ctl, uint64_t id, GError **error);
gboolean follow_is_running(const json_t *job);

#endif
