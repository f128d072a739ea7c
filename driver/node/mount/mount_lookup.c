/* SPDX-License-Identifier: Apache-2.0 */
/*
 * With a thousand volumes the mount table has some thousand lines, and the kernel writes all of
 * them for each reader. statx(2) has the ID of the mount at a path, and statmount(2) what the table
 * says about it. Neither asks the file system. statmount came with Linux 6.8, and tells the type
 * and the source as the table does from 6.13 on. On older kernels, and where it is filtered,
 * callers read the table.
 *
 * The path is not opened: whoever unmounts it meanwhile must not find it in use.
 */
#include "driver/node/mount/mount_lookup.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* linux/stat.h of Linux 6.8 */
#define MNT_ID_UNIQUE 0x00004000U

/* linux/mount.h of Linux 6.13 */
#define NR_STATMOUNT 457
#define WANT_SB_BASIC 0x00000001U
#define WANT_MNT_BASIC 0x00000002U
#define WANT_MNT_ROOT 0x00000008U
#define WANT_MNT_POINT 0x00000010U
#define WANT_FS_TYPE 0x00000020U
#define WANT_MNT_OPTS 0x00000080U
#define WANT_FS_SUBTYPE 0x00000100U
#define WANT_SB_SOURCE 0x00000200U
/* Options and a subtype are left out when there are none. */
#define NEEDED                                                                                     \
    (WANT_SB_BASIC | WANT_MNT_BASIC | WANT_MNT_ROOT | WANT_MNT_POINT | WANT_FS_TYPE |              \
     WANT_SB_SOURCE)

typedef struct MountIdRequest {
    guint32 size, spare;
    guint64 mnt_id, param;
} MountIdRequest;

typedef struct MountStatus {
    guint32 size, mnt_opts;
    guint64 mask;
    guint32 sb_dev_major, sb_dev_minor;
    guint64 sb_magic;
    guint32 sb_flags, fs_type;
    guint64 mnt_id, mnt_parent_id;
    guint32 mnt_id_old, mnt_parent_id_old;
    guint64 mnt_attr, mnt_propagation, mnt_peer_group, mnt_master, propagate_from;
    guint32 mnt_root, mnt_point;
    guint64 mnt_ns_id;
    guint32 fs_subtype, sb_source;
    guint64 spare[48];
    char str[];
} MountStatus;
G_STATIC_ASSERT(sizeof(MountStatus) == 512);

/* Options of an overlay name its layers. */
#define STATUS_BYTES (16 * 1024)

static const char *text_of(const MountStatus *status, guint32 bit, guint32 at)
{
    return status->mask & bit ? status->str + at : "";
}

static MountEntry *entry_of(const MountStatus *status)
{
    MountEntry *entry = g_new0(MountEntry, 1);
    const char *subtype = text_of(status, WANT_FS_SUBTYPE, status->fs_subtype);
    entry->id = status->mnt_id_old;
    entry->dev = makedev(status->sb_dev_major, status->sb_dev_minor);
    entry->root = g_strdup(status->str + status->mnt_root);
    entry->target = g_strdup(status->str + status->mnt_point);
    entry->type = g_strconcat(status->str + status->fs_type, *subtype ? "." : NULL, subtype, NULL);
    entry->source = g_strdup(status->str + status->sb_source);
    entry->read_only = (status->mnt_attr & MOUNT_ATTR_RDONLY) || (status->sb_flags & MS_RDONLY);
    mount_entry_take_options(entry, text_of(status, WANT_MNT_OPTS, status->mnt_opts));
    return entry;
}

/* The entry of the mount with this ID; NULL: it is gone, or the kernel does not tell. */
static MountEntry *entry_by_id(guint64 id)
{
    const MountIdRequest request = {
        .size = sizeof(request), .mnt_id = id, .param = NEEDED | WANT_MNT_OPTS | WANT_FS_SUBTYPE};
    g_autofree MountStatus *status = g_malloc0(STATUS_BYTES);
    if (syscall(NR_STATMOUNT, &request, status, STATUS_BYTES, 0) != 0 ||
        (status->mask & NEEDED) != NEEDED)
        return NULL;
    return entry_of(status);
}

gboolean mount_lookup(const char *path, MountEntry **entry)
{
    struct statx stx;
    *entry = NULL;
    if (statx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC,
              MNT_ID_UNIQUE, &stx) != 0)
        return errno == ENOENT || errno == ENOTDIR;
    if (!(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) || !(stx.stx_mask & MNT_ID_UNIQUE))
        return FALSE;
    if (!(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return TRUE;
    *entry = entry_by_id(stx.stx_mnt_id);
    /* Elsewhere when the path is not canonical. */
    if (*entry && strcmp((*entry)->target, path) != 0)
        g_clear_pointer(entry, mount_entry_free);
    return *entry != NULL;
}
