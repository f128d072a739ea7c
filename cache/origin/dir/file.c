/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open files of the directory origin, and leases among them.
 *
 * Invariants, all under DirOrigin.lock:
 * 1. While a read lease is held no file of the inode is open for writing and none is being opened.
 * 2. While a write lease is held its file is the only one open.
 * An opener that conflicts announces itself (writers_coming, readers_coming), so that no new lease
 * is granted, recalls each conflicting lease once and waits for its return, as libcephfs does for
 * delegations. A holder that does not return it makes the opener fail with ETIMEDOUT, rather than
 * be served bytes the other may have cached.
 */
#include "cache/origin/dir/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#define RECALL_TIMEOUT_SEC 30

struct OriginFile {
    OriginNode *node; /* a reference */
    int fd;
    gboolean writes;
    /* DirOrigin.lock: */
    OriginFile *next;
    OriginLease lease;
    gboolean recalled;
    OriginRecall recall;
    void *data;
};

static gboolean opens_for_writing(int flags)
{
    return (flags & O_ACCMODE) != O_RDONLY || (flags & O_TRUNC);
}

/* Recalls what conflicts, and says whether anything still does. */
static gboolean recall_conflicts_locked(OriginNode *node, gboolean for_writing)
{
    gboolean conflict = FALSE;
    for (OriginFile *f = node->files; f; f = f->next) {
        if (f->lease == ORIGIN_LEASE_NONE || (f->lease == ORIGIN_LEASE_READ && !for_writing))
            continue;
        conflict = TRUE;
        if (!f->recalled) {
            f->recalled = TRUE;
            f->recall(f, f->data);
        }
    }
    return conflict;
}

static unsigned *coming(OriginNode *node, gboolean for_writing)
{
    return for_writing ? &node->writers_coming : &node->readers_coming;
}

/* Announces an access and waits until no lease is in its way. On 0 end it with access_ends(). */
static int access_begins(DirOrigin *origin, OriginNode *node, gboolean for_writing)
{
    struct timespec deadline;
    clock_gettime(CLOCK_MONOTONIC, &deadline);
    deadline.tv_sec += RECALL_TIMEOUT_SEC;
    int result = 0;
    pthread_mutex_lock(&origin->lock);
    ++*coming(node, for_writing);
    while (recall_conflicts_locked(node, for_writing) && result == 0)
        result = -pthread_cond_timedwait(&origin->returned, &origin->lock, &deadline);
    if (result != 0)
        --*coming(node, for_writing);
    pthread_mutex_unlock(&origin->lock);
    return result;
}

static void access_ends(DirOrigin *origin, OriginNode *node, gboolean for_writing)
{
    pthread_mutex_lock(&origin->lock);
    --*coming(node, for_writing);
    pthread_mutex_unlock(&origin->lock);
}

/* Makes a file of an open descriptor and ends the access announced for it. */
static OriginFile *add_file(DirOrigin *origin, OriginNode *node, int fd, gboolean writes)
{
    OriginFile *file = g_new0(OriginFile, 1);
    file->node = dir_get(&origin->base, node);
    file->fd = fd;
    file->writes = writes;
    pthread_mutex_lock(&origin->lock);
    file->next = node->files;
    node->files = file;
    --*coming(node, writes);
    pthread_mutex_unlock(&origin->lock);
    return file;
}

int dir_open(Origin *o, OriginNode *node, int flags, OriginFile **file)
{
    DirOrigin *origin = (DirOrigin *)o;
    if (!S_ISREG(node->type))
        return S_ISDIR(node->type) ? -EISDIR : -EINVAL;
    gboolean writes = opens_for_writing(flags);
    int result = access_begins(origin, node, writes);
    if (result < 0)
        return result;
    /* Not O_APPEND: offsets come with each write. Not O_DIRECT: it is a hint here, and the local
     * file system would demand alignment. */
    int fd = open(dir_proc_path(node->fd).text,
                  (flags & (O_ACCMODE | O_TRUNC | O_SYNC | O_DSYNC)) | O_CLOEXEC);
    if (fd < 0) {
        result = -errno;
        access_ends(origin, node, writes);
        return result;
    }
    *file = add_file(origin, node, fd, writes);
    return 0;
}

/* Makes the file and nothing else: -EEXIST when there is one. */
static int create_exclusive(DirOrigin *origin, OriginNode *parent, const char *name,
                            const OriginNew *new, int flags, OriginCreated *created)
{
    struct stat parent_st;
    if (fstatat(parent->fd, "", &parent_st, AT_EMPTY_PATH) < 0)
        return -errno;
    int fd = openat(
        parent->fd, name,
        (flags & (O_ACCMODE | O_SYNC | O_DSYNC)) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int result = dir_give_to(fd, new, parent_st.st_mode);
    if (result == 0) {
        int path_fd = open(dir_proc_path(fd).text, O_PATH | O_CLOEXEC);
        result = path_fd < 0 ? -errno
                             : dir_node_from_fd(origin, path_fd, &created->node, &created->attr);
    }
    gboolean writes = opens_for_writing(flags);
    if (result == 0) {
        result = access_begins(origin, created->node, writes);
        if (result < 0)
            dir_put(&origin->base, created->node);
    }
    if (result < 0) {
        close(fd);
        return result;
    }
    created->file = add_file(origin, created->node, fd, writes);
    return 0;
}

int dir_create(Origin *o, OriginNode *parent, const char *name, const OriginNew *new, int flags,
               OriginCreated *created)
{
    DirOrigin *origin = (DirOrigin *)o;
    int bad = dir_check_name(name);
    if (bad)
        return bad;
    int result = create_exclusive(origin, parent, name, new, flags, created);
    if (result != -EEXIST || (flags & O_EXCL))
        return result;
    result = dir_lookup(o, parent, name, &created->node, &created->attr);
    if (result < 0)
        return result;
    result = dir_open(o, created->node, flags, &created->file);
    if (result == 0) {
        result = dir_getattr(o, created->node, &created->attr);
        if (result < 0)
            dir_close(o, created->file);
    }
    if (result < 0)
        dir_put(o, created->node);
    return result;
}

ssize_t dir_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    (void)o;
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(file->fd, (char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return done ? (ssize_t)done : -errno;
        if (n == 0)
            break;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

ssize_t dir_write(Origin *o, OriginFile *file, const void *buf, size_t len, uint64_t off)
{
    (void)o;
    size_t done = 0;
    if (off == ORIGIN_APPEND)
        off = 0; /* pwrite(2) appends whatever the offset */
    while (done < len) {
        ssize_t n = pwrite(file->fd, (const char *)buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return done ? (ssize_t)done : -errno;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

int dir_fsync(Origin *o, OriginFile *file, gboolean data_only)
{
    (void)o;
    const int r = data_only ? fdatasync(file->fd) : fsync(file->fd);
    return r < 0 ? -errno : 0;
}

int dir_sync_node(Origin *o, OriginNode *node)
{
    (void)o;
    if (!S_ISREG(node->type) && !S_ISDIR(node->type))
        return 0;
    int fd = open(dir_proc_path(node->fd).text, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    int result = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return result;
}

int dir_fallocate(Origin *o, OriginFile *file, int mode, uint64_t off, uint64_t len)
{
    (void)o;
    return fallocate(file->fd, mode, (off_t)off, (off_t)len) < 0 ? -errno : 0;
}

int dir_close(Origin *o, OriginFile *file)
{
    DirOrigin *origin = (DirOrigin *)o;
    pthread_mutex_lock(&origin->lock);
    OriginFile **link = &file->node->files;
    while (*link != file)
        link = &(*link)->next;
    *link = file->next;
    pthread_cond_broadcast(&origin->returned);
    pthread_mutex_unlock(&origin->lock);
    int result = close(file->fd) < 0 && errno != EINTR ? -errno : 0;
    dir_put(o, file->node);
    g_free(file);
    return result;
}

static gboolean may_lease_locked(const OriginFile *file, OriginLease kind)
{
    const OriginNode *node = file->node;
    if (node->writers_coming || (kind == ORIGIN_LEASE_WRITE && node->readers_coming))
        return FALSE;
    if (kind == ORIGIN_LEASE_READ && file->writes)
        return FALSE;
    for (const OriginFile *f = node->files; f; f = f->next)
        if (f != file && (kind == ORIGIN_LEASE_WRITE || f->writes))
            return FALSE;
    return TRUE;
}

int dir_lease(Origin *o, OriginFile *file, OriginLease kind, OriginRecall recall, void *data)
{
    DirOrigin *origin = (DirOrigin *)o;
    int result = 0;
    pthread_mutex_lock(&origin->lock);
    if (kind == ORIGIN_LEASE_NONE) {
        file->lease = ORIGIN_LEASE_NONE;
        pthread_cond_broadcast(&origin->returned);
    } else if (!may_lease_locked(file, kind)) {
        result = -EAGAIN;
    } else {
        file->lease = kind;
        file->recalled = FALSE;
        file->recall = recall;
        file->data = data;
    }
    pthread_mutex_unlock(&origin->lock);
    return result;
}

int dir_truncate(DirOrigin *origin, OriginNode *node, off_t size)
{
    if (!S_ISREG(node->type))
        return S_ISDIR(node->type) ? -EISDIR : -EINVAL;
    int result = access_begins(origin, node, TRUE);
    if (result < 0)
        return result;
    if (truncate(dir_proc_path(node->fd).text, size) < 0)
        result = -errno;
    access_ends(origin, node, TRUE);
    return result;
}
