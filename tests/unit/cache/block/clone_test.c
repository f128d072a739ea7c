/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cache/block/world.h"

#define OBJECT (1u << 20)

/* Clones of one snapshot, each with a Ceph of its own that has the same bytes. */
typedef struct Clones {
    World world;
    FakeCeph *ceph[2];
    FakeImage *fake[2];
    Image *image[2];
} Clones;

static void attach_clone(Clones *c, unsigned i, uint64_t end)
{
    FakeImage *f = fake_image_new(c->ceph[i], FALSE);
    g_autofree char *name = g_strdup_printf("ceph/1/clone%u@0", i);
    f->base.content.client = g_strdup("run");
    f->base.object_bytes = OBJECT;
    f->base.content.parent = g_new0(ImageParent, 1);
    f->base.content.parent->name = g_strdup("ceph/1/image@7");
    f->base.content.parent->end = end;
    f->base.content.parent->owns = g_new0(uint8_t, FAKE_BYTES / OBJECT);
    g_free(f->base.content.name);
    f->base.content.name = g_steal_pointer(&name);
    c->fake[i] = f;
    c->image[i] = image_cache_open(c->world.cache, &f->base, 0);
}

static void clones_begin(Clones *c, uint64_t end)
{
    memset(c, 0, sizeof(*c));
    begin(&c->world);
    for (unsigned i = 0; i < 2; i++) {
        c->ceph[i] = fake_ceph_new();
        attach_clone(c, i, end);
    }
}

static void clones_end(Clones *c)
{
    for (unsigned i = 0; i < 2; i++) {
        image_close(c->image[i]);
        fake_ceph_free(c->ceph[i]);
    }
    end(&c->world);
}

static World of_clone(Clones *c, unsigned i)
{
    World w = c->world;
    w.ceph = c->ceph[i];
    w.fake = c->fake[i];
    w.image = c->image[i];
    return w;
}

static uint64_t clone_asked(Clones *c, unsigned i, uint64_t off, size_t len)
{
    World w = of_clone(c, i);
    return asked(&w, off, len);
}

static void clone_write(Clones *c, unsigned i, char byte, uint64_t off)
{
    World w = of_clone(c, i);
    char buf[4096];
    memset(buf, byte, sizeof(buf));
    ck_assert_int_eq(do_write(c->image[i], buf, sizeof(buf), off), sizeof(buf));
    settle(&w);
}

START_TEST(clones_share_what_they_have_from_their_parent)
{
    Clones c;
    clones_begin(&c, FAKE_BYTES);
    ck_assert_uint_eq(clone_asked(&c, 0, 0, CHUNK), CHUNK);
    ck_assert_uint_eq(clone_asked(&c, 1, 0, CHUNK), 0);
    /* And with the snapshot itself, the other way round. */
    detach(&c.world);
    c.world.image = image_cache_open(c.world.cache, &fake_image_new(c.world.ceph, TRUE)->base, 0);
    ck_assert_uint_eq(asked(&c.world, 0, CHUNK), 0);
    ck_assert_uint_gt(asked(&c.world, OBJECT, CHUNK), 0);
    ck_assert_uint_eq(clone_asked(&c, 1, OBJECT, CHUNK), 0);
    clones_end(&c);
}
END_TEST

START_TEST(what_a_clone_writes_is_its_own)
{
    Clones c;
    clones_begin(&c, FAKE_BYTES);
    clone_asked(&c, 0, 0, 3 * OBJECT);
    clone_write(&c, 0, 9, OBJECT);
    clone_asked(&c, 0, 0, 3 * OBJECT);
    ck_assert_uint_eq(clone_asked(&c, 1, 0, 3 * OBJECT), 0);
    clone_write(&c, 1, 8, OBJECT + 4096);
    clone_asked(&c, 0, 0, 3 * OBJECT);
    clone_asked(&c, 1, 0, 3 * OBJECT);
    ck_assert_uint_eq(clone_asked(&c, 0, OBJECT, CHUNK), 0);
    clones_end(&c);
}
END_TEST

START_TEST(what_is_the_clones_own_is_not_read_as_the_parents)
{
    Clones c;
    clones_begin(&c, FAKE_BYTES);
    clone_asked(&c, 0, 0, CHUNK);
    image_close(c.image[1]);
    memset(c.ceph[1]->content, 7, 4096);
    attach_clone(&c, 1, FAKE_BYTES);
    c.fake[1]->base.content.parent->owns[0] = 1;
    ck_assert_uint_gt(clone_asked(&c, 1, 0, CHUNK), 0);
    ck_assert_uint_eq(clone_asked(&c, 0, 0, CHUNK), 0);
    clones_end(&c);
}
END_TEST

START_TEST(what_a_write_has_overtaken_is_not_kept_as_the_parents)
{
    Clones c;
    Wait reading, writing;
    char read[4096], written[4096];
    clones_begin(&c, FAKE_BYTES);
    wait_init(&reading);
    wait_init(&writing);
    memset(written, 9, sizeof(written));
    image_fake_hold(c.fake[0]);
    c.image[0]->ops->read(c.image[0], read, sizeof(read), 0, on_done, &reading);
    FakeCall *late = image_fake_take(c.fake[0], 0);
    c.image[0]->ops->write(c.image[0], written, sizeof(written), 0, on_done, &writing);
    image_fake_let_go(c.fake[0]);
    ck_assert_int_eq(wait_for(&writing), sizeof(written));
    image_fake_answer(c.fake[0], late);
    ck_assert_int_eq(wait_for(&reading), sizeof(read));
    ck_assert_uint_gt(clone_asked(&c, 1, 0, CHUNK), 0);
    clone_asked(&c, 0, 0, CHUNK);
    clones_end(&c);
}
END_TEST

START_TEST(nobody_waits_for_what_another_clone_reads)
{
    Clones c;
    Wait reading;
    char read[4096];
    clones_begin(&c, FAKE_BYTES);
    wait_init(&reading);
    image_fake_hold(c.fake[0]);
    c.image[0]->ops->read(c.image[0], read, sizeof(read), 0, on_done, &reading);
    FakeCall *late = image_fake_take(c.fake[0], 0);
    ck_assert_uint_gt(clone_asked(&c, 1, 0, CHUNK), 0);
    image_fake_answer(c.fake[0], late);
    ck_assert_int_eq(wait_for(&reading), sizeof(read));
    image_fake_let_go(c.fake[0]);
    clones_end(&c);
}
END_TEST

START_TEST(beyond_what_was_the_parents_nothing_is)
{
    Clones c;
    uint64_t bytes;
    clones_begin(&c, 2 * OBJECT + 4096 + 512);
    clone_asked(&c, 0, 0, 3 * OBJECT);
    memset(c.ceph[1]->content + 2 * OBJECT + 4096 + 512, 0, OBJECT);
    clone_asked(&c, 1, 0, 3 * OBJECT);
    /* Cut off, and grown again. */
    c.ceph[1]->bytes = OBJECT;
    ck_assert_int_eq(c.image[1]->ops->size(c.image[1], &bytes), 0);
    c.ceph[1]->bytes = FAKE_BYTES;
    ck_assert_int_eq(c.image[1]->ops->size(c.image[1], &bytes), 0);
    memset(c.ceph[1]->content + OBJECT, 0, OBJECT);
    clone_asked(&c, 1, 0, 3 * OBJECT);
    clones_end(&c);
}
END_TEST

START_TEST(evicting_a_clone_frees_its_parents_part)
{
    Clones c;
    clones_begin(&c, FAKE_BYTES);
    clone_asked(&c, 0, 0, CHUNK);
    ck_assert_uint_ge(image_cache_evict(c.world.cache, "ceph/1/clone0@0", UINT64_MAX), CHUNK);
    ck_assert_uint_eq(clone_asked(&c, 1, 0, CHUNK), CHUNK);
    clones_end(&c);
}
END_TEST

typedef struct Worker {
    Clones *clones;
    unsigned i;
} Worker;

static void *work(void *data)
{
    Worker *worker = data;
    Image *image = worker->clones->image[worker->i];
    g_autoptr(GRand) rand = g_rand_new_with_seed(worker->i);
    g_autofree char *buf = g_malloc(16 * KB);
    for (int n = 0; n < 400; n++) {
        const uint64_t off = (uint64_t)g_rand_int_range(rand, 0, FAKE_BYTES / 4096 - 4) * 4096;
        const size_t len = 4096u * (size_t)g_rand_int_range(rand, 1, 5);
        memset(buf, (int)worker->i + 1, len);
        /* Rarely, so that much stays the parent's. */
        if (g_rand_int_range(rand, 0, 60) == 0)
            do_write(image, buf, len, off);
        else
            do_read(image, buf, len, off);
        if (n % 100 == 99)
            image_cache_evict(worker->clones->world.cache, NULL, REGION_BYTES);
    }
    return NULL;
}

START_TEST(whatever_meets_each_clone_reads_its_own)
{
    for (int round = 0; round < 5; round++) {
        Clones c;
        pthread_t threads[4];
        Worker workers[4];
        clones_begin(&c, FAKE_BYTES);
        c.fake[0]->late = c.fake[1]->late = TRUE;
        for (unsigned i = 0; i < 4; i++) {
            workers[i] = (Worker){&c, i % 2};
            ck_assert_int_eq(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
        }
        for (unsigned i = 0; i < 4; i++)
            pthread_join(threads[i], NULL);
        for (unsigned i = 0; i < 4; i++)
            clone_asked(&c, i % 2, 0, FAKE_BYTES);
        clones_end(&c);
    }
}
END_TEST

/* ---- opened for reading only ---- */

static void attach_guarded(World *w)
{
    w->fake = fake_image_new(w->ceph, FALSE);
    w->fake->base.read_only = TRUE;
    w->fake->base.content.guarded = TRUE;
    w->image = image_cache_open(w->cache, &w->fake->base, 0);
}

START_TEST(a_reader_finds_what_one_before_has_read)
{
    World w;
    begin(&w);
    detach(&w);
    attach_guarded(&w);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), CHUNK);
    Image *first = w.image;
    attach_guarded(&w);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    detach(&w);
    w.image = first;
    detach(&w);
    attach_guarded(&w);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    detach(&w);
    /* And so does who writes it next. */
    attach(&w, FALSE);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(a_reader_finds_what_was_written_here)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    detach(&w);
    attach_guarded(&w);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(what_a_reader_reads_while_another_writes_is_not_kept)
{
    World w;
    Wait reading;
    char read[4096];
    begin(&w);
    detach(&w);
    attach_guarded(&w);
    const uint64_t version = w.ceph->version;
    wait_init(&reading);
    image_fake_hold(w.fake);
    w.image->ops->read(w.image, read, sizeof(read), 0, on_done, &reading);
    FakeCall *late = image_fake_take(w.fake, 0);
    w.ceph->version++;
    memset(w.ceph->content, 9, 4096);
    image_fake_answer(w.fake, late);
    ck_assert_int_eq(wait_for(&reading), sizeof(read));
    image_fake_let_go(w.fake);
    settle(&w);
    memset(w.ceph->content, 8, 4096);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    detach(&w);
    /* As if it had been found to be of that version. */
    w.ceph->version = version;
    attach_guarded(&w);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    end(&w);
}
END_TEST

START_TEST(a_reader_leaves_the_cache_when_another_has_written)
{
    World w;
    begin(&w);
    detach(&w);
    attach_guarded(&w);
    asked(&w, 0, CHUNK);
    w.ceph->version++;
    memset(w.ceph->content, 9, 4096);
    wake_round(&((Cached *)w.image)->watch.wake);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    /* Another reader of the new version does not share with one of the old. */
    Image *old = w.image;
    attach_guarded(&w);
    ck_assert_ptr_eq(w.image, &w.fake->base);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    detach(&w);
    w.image = old;
    detach(&w);
    attach_guarded(&w);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    end(&w);
}
END_TEST

HARNESS_MAIN("cache/block/clone", clones_share_what_they_have_from_their_parent,
             what_a_clone_writes_is_its_own, what_is_the_clones_own_is_not_read_as_the_parents,
             what_a_write_has_overtaken_is_not_kept_as_the_parents,
             nobody_waits_for_what_another_clone_reads, beyond_what_was_the_parents_nothing_is,
             evicting_a_clone_frees_its_parents_part, whatever_meets_each_clone_reads_its_own,
             a_reader_finds_what_one_before_has_read, a_reader_finds_what_was_written_here,
             what_a_reader_reads_while_another_writes_is_not_kept,
             a_reader_leaves_the_cache_when_another_has_written)
