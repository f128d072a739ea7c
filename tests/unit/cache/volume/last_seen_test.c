/* SPDX-License-Identifier: Apache-2.0 */
/* Notes of which dataset a place is: for whom they hold, and that they are few. */
#include "cache/volume/last_seen.h"
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include "tests/unit/harness.h"

#define ID "00112233445566778899aabbccddeeff"

static VolumeSpec *spec_with(const char *path, const char *user, const char *key)
{
    json_t *request =
        json_pack("{s:s, s:b, s:{s:s, s:s, s:[s], s:s, s:s, s:s, s:s}}", "volume", "v", "readOnly",
                  1, "origin", "type", "cephfs", "clusterID", "c", "monitors", "127.0.0.1:1",
                  "fsName", "f", "rootPath", path, "userID", user, "userKey", key);
    g_autoptr(GError) error = NULL;
    VolumeSpec *parsed = spec_parse(request, &error);
    ck_assert_msg(parsed != NULL, "%s", error ? error->message : "");
    json_decref(request);
    return parsed;
}

static VolumeSpec *spec(const char *path, const char *user)
{
    return spec_with(path, user, "secret-of-the-user");
}

static int count(const char *dir)
{
    g_autoptr(GDir) all = g_dir_open(dir, 0, NULL);
    int n = 0;
    while (g_dir_read_name(all))
        n++;
    return n;
}

static char *only_file(const char *dir)
{
    g_autoptr(GDir) all = g_dir_open(dir, 0, NULL);
    return g_build_filename(dir, g_dir_read_name(all), NULL);
}

START_TEST(all_places_of_a_dataset_are_told_once)
{
    char *dir = harness_tmpdir();
    g_autoptr(VolumeSpec) a = spec("/a/.snap/s/x", "u"), again = spec("/a/.snap/s/x", "w"),
                          b = spec("/b/.snap/s/x", "u");
    last_seen_note(dir, a, ID);
    last_seen_note(dir, again, ID);
    last_seen_note(dir, b, ID);
    g_autofree char *strange = g_build_filename(dir, "place.strange", NULL);
    ck_assert(g_file_set_contents(strange, "{\"version\": 1, \"dataset\": \"../x\"}", -1, NULL));
    json_t *all = last_seen_list(dir), *places = json_object_get(all, ID);
    ck_assert_uint_eq(json_object_size(all), 1);
    ck_assert_uint_eq(json_array_size(places), 2);
    ck_assert_uint_eq(json_object_size(json_array_get(places, 0)), 3);
    json_decref(all);
    harness_remove(dir);
}
END_TEST

START_TEST(a_place_is_found_by_who_noted_it)
{
    char *dir = harness_tmpdir();
    g_autoptr(VolumeSpec) a = spec("/a/.snap/s/x", "u"), b = spec("/b/.snap/s/x", "u"),
                          other = spec("/a/.snap/s/x", "w");
    ck_assert_ptr_null(last_seen_dataset(dir, a));
    last_seen_note(dir, a, ID);
    last_seen_note(dir, a, ID);
    g_autofree char *found = last_seen_dataset(dir, a);
    ck_assert_str_eq(found, ID);
    ck_assert_ptr_null(last_seen_dataset(dir, b));
    ck_assert_ptr_null(last_seen_dataset(dir, other));
    g_autofree char *path = only_file(dir);
    g_autofree char *text = NULL;
    ck_assert(g_file_get_contents(path, &text, NULL, NULL));
    ck_assert_ptr_null(strstr(text, "secret"));
    last_seen_note(dir, a, "ffeeddccbbaa99887766554433221100");
    g_autofree char *changed = last_seen_dataset(dir, a);
    ck_assert_str_eq(changed, "ffeeddccbbaa99887766554433221100");
    last_seen_forget(dir, a);
    ck_assert_ptr_null(last_seen_dataset(dir, a));
    ck_assert_int_eq(count(dir), 0);
    harness_remove(dir);
}
END_TEST

START_TEST(the_key_that_was_noted_last_is_accepted)
{
    char *dir = harness_tmpdir();
    g_autoptr(VolumeSpec) a = spec("/a/.snap/s/x", "u"), other = spec("/b/.snap/s/x", "u"),
                          wrong = spec_with("/a/.snap/s/x", "u", "secret-of-the-uses"),
                          user = spec("/a/.snap/s/x", "w");
    ck_assert(!last_seen_key_matches(dir, a));
    last_seen_note(dir, a, ID);
    ck_assert(last_seen_key_matches(dir, a));
    ck_assert(!last_seen_key_matches(dir, wrong) && !last_seen_key_matches(dir, other) &&
              !last_seen_key_matches(dir, user));
    last_seen_note(dir, wrong, ID);
    ck_assert(last_seen_key_matches(dir, wrong) && !last_seen_key_matches(dir, a));
    ck_assert_int_eq(count(dir), 1);
    last_seen_forget(dir, a);
    ck_assert(!last_seen_key_matches(dir, wrong));
    harness_remove(dir);
}
END_TEST

START_TEST(a_damaged_note_is_none)
{
    char *dir = harness_tmpdir();
    g_autoptr(VolumeSpec) a = spec("/a/.snap/s/x", "u");
    last_seen_note(dir, a, ID);
    g_autofree char *path = only_file(dir);
    g_autofree char *text = NULL;
    gsize n;
    ck_assert(g_file_get_contents(path, &text, &n, NULL));
    for (gsize i = 0; i < n; i++) {
        g_autofree char *cut = g_strndup(text, i);
        ck_assert(g_file_set_contents(path, cut, (gssize)i, NULL));
        ck_assert_ptr_null(last_seen_dataset(dir, a));
    }
    char *id = strstr(text, ID);
    memcpy(id, "../../../../../../../etc/passwd.", 32);
    ck_assert(g_file_set_contents(path, text, (gssize)n, NULL));
    ck_assert_ptr_null(last_seen_dataset(dir, a));
    last_seen_note(dir, a, ID);
    g_autofree char *found = last_seen_dataset(dir, a);
    ck_assert_str_eq(found, ID);
    harness_remove(dir);
}
END_TEST

START_TEST(a_key_that_cannot_be_noted_does_not_leave_the_one_before)
{
    char *dir = harness_tmpdir();
    g_autoptr(VolumeSpec) a = spec("/a/.snap/s/x", "u"),
                          b = spec_with("/a/.snap/s/x", "u", "newer");
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = RLIM_INFINITY};
    struct rlimit before;
    last_seen_note(dir, a, ID);
    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &none), 0);
    last_seen_note(dir, b, ID);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
    ck_assert(!last_seen_key_matches(dir, a) && !last_seen_key_matches(dir, b));
    harness_remove(dir);
}
END_TEST

START_TEST(there_are_never_more_than_so_many)
{
    char *dir = harness_tmpdir();
    for (int i = 0; i < LAST_SEEN_MAX - 1; i++) {
        g_autofree char *path = g_strdup_printf("%s/place.%032d", dir, i);
        ck_assert(g_file_set_contents(path, "{}", -1, NULL));
    }
    for (int i = 0; i < 4; i++) {
        g_autofree char *path = g_strdup_printf("/%d/.snap/s/x", i);
        g_autoptr(VolumeSpec) s = spec(path, "u");
        last_seen_note(dir, s, ID);
        g_autofree char *found = last_seen_dataset(dir, s);
        ck_assert_ptr_nonnull(found);
    }
    ck_assert_int_eq(count(dir), LAST_SEEN_MAX);
    harness_remove(dir);
}
END_TEST

HARNESS_MAIN("cache/volume/last_seen", a_place_is_found_by_who_noted_it,
             the_key_that_was_noted_last_is_accepted, all_places_of_a_dataset_are_told_once,
             a_damaged_note_is_none, a_key_that_cannot_be_noted_does_not_leave_the_one_before,
             there_are_never_more_than_so_many)
