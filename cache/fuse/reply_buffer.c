/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/fuse/reply_buffer.h"
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>

#define ALIGNMENT 4096

/* Grown to the largest read the kernel sends. */
typedef struct ReplyBuffer {
    void *data;
    size_t size;
} ReplyBuffer;

static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void buffer_free(void *data)
{
    ReplyBuffer *b = data;
    free(b->data);
    g_free(b);
}

static void make_key(void)
{
    pthread_key_create(&key, buffer_free);
}

char *reply_buffer(size_t size)
{
    pthread_once(&once, make_key);
    ReplyBuffer *b = pthread_getspecific(key);
    if (!b) {
        b = g_new0(ReplyBuffer, 1);
        pthread_setspecific(key, b);
    }
    if (b->size < size) {
        free(b->data);
        b->size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        if (posix_memalign(&b->data, ALIGNMENT, b->size) != 0)
            g_error("no memory for a read of %zu bytes", size);
    }
    return b->data;
}
