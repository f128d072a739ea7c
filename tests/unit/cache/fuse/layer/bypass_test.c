/* SPDX-License-Identifier: Apache-2.0 */
/* Reads that bypass the store: what their buffers take. */
#include "cache/fuse/layer/bypass.h"
#include "cache/fuse/layer/bypass_budget.h"
#include "tests/unit/cache/fuse/layer/layer_world.h"

#define LEN ((size_t)1 << 20)
#define READS 40
/* Of LEN: what one origin, and the next one, may have. */
#define HALF (BYPASS_BUDGET_BYTES / LEN / 2)
#define QUARTER (HALF / 2)

static atomic_uint ended, read_well;

static void count_end(Task *task)
{
    BypassRead *read = (BypassRead *)task;
    if (read->result == (ssize_t)LEN && read->buf[0] == 'x' && read->buf[LEN - 1] == 'x')
        atomic_fetch_add(&read_well, 1);
    g_free(read->buf);
    atomic_fetch_add(&ended, 1);
}

static void await_ended(unsigned n)
{
    const int64_t until = monotonic_ms() + 20000;
    while (atomic_load(&ended) < n && monotonic_ms() < until)
        g_usleep(1000);
    ck_assert_uint_eq(atomic_load(&ended), n);
}

/* So many reads of Ceph run, and no more come. */
static void await_at_gate(unsigned n)
{
    const int64_t until = monotonic_ms() + 20000;
    while (reads_at_gate() < n && monotonic_ms() < until)
        g_usleep(1000);
    g_usleep(100000);
    ck_assert_uint_eq(reads_at_gate(), n);
}

static void begin_all(World *w, Bypass *b, BypassRead *reads)
{
    ObjectKey key;
    ck_assert(manifest_key(w->manifest, 0, &key));
    const BypassRange range = {.path = "f", .key = &key, .len = LEN};
    for (unsigned i = 0; i < READS; i++) {
        reads[i].task.run = count_end;
        bypass_begin(b, &reads[i], &range);
    }
}

static void up(World *w)
{
    g_autofree char *text = g_malloc(LEN + 1);
    memset(text, 'x', LEN);
    text[LEN] = '\0';
    world_up(w, text);
}

START_TEST(buffers_are_bounded_and_all_reads_end)
{
    World w;
    BypassRead one[READS] = {0}, other[READS] = {0};
    up(&w);
    Bypass *a = bypass_new(w.origin), *b = bypass_new(w.origin);
    set_gate(TRUE);
    begin_all(&w, a, one);
    await_at_gate(HALF);
    begin_all(&w, b, other);
    await_at_gate(HALF + QUARTER);
    ck_assert_uint_eq(bypass_budget_used(), (HALF + QUARTER) * LEN);
    set_gate(FALSE);
    await_ended(2 * READS);
    ck_assert_uint_eq(atomic_load(&read_well), 2 * READS);
    bypass_free(a);
    bypass_free(b);
    ck_assert_uint_eq(bypass_budget_used(), 0);
    world_down(&w);
}
END_TEST

START_TEST(reads_that_wait_for_room_end_when_they_are_withdrawn)
{
    World w;
    BypassRead reads[READS] = {0};
    up(&w);
    Bypass *b = bypass_new(w.origin);
    set_gate(TRUE);
    begin_all(&w, b, reads);
    await_at_gate(HALF);
    for (unsigned i = 0; i < READS; i++)
        bypass_withdraw(b, &reads[i], -ETIMEDOUT);
    await_ended(READS);
    ck_assert_uint_eq(atomic_load(&read_well), 0);
    /* Only those that Ceph was asked for are left. */
    ck_assert_uint_eq(reads_at_gate(), HALF);
    set_gate(FALSE);
    bypass_free(b);
    ck_assert_uint_eq(bypass_budget_used(), 0);
    world_down(&w);
}
END_TEST

START_TEST(the_first_read_of_an_origin_waits_for_no_other)
{
    const atomic_bool unwanted = FALSE, given_up = TRUE;
    BypassShare shares[8] = {{0}};
    for (unsigned i = 0; i < G_N_ELEMENTS(shares); i++)
        ck_assert(bypass_budget_take(&shares[i], BYPASS_BUDGET_BYTES / 4, &unwanted));
    ck_assert(!bypass_budget_take(&shares[0], 1, &given_up));
    for (unsigned i = 0; i < G_N_ELEMENTS(shares); i++)
        bypass_budget_give(&shares[i], BYPASS_BUDGET_BYTES / 4);
    ck_assert_uint_eq(bypass_budget_used(), 0);
}
END_TEST

HARNESS_MAIN("cache/fuse/layer/bypass", buffers_are_bounded_and_all_reads_end,
             reads_that_wait_for_room_end_when_they_are_withdrawn,
             the_first_read_of_an_origin_waits_for_no_other)
