#include "driver/volume/secrets.h"
#include <string.h>
#include "tests/unit/harness.h"

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
    g_autoptr(GHashTable) user = table("userID", "u", "userKey", "AQ1=");
    g_autoptr(GHashTable) admin = table("adminID", "a", "adminKey", "AQ2=");
    g_autoptr(Secrets) u = secrets_new(user, SECRETS_PREFER_ADMIN, NULL);
    g_autoptr(Secrets) a = secrets_new(admin, SECRETS_PREFER_USER, NULL);
    ck_assert_str_eq(u->user, "u");
    ck_assert_str_eq(u->key, "AQ1=");
    ck_assert_str_eq(a->user, "a");
}
END_TEST

START_TEST(prefers_as_told_when_both_are_there)
{
    g_autoptr(GHashTable) both = table("userID", "u", "userKey", "AQ1=");
    g_hash_table_insert(both, (char *)"adminID", (char *)"a");
    g_hash_table_insert(both, (char *)"adminKey", (char *)"AQ2=");
    g_autoptr(Secrets) controller = secrets_new(both, SECRETS_PREFER_ADMIN, NULL);
    g_autoptr(Secrets) node = secrets_new(both, SECRETS_PREFER_USER, NULL);
    ck_assert_str_eq(controller->user, "a");
    ck_assert_str_eq(node->user, "u");
}
END_TEST

START_TEST(trims_what_people_leave_around_them)
{
    g_autoptr(GHashTable) map = table("userID", "client.u\n", "userKey", " AQ1=\n");
    g_autoptr(Secrets) s = secrets_new(map, SECRETS_PREFER_USER, NULL);
    ck_assert_str_eq(s->user, "u");
    ck_assert_str_eq(s->key, "AQ1=");
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

HARNESS_MAIN("driver/volume/secrets", takes_either_pair, prefers_as_told_when_both_are_there,
             trims_what_people_leave_around_them, names_what_is_missing_and_shows_no_key)
