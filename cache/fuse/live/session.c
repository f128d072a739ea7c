/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a session: libfuse on a descriptor that the node plugin has mounted, whose requests
 * the threads of readers.h read, and the notifier.
 */
#include "cache/fuse/live/session.h"
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <unistd.h>
#include "cache/fuse/live/handles.h"
#include "cache/fuse/live/resume.h"
#include "cache/fuse/live/session_internal.h"
#include "cache/fuse/mount_state.h"
#include "cache/fuse/take_over.h"

/* A receive buffer is 1 MiB plus a page: header and a full write fit. */
#define MAX_WRITE ((1u << 20) - 4096)
#define MAX_READAHEAD (1u << 20)

static void op_init(void *data, struct fuse_conn_info *conn)
{
    (void)data;
    /* Pages are dropped by versions and leases, not by comparing times. */
    conn->want &= ~(unsigned)(FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_SPLICE_READ |
                              FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
    /* What is wanted here, and what is answered at all, is in the state of a mount that is left
     * (mount_state.c, VERSION): the kernel does not ask again. */
    /* A write by a process without CAP_FSETID, which only the kernel knows, clears setuid and
     * setgid: the kernel then sets the mode. */
    conn->want &= ~(unsigned)FUSE_CAP_HANDLE_KILLPRIV;
    conn->max_write = MAX_WRITE;
    conn->max_readahead = MAX_READAHEAD;
    conn->max_background = 64;
    conn->congestion_threshold = 48;
    conn->time_gran = 1;
}

static void op_statfs(fuse_req_t req, fuse_ino_t ino)
{
    Session *s = session_of(req);
    Node *node = USE_NODE_OR_REPLY(s, req, ino ? ino : FUSE_ROOT_ID);
    struct statvfs st = {0};
    int r = s->origin->ops->statfs(s->origin, node->origin, &st);
    nodes_done(s->nodes, node);
    if (r < 0)
        fuse_reply_err(req, -r);
    else
        fuse_reply_statfs(req, &st);
}

static void session_free(Session *s)
{
    locks_free(g_steal_pointer(&s->locks));
    if (s->fuse)
        fuse_session_destroy(s->fuse);
    nodes_free(s->nodes);
    opened_free(s->files);
    opened_free(s->listings);
    reopens_free(s->old_files);
    reopens_free(s->old_listings);
    g_clear_pointer(&s->init, g_bytes_unref);
    pthread_mutex_destroy(&s->parked_mutex);
    g_free(s->volume);
    g_free(s);
}

static uint64_t inodes_of(void *session)
{
    return nodes_count(((Session *)session)->nodes);
}

static void forget_inodes(void *session, uint64_t n)
{
    notifier_forget(((Session *)session)->notifier, n);
}

/* What the kernel has of the file may be older than the lock. */
static void lock_granted(void *data, uint64_t id)
{
    Session *s = data;
    Node *node = nodes_use(s->nodes, id);
    if (!node)
        return;
    if (!origin_vouches(s->origin) || handles_attr_valid(s, node) == 0)
        notifier_drop_now(s->notifier, node);
    nodes_done(s->nodes, node);
}

static void stop_notifier(Session *s)
{
    inode_budget_leave(&s->holder);
    if (s->origin->ops->listen)
        s->origin->ops->listen(s->origin, NULL);
    notifier_stop(s->notifier);
}

Session *session_start(const SessionConfig *config, int fuse_fd, void (*ended)(void *data),
                       void *data, GError **error)
{
    Session *s = g_new0(Session, 1);
    s->origin = config->origin;
    s->store = config->store;
    s->volume = g_strdup(config->volume);
    s->read_only = config->read_only;
    session_set_group(s, config->has_group, config->group);
    pthread_mutex_init(&s->parked_mutex, NULL);
    s->files = opened_new();
    s->listings = opened_new();
    OriginNode *root;
    OriginAttr attr;
    int r = s->origin->ops->root(s->origin, &root, &attr);
    if (r < 0) {
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_FAILED, "cannot read the root of volume %s: %s",
                    config->volume, g_strerror(-r));
        goto fail;
    }
    s->nodes = nodes_new(s->origin, root, &attr);
    struct fuse_lowlevel_ops ops = {.init = op_init, .statfs = op_statfs};
    names_ops(&ops);
    attrs_ops(&ops);
    files_ops(&ops);
    dirs_ops(&ops);
    if (config->shared_locks && s->origin->ops->lock_set) {
        s->locks = locks_new(s->origin, lock_granted, s);
        files_lock_ops(&ops);
    }
    if (config->state) {
        s->init = g_bytes_ref(config->init);
        s->fuse = resume_begin(s, config->state, error)
                      ? take_over_serve(&ops, s, fuse_fd, s->init, error)
                      : NULL;
    } else {
        s->fuse = take_over_begin(&ops, s, fuse_fd, &s->init, error);
    }
    if (!s->fuse)
        goto fail;
    s->notifier = notifier_start(s, &handles_notifier_leases, error);
    if (!s->notifier)
        goto fail;
    notifier_listen(s->notifier, s->origin);
    s->holder = (InodeHolder){.count = inodes_of, .forget = forget_inodes, .data = s};
    inode_budget_join(&s->holder);
    s->readers = config->state ? mount_state_go_on(config->state_fd, s->fuse, ended, data, error)
                               : readers_start(s->fuse, ended, data, error);
    if (s->readers)
        return s;
    stop_notifier(s);
fail:
    if (!s->fuse)
        close(fuse_fd);
    session_free(s);
    return NULL;
}

int session_fd(Session *session)
{
    return fuse_session_fd(session->fuse);
}

void session_stats(Session *s, FuseStats *stats)
{
    SessionCounters *c = &s->counters;
    *stats = (FuseStats){
        .opens = atomic_load(&c->opens),
        .hits = atomic_load(&c->hits),
        .misses = atomic_load(&c->misses),
        .bytes_store = atomic_load(&c->bytes_store),
        .bytes_fill = atomic_load(&c->bytes_fill),
        .bytes_origin = atomic_load(&c->bytes_origin),
        .bytes_written = atomic_load(&c->bytes_written),
        .open_us = atomic_load(&c->open_us),
        .reads = atomic_load(&c->reads),
        .read_us = atomic_load(&c->read_us),
        .origin_reads = atomic_load(&c->origin_reads),
        .origin_us = atomic_load(&c->origin_us),
        .nodes = nodes_count(s->nodes),
    };
}

gboolean session_can_be_left(Session *s)
{
    return s->init != NULL;
}

gboolean session_leave(Session *s, int state_fd, unsigned timeout_ms, GError **error)
{
    if (!resume_park(s, timeout_ms)) {
        session_stop(s);
        g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                    "requests to Ceph are still under way");
        return FALSE;
    }
    readers_stop(g_steal_pointer(&s->readers));
    json_t *state = resume_collect(s);
    g_autoptr(GBytes) init = g_bytes_ref(s->init);
    stop_notifier(s);
    session_free(s);
    return mount_state_leave(state_fd, MOUNT_STATE_TREE, init, state, error);
}

void session_stop(Session *s)
{
    if (!s)
        return;
    readers_stop(s->readers);
    locks_free(g_steal_pointer(&s->locks));
    dirs_close_all(s);
    handles_close_all(s);
    resume_unpark(s);
    stop_notifier(s);
    session_free(s);
}
