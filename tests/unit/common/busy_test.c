/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include "common/busy.h"
#include "tests/unit/harness.h"

START_TEST(volume_and_path_are_taken_together_or_not_at_all)
{
    Busy *b = busy_new();
    g_autoptr(GError) error = NULL;
    BusyHold *hold = busy_take(b, "v", "/p", &error);
    ck_assert_ptr_nonnull(hold);
    ck_assert_ptr_null(busy_take(b, "v", "/q", &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED));
    ck_assert_ptr_nonnull(strstr(error->message, "volume v"));
    g_clear_error(&error);
    ck_assert_ptr_null(busy_take(b, "w", "/p", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "path /p"));
    ck_assert_ptr_null(busy_take_background(b, "v"));
    /* The refused ones hold nothing. */
    BusyHold *other = busy_take(b, "w", "/q", NULL);
    ck_assert_ptr_nonnull(other);
    busy_release(hold);
    hold = busy_take(b, "v", NULL, NULL);
    ck_assert_ptr_nonnull(hold);
    busy_release(hold);
    busy_release(other);
    busy_free(b);
}
END_TEST

static void *take_v(void *data)
{
    BusyHold *hold = busy_take(data, "v", "/p", NULL);
    gboolean taken = hold != NULL;
    busy_release(hold);
    return GINT_TO_POINTER(taken);
}

START_TEST(background_work_is_waited_for)
{
    Busy *b = busy_new();
    BusyHold *hold = busy_take_background(b, "v");
    ck_assert_ptr_nonnull(hold);
    ck_assert_ptr_null(busy_take_background(b, "v"));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, take_v, b), 0);
    void *taken;
    struct timespec soon;
    clock_gettime(CLOCK_REALTIME, &soon);
    soon.tv_sec += 1;
    /* One that does not wait would end at once. */
    ck_assert_int_eq(pthread_timedjoin_np(thread, &taken, &soon), ETIMEDOUT);
    busy_release(hold);
    pthread_join(thread, &taken);
    ck_assert(GPOINTER_TO_INT(taken));
    busy_free(b);
}
END_TEST

static void *wait_for_v(void *data)
{
    BusyHold *hold = busy_take_until(data, "v", g_get_monotonic_time() + 10 * G_USEC_PER_SEC, NULL);
    gboolean taken = hold != NULL;
    busy_release(hold);
    return GINT_TO_POINTER(taken);
}

START_TEST(what_is_shared_is_waited_for_until_a_moment)
{
    Busy *b = busy_new();
    GError *error = NULL;
    BusyHold *hold = busy_take(b, "v", "/p", NULL);
    const gint64 until = g_get_monotonic_time() + 50000;
    ck_assert_ptr_null(busy_take_until(b, "v", until, &error));
    ck_assert_int_ge(g_get_monotonic_time(), until);
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_ABORTED));
    g_clear_error(&error);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_v, b), 0);
    busy_release(hold);
    void *taken;
    pthread_join(thread, &taken);
    ck_assert(GPOINTER_TO_INT(taken));
    busy_free(b);
}
END_TEST

HARNESS_MAIN("common/busy", volume_and_path_are_taken_together_or_not_at_all,
             background_work_is_waited_for, what_is_shared_is_waited_for_until_a_moment)
