/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Words and data are written without a sync between them: the checksum in the word shows whether
 * they belong together. Zeros have a word but no data. Invariants are in cached.c; this file knows
 * nothing of Ceph.
 */
#include "cache/block/file.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/block/head.h"
#include "cache/store/disk/replace.h"

struct BlockFile {
    int dir_fd, sums_fd, data_fd;
    char *name;
    gboolean has_head;
    FormatHead head;
};

/* Words written or read at a time, on the stack. */
#define WORDS_SOME 256
/* More are forgotten by punching a hole, which costs the file system more. */
#define WORDS_MANY 4096

static uint64_t block_of(uint64_t off)
{
    return off / BLOCK_BYTES;
}

static off_t word_at(uint64_t block)
{
    return (off_t)(block * sizeof(uint32_t));
}

static uint32_t not_absent(uint32_t sum)
{
    return sum == FORMAT_SUM_ABSENT ? 1 : sum;
}

/* Of zeros: another word for each block, so that neither one bit of an absent word that rots nor
 * words of another place make zeros. */
static uint32_t zeros_of(uint64_t block)
{
    return GUINT32_TO_LE(not_absent((uint32_t)((block + 1) * FORMAT_SUM_ZEROS >> 32)));
}

static uint32_t sum_of(const void *data, uint64_t block)
{
    const uint32_t sum =
        GUINT32_TO_LE(not_absent((uint32_t)XXH3_64bits_withSeed(data, BLOCK_BYTES, block)));
    return sum == zeros_of(block) ? ~sum : sum;
}

static int pread_all(int fd, void *buf, size_t len, off_t off)
{
    ssize_t n = pread(fd, buf, len, off);
    if (n < 0)
        return -errno;
    memset((char *)buf + n, 0, len - (size_t)n); /* beyond the end it is a hole */
    return 0;
}

static int pwrite_all(int fd, const void *buf, size_t len, off_t off)
{
    ssize_t n = pwrite(fd, buf, len, off);
    if (n < 0)
        return -errno;
    return (size_t)n == len ? 0 : -ENOSPC;
}

/* ---- opening ---- */

void block_file_id(const char *name, char id[BLOCK_FILE_ID_BYTES])
{
    g_autofree char *sum = g_compute_checksum_for_string(G_CHECKSUM_SHA256, name, -1);
    g_strlcpy(id, sum, BLOCK_FILE_ID_BYTES);
}

static gboolean read_head(BlockFile *f)
{
    char data[sizeof(FormatHead)];
    hearth_autofd int fd = openat(f->dir_fd, FORMAT_HEAD_NAME, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? pread(fd, data, sizeof(data), 0) : -1;
    return n >= 0 && head_decode(data, (size_t)n, f->name, &f->head);
}

int block_file_open(int dir_fd, const char *name, BlockFile **file)
{
    char id[BLOCK_FILE_ID_BYTES];
    *file = NULL;
    if (strlen(name) >= sizeof(((FormatHead *)0)->name))
        return -ENAMETOOLONG;
    block_file_id(name, id);
    if (mkdirat(dir_fd, id, 0700) < 0 && errno != EEXIST)
        return -errno;
    BlockFile *f = g_new0(BlockFile, 1);
    f->name = g_strdup(name);
    f->sums_fd = f->data_fd = -1;
    f->dir_fd = openat(dir_fd, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (f->dir_fd >= 0)
        f->sums_fd = openat(f->dir_fd, FORMAT_SUMS_NAME, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (f->sums_fd >= 0)
        f->data_fd =
            openat(f->dir_fd, FORMAT_DATA_NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOATIME, 0600);
    if (f->data_fd < 0) {
        int rc = -errno;
        block_file_close(f);
        return rc;
    }
    /* Reading ahead is done by fetch.c, not by the kernel. */
    posix_fadvise(f->data_fd, 0, 0, POSIX_FADV_RANDOM);
    f->has_head = read_head(f);
    *file = f;
    return 0;
}

void block_file_close(BlockFile *f)
{
    if (!f)
        return;
    if (f->data_fd >= 0)
        close(f->data_fd);
    if (f->sums_fd >= 0)
        close(f->sums_fd);
    if (f->dir_fd >= 0)
        close(f->dir_fd);
    g_free(f->name);
    g_free(f);
}

/* ---- the head ---- */

const FormatHead *block_file_head(const BlockFile *f)
{
    return f->has_head ? &f->head : NULL;
}

static int write_head(BlockFile *f, const FormatHead *head)
{
    FormatHead h;
    head_encode(head, f->name, &h);
    return replace_file(f->dir_fd, FORMAT_HEAD_NAME, FORMAT_HEAD_NEW_NAME, &h, sizeof(h));
}

int block_file_mark(BlockFile *f, const FormatHead *head)
{
    /* Otherwise old words on the disk would vouch for other data. */
    if (head->state == FORMAT_IMAGE_CLEAN &&
        (fdatasync(f->data_fd) < 0 || fdatasync(f->sums_fd) < 0))
        return -errno;
    int rc = write_head(f, head);
    f->has_head = rc == 0;
    if (rc == 0)
        f->head = *head;
    return rc;
}

int block_file_wipe(BlockFile *f)
{
    f->has_head = FALSE;
    if (unlinkat(f->dir_fd, FORMAT_HEAD_NAME, 0) < 0 && errno != ENOENT)
        return -errno;
    if (ftruncate(f->sums_fd, 0) < 0 || ftruncate(f->data_fd, 0) < 0)
        return -errno;
    return 0;
}

/* ---- blocks ---- */

/* Words of a range that is all present, or -ENOENT. */
static int read_words(BlockFile *f, uint32_t *words, size_t n, uint64_t first)
{
    int rc = pread_all(f->sums_fd, words, n * sizeof(*words), word_at(first));
    for (size_t i = 0; rc == 0 && i < n; i++)
        if (words[i] == FORMAT_SUM_ABSENT)
            rc = -ENOENT;
    return rc;
}

static int read_some(BlockFile *f, char *buf, size_t n, uint64_t first)
{
    uint32_t words[WORDS_SOME];
    int rc = read_words(f, words, n, first);
    gboolean data = FALSE;
    for (size_t i = 0; rc == 0 && i < n; i++)
        data |= words[i] != zeros_of(first + i);
    if (rc == 0 && data)
        rc = pread_all(f->data_fd, buf, n * BLOCK_BYTES, (off_t)(first * BLOCK_BYTES));
    for (size_t i = 0; rc == 0 && i < n; i++) {
        char *block = buf + i * BLOCK_BYTES;
        if (words[i] == zeros_of(first + i))
            memset(block, 0, BLOCK_BYTES);
        else if (sum_of(block, first + i) != words[i])
            rc = -ENOENT;
    }
    return rc;
}

int block_file_read(BlockFile *f, void *buf, size_t len, uint64_t off)
{
    int rc = 0;
    for (size_t done = 0; rc == 0 && done < len; done += WORDS_SOME * BLOCK_BYTES)
        rc = read_some(f, (char *)buf + done, MIN(WORDS_SOME, (len - done) / BLOCK_BYTES),
                       block_of(off + done));
    return rc;
}

gboolean block_file_has(BlockFile *f, uint64_t off, uint64_t len)
{
    uint32_t words[WORDS_SOME];
    const uint64_t end = block_of(off + len);
    for (uint64_t block = block_of(off); block < end; block += WORDS_SOME)
        if (read_words(f, words, MIN(WORDS_SOME, end - block), block) != 0)
            return FALSE;
    return TRUE;
}

static gboolean is_zero(const char *block)
{
    return block[0] == 0 && memcmp(block, block + 1, BLOCK_BYTES - 1) == 0;
}

int block_file_write(BlockFile *f, const void *buf, size_t len, uint64_t off, uint32_t *sums)
{
    const char *data = buf;
    const size_t n = len / BLOCK_BYTES;
    const uint64_t first = block_of(off);
    int rc = 0;
    for (size_t i = 0; i < n; i++)
        sums[i] = is_zero(data + i * BLOCK_BYTES) ? zeros_of(first + i)
                                                  : sum_of(data + i * BLOCK_BYTES, first + i);
    /* Zeros are left out: what an image has never had written stays a hole here as well. */
    for (size_t from = 0; rc == 0 && from < n;) {
        if (sums[from] == zeros_of(first + from)) {
            from++;
            continue;
        }
        size_t to = from + 1;
        while (to < n && sums[to] != zeros_of(first + to))
            to++;
        rc = pwrite_all(f->data_fd, data + from * BLOCK_BYTES, (to - from) * BLOCK_BYTES,
                        (off_t)(off + from * BLOCK_BYTES));
        from = to;
    }
    return rc;
}

int block_file_vouch(BlockFile *f, const uint32_t *sums, uint64_t off, uint64_t len)
{
    uint32_t zeros[WORDS_SOME];
    const uint64_t first = block_of(off), n = len / BLOCK_BYTES;
    if (sums)
        return pwrite_all(f->sums_fd, sums, n * sizeof(*sums), word_at(first));
    int rc = 0;
    for (uint64_t i = 0; rc == 0 && i < n; i += WORDS_SOME) {
        const size_t some = MIN(WORDS_SOME, n - i);
        for (size_t j = 0; j < some; j++)
            zeros[j] = zeros_of(first + i + j);
        rc = pwrite_all(f->sums_fd, zeros, some * sizeof(*zeros), word_at(first + i));
    }
    return rc;
}

int block_file_forget(BlockFile *f, uint64_t off, uint64_t len)
{
    static const uint32_t absent[WORDS_SOME];
    uint32_t words[WORDS_SOME];
    const uint64_t first = block_of(off), n = len / BLOCK_BYTES;
    int rc = 0;
    for (uint64_t i = 0; n <= WORDS_MANY && rc == 0 && i < n; i += WORDS_SOME) {
        const size_t some = MIN(WORDS_SOME, n - i) * sizeof(*words);
        rc = pread_all(f->sums_fd, words, some, word_at(first + i));
        /* Absent words are not written: they may be a hole, and the disk full. */
        if (rc == 0 && memcmp(words, absent, some) != 0)
            rc = pwrite_all(f->sums_fd, absent, some, word_at(first + i));
    }
    if (n <= WORDS_MANY)
        return rc;
    if (fallocate(f->sums_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, word_at(first),
                  (off_t)(n * sizeof(*absent))) < 0)
        return -errno;
    return 0;
}

void block_file_punch(BlockFile *f, uint64_t off, uint64_t len)
{
    /* A failure only costs space. */
    if (fallocate(f->data_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)off, (off_t)len))
        return;
}

int block_file_truncate(BlockFile *f, uint64_t bytes)
{
    struct stat st;
    const off_t words = word_at(block_of(bytes));
    if (fstat(f->sums_fd, &st) < 0 || (st.st_size > words && ftruncate(f->sums_fd, words) < 0))
        return -errno;
    if (fstat(f->data_fd, &st) < 0 ||
        (st.st_size > (off_t)bytes && ftruncate(f->data_fd, (off_t)bytes) < 0))
        return -errno;
    return 0;
}

int block_file_sync(BlockFile *f)
{
    return fdatasync(f->sums_fd) < 0 ? -errno : 0;
}

uint64_t block_file_bytes(BlockFile *f)
{
    struct stat data, sums;
    if (fstat(f->data_fd, &data) < 0 || fstat(f->sums_fd, &sums) < 0)
        return 0;
    return ((uint64_t)data.st_blocks + (uint64_t)sums.st_blocks) * 512;
}
