/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that wait: what they cost, and how they end. */
#include "cache/fuse/layer/killed.h"
#include "tests/unit/cache/fuse/layer/layer_world.h"

#define MANY 300
/* No bound of these tests is longer; what does not end in it waits. */
#define WAITS_MS 700

/* In place of killed.c. */
static atomic_int killed;
static const uint32_t reader = 4321;

gboolean thread_is_killed(pid_t thread)
{
    return atomic_load(&killed) == thread;
}

/* Asks without waiting for the answer. */
static uint64_t send_read(World *w, uint64_t node, uint64_t off)
{
    const struct fuse_read_in in = {.size = 100, .offset = off};
    return kernel_send(&w->kernel, FUSE_READ, node, &in, sizeof(in));
}

/* The next answer, to any request; its unique number. 0: there is none in that time. */
static uint64_t answer_within(World *w, Reply *reply, int ms)
{
    static char buf[1 << 18];
    struct pollfd p = {.fd = w->kernel.fd, .events = POLLIN};
    if (poll(&p, 1, ms) != 1)
        return 0;
    const ssize_t n = read(w->kernel.fd, buf, sizeof(buf));
    const struct fuse_out_header *out = (void *)buf;
    ck_assert_int_ge(n, (ssize_t)sizeof(*out));
    reply->error = out->error;
    reply->len = (size_t)n - sizeof(*out);
    memcpy(reply->data, buf + sizeof(*out), MIN(reply->len, sizeof(reply->data)));
    return out->unique;
}

static Reply reply;

static void assert_waits(World *w)
{
    ck_assert_uint_eq(answer_within(w, &reply, WAITS_MS), 0);
}

static void assert_answers(World *w, int error)
{
    ck_assert_uint_ne(answer_within(w, &reply, 20000), 0);
    ck_assert_int_eq(reply.error, error);
}

static void await_threads_at_most(unsigned most)
{
    const int64_t until = monotonic_ms() + 30000;
    while (harness_threads() > most && monotonic_ms() < until)
        g_usleep(10000);
    ck_assert_uint_le(harness_threads(), most);
}

/* Fetches the file of record 0, which lookup_object() finds. */
static void cache(World *w, uint64_t node)
{
    ObjectKey key;
    ck_assert_int_eq(kernel_read(&w->kernel, node, 0, 0, 100)->error, 0);
    ck_assert(manifest_key(w->manifest, 0, &key));
    g_autofree char *path = manifest_path(w->manifest, 0);
    StoreFill *fill = store_fill_path(w->store, w->origin, path, &key, "d");
    ck_assert_int_eq(store_fill_wait(fill), 0);
    store_fill_unref(fill);
}

START_TEST(any_number_of_reads_waits_and_costs_no_thread)
{
    World w;
    world_up_with(&w, "cold", 64 << 20, 20000, 0);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    send_read(&w, node, 0);
    assert_waits(&w); /* what has to be started for it is */
    const unsigned before = harness_threads();
    for (int i = 0; i < MANY; i++)
        send_read(&w, node, 1);
    ck_assert_uint_ne(kernel_lookup(&w.kernel, 1, "00")->entry.nodeid, 0);
    assert_waits(&w);
    /* One waits for the time; a slow machine has a few more readers. */
    ck_assert_uint_lt(harness_threads(), before + 20);
    set_gate(FALSE);
    for (int i = 0; i <= MANY; i++) {
        assert_answers(&w, 0);
        ck_assert_uint_ge(reply.len, 3);
        ck_assert_mem_eq(reply.data + reply.len - 3, "old", 3);
    }
    world_down(&w);
}
END_TEST

/* Bytes that are there, names and attributes, while other reads of the layer wait. */
START_TEST(what_is_cached_is_read_while_others_wait)
{
    World w;
    second_text = "another";
    world_up_with(&w, "one", 64 << 20, 20000, 0);
    uint64_t node = lookup_object(&w), cold = node + 1;
    cache(&w, node);
    set_gate(TRUE);
    for (int i = 0; i < MANY; i++)
        send_read(&w, cold, 0);
    assert_waits(&w);
    const int64_t start = monotonic_ms();
    for (int i = 0; i < 100; i++) {
        const struct fuse_getattr_in in = {0};
        ck_assert_int_eq(kernel_read(&w.kernel, node, 0, 0, 100)->error, 0);
        ck_assert_int_eq(kernel_call(&w.kernel, FUSE_GETATTR, node, &in, sizeof(in))->error, 0);
        lookup_object(&w);
    }
    ck_assert_int_lt(monotonic_ms() - start, 10 * 300); /* 10 ms for each */
    world_down(&w);
}
END_TEST

START_TEST(a_read_waits_while_ceph_is_heard_from)
{
    World w;
    world_up_with(&w, "late", 64 << 20, 50, 0);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    send_read(&w, node, 0);
    assert_waits(&w);
    set_gate(FALSE);
    assert_answers(&w, 0);
    ck_assert_mem_eq(reply.data, "late", 4);
    world_down(&w);
}
END_TEST

START_TEST(reads_fail_while_ceph_is_silent_and_wait_when_it_is_heard_again)
{
    World w;
    world_up_with(&w, "late", 64 << 20, 300, 0);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    send_read(&w, node, 0);
    assert_waits(&w);
    set_silent(TRUE);
    const int64_t silent = monotonic_ms();
    assert_answers(&w, -EIO);
    ck_assert_int_ge(monotonic_ms() - silent, 299);
    send_read(&w, node, 0);
    assert_answers(&w, -EIO);
    set_silent(FALSE);
    send_read(&w, node, 0);
    assert_waits(&w);
    set_gate(FALSE);
    assert_answers(&w, 0);
    world_down(&w);
}
END_TEST

START_TEST(a_read_with_a_time_fails_although_ceph_is_heard_from)
{
    World w;
    world_up_with(&w, "late", 64 << 20, 20000, 300);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    const int64_t start = monotonic_ms();
    send_read(&w, node, 0);
    assert_answers(&w, -EIO);
    ck_assert_int_ge(monotonic_ms() - start, 300);
    set_gate(FALSE);
    while (kernel_read(&w.kernel, node, 0, 0, 100)->error == -EIO)
        ;
    world_down(&w);
}
END_TEST

/* libfuse keeps an interrupt whose request was answered, until a request comes or for ever. */
static const char *kept = "";
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return kept;
}

static void interrupt(World *w, uint64_t unique)
{
    const struct fuse_interrupt_in in = {.unique = unique};
    kept = "leak:libfuse3";
    kernel_send(&w->kernel, FUSE_INTERRUPT, 0, &in, sizeof(in));
}

static void killed_readers(uint64_t max_bytes)
{
    World w;
    world_up_with(&w, "cold", max_bytes, 20000, 0);
    uint64_t node = lookup_object(&w);
    w.kernel.pid = reader;
    set_gate(TRUE);
    const uint64_t first = send_read(&w, node, 0);
    atomic_store(&killed, reader);
    interrupt(&w, first);
    ck_assert_uint_eq(answer_within(&w, &reply, 20000), first);
    ck_assert_int_eq(reply.error, -EINTR);
    /* A signal that does not kill, and then one that does, of which the kernel does not tell. */
    atomic_store(&killed, 0);
    const uint64_t second = send_read(&w, node, 0);
    interrupt(&w, second);
    assert_waits(&w);
    atomic_store(&killed, reader);
    ck_assert_uint_eq(answer_within(&w, &reply, 20000), second);
    ck_assert_int_eq(reply.error, -EINTR);
    /* And one whose bytes come. */
    atomic_store(&killed, 0);
    interrupt(&w, send_read(&w, node, 0));
    set_gate(FALSE);
    assert_answers(&w, 0);
    ck_assert_mem_eq(reply.data, "cold", 4);
    world_down(&w);
}

START_TEST(a_reader_that_is_killed_is_answered_and_no_other)
{
    killed_readers(64 << 20);
    killed_readers(4096); /* past the store */
}
END_TEST

/* Between two steps of the read, too, when it waits for nothing. */
START_TEST(a_reader_is_killed_at_any_moment)
{
    World w;
    world_up_with(&w, "past", 4096, 20000, 0);
    uint64_t node = lookup_object(&w);
    w.kernel.pid = reader;
    atomic_store(&killed, reader);
    for (int i = 0; i < 5000; i++) {
        const uint64_t one = send_read(&w, node, 0);
        interrupt(&w, one);
        while (answer_within(&w, &reply, 20000) != one)
            ;
    }
    atomic_store(&killed, 0);
    world_down(&w);
}
END_TEST

START_TEST(stopping_answers_what_waits)
{
    World w;
    world_up_with(&w, "cold", 64 << 20, 20000, 0);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    for (int i = 0; i < 10; i++)
        send_read(&w, node, 0);
    assert_waits(&w);
    const int fd = dup(fill_layer_fd(w.layer)); /* the keeper's */
    fill_layer_stop(w.layer);
    w.layer = NULL;
    for (int i = 0; i < 10; i++)
        assert_answers(&w, -EIO);
    close(fd);
    world_down(&w);
}
END_TEST

/* A store of 4 KiB takes nothing. */
START_TEST(reads_past_the_store_have_few_threads_and_hold_up_nothing)
{
    World w;
    world_up_with(&w, "past", 4096, 20000, 0);
    uint64_t node = lookup_object(&w);
    const unsigned before = harness_threads();
    set_gate(TRUE);
    for (int i = 0; i < MANY; i++)
        send_read(&w, node, 1);
    ck_assert_uint_ne(kernel_lookup(&w.kernel, 1, "00")->entry.nodeid, 0);
    assert_waits(&w);
    const int64_t until = monotonic_ms() + 20000;
    while (reads_at_gate() < 64 && monotonic_ms() < until)
        g_usleep(1000);
    assert_waits(&w);
    ck_assert_uint_eq(reads_at_gate(), 64);
    set_gate(FALSE);
    for (int i = 0; i < MANY; i++) {
        assert_answers(&w, 0);
        ck_assert_mem_eq(reply.data, "ast", 3);
    }
    await_threads_at_most(before + 32); /* readers of a slow machine, and not these */
    world_down(&w);
}
END_TEST

START_TEST(a_silent_ceph_ends_reads_past_the_store_too)
{
    World w;
    world_up_with(&w, "past", 4096, 100, 0);
    uint64_t node = lookup_object(&w);
    set_gate(TRUE);
    for (int i = 0; i < 100; i++)
        send_read(&w, node, 1);
    assert_waits(&w);
    set_silent(TRUE);
    for (int i = 0; i < 100; i++)
        assert_answers(&w, -EIO);
    set_silent(FALSE);
    set_gate(FALSE);
    send_read(&w, node, 0);
    assert_answers(&w, 0);
    world_down(&w);
}
END_TEST

START_TEST(an_idle_layer_has_no_thread)
{
    World w;
    world_up_with(&w, "bytes", 64 << 20, 20000, 0);
    const unsigned before = harness_threads();
    FillLayerConfig config = {
        .dataset = "d", .origin = w.origin, .store = w.store, .manifest = w.manifest};
    Kernel kernel;
    FillLayer *layer = fill_layer_start(&config, kernel_start(&kernel), NULL, NULL, NULL);
    kernel_init(&kernel);
    ck_assert_uint_le(harness_threads(), before);
    fill_layer_stop(layer);
    close(kernel.fd);
    world_down(&w);
}
END_TEST

HARNESS_MAIN("cache/fuse/layer/reads", any_number_of_reads_waits_and_costs_no_thread,
             what_is_cached_is_read_while_others_wait, a_read_waits_while_ceph_is_heard_from,
             reads_fail_while_ceph_is_silent_and_wait_when_it_is_heard_again,
             a_read_with_a_time_fails_although_ceph_is_heard_from,
             a_reader_that_is_killed_is_answered_and_no_other, a_reader_is_killed_at_any_moment,
             stopping_answers_what_waits, reads_past_the_store_have_few_threads_and_hold_up_nothing,
             a_silent_ceph_ends_reads_past_the_store_too, an_idle_layer_has_no_thread)
