/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of hearthctl, for the table in main.c. */
#ifndef HEARTH_CMD_HEARTHCTL_CLIENT_COMMANDS_H
#define HEARTH_CMD_HEARTHCTL_CLIENT_COMMANDS_H

#include "cmd/hearthctl/client/client.h"

/* argv[0] is the subcommand's name. Returns the exit code. */
int ctl_status(Ctl *ctl, int argc, char **argv);
int ctl_datasets(Ctl *ctl, int argc, char **argv);
int ctl_warm(Ctl *ctl, int argc, char **argv);
int ctl_job(Ctl *ctl, int argc, char **argv);
int ctl_jobs_command(Ctl *ctl, int argc, char **argv);
int ctl_evict(Ctl *ctl, int argc, char **argv);
int ctl_pin(Ctl *ctl, int argc, char **argv);
int ctl_unpin(Ctl *ctl, int argc, char **argv);
int ctl_verify(Ctl *ctl, int argc, char **argv);
int ctl_top(Ctl *ctl, int argc, char **argv);
int ctl_doctor(Ctl *ctl, int argc, char **argv);
int ctl_why(Ctl *ctl, int argc, char **argv);
int ctl_bench(Ctl *ctl, int argc, char **argv);
int ctl_version(Ctl *ctl, int argc, char **argv);

#endif
