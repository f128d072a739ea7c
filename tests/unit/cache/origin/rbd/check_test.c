/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds an image's lock, of what Ceph answers. */
#include <string.h>
#include "cache/origin/rbd/internal.h"
#include "tests/unit/harness.h"

static const char one_holder[] = "\1\1\100\0\0\0"
                                 "\1\0\0\0"
                                 "\1\1\24\0\0\0"
                                 "\10\42\21\0\0\0\0\0\0"
                                 "\7\0\0\0auto 42"
                                 "what else is told of it";
#define HOLDER_BYTES (sizeof(one_holder) - sizeof("what else is told of it"))

static char *holder_of(const char *reply, size_t bytes, uint64_t *client)
{
    g_autofree char *copy = g_memdup2(reply, bytes); /* so that what reads beyond it is seen */
    return rbd_lock_holder(copy, bytes, client);
}

START_TEST(the_holder_and_its_cookie_are_found)
{
    uint64_t client = 0;
    g_autofree char *cookie = holder_of(one_holder, sizeof(one_holder) - 1, &client);
    ck_assert_str_eq(cookie, "auto 42");
    ck_assert_uint_eq(client, 0x1122);
}
END_TEST

START_TEST(an_answer_that_ends_early_names_no_holder)
{
    uint64_t client;
    for (size_t bytes = 0; bytes < HOLDER_BYTES; bytes++)
        ck_assert_ptr_null(holder_of(one_holder, bytes, &client));
    ck_assert_ptr_null(rbd_lock_holder(NULL, 0, &client));
}
END_TEST

START_TEST(what_is_not_one_client_is_no_holder)
{
    static const struct {
        size_t at;
        char value;
    } changes[] = {{6, 0}, {6, 2}, {16, 4}, {28, '\377'}};
    for (size_t i = 0; i < G_N_ELEMENTS(changes); i++) {
        char reply[sizeof(one_holder)];
        uint64_t client;
        memcpy(reply, one_holder, sizeof(reply));
        reply[changes[i].at] = changes[i].value;
        ck_assert_ptr_null(holder_of(reply, sizeof(reply) - 1, &client));
    }
}
END_TEST

HARNESS_MAIN("cache/origin/rbd/check", the_holder_and_its_cookie_are_found,
             an_answer_that_ends_early_names_no_holder, what_is_not_one_client_is_no_holder)
