#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include "driver/node/busy.h"
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

typedef struct Waiter {
    Busy *busy;
    atomic_bool began;
    atomic_bool released;
} Waiter;

static void *wait_for_background(void *data)
{
    Waiter *w = data;
    atomic_store(&w->began, TRUE);
    BusyHold *hold = busy_take(w->busy, "v", "/p", NULL);
    gboolean in_order = hold && atomic_load(&w->released);
    busy_release(hold);
    return GINT_TO_POINTER(in_order);
}

START_TEST(background_work_is_waited_for)
{
    Waiter w = {.busy = busy_new()};
    BusyHold *hold = busy_take_background(w.busy, "v");
    ck_assert_ptr_nonnull(hold);
    ck_assert_ptr_null(busy_take_background(w.busy, "v"));
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, wait_for_background, &w), 0);
    while (!atomic_load(&w.began))
        ;
    atomic_store(&w.released, TRUE);
    busy_release(hold);
    void *in_order;
    pthread_join(thread, &in_order);
    ck_assert(GPOINTER_TO_INT(in_order));
    busy_free(w.busy);
}
END_TEST

HARNESS_MAIN("driver/node/busy", volume_and_path_are_taken_together_or_not_at_all,
             background_work_is_waited_for)
