/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include "driver/node/hearthd/keeper.h"
#include "driver/node/hearthd/spec.h"
#include "tests/unit/harness.h"

/* One end for the keeper, the other to see when it is closed. */
static int descriptor(int *peer)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    *peer = pair[1];
    return pair[0];
}

static gboolean is_closed(int peer)
{
    struct pollfd p = {.fd = peer};
    return poll(&p, 1, 0) == 1 && (p.revents & POLLHUP);
}

static json_t *spec_with(const char *key)
{
    return json_pack("{s:s, s:{s:s}}", "volume", "v", "origin", "userKey", key);
}

static const char *key_of(const json_t *spec)
{
    return json_string_value(json_object_get(json_object_get(spec, "origin"), "userKey"));
}

START_TEST(keeps_replaces_and_drops)
{
    g_autoptr(Keeper) k = keeper_new();
    ck_assert_ptr_null(keeper_spec(k, "v"));
    ck_assert(!keeper_is_complete(k, "v"));
    int first, second;
    json_t *spec = spec_with("one");
    keeper_put(k, "v", spec, &KEPT_RESUME_NONE, descriptor(&first));
    node_spec_free(spec);
    ck_assert(keeper_is_complete(k, "v"));
    spec = spec_with("two");
    keeper_put(k, "v", spec, &KEPT_RESUME_NONE, descriptor(&second));
    node_spec_free(spec);
    ck_assert(is_closed(first));
    spec = keeper_spec(k, "v");
    ck_assert_str_eq(key_of(spec), "two");
    node_spec_free(spec);
    keeper_drop(k, "v");
    keeper_drop(k, "v");
    ck_assert(is_closed(second));
    ck_assert_ptr_null(keeper_spec(k, "v"));
    close(first);
    close(second);
}
END_TEST

START_TEST(release_closes_descriptors_and_keeps_specs)
{
    g_autoptr(Keeper) k = keeper_new();
    int peer;
    json_t *spec = spec_with("one");
    keeper_put(k, "v", spec, &KEPT_RESUME_NONE, descriptor(&peer));
    keeper_put(k, "w", spec, &KEPT_RESUME_NONE, -1);
    node_spec_free(spec);
    ck_assert_uint_eq(keeper_release(k), 1);
    ck_assert_uint_eq(keeper_release(k), 0);
    ck_assert(is_closed(peer));
    ck_assert(!keeper_is_complete(k, "v"));
    spec = keeper_spec(k, "v");
    ck_assert_str_eq(key_of(spec), "one");
    node_spec_free(spec);
    close(peer);
}
END_TEST

START_TEST(a_volume_with_a_note_waits_for_the_next_hearthd)
{
    g_autoptr(Keeper) k = keeper_new();
    int peer;
    json_t *spec = spec_with("one");
    keeper_put(k, "v", spec, &(KeptResume){"a note", -1}, descriptor(&peer));
    node_spec_free(spec);
    ck_assert(keeper_may_wait(k, "v"));
    g_autoptr(GPtrArray) before = keeper_waiting(k);
    ck_assert_uint_eq(before->len, 0); /* hearthd serves it */
    ck_assert_uint_eq(keeper_release_overdue(k, 0), 0);

    ck_assert_uint_eq(keeper_release(k), 0);
    ck_assert(!is_closed(peer));
    g_autoptr(GPtrArray) waiting = keeper_waiting(k);
    ck_assert_uint_eq(waiting->len, 1);
    ck_assert_uint_eq(keeper_release_overdue(k, 60000), 0);
    g_auto(KeptMount) lent = {.fuse_fd = -1};
    ck_assert(keeper_lend(k, "v", &lent));
    ck_assert_str_eq(lent.note, "a note");
    ck_assert_str_eq(key_of(lent.spec), "one");
    ck_assert(keeper_served_again(k, "v", lent.place, &(KeptResume){"another", -1}));
    g_autoptr(GPtrArray) after = keeper_waiting(k);
    ck_assert_uint_eq(after->len, 0);

    ck_assert_uint_eq(keeper_release(k), 0);
    g_usleep(2000);
    ck_assert_uint_eq(keeper_release_overdue(k, 1), 1);
    ck_assert(!keeper_may_wait(k, "v"));
    ck_assert(!keeper_served_again(k, "v", lent.place, &(KeptResume){"late", -1}));
    close(peer);
}
END_TEST

START_TEST(who_was_lent_a_mount_does_not_touch_the_next_one)
{
    g_autoptr(Keeper) k = keeper_new();
    int first, second;
    json_t *spec = spec_with("one");
    g_auto(KeptMount) lent = {.fuse_fd = -1}, none = {.fuse_fd = -1};
    ck_assert(!keeper_lend(k, "v", &none));
    keeper_put(k, "v", spec, &(KeptResume){"first", -1}, descriptor(&first));
    ck_assert(keeper_lend(k, "v", &lent));
    keeper_put(k, "v", spec, &(KeptResume){"second", -1}, descriptor(&second));
    ck_assert(!keeper_served_again(k, "v", lent.place, &(KeptResume){"late", -1}));
    g_auto(KeptMount) now = {.fuse_fd = -1};
    ck_assert(keeper_lend(k, "v", &now));
    ck_assert_str_eq(now.note, "second");
    node_spec_free(spec);
    close(first);
    close(second);
}
END_TEST

/* jansson frees through these: they look for the secret in what is given back. */
static unsigned leaks;
static void *count_alloc(size_t n)
{
    size_t *p = malloc(n + 16);
    *p = n;
    return (char *)p + 16;
}
static void count_free(void *memory)
{
    if (!memory)
        return;
    size_t *p = (size_t *)(void *)((char *)memory - 16);
    if (memmem(memory, *p, "s3cr3t-k3y", 10))
        leaks++;
    free(p);
}

/* A memfd, as hearthd leaves it. */
static int state(gboolean left)
{
    const int fd = memfd_create("state", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert(!left || write(fd, "{", 1) == 1);
    return fd;
}

START_TEST(what_hearthd_says_outranks_what_was_loaded)
{
    g_autoptr(Keeper) k = keeper_new();
    int loaded, fetched, late;
    json_t *spec = spec_with("one");
    const KeptResume resume = {NULL, state(FALSE)};
    keeper_put_loaded(k, "v", spec, &resume, descriptor(&loaded));
    ck_assert(!keeper_is_complete(k, "v"));
    ck_assert(keeper_has_descriptor(k, "v"));
    ck_assert(keeper_may_yet_wait(k, "v"));
    ck_assert(keeper_awaits_state(k));
    keeper_put(k, "v", spec, &(KeptResume){"note", -1}, descriptor(&fetched));
    ck_assert(is_closed(loaded));
    ck_assert(keeper_is_complete(k, "v"));
    ck_assert(!keeper_awaits_state(k));
    keeper_put_loaded(k, "v", spec, &(KeptResume){"old", -1}, descriptor(&late));
    ck_assert(is_closed(late));
    ck_assert(!is_closed(fetched));
    node_spec_free(spec);
}
END_TEST

START_TEST(a_loaded_volume_whose_state_was_left_waits)
{
    g_autoptr(Keeper) k = keeper_new();
    int peer;
    json_t *spec = spec_with("one");
    const KeptResume resume = {NULL, state(TRUE)};
    keeper_put_loaded(k, "v", spec, &resume, descriptor(&peer));
    node_spec_free(spec);
    ck_assert(!keeper_awaits_state(k));
    ck_assert_uint_eq(keeper_release(k), 0);
    g_auto(KeptMount) lent = KEPT_MOUNT_NONE;
    ck_assert(keeper_lend(k, "v", &lent));
    ck_assert(keeper_served_again(k, "v", lent.place, &(KeptResume){NULL, state(FALSE)}));
    ck_assert(keeper_is_complete(k, "v"));
    ck_assert(!is_closed(peer));
}
END_TEST

static void note_change(void *data, const char *volume)
{
    g_string_append(data, volume);
}

static gboolean can_be_served_later(Keeper *k, const char *volume)
{
    g_auto(KeptMount) mount = KEPT_MOUNT_NONE;
    return keeper_look(k, volume, &mount);
}

START_TEST(each_change_is_told)
{
    g_autoptr(Keeper) k = keeper_new();
    g_autoptr(GString) told = g_string_new(NULL);
    int peer;
    json_t *spec = spec_with("one");
    keeper_on_change(k, note_change, told);
    keeper_put(k, "a", spec, &(KeptResume){"note", -1}, descriptor(&peer));
    ck_assert(can_be_served_later(k, "a"));
    keeper_renew(k, "a", spec);
    keeper_renew(k, "none", spec);
    keeper_release_volume(k, "a");
    ck_assert(!can_be_served_later(k, "a"));
    keeper_release_volume(k, "a");
    keeper_put(k, "b", spec, &KEPT_RESUME_NONE, descriptor(&peer));
    ck_assert(!can_be_served_later(k, "b"));
    ck_assert_uint_eq(keeper_release(k), 1);
    keeper_drop(k, "b");
    keeper_drop(k, "b");
    ck_assert_str_eq(told->str, "aaabbb");
    node_spec_free(spec);
}
END_TEST

START_TEST(secrets_are_overwritten_before_they_are_freed)
{
    json_set_alloc_funcs(count_alloc, count_free);
    json_t *spec = spec_with("s3cr3t-k3y");
    Keeper *k = keeper_new();
    keeper_put(k, "v", spec, &KEPT_RESUME_NONE, -1);
    keeper_put(k, "v", spec, &KEPT_RESUME_NONE, -1);
    keeper_put(k, "w", spec, &KEPT_RESUME_NONE, -1);
    node_spec_free(spec);
    node_spec_free(keeper_spec(k, "v"));
    keeper_drop(k, "w");
    keeper_free(k);
    ck_assert_uint_eq(leaks, 0);
    /* The detector does see one that is not. */
    json_decref(spec_with("s3cr3t-k3y"));
    ck_assert_uint_gt(leaks, 0);
}
END_TEST

HARNESS_MAIN("driver/node/hearthd/keeper", keeps_replaces_and_drops,
             release_closes_descriptors_and_keeps_specs,
             a_volume_with_a_note_waits_for_the_next_hearthd,
             who_was_lent_a_mount_does_not_touch_the_next_one,
             what_hearthd_says_outranks_what_was_loaded, a_loaded_volume_whose_state_was_left_waits,
             each_change_is_told, secrets_are_overwritten_before_they_are_freed)
