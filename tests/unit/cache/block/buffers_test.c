/* SPDX-License-Identifier: Apache-2.0 */
/* Buffers of reads that wait for them. The Makefile links it so that pthread_mutex_unlock() goes
 * through here, where another thread may run. */
#include "tests/unit/cache/block/world.h"

#define OBJECT (1u << 20)
/* The parent ends in the middle of a chunk. */
#define PARENT_END (2 * OBJECT + 4 * KB)

static struct {
    World world;
    Wait writing;
    char data[4 * KB];
} t;

/* The write comes behind this thread's second unlock of it; NULL: no more. */
static _Thread_local pthread_mutex_t *unlocked;
static _Thread_local int unlocks;

int __real_pthread_mutex_unlock(pthread_mutex_t *lock);
int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock);

int __wrap_pthread_mutex_unlock(pthread_mutex_t *lock)
{
    int rc = __real_pthread_mutex_unlock(lock);
    if (lock == unlocked && ++unlocks == 2) {
        unlocked = NULL;
        t.world.image->ops->write(t.world.image, t.data, sizeof(t.data), 2 * OBJECT + OBJECT / 2,
                                  on_done, &t.writing);
    }
    return rc;
}

static void attach_clone(World *w)
{
    ImageParent *parent = g_new0(ImageParent, 1);
    parent->name = g_strdup("ceph/1/image@7");
    parent->end = PARENT_END;
    parent->owns = g_new0(uint8_t, FAKE_BYTES / OBJECT);
    w->fake = open_fake(w, "run", NULL);
    w->fake->base.object_bytes = OBJECT;
    w->fake->base.content.parent = parent;
    g_free(w->fake->base.content.name);
    w->fake->base.content.name = g_strdup("ceph/1/clone@0");
    w->image = image_cache_open(w->cache, &w->fake->base, 0);
}

/* Its object is the clone's own from then on, so a chunk of it no longer ends with the parent. */
START_TEST(a_write_between_counting_and_reading_leaves_no_buffers_counted)
{
    char buf[4 * KB];
    World *w = &t.world;
    begin(w);
    detach(w);
    attach_clone(w);
    wait_init(&t.writing);
    unlocked = &w->cache->wanting_lock;
    ck_assert_int_eq(do_read(w->image, buf, sizeof(buf), 2 * OBJECT), sizeof(buf));
    ck_assert_ptr_null(unlocked);
    ck_assert_int_eq(wait_for(&t.writing), sizeof(t.data));
    settle(w);
    ck_assert_int_eq(atomic_load(&w->cache->buffers), 0);
    end(w);
}
END_TEST

HARNESS_MAIN("cache/block/buffers", a_write_between_counting_and_reading_leaves_no_buffers_counted)
