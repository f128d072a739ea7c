/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The content of a device: from libblkid, and from a few fields of superblocks that it does not
 * read. Formatting depends on the answer, so it is careful in one direction: what is not known for
 * certain to be empty is not blank.
 */
#include <blkid/blkid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/image/block_internal.h"

/* Where partition tables, boot sectors, superblocks, and the first blocks of a database are. */
#define HEAD_BYTES (4u << 20)
/* Where RAID and volume managers put theirs. */
#define TAIL_BYTES (1u << 20)
#define STEP_BYTES (256u << 10)

typedef struct LookJob {
    char path[LOOP_PATH_MAX];
    BlockContent content;
    int rc;
} LookJob;

static void look_free(void *data)
{
    LookJob *job = data;
    block_content_clear(&job->content);
    g_free(job);
}

/* 1: zeros; 0: not; -errno. */
static int is_zero(int fd, uint64_t from, uint64_t to)
{
    g_autofree char *buf = g_malloc(STEP_BYTES);
    for (uint64_t at = from; at < to;) {
        ssize_t n = pread(fd, buf, MIN(STEP_BYTES, to - at), (off_t)at);
        if (n < 0)
            return -errno;
        if (n == 0)
            break;
        if (buf[0] != 0 || memcmp(buf, buf + 1, (size_t)n - 1) != 0)
            return 0;
        at += (uint64_t)n;
    }
    return 1;
}

static uint32_t le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint32_t be32(const uint8_t *p)
{
    return (uint32_t)p[3] | (uint32_t)p[2] << 8 | (uint32_t)p[1] << 16 | (uint32_t)p[0] << 24;
}

/* Offsets: Documentation/filesystems/ext4/super.rst; the superblock is 1024 bytes in. */
static void read_ext4(const uint8_t *sb, BlockContent *content)
{
    uint64_t blocks = le32(sb + 0x4);
    if (le32(sb + 0x60) & 0x80) /* INCOMPAT_64BIT */
        blocks |= (uint64_t)le32(sb + 0x150) << 32;
    content->bytes = blocks << (10 + le32(sb + 0x18));
    /* s_mtime and s_mnt_count: it was never mounted. */
    content->unused = le32(sb + 0x2c) == 0 && sb[0x34] == 0 && sb[0x35] == 0;
}

/* struct xfs_dsb: big-endian. */
static void read_xfs(const uint8_t *sb, BlockContent *content)
{
    content->bytes = ((uint64_t)be32(sb + 8) << 32 | be32(sb + 12)) * be32(sb + 4);
    content->unused = sb[126] != 0; /* sb_inprogress: mkfs clears it last */
}

static int look_at(LookJob *job, int fd)
{
    blkid_probe probe = blkid_new_probe();
    if (!probe || blkid_probe_set_device(probe, fd, 0, 0) != 0) {
        blkid_free_probe(probe);
        return errno ? errno : EIO;
    }
    blkid_probe_enable_superblocks(probe, 1);
    blkid_probe_set_superblocks_flags(probe, BLKID_SUBLKS_TYPE);
    blkid_probe_enable_partitions(probe, 1);
    errno = 0;
    int found = blkid_do_safeprobe(probe);
    const char *type = NULL;
    if (found == 0 && blkid_probe_lookup_value(probe, "TYPE", &type, NULL) != 0 &&
        blkid_probe_lookup_value(probe, "PTTYPE", &type, NULL) == 0)
        job->content.type = g_strconcat("partition table ", type, NULL);
    else
        job->content.type = g_strdup(type);
    blkid_free_probe(probe);
    if (found == -2)
        job->content.type = g_strdup("more than one kind of content");
    if (found != -1)
        return 0;
    return errno ? errno : EIO;
}

static void look_run(void *data)
{
    LookJob *job = data;
    BlockContent *content = &job->content;
    hearth_autofd int fd = open(job->path, O_RDONLY | O_CLOEXEC);
    uint64_t bytes;
    uint8_t head[2048];
    if (fd < 0 || ioctl(fd, BLKGETSIZE64, &bytes) != 0) {
        job->rc = errno;
        return;
    }
    job->rc = look_at(job, fd);
    if (job->rc != 0)
        return;
    if (!content->type) {
        int head_zero = is_zero(fd, 0, MIN(bytes, HEAD_BYTES));
        int tail_zero =
            head_zero == 1 ? is_zero(fd, bytes - MIN(bytes, TAIL_BYTES), bytes) : head_zero;
        content->blank = tail_zero == 1;
        job->rc = tail_zero < 0 ? -tail_zero : 0;
        return;
    }
    gboolean ext = g_str_has_prefix(content->type, "ext"), xfs = strcmp(content->type, "xfs") == 0;
    if (!ext && !xfs)
        return;
    if (pread(fd, head, sizeof(head), 0) != (ssize_t)sizeof(head)) {
        job->rc = errno ? errno : EIO;
        return;
    }
    if (ext)
        read_ext4(head + 1024, content);
    else
        read_xfs(head, content);
}

gboolean look_at_device(NodeBlock *b, int number, gint64 timeout_ms, BlockContent *content,
                        GError **error)
{
    KernelBlock *k = (KernelBlock *)b;
    LookJob *job = g_new0(LookJob, 1);
    loop_path(number, job->path);
    g_autofree char *what = g_strdup_printf("looking at %s", job->path);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){look_run, job, look_free}, timeout_ms,
                     error))
        return FALSE;
    if (job->rc != 0) {
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE, "%s: %s", what, g_strerror(job->rc));
        look_free(job);
        return FALSE;
    }
    *content = job->content;
    g_free(job);
    return TRUE;
}
