/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The group that all files of a mount are for (CSI's VOLUME_MOUNT_GROUP, a pod's fsGroup). What
 * kubelet would do to every file by a recursive chown is only shown to the kernel here, which then
 * decides as if it had been done: the same bits, no walk over a million files, nothing changed in
 * Ceph, and a volume of many nodes can have another group on each. New files belong to the group in
 * Ceph too.
 */
#include "cache/fuse/live/session_internal.h"

#define READ_WRITE (S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP)
#define READ_ONLY (S_IRUSR | S_IRGRP)
#define SEARCH (S_IXUSR | S_IXGRP | S_ISGID)

void session_set_group(Session *s, gboolean any, gid_t group)
{
    atomic_store(&s->group, any ? (int64_t)group : -1);
}

gid_t group_of_new(Session *s, gid_t caller)
{
    int64_t group = atomic_load(&s->group);
    return group < 0 ? caller : (gid_t)group;
}

struct stat group_shown(Session *s, const struct stat *st)
{
    struct stat shown = *st;
    int64_t group = atomic_load(&s->group);
    if (group < 0)
        return shown;
    shown.st_gid = (gid_t)group;
    if (S_ISLNK(st->st_mode))
        return shown;
    shown.st_mode |= s->read_only ? READ_ONLY : READ_WRITE;
    if (S_ISDIR(st->st_mode))
        shown.st_mode |= SEARCH;
    return shown;
}
