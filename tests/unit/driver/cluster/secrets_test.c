/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cluster/secrets.h"
#include <string.h>
#include "driver/cluster/ceph_key.h"
#include "tests/unit/harness.h"

/* Of the form `ceph auth print-key` prints; keys of nobody. */
#define KEY_ONE "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="
#define KEY_TWO "AQAAAAAAAAAAABAAZmVkY2JhOTg3NjU0MzIxMA=="
#define KEY_AES256K "AgAAAAAAAAAAACAAMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="

static GHashTable *table(const char *a, const char *av, const char *b, const char *bv)
{
    GHashTable *map = g_hash_table_new(g_str_hash, g_str_equal);
    if (a)
        g_hash_table_insert(map, (char *)a, (char *)av);
    if (b)
        g_hash_table_insert(map, (char *)b, (char *)bv);
    return map;
}

static void fails(GHashTable *map, const char *because)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(secrets_new(map, SECRETS_PREFER_ADMIN, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_msg(strstr(error->message, because) != NULL, "%s", error->message);
    ck_assert_ptr_null(strstr(error->message, "AQsecret"));
    if (map)
        g_hash_table_unref(map);
}

START_TEST(takes_either_pair)
{
    g_autoptr(GHashTable) user = table("userID", "u", "userKey", KEY_ONE);
    g_autoptr(GHashTable) admin = table("adminID", "a", "adminKey", KEY_TWO);
    g_autoptr(Secrets) u = secrets_new(user, SECRETS_PREFER_ADMIN, NULL);
    g_autoptr(Secrets) a = secrets_new(admin, SECRETS_PREFER_USER, NULL);
    ck_assert_str_eq(u->user, "u");
    ck_assert_str_eq(u->key, KEY_ONE);
    ck_assert_str_eq(a->user, "a");
}
END_TEST

START_TEST(prefers_as_told_when_both_are_there)
{
    g_autoptr(GHashTable) both = table("userID", "u", "userKey", KEY_ONE);
    g_hash_table_insert(both, (char *)"adminID", (char *)"a");
    g_hash_table_insert(both, (char *)"adminKey", (char *)KEY_TWO);
    g_autoptr(Secrets) controller = secrets_new(both, SECRETS_PREFER_ADMIN, NULL);
    g_autoptr(Secrets) node = secrets_new(both, SECRETS_PREFER_USER, NULL);
    ck_assert_str_eq(controller->user, "a");
    ck_assert_str_eq(node->user, "u");
}
END_TEST

START_TEST(trims_what_people_leave_around_them)
{
    g_autoptr(GHashTable) map = table("userID", "client.u\n", "userKey", " " KEY_ONE "\n");
    g_autoptr(Secrets) s = secrets_new(map, SECRETS_PREFER_USER, NULL);
    ck_assert_str_eq(s->user, "u");
    ck_assert_str_eq(s->key, KEY_ONE);
}
END_TEST

START_TEST(names_what_is_missing_and_shows_no_key)
{
    fails(NULL, "userID");
    fails(table(NULL, NULL, NULL, NULL), "userID");
    fails(table("userID", "u", NULL, NULL), "\"userKey\"");
    fails(table("userKey", "AQsecret", NULL, NULL), "\"userID\"");
    fails(table("userID", "u", "userKey", ""), "\"userKey\"");
    fails(table("userID", "u", "userKey", "AQsecret bad"), "\"userKey\"");
    fails(table("userID", "u", "userKey", "AQsecret\x01"), "\"userKey\"");
    fails(table("adminID", "a", NULL, NULL), "\"adminKey\"");
}
END_TEST

START_TEST(key_of_another_form_never_reaches_ceph)
{
    fails(table("userID", "u", "userKey", "AQsecret"), "print-key client.u");
    fails(table("userID", "u", "userKey", "AQsecretAQsecretAQsecretAQsecret"), "\"userKey\"");
    /* The secret is shorter than it says. */
    fails(table("userID", "u", "userKey", "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFi"), "\"userKey\"");
}
END_TEST

START_TEST(key_of_a_type_the_library_lacks_never_reaches_it)
{
    CephVersion version;
    g_autoptr(GHashTable) map = table("userID", "u", "userKey", KEY_AES256K);
    g_autoptr(GError) error = NULL;
    g_autoptr(Secrets) s = secrets_new(map, SECRETS_PREFER_USER, &error);
    ck_assert(ceph_library_version(&version));
    if (ceph_version_has_aes256k(version)) {
        ck_assert_str_eq(s->key, KEY_AES256K);
        return;
    }
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    ck_assert_ptr_nonnull(strstr(error->message, "aes256k"));
    ck_assert_ptr_nonnull(strstr(error->message, "20.2.4"));
    ck_assert_ptr_null(strstr(error->message, KEY_AES256K));
}
END_TEST

HARNESS_MAIN("driver/cluster/secrets", takes_either_pair, prefers_as_told_when_both_are_there,
             trims_what_people_leave_around_them, names_what_is_missing_and_shows_no_key,
             key_of_another_form_never_reaches_ceph,
             key_of_a_type_the_library_lacks_never_reaches_it)
