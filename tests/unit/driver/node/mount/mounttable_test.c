/* SPDX-License-Identifier: Apache-2.0 */
#include <limits.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include "driver/node/mount/mount.h"
#include "tests/unit/harness.h"

START_TEST(parses_a_line_with_and_without_optional_fields)
{
    g_autoptr(MountEntry) e = mount_parse_line(
        "36 35 98:7 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue");
    ck_assert_ptr_nonnull(e);
    ck_assert_uint_eq(e->id, 36);
    ck_assert_uint_eq(e->dev, makedev(98, 7));
    ck_assert_str_eq(e->root, "/mnt1");
    ck_assert_str_eq(e->target, "/mnt2");
    ck_assert_str_eq(e->type, "ext3");
    ck_assert_str_eq(e->source, "/dev/root");
    ck_assert(!e->read_only);
    g_autoptr(MountEntry) bare =
        mount_parse_line("36 35 0:7 / /x ro - fuse.hearth hearth:v rw,user_id=0");
    ck_assert_ptr_nonnull(bare);
    ck_assert(bare->read_only);
    ck_assert_str_eq(mount_volume(bare), "v");
    g_autoptr(MountEntry) super = mount_parse_line("36 35 0:7 / /x rw - fuse.hearth hearth:v ro");
    ck_assert(super->read_only);
}
END_TEST

START_TEST(decodes_escapes)
{
    g_autoptr(MountEntry) e =
        mount_parse_line("1 2 0:7 / /a\\040b\\011c\\012d\\134e\\043f rw - fuse.hearth "
                         "hearth:x\\040y rw");
    ck_assert_ptr_nonnull(e);
    ck_assert_str_eq(e->target, "/a b\tc\nd\\e#f");
    ck_assert_str_eq(mount_volume(e), "x y");
    g_autoptr(MountEntry) odd = mount_parse_line("1 2 0:7 / /a\\9b\\04 rw - t s rw");
    ck_assert_str_eq(odd->target, "/a\\9b\\04");
}
END_TEST

START_TEST(a_stack_tells_its_first_lower_layer)
{
    static const struct {
        const char *options, *lower;
    } of[] = {
        {"ro,lowerdir+=/d/a\\054b:c\\040d.1.manifest,datadir+=/o,datadir+=/f,metacopy=on",
         "/d/a,b:c d.1.manifest"},
        {"ro,lowerdir=/d/m::/o::/f,redirect_dir=on", "/d/m"},
        {"ro,lowerdir=/d\\134:e/m\\134\\134::/o,metacopy=on", "/d:e/m\\"},
        {"rw,upperdir=/u", NULL},
    };
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_autofree char *line =
            g_strdup_printf("59 27 0:42 / /m ro,nodev - overlay hearth:v\\040w %s", of[i].options);
        g_autoptr(MountEntry) e = mount_parse_line(line);
        ck_assert_ptr_nonnull(e);
        ck_assert_str_eq(mount_volume(e), "v w");
        ck_assert_ptr_null(mount_served_volume(e));
        ck_assert_msg(g_strcmp0(e->lower, of[i].lower) == 0, "%s: %s", of[i].options, e->lower);
    }
    g_autoptr(MountEntry) other = mount_parse_line("1 2 0:7 / /x rw - ext4 /dev/a rw,lowerdir=/x");
    ck_assert_ptr_null(other->lower);
    ck_assert_ptr_null(mount_volume(other));
}
END_TEST

START_TEST(tells_the_selinux_context)
{
    static const struct {
        const char *type, *options, *context;
        gboolean read_only;
    } of[] = {
        {"fuse.hearth", "rw,context=\"system_u:object_r:container_file_t:s0:c1,c2\",user_id=0",
         "system_u:object_r:container_file_t:s0:c1,c2", FALSE},
        {"ext4", "rw,context=system_u:object_r:container_file_t:s0,errors=remount-ro",
         "system_u:object_r:container_file_t:s0", FALSE},
        {"xfs", "rw,seclabel,attr2", NULL, FALSE},
        {"xfs", "ro,fscontext=a:b:c,defcontext=a:b:c", NULL, TRUE},
        /* What stands in quotes is no option. */
        {"ext4", "rw,context=\"a:b:c:s0,ro\"", "a:b:c:s0,ro", FALSE},
        {"ext4", "context=\"a:b:c:s0,c1\",ro", "a:b:c:s0,c1", TRUE},
        {"ext4", "rw,context=\"a:b:\\042c,\\134d\"", "a:b:\"c,\\d", FALSE},
        /* The kernel does not write such; the rest is read as well as it can be. */
        {"ext4", "ro,context=\"a:b:c", "\"a:b:c", TRUE},
    };
    for (guint i = 0; i < G_N_ELEMENTS(of); i++) {
        g_autofree char *line =
            g_strdup_printf("59 27 0:42 / /m rw,nodev - %s s %s", of[i].type, of[i].options);
        g_autoptr(MountEntry) e = mount_parse_line(line);
        ck_assert_ptr_nonnull(e);
        ck_assert_msg(g_strcmp0(e->context, of[i].context) == 0, "%s: %s", of[i].options,
                      e->context);
        ck_assert_msg(e->read_only == of[i].read_only, "%s", of[i].options);
    }
    g_autoptr(MountEntry) stack =
        mount_parse_line("59 27 0:42 / /m ro - overlay hearth:v "
                         "ro,context=\"a:b:c:s0:c1,lowerdir=/evil\",lowerdir+=/d/m,datadir+=/o");
    ck_assert_str_eq(stack->lower, "/d/m");
    ck_assert_str_eq(stack->context, "a:b:c:s0:c1,lowerdir=/evil");
}
END_TEST

START_TEST(skips_malformed_lines)
{
    static const char *const bad[] = {
        "",
        "36 35 98:0 / /x rw",
        "36 35 98:0 / /x rw - ext3",
        "x 35 98:0 / /x rw - ext3 s rw",
        "36 35 98 / /x rw - ext3 s rw",
        "36 35 98:y / /x rw - ext3 s rw",
        "36 35 98:0 / relative rw - ext3 s rw",
        "99999999999999999999999 35 98:0 / /x rw - ext3 s rw",
    };
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(!mount_parse_line(bad[i]), "accepted: %s", bad[i]);
    g_autoptr(GPtrArray) table =
        mount_parse("garbage\n1 2 0:7 / /x rw - t first rw\n2 1 0:8 / /x rw - t second rw\n");
    ck_assert_uint_eq(table->len, 2);
}
END_TEST

START_TEST(finds_the_topmost_mount)
{
    g_autoptr(GPtrArray) table = mount_parse("1 2 0:7 / /x rw - t first rw\n"
                                             "2 1 0:8 / /x rw - t second rw\n"
                                             "3 1 0:9 / /x/y rw - t third rw\n");
    ck_assert_str_eq(mount_find(table, "/x")->source, "second");
    ck_assert_ptr_null(mount_find(table, "/"));
    ck_assert_ptr_null(mount_find(table, "/x/"));
}
END_TEST

START_TEST(only_our_type_and_source_is_a_volume)
{
    g_autoptr(GPtrArray) table = mount_parse("1 2 0:7 / /a rw - fuse.other hearth:v rw\n"
                                             "1 2 0:7 / /b rw - fuse.hearth other:v rw\n"
                                             "1 2 0:7 / /c rw - fuse.hearth hearth:v rw\n");
    ck_assert_ptr_null(mount_volume(table->pdata[0]));
    ck_assert_ptr_null(mount_volume(table->pdata[1]));
    ck_assert_str_eq(mount_volume(table->pdata[2]), "v");
}
END_TEST

static void expect_code(const char *path, int code)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *canonical = mount_canonical_path(path, "target_path", &error);
    ck_assert_msg(!canonical, "accepted: %.100s", path);
    ck_assert_msg(g_error_matches(error, HEARTH_ERROR, code), "%s", error->message);
    ck_assert_ptr_nonnull(strstr(error->message, "target_path"));
}

START_TEST(refuses_paths_that_cannot_be_mounted_on)
{
    expect_code("", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("/", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("///", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("relative/path", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("/tmp/../etc", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("/tmp/..", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("/tmp/./x", HEARTH_ERROR_INVALID_ARGUMENT);
    expect_code("/nonexistent-directory/x/y", HEARTH_ERROR_NOT_FOUND);
    expect_code("/proc/self/stat/x", HEARTH_ERROR_INVALID_ARGUMENT);
    g_autofree char *component = g_strnfill(300, 'a');
    g_autofree char *long_name = g_strconcat("/tmp/", component, NULL);
    expect_code(long_name, HEARTH_ERROR_INVALID_ARGUMENT);
    g_autofree char *fill = g_strnfill(PATH_MAX, 'a');
    g_autofree char *long_path = g_strconcat("/", fill, NULL);
    expect_code(long_path, HEARTH_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(resolves_the_parent_but_not_the_last_component)
{
    char *made = harness_tmpdir();
    char *dir = realpath(made, NULL);
    g_autofree char *link = g_build_filename(dir, "link", NULL);
    g_autofree char *real = g_build_filename(dir, "real", NULL);
    ck_assert_int_eq(mkdir(real, 0700), 0);
    ck_assert_int_eq(symlink(real, link), 0);
    g_autofree char *asked = g_strconcat(link, "//x/", NULL);
    g_autofree char *wanted = g_build_filename(real, "x", NULL);
    g_autofree char *got = mount_canonical_path(asked, "p", NULL);
    ck_assert_str_eq(got, wanted);
    g_autofree char *last = mount_canonical_path(link, "p", NULL);
    ck_assert_str_eq(last, link);
    g_autofree char *top = mount_canonical_path("/x", "p", NULL);
    ck_assert_str_eq(top, "/x");
    free(dir);
    harness_remove(made);
}
END_TEST

START_TEST(translates_allowed_flags_and_names_the_rest)
{
    uint64_t attrs = 0;
    char *context = NULL;
    char *flags[] = {"ro", "noexec,noatime", "nodiratime"};
    ck_assert(mount_parse_flags(flags, 3, &attrs, &context, NULL));
    ck_assert_uint_eq(attrs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY |
                                 MOUNT_ATTR_NOEXEC | MOUNT_ATTR_NOATIME | MOUNT_ATTR_NODIRATIME);
    char *back[] = {"ro", "noexec", "noatime", "rw", "exec", "relatime"};
    ck_assert(mount_parse_flags(back, 6, &attrs, &context, NULL));
    ck_assert_uint_eq(attrs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV);
    static const char *const refused[] = {"suid", "dev", "fd=3", "bind", "allow_other"};
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autoptr(GError) error = NULL;
        char *one[] = {(char *)refused[i]};
        ck_assert(!mount_parse_flags(one, 1, &attrs, &context, &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_ptr_nonnull(strstr(error->message, refused[i]));
    }
}
END_TEST

START_TEST(a_context_among_the_flags_is_taken)
{
    uint64_t attrs = 0;
    g_autofree char *context = NULL;
    char *flags[] = {"noatime,context=\"system_u:object_r:container_file_t:s0:c1,c2\",ro"};
    ck_assert(mount_parse_flags(flags, 1, &attrs, &context, NULL));
    ck_assert_str_eq(context, "system_u:object_r:container_file_t:s0:c1,c2");
    ck_assert_uint_eq(attrs, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY |
                                 MOUNT_ATTR_NOATIME);
    static const struct {
        const char *flag, *message;
    } refused[] = {
        {"context=\"a:b:c:s0:c1,c2", "the quote is not closed"},
        {"context=\"a:b:c:s0\"x", "behind the closing quote"},
        {"context=a", "an SELinux context is user:role:type:level"},
        {"context=a:b:c:s0:c1,c2", "stands in double quotes"},
        {"context=a:b:c:s0,context=a:b:c:s1", "two SELinux contexts, a:b:c:s0 and a:b:c:s1"},
        {"defcontext=a:b:c:s0", "\"defcontext=a:b:c:s0\" is not supported"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *none = NULL;
        g_autoptr(GError) error = NULL;
        char *one[] = {(char *)refused[i].flag};
        ck_assert(!mount_parse_flags(one, 1, &attrs, &none, &error));
        ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
        ck_assert_msg(strstr(error->message, refused[i].message) != NULL, "%s", error->message);
        ck_assert_ptr_null(none);
    }
}
END_TEST

HARNESS_MAIN("driver/node/mount/mounttable", parses_a_line_with_and_without_optional_fields,
             decodes_escapes, a_stack_tells_its_first_lower_layer, tells_the_selinux_context,
             a_context_among_the_flags_is_taken, skips_malformed_lines, finds_the_topmost_mount,
             only_our_type_and_source_is_a_volume, refuses_paths_that_cannot_be_mounted_on,
             resolves_the_parent_but_not_the_last_component,
             translates_allowed_flags_and_names_the_rest)
