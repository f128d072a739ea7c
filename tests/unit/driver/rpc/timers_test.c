/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rpc/timers.h"

#include "tests/unit/harness.h"

#define N 500

typedef struct Alarm {
    RpcTimer timer; /* first */
    gint64 expected_us;
} Alarm;

static gint64 last_us;
static guint fired;

static void fire(RpcTimer *timer)
{
    ck_assert_uint_eq(timer->slot, 0);
    ck_assert_int_eq(timer->at_us, ((Alarm *)timer)->expected_us);
    ck_assert_int_ge(timer->at_us, last_us);
    last_us = timer->at_us;
    fired++;
}

START_TEST(timers_fire_in_order_after_any_changes)
{
    RpcTimers timers = {0};
    Alarm alarms[N] = {0};
    g_autoptr(GRand) rand = g_rand_new_with_seed(1);
    for (int i = 0; i < N * 10; i++) {
        Alarm *alarm = &alarms[g_rand_int_range(rand, 0, N)];
        alarm->timer.fire = fire;
        if (g_rand_int_range(rand, 0, 4) == 0) {
            rpc_timer_clear(&timers, &alarm->timer);
        } else {
            alarm->expected_us = g_rand_int_range(rand, 0, 1000);
            rpc_timer_set(&timers, &alarm->timer, alarm->expected_us);
        }
    }
    guint armed = 0, due = 0;
    for (int i = 0; i < N; i++) {
        armed += alarms[i].timer.slot != 0;
        due += alarms[i].timer.slot != 0 && alarms[i].expected_us <= 500;
    }
    rpc_timers_run(&timers, 500);
    ck_assert_uint_eq(fired, due);
    ck_assert_int_gt(rpc_timers_next(&timers), 500);
    rpc_timers_run(&timers, 1000);
    ck_assert_uint_eq(fired, armed);
    ck_assert_int_eq(rpc_timers_next(&timers), G_MAXINT64);
    rpc_timers_free(&timers);
}
END_TEST

START_TEST(never_is_not_armed)
{
    RpcTimers timers = {0};
    RpcTimer timer = {.fire = fire};
    rpc_timer_set(&timers, &timer, 5);
    rpc_timer_set(&timers, &timer, G_MAXINT64);
    ck_assert_int_eq(rpc_timers_next(&timers), G_MAXINT64);
    rpc_timer_clear(&timers, &timer);
    rpc_timers_free(&timers);
}
END_TEST

HARNESS_MAIN("driver/rpc/timers", timers_fire_in_order_after_any_changes, never_is_not_armed)
