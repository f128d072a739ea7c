/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a monitor answers, which it does while MDSes and OSDs are replaced. Asked by a client
 * that connects now, on a thread that may be left behind. */
#include "cache/origin/aside.h"
#include "cache/origin/thread_room.h"
#include "cache/origin/cephfs/client/client.h"
#include "cache/origin/cephfs/client/monitors.h"
#include <errno.h>
#include <stdatomic.h>
#include "common/monotonic.h"

#define ASK_AGAIN_MS 5000
/* Of all volumes at a time: each is a client with threads of its own. */
#define QUESTIONS_MAX 32

static _Atomic unsigned questions;

struct CephfsMonitors {
    _Atomic unsigned refs;
    _Atomic gboolean asking;
    _Atomic int64_t asked_ms, heard_ms; /* 0: never */
};

typedef struct Question {
    CephfsMonitors *monitors;
    CephfsOriginConfig *config;
} Question;

CephfsMonitors *cephfs_monitors_new(void)
{
    CephfsMonitors *m = g_new0(CephfsMonitors, 1);
    atomic_init(&m->refs, 1);
    return m;
}

void cephfs_monitors_unref(CephfsMonitors *m)
{
    if (atomic_fetch_sub(&m->refs, 1) == 1)
        g_free(m);
}

static void end_question(Question *q)
{
    atomic_store(&q->monitors->asking, FALSE);
    atomic_fetch_sub(&questions, 1);
    cephfs_config_free(q->config);
    cephfs_monitors_unref(q->monitors);
}

static int reach(const CephfsOriginConfig *config)
{
    if (!thread_room_take(THREAD_ROOM_QUESTION, 0, NULL))
        return -EAGAIN;
    const int r = ceph_client_enter_network(&config->ceph, NULL) ? cephfs_reach_monitors(config)
                                                                 : -ENETUNREACH;
    thread_room_give(THREAD_ROOM_QUESTION);
    return r;
}

static void ask(void *data)
{
    g_autofree Question *q = data;
    CephfsMonitors *m = q->monitors;
    const int r = reach(q->config);
    if (r == 0)
        atomic_store(&m->heard_ms, monotonic_ms());
    end_question(q);
}

static gboolean begin_question(CephfsMonitors *m, const CephfsOriginConfig *config)
{
    Question *q = g_new(Question, 1);
    *q = (Question){m, cephfs_config_copy(config)};
    atomic_fetch_add(&m->refs, 1);
    if (atomic_fetch_add(&questions, 1) < QUESTIONS_MAX && aside_try(ask, q))
        return TRUE;
    end_question(q);
    g_free(q);
    return FALSE;
}

uint64_t cephfs_monitors_silent_ms(CephfsMonitors *m, const CephfsOriginConfig *config)
{
    const int64_t now = monotonic_ms(), heard_ms = atomic_load(&m->heard_ms);
    const gboolean due = now - atomic_load(&m->asked_ms) >= ASK_AGAIN_MS;
    if (due && !atomic_exchange(&m->asking, TRUE) && begin_question(m, config))
        atomic_store(&m->asked_ms, now);
    return heard_ms ? (uint64_t)MAX(now - heard_ms, 0) : UINT64_MAX;
}
