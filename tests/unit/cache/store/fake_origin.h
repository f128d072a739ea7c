/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An origin in memory: files whose bytes are a function of inode and offset, counters of what was
 * asked, errors on demand, and a gate that holds reads back until a test opens it.
 */
#ifndef HEARTH_TESTS_FAKE_ORIGIN_H
#define HEARTH_TESTS_FAKE_ORIGIN_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "cache/store/store.h"

struct OriginNode {
    OriginAttr attr;
    int refs; /* FakeOrigin.lock; a test's own node starts with 1 and outlives the store */
};

struct OriginFile {
    OriginNode *node;
};

typedef struct FakeOrigin {
    Origin base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* lock, all of it: */
    uint64_t gate;    /* reads at this offset or beyond wait; UINT64_MAX: open */
    uint64_t passes;  /* the file with this number has no gate; 0: none */
    unsigned at_gate; /* reads that wait */
    unsigned reading, most_reading;
    uint64_t bytes_read;
    unsigned reads, opens, open_files;
    int open_flags;
    int open_error, read_error, getattr_error;
    uint64_t error_from;  /* read_error applies from this offset on */
    size_t most_per_read; /* 0: as asked */
    uint64_t ends_at;     /* 0: where the attributes say */
    uint64_t *order;      /* offsets in the order read */
    unsigned n_order;
    OriginNode *named; /* found beneath the root as "named" */
} FakeOrigin;

static inline uint8_t fake_byte(uint64_t ino, uint64_t off)
{
    uint64_t x = (ino * 0x9e3779b97f4a7c15ULL) ^ ((off >> 3) * 0xff51afd7ed558ccdULL);
    x ^= x >> 29;
    return (uint8_t)(x >> ((off & 7) * 8)) ^ (uint8_t)off;
}

static inline gboolean fake_is_right(uint64_t ino, const uint8_t *buf, size_t len, uint64_t off)
{
    for (size_t i = 0; i < len; i++)
        if (buf[i] != fake_byte(ino, off + i))
            return FALSE;
    return TRUE;
}

static inline FakeOrigin *fake_of(Origin *o)
{
    return (FakeOrigin *)o;
}

static OriginNode *fake_get(Origin *o, OriginNode *node)
{
    pthread_mutex_lock(&fake_of(o)->lock);
    node->refs++;
    pthread_mutex_unlock(&fake_of(o)->lock);
    return node;
}

static void fake_put(Origin *o, OriginNode *node)
{
    pthread_mutex_lock(&fake_of(o)->lock);
    gboolean last = --node->refs == 0;
    pthread_mutex_unlock(&fake_of(o)->lock);
    if (last)
        g_free(node);
}

static int fake_getattr(Origin *o, OriginNode *node, OriginAttr *attr)
{
    FakeOrigin *fake = fake_of(o);
    pthread_mutex_lock(&fake->lock);
    *attr = node->attr;
    int rc = fake->getattr_error;
    pthread_mutex_unlock(&fake->lock);
    return rc;
}

static OriginNode fake_top = {.attr.st.st_mode = S_IFDIR, .refs = 1};

static int fake_root(Origin *o, OriginNode **node, OriginAttr *attr)
{
    *attr = fake_top.attr;
    *node = fake_get(o, &fake_top);
    return 0;
}

static int fake_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                       OriginAttr *attr)
{
    OriginNode *found = fake_of(o)->named;
    if (parent != &fake_top || !found || strcmp(name, "named") != 0)
        return -ENOENT;
    *attr = found->attr;
    *node = fake_get(o, found);
    return 0;
}

static int fake_open(Origin *o, OriginNode *node, int flags, OriginFile **file)
{
    FakeOrigin *fake = fake_of(o);
    pthread_mutex_lock(&fake->lock);
    fake->opens++;
    fake->open_flags = flags;
    int rc = fake->open_error;
    if (rc == 0)
        fake->open_files++;
    pthread_mutex_unlock(&fake->lock);
    if (rc == 0) {
        *file = g_new0(OriginFile, 1);
        (*file)->node = node;
    }
    return rc;
}

static int fake_close(Origin *o, OriginFile *file)
{
    pthread_mutex_lock(&fake_of(o)->lock);
    fake_of(o)->open_files--;
    pthread_mutex_unlock(&fake_of(o)->lock);
    g_free(file);
    return 0;
}

static ssize_t fake_read(Origin *o, OriginFile *file, void *buf, size_t len, uint64_t off)
{
    FakeOrigin *fake = fake_of(o);
    pthread_mutex_lock(&fake->lock);
    fake->reads++;
    fake->reading++;
    fake->most_reading = MAX(fake->most_reading, fake->reading);
    if (fake->order)
        fake->order[fake->n_order++] = off;
    fake->at_gate++;
    pthread_cond_broadcast(&fake->changed);
    while (off >= fake->gate && file->node->attr.st.st_ino != fake->passes)
        pthread_cond_wait(&fake->changed, &fake->lock);
    fake->at_gate--;
    uint64_t size = fake->ends_at ? fake->ends_at : (uint64_t)file->node->attr.st.st_size;
    uint64_t ino = file->node->attr.st.st_ino;
    ssize_t n = fake->read_error && off >= fake->error_from ? fake->read_error
                : off >= size                               ? 0
                                                            : (ssize_t)MIN(len, size - off);
    if (n > 0 && fake->most_per_read)
        n = (ssize_t)MIN((size_t)n, fake->most_per_read);
    if (n > 0)
        fake->bytes_read += (uint64_t)n;
    pthread_mutex_unlock(&fake->lock);
    for (ssize_t i = 0; i < n; i++)
        ((uint8_t *)buf)[i] = fake_byte(ino, off + (uint64_t)i);
    pthread_mutex_lock(&fake->lock);
    fake->reading--;
    pthread_mutex_unlock(&fake->lock);
    return n;
}

static inline void fake_init(FakeOrigin *fake)
{
    static const OriginOps ops = {
        .type = "fake",
        .get = fake_get,
        .put = fake_put,
        .root = fake_root,
        .lookup = fake_lookup,
        .getattr = fake_getattr,
        .open = fake_open,
        .read = fake_read,
        .close = fake_close,
    };
    *fake = (FakeOrigin){.base.ops = &ops, .gate = UINT64_MAX};
    memset(fake->base.space, 0x5a, sizeof(fake->base.space));
    pthread_mutex_init(&fake->lock, NULL);
    pthread_cond_init(&fake->changed, NULL);
}

static inline void fake_set_gate(FakeOrigin *fake, uint64_t gate)
{
    pthread_mutex_lock(&fake->lock);
    fake->gate = gate;
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->lock);
}

/* Waits until `n` reads are in the origin. */
static inline void fake_await_reads(FakeOrigin *fake, unsigned n)
{
    pthread_mutex_lock(&fake->lock);
    while (fake->at_gate < n)
        pthread_cond_wait(&fake->changed, &fake->lock);
    pthread_mutex_unlock(&fake->lock);
}

static inline OriginNode fake_file(uint64_t ino, uint64_t size)
{
    OriginNode node = {.refs = 1};
    node.attr.st.st_ino = ino;
    node.attr.st.st_mode = S_IFREG | 0644;
    node.attr.st.st_size = (off_t)size;
    node.attr.st.st_mtim.tv_sec = 1700000000;
    node.attr.version = 7;
    return node;
}

static inline void fake_key(FakeOrigin *fake, const OriginNode *node, ObjectKey *key, ObjectId *id)
{
    object_key_init(key, &fake->base, &node->attr);
    if (id)
        object_key_id(key, id);
}

/* Nothing of the origin is in use any more. */
static inline void fake_assert_unused(FakeOrigin *fake, const OriginNode *node)
{
    pthread_mutex_lock(&fake->lock);
    ck_assert_uint_eq(fake->open_files, 0);
    if (node)
        ck_assert_int_eq(node->refs, 1);
    pthread_mutex_unlock(&fake->lock);
}

#endif
