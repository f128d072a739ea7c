/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/dataset/dataset.h"
#include "driver/node/hearthd/hearthd.h"
#include "driver/node/hearthd/spec.h"
#include "driver/node/image/image.h"
#include "driver/node/staging.h"
#include "tests/unit/driver/node/fake_block.h"
#include "tests/unit/driver/node/fake_layers.h"

#define ATTRS (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_RDONLY)
#define LIMIT_MS 10000
#define DATASET "0123456789abcdef0123456789abcdef"
#define SHARED "dataset-" DATASET

typedef struct Fixture {
    World *world;
    FakeBlock *block;
    FakeLayers *layers;
    Staging *staging;
    char *devices, *staged, *target;
    gint64 group;        /* that a claim is staged for; -1: none */
    int read_timeout;    /* s, of its class; 0: none */
    const char *context; /* that is asked for */
    GError *error;
} Fixture;

static void start_refreshing(Fixture *f, unsigned refresh_ms)
{
    f->staging = staging_new(&f->world->base, f->world->socket_path, 600);
    image_init(f->staging, &f->block->base, f->devices);
    dataset_init(f->staging, &f->layers->base, refresh_ms);
}

static void start_staging(Fixture *f)
{
    start_refreshing(f, DATASET_REFRESH_MS);
}

static Fixture setup(void)
{
    Fixture f = {.world = world_new(), .group = -1};
    f.world->dataset = DATASET;
    f.block = fake_block_new(f.world);
    f.layers = fake_layers_new(f.world);
    f.devices = world_path(f.world, "devices");
    f.staged = world_path(f.world, "staged");
    f.target = world_path(f.world, "target");
    start_staging(&f);
    return f;
}

static void teardown(Fixture *f)
{
    g_clear_error(&f->error);
    staging_free(f->staging);
    fake_block_free(f->block);
    g_free(f->layers);
    world_free(f->world);
    g_free(f->devices);
    g_free(f->staged);
    g_free(f->target);
}

static gboolean stage_with(Fixture *f, const char *volume, const char *root, const char *path,
                           const char *user, const char *key)
{
    json_t *spec = json_pack("{s:s, s:{s:s, s:s, s:s, s:s}, s:b, s:b}", "volume", volume, "origin",
                             "type", "cephfs", "rootPath", root, "userID", user, "userKey", key,
                             "cache", 1, "readOnly", 1);
    if (f->read_timeout)
        json_object_set_new(spec, "readTimeoutSec", json_integer(f->read_timeout));
    if (f->group >= 0)
        json_object_set_new(spec, "mountGroup", json_integer(f->group));
    g_clear_error(&f->error);
    const NodeCall call = {.volume = volume,
                           .staged = path,
                           .spec = spec,
                           .use = {.attrs = ATTRS, .context = f->context, .group = f->group},
                           .deadline = deadline_in(LIMIT_MS)};
    gboolean done = staging_stage(f->staging, &dataset_kind, &call, &f->error);
    node_spec_free(spec);
    ck_assert(done == (f->error == NULL));
    return done;
}

static gboolean stage_as(Fixture *f, const char *volume, const char *root, const char *path)
{
    return stage_with(f, volume, root, path, "user", "key");
}

static gboolean stage(Fixture *f)
{
    return stage_as(f, "v", "/snap", f->staged);
}

static gboolean unstage_as(Fixture *f, const char *volume, const char *path)
{
    g_clear_error(&f->error);
    return staging_unstage(f->staging, volume, path, LIMIT_MS, &f->error);
}

static gboolean unstage(Fixture *f)
{
    return unstage_as(f, "v", f->staged);
}

static gboolean publish_for(Fixture *f, const char *target, gint64 group)
{
    g_clear_error(&f->error);
    const NodeCall call = {.volume = "v",
                           .staged = f->staged,
                           .target = target,
                           .use = {.attrs = ATTRS, .context = f->context, .group = group},
                           .deadline = deadline_in(LIMIT_MS)};
    return staging_publish(f->staging, &dataset_kind, &call, &f->error);
}

static gboolean publish(Fixture *f)
{
    return publish_for(f, f->target, -1);
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

static unsigned files_in(const char *path)
{
    unsigned n = 0;
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    while (dir && g_dir_read_name(dir))
        n++;
    return n;
}

static void expect_nothing(Fixture *f)
{
    ck_assert_uint_eq(world_mounts(f->world), 0);
    ck_assert_uint_eq(files_in(f->devices), 0);
    world_expect_volumes(f->world, 0);
    world_expect_all_closed(f->world);
}

static char *layer(Fixture *f, unsigned generation, const char *name)
{
    return g_strdup_printf("%s/" DATASET ".%u.%s", f->devices, generation, name);
}

static void expect_type(Fixture *f, const char *path, const char *type)
{
    g_autoptr(MountEntry) e = world_mounted(f->world, path);
    ck_assert_msg(e != NULL, "nothing at %s", path);
    ck_assert_str_eq(e->type, type);
}

START_TEST(a_snapshot_is_mounted_as_a_stack)
{
    Fixture f = setup();
    g_autofree char *fill = layer(&f, 1, "fill"), *manifest = layer(&f, 1, "manifest");
    must(stage(&f));
    g_autoptr(MountEntry) staged = world_mounted(f.world, f.staged);
    ck_assert_str_eq(staged->type, "overlay");
    ck_assert_str_eq(staged->source, "hearth:v");
    expect_type(&f, fill, MOUNT_TYPE);
    expect_type(&f, manifest, "erofs");
    ck_assert(world_attached(f.world, SHARED));
    world_expect_volumes(f.world, 1); /* the claim's own is closed */
    must(publish(&f));
    g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
    ck_assert_uint_eq(target->dev, staged->dev);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(every_call_may_be_repeated)
{
    Fixture f = setup();
    must(unstage(&f));
    must(stage(&f));
    must(stage(&f));
    must(publish(&f));
    must(publish(&f));
    ck_assert_uint_eq(f.layers->stacks, 1);
    ck_assert_uint_eq(f.world->attaches, 1);
    must(unpublish(&f));
    must(unpublish(&f));
    must(unstage(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(claims_of_a_dataset_share_its_layers)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second"), *fill = layer(&f, 1, "fill");
    must(stage(&f));
    must(stage_as(&f, "w", "/snap", second));
    ck_assert_uint_eq(f.layers->stacks, 2);
    ck_assert_uint_eq(f.layers->manifests, 1);
    ck_assert_uint_eq(f.world->attaches, 1);
    ck_assert_uint_eq(world_mounts(f.world), 4);
    must(unstage(&f));
    expect_type(&f, fill, MOUNT_TYPE);
    ck_assert(world_attached(f.world, SHARED));
    must(unstage_as(&f, "w", second));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(another_user_or_key_has_layers_of_its_own)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second"), *third = world_path(f.world, "third"),
                    *fourth = world_path(f.world, "fourth");
    must(stage(&f));
    must(stage_with(&f, "w", "/snap", second, "user", "other-key"));
    must(stage_with(&f, "x", "/snap", third, "other-user", "key"));
    must(stage_with(&f, "y", "/snap", fourth, "user", "other-key"));
    ck_assert_uint_eq(f.layers->stacks, 4);
    ck_assert_uint_eq(f.world->attaches, 3);
    ck_assert(world_attached(f.world, SHARED) && world_attached(f.world, SHARED "-2") &&
              world_attached(f.world, SHARED "-3"));
    /* What is staged is found again, by a restarted node plugin too. */
    staging_free(f.staging);
    start_staging(&f);
    must(stage_with(&f, "w", "/snap", second, "user", "other-key"));
    ck_assert_uint_eq(f.layers->stacks, 4);
    must(unstage_as(&f, "w", second));
    ck_assert(world_attached(f.world, SHARED "-2"));
    must(unstage_as(&f, "y", fourth));
    ck_assert(!world_attached(f.world, SHARED "-2"));
    must(unstage(&f));
    must(unstage_as(&f, "x", third));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

/* And takes nothing over from the others. */
START_TEST(claims_whose_reads_wait_otherwise_have_layers_of_their_own)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second"), *third = world_path(f.world, "third");
    must(stage(&f));
    f.read_timeout = 30;
    must(stage_as(&f, "w", "/snap", second));
    ck_assert_uint_eq(f.world->attaches, 2);
    ck_assert(world_attached(f.world, SHARED) && world_attached(f.world, SHARED "-2"));
    must(stage_as(&f, "x", "/snap", third));
    ck_assert_uint_eq(f.world->attaches, 2);
    must(unstage_as(&f, "w", second));
    ck_assert(world_attached(f.world, SHARED "-2"));
    must(unstage_as(&f, "x", third));
    ck_assert(!world_attached(f.world, SHARED "-2"));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_publication_keeps_the_layers)
{
    Fixture f = setup();
    must(stage(&f));
    must(publish(&f));
    must(unstage(&f));
    ck_assert(world_attached(f.world, SHARED));
    must(unpublish(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(another_dataset_at_the_path_is_refused)
{
    Fixture f = setup();
    must(stage(&f));
    /* Another way of saying the same. */
    must(stage_as(&f, "v", "/same", f.staged));
    f.world->dataset = "ffffffffffffffffffffffffffffffff";
    must_fail(stage_as(&f, "v", "/other", f.staged), HEARTH_ERROR_ALREADY_EXISTS);
    must_fail(stage_as(&f, "w", "/snap", f.staged), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "volume v"));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_build_is_waited_for_over_calls)
{
    Fixture f = setup();
    f.world->building = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_ABORTED);
    ck_assert_ptr_nonnull(strstr(f.error->message, "1,234,567 files so far"));
    world_expect_volumes(f.world, 1); /* stays open, or hearthd would build no further */
    must_fail(stage(&f), HEARTH_ERROR_ABORTED);
    world_expect_volumes(f.world, 1);
    f.world->building = FALSE;
    must(stage(&f));
    expect_type(&f, f.staged, "overlay");
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(unstaging_gives_a_build_up)
{
    Fixture f = setup();
    f.world->building = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_ABORTED);
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_build_goes_on_with_another_hearthd)
{
    Fixture f = setup();
    f.world->building = TRUE;
    must_fail(stage(&f), HEARTH_ERROR_ABORTED);
    world_kill_hearthd(f.world);
    world_start_hearthd(f.world);
    must_fail(stage(&f), HEARTH_ERROR_ABORTED);
    f.world->building = FALSE;
    must(stage(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

/* Whatever refuses, files are served. */
static void expect_session(Fixture *f)
{
    ck_assert_msg(stage(f), "%s", f->error ? f->error->message : "");
    expect_type(f, f->staged, MOUNT_TYPE);
    ck_assert(world_attached(f->world, "v"));
    ck_assert_uint_eq(world_mounts(f->world), 1);
    ck_assert(publish(f));
    ck_assert(stage(f));
    ck_assert(unpublish(f));
    ck_assert(unstage(f));
    expect_nothing(f);
    teardown(f);
}

START_TEST(without_a_manifest_a_session_serves_it)
{
    Fixture f = setup();
    f.world->dataset = NULL;
    expect_session(&f);
}
END_TEST

START_TEST(what_the_kernel_cannot_a_session_serves)
{
    for (int i = 0; i < 4; i++) {
        Fixture f = setup();
        f.layers->base.usable = i != 0;
        f.layers->refuse_manifest = i == 1;
        f.layers->refuse_stack = i == 2;
        f.layers->holes = i == 3;
        expect_session(&f);
    }
}
END_TEST

START_TEST(a_session_that_is_staged_stays)
{
    Fixture f = setup();
    f.layers->refuse_stack = TRUE;
    must(stage(&f));
    f.layers->refuse_stack = FALSE;
    must(stage(&f));
    expect_type(&f, f.staged, MOUNT_TYPE);
    must(unstage(&f));
    must(stage(&f));
    expect_type(&f, f.staged, "overlay");
    teardown(&f);
}
END_TEST

START_TEST(a_group_that_may_not_read_all_gets_a_session)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    must(stage(&f));
    must(publish(&f));
    must_fail(publish_for(&f, second, 100), HEARTH_ERROR_FAILED_PRECONDITION);
    ck_assert_ptr_nonnull(strstr(f.error->message, "fsGroup"));
    must(unpublish(&f));
    must(publish_for(&f, f.target, 100));
    expect_type(&f, f.staged, MOUNT_TYPE);
    expect_type(&f, f.target, MOUNT_TYPE);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    f.group = 100;
    must(stage(&f));
    expect_type(&f, f.staged, MOUNT_TYPE);
    must(unstage(&f));
    f.world->readable = TRUE;
    must(stage(&f));
    expect_type(&f, f.staged, "overlay");
    must(publish_for(&f, f.target, 200));
    expect_type(&f, f.target, "overlay");
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(usage_is_the_datasets)
{
    Fixture f = setup();
    struct statvfs st;
    must(stage(&f));
    must(staging_statvfs(f.staging, "v", f.staged, LIMIT_MS, &st, &f.error));
    ck_assert_uint_eq(st.f_blocks * st.f_frsize, 4096000);
    ck_assert_uint_eq(st.f_files, 1234570);
    ck_assert_uint_eq(st.f_bavail, 0);
    teardown(&f);
}
END_TEST

static void expect_refreshes(Fixture *f, unsigned n)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WORLD_WAIT_MS / 1000;
    pthread_mutex_lock(&f->world->lock);
    while (f->layers->refreshed < n)
        ck_assert_int_eq(pthread_cond_timedwait(&f->world->changed, &f->world->lock, &deadline), 0);
    pthread_mutex_unlock(&f->world->lock);
}

static void expect_closed(Fixture *f, dev_t dev)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WORLD_WAIT_MS / 1000;
    pthread_mutex_lock(&f->world->lock);
    while (f->layers->closed != dev)
        ck_assert_int_eq(pthread_cond_timedwait(&f->world->changed, &f->world->lock, &deadline), 0);
    pthread_mutex_unlock(&f->world->lock);
}

static void set_refused(Fixture *f, const char *volume)
{
    pthread_mutex_lock(&f->world->lock);
    f->world->refused = volume;
    pthread_mutex_unlock(&f->world->lock);
}

START_TEST(what_ceph_has_refused_is_closed)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    staging_free(f.staging);
    start_refreshing(&f, 5);
    must(stage(&f));
    must(stage_with(&f, "w", "/snap", second, "user", "other-key"));
    g_autoptr(MountEntry) one = world_mounted(f.world, f.staged),
                          two = world_mounted(f.world, second);
    set_refused(&f, SHARED "-2");
    expect_closed(&f, two->dev);
    set_refused(&f, SHARED);
    expect_closed(&f, one->dev);
    set_refused(&f, NULL);
    expect_closed(&f, 0);
    teardown(&f);
}
END_TEST

START_TEST(what_was_fetched_is_looked_for_again)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    must(stage(&f));
    must(publish(&f));
    must(stage_as(&f, "w", "/snap", second));
    staging_free(f.staging);
    start_refreshing(&f, 5);
    /* Two stacks, one of them bound twice; at first nothing is known of what was before. */
    expect_refreshes(&f, 2);
    pthread_mutex_lock(&f.world->lock);
    f.world->bytes_fill = 1;
    f.world->objects = 2;
    pthread_mutex_unlock(&f.world->lock);
    expect_refreshes(&f, 4);
    pthread_mutex_lock(&f.world->lock);
    f.world->objects = 1; /* evicted */
    pthread_mutex_unlock(&f.world->lock);
    expect_refreshes(&f, 6);
    must(unpublish(&f));
    must(unstage(&f));
    must(unstage_as(&f, "w", second));
    ck_assert_uint_eq(f.layers->refreshed, 6);
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

/* ---- hearthd dies ---- */

static gboolean stage_and_publish(Fixture *f)
{
    return stage(f) && publish(f);
}

static gboolean lose_hearthd(Fixture *f)
{
    if (!stage_and_publish(f))
        return FALSE;
    world_kill_hearthd(f->world);
    world_expect_all_closed(f->world);
    world_start_hearthd(f->world);
    return TRUE;
}

/* The fill layer's descriptor is kept, so its readers wait. */
static gboolean restart_hearthd(Fixture *f)
{
    if (!stage_and_publish(f))
        return FALSE;
    world_kill_hearthd(f->world);
    world_start_hearthd(f->world);
    return TRUE;
}

static void expect_first_layer_served(Fixture *f)
{
    g_autofree char *second = world_path(f->world, "second"), *first = layer(f, 1, "fill"),
                    *next = layer(f, 2, "fill");
    ck_assert_msg(publish_for(f, second, -1), "%s", f->error ? f->error->message : "");
    g_autoptr(MountEntry) a = world_mounted(f->world, f->target);
    g_autoptr(MountEntry) b = world_mounted(f->world, second);
    ck_assert_uint_eq(a->dev, b->dev);
    expect_type(f, first, MOUNT_TYPE);
    ck_assert(!g_file_test(next, G_FILE_TEST_EXISTS));
    ck_assert(staging_unpublish(f->staging, "v", second, LIMIT_MS, &f->error));
}

START_TEST(the_next_hearthd_serves_the_layers_again)
{
    Fixture f = setup();
    f.world->note = "a note";
    must(restart_hearthd(&f));
    expect_first_layer_served(&f);
    ck_assert_uint_eq(f.world->served_again, 1);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(also_after_a_restart_of_the_plugin)
{
    Fixture f = setup();
    f.world->note = "a note";
    must(stage_and_publish(&f));
    staging_free(f.staging);
    start_staging(&f);
    while (!staging_waits(f.staging, "dataset-" DATASET)) /* until it is fetched */
        g_usleep(1000);
    world_kill_hearthd(f.world);
    world_start_hearthd(f.world);
    expect_first_layer_served(&f);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(what_the_next_hearthd_refuses_is_mounted_anew)
{
    Fixture f = setup();
    g_autofree char *first = layer(&f, 1, "fill"), *next = layer(&f, 2, "fill");
    f.world->note = "a note";
    f.world->refuses_note = TRUE;
    must(restart_hearthd(&f));
    must(publish(&f));
    expect_type(&f, next, MOUNT_TYPE);
    ck_assert(!g_file_test(first, G_FILE_TEST_EXISTS));
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(layers_that_wait_can_go)
{
    Fixture f = setup();
    f.world->note = "a note";
    must(stage_and_publish(&f));
    world_kill_hearthd(f.world);
    must(unpublish(&f));
    must(unstage(&f));
    world_start_hearthd(f.world);
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(publish_mounts_anew_what_hearthd_lost)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second"), *old = layer(&f, 1, "fill"),
                    *new = layer(&f, 2, "fill");
    must(lose_hearthd(&f));
    g_clear_error(&f.error);
    must(publish_for(&f, second, -1));
    g_autoptr(MountEntry) staged = world_mounted(f.world, f.staged);
    g_autoptr(MountEntry) target = world_mounted(f.world, second);
    g_autoptr(MountEntry) before = world_mounted(f.world, f.target);
    ck_assert_uint_eq(staged->dev, target->dev);
    /* Who has the old one reads from it what the node holds. */
    ck_assert_uint_ne(before->dev, staged->dev);
    expect_type(&f, new, MOUNT_TYPE);
    ck_assert(!g_file_test(old, G_FILE_TEST_EXISTS));
    must(publish(&f));
    g_autoptr(MountEntry) after = world_mounted(f.world, f.target);
    ck_assert_uint_eq(after->dev, staged->dev);
    must(staging_unpublish(f.staging, "v", second, LIMIT_MS, &f.error));
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
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

START_TEST(each_claim_has_its_selinux_context_over_layers_that_have_none)
{
    Fixture f = setup();
    g_autofree char *fill = layer(&f, 1, "fill"), *manifest = layer(&f, 1, "manifest");
    g_autofree char *second = world_path(f.world, "second");
    f.context = FILES "s0:c1,c2";
    must(stage(&f));
    f.context = FILES "s0:c3,c4";
    must(stage_as(&f, "w", "/snap", second));
    expect_context(&f, f.staged, FILES "s0:c1,c2");
    expect_context(&f, second, FILES "s0:c3,c4");
    expect_context(&f, fill, NULL);
    expect_context(&f, manifest, NULL);
    must_fail(stage(&f), HEARTH_ERROR_ALREADY_EXISTS);
    must_fail(publish(&f), HEARTH_ERROR_FAILED_PRECONDITION);
    f.context = FILES "s0:c2,c1";
    must(stage(&f));
    must(publish(&f));
    expect_context(&f, f.target, FILES "s0:c1,c2");
    must(unpublish(&f));
    must(unstage(&f));
    must(unstage_as(&f, "w", second));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(a_session_in_place_of_a_stack_has_the_context)
{
    Fixture f = setup();
    f.layers->refuse_stack = TRUE;
    f.context = FILES "s0:c1,c2";
    must(stage(&f));
    expect_type(&f, f.staged, MOUNT_TYPE);
    expect_context(&f, f.staged, FILES "s0:c1,c2");
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(what_is_mounted_anew_keeps_its_context)
{
    Fixture f = setup();
    f.context = FILES "s0:c1,c2";
    must(lose_hearthd(&f));
    f.context = NULL;
    must(publish(&f));
    expect_context(&f, f.staged, FILES "s0:c1,c2");
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(claims_find_what_another_mounted_anew)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    must(stage_as(&f, "w", "/snap", second));
    must(lose_hearthd(&f));
    must(stage(&f));
    must(stage_as(&f, "w", "/snap", second));
    ck_assert_uint_eq(f.world->attaches, 2);
    ck_assert_uint_eq(f.layers->manifests, 2);
    must(unpublish(&f));
    must(unstage(&f));
    must(unstage_as(&f, "w", second));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(while_it_cannot_be_mounted_anew_the_old_stays)
{
    Fixture f = setup();
    g_autofree char *second = world_path(f.world, "second");
    must(lose_hearthd(&f));
    for (unsigned n = 1;; n++) {
        ck_assert_uint_lt(n, 60);
        world_fail_at(f.world, n, FAULT_ERROR);
        gboolean done = publish_for(&f, second, -1), failed = world_failed(f.world);
        world_fail_at(f.world, 0, FAULT_ERROR);
        if (!failed) {
            must(done);
            break;
        }
        if (done) { /* what failed was not needed */
            must(staging_unpublish(f.staging, "v", second, LIMIT_MS, &f.error));
            must(stage(&f));
            break;
        }
        g_autoptr(MountEntry) target = world_mounted(f.world, f.target);
        ck_assert_ptr_nonnull(target);
        /* Between the old and the new there is a moment without one. */
        g_autoptr(MountEntry) staged = world_mounted(f.world, f.staged);
        if (!staged)
            must(stage(&f));
    }
    must(publish(&f));
    must(staging_unpublish(f.staging, "v", second, LIMIT_MS, NULL));
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

START_TEST(without_hearthd_all_can_go)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    world_kill_hearthd(f.world);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

/* ---- failures and restarts ---- */

static void fail_everywhere(gboolean (*before)(Fixture *), gboolean (*call)(Fixture *),
                            gboolean must_leave_nothing)
{
    for (Fault fault = FAULT_ERROR; fault <= FAULT_LOST_REPLY; fault++) {
        for (unsigned n = 1;; n++) {
            ck_assert_uint_lt(n, 80);
            Fixture f = setup();
            if (before)
                must(before(&f));
            unsigned mounts = world_mounts(f.world);
            world_fail_at(f.world, n, fault);
            gboolean done = call(&f), failed = world_failed(f.world);
            world_fail_at(f.world, 0, fault);
            if (!failed) {
                must(done);
                ck_assert_uint_ge(n, 3);
                teardown(&f);
                break;
            }
            if (!done && must_leave_nothing) {
                ck_assert_uint_eq(world_mounts(f.world), mounts);
                if (mounts == 0)
                    expect_nothing(&f);
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

/* As a crash leaves it: the first n of what is mounted, in the order it is made. */
START_TEST(a_crash_at_any_step_is_continued_or_removed)
{
    for (int claimed = 0; claimed < 2; claimed++) {
        for (unsigned n = 1; n <= 4; n++) {
            Fixture f = setup();
            g_autofree char *fill = layer(&f, 1, "fill"), *manifest = layer(&f, 1, "manifest");
            must(stage(&f));
            ck_assert(world_unmount(&f.world->base, f.staged, FALSE, 0, NULL));
            if (n < 4)
                ck_assert(world_unmount(&f.world->base, manifest, FALSE, 0, NULL));
            if (n < 3)
                ck_assert_int_eq(rmdir(manifest), 0);
            if (n < 2)
                ck_assert(world_unmount(&f.world->base, fill, FALSE, 0, NULL));
            staging_free(f.staging);
            start_staging(&f);
            if (claimed) {
                must(stage(&f));
                expect_type(&f, f.staged, "overlay");
            }
            must(unstage(&f));
            expect_nothing(&f);
            teardown(&f);
        }
    }
}
END_TEST

START_TEST(a_restarted_node_plugin_goes_on)
{
    Fixture f = setup();
    must(stage_and_publish(&f));
    staging_free(f.staging);
    start_staging(&f);
    must(stage(&f));
    must(publish(&f));
    ck_assert_uint_eq(f.layers->stacks, 1);
    ck_assert_uint_eq(f.world->attaches, 1);
    world_kill_hearthd(f.world);
    world_expect_all_closed(f.world);
    world_start_hearthd(f.world);
    must(publish(&f));
    ck_assert_uint_eq(f.layers->stacks, 2);
    must(unpublish(&f));
    must(unstage(&f));
    expect_nothing(&f);
    teardown(&f);
}
END_TEST

typedef struct Second {
    Fixture *fixture;
    char *path;
    gboolean done;
} Second;

static void *stage_second(void *data)
{
    Second *second = data;
    Fixture f = *second->fixture;
    f.error = NULL;
    second->done = stage_as(&f, "w", "/snap", second->path);
    g_clear_error(&f.error);
    return NULL;
}

START_TEST(claims_staged_at_once_wait_for_each_other)
{
    Fixture f = setup();
    Second second = {&f, world_path(f.world, "second"), FALSE};
    pthread_t thread;
    pthread_mutex_lock(&f.world->lock);
    f.world->hold_mount = TRUE;
    pthread_mutex_unlock(&f.world->lock);
    ck_assert_int_eq(pthread_create(&thread, NULL, stage_second, &second), 0);
    pthread_mutex_lock(&f.world->lock);
    while (!f.world->holding)
        pthread_cond_wait(&f.world->changed, &f.world->lock);
    f.world->hold_mount = FALSE;
    pthread_cond_broadcast(&f.world->changed);
    pthread_mutex_unlock(&f.world->lock);
    must(stage(&f));
    pthread_join(thread, NULL);
    ck_assert(second.done);
    ck_assert_uint_eq(f.world->attaches, 1);
    must(unstage(&f));
    must(unstage_as(&f, "w", second.path));
    expect_nothing(&f);
    g_free(second.path);
    teardown(&f);
}
END_TEST

HARNESS_MAIN("driver/node/dataset/dataset", a_snapshot_is_mounted_as_a_stack,
             every_call_may_be_repeated, claims_of_a_dataset_share_its_layers,
             another_user_or_key_has_layers_of_its_own,
             claims_whose_reads_wait_otherwise_have_layers_of_their_own,
             what_ceph_has_refused_is_closed, a_publication_keeps_the_layers,
             another_dataset_at_the_path_is_refused, a_build_is_waited_for_over_calls,
             unstaging_gives_a_build_up, a_build_goes_on_with_another_hearthd,
             without_a_manifest_a_session_serves_it, what_the_kernel_cannot_a_session_serves,
             a_session_that_is_staged_stays, a_group_that_may_not_read_all_gets_a_session,
             usage_is_the_datasets, what_was_fetched_is_looked_for_again,
             publish_mounts_anew_what_hearthd_lost, the_next_hearthd_serves_the_layers_again,
             also_after_a_restart_of_the_plugin, what_the_next_hearthd_refuses_is_mounted_anew,
             layers_that_wait_can_go, each_claim_has_its_selinux_context_over_layers_that_have_none,
             a_session_in_place_of_a_stack_has_the_context, what_is_mounted_anew_keeps_its_context,
             claims_find_what_another_mounted_anew, while_it_cannot_be_mounted_anew_the_old_stays,
             without_hearthd_all_can_go, stage_takes_back_a_failure_at_any_step,
             publish_takes_back_a_failure_at_any_step,
             unpublish_continues_after_a_failure_at_any_step,
             unstage_continues_after_a_failure_at_any_step,
             a_crash_at_any_step_is_continued_or_removed, a_restarted_node_plugin_goes_on,
             claims_staged_at_once_wait_for_each_other)
