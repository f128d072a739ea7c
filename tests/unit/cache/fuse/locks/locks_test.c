/* SPDX-License-Identifier: Apache-2.0 */
/* Two nodes: two sessions, each on an origin of its own of one directory, whose kernels the test
 * plays. */
#include <fcntl.h>
#include <stdatomic.h>
#include "cache/fuse/live/session.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

typedef struct SideOfOne {
    Origin *origin;
    Session *session;
    Kernel kernel;
    uint32_t flags;
    uint64_t node, fh;
} Side;

typedef struct World {
    char *dir;
    Side a, b;
} World;

static OriginOps ops;
static _Atomic uint64_t session_number = 1;

static uint64_t number_of_session(Origin *o)
{
    (void)o;
    return atomic_load(&session_number);
}

static uint64_t open_again(Side *s)
{
    Reply *r = kernel_open(&s->kernel, s->node, O_RDWR);
    ck_assert_int_eq(r->error, 0);
    return r->open.fh;
}

static void side_up(Side *s, const char *dir, gboolean shared_locks)
{
    GError *error = NULL;
    s->origin = origin_dir_open(dir, &error);
    ck_assert_msg(s->origin != NULL, "%s", error ? error->message : "");
    ops = *s->origin->ops;
    ops.session = number_of_session;
    s->origin->ops = &ops;
    const SessionConfig config = {.volume = "v", .origin = s->origin, .shared_locks = shared_locks};
    s->session = session_start(&config, kernel_start(&s->kernel), NULL, NULL, &error);
    ck_assert_msg(s->session != NULL, "%s", error ? error->message : "");
    s->flags = kernel_init(&s->kernel);
    Reply *r = kernel_lookup(&s->kernel, 1, "f");
    ck_assert_int_eq(r->error, 0);
    s->node = r->entry.nodeid;
    s->fh = open_again(s);
}

static void world_up(World *w)
{
    *w = (World){.dir = harness_tmpdir()};
    g_autofree char *path = g_build_filename(w->dir, "f", NULL);
    ck_assert(g_file_set_contents(path, "text", -1, NULL));
    side_up(&w->a, w->dir, TRUE);
    side_up(&w->b, w->dir, TRUE);
}

static void side_down(Side *s)
{
    session_stop(s->session);
    origin_close(s->origin);
    close(s->kernel.fd);
}

static void world_down(World *w)
{
    side_down(&w->a);
    side_down(&w->b);
    harness_remove(w->dir);
}

typedef struct Ask {
    uint64_t fh; /* 0: the side's */
    uint64_t owner;
    uint32_t type;
    uint64_t start, end; /* end 0: to the end of all files */
    gboolean flock;
} Ask;

static struct fuse_lk_in lk_in(const Side *s, Ask ask)
{
    return (struct fuse_lk_in){
        .fh = ask.fh ? ask.fh : s->fh,
        .owner = ask.owner,
        .lk = {.start = ask.start,
               .end = ask.end ? ask.end : INT64_MAX,
               .type = ask.type,
               .pid = (uint32_t)(1000 + ask.owner)},
        .lk_flags = ask.flock ? FUSE_LK_FLOCK : 0,
    };
}

static int lock(Side *s, Ask ask)
{
    const struct fuse_lk_in in = lk_in(s, ask);
    return kernel_call(&s->kernel, FUSE_SETLK, s->node, &in, sizeof(in))->error;
}

static uint64_t begin(Side *s, Ask ask)
{
    const struct fuse_lk_in in = lk_in(s, ask);
    return kernel_send(&s->kernel, FUSE_SETLKW, s->node, &in, sizeof(in));
}

static int answer(Side *s, uint64_t unique)
{
    static Reply reply;
    while (!kernel_receive(&s->kernel, unique, &reply, 60000))
        ;
    return reply.error;
}

/* Two requests that are answered in either order. */
static void both_succeed(Side *s, uint64_t one, uint64_t two)
{
    for (unsigned answered = 0; answered < 2;) {
        char buf[4096];
        struct pollfd p = {.fd = s->kernel.fd, .events = POLLIN};
        ck_assert_msg(poll(&p, 1, 60000) == 1, "the session did not answer");
        ck_assert_int_gt(read(s->kernel.fd, buf, sizeof(buf)), 0);
        const struct fuse_out_header *out = (void *)buf;
        if (out->unique != one && out->unique != two)
            continue;
        ck_assert_int_eq(out->error, 0);
        answered++;
    }
}

static int flush(Side *s, uint64_t fh, uint64_t owner)
{
    const struct fuse_flush_in in = {.fh = fh, .lock_owner = owner};
    return kernel_call(&s->kernel, FUSE_FLUSH, s->node, &in, sizeof(in))->error;
}

static int read_error(Side *s)
{
    return kernel_read(&s->kernel, s->node, s->fh, 0, 4)->error;
}

static int write_error(Side *s)
{
    struct {
        struct fuse_write_in in;
        char text[4];
    } body = {.in = {.fh = s->fh, .size = 4}, .text = "more"};
    return kernel_call(&s->kernel, FUSE_WRITE, s->node, &body, sizeof(body.in) + 4)->error;
}

static const Ask all_of_1 = {.owner = 1, .type = F_WRLCK};
static const Ask flock_of_1 = {.owner = 1, .type = F_WRLCK, .flock = TRUE};

START_TEST(the_kernel_keeps_the_locks_of_other_volumes)
{
    World w;
    world_up(&w);
    const uint32_t both = FUSE_POSIX_LOCKS | FUSE_FLOCK_LOCKS;
    ck_assert_uint_eq(w.a.flags & both, both);
    side_down(&w.b);
    side_up(&w.b, w.dir, FALSE);
    ck_assert_uint_eq(w.b.flags & both, 0);
    world_down(&w);
}
END_TEST

START_TEST(a_lock_excludes_the_other_node)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_WRLCK, .start = 10, .end = 19}), 0);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 2, .type = F_RDLCK, .start = 19, .end = 30}),
                     -EAGAIN);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 2, .type = F_WRLCK, .start = 20}), 0);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 3, .type = F_WRLCK, .flock = TRUE}), 0);
    ck_assert_int_eq(lock(&w.a, flock_of_1), -EAGAIN);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_UNLCK}), 0);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 4, .type = F_WRLCK, .start = 1, .end = 19}), 0);
    world_down(&w);
}
END_TEST

START_TEST(a_waiter_gets_what_is_closed_elsewhere_and_here)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, all_of_1), 0);
    uint64_t waits = begin(&w.b, (Ask){.owner = 2, .type = F_WRLCK});
    ck_assert_int_eq(flush(&w.a, w.a.fh, 7), 0); /* another process' close */
    ck_assert_int_eq(flush(&w.a, w.a.fh, 1), 0);
    ck_assert_int_eq(answer(&w.b, waits), 0);
    waits = begin(&w.b, (Ask){.owner = 3, .type = F_WRLCK});
    const struct fuse_flush_in in = {.fh = w.b.fh, .lock_owner = 2};
    const uint64_t closes = kernel_send(&w.b.kernel, FUSE_FLUSH, w.b.node, &in, sizeof(in));
    both_succeed(&w.b, waits, closes);
    world_down(&w);
}
END_TEST

START_TEST(an_flock_goes_with_its_handle)
{
    World w;
    world_up(&w);
    const uint64_t fh = open_again(&w.a);
    ck_assert_int_eq(lock(&w.a, (Ask){.fh = fh, .owner = 5, .type = F_WRLCK, .flock = TRUE}), 0);
    ck_assert_int_eq(flush(&w.a, fh, 1), 0);
    ck_assert_int_eq(lock(&w.b, flock_of_1), -EAGAIN);
    kernel_release(&w.a.kernel, w.a.node, fh);
    const uint64_t waits = begin(&w.b, flock_of_1);
    ck_assert_int_eq(answer(&w.b, waits), 0);
    world_down(&w);
}
END_TEST

START_TEST(one_that_is_not_to_wait_waits_for_a_handle_that_is_being_closed)
{
    World w;
    world_up(&w);
    const uint64_t fh = open_again(&w.a);
    ck_assert_int_eq(lock(&w.a, (Ask){.fh = fh, .owner = 5, .type = F_WRLCK, .flock = TRUE}), 0);
    ck_assert_int_eq(lock(&w.a, flock_of_1), -EAGAIN);
    ck_assert_int_eq(flush(&w.a, fh, 1), 0);
    const struct fuse_lk_in in = lk_in(&w.a, flock_of_1);
    const uint64_t asks = kernel_send(&w.a.kernel, FUSE_SETLK, w.a.node, &in, sizeof(in));
    const struct fuse_release_in release = {.fh = fh};
    const uint64_t closes =
        kernel_send(&w.a.kernel, FUSE_RELEASE, w.a.node, &release, sizeof(release));
    both_succeed(&w.a, asks, closes);
    world_down(&w);
}
END_TEST

START_TEST(a_signal_ends_a_wait)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, all_of_1), 0);
    const uint64_t waits = begin(&w.b, (Ask){.owner = 2, .type = F_WRLCK});
    const struct fuse_interrupt_in in = {.unique = waits};
    kernel_send(&w.b.kernel, FUSE_INTERRUPT, 0, &in, sizeof(in));
    ck_assert_int_eq(answer(&w.b, waits), -EINTR);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_UNLCK}), 0);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 3, .type = F_WRLCK}), 0);
    world_down(&w);
}
END_TEST

START_TEST(many_that_wait_hold_up_nothing)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, all_of_1), 0);
    for (unsigned i = 0; i < 300; i++)
        begin(&w.b, (Ask){.owner = 10 + i, .type = F_WRLCK});
    ck_assert_int_eq(read_error(&w.b), 0);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 2, .type = F_WRLCK, .flock = TRUE}), 0);
    world_down(&w); /* answers them */
}
END_TEST

START_TEST(two_readers_can_become_writers)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_RDLCK, .flock = TRUE}), 0);
    ck_assert_int_eq(lock(&w.b, (Ask){.owner = 2, .type = F_RDLCK, .flock = TRUE}), 0);
    const uint64_t one = begin(&w.a, flock_of_1);
    const uint64_t two = begin(&w.b, (Ask){.owner = 2, .type = F_WRLCK, .flock = TRUE});
    struct pollfd first[] = {{w.a.kernel.fd, POLLIN, 0}, {w.b.kernel.fd, POLLIN, 0}};
    ck_assert_int_gt(poll(first, 2, 60000), 0);
    Side *s = first[0].revents ? &w.a : &w.b, *other = first[0].revents ? &w.b : &w.a;
    ck_assert_int_eq(answer(s, first[0].revents ? one : two), 0);
    ck_assert_int_eq(
        lock(s, (Ask){.owner = first[0].revents ? 1 : 2, .type = F_UNLCK, .flock = TRUE}), 0);
    ck_assert_int_eq(answer(other, first[0].revents ? two : one), 0);
    world_down(&w);
}
END_TEST

START_TEST(a_holder_elsewhere_has_no_pid)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_WRLCK, .start = 3, .end = 5}), 0);
    const struct fuse_lk_in in = lk_in(&w.b, (Ask){.owner = 2, .type = F_RDLCK});
    Reply *r = kernel_call(&w.b.kernel, FUSE_GETLK, w.b.node, &in, sizeof(in));
    const struct fuse_lk_out *out = (void *)r->data;
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(out->lk.type, F_WRLCK);
    ck_assert_uint_eq(out->lk.start, 3);
    ck_assert_uint_eq(out->lk.end, 5);
    ck_assert_uint_eq(out->lk.pid, 0);
    world_down(&w);
}
END_TEST

START_TEST(a_lock_drops_what_the_kernel_has_of_the_file)
{
    World w;
    world_up(&w);
    const unsigned before = w.b.kernel.pages_dropped;
    ck_assert_int_eq(lock(&w.b, all_of_1), 0);
    ck_assert_uint_gt(w.b.kernel.pages_dropped, before);
    world_down(&w);
}
END_TEST

START_TEST(a_file_whose_locks_are_lost_fails_until_they_are_given_up)
{
    World w;
    world_up(&w);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_WRLCK, .start = 0, .end = 9}), 0);
    ck_assert_int_eq(read_error(&w.a), 0);
    atomic_fetch_add(&session_number, 1);
    ck_assert_int_eq(read_error(&w.a), -EIO);
    ck_assert_int_eq(write_error(&w.a), -EIO);
    ck_assert_int_eq(read_error(&w.b), 0); /* had none */
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_WRLCK, .start = 20, .end = 29}), -EIO);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 2, .type = F_WRLCK, .start = 20, .end = 29}),
                     -EAGAIN);
    ck_assert_int_eq(lock(&w.a, (Ask){.owner = 1, .type = F_UNLCK, .start = 0, .end = 4}), 0);
    ck_assert_int_eq(read_error(&w.a), -EIO);
    const uint64_t waits = begin(&w.a, (Ask){.owner = 2, .type = F_WRLCK});
    const struct fuse_flush_in in = {.fh = w.a.fh, .lock_owner = 1};
    const uint64_t closes = kernel_send(&w.a.kernel, FUSE_FLUSH, w.a.node, &in, sizeof(in));
    both_succeed(&w.a, waits, closes);
    ck_assert_int_eq(read_error(&w.a), 0);
    ck_assert_int_eq(write_error(&w.a), 0);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/locks/locks", the_kernel_keeps_the_locks_of_other_volumes,
             a_lock_excludes_the_other_node, a_waiter_gets_what_is_closed_elsewhere_and_here,
             an_flock_goes_with_its_handle,
             one_that_is_not_to_wait_waits_for_a_handle_that_is_being_closed, a_signal_ends_a_wait,
             many_that_wait_hold_up_nothing, two_readers_can_become_writers,
             a_holder_elsewhere_has_no_pid, a_lock_drops_what_the_kernel_has_of_the_file,
             a_file_whose_locks_are_lost_fails_until_they_are_given_up)
