/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a client has freed stays with the process, in pieces between what others use: after 50
 * connections, 2.8 GB. So it is given back to the kernel, some time after a connection has ended.
 */
#include "cache/origin/client_memory.h"
#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "common/tasks.h"

/* Of what is free, a new connection gets this part. */
#define PART 8
#define CONNECTIONS 16
#define TRIM_AFTER_MS 3000

static void trim(Task *task);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* The lock's, as all below. */
static uint64_t bytes_most = (uint64_t)CONNECTIONS * CLIENT_BYTES_MOST, bytes_granted;
static uint64_t names_most = (uint64_t)CONNECTIONS * CLIENT_NAMES_MOST;
static unsigned connections;
static _Atomic gboolean trims; /* the task is given */
static Task trimming = {.run = trim};

static void trim(Task *task)
{
    (void)task;
    atomic_store(&trims, FALSE);
    malloc_trim(0);
}

void client_memory_set(uint64_t bytes, uint64_t names)
{
    pthread_mutex_lock(&lock);
    bytes_most = bytes;
    names_most = names;
    pthread_mutex_unlock(&lock);
}

uint64_t client_memory_take(void)
{
    pthread_mutex_lock(&lock);
    const uint64_t left = bytes_most - MIN(bytes_granted, bytes_most);
    const uint64_t bytes = CLAMP(left / PART, CLIENT_BYTES_LEAST, CLIENT_BYTES_MOST);
    bytes_granted += bytes;
    connections++;
    pthread_mutex_unlock(&lock);
    return bytes;
}

void client_memory_give(uint64_t bytes)
{
    pthread_mutex_lock(&lock);
    bytes_granted -= bytes;
    connections--;
    pthread_mutex_unlock(&lock);
    if (!atomic_exchange(&trims, TRUE) &&
        !tasks_give_later(tasks_common(), &trimming, TRIM_AFTER_MS))
        atomic_store(&trims, FALSE);
}

static unsigned names_each_locked(void)
{
    const uint64_t share = names_most / MAX(connections, 1);
    return (unsigned)CLAMP(share, CLIENT_NAMES_LEAST, CLIENT_NAMES_MOST);
}

unsigned client_memory_names(void)
{
    pthread_mutex_lock(&lock);
    const unsigned names = names_each_locked();
    pthread_mutex_unlock(&lock);
    return names;
}

void client_memory_look(ClientMemory *memory)
{
    pthread_mutex_lock(&lock);
    *memory = (ClientMemory){
        .bytes = bytes_granted,
        .bytes_most = bytes_most,
        .names = (uint64_t)names_each_locked() * connections,
        .names_most = names_most,
    };
    pthread_mutex_unlock(&lock);
}
