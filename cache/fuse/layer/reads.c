/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A read is listed while it waits. It waits for a fill or for a read past the store, and each of
 * these tells it once that it is over. Only that goes on with the read. To end a read early,
 * what it waits for is withdrawn, which tells the read at once. One task looks at all reads of the
 * layer that wait: whether Ceph is silent, their time is over, or their thread was killed. There is
 * none while no read waits.
 */
#include "cache/fuse/layer/reads.h"
#include <errno.h>
#include <pthread.h>
#include <unistd.h>
#include "cache/fuse/layer/bypass.h"
#include "cache/fuse/layer/killed.h"
#include "cache/fuse/reply_buffer.h"
#include "common/monotonic.h"

/* While Ceph is away a read waits this long: for its first answer. */
#define AGAIN_MS 250
/* Between two looks at the reads that wait. */
#define LOOK_MS 1000
#define LOOK_MIN_MS 10
/* The same while one had a signal that did not kill its thread. The kernel tells of no other. */
#define SIGNALLED_MS 200
/* What waits when the layer stops may still be answered for so long. */
#define STOP_MS 5000

typedef struct LayerRead {
    FillWait fill; /* first */
    BypassRead past;
    Reads *all;
    fuse_req_t req;
    Source *source; /* a reference */
    size_t len;
    uint64_t off, began_ms;
    gint64 began_us;
    TAILQ_ENTRY(LayerRead) link; /* Reads.lock, as the next */
    gboolean listed, told;       /* told: by its fill, before it was listed */
    gboolean past_store;         /* which of the two it waits for */
    gboolean signalled;
    int ending; /* why it was withdrawn; 0: it was not */
} LayerRead;

struct Reads {
    Task look; /* first */
    ReadsConfig config;
    Bypass *bypass;
    atomic_bool refused;
    atomic_bool left;
    ReadCounts counts;
    pthread_mutex_t lock;
    pthread_cond_t changed;          /* fewer reads, or the task has ended */
    TAILQ_HEAD(, LayerRead) waiting; /* lock, as all below */
    unsigned unanswered;             /* of those that have begun to wait */
    gboolean looking, stopping;      /* looking: the task is given, or runs */
    uint64_t look_ms;                /* when it is due */
};

/* ---- when the reads are looked at ---- */

/* How long Ceph has to be silent until a read ends that began so long ago. */
static uint64_t patience_ms(const Reads *all)
{
    return MIN(AGAIN_MS, all->config.silent_ms);
}

static void look_within_locked(Reads *all, uint64_t ms)
{
    const uint64_t due = (uint64_t)monotonic_ms() + ms;
    if (all->looking && (due >= all->look_ms || !tasks_take_back(tasks_common(), &all->look)))
        return; /* it looks sooner, or now */
    all->look_ms = due;
    all->looking = tasks_give_later(tasks_common(), &all->look, ms);
}

static void first_look_locked(const LayerRead *r)
{
    uint64_t ms = r->signalled ? LOOK_MIN_MS : patience_ms(r->all);
    if (r->all->config.timeout_ms)
        ms = MIN(ms, r->all->config.timeout_ms);
    look_within_locked(r->all, ms);
}

/* ---- answering ---- */

static void reply_read(Reads *all, fuse_req_t req, const char *buf, ssize_t n)
{
    if (n >= 0 && !atomic_load(&all->refused)) {
        fuse_reply_buf(req, buf, (size_t)n);
        return;
    }
    if (atomic_load(&all->left)) {
        fuse_reply_none(req);
        return;
    }
    atomic_fetch_add(&all->counts.failed, 1);
    if (atomic_load(&all->refused))
        fuse_reply_err(req, EACCES);
    else
        fuse_reply_err(req, n == -EINTR ? EINTR : EIO);
}

void reads_fail(Reads *all, fuse_req_t req)
{
    reply_read(all, req, NULL, -EIO);
}

static void read_free(LayerRead *r)
{
    source_unref(r->source);
    g_free(r->past.buf);
    g_free(r);
}

static void add_time(Reads *all, gint64 began_us)
{
    atomic_fetch_add_explicit(&all->counts.read_us, (uint64_t)(g_get_monotonic_time() - began_us),
                              memory_order_relaxed);
}

/* Of a read that was listed. */
static void answer(LayerRead *r, const char *buf, ssize_t n)
{
    Reads *all = r->all;
    add_time(all, r->began_us);
    pthread_mutex_lock(&all->lock);
    TAILQ_REMOVE(&all->waiting, r, link);
    r->listed = FALSE;
    pthread_mutex_unlock(&all->lock);
    fuse_req_interrupt_func(r->req, NULL, NULL); /* waits for one that runs */
    reply_read(all, r->req, buf, n);
    read_free(r);
    pthread_mutex_lock(&all->lock);
    all->unanswered--;
    pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

static void past_told(Task *task)
{
    LayerRead *r = (LayerRead *)((char *)task - offsetof(LayerRead, past));
    const ssize_t n = r->past.result;
    if (n >= 0)
        atomic_fetch_add(&r->all->counts.bytes_origin, (uint64_t)n);
    answer(r, r->past.buf, n);
}

/* Of a read that was listed. FALSE: it has ended meanwhile. */
static gboolean begin_past(LayerRead *r, const char *path)
{
    Reads *all = r->all;
    const BypassRange range = {.path = path, .key = &r->source->key, .off = r->off, .len = r->len};
    pthread_mutex_lock(&all->lock);
    const gboolean goes_on = r->ending == 0;
    if (goes_on) {
        r->past_store = TRUE;
        r->past.task.run = past_told;
        bypass_begin(all->bypass, &r->past, &range);
        first_look_locked(r);
    }
    pthread_mutex_unlock(&all->lock);
    return goes_on;
}

static ssize_t read_fill(Reads *all, const Source *s, char *buf, size_t len, uint64_t off)
{
    const ssize_t n = store_fill_read_now(s->fill, buf, len, off);
    if (n >= 0)
        atomic_fetch_add(&all->counts.bytes_fill, (uint64_t)n);
    return n;
}

/* The fill has ended, or the read's wait for it. */
static void go_on(LayerRead *r)
{
    Reads *all = r->all;
    if (r->fill.result == 0) {
        char *buf = reply_buffer(r->len);
        const ssize_t n = read_fill(all, r->source, buf, r->len, r->off);
        if (n >= 0) {
            answer(r, buf, n);
            return;
        }
    }
    pthread_mutex_lock(&all->lock);
    const int ending = r->ending;
    pthread_mutex_unlock(&all->lock);
    if (ending) {
        answer(r, NULL, ending);
        return;
    }
    sources_drop(all->config.sources, r->source);
    g_autofree char *path = manifest_path(all->config.manifest, r->source->index);
    if (!path || !begin_past(r, path))
        answer(r, NULL, -EIO);
}

static void fill_told(Task *task)
{
    LayerRead *r = (LayerRead *)task;
    pthread_mutex_lock(&r->all->lock);
    const gboolean listed = r->listed;
    r->told = TRUE;
    pthread_mutex_unlock(&r->all->lock);
    if (listed)
        go_on(r);
}

/* ---- those that wait ---- */

static void end_locked(LayerRead *r, int result)
{
    if (r->ending)
        return;
    r->ending = result;
    if (r->past_store)
        bypass_withdraw(r->all->bypass, &r->past, result);
    else if (!r->told) /* otherwise it goes on, and sees `ending` */
        store_fill_withdraw(&r->fill, result);
}

/* Why it ends now, or 0 and *next_ms: when it may end. */
static int why_ends(const LayerRead *r, uint64_t now, uint64_t silent_ms, uint64_t *next_ms)
{
    const Reads *all = r->all;
    const uint64_t waited = now - r->began_ms, patience = patience_ms(all),
                   timeout = all->config.timeout_ms, bound = all->config.silent_ms;
    const gboolean is_away = silent_ms >= bound;
    if (atomic_load(&all->refused))
        return -EACCES;
    if (r->signalled && thread_is_killed(fuse_req_ctx(r->req)->pid))
        return -EINTR;
    if ((is_away && waited >= patience) || (timeout && waited >= timeout))
        return -ETIMEDOUT;
    *next_ms = MIN(*next_ms, is_away ? patience - waited : bound - silent_ms);
    if (timeout)
        *next_ms = MIN(*next_ms, timeout - waited);
    if (r->signalled)
        *next_ms = MIN(*next_ms, SIGNALLED_MS);
    return 0;
}

static void look(Task *task)
{
    Reads *all = (Reads *)task;
    const uint64_t silent_ms = origin_silent_ms(all->config.origin);
    uint64_t next_ms = LOOK_MS;
    LayerRead *r;
    pthread_mutex_lock(&all->lock);
    const uint64_t now = (uint64_t)monotonic_ms();
    all->looking = FALSE;
    TAILQ_FOREACH (r, &all->waiting, link) {
        const int why = r->ending ? 0 : why_ends(r, now, silent_ms, &next_ms);
        if (why)
            end_locked(r, why);
    }
    if (!TAILQ_EMPTY(&all->waiting))
        look_within_locked(all, MAX(next_ms, LOOK_MIN_MS));
    else
        pthread_cond_broadcast(&all->changed);
    pthread_mutex_unlock(&all->lock);
}

/* The kernel says that the reader has a signal. libfuse holds a lock of the request, which answer()
 * needs before it frees it. */
static void interrupted(fuse_req_t req, void *data)
{
    LayerRead *r = data;
    const gboolean killed = thread_is_killed(fuse_req_ctx(req)->pid);
    pthread_mutex_lock(&r->all->lock);
    r->signalled = TRUE;
    if (r->listed && killed)
        end_locked(r, -EINTR);
    else if (r->listed)
        look_within_locked(r->all, SIGNALLED_MS);
    pthread_mutex_unlock(&r->all->lock);
}

/* Its fill or its read past the store has begun. */
static void wait_for(LayerRead *r)
{
    Reads *all = r->all;
    fuse_req_interrupt_func(r->req, interrupted, r);
    pthread_mutex_lock(&all->lock);
    TAILQ_INSERT_TAIL(&all->waiting, r, link);
    r->listed = TRUE;
    all->unanswered++;
    const gboolean told = r->told;
    if (!told)
        first_look_locked(r);
    pthread_mutex_unlock(&all->lock);
    if (told)
        go_on(r);
}

/* ---- beginning ---- */

static ssize_t read_object(const Source *s, char *buf, size_t len, uint64_t off)
{
    size_t done = 0;
    while (done < len) {
        ssize_t n = pread(s->fd, buf + done, len - done, (off_t)(off + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? -errno : -EIO;
        done += (size_t)n;
    }
    return (ssize_t)done;
}

/* Of what the store has. */
static ssize_t read_cached(Reads *all, const Source *s, char *buf, size_t len, uint64_t off)
{
    const ssize_t n = read_object(s, buf, len, off);
    if (n >= 0)
        atomic_fetch_add(&all->counts.bytes_store, (uint64_t)n);
    else
        store_report_bad(all->config.store, &s->id, (int)-n);
    return n;
}

void reads_begin(Reads *all, fuse_req_t req, Source *source, size_t len, uint64_t off)
{
    LayerRead *r = g_new0(LayerRead, 1);
    *r = (LayerRead){.fill.task.run = fill_told,
                     .all = all,
                     .req = req,
                     .source = source,
                     .len = len,
                     .off = off,
                     .began_ms = (uint64_t)monotonic_ms(),
                     .began_us = g_get_monotonic_time()};
    char *buf = reply_buffer(len);
    ssize_t n = -ENODATA;
    int rc = -ENODATA;
    atomic_fetch_add(&all->counts.reads, 1);
    if (source->fd >= 0)
        n = read_cached(all, source, buf, len, off);
    else if (source->fill)
        rc = store_fill_begin_read(source->fill, &r->fill, len, off);
    if (rc == 0)
        n = read_fill(all, source, buf, len, off);
    if (n >= 0) {
        add_time(all, r->began_us);
        reply_read(all, req, buf, n);
        read_free(r);
        return;
    }
    if (rc != -EINPROGRESS) { /* as if it had waited in vain */
        r->fill.result = -ENODATA;
        r->told = TRUE;
    }
    wait_for(r);
}

/* ---- life ---- */

Reads *reads_new(const ReadsConfig *config)
{
    Reads *all = g_new0(Reads, 1);
    all->config = *config;
    all->look.run = look;
    all->bypass = bypass_new(config->origin);
    pthread_mutex_init(&all->lock, NULL);
    cond_init_monotonic(&all->changed);
    TAILQ_INIT(&all->waiting);
    return all;
}

void reads_refuse(Reads *all)
{
    atomic_store(&all->refused, TRUE);
}

void reads_leave(Reads *all)
{
    atomic_store(&all->left, TRUE);
}

const ReadCounts *reads_counts(const Reads *all)
{
    return &all->counts;
}

void reads_free(Reads *all)
{
    if (!all)
        return;
    const struct timespec until = deadline_after_ms(atomic_load(&all->left) ? 0 : STOP_MS);
    LayerRead *r;
    pthread_mutex_lock(&all->lock);
    while (all->unanswered > 0 &&
           pthread_cond_timedwait(&all->changed, &all->lock, &until) != ETIMEDOUT)
        ;
    TAILQ_FOREACH (r, &all->waiting, link)
        end_locked(r, -ECANCELED);
    while (all->unanswered > 0)
        pthread_cond_wait(&all->changed, &all->lock);
    if (tasks_take_back(tasks_common(), &all->look))
        all->looking = FALSE;
    while (all->looking)
        pthread_cond_wait(&all->changed, &all->lock);
    pthread_mutex_unlock(&all->lock);
    bypass_free(all->bypass);
    pthread_cond_destroy(&all->changed);
    pthread_mutex_destroy(&all->lock);
    g_free(all);
}
