/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "tests/unit/cache/block/world.h"

/* ---- reading ---- */

START_TEST(a_chunk_is_read_of_Ceph_once)
{
    World w;
    begin(&w);
    ck_assert_uint_eq(asked(&w, 3 * CHUNK + 4096, 4096), CHUNK);
    ck_assert_uint_eq(asked(&w, 3 * CHUNK, CHUNK), 0);
    ck_assert_uint_eq(asked(&w, 3 * CHUNK + 100, 1000), 0);
    ck_assert_uint_eq(asked(&w, 4 * CHUNK, 512), CHUNK);
    end(&w);
}
END_TEST

START_TEST(who_wants_what_is_being_read_waits_for_it)
{
    World w;
    char one[4096], two[4096];
    Wait a, b;
    begin(&w);
    wait_init(&a);
    wait_init(&b);
    image_fake_hold(w.fake);
    w.image->ops->read(w.image, one, sizeof(one), 0, on_done, &a);
    w.image->ops->read(w.image, two, sizeof(two), 8192, on_done, &b);
    image_fake_let_go(w.fake);
    ck_assert_int_eq(wait_for(&a), 4096);
    ck_assert_int_eq(wait_for(&b), 4096);
    ck_assert_mem_eq(two, w.ceph->content + 8192, 4096);
    ck_assert_uint_eq(atomic_load(&w.ceph->read_bytes), CHUNK);
    end(&w);
}
END_TEST

START_TEST(what_comes_faster_than_it_is_installed_waits_and_is_kept)
{
    enum { N = FAKE_BYTES / CHUNK };
    World w;
    Wait waits[N];
    begin(&w);
    w.cache->buffers_max = 4 * CHUNK;
    w.fake->late = TRUE;
    g_autofree char *buf = g_malloc(FAKE_BYTES);
    for (unsigned i = 0; i < N; i++) {
        /* Not in a row. */
        const uint64_t off = (uint64_t)(i * 37 % N) * CHUNK;
        wait_init(&waits[i]);
        w.image->ops->read(w.image, buf + off, CHUNK, off, on_done, &waits[i]);
    }
    for (unsigned i = 0; i < N; i++)
        ck_assert_int_eq(wait_for(&waits[i]), CHUNK);
    ck_assert_mem_eq(buf, w.ceph->content, FAKE_BYTES);
    ck_assert_uint_eq(asked(&w, 0, FAKE_BYTES), 0);
    ck_assert_uint_eq(atomic_load(&w.cache->buffers), 0);
    end(&w);
}
END_TEST

START_TEST(sequential_reading_is_read_ahead)
{
    World w;
    begin(&w);
    for (uint64_t off = 0; off < 2 * 1024 * KB; off += 128 * KB)
        ck_assert(right(&w, off, 128 * KB));
    ck_assert_uint_eq(asked(&w, 4 * 1024 * KB, 1024 * KB), 0);
    end(&w);
}
END_TEST

START_TEST(an_error_of_Ceph_is_the_readers_and_is_not_kept)
{
    World w;
    char buf[4096];
    begin(&w);
    w.fake->error = -EIO;
    ck_assert_int_eq(do_read(w.image, buf, sizeof(buf), 0), -EIO);
    w.fake->error = 0;
    ck_assert_uint_eq(asked(&w, 0, 4096), CHUNK);
    end(&w);
}
END_TEST

START_TEST(what_rots_on_the_disk_is_read_of_Ceph)
{
    World w;
    char id[BLOCK_FILE_ID_BYTES];
    begin(&w);
    asked(&w, 0, CHUNK);
    settle(&w);
    block_file_id("ceph/1/image@0", id);
    g_autofree char *path =
        g_build_filename(w.fixture.dir, FORMAT_IMAGES_NAME, id, FORMAT_DATA_NAME, NULL);
    hearth_autofd int fd = open(path, O_WRONLY);
    ck_assert_int_eq(pwrite(fd, "rotten", 6, 8192), 6);
    ck_assert_uint_eq(asked(&w, 4096, 4096), 0);
    ck_assert_uint_gt(asked(&w, 8192, 4096), 0);
    ck_assert_uint_eq(asked(&w, 8192, 4096), 0);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
    ck_assert(right(&w, 0, CHUNK));
    end(&w);
}
END_TEST

/* ---- writing ---- */

START_TEST(what_is_written_is_kept)
{
    World w;
    char buf[8192];
    begin(&w);
    memset(buf, 7, sizeof(buf));
    asked(&w, 0, CHUNK);
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 4096), sizeof(buf));
    ck_assert_mem_eq(w.ceph->content + 4096, buf, sizeof(buf));
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 10 * CHUNK), sizeof(buf));
    ck_assert_uint_eq(asked(&w, 10 * CHUNK, sizeof(buf)), 0);
    end(&w);
}
END_TEST

START_TEST(of_a_block_written_in_part_nothing_is_kept)
{
    World w;
    char buf[6000];
    begin(&w);
    memset(buf, 9, sizeof(buf));
    asked(&w, 0, CHUNK);
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 512), sizeof(buf));
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    ck_assert(right(&w, 0, CHUNK));
    end(&w);
}
END_TEST

START_TEST(what_is_zeroed_reads_as_zeros_without_Ceph)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    ck_assert_int_ge(do_zero(w.image, 2 * CHUNK, 4096), 0);
    ck_assert_uint_eq(asked(&w, 4096, 2 * CHUNK), 0);
    ck_assert_int_eq(w.ceph->content[4096 + CHUNK], 0);
    end(&w);
}
END_TEST

START_TEST(a_write_that_failed_leaves_nothing)
{
    World w;
    char buf[4096] = "x";
    begin(&w);
    asked(&w, 0, CHUNK);
    w.fake->error = -EIO;
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 0), -EIO);
    w.fake->error = 0;
    memcpy(w.ceph->content, buf, sizeof(buf)); /* half of it arrived after all */
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    end(&w);
}
END_TEST

START_TEST(a_fill_that_a_write_overtook_is_not_kept)
{
    World w;
    char old[4096], buf[4096];
    Wait fill;
    begin(&w);
    wait_init(&fill);
    memset(buf, 3, sizeof(buf));
    image_fake_hold(w.fake);
    w.image->ops->read(w.image, old, sizeof(old), 0, on_done, &fill);
    FakeCall *held = image_fake_take(w.fake, 0);
    g_autofree char *stale = g_memdup2(w.ceph->content, held->len);
    w.fake->hold = FALSE;
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 0), sizeof(buf));
    memcpy(held->to, stale, held->len);
    held->done(held->data, (ssize_t)held->len);
    g_free(held);
    wait_for(&fill);
    settle(&w);
    ck_assert(right(&w, 0, CHUNK));
    end(&w);
}
END_TEST

START_TEST(of_two_writes_at_once_nobody_knows_which_was_last)
{
    World w;
    char one[8192], two[8192];
    Wait a, b;
    begin(&w);
    asked(&w, 0, CHUNK);
    settle(&w);
    wait_init(&a);
    wait_init(&b);
    memset(one, 1, sizeof(one));
    memset(two, 2, sizeof(two));
    image_fake_hold(w.fake);
    w.image->ops->write(w.image, one, sizeof(one), 0, on_done, &a);
    w.image->ops->write(w.image, two, sizeof(two), 4096, on_done, &b);
    FakeCall *first = image_fake_take(w.fake, 0), *second = image_fake_take(w.fake, 0);
    w.fake->hold = FALSE;
    /* Ceph does the second first, and answers in the other order. */
    image_fake_apply(w.fake, second);
    image_fake_apply(w.fake, first);
    image_fake_answer(w.fake, first);
    image_fake_answer(w.fake, second);
    wait_for(&a);
    wait_for(&b);
    settle(&w);
    ck_assert(right(&w, 0, 4 * 4096));
    end(&w);
}
END_TEST

/* ---- from one opening to the next ---- */

START_TEST(given_back_in_order_it_is_warm_when_it_is_attached_again)
{
    World w;
    char buf[4096];
    begin(&w);
    asked(&w, 0, CHUNK);
    memset(buf, 5, sizeof(buf));
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 0), sizeof(buf));
    detach(&w);
    attach(&w, FALSE);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    /* Also by the next hearthd, after a reboot. */
    detach(&w);
    close_cache(&w);
    w.fixture.hooks.boot_id = "second";
    open_cache(&w);
    attach(&w, FALSE);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(what_another_has_written_meanwhile_is_read)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    detach(&w);
    w.ceph->version += 3;
    memset(w.ceph->content, 8, 4096);
    attach(&w, FALSE);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

/* As by a hearthd that is killed: its files stay as they are. */
static void killed(World *w)
{
    settle(w);
    atomic_store(&((Cached *)w->image)->watch.lost, TRUE);
    detach(w);
}

START_TEST(after_a_kill_it_is_warm_if_the_lock_was_the_dead_ones)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    killed(&w);
    attach(&w, TRUE);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    killed(&w);
    attach(&w, FALSE);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    /* Of a run between, of which the files know nothing. */
    killed(&w);
    w.fake = open_fake(&w, "third", "second");
    w.image = image_cache_open(w.cache, &w.fake->base, 0);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    killed(&w);
    close_cache(&w);
    w.fixture.hooks.boot_id = "second";
    open_cache(&w);
    w.fake = open_fake(&w, "fourth", "third");
    w.image = image_cache_open(w.cache, &w.fake->base, 0);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(opened_past_the_cache_meanwhile_it_is_not_believed)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    killed(&w);
    FakeImage *past = open_fake(&w, "run", "run");
    image_cache_forget(&past->base);
    memset(w.ceph->content, 8, 4096);
    image_close(&past->base);
    attach(&w, TRUE);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(a_version_that_is_not_known_is_not_believed)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    detach(&w);
    w.fake = fake_image_new(w.ceph, FALSE);
    w.fake->base.content.version = 0;
    w.image = image_cache_open(w.cache, &w.fake->base, 0);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(an_image_that_others_may_write_is_not_kept)
{
    World w;
    begin(&w);
    detach(&w);
    w.fake = fake_image_new(w.ceph, FALSE);
    g_clear_pointer(&w.fake->base.content.name, g_free);
    w.image = image_cache_open(w.cache, &w.fake->base, 0);
    ck_assert_ptr_eq(w.image, &w.fake->base);
    end(&w);
}
END_TEST

START_TEST(snapshots_are_kept_for_ever_and_shared)
{
    World w;
    ImageCacheStats stats;
    begin(&w);
    detach(&w);
    Image *one = image_cache_open(w.cache, &fake_image_new(w.ceph, TRUE)->base, 0);
    w.image = image_cache_open(w.cache, &fake_image_new(w.ceph, TRUE)->base, 0);
    char buf[4096];
    ck_assert_int_eq(do_read(one, buf, sizeof(buf), 0), sizeof(buf));
    image_close(one);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    detach(&w);
    close_cache(&w);
    w.fixture.hooks.boot_id = "second";
    open_cache(&w);
    w.ceph->version += 100;
    w.image = image_cache_open(w.cache, &fake_image_new(w.ceph, TRUE)->base, 0);
    ck_assert_uint_eq(asked(&w, 0, CHUNK), 0);
    ck_assert(image_cache_stats(w.image, &stats));
    ck_assert_uint_ge(stats.bytes_kept, CHUNK);
    end(&w);
}
END_TEST

START_TEST(what_is_beyond_the_end_goes)
{
    World w;
    uint64_t bytes;
    begin(&w);
    asked(&w, FAKE_BYTES - CHUNK, CHUNK);
    settle(&w);
    w.ceph->bytes = FAKE_BYTES / 2;
    ck_assert_int_eq(w.image->ops->size(w.image, &bytes), 0);
    w.ceph->bytes = FAKE_BYTES;
    ck_assert_int_eq(w.image->ops->size(w.image, &bytes), 0);
    memset(w.ceph->content + FAKE_BYTES - CHUNK, 0, CHUNK);
    ck_assert_uint_gt(asked(&w, FAKE_BYTES - CHUNK, CHUNK), 0);
    end(&w);
}
END_TEST

/* ---- room ---- */

START_TEST(it_keeps_within_its_quota)
{
    World w;
    ImageCacheStats stats;
    begin(&w);
    detach(&w);
    w.fake = fake_image_new(w.ceph, FALSE);
    w.image = image_cache_open(w.cache, &w.fake->base, 4 << 20);
    for (int round = 0; round < 3; round++) {
        for (uint64_t off = 0; off < FAKE_BYTES; off += CHUNK)
            ck_assert(right(&w, off, CHUNK));
        settle(&w);
        wake_round(&w.cache->keeper);
        ck_assert(image_cache_stats(w.image, &stats));
        ck_assert_uint_le(stats.bytes_kept, 4 << 20);
    }
    end(&w);
}
END_TEST

START_TEST(closed_images_go_before_open_ones)
{
    World w;
    ImageCacheStats stats;
    begin(&w);
    detach(&w);
    Image *snapshot = image_cache_open(w.cache, &fake_image_new(w.ceph, TRUE)->base, 0);
    w.image = snapshot;
    asked(&w, 0, CHUNK);
    detach(&w);
    attach(&w, FALSE);
    asked(&w, 0, CHUNK);
    settle(&w);
    ck_assert_uint_ge(image_cache_evict(w.cache, NULL, 4096), CHUNK);
    ck_assert(image_cache_stats(w.image, &stats));
    ck_assert_uint_ge(stats.bytes_kept, CHUNK);
    ck_assert_uint_ge(image_cache_evict(w.cache, NULL, UINT64_MAX), CHUNK);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

START_TEST(a_disk_in_bypass_is_not_asked)
{
    World w;
    begin(&w);
    asked(&w, 0, CHUNK);
    settle(&w);
    store_report_disk(w.fixture.store, EROFS);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    char buf[4096];
    memset(buf, 6, sizeof(buf));
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 0), sizeof(buf));
    disk_probed(&w.fixture.store->disk, 0);
    ck_assert(right(&w, 0, CHUNK));
    end(&w);
}
END_TEST

START_TEST(words_that_cannot_be_written_are_never_believed_again)
{
    World w;
    char buf[4096];
    begin(&w);
    asked(&w, 0, CHUNK);
    settle(&w);
    kept_break(((Cached *)w.image)->kept, -EIO);
    ck_assert_str_eq(w.ceph->note, "");
    memset(buf, 4, sizeof(buf));
    ck_assert_int_eq(do_write(w.image, buf, sizeof(buf), 0), sizeof(buf));
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    detach(&w);
    attach(&w, TRUE);
    ck_assert_uint_gt(asked(&w, 0, 4096), 0);
    end(&w);
}
END_TEST

START_TEST(what_another_has_taken_over_is_not_served)
{
    World w;
    char buf[4096];
    begin(&w);
    asked(&w, 0, CHUNK);
    w.fake->error = -ESHUTDOWN;
    wake_round(&((Cached *)w.image)->watch.wake);
    ck_assert_int_eq(do_read(w.image, buf, sizeof(buf), 0), -ESHUTDOWN);
    w.fake->error = 0;
    detach(&w);
    attach(&w, FALSE);
    ck_assert_uint_gt(asked(&w, 0, CHUNK), 0);
    end(&w);
}
END_TEST

/* ---- at random ---- */

static void evict_some(World *w)
{
    image_cache_evict(w->cache, "ceph/1/image@0", 1);
}

typedef struct Torture {
    World *w;
    unsigned seed;
    atomic_int *stop;
} Torture;

static void *torture(void *data)
{
    Torture *t = data;
    g_autoptr(GRand) rand = g_rand_new_with_seed(t->seed);
    g_autofree char *buf = g_malloc(256 * KB);
    while (!atomic_load(t->stop)) {
        /* A small part of the image, so that they meet. */
        uint64_t off = (uint64_t)g_rand_int_range(rand, 0, 512) * 512;
        size_t len = (size_t)g_rand_int_range(rand, 1, 64) * 512;
        if (g_rand_boolean(rand)) {
            off = block_floor(off);
            len = block_ceil(len);
        }
        switch (g_rand_int_range(rand, 0, 8)) {
        case 0:
            do_zero(t->w->image, len, off);
            break;
        case 1:
        case 2:
        case 3:
            memset(buf, g_rand_int_range(rand, 0, 256), len);
            do_write(t->w->image, buf, len, off);
            break;
        case 4:
            evict_some(t->w);
            break;
        default:
            do_read(t->w->image, buf, len, off);
        }
    }
    return NULL;
}

static void torture_for(World *w, unsigned seed, gulong us)
{
    pthread_t threads[6];
    Torture args[G_N_ELEMENTS(threads)];
    atomic_int stop = 0;
    w->fake->late = TRUE;
    for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++) {
        args[i] = (Torture){w, seed * 100 + i, &stop};
        ck_assert_int_eq(pthread_create(&threads[i], NULL, torture, &args[i]), 0);
    }
    g_usleep(us);
    atomic_store(&stop, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
    w->fake->late = FALSE;
}

START_TEST(whatever_meets_what_is_read_is_what_Ceph_has)
{
    World w;
    begin(&w);
    for (unsigned seed = 0; seed < 5; seed++) {
        torture_for(&w, seed, 100000);
        settle(&w);
        ck_assert(right(&w, 0, 1024 * KB));
    }
    end(&w);
}
END_TEST

START_TEST(killed_at_any_moment_it_keeps_nothing_but_what_Ceph_has)
{
    World w;
    uint64_t hit = 0;
    begin(&w);
    for (unsigned seed = 0; seed < 15; seed++) {
        detach(&w);
        close_cache(&w);
        pid_t child = fork();
        ck_assert_int_ge(child, 0);
        if (child == 0) {
            open_cache(&w);
            attach(&w, TRUE);
            torture_for(&w, seed, 10 * G_USEC_PER_SEC);
            _exit(0);
        }
        g_usleep(60000 + (gulong)g_random_int_range(0, 60000));
        kill(child, SIGKILL);
        int status;
        waitpid(child, &status, 0);
        ck_assert(WIFSIGNALED(status));
        open_cache(&w);
        attach(&w, TRUE);
        for (uint64_t off = 0; off < 512 * KB; off += 4096) {
            ImageCacheStats before, after;
            image_cache_stats(w.image, &before);
            ck_assert(right(&w, off, 4096));
            image_cache_stats(w.image, &after);
            hit += after.bytes_hit - before.bytes_hit;
        }
    }
    ck_assert_uint_gt(hit, 0);
    end(&w);
}
END_TEST

HARNESS_MAIN(
    "cache/block/cached", a_chunk_is_read_of_Ceph_once, who_wants_what_is_being_read_waits_for_it,
    what_comes_faster_than_it_is_installed_waits_and_is_kept, sequential_reading_is_read_ahead,
    an_error_of_Ceph_is_the_readers_and_is_not_kept, what_rots_on_the_disk_is_read_of_Ceph,
    what_is_written_is_kept, of_a_block_written_in_part_nothing_is_kept,
    what_is_zeroed_reads_as_zeros_without_Ceph, a_write_that_failed_leaves_nothing,
    a_fill_that_a_write_overtook_is_not_kept, of_two_writes_at_once_nobody_knows_which_was_last,
    given_back_in_order_it_is_warm_when_it_is_attached_again,
    what_another_has_written_meanwhile_is_read,
    after_a_kill_it_is_warm_if_the_lock_was_the_dead_ones,
    opened_past_the_cache_meanwhile_it_is_not_believed, a_version_that_is_not_known_is_not_believed,
    an_image_that_others_may_write_is_not_kept, snapshots_are_kept_for_ever_and_shared,
    what_is_beyond_the_end_goes, it_keeps_within_its_quota, closed_images_go_before_open_ones,
    a_disk_in_bypass_is_not_asked, words_that_cannot_be_written_are_never_believed_again,
    what_another_has_taken_over_is_not_served, whatever_meets_what_is_read_is_what_Ceph_has,
    killed_at_any_moment_it_keeps_nothing_but_what_Ceph_has)
