/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/places.h"
#include <pthread.h>
#include "tests/unit/harness.h"

/* One that waits for a place, and tells when it has it. */
typedef struct Order {
    WarmupPlaces *places;
    const char *namespace;
    GCancellable *cancel;
    gint has; /* atomic: 0 not yet, 1 a place, -1 cancelled */
    pthread_t thread;
} Order;

static void *wait_for_place(void *data)
{
    Order *o = data;
    const gboolean has = warmup_places_take(o->places, o->namespace, o->cancel);
    g_atomic_int_set(&o->has, has ? 1 : -1);
    return NULL;
}

static void begin(Order *o, WarmupPlaces *places, const char *namespace)
{
    *o = (Order){.places = places, .namespace = namespace, .cancel = g_cancellable_new()};
    ck_assert_int_eq(pthread_create(&o->thread, NULL, wait_for_place, o), 0);
}

/* That it waits shows in that a namespace with more places is to give one up. */
static void await_waiting(WarmupPlaces *places)
{
    while (!warmup_places_over(places, "many", 0))
        g_usleep(1000);
}

static int end(Order *o)
{
    pthread_join(o->thread, NULL);
    g_object_unref(o->cancel);
    return o->has;
}

static void take(WarmupPlaces *places, const char *namespace, guint n)
{
    while (n--)
        ck_assert(warmup_places_take(places, namespace, NULL));
}

static void leave(WarmupPlaces *places, const char *namespace, guint n)
{
    while (n--)
        warmup_places_leave(places, namespace);
}

START_TEST(a_free_place_goes_to_the_namespace_that_has_fewest)
{
    WarmupPlaces *places = warmup_places_new(2, 0);
    Order more, fewer;
    take(places, "many", 2);
    begin(&more, places, "many");
    begin(&fewer, places, "few");
    await_waiting(places);
    warmup_places_leave(places, "many");
    ck_assert_int_eq(end(&fewer), 1);
    ck_assert_int_eq(g_atomic_int_get(&more.has), 0);
    warmup_places_leave(places, "few");
    ck_assert_int_eq(end(&more), 1);
    leave(places, "many", 2);
    warmup_places_free(places);
}
END_TEST

START_TEST(among_equals_it_goes_to_the_one_that_had_one_longest_ago)
{
    WarmupPlaces *places = warmup_places_new(3, 0);
    Order recent, long_ago;
    take(places, "long-ago", 1);
    take(places, "recent", 1);
    leave(places, "long-ago", 1);
    leave(places, "recent", 1);
    take(places, "many", 3);
    begin(&recent, places, "recent");
    await_waiting(places);
    begin(&long_ago, places, "long-ago");
    /* Both wait: the first alone would get the place. */
    while (warmup_places_waiting(places) < 2)
        g_usleep(1000);
    warmup_places_leave(places, "many");
    ck_assert_int_eq(end(&long_ago), 1);
    ck_assert_int_eq(g_atomic_int_get(&recent.has), 0);
    warmup_places_leave(places, "many");
    ck_assert_int_eq(end(&recent), 1);
    leave(places, "long-ago", 1);
    leave(places, "recent", 1);
    leave(places, "many", 1);
    warmup_places_free(places);
}
END_TEST

START_TEST(one_that_has_more_places_gives_one_up_after_its_time)
{
    WarmupPlaces *places = warmup_places_new(2, 3600 * 1000);
    const gint64 now = g_get_monotonic_time(), before = now - 3601 * (gint64)G_USEC_PER_SEC;
    Order few;
    take(places, "many", 2);
    ck_assert(!warmup_places_over(places, "many", before));
    begin(&few, places, "few");
    while (!warmup_places_over(places, "many", before))
        g_usleep(1000);
    ck_assert(!warmup_places_over(places, "many", now));
    warmup_places_leave(places, "many");
    ck_assert_int_eq(end(&few), 1);
    ck_assert(!warmup_places_over(places, "many", before));
    leave(places, "many", 1);
    leave(places, "few", 1);
    warmup_places_free(places);
}
END_TEST

START_TEST(orders_of_one_namespace_do_not_push_each_other_out)
{
    WarmupPlaces *places = warmup_places_new(1, 0);
    Order same;
    take(places, "many", 1);
    begin(&same, places, "many");
    while (warmup_places_waiting(places) < 1)
        g_usleep(1000);
    ck_assert(!warmup_places_over(places, "many", 0));
    leave(places, "many", 1);
    ck_assert_int_eq(end(&same), 1);
    leave(places, "many", 1);
    warmup_places_free(places);
}
END_TEST

START_TEST(one_that_is_cancelled_waits_no_longer)
{
    WarmupPlaces *places = warmup_places_new(1, 0);
    Order few;
    take(places, "many", 1);
    begin(&few, places, "few");
    await_waiting(places);
    g_cancellable_cancel(few.cancel);
    warmup_places_wake(places);
    ck_assert_int_eq(end(&few), -1);
    leave(places, "many", 1);
    take(places, "few", 1);
    leave(places, "few", 1);
    warmup_places_free(places);
}
END_TEST

HARNESS_MAIN("driver/warmup/places", a_free_place_goes_to_the_namespace_that_has_fewest,
             among_equals_it_goes_to_the_one_that_had_one_longest_ago,
             one_that_has_more_places_gives_one_up_after_its_time,
             orders_of_one_namespace_do_not_push_each_other_out,
             one_that_is_cancelled_waits_no_longer)
