/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in use are a list of the whole process, each with a count of its users. A name is free
 * again when its last user releases it; session_name_take() waits for that.
 */
#include "cache/origin/cephfs/client/session_names.h"
#include <errno.h>
#include <pthread.h>
#include <sys/queue.h>
#include "common/monotonic.h"

struct SessionName {
    LIST_ENTRY(SessionName) link;
    char *name;
    unsigned uses; /* lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released; /* begun with the first that is taken, or had again */
static pthread_once_t once = PTHREAD_ONCE_INIT;
static LIST_HEAD(, SessionName) names = LIST_HEAD_INITIALIZER(names); /* lock */

static void init_released(void)
{
    cond_init_monotonic(&released);
}

char *session_name_of(const char *client, unsigned i)
{
    return i == 0 ? g_strdup(client) : g_strdup_printf("%s#%u", client, i);
}

static SessionName *find_locked(const char *name)
{
    SessionName *n;
    LIST_FOREACH (n, &names, link)
        if (g_str_equal(n->name, name))
            return n;
    return NULL;
}

static SessionName *add_locked(const char *name)
{
    SessionName *n = g_new0(SessionName, 1);
    n->name = g_strdup(name);
    n->uses = 1;
    LIST_INSERT_HEAD(&names, n, link);
    return n;
}

static SessionName *take_locked(const char *client)
{
    for (unsigned i = 0; i < SESSION_NAMES; i++) {
        g_autofree char *name = session_name_of(client, i);
        if (!find_locked(name))
            return add_locked(name);
    }
    return NULL;
}

SessionName *session_name_take(const char *client, int64_t until_ms)
{
    pthread_once(&once, init_released);
    SessionName *n;
    pthread_mutex_lock(&lock);
    while (!(n = take_locked(client)) && monotonic_ms() < until_ms) {
        const struct timespec until = {.tv_sec = until_ms / 1000,
                                       .tv_nsec = until_ms % 1000 * 1000000};
        pthread_cond_timedwait(&released, &lock, &until);
    }
    pthread_mutex_unlock(&lock);
    return n;
}

SessionName *session_name_again(const char *name)
{
    pthread_once(&once, init_released);
    pthread_mutex_lock(&lock);
    SessionName *n = find_locked(name);
    if (n)
        n->uses++;
    else
        n = add_locked(name);
    pthread_mutex_unlock(&lock);
    return n;
}

const char *session_name(const SessionName *name)
{
    return name->name;
}

void session_name_release(SessionName *name)
{
    if (!name)
        return;
    pthread_mutex_lock(&lock);
    const gboolean last = --name->uses == 0;
    if (last) {
        LIST_REMOVE(name, link);
        pthread_cond_broadcast(&released);
    }
    pthread_mutex_unlock(&lock);
    if (!last)
        return;
    g_free(name->name);
    g_free(name);
}

gboolean session_names_await_none(unsigned limit_ms)
{
    const struct timespec until = deadline_after_ms(limit_ms);
    int r = 0;
    pthread_once(&once, init_released);
    pthread_mutex_lock(&lock);
    while (!LIST_EMPTY(&names) && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&released, &lock, &until);
    const gboolean none = LIST_EMPTY(&names);
    pthread_mutex_unlock(&lock);
    return none;
}
