/* SPDX-License-Identifier: Apache-2.0 */
/* Idle sessions have no threads. */
#include "cache/fuse/live/session.h"
#include "tests/unit/cache/fuse/fake_kernel.h"

#define SESSIONS 50

typedef struct World {
    Origin *origin;
    Session *session;
    Kernel kernel;
} World;

static void world_up(World *w, const char *dir)
{
    GError *error = NULL;
    w->origin = origin_dir_open(dir, &error);
    ck_assert_msg(w->origin != NULL, "%s", error ? error->message : "");
    SessionConfig config = {.volume = "v", .origin = w->origin};
    w->session = session_start(&config, kernel_start(&w->kernel), NULL, NULL, &error);
    ck_assert_msg(w->session != NULL, "%s", error ? error->message : "");
    kernel_init(&w->kernel);
    ck_assert_int_eq(kernel_lookup(&w->kernel, 1, "none")->error, -ENOENT);
}

static void world_down(World *w)
{
    session_stop(w->session);
    origin_close(w->origin);
    close(w->kernel.fd);
}

START_TEST(threads_do_not_grow_with_sessions)
{
    static World worlds[SESSIONS];
    char *dir = harness_tmpdir();
    world_up(&worlds[0], dir);
    const unsigned one = harness_threads();
    for (int i = 1; i < SESSIONS; i++)
        world_up(&worlds[i], dir);
    const unsigned all = harness_threads();
    ck_assert_msg(all <= one, "%u threads for one session, %u for %d", one, all, SESSIONS);
    for (int i = 0; i < SESSIONS; i++)
        world_down(&worlds[i]);
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("cache/fuse/live/session_threads", threads_do_not_grow_with_sessions)
