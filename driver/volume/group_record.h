/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of group snapshots, "group.<name>": created before the members' records and removed after
 * them. A record says which snapshots of which volumes belong together; each member also has a
 * snapshot record of its own (snapshot_record.h), which names the group. This is the content;
 * backend/ does the I/O.
 */
#ifndef HEARTH_DRIVER_VOLUME_GROUP_RECORD_H
#define HEARTH_DRIVER_VOLUME_GROUP_RECORD_H

#include <glib.h>
#include "common/error.h"
#include "driver/volume/id.h"

/* So that a record stays small and the volumes' writers are not held up for long. */
#define GROUP_MAX_MEMBERS 64

typedef struct GroupMember {
    char *volume, *snapshot; /* names in the backend */
    char *group;             /* the volume's, "" where there are none (volume/id.h) */
    gint64 bytes;            /* of the volume then */
} GroupMember;

/* Each attempt to take a group has snapshots of its own, with names that no other attempt has. So
 * one that is late cannot touch what another has taken. */
typedef struct GroupRecord {
    char *request_name;
    gint64 created; /* seconds since 1970, UTC: when the attempt began */
    gboolean taken; /* all snapshots are known to be of one moment */
    char *attempt;  /* a random text; "" in records of before, whose attempts share their names */
    char *before;   /* the attempt that this one follows, and whose snapshots do not count; NULL */
    GPtrArray *members; /* GroupMember*, in the order of the volumes' names */
} GroupRecord;

/* `group` may be NULL. */
GroupMember *group_member_new(const char *volume, const char *group, const char *snapshot,
                              gint64 bytes);
GPtrArray *group_members_new(void);
void group_record_free(GroupRecord *record);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(GroupRecord, group_record_free)

/* "group.<name>", the caller's. */
char *group_record_key(const char *name);
/* The name in such a key, borrowed; NULL for other keys. */
const char *group_record_key_name(const char *key);

/* "<group>-<attempt>-<number>", the name of a member's snapshot; the caller's. The end of the
 * group's name is left out where the snapshot's ID has no room for it. */
char *group_record_snapshot(const VolumeId *group, const char *attempt, guint number);

/* Makes `record` a new attempt for the group: its own names, taken by nobody, from now on. */
void group_record_begin(GroupRecord *record, const VolumeId *group);

/* The text to store, the caller's. */
char *group_record_encode(const GroupRecord *record);
/* INTERNAL: not a record; FAILED_PRECONDITION: of a later format. `name` is for the message. */
GroupRecord *group_record_decode(const char *name, const char *text, gsize length, GError **error);

#endif
