/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what is kept is shown while Ceph does not say that the image is still ours. */
#include "tests/unit/cache/block/world.h"

#define TOO_LONG_NS (11 * G_GINT64_CONSTANT(1000000000))

static Watch *watch_of(World *w)
{
    return &((Cached *)w->image)->watch;
}

static void set_silent(FakeImage *f, gboolean silent)
{
    pthread_mutex_lock(&f->lock);
    f->silent = silent;
    pthread_mutex_unlock(&f->lock);
}

static void set_deaf(FakeImage *f, gboolean deaf)
{
    pthread_mutex_lock(&f->lock);
    f->deaf = deaf;
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

/* As if the time had passed since the last good answer. */
static void let_time_pass(World *w)
{
    atomic_store(&watch_of(w)->good_ns, image_clock_ns() - TOO_LONG_NS);
}

/* The check that is not answered, once it is there; it is answered with the result. */
static void wait_for_check(FakeImage *f)
{
    pthread_mutex_lock(&f->lock);
    while (!f->check_done)
        pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

static void answer_check(FakeImage *f, int result)
{
    wait_for_check(f);
    pthread_mutex_lock(&f->lock);
    ImageDone done = g_steal_pointer(&f->check_done);
    pthread_mutex_unlock(&f->lock);
    done(f->check_data, result);
}

static void begin_silent(World *w)
{
    begin(w);
    asked(w, 0, CHUNK);
    ck_assert_uint_eq(asked(w, 0, CHUNK), 0);
    set_silent(w->fake, TRUE);
    wake_round(&watch_of(w)->wake);
}

static void end_silent(World *w)
{
    set_silent(w->fake, FALSE);
    pthread_mutex_lock(&w->fake->lock);
    const gboolean held = w->fake->check_done != NULL;
    pthread_mutex_unlock(&w->fake->lock);
    if (held)
        answer_check(w->fake, 0);
    end(w);
}

/* Bytes that reading the range asks of Ceph, while a check may be under way. */
static uint64_t fetched(World *w, uint64_t off, size_t len)
{
    uint64_t before = atomic_load(&w->ceph->read_bytes);
    ck_assert(right(w, off, len));
    return atomic_load(&w->ceph->read_bytes) - before;
}

START_TEST(without_an_answer_for_long_nothing_that_is_kept_is_shown)
{
    World w;
    begin_silent(&w);
    ck_assert_uint_eq(fetched(&w, 0, CHUNK), 0);
    let_time_pass(&w);
    ck_assert_uint_eq(fetched(&w, 0, CHUNK), CHUNK);
    memset(w.ceph->content, 8, CHUNK); /* another has taken it over */
    ck_assert(right(&w, 0, CHUNK));
    memset(w.ceph->content + 9, 9, CHUNK);
    ck_assert(right(&w, 100, 1000));
    end_silent(&w);
}
END_TEST

START_TEST(an_answer_counts_from_when_it_was_asked_for)
{
    World w;
    begin_silent(&w);
    wait_for_check(w.fake);
    let_time_pass(&w);
    pthread_mutex_lock(&((Cached *)w.image)->lock);
    watch_of(&w)->sent_ns -= TOO_LONG_NS;
    pthread_mutex_unlock(&((Cached *)w.image)->lock);
    answer_check(w.fake, 0);
    ck_assert_uint_eq(fetched(&w, 0, CHUNK), CHUNK);
    /* It is asked again at once, and that is answered in time. */
    answer_check(w.fake, 0);
    ck_assert_uint_eq(fetched(&w, 0, CHUNK), 0);
    end_silent(&w);
}
END_TEST

START_TEST(an_error_is_no_answer)
{
    World w;
    begin_silent(&w);
    let_time_pass(&w);
    answer_check(w.fake, -EIO);
    ck_assert_uint_eq(fetched(&w, 0, CHUNK), CHUNK);
    end_silent(&w);
}
END_TEST

START_TEST(one_image_does_not_delay_anothers_check)
{
    World w;
    begin(&w);
    FakeImage *other = open_fake(&w, "run", NULL);
    g_free(other->base.content.name);
    other->base.content.name = g_strdup("ceph/1/other@0");
    Image *hung = image_cache_open(w.cache, &other->base, 0);
    wake_round(&((Cached *)hung)->watch.wake);
    const int before = atomic_load(&other->checks);
    set_deaf(other, TRUE);
    wake_kick(&((Cached *)hung)->watch.wake);
    while (atomic_load(&other->checks) == before)
        g_usleep(1000);
    atomic_store(&w.fake->check_result, -ESHUTDOWN);
    wake_round(&watch_of(&w)->wake);
    ck_assert(atomic_load(&watch_of(&w)->lost));
    set_deaf(other, FALSE);
    image_close(hung);
    end(&w);
}
END_TEST

START_TEST(taken_again_it_shows_nothing_of_before)
{
    World w;
    begin(&w);
    asked(&w, 0, 4 * CHUNK);
    settle(&w);
    memset(w.ceph->content, 8, FAKE_BYTES); /* another had it in between */
    atomic_store(&w.fake->check_result, -EAGAIN);
    wake_round(&watch_of(&w)->wake);
    wake_round(&watch_of(&w)->wake);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), CHUNK);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    ck_assert(right(&w, 0, FAKE_BYTES));
    end(&w);
}
END_TEST

START_TEST(a_fill_from_before_it_was_taken_again_is_not_kept)
{
    World w;
    char buf[4096];
    Wait fill;
    begin(&w);
    wait_init(&fill);
    image_fake_hold(w.fake);
    w.image->ops->read(w.image, buf, sizeof(buf), 0, on_done, &fill);
    FakeCall *held = image_fake_take(w.fake, 0);
    w.fake->hold = FALSE;
    memcpy(held->to, w.ceph->content, held->len);
    memset(w.ceph->content, 8, FAKE_BYTES);
    atomic_store(&w.fake->check_result, -EAGAIN);
    wake_round(&watch_of(&w)->wake);
    wake_round(&watch_of(&w)->wake);
    held->done(held->data, (ssize_t)held->len);
    g_free(held);
    wait_for(&fill);
    settle(&w);
    ck_assert(right(&w, 0, CHUNK));
    end(&w);
}
END_TEST

START_TEST(of_a_snapshot_nothing_is_asked)
{
    World w;
    begin(&w);
    detach(&w);
    w.fake = fake_image_new(w.ceph, TRUE);
    w.image = image_cache_open(w.cache, &w.fake->base, 0);
    let_time_pass(&w);
    asked(&w, 0, CHUNK);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    ck_assert_int_eq(atomic_load(&w.fake->checks), 0);
    end(&w);
}
END_TEST

HARNESS_MAIN("cache/block/watch", without_an_answer_for_long_nothing_that_is_kept_is_shown,
             an_answer_counts_from_when_it_was_asked_for, an_error_is_no_answer,
             one_image_does_not_delay_anothers_check, taken_again_it_shows_nothing_of_before,
             a_fill_from_before_it_was_taken_again_is_not_kept, of_a_snapshot_nothing_is_asked)
