/*
 * Ending the session of a client that died. While it stands, the MDS waits for capabilities that
 * nobody will give back. libcephfs waits without bound for an MDS that does not answer, so it is
 * asked on a connection and a thread of its own, and left behind when that takes too long; the
 * thread goes when the MDS is back. That may be late: the name must be of a client that is dead for
 * good.
 */
#include <errno.h>
#include <pthread.h>
#include <time.h>
#include "cache/origin/cephfs_internal.h"

/* Shared by the one who asks and the thread; freed by the last. */
typedef struct Reclaim {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    gboolean done;      /* mutex */
    gboolean abandoned; /* mutex */
    gboolean ended;     /* mutex; the session is no more */
    struct ceph_mount_info *mount;
    char *client;
} Reclaim;

static void reclaim_free(Reclaim *r)
{
    pthread_mutex_destroy(&r->mutex);
    pthread_cond_destroy(&r->changed);
    g_free(r->client);
    g_free(r);
}

static void *reclaim_thread(void *data)
{
    Reclaim *r = data;
    int result = ceph_init(r->mount);
    if (result == 0)
        result = ceph_start_reclaim(r->mount, r->client, CEPH_RECLAIM_RESET);
    if (result != -EOPNOTSUPP)
        ceph_finish_reclaim(r->mount);
    ceph_release(r->mount);
    pthread_mutex_lock(&r->mutex);
    r->ended = result == 0 || result == -ENOENT;
    r->done = TRUE;
    gboolean abandoned = r->abandoned;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    if (abandoned)
        reclaim_free(r);
    return NULL;
}

gboolean cephfs_reclaim(struct ceph_mount_info *mount, const char *client, unsigned limit_sec)
{
    Reclaim *r = g_new0(Reclaim, 1);
    pthread_mutex_init(&r->mutex, NULL);
    pthread_cond_init(&r->changed, NULL);
    r->mount = mount;
    r->client = g_strdup(client);
    pthread_t thread;
    if (pthread_create(&thread, NULL, reclaim_thread, r) != 0) {
        ceph_release(mount);
        reclaim_free(r);
        return FALSE;
    }
    pthread_detach(thread);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += limit_sec;
    int rc = 0;
    pthread_mutex_lock(&r->mutex);
    while (!r->done && rc != ETIMEDOUT)
        rc = pthread_cond_timedwait(&r->changed, &r->mutex, &until);
    gboolean done = r->done;
    gboolean ended = done && r->ended;
    r->abandoned = !done;
    pthread_mutex_unlock(&r->mutex);
    if (done)
        reclaim_free(r);
    return ended;
}
