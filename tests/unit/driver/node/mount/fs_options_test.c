/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/fs_options.h"
#include <string.h>
#include <sys/mount.h>
#include "tests/unit/harness.h"

#define ALWAYS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

START_TEST(divides_flags_of_any_mount_from_the_file_systems_own)
{
    char *flags[] = {"noatime,discard", "ro", "commit=30", "data=journal"};
    g_autofree char *context = NULL;
    uint64_t attrs = 0;
    g_auto(GStrv) options = fs_options_parse("ext4", flags, 4, &attrs, &context, NULL);
    ck_assert_ptr_nonnull(options);
    ck_assert_uint_eq(attrs, ALWAYS | MOUNT_ATTR_NOATIME | MOUNT_ATTR_RDONLY);
    g_autofree char *own = g_strjoinv(" ", options);
    ck_assert_str_eq(own, "discard commit=30 data=journal");
    ck_assert_ptr_null(context);
}
END_TEST

START_TEST(a_context_with_commas_is_one_option)
{
    char *flags[] = {"discard,context=\"system_u:object_r:container_file_t:s0:c1,c2\",noatime",
                     "context=\"system_u:object_r:container_file_t:s0:c2,c1\""};
    static const char *const types[] = {"ext4", "xfs", NULL};
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *context = NULL;
        uint64_t attrs = 0;
        g_auto(GStrv) options = fs_options_parse(types[i], flags, 2, &attrs, &context, NULL);
        ck_assert_ptr_nonnull(options);
        ck_assert_str_eq(context, "system_u:object_r:container_file_t:s0:c1,c2");
        ck_assert_uint_eq(attrs, ALWAYS | MOUNT_ATTR_NOATIME);
        ck_assert_uint_eq(g_strv_length(options), 1);
        ck_assert_str_eq(options[0], "discard");
    }
}
END_TEST

START_TEST(what_is_refused_is_named)
{
    static const struct {
        const char *type, *flag, *message;
    } of[] = {
        {"ext4", "nouuid", "\"nouuid\" is not supported with ext4"},
        {"xfs", "commit=30", "\"commit=30\" is not supported with xfs"},
        {NULL, "nobarrier", "\"nobarrier\" is not supported; use ro, rw"},
        {"ext4", "errors=panic", "\"errors=panic\""},
        {"ext4", "commit=", "\"commit=\""},
        {"ext4", "fscontext=a:b:c", "\"fscontext=a:b:c\""},
        {"ext4", "discard,context=\"a:b:c:s0", "the quote is not closed"},
        {"xfs", "context=a:b", "an SELinux context is user:role:type:level"},
        {"xfs", "context=a:b:c:s0:c1,c2", "\"c2\" is not supported with xfs"},
        {"xfs", "context=a:b:c:s0:c1,c2", "a context with a comma stands in double quotes"},
        {"xfs", "context=\"a:b:c:s0:c1\",context=\"a:b:c:s0:c2\"", "two SELinux contexts"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_autofree char *context = NULL;
        g_autoptr(GError) error = NULL;
        uint64_t attrs;
        char *one[] = {(char *)of[i].flag};
        g_auto(GStrv) options = fs_options_parse(of[i].type, one, 1, &attrs, &context, &error);
        ck_assert_msg(!options, "taken: %s", of[i].flag);
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_msg(strstr(error->message, of[i].message) != NULL, "%s", error->message);
    }
}
END_TEST

HARNESS_MAIN("driver/node/mount/fs_options", divides_flags_of_any_mount_from_the_file_systems_own,
             a_context_with_commas_is_one_option, what_is_refused_is_named)
