/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/image/image.h"
#include "driver/node/served/served.h"
#include "driver/node/staging.h"
#include "tests/unit/driver/node/fake_block.h"

#define ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define LIMIT_MS 10000

typedef struct Fixture {
    World *world;
    FakeBlock *block;
    Staging *staging;
    char *devices, *staged, *target;
    VolumeUse use;
    GError *error;
} Fixture;

static Fixture setup_as(gboolean block)
{
    Fixture f = {.world = world_new()};
    f.block = fake_block_new(f.world);
    f.staging = staging_new(&f.world->base, f.world->socket_path, 600);
    f.devices = world_path(f.world, "devices");
    f.staged = world_path(f.world, "staged");
    f.target = world_path(f.world, "target");
    f.use = (VolumeUse){.block = block, .attrs = ATTRS, .group = -1};
    image_init(f.staging, &f.block->base, f.devices);
    return f;
}

static Fixture setup(void)
{
    return setup_as(FALSE);
}

static void teardown(Fixture *f)
{
    g_clear_error(&f->error);
    staging_free(f->staging);
    fake_block_free(f->block);
    world_free(f->world);
    g_free(f->devices);
    g_free(f->staged);
    g_free(f->target);
}

static gboolean stage(Fixture *f)
{
    json_t *spec = json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:b, s:b}", "volume", "v", "origin",
                             "type", "rbd", "pool", "p", "image", "i", "userKey", "key", "cache", 1,
                             "readOnly", (f->use.attrs & MOUNT_ATTR_RDONLY) != 0);
    g_clear_error(&f->error);
    const NodeCall call = {.volume = "v",
                           .staged = f->staged,
                           .spec = spec,
                           .use = f->use,
                           .deadline = deadline_in(LIMIT_MS)};
    gboolean done = staging_stage(f->staging, &image_kind, &call, &f->error);
    node_spec_free(spec);
    ck_assert(done == (f->error == NULL));
    return done;
}

static gboolean publish_at(Fixture *f, const char *target, uint64_t attrs, gboolean exclusive)
{
    g_clear_error(&f->error);
    NodeCall call = {.volume = "v",
                     .staged = f->staged,
                     .target = target,
                     .use = f->use,
                     .read_only = (attrs & MOUNT_ATTR_RDONLY) != 0,
                     .deadline = deadline_in(LIMIT_MS)};
    call.use.exclusive = exclusive;
    gboolean done = staging_publish(f->staging, &image_kind, &call, &f->error);
    ck_assert(done == (f->error == NULL));
    return done;
}

static gboolean publish(Fixture *f)
{
    return publish_at(f, f->target, f->use.attrs, FALSE);
}

static gboolean unpublish(Fixture *f)
{
    g_clear_error(&f->error);
    return staging_unpublish(f->staging, "v", f->target, LIMIT_MS, &f->error);
}

static gboolean unstage(Fixture *f)
{
    g_clear_error(&f->error);
    return staging_unstage(f->staging, "v", f->staged, LIMIT_MS, &f->error);
}

static gboolean stage_and_publish(Fixture *f)
{
    return stage(f) && publish(f);
}

#define must(call) ck_assert_msg(call, #call ": %s", f.error ? f.error->message : "no error")
#define must_fail(call, hearth_code)                                                               \
    do {                                                                                           \
        ck_assert_msg(!(call), #call " succeeded");                                                \
        ck_assert_msg(g_error_matches(f.error, HEARTH_ERROR, hearth_code), "code %d: %s",          \
                      f.error->code, f.error->message);                                            \
    } while (0)

/* No mount, no loop device, no directory, nothing at hearthd, no descriptor. */
static void expect_nothing(Fixture *f)
{
    ck_assert_uint_eq(world_mounts(f->world), 0);
    fake_settle(f->block);
    ck_assert_int_lt(f->block->loop.number, 0);
    world_expect_volumes(f->world, 0);
    world_expect_all_closed(f->world);
    g_autoptr(GDir) dir = g_dir_open(f->devices, 0, NULL);
    ck_assert(!dir || !g_dir_read_name(dir));
    ck_assert(!g_file_test(f->target, G_FILE_TEST_EXISTS));
}

START_TEST(file_system_lives_and_leaves_nothing)
{
    Fixture f = setup();
    must(stage(&f));
    must(stage(&f));
    ck_assert_uint_eq(f.block->made, 1);
    must(publish(&f));
    must(publish(&f));
    /* The FUSE mount, the file system, its bind. */
    ck_assert_uint_eq(world_mounts(f.world), 3);
    g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
    ck_assert_str_eq(target->type, "ext4");
    must(unpublish(&f));
    must(unpublish(&f));
    ck_assert(world_attached(f.world, "v"));
    must(unstage(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(device_lives_and_leaves_nothing)
{
    Fixture f = setup_as(TRUE);
    must(stage(&f));
    must(stage(&f));
    must(publish(&f));
    must(publish(&f));
    ck_assert_uint_eq(world_mounts(f.world), 2);
    ck_assert(!f.block->loop.autoclear);
    ck_assert_uint_eq(f.block->made + f.block->checked, 0);
    must_fail(unstage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    must(unpublish(&f));
    must(unpublish(&f));
    /* Staged as long as it is there. */
    ck_assert_int_ge(f.block->loop.number, 0);
    must(publish(&f));
    must(unpublish(&f));
    must(unstage(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(file_system_goes_with_its_last_mount_in_any_order)
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

/* `call` after `before`, with each step failing in turn; then all of it succeeds. */
static void fail_everywhere(gboolean block, gboolean (*before)(Fixture *),
                            gboolean (*call)(Fixture *), gboolean must_leave_nothing)
{
    for (Fault fault = FAULT_ERROR; fault <= FAULT_LOST_REPLY; fault++) {
        for (unsigned n = 1;; n++) {
            Fixture f = setup_as(block);
            if (before)
                must(before(&f));
            unsigned mounts = world_mounts(f.world);
            world_fail_at(f.world, n, fault);
            gboolean done = call(&f), failed = world_failed(f.world);
            world_fail_at(f.world, 0, fault);
            if (!done && must_leave_nothing) {
                ck_assert_uint_eq(world_mounts(f.world), mounts);
                if (mounts == 0)
                    expect_nothing(&f);
            }
            must(call(&f));
            if (call == stage || call == stage_and_publish) {
                must(publish(&f));
                ck_assert(!f.block->note);
            }
            must(unpublish(&f));
            must(unstage(&f));
            expect_nothing(&f);
            teardown(&f);
            if (!failed) {
                ck_assert_uint_ge(n, 4);
                break;
            }
        }
    }
}

START_TEST(stage_takes_back_a_failure_at_any_step)
{
    fail_everywhere(FALSE, NULL, stage, TRUE);
}
END_TEST

START_TEST(stage_of_a_device_takes_back_a_failure_at_any_step)
{
    fail_everywhere(TRUE, NULL, stage, TRUE);
}
END_TEST

START_TEST(publish_takes_back_a_failure_at_any_step)
{
    fail_everywhere(FALSE, stage, publish, TRUE);
    fail_everywhere(TRUE, stage, publish, TRUE);
}
END_TEST

START_TEST(unpublish_goes_on_after_a_failure_at_any_step)
{
    fail_everywhere(FALSE, stage_and_publish, unpublish, FALSE);
    fail_everywhere(TRUE, stage_and_publish, unpublish, FALSE);
}
END_TEST

START_TEST(unstage_goes_on_after_a_failure_at_any_step)
{
    fail_everywhere(FALSE, stage, unstage, FALSE);
    fail_everywhere(TRUE, stage, unstage, FALSE);
}
END_TEST

static gboolean lose_hearthd(Fixture *f)
{
    gboolean done = stage_and_publish(f);
    world_kill_hearthd(f->world);
    world_start_hearthd(f->world);
    return done;
}

START_TEST(what_hearthd_lost_is_built_anew_by_stage)
{
    for (unsigned n = 1;; n++) {
        Fixture f = setup();
        must(lose_hearthd(&f));
        world_fail_at(f.world, n, FAULT_ERROR);
        stage(&f);
        gboolean failed = world_failed(f.world);
        world_fail_at(f.world, 0, FAULT_ERROR);
        must(stage(&f));
        must(publish(&f));
        ck_assert(world_attached(f.world, "v"));
        ck_assert_uint_eq(world_mounts(f.world), 3);
        ck_assert_uint_eq(f.block->made, 1);
        must(unpublish(&f));
        must(unstage(&f));
        expect_nothing(&f);
        teardown(&f);
        if (!failed)
            break;
    }
}
END_TEST

START_TEST(what_hearthd_lost_is_built_anew_by_publish)
{
    for (int block = 0; block <= 1; block++) {
        Fixture f = setup_as(block);
        must(lose_hearthd(&f));
        must(publish(&f));
        ck_assert(world_attached(f.world, "v"));
        must(unpublish(&f));
        must(unstage(&f));
        expect_nothing(&f);
        teardown(&f);
    }
}
END_TEST

START_TEST(what_hearthd_lost_is_taken_down)
{
    for (int block = 0; block <= 1; block++) {
        Fixture f = setup_as(block);
        must(lose_hearthd(&f));
        must(unpublish(&f));
        must(unstage(&f));
        expect_nothing(&f);
        teardown(&f);
    }
}
END_TEST

static void set_content(Fixture *f, const char *type)
{
    f->block->blank = FALSE;
    g_free(f->block->type);
    f->block->type = g_strdup(type);
    f->block->fs_bytes = type ? FAKE_BYTES : 0;
}

START_TEST(content_is_never_formatted_over)
{
    static const char *const contents[] = {NULL, "partition table gpt", "crypto_LUKS", "xfs"};
    for (size_t i = 0; i < G_N_ELEMENTS(contents); i++) {
        Fixture f = setup();
        set_content(&f, contents[i]);
        f.use.fs_type = "ext4";
        must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
        ck_assert_uint_eq(f.block->made, 0);
        expect_nothing(&f);
        teardown(&f);
    }
}
END_TEST

START_TEST(formatting_that_died_begins_anew)
{
    Fixture f = setup();
    f.block->half = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_INTERNAL);
    expect_nothing(&f);
    ck_assert(f.block->note);
    f.block->half = FALSE;
    must(stage(&f));
    ck_assert_uint_eq(f.block->made, 2);
    ck_assert(!f.block->note);
    teardown(&f);
}
END_TEST

START_TEST(note_of_formatting_is_no_leave_to_destroy)
{
    static const struct {
        gboolean unused, damaged, stages;
        unsigned made;
    } cases[] = {
        {TRUE, FALSE, TRUE, 0},  /* it came to its end */
        {TRUE, TRUE, TRUE, 1},   /* it did not, and nobody has used it */
        {FALSE, FALSE, TRUE, 0}, /* used since, and whole */
        {FALSE, TRUE, FALSE, 0}, /* used since, and damaged */
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Fixture f = setup();
        set_content(&f, "ext4");
        f.block->note = TRUE;
        f.block->unused = cases[i].unused;
        f.block->damaged = cases[i].damaged;
        ck_assert_int_eq(stage(&f), cases[i].stages);
        ck_assert_uint_eq(f.block->made, cases[i].made);
        ck_assert(f.block->note == !cases[i].stages);
        teardown(&f);
    }
}
END_TEST

START_TEST(damaged_file_system_is_not_mounted)
{
    Fixture f = setup();
    set_content(&f, "ext4");
    f.block->damaged = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(reader_writes_nothing)
{
    Fixture f = setup();
    f.use.attrs |= MOUNT_ATTR_RDONLY;
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert(!f.block->note);
    set_content(&f, "ext4");
    must(stage(&f));
    ck_assert_str_eq(f.block->mount_options, "ro,noload,errors=remount-ro");
    ck_assert(f.block->loop.read_only);
    must(unstage(&f));
    set_content(&f, "xfs");
    must(stage(&f));
    ck_assert_str_eq(f.block->mount_options, "ro,norecovery,nouuid");
    ck_assert_uint_eq(f.block->checked + f.block->made, 0);
    teardown(&f);
}
END_TEST

START_TEST(superblock_never_says_what_an_error_does_to_the_node)
{
    Fixture f = setup();
    char *own[] = {(char *)"discard", (char *)"errors=continue", NULL};
    set_content(&f, "ext4");
    must(stage(&f));
    ck_assert_str_eq(f.block->mount_options, "errors=remount-ro");
    must(unstage(&f));
    f.use.fs_options = own;
    must(stage(&f));
    ck_assert_str_eq(f.block->mount_options, "errors=remount-ro,discard,errors=continue");
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

START_TEST(a_file_system_has_one_selinux_context)
{
    Fixture f = setup();
    char *first = f.staged;
    f.use.context = FILES "s0:c1,c2";
    set_content(&f, "ext4");
    must(stage(&f));
    ck_assert_str_eq(f.block->mount_options, "errors=remount-ro,context=" FILES "s0:c1,c2");
    must(publish(&f));
    expect_context(&f, f.target, FILES "s0:c1,c2");
    f.use.context = FILES "s0:c3";
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    f.staged = world_path(f.world, "second");
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    f.use.context = FILES "s0:c2,c1";
    must(stage(&f));
    expect_context(&f, f.staged, FILES "s0:c1,c2");
    must(unstage(&f));
    g_free(f.staged);
    f.staged = first;
    must(stage(&f));
    must(publish(&f));
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(what_is_built_anew_keeps_its_context)
{
    Fixture f = setup();
    f.use.context = FILES "s0:c1,c2";
    must(lose_hearthd(&f));
    f.use.context = NULL;
    must(publish(&f));
    expect_context(&f, f.staged, FILES "s0:c1,c2");
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(staged_one_way_is_not_staged_another)
{
    Fixture f = setup();
    must(stage(&f));
    f.use.block = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    f.use.block = FALSE;
    f.use.attrs |= MOUNT_ATTR_RDONLY;
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    f.use.attrs = ATTRS;
    must(unstage(&f));
    f.use.block = TRUE;
    must(stage(&f));
    f.use.block = FALSE;
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    teardown(&f);
}
END_TEST

START_TEST(second_staging_path_has_the_same_file_system)
{
    Fixture f = setup();
    must(stage(&f));
    char *first = f.staged;
    f.staged = world_path(f.world, "second");
    must(stage(&f));
    g_autoptr(MountEntry) a = world_mounted(f.world, first), b = world_mounted(f.world, f.staged);
    ck_assert_uint_eq(a->dev, b->dev);
    must(unstage(&f));
    ck_assert(world_attached(f.world, "v"));
    g_free(f.staged);
    f.staged = first;
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(device_is_writable_for_all_or_for_none)
{
    Fixture f = setup_as(TRUE);
    g_autofree char *second = world_path(f.world, "second");
    must(stage_and_publish(&f));
    must_fail(publish_at(&f, second, ATTRS | MOUNT_ATTR_RDONLY, FALSE),
              HEARTH_ERROR_FAILED_PRECONDITION);
    must_fail(publish_at(&f, second, ATTRS, TRUE), HEARTH_ERROR_FAILED_PRECONDITION);
    must_fail(publish_at(&f, f.target, ATTRS | MOUNT_ATTR_RDONLY, FALSE),
              HEARTH_ERROR_ALREADY_EXISTS);
    must(publish_at(&f, second, ATTRS, FALSE));
    g_clear_error(&f.error);
    must(staging_unpublish(f.staging, "v", second, LIMIT_MS, &f.error));
    must(unpublish(&f));
    must(publish_at(&f, f.target, ATTRS | MOUNT_ATTR_RDONLY, FALSE));
    ck_assert(f.block->loop.read_only);
    must(unpublish(&f));
    must(publish(&f));
    ck_assert(!f.block->loop.read_only);
    teardown(&f);
}
END_TEST

/* The target of pod `pod`, as kubelet calls it, with its directory. */
static char *kubelet_target(Fixture *f, gboolean block, const char *pod)
{
    char *path = block ? g_strdup_printf("%s/plugins/kubernetes.io/csi/volumeDevices/publish/pv/%s",
                                         f->world->dir, pod)
                       : g_strdup_printf("%s/pods/%s/volumes/kubernetes.io~csi/pv/mount",
                                         f->world->dir, pod);
    g_autofree char *dir = g_path_get_dirname(path);
    ck_assert_int_eq(g_mkdir_with_parents(dir, 0700), 0);
    return path;
}

START_TEST(kubelets_binds_are_no_second_publication)
{
    for (int block = 0; block <= 1; block++) {
        Fixture f = setup_as(block);
        g_autofree char *target = kubelet_target(&f, block, "one");
        g_autofree char *another = kubelet_target(&f, block, "two");
        g_autofree char *bind =
            g_strdup_printf(block ? "%s/plugins/kubernetes.io/csi/volumeDevices/pv/dev/one"
                                  : "%s/pods/one/volume-subpaths/pv/main/0",
                            f.world->dir);
        must(stage(&f));
        must(publish_at(&f, target, ATTRS, TRUE));
        world_bind(f.world, target, bind);
        must(publish_at(&f, target, ATTRS, TRUE));
        must_fail(publish_at(&f, another, ATTRS, TRUE), HEARTH_ERROR_FAILED_PRECONDITION);
        g_clear_error(&f.error);
        /* The plugin's restart loses nothing of it, nor a publication that was taken away. */
        must(staging_unpublish(f.staging, "v", target, LIMIT_MS, &f.error));
        must(publish_at(&f, target, ATTRS, TRUE));
        teardown(&f);
    }
}
END_TEST

/* Somebody's device, the number of which is ours as well. */
static void publish_another(Fixture *f, const char *path)
{
    world_mount(f->world, "devtmpfs", "udev", path);
    world_set_root(f->world, path, "/loop5");
    g_hash_table_insert(f->block->notes, g_strdup(path), g_strdup("hearth:another"));
}

START_TEST(lost_device_is_unpublished)
{
    for (int reused = 0; reused <= 1; reused++) {
        Fixture f = setup_as(TRUE);
        must(stage_and_publish(&f));
        if (reused) {
            g_free(f.block->tag);
            f.block->tag = g_strdup("hearth:another");
        } else {
            f.block->loop.number = -1;
        }
        must(unpublish(&f));
        must(unpublish(&f));
        must(unstage(&f));
        ck_assert_int_eq(f.block->loop.number, reused ? FAKE_LOOP : -1);
        f.block->loop.number = -1;
        expect_nothing(&f);
        teardown(&f);
    }
}
END_TEST

START_TEST(lost_device_without_a_note_is_unpublished)
{
    Fixture f = setup_as(TRUE);
    must(stage_and_publish(&f));
    g_hash_table_remove_all(f.block->notes);
    f.block->loop.number = -1;
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(lost_device_is_published_again)
{
    Fixture f = setup_as(TRUE);
    must(stage_and_publish(&f));
    /* Attached anew, as another device. */
    world_set_root(f.world, f.target, "/loop6");
    must(publish(&f));
    g_autoptr(MountEntry) now = world_mounted(f.world, f.target);
    ck_assert_str_eq(now->root, "/loop5");
    teardown(&f);
}
END_TEST

START_TEST(number_of_a_lost_device_is_free_for_others)
{
    for (int block = 0; block <= 1; block++) {
        Fixture f = setup_as(block);
        g_autofree char *lost = world_path(f.world, "lost");
        publish_another(&f, lost);
        must(stage(&f));
        must(publish_at(&f, f.target, ATTRS, TRUE));
        must(unpublish(&f));
        must(unstage(&f));
        fake_settle(f.block);
        ck_assert_int_lt(f.block->loop.number, 0);
        ck_assert_uint_eq(world_mounts(f.world), 1);
        world_expect_volumes(f.world, 0);
        /* hearthd's end takes nothing of others away either. */
        must(lose_hearthd(&f));
        must(stage(&f));
        g_autoptr(MountEntry) left = world_mounted(f.world, lost);
        ck_assert_ptr_nonnull(left);
        teardown(&f);
    }
}
END_TEST

START_TEST(target_of_another_volume_is_left_alone)
{
    Fixture f = setup_as(TRUE);
    publish_another(&f, f.target);
    /* Whether its device is there or not, and whether we have one or not. */
    must_fail(unpublish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    must(stage(&f));
    must_fail(unpublish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    g_autoptr(MountEntry) left = world_mounted(f.world, f.target);
    ck_assert_ptr_nonnull(left);
    teardown(&f);
}
END_TEST

START_TEST(nothing_is_asked_of_images_for_what_is_none)
{
    Fixture f = setup();
    json_t *spec =
        json_pack("{s:s, s:{s:s, s:s, s:s}, s:b, s:b}", "volume", "c", "origin", "type", "cephfs",
                  "rootPath", "/c", "userKey", "key", "cache", 1, "readOnly", 0);
    const NodeCall call = {.volume = "c",
                           .staged = f.staged,
                           .target = f.target,
                           .spec = spec,
                           .use = {.attrs = ATTRS, .group = -1},
                           .deadline = deadline_in(LIMIT_MS)};
    must(staging_stage(f.staging, &live_kind, &call, &f.error));
    must(staging_publish(f.staging, &live_kind, &call, &f.error));
    node_spec_free(spec);
    must(staging_unpublish(f.staging, "c", f.target, LIMIT_MS, &f.error));
    must(staging_unstage(f.staging, "c", f.staged, LIMIT_MS, &f.error));
    ck_assert_uint_eq(f.block->finds, 0);
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(pod_keeps_the_root_that_it_has_changed)
{
    Fixture f = setup();
    const gid_t group = getgid();
    f.use.group = group;
    must(stage_and_publish(&f));
    ck_assert_int_eq(chmod(f.staged, 0700), 0);
    must(publish(&f));
    struct stat st;
    ck_assert_int_eq(stat(f.staged, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700);
    teardown(&f);
}
END_TEST

START_TEST(growth_reaches_device_and_file_system)
{
    Fixture f = setup();
    guint64 bytes = 0;
    ck_assert(!image_kind.expand(f.staging, "v", 1, deadline_in(LIMIT_MS), &bytes, &f.error));
    ck_assert(g_error_matches(f.error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    must(stage(&f));
    g_clear_error(&f.error);
    f.world->image_bytes = 2ULL * FAKE_BYTES;
    must(image_kind.expand(f.staging, "v", 2ULL * FAKE_BYTES, deadline_in(LIMIT_MS), &bytes,
                           &f.error));
    ck_assert_uint_eq(bytes, 2ULL * FAKE_BYTES);
    ck_assert_uint_eq(f.block->grown, 1);
    ck_assert(!image_kind.expand(f.staging, "v", 3ULL * FAKE_BYTES, deadline_in(LIMIT_MS), &bytes,
                                 &f.error));
    ck_assert(g_error_matches(f.error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    must(unstage(&f));
    /* Grown while nobody had it. */
    f.block->fs_bytes = FAKE_BYTES / 2;
    must(stage(&f));
    ck_assert_uint_eq(f.block->grown, 2);
    teardown(&f);
}
END_TEST

START_TEST(what_has_grown_at_its_staging_is_expanded)
{
    Fixture f = setup();
    guint64 bytes = 0;
    f.block->no_growth = TRUE;
    f.world->image_bytes = 2ULL * FAKE_BYTES;
    set_content(&f, "ext4");
    f.block->fs_bytes = FAKE_BYTES / 2;
    must(stage(&f));
    ck_assert_uint_eq(f.block->fs_bytes, FAKE_BYTES);
    f.world->image_bytes = FAKE_BYTES;
    g_clear_error(&f.error);
    must(image_kind.expand(f.staging, "v", FAKE_BYTES, deadline_in(LIMIT_MS), &bytes, &f.error));
    ck_assert_uint_eq(f.block->grown, 1);
    /* Something is left to grow. */
    f.world->image_bytes = 2ULL * FAKE_BYTES;
    must_fail(
        image_kind.expand(f.staging, "v", FAKE_BYTES, deadline_in(LIMIT_MS), &bytes, &f.error),
        HEARTH_ERROR_FAILED_PRECONDITION);
    teardown(&f);
}
END_TEST

START_TEST(foreign_mounts_are_left_alone)
{
    Fixture f = setup();
    world_mount(f.world, "ext4", "/dev/sda1", f.staged);
    must_fail(stage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    must_fail(unstage(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_uint_eq(world_mounts(f.world), 1);
    teardown(&f);
}
END_TEST

HARNESS_MAIN("driver/node/image/image", file_system_lives_and_leaves_nothing,
             device_lives_and_leaves_nothing, file_system_goes_with_its_last_mount_in_any_order,
             stage_takes_back_a_failure_at_any_step,
             stage_of_a_device_takes_back_a_failure_at_any_step,
             publish_takes_back_a_failure_at_any_step,
             unpublish_goes_on_after_a_failure_at_any_step,
             unstage_goes_on_after_a_failure_at_any_step, what_hearthd_lost_is_built_anew_by_stage,
             what_hearthd_lost_is_built_anew_by_publish, what_hearthd_lost_is_taken_down,
             content_is_never_formatted_over, formatting_that_died_begins_anew,
             note_of_formatting_is_no_leave_to_destroy, damaged_file_system_is_not_mounted,
             reader_writes_nothing, superblock_never_says_what_an_error_does_to_the_node,
             staged_one_way_is_not_staged_another, a_file_system_has_one_selinux_context,
             what_is_built_anew_keeps_its_context, second_staging_path_has_the_same_file_system,
             device_is_writable_for_all_or_for_none, kubelets_binds_are_no_second_publication,
             lost_device_is_unpublished, lost_device_without_a_note_is_unpublished,
             lost_device_is_published_again, number_of_a_lost_device_is_free_for_others,
             target_of_another_volume_is_left_alone, nothing_is_asked_of_images_for_what_is_none,
             pod_keeps_the_root_that_it_has_changed, growth_reaches_device_and_file_system,
             what_has_grown_at_its_staging_is_expanded, foreign_mounts_are_left_alone)
