/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include "driver/node/hearthd/spec.h"
#include "tests/unit/harness.h"

typedef struct Fixture {
    char *dir, *config;
    GHashTable *context, *secrets;
} Fixture;

static Fixture setup(void)
{
    Fixture f = {.dir = harness_tmpdir()};
    f.config = g_build_filename(f.dir, "config.json", NULL);
    ck_assert(g_file_set_contents(
        f.config, "[{\"clusterID\":\"c1\",\"monitors\":[\"10.0.0.1:6789\",\"10.0.0.2:6789\"]}]", -1,
        NULL));
    f.context = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_replace(f.context, "type", "cephfs");
    g_hash_table_replace(f.context, "clusterID", "c1");
    g_hash_table_replace(f.context, "fsName", "fs");
    g_hash_table_replace(f.context, "rootPath", "/volumes/csi/v");
    g_hash_table_replace(f.context, "storage.kubernetes.io/csiProvisionerIdentity", "x");
    f.secrets = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_replace(f.secrets, "userID", "u");
    g_hash_table_replace(f.secrets, "userKey", "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==");
    return f;
}

static void teardown(Fixture *f)
{
    g_hash_table_unref(f->context);
    g_hash_table_unref(f->secrets);
    g_free(f->config);
    harness_remove(f->dir);
}

static json_t *make_of(const Fixture *f, const char *volume, GHashTable *context,
                       gboolean read_only, GError **error)
{
    VolumeAttributes attributes;
    const NodeSpecSource source = {.attributes = &attributes,
                                   .secrets = f->secrets,
                                   .config_path = f->config,
                                   .read_only = read_only};
    return attributes_read(volume, context, &attributes, error) ? node_spec_new(&source, error)
                                                                : NULL;
}

static json_t *make(const Fixture *f, GError **error)
{
    return make_of(f, "v", f->context, FALSE, error);
}

static void expect_refusal(Fixture *f, int code, const char *named)
{
    g_autoptr(GError) error = NULL;
    json_t *spec = make(f, &error);
    ck_assert_ptr_null(spec);
    ck_assert_msg(g_error_matches(error, HEARTH_ERROR, code), "%d %s", error->code, error->message);
    ck_assert_msg(strstr(error->message, named) != NULL, "%s", error->message);
    ck_assert_ptr_null(strstr(error->message, "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg=="));
}

START_TEST(cephfs_has_all_it_takes_to_connect)
{
    Fixture f = setup();
    g_hash_table_replace(f.context, "cacheQuota", "10Gi");
    g_hash_table_replace(f.context, "cache", "off");
    g_autoptr(GError) error = NULL;
    json_t *spec = make_of(&f, "v", f.context, TRUE, &error);
    ck_assert_msg(spec != NULL, "%s", error ? error->message : "");
    json_t *wanted =
        json_pack("{s:s, s:b, s:b, s:I, s:{s:s, s:s, s:[s, s], s:s, s:s, s:s, s:s, s:i}}", "volume",
                  "v", "cache", 0, "readOnly", 1, "cacheQuota", (json_int_t)10 << 30, "origin",
                  "type", "cephfs", "clusterID", "c1", "monitors", "10.0.0.1:6789", "10.0.0.2:6789",
                  "fsName", "fs", "rootPath", "/volumes/csi/v", "userID", "u", "userKey",
                  "AQAAAAAAAAAAABAAMDEyMzQ1Njc4OWFiY2RlZg==", "timeoutSec", 20);
    ck_assert_ptr_nonnull(wanted);
    ck_assert(json_equal(spec, wanted));
    g_hash_table_replace(f.context, "cache", "false");
    json_t *same = make_of(&f, "v", f.context, TRUE, &error);
    ck_assert(same && json_equal(same, wanted));
    node_spec_free(same);
    json_decref(wanted);
    node_spec_free(spec);
    teardown(&f);
}
END_TEST

START_TEST(hearthd_is_told_how_to_make_its_clients)
{
    Fixture f = setup();
    ck_assert(g_file_set_contents(
        f.config,
        "[{\"clusterID\": \"c1\", \"monitors\": [\"10.0.0.1:6789\"], \"cephConf\": "
        "{\"ms_client_mode\": \"secure\", \"objecter_inflight_ops\": 64}}]",
        -1, NULL));
    json_t *spec = make(&f, NULL);
    const json_t *origin = json_object_get(spec, "origin");
    json_t *conf =
        json_pack("{s:s, s:s}", "ms_client_mode", "secure", "objecter_inflight_ops", "64");
    ck_assert(json_equal(json_object_get(origin, "cephConf"), conf));
    ck_assert_ptr_null(json_object_get(origin, "crushLocation"));
    json_decref(conf);
    node_spec_free(spec);
    ck_assert(g_file_set_contents(
        f.config,
        "[{\"clusterID\": \"c1\", \"monitors\": [\"10.0.0.1:6789\"], \"cephFS\": "
        "{\"netNamespaceFilePath\": \"/nowhere/ns\"}}]",
        -1, NULL));
    expect_refusal(&f, HEARTH_ERROR_FAILED_PRECONDITION,
                   "cluster c1: cannot enter the network namespace /nowhere/ns");
    teardown(&f);
}
END_TEST

/* They come with the PersistentVolume, which anyone with the right to make one may write. */
START_TEST(hearthd_is_told_whose_volume_it_is)
{
    Fixture f = setup();
    g_hash_table_replace(f.context, "csi.storage.k8s.io/pv/name", "pvc-1");
    g_hash_table_replace(f.context, "csi.storage.k8s.io/pvc/name", "data");
    g_hash_table_replace(f.context, "csi.storage.k8s.io/pvc/namespace", "team");
    json_t *spec = make(&f, NULL);
    const json_t *names = json_object_get(spec, "names");
    ck_assert_str_eq(json_string_value(json_object_get(names, "claim")), "team/data");
    ck_assert_str_eq(json_string_value(json_object_get(names, "persistentVolume")), "pvc-1");
    node_spec_free(spec);
    g_hash_table_replace(f.context, "csi.storage.k8s.io/pv/name", "pvc-1\n");
    g_hash_table_replace(f.context, "csi.storage.k8s.io/pvc/name", "data\"}");
    spec = make(&f, NULL);
    ck_assert_ptr_nonnull(spec);
    ck_assert_ptr_null(json_object_get(spec, "names"));
    node_spec_free(spec);
    teardown(&f);
}
END_TEST

/* As ceph-csi writes them into a PersistentVolume. */
START_TEST(attributes_of_ceph_csi_are_understood)
{
    Fixture f = setup();
    g_hash_table_remove(f.context, "type");
    g_hash_table_remove(f.context, "rootPath");
    g_hash_table_replace(f.context, "subvolumeName", "csi-vol-1");
    g_hash_table_replace(f.context, "subvolumePath", "/volumes/csi/csi-vol-1/2");
    g_hash_table_replace(f.context, "mounter", "kernel");
    g_hash_table_replace(f.context, "kernelMountOptions", "wsize=1");
    json_t *spec = make(&f, NULL);
    ck_assert_ptr_nonnull(spec);
    const json_t *origin = json_object_get(spec, "origin");
    ck_assert_str_eq(json_string_value(json_object_get(origin, "type")), "cephfs");
    ck_assert_str_eq(json_string_value(json_object_get(origin, "rootPath")),
                     "/volumes/csi/csi-vol-1/2");
    node_spec_free(spec);
    g_hash_table_replace(f.context, "encrypted", "true");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "encrypted");
    g_hash_table_remove(f.context, "encrypted");
    g_hash_table_replace(f.context, "backingSnapshotID", "0001-x");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "VolumeSnapshot");
    g_hash_table_remove(f.context, "backingSnapshotID");
    g_hash_table_replace(f.context, "staticVolume", "yes");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "staticVolume");
    teardown(&f);
}
END_TEST

START_TEST(a_dataset_says_where_it_is)
{
    Fixture f = setup();
    g_hash_table_remove(f.context, "type");
    g_hash_table_replace(f.context, "dataset", "team/imagenet@v2");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "leave one of them out");
    g_hash_table_remove(f.context, "rootPath");
    json_t *spec = make(&f, NULL);
    ck_assert_ptr_nonnull(spec);
    const json_t *origin = json_object_get(spec, "origin");
    ck_assert_str_eq(json_string_value(json_object_get(origin, "rootPath")),
                     "/volumes/team/imagenet/.snap/v2/*");
    node_spec_free(spec);
    g_hash_table_replace(f.context, "dataset", "imagenet@../../x");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "SUBVOLUME@SNAPSHOT");
    teardown(&f);
}
END_TEST

START_TEST(an_images_attributes_of_ceph_csi_are_understood)
{
    Fixture f = setup();
    g_hash_table_remove(f.context, "type");
    g_hash_table_remove(f.context, "rootPath");
    g_hash_table_remove(f.context, "fsName");
    g_hash_table_replace(f.context, "pool", "rbd");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "imageName");
    /* A static image's handle is its name. */
    g_hash_table_replace(f.context, "staticVolume", "true");
    for (int named = 0; named <= 1; named++) {
        json_t *spec = make(&f, NULL);
        ck_assert_ptr_nonnull(spec);
        const json_t *origin = json_object_get(spec, "origin");
        ck_assert_str_eq(json_string_value(json_object_get(origin, "type")), "rbd");
        ck_assert_str_eq(json_string_value(json_object_get(origin, "image")),
                         named ? "csi-vol-1" : "v");
        node_spec_free(spec);
        g_hash_table_replace(f.context, "imageName", "csi-vol-1");
    }
    teardown(&f);
}
END_TEST

START_TEST(defaults_suit_a_static_volume)
{
    Fixture f = setup();
    g_hash_table_remove(f.context, "type");
    g_hash_table_remove(f.context, "fsName");
    json_t *spec = make(&f, NULL);
    ck_assert_ptr_nonnull(spec);
    json_t *origin = json_object_get(spec, "origin");
    ck_assert_str_eq(json_string_value(json_object_get(origin, "type")), "cephfs");
    ck_assert_ptr_null(json_object_get(origin, "fsName"));
    ck_assert(json_is_true(json_object_get(spec, "cache")));
    node_spec_free(spec);
    /* An ID of ours says its type. */
    g_autoptr(GHashTable) context = g_hash_table_new(g_str_hash, g_str_equal);
    g_hash_table_replace(context, "rootPath", "/srv/v");
    spec = make_of(&f, "h1~dir~v", context, FALSE, NULL);
    ck_assert_ptr_nonnull(spec);
    origin = json_object_get(spec, "origin");
    ck_assert_str_eq(json_string_value(json_object_get(origin, "type")), "dir");
    ck_assert_ptr_null(json_object_get(origin, "userKey"));
    node_spec_free(spec);
    teardown(&f);
}
END_TEST

START_TEST(what_is_missing_or_wrong_is_named)
{
    static const struct {
        const char *key;
        char *value; /* NULL: absent */
        const char *named;
    } rows[] = {
        {"type", "nfs", "nfs"},
        {"clusterID", NULL, "clusterID"},
        {"clusterID", "c2", "c2"},
        {"rootPath", NULL, "rootPath"},
        {"rootPath", "volumes/v", "absolute"},
        {"rootPath", "/volumes/../v", "rootPath"},
        {"cache", "maybe", "maybe"},
        {"cacheQuota", "10 GB", "10 GB"},
        {"readTimeout", "10 days", "10 days"},
        {"fsName", "\xff", "UTF-8"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        Fixture f = setup();
        g_hash_table_remove(f.context, rows[i].key);
        if (rows[i].value)
            g_hash_table_replace(f.context, (char *)rows[i].key, rows[i].value);
        expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, rows[i].named);
        teardown(&f);
    }
    Fixture f = setup();
    g_hash_table_remove(f.secrets, "userID");
    expect_refusal(&f, HEARTH_ERROR_INVALID_ARGUMENT, "userID");
    ck_assert_int_eq(unlink(f.config), 0);
    expect_refusal(&f, HEARTH_ERROR_FAILED_PRECONDITION, "config.json");
    teardown(&f);
}
END_TEST

START_TEST(same_volume_ignores_how_it_is_reached)
{
    Fixture f = setup();
    json_t *a = make(&f, NULL);
    g_hash_table_replace(f.secrets, "userKey", "AQAAAAAAAAAAABAAZmVkY2JhOTg3NjU0MzIxMA==");
    ck_assert(g_file_set_contents(
        f.config, "[{\"clusterID\":\"c1\",\"monitors\":[\"10.0.0.9:6789\"]}]", -1, NULL));
    json_t *b = make(&f, NULL);
    ck_assert(node_spec_same_volume(a, b));
    node_spec_free(b);
    static const char *const differ[][2] = {
        {"rootPath", "/w"}, {"fsName", "fs2"}, {"cache", "off"}};
    for (guint i = 0; i < G_N_ELEMENTS(differ); i++) {
        g_autoptr(GHashTable) context = g_hash_table_new(g_str_hash, g_str_equal);
        GHashTableIter iter;
        gpointer key, value;
        g_hash_table_iter_init(&iter, f.context);
        while (g_hash_table_iter_next(&iter, &key, &value))
            g_hash_table_insert(context, key, value);
        g_hash_table_replace(context, (char *)differ[i][0], (char *)differ[i][1]);
        b = make_of(&f, "v", context, FALSE, NULL);
        ck_assert_ptr_nonnull(b);
        ck_assert_msg(!node_spec_same_volume(a, b), "%s", differ[i][0]);
        ck_assert_msg(!node_spec_same_volume(b, a), "%s", differ[i][0]);
        node_spec_free(b);
    }
    /* A quota may change; the newer one is taken over. */
    g_hash_table_replace(f.context, "cacheQuota", "1Gi");
    b = make(&f, NULL);
    ck_assert(node_spec_same_volume(a, b));
    ck_assert(node_spec_update(a, b));
    ck_assert(!node_spec_update(a, b));
    ck_assert_int_eq(json_integer_value(json_object_get(a, "cacheQuota")), 1 << 30);
    ck_assert(node_spec_same_reads(a, b));
    node_spec_free(b);
    /* It says nothing of a volume that can change. */
    g_hash_table_replace(f.context, "readTimeout", "5m");
    b = make(&f, NULL);
    ck_assert_ptr_null(json_object_get(b, "readTimeoutSec"));
    node_spec_free(b);
    /* Reads that wait otherwise are of the same volume. */
    g_hash_table_replace(f.context, "backingSnapshot", "true");
    b = make(&f, NULL);
    ck_assert_int_eq(json_integer_value(json_object_get(b, "readTimeoutSec")), 300);
    ck_assert(node_spec_same_volume(a, b));
    ck_assert(node_spec_same_authority(a, b));
    ck_assert(!node_spec_same_reads(a, b));
    node_spec_free(b);
    node_spec_free(a);
    teardown(&f);
}
END_TEST

START_TEST(quantities)
{
    gint64 n;
    ck_assert(node_spec_parse_quantity("0", &n) && n == 0);
    ck_assert(node_spec_parse_quantity("1048576", &n) && n == 1048576);
    ck_assert(node_spec_parse_quantity("2k", &n) && n == 2000);
    ck_assert(node_spec_parse_quantity("3Ti", &n) && n == 3LL << 40);
    static const char *const bad[] = {"",         "-1",   "1.5Gi", "Gi",  "1gi",
                                      "1 M",      "0x10", "+1",    "1e3", "99999999999999999999",
                                      "9999999Pi"};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(!node_spec_parse_quantity(bad[i], &n), "accepted: %s", bad[i]);
}
END_TEST

HARNESS_MAIN("driver/node/hearthd/spec", cephfs_has_all_it_takes_to_connect,
             hearthd_is_told_how_to_make_its_clients, hearthd_is_told_whose_volume_it_is,
             attributes_of_ceph_csi_are_understood, a_dataset_says_where_it_is,
             an_images_attributes_of_ceph_csi_are_understood, defaults_suit_a_static_volume,
             what_is_missing_or_wrong_is_named, same_volume_ignores_how_it_is_reached, quantities)
