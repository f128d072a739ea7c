/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that failed begin again under another name, so that nothing late reaches them. */
#include "driver/provision/audit.h"
#include "driver/provision/provision.h"
#include "tests/unit/driver/fake_backend.h"
#include "tests/unit/harness.h"

#define PLACE .type = VOLUME_CEPHFS, .cluster_id = (char *)"c", .fs_name = (char *)"f"
#define COPY_NAME "pvc-b"

static VolumeParams params = {PLACE, .name_prefix = (char *)"p-", .cache = TRUE};
static VolumeId source = {PLACE, .group = (char *)"csi", .name = (char *)"p-a"};
static VolumeId target = {PLACE, .group = (char *)"csi", .name = (char *)"p-pvc-b"};
static BackendOps ops;

typedef struct World {
    Fake *fake;
    Backend *backend;
    Secrets secrets;
} World;
#define AT(w, id) (&(ProvisionTarget){(w)->backend, id, &(w)->secrets, G_MAXINT64})

static int make(World *w, const VolumeId *id, const ProvisionRequest *r, char **name)
{
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    g_autoptr(GError) error = NULL;
    if (!provision_create(AT(w, id), r, &record, &volume, &error))
        return error->code;
    if (name)
        *name = g_strdup(record->name);
    return 0;
}

static World world_new(void)
{
    World w = {.fake = fake_new(),
               .secrets = {.user = (char *)"u",
                           .key = (char *)"AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="}};
    ops = fake_ops;
    ops.removal_may_be_late = TRUE;
    w.backend = fake_backend(w.fake);
    w.backend->ops = &ops;
    const ProvisionRequest r = {.name = "a", .params = &params, .range = {.required = 1 << 20}};
    ck_assert_int_eq(make(&w, &source, &r, NULL), 0);
    return w;
}

/* *name is the caller's. */
static int copy(World *w, char **name)
{
    const ProvisionRequest r = {.name = COPY_NAME,
                                .params = &params,
                                .range = {.required = 1 << 20},
                                .from_volume = &source,
                                .source = "h1~cephfs~c~f~csi~p-a"};
    return make(w, &target, &r, name);
}

static int fail_copy(World *w)
{
    w->fake->copy_fails = TRUE;
    const int code = copy(w, NULL);
    w->fake->copy_fails = FALSE;
    return code;
}

static int remove_named(World *w, const char *name)
{
    VolumeId id = target;
    g_autoptr(GError) error = NULL;
    id.name = (char *)name;
    return provision_delete(AT(w, &id), &error) ? 0 : error->code;
}

static gboolean is_whole(World *w, const char *name)
{
    VolumeId id = target;
    id.name = (char *)name;
    g_autoptr(VolumeRecord) record = NULL;
    g_autoptr(BackendVolume) volume = NULL;
    return provision_look(AT(w, &id), &record, &volume, NULL) && volume->bytes > 0;
}

/* But for the source. */
static void nothing_left(World *w, int step)
{
    ck_assert_msg(g_hash_table_size(w->fake->volumes) == 1, "step %d: a volume is left", step);
    ck_assert_msg(g_hash_table_size(w->fake->records) == 1, "step %d: a record is left", step);
    ck_assert_msg(g_hash_table_size(w->fake->snapshots) == 0, "step %d: a snapshot is left", step);
}

START_TEST(a_copy_keeps_its_name_until_it_fails)
{
    World w = world_new();
    g_autofree char *plain = NULL, *moved = NULL, *same = NULL;
    ck_assert_int_eq(copy(&w, &plain), 0);
    ck_assert_str_eq(plain, target.name);
    ck_assert_int_eq(remove_named(&w, plain), 0);
    ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(copy(&w, &moved), 0);
    ck_assert(g_str_has_prefix(moved, target.name) && strcmp(moved, target.name) != 0);
    ck_assert(is_whole(&w, moved) && !is_whole(&w, target.name));
    ck_assert_int_eq(copy(&w, &same), 0);
    ck_assert_str_eq(moved, same);
    ck_assert_int_eq(remove_named(&w, moved), 0);
    nothing_left(&w, 0);
    backend_free(w.backend);
}
END_TEST

START_TEST(the_name_of_before_leads_to_the_volume)
{
    World w = world_new();
    g_autofree char *moved = NULL;
    ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
    ck_assert_int_eq(copy(&w, &moved), 0);
    g_autoptr(GError) error = NULL;
    gboolean more;
    VolumeId location = {PLACE, .group = (char *)"csi"};
    g_autoptr(GPtrArray) list = provision_list(AT(&w, &location), NULL, 10, &more, NULL);
    ck_assert_uint_eq(list->len, 2);
    const ProvisionRequest other = {
        .name = COPY_NAME, .params = &params, .range = {.required = 1 << 20}};
    ck_assert_int_eq(make(&w, &target, &other, NULL), HEARTH_ERROR_ALREADY_EXISTS);
    ck_assert_int_eq(remove_named(&w, target.name), 0);
    nothing_left(&w, 0);
    backend_free(w.backend);
}
END_TEST

START_TEST(a_source_that_is_gone_leaves_nothing)
{
    World w = world_new();
    ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
    w.fake->fail_code = HEARTH_ERROR_NOT_FOUND;
    w.fake->fail_at = 3; /* after the record, the snapshot; the copy */
    ck_assert_int_ne(copy(&w, NULL), 0);
    w.fake->fail_at = 0;
    g_autofree char *name = NULL;
    ck_assert_int_eq(copy(&w, &name), 0);
    ck_assert_int_eq(remove_named(&w, name), 0);
    nothing_left(&w, 0);
    backend_free(w.backend);
}
END_TEST

START_TEST(a_crash_at_any_step_of_a_failure_is_made_good)
{
    for (int rounds = 1; rounds <= 2; rounds++) {
        for (int after = 0; after <= 1; after++) {
            gboolean crashed = TRUE;
            int step = 1;
            for (; crashed; step++) {
                World w = world_new();
                g_autofree char *name = NULL;
                for (int i = 1; i < rounds; i++)
                    ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
                w.fake->fail_at = step;
                w.fake->fail_after = after != 0;
                fail_copy(&w);
                crashed = w.fake->fail_at == 0;
                w.fake->fail_at = 0;
                ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
                int code;
                while ((code = copy(&w, &name)) != 0)
                    ck_assert_int_eq(code, HEARTH_ERROR_INTERNAL); /* told once each */
                ck_assert(is_whole(&w, name));
                ck_assert_int_eq(remove_named(&w, name), 0);
                /* What a crash left of an attempt in between, the audit finds. */
                if (rounds == 1)
                    nothing_left(&w, step);
                backend_free(w.backend);
            }
            ck_assert_int_gt(step, 5);
        }
    }
}
END_TEST

typedef struct Meanwhile {
    World *w;
    gboolean fails_first;
    char *name;
} Meanwhile;

static void other_controller(void *data)
{
    Meanwhile *m = data;
    m->w->fake->copy_fails = FALSE;
    if (m->fails_first)
        fail_copy(m->w);
    for (int tries = 0; tries < 3 && !m->name; tries++)
        copy(m->w, &m->name);
}

/* Frozen in a call that finds its copy failed, or half made, while another makes the volume. */
static int freeze_everywhere(int failures, gboolean fails_first)
{
    int frozen_calls = 0;
    gboolean frozen = TRUE;
    for (int step = 1; frozen; step++) {
        World w = world_new();
        Meanwhile m = {.w = &w, .fails_first = fails_first};
        g_autofree char *again = NULL;
        for (int i = 1; i < failures; i++)
            ck_assert_int_eq(fail_copy(&w), HEARTH_ERROR_INTERNAL);
        w.fake->frozen_at = step;
        w.fake->meanwhile = other_controller;
        w.fake->meanwhile_data = &m;
        if (failures > 0)
            fail_copy(&w);
        else
            copy(&w, NULL);
        frozen = w.fake->frozen_at == 0;
        w.fake->frozen_at = 0;
        if (frozen && m.name) {
            frozen_calls++;
            ck_assert_msg(is_whole(&w, m.name), "step %d: %s is removed", step, m.name);
            ck_assert_int_eq(copy(&w, &again), 0);
            ck_assert_str_eq(again, m.name);
            ck_assert_int_eq(remove_named(&w, again), 0);
            nothing_left(&w, step);
        }
        g_free(m.name);
        backend_free(w.backend);
    }
    return frozen_calls;
}

START_TEST(a_failure_that_was_frozen_leaves_the_volume_of_another)
{
    for (int fails_first = 0; fails_first <= 1; fails_first++) {
        for (int failures = 0; failures <= 2; failures++)
            ck_assert_int_gt(freeze_everywhere(failures, fails_first != 0), 3);
    }
}
END_TEST

HARNESS_MAIN("driver/provision/moved", a_copy_keeps_its_name_until_it_fails,
             the_name_of_before_leads_to_the_volume, a_source_that_is_gone_leaves_nothing,
             a_crash_at_any_step_of_a_failure_is_made_good,
             a_failure_that_was_frozen_leaves_the_volume_of_another)
