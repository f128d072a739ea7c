/* SPDX-License-Identifier: Apache-2.0 */
/* What hearth-keeper holds: descriptors under names. For one thread. */
#ifndef HEARTH_CMD_KEEPER_TABLE_H
#define HEARTH_CMD_KEEPER_TABLE_H

#include "proto/keep.h"

/* Takes the message's descriptors in any case. 0, ENOSPC: too many names, ENOMEM. */
int table_put(KeepMessage *message);
void table_drop(const char *name);
/* The first name after `name`, its descriptors borrowed; ENOENT. */
int table_next(const char *name, KeepMessage *found);

#endif
