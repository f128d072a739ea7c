/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/prune.h"
#include <errno.h>
#include <linux/fuse.h>
#include <sys/uio.h>

#define NOTIFY_PRUNE 9
/* Inodes of one notification. */
#define MOST 512

/* struct fuse_notify_prune_out. */
typedef struct PruneOut {
    uint32_t count, padding;
    uint64_t spare;
} PruneOut;

static gboolean prune(int fd, const uint64_t *inodes, guint n)
{
    const PruneOut prune_out = {.count = n};
    struct fuse_out_header header = {.error = NOTIFY_PRUNE};
    const struct iovec parts[] = {
        {&header, sizeof(header)},
        {(void *)&prune_out, sizeof(prune_out)},
        {(void *)inodes, n * sizeof(*inodes)},
    };
    header.len = (uint32_t)(parts[0].iov_len + parts[1].iov_len + parts[2].iov_len);
    return writev(fd, parts, G_N_ELEMENTS(parts)) >= 0 || errno != EINVAL;
}

gboolean fuse_prune(struct fuse_session *fuse, const GArray *inodes)
{
    gboolean known = TRUE;
    for (guint i = 0; known && i < inodes->len; i += MOST)
        known = prune(fuse_session_fd(fuse), &g_array_index(inodes, uint64_t, i),
                      MIN(MOST, inodes->len - i));
    return known;
}
