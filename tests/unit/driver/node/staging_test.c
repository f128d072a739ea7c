/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/staging.h"
#include "driver/node/served/served.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/spec.h"
#include "tests/unit/driver/node/world.h"

#define ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define LIMIT_MS 10000

typedef struct Fixture {
    World *world;
    Staging *staging;
    char *staged, *target;
    const char *context; /* that is asked for */
    GError *error;
} Fixture;

static Fixture setup(void)
{
    Fixture f = {.world = world_new()};
    f.staging = staging_new(&f.world->base, f.world->socket_path, 600);
    f.staged = world_path(f.world, "staged");
    f.target = world_path(f.world, "target");
    return f;
}

static void teardown(Fixture *f)
{
    g_clear_error(&f->error);
    staging_free(f->staging);
    world_free(f->world);
    g_free(f->staged);
    g_free(f->target);
}

static json_t *spec_for(const char *volume, const char *root, const char *key, gboolean ro)
{
    return json_pack("{s:s, s:{s:s, s:s, s:s}, s:b, s:b}", "volume", volume, "origin", "type",
                     "cephfs", "rootPath", root, "userKey", key, "cache", 1, "readOnly", ro);
}

static gboolean stage_as(Fixture *f, const char *volume, const char *root, const char *key,
                         const char *path)
{
    json_t *spec = spec_for(volume, root, key, FALSE);
    g_clear_error(&f->error);
    const NodeCall call = {.volume = volume,
                           .staged = path,
                           .spec = spec,
                           .use = {.attrs = ATTRS, .context = f->context, .group = -1},
                           .deadline = deadline_in(LIMIT_MS)};
    gboolean done = staging_stage(f->staging, &live_kind, &call, &f->error);
    node_spec_free(spec);
    ck_assert(done == (f->error == NULL));
    return done;
}

static gboolean stage(Fixture *f)
{
    return stage_as(f, "v", "/v", "key", f->staged);
}

static gboolean unstage(Fixture *f)
{
    g_clear_error(&f->error);
    return staging_unstage(f->staging, "v", f->staged, LIMIT_MS, &f->error);
}

static gboolean publish_with(Fixture *f, const char *target, const VolumeUse *use)
{
    const NodeCall call = {.volume = "v",
                           .staged = f->staged,
                           .target = target,
                           .use = *use,
                           .deadline = deadline_in(LIMIT_MS)};
    g_clear_error(&f->error);
    return staging_publish(f->staging, &live_kind, &call, &f->error);
}

static gboolean publish_at(Fixture *f, const char *target, uint64_t attrs, gboolean exclusive)
{
    const VolumeUse use = {
        .attrs = attrs, .context = f->context, .group = -1, .exclusive = exclusive};
    gboolean done = publish_with(f, target, &use);
    ck_assert(done == (f->error == NULL));
    return done;
}

static gboolean publish_for(Fixture *f, const char *target, gint64 group)
{
    return publish_with(f, target, &(VolumeUse){.attrs = ATTRS, .group = group});
}

/* The group hearthd was told last, -1 for none. */
static gint64 group_of(Fixture *f)
{
    g_autoptr(HearthdLink) link = hearthd_connect(f->world->socket_path, NULL, NULL);
    int fd = -1;
    g_autofree char *note = NULL;
    json_t *spec = hearthd_fetch(link, "v", LIMIT_MS, &fd, &note, NULL);
    ck_assert_ptr_nonnull(spec);
    close(fd);
    const json_t *group = json_object_get(spec, "mountGroup");
    gint64 number = group ? json_integer_value(group) : -1;
    node_spec_free(spec);
    return number;
}

static gboolean publish(Fixture *f)
{
    return publish_at(f, f->target, ATTRS, FALSE);
}

static gboolean unpublish(Fixture *f)
{
    g_clear_error(&f->error);
    return staging_unpublish(f->staging, "v", f->target, LIMIT_MS, &f->error);
}

#define must(call) ck_assert_msg(call, #call ": %s", f.error ? f.error->message : "no error")
#define must_fail(call, hearth_code)                                                               \
    do {                                                                                           \
        ck_assert_msg(!(call), #call " succeeded");                                                \
        ck_assert_msg(g_error_matches(f.error, HEARTH_ERROR, hearth_code), "code %d: %s",          \
                      f.error->code, f.error->message);                                            \
    } while (0)

static void expect_nothing(Fixture *f)
{
    ck_assert_uint_eq(world_mounts(f->world), 0);
    world_expect_volumes(f->world, 0);
    world_expect_all_closed(f->world);
}

START_TEST(stage_and_publish_and_back_leaves_nothing)
{
    Fixture f = setup();
    must(stage(&f));
    ck_assert(world_attached(f.world, "v"));
    must(publish(&f));
    g_autoptr(MountEntry) staged = world_mounted(f.world, f.staged);
    g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
    ck_assert_uint_eq(staged->dev, target->dev);
    ck_assert(!target->read_only);
    must(unpublish(&f));
    ck_assert(!g_file_test(f.target, G_FILE_TEST_EXISTS));
    ck_assert(world_attached(f.world, "v"));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(every_call_may_be_repeated)
{
    Fixture f = setup();
    must(unpublish(&f));
    must(unstage(&f));
    must(stage(&f));
    must(stage(&f));
    must(publish(&f));
    must(publish(&f));
    ck_assert_uint_eq(world_mounts(f.world), 2);
    ck_assert_uint_eq(f.world->attaches, 1);
    must(unpublish(&f));
    must(unpublish(&f));
    must(unstage(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(kubelets_binds_are_no_second_publication)
{
    Fixture f = setup();
    g_autofree char *dir = world_path(f.world, "pods/one/volumes/kubernetes.io~csi/pv");
    g_autofree char *target = g_build_filename(dir, "mount", NULL);
    g_autofree char *mine = world_path(f.world, "pods/one/volume-subpaths/pv/main/0");
    g_autofree char *others = world_path(f.world, "pods/two/volume-subpaths/pv/main/0");
    ck_assert_int_eq(g_mkdir_with_parents(dir, 0700), 0);
    must(stage(&f));
    must(publish_at(&f, target, ATTRS, TRUE));
    world_bind(f.world, target, mine);
    must(publish_at(&f, target, ATTRS, TRUE));
    world_bind(f.world, target, others);
    must_fail(publish_at(&f, target, ATTRS, TRUE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, others));
    teardown(&f);
}
END_TEST

START_TEST(a_group_is_one_at_a_time)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    must(stage(&f));
    ck_assert_int_eq(group_of(&f), -1);
    must(publish_for(&f, f.target, 100));
    ck_assert_int_eq(group_of(&f), 100);
    must(publish_for(&f, f.target, 100));
    /* Whoever asks for no group takes what there is; another one waits its turn. */
    must(publish_for(&f, second, 100));
    g_clear_error(&f.error);
    must(staging_unpublish(f.staging, "v", second, LIMIT_MS, &f.error));
    must(publish_for(&f, second, -1));
    ck_assert(!publish_for(&f, f.target, 200));
    ck_assert_int_eq(f.error->code, HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "fsGroup"));
    ck_assert_int_eq(group_of(&f), 100);
    g_clear_error(&f.error);
    must(staging_unpublish(f.staging, "v", second, LIMIT_MS, &f.error));
    must(unpublish(&f));
    must(publish_for(&f, f.target, 200));
    ck_assert_int_eq(group_of(&f), 200);
    teardown(&f);
}
END_TEST

#define FILES "system_u:object_r:container_file_t:"

static void expect_context(Fixture *f, const char *path, const char *context)
{
    g_autoptr(MountEntry) e = world_mounted(f->world, path);
    ck_assert_ptr_nonnull(e);
    ck_assert_msg(g_strcmp0(e->context, context) == 0, "%s: %s", path, e->context);
}

START_TEST(a_volume_has_one_selinux_context)
{
    Fixture f = setup();
    f.context = FILES "s0:c26,c10";
    must(stage(&f));
    must(publish(&f));
    expect_context(&f, f.staged, FILES "s0:c26,c10");
    expect_context(&f, f.target, FILES "s0:c26,c10");
    f.context = FILES "s0:c10,c26"; /* the same */
    must(stage(&f));
    must(publish(&f));
    f.context = NULL; /* any will do */
    must(stage(&f));
    must(publish(&f));
    f.context = FILES "s0:c1";
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_ptr_nonnull(strstr(f.error->message, FILES "s0:c26,c10, and " FILES "s0:c1"));
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "seLinuxChangePolicy"));
    expect_context(&f, f.target, FILES "s0:c26,c10");
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    must(stage(&f)); /* once it is gone it may have another */
    expect_context(&f, f.staged, FILES "s0:c1");
    must(unstage(&f));
    teardown(&f);
}
END_TEST

START_TEST(what_is_mounted_without_a_context_has_none)
{
    Fixture f = setup();
    must(stage(&f));
    f.context = FILES "s0:c1";
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "no SELinux context"));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_hearthd_of_before_is_not_told_what_it_does_not_need)
{
    static const char *const fields[] = {"crushLocation", "names", "cephConf"};
    for (guint i = 0; i < G_N_ELEMENTS(fields); i++) {
        Fixture f = setup();
        json_t *spec = spec_for("v", "/v", "key", FALSE);
        const NodeCall call = {.volume = "v",
                               .staged = f.staged,
                               .spec = spec,
                               .use = {.attrs = ATTRS, .group = -1},
                               .deadline = deadline_in(LIMIT_MS)};
        json_t *of = i == 1 ? spec : json_object_get(spec, "origin");
        json_object_set_new(of, fields[i], json_string("zone=a"));
        f.world->unknown = fields[i];
        gboolean staged = staging_stage(f.staging, &live_kind, &call, &f.error);
        ck_assert_int_eq(staged, i < 2); /* without the others Ceph's clients would not be right */
        if (!staged)
            ck_assert_ptr_nonnull(strstr(f.error->message, "unknown field 'cephConf'"));
        node_spec_free(spec);
        if (staged) {
            must(publish(&f));
            must(unpublish(&f));
            must(unstage(&f));
        }
        expect_nothing(&f);
        teardown(&f);
    }
}
END_TEST

START_TEST(hearthd_is_told_of_no_context)
{
    Fixture f = setup();
    f.context = FILES "s0:c1";
    must(stage(&f));
    g_autoptr(HearthdLink) link = hearthd_connect(f.world->socket_path, NULL, NULL);
    int fd = -1;
    g_autofree char *note = NULL;
    json_t *spec = hearthd_fetch(link, "v", LIMIT_MS, &fd, &note, NULL);
    g_autofree char *text = json_dumps(spec, JSON_COMPACT);
    ck_assert_ptr_null(strstr(text, "container_file_t"));
    close(fd);
    node_spec_free(spec);
    must(unstage(&f));
    teardown(&f);
}
END_TEST

START_TEST(stage_again_with_another_spec_is_refused)
{
    Fixture f = setup();
    must(stage(&f));
    must_fail(stage_as(&f, "v", "/other", "key", f.staged), HEARTH_ERROR_ALREADY_EXISTS);
    /* A rotated key is no other volume. */
    must(stage_as(&f, "v", "/v", "another key", f.staged));
    must(publish(&f));
    teardown(&f);
}
END_TEST

START_TEST(stage_refuses_a_path_where_something_else_is)
{
    Fixture f = setup();
    world_mount(f.world, "ext4", "/dev/sda1", f.staged);
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "/dev/sda1"));
    ck_assert_ptr_nonnull(strstr(f.error->message, f.staged));
    must_fail(unstage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(world_mounts(f.world), 1);
    g_autofree char *second = world_path(f.world, "second");
    world_mount(f.world, MOUNT_TYPE, "hearth:w", second);
    must_fail(stage_as(&f, "v", "/v", "key", second), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "volume w"));
    world_expect_volumes(f.world, 0);
    teardown(&f);
}
END_TEST

START_TEST(stage_refuses_a_file_and_a_full_directory)
{
    Fixture f = setup();
    ck_assert(g_file_set_contents(f.staged, "x", 1, NULL));
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, f.staged));
    ck_assert_int_eq(unlink(f.staged), 0);
    ck_assert_int_eq(symlink(f.world->dir, f.staged), 0);
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_int_eq(unlink(f.staged), 0);
    ck_assert_int_eq(mkdir(f.staged, 0700), 0);
    g_autofree char *inside = g_build_filename(f.staged, "precious", NULL);
    ck_assert(g_file_set_contents(inside, "x", 1, NULL));
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "precious"));
    ck_assert(g_file_test(inside, G_FILE_TEST_EXISTS));
    ck_assert_uint_eq(f.world->opens, 0);
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

/* Lets every step of `call` fail in turn; after each, `check` must hold and a repetition succeed.
 */
static void fail_everywhere(gboolean (*before)(Fixture *), gboolean (*call)(Fixture *),
                            gboolean must_leave_nothing)
{
    for (Fault fault = FAULT_ERROR; fault <= FAULT_LOST_REPLY; fault++) {
        for (unsigned n = 1;; n++) {
            ck_assert_uint_lt(n, 50);
            Fixture f = setup();
            if (before)
                must(before(&f));
            unsigned mounts = world_mounts(f.world);
            gboolean target = g_file_test(f.target, G_FILE_TEST_EXISTS);
            world_fail_at(f.world, n, fault);
            gboolean done = call(&f);
            gboolean failed = world_failed(f.world);
            world_fail_at(f.world, 0, fault);
            if (!failed) {
                must(done);
                ck_assert_uint_ge(n, 3);
                teardown(&f);
                break;
            }
            if (!done && must_leave_nothing) {
                ck_assert_uint_eq(world_mounts(f.world), mounts);
                ck_assert(target == g_file_test(f.target, G_FILE_TEST_EXISTS));
                if (mounts == 0) {
                    expect_nothing(&f);
                    ck_assert(!g_file_test(f.staged, G_FILE_TEST_EXISTS));
                }
            }
            must(call(&f));
            must(unpublish(&f));
            must(unstage(&f));
            expect_nothing(&f);
            teardown(&f);
        }
    }
}

START_TEST(stage_takes_back_a_failure_at_any_step)
{
    fail_everywhere(NULL, stage, TRUE);
}
END_TEST

START_TEST(publish_takes_back_a_failure_at_any_step)
{
    fail_everywhere(stage, publish, TRUE);
}
END_TEST

static gboolean stage_and_publish(Fixture *f)
{
    return stage(f) && publish(f);
}

START_TEST(unpublish_continues_after_a_failure_at_any_step)
{
    fail_everywhere(stage_and_publish, unpublish, FALSE);
}
END_TEST

START_TEST(unstage_continues_after_a_failure_at_any_step)
{
    fail_everywhere(stage, unstage, FALSE);
}
END_TEST

/* Staged and published, then hearthd is killed and started again. */
static gboolean lose_hearthd(Fixture *f)
{
    if (!stage_and_publish(f))
        return FALSE;
    world_kill_hearthd(f->world);
    /* The watch releases what the keeper holds: nobody waits for a dead hearthd. */
    world_expect_all_closed(f->world);
    world_start_hearthd(f->world);
    return TRUE;
}

START_TEST(a_stale_mount_is_staged_anew)
{
    Fixture f = setup();
    must(lose_hearthd(&f));
    g_autoptr(MountEntry) before = world_mounted(f.world, f.staged);
    g_hash_table_add(f.world->busy, g_strdup(f.staged));
    must(stage(&f));
    g_autoptr(MountEntry) after = world_mounted(f.world, f.staged);
    ck_assert_uint_ne(before->dev, after->dev);
    ck_assert_uint_eq(f.world->lazy_unmounts, 1);
    ck_assert(world_attached(f.world, "v"));
    /* The target still shows the old mount; publishing it again replaces that too. */
    must(publish(&f));
    g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
    ck_assert_uint_eq(target->dev, after->dev);
    ck_assert_uint_eq(world_mounts(f.world), 2);
    teardown(&f);
}
END_TEST

START_TEST(restaging_takes_back_a_failure_at_any_step)
{
    for (unsigned n = 1;; n++) {
        Fixture f = setup();
        must(lose_hearthd(&f));
        world_fail_at(f.world, n, FAULT_ERROR);
        gboolean done = stage(&f), failed = world_failed(f.world);
        world_fail_at(f.world, 0, FAULT_ERROR);
        if (!failed)
            must(done);
        must(stage(&f));
        must(publish(&f));
        must(unpublish(&f));
        must(unstage(&f));
        expect_nothing(&f);
        teardown(&f);
        if (!failed)
            break;
    }
}
END_TEST

START_TEST(publish_mounts_anew_what_hearthd_lost)
{
    Fixture f = setup();
    must(lose_hearthd(&f));
    g_autofree char *second = world_path(f.world, "second");
    must(publish_at(&f, second, ATTRS, FALSE));
    g_autoptr(MountEntry) staged = world_mounted(f.world, f.staged);
    g_autoptr(MountEntry) target = world_mounted(f.world, second);
    ck_assert_uint_eq(staged->dev, target->dev);
    ck_assert(world_attached(f.world, "v"));
    teardown(&f);
}
END_TEST

START_TEST(what_is_mounted_anew_keeps_its_context)
{
    Fixture f = setup();
    f.context = FILES "s0:c1,c2";
    must(stage(&f));
    world_kill_hearthd(f.world);
    world_start_hearthd(f.world);
    f.context = NULL;
    must(publish(&f));
    expect_context(&f, f.staged, FILES "s0:c1,c2");
    expect_context(&f, f.target, FILES "s0:c1,c2");
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(publish_without_a_stage_is_refused)
{
    Fixture f = setup();
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert(!g_file_test(f.target, G_FILE_TEST_EXISTS));
    world_mount(f.world, "ext4", "/dev/sda1", f.staged);
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    teardown(&f);
}
END_TEST

START_TEST(publish_refuses_what_is_there_already)
{
    Fixture f = setup();
    must(stage(&f));
    must(publish_at(&f, f.target, ATTRS | MOUNT_ATTR_RDONLY, FALSE));
    g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
    ck_assert(target->read_only);
    must(publish_at(&f, f.target, ATTRS | MOUNT_ATTR_RDONLY, FALSE));
    must_fail(publish(&f), HEARTH_ERROR_ALREADY_EXISTS);
    g_autofree char *second = world_path(f.world, "second");
    world_mount(f.world, "tmpfs", "tmpfs", second);
    must_fail(publish_at(&f, second, ATTRS, FALSE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(world_mounts(f.world), 3);
    teardown(&f);
}
END_TEST

START_TEST(a_single_writer_is_published_once)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    must(stage(&f));
    must(publish_at(&f, f.target, ATTRS, TRUE));
    must(publish_at(&f, f.target, ATTRS, TRUE));
    must_fail(publish_at(&f, second, ATTRS, TRUE), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, f.target));
    ck_assert(!g_file_test(second, G_FILE_TEST_EXISTS));
    must(unpublish(&f));
    must(publish_at(&f, second, ATTRS, TRUE));
    teardown(&f);
}
END_TEST

START_TEST(a_mount_in_use_stays)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    g_hash_table_add(f.world->busy, g_strdup(f.target));
    must_fail(unpublish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    g_hash_table_remove(f.world->busy, f.target);
    must(unpublish(&f));
    g_hash_table_add(f.world->busy, g_strdup(f.staged));
    must_fail(unstage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert(world_attached(f.world, "v"));
    ck_assert_uint_eq(f.world->lazy_unmounts, 0);
    teardown(&f);
}
END_TEST

START_TEST(a_dead_mount_in_use_is_taken_away)
{
    Fixture f = setup();
    must(lose_hearthd(&f));
    g_hash_table_add(f.world->busy, g_strdup(f.target));
    g_hash_table_add(f.world->busy, g_strdup(f.staged));
    must(unpublish(&f));
    must(unstage(&f));
    ck_assert_uint_eq(f.world->lazy_unmounts, 2);
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(without_hearthd_nothing_is_staged_but_all_can_go)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    world_kill_hearthd(f.world);
    g_autofree char *second = world_path(f.world, "second");
    must_fail(stage_as(&f, "w", "/w", "key", second), HEARTH_ERROR_UNAVAILABLE);
    ck_assert_ptr_nonnull(strstr(f.error->message, f.world->socket_path));
    ck_assert(!g_file_test(second, G_FILE_TEST_EXISTS));
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_volume_is_served_until_its_last_mount_is_gone)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    must(unstage(&f));
    ck_assert(world_attached(f.world, "v"));
    must(unpublish(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_lost_staging_mount_is_bound_again)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    ck_assert(world_unmount(&f.world->base, f.staged, FALSE, 0, NULL));
    must(stage(&f));
    g_autoptr(MountEntry) staged = world_mounted(f.world, f.staged);
    g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
    ck_assert_uint_eq(staged->dev, target->dev);
    ck_assert_uint_eq(f.world->attaches, 1);
    must_fail(stage_as(&f, "v", "/other", "key", f.staged), HEARTH_ERROR_ALREADY_EXISTS);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_leftover_of_hearthd_is_replaced)
{
    Fixture f = setup();
    must(stage(&f));
    /* Someone unmounted it, and hearthd did not notice. */
    ck_assert(world_unmount(&f.world->base, f.staged, FALSE, 0, NULL));
    must(stage_as(&f, "v", "/moved", "key", f.staged));
    ck_assert_uint_eq(f.world->attaches, 2);
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_mount_that_does_not_answer_is_taken_back)
{
    Fixture f = setup();
    f.world->hang = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_DEADLINE_EXCEEDED);
    expect_nothing(&f);
    ck_assert(!g_file_test(f.staged, G_FILE_TEST_EXISTS));
    teardown(&f);
}
END_TEST

START_TEST(served_elsewhere_does_not_count_as_staged_here)
{
    Fixture f = setup();
    must(stage(&f));
    g_autofree char *other = world_path(f.world, "other");
    must(stage_as(&f, "w", "/w", "key", other));
    must_fail(stage_as(&f, "v", "/v", "key", other), HEARTH_ERROR_FAILED_PRECONDITION);
    must(staging_unstage(f.staging, "w", other, LIMIT_MS, NULL));
    /* A dead mount of the volume: replaced by a bind of the one that is served. */
    world_mount(f.world, MOUNT_TYPE, "hearth:v", other);
    must(stage_as(&f, "v", "/v", "key", other));
    g_autoptr(MountEntry) first = world_mounted(f.world, f.staged);
    g_autoptr(MountEntry) second = world_mounted(f.world, other);
    ck_assert_uint_eq(first->dev, second->dev);
    ck_assert_uint_eq(world_mounts(f.world), 2);
    teardown(&f);
}
END_TEST

START_TEST(a_restarted_node_plugin_fetches_what_it_kept)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    staging_free(f.staging);
    f.staging = staging_new(&f.world->base, f.world->socket_path, 600);
    world_expect_fetches(f.world, 1);
    /* Waits for the watch, which holds the volume until it has kept it. */
    must(publish(&f));
    world_kill_hearthd(f.world);
    world_expect_all_closed(f.world);
    world_start_hearthd(f.world);
    must(publish(&f));
    ck_assert(world_attached(f.world, "v"));
    teardown(&f);
}
END_TEST

START_TEST(a_restarted_node_plugin_goes_on)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    staging_free(f.staging);
    f.staging = staging_new(&f.world->base, f.world->socket_path, 600);
    must(stage(&f));
    must_fail(stage_as(&f, "v", "/other", "key", f.staged), HEARTH_ERROR_ALREADY_EXISTS);
    must(publish(&f));
    ck_assert_uint_eq(f.world->attaches, 1);
    ck_assert_uint_eq(f.world->fetches, 1);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

static void *stage_in_thread(void *data)
{
    Fixture *f = data;
    return GINT_TO_POINTER(stage(f));
}

START_TEST(a_second_call_on_a_volume_is_aborted)
{
    Fixture f = setup();
    f.world->hold_mount = TRUE;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, stage_in_thread, &f), 0);
    pthread_mutex_lock(&f.world->lock);
    while (!f.world->holding)
        pthread_cond_wait(&f.world->changed, &f.world->lock);
    pthread_mutex_unlock(&f.world->lock);

    Fixture g = f;
    g.error = NULL;
    ck_assert(!unstage(&g));
    ck_assert(g_error_matches(g.error, HEARTH_ERROR, HEARTH_ERROR_ABORTED));
    ck_assert(!publish(&g));
    ck_assert(g_error_matches(g.error, HEARTH_ERROR, HEARTH_ERROR_ABORTED));
    /* Another volume at the same path, too; at another path it goes on. */
    ck_assert(!stage_as(&g, "w", "/w", "key", f.staged));
    ck_assert(g_error_matches(g.error, HEARTH_ERROR, HEARTH_ERROR_ABORTED));
    ck_assert(staging_unstage(f.staging, "w", f.target, LIMIT_MS, NULL));
    g_clear_error(&g.error);

    pthread_mutex_lock(&f.world->lock);
    f.world->hold_mount = FALSE;
    pthread_cond_broadcast(&f.world->changed);
    pthread_mutex_unlock(&f.world->lock);
    void *staged;
    pthread_join(thread, &staged);
    ck_assert(GPOINTER_TO_INT(staged));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(usage_is_of_the_volume_only)
{
    Fixture f = setup();
    struct statvfs st;
    must_fail(staging_statvfs(f.staging, "v", f.staged, LIMIT_MS, &st, &f.error),
              HEARTH_ERROR_NOT_FOUND);
    must(stage(&f));
    g_clear_error(&f.error);
    must(staging_statvfs(f.staging, "v", f.staged, LIMIT_MS, &st, &f.error));
    must_fail(staging_statvfs(f.staging, "w", f.staged, LIMIT_MS, &st, &f.error),
              HEARTH_ERROR_NOT_FOUND);
    teardown(&f);
}
END_TEST

HARNESS_MAIN("driver/node/staging", stage_and_publish_and_back_leaves_nothing,
             every_call_may_be_repeated, a_group_is_one_at_a_time, a_volume_has_one_selinux_context,
             what_is_mounted_without_a_context_has_none, hearthd_is_told_of_no_context,
             a_hearthd_of_before_is_not_told_what_it_does_not_need,
             what_is_mounted_anew_keeps_its_context, kubelets_binds_are_no_second_publication,
             stage_again_with_another_spec_is_refused, stage_refuses_a_path_where_something_else_is,
             stage_refuses_a_file_and_a_full_directory, stage_takes_back_a_failure_at_any_step,
             publish_takes_back_a_failure_at_any_step,
             unpublish_continues_after_a_failure_at_any_step,
             unstage_continues_after_a_failure_at_any_step, a_stale_mount_is_staged_anew,
             restaging_takes_back_a_failure_at_any_step, publish_mounts_anew_what_hearthd_lost,
             publish_without_a_stage_is_refused, publish_refuses_what_is_there_already,
             a_single_writer_is_published_once, a_mount_in_use_stays,
             a_dead_mount_in_use_is_taken_away, without_hearthd_nothing_is_staged_but_all_can_go,
             a_volume_is_served_until_its_last_mount_is_gone, a_lost_staging_mount_is_bound_again,
             a_leftover_of_hearthd_is_replaced, a_mount_that_does_not_answer_is_taken_back,
             served_elsewhere_does_not_count_as_staged_here,
             a_restarted_node_plugin_fetches_what_it_kept, a_restarted_node_plugin_goes_on,
             a_second_call_on_a_volume_is_aborted, usage_is_of_the_volume_only)
