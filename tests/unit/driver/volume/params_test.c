/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/params.h"
#include <string.h>
#include "tests/unit/harness.h"

/* "name=value" strings, ending with NULL. */
static GHashTable *table(const char *const *pairs)
{
    GHashTable *map = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (; *pairs; pairs++) {
        char **parts = g_strsplit(*pairs, "=", 2);
        g_hash_table_insert(map, parts[0], parts[1]);
        g_free(parts);
    }
    return map;
}

static VolumeParams *parse(GError **error, const char *const *pairs)
{
    g_autoptr(GHashTable) map = table(pairs);
    return params_parse(map, error);
}
#define PARSE(error, ...) parse(error, (const char *const[]){__VA_ARGS__, NULL})

/* Adds a valid rest; checks the code; the message is the caller's. */
static char *refusal(const char *pair)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeParams) params = PARSE(&error, "clusterID=c", "fsName=f", pair);
    ck_assert_msg(!params, "%s was taken", pair);
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert(g_utf8_validate(error->message, -1, NULL));
    return g_strdup(error->message);
}

static void refuses_image(const char *pair, const char *because)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeParams) params = PARSE(&error, "type=rbd", "clusterID=c", "pool=p", pair);
    ck_assert_msg(!params, "%s was taken", pair);
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_msg(strstr(error->message, because) != NULL, "%s: %s", pair, error->message);
}

static void refuses(const char *pair, const char *because)
{
    g_autofree char *message = refusal(pair);
    ck_assert_msg(strstr(message, because) != NULL, "%s: %s", pair, message);
}

START_TEST(takes_a_class_of_ceph_csi)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(VolumeParams) p =
        PARSE(&error, "clusterID=c1", "fsName=cephfs", "pool=cephfs_data", "volumeNamePrefix=foo-",
              "backingSnapshot=false", "csi.storage.k8s.io/provisioner-secret-name=s",
              "csi.storage.k8s.io/provisioner-secret-namespace=n",
              "csi.storage.k8s.io/controller-expand-secret-name=s",
              "csi.storage.k8s.io/node-stage-secret-name=s", "csi.storage.k8s.io/fstype=ext4",
              "csi.storage.k8s.io/pv/name=pv1", "csi.storage.k8s.io/pvc/name=data",
              "csi.storage.k8s.io/pvc/namespace=team");
    ck_assert_msg(p, "%s", error ? error->message : "");
    ck_assert_int_eq(p->type, VOLUME_CEPHFS);
    ck_assert_str_eq(p->cluster_id, "c1");
    ck_assert_str_eq(p->fs_name, "cephfs");
    ck_assert_str_eq(p->pool, "cephfs_data");
    ck_assert_str_eq(p->name_prefix, "foo-");
    ck_assert_str_eq(p->pv_name, "pv1");
    ck_assert_str_eq(p->pvc_namespace, "team");
    ck_assert(p->cache);
    ck_assert_uint_eq(p->cache_quota, 0);
}
END_TEST

START_TEST(takes_our_own)
{
    g_autoptr(VolumeParams) p = PARSE(NULL, "type=cephfs", "clusterID=c", "fsName=f", "cache=on",
                                      "cacheQuota=100Gi", "warm=none", "readTimeout=2m");
    ck_assert_uint_eq(p->read_timeout, 120);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(p->cache_quota, G_GUINT64_CONSTANT(100) << 30);
    ck_assert_str_eq(p->name_prefix, "csi-vol-");
    g_autoptr(VolumeParams) off = PARSE(NULL, "clusterID=c", "fsName=f", "cache=off");
    ck_assert(!off->cache);
    g_autoptr(VolumeParams) no = PARSE(NULL, "clusterID=c", "fsName=f", "cache=false");
    ck_assert(no && !no->cache);
    g_autoptr(VolumeParams) yes = PARSE(NULL, "clusterID=c", "fsName=f", "cache=true");
    ck_assert(yes && yes->cache);
}
END_TEST

START_TEST(an_unknown_name_lists_the_known_ones)
{
    g_autofree char *message = refusal("fsname=f");
    ck_assert_ptr_nonnull(strstr(message, "\"fsname\""));
    ck_assert_ptr_nonnull(strstr(message, "fsName"));
    ck_assert_ptr_nonnull(strstr(message, "cacheQuota"));
    refuses("cach=on", "did you mean cache?;");
    refuses("volumeNamePrefx=a-", "did you mean volumeNamePrefix?;");
    refuses("nonsense=1", "\"nonsense\" is not known; known: ");
    refuses("csi.storage.k8s.io/nonsense=1", "not known");
    refuses("=1", "not known");
}
END_TEST

START_TEST(values_are_checked)
{
    refuses("cache=yes", "use on or off");
    refuses("cache=True", "use on or off");
    refuses("cache=", "empty");
    refuses("cacheQuota=10Xi", "no size");
    refuses("readTimeout=0", "such as 30s");
    refuses("readTimeout=-1", "such as 30s");
    refuses("readTimeout=soon", "such as 30s");
    refuses("readTimeout=30ms", "such as 30s");
    refuses("readTimeout=25h", "such as 30s");
    refuses("readTimeout=99999999999999999999h", "such as 30s");
    refuses("cacheQuota=0", "no size");
    refuses("cacheQuota=-1", "no size");
    refuses("cacheQuota=99999999999999999999", "no size");
    refuses("fsName=a/b", "letters");
    refuses("fsName=..", "letters");
    refuses("volumeNamePrefix=a b", "letters");
    refuses("volumeNamePrefix=_x", "begin with");
    refuses("clusterID=a/b", "'/'");
    refuses("clusterID=..", "no name");
    refuses("pool=a\nb", "printable");
    refuses("type=nfs", "use cephfs");
    refuses("warm=always", "use none or onStage");
    refuses("backingSnapshot=yes", "true or false");
    refuses("dataset=imagenet", "SUBVOLUME@SNAPSHOT");
    static const char *const pins[] = {"1",           "export:",     "export:256",    "export:-1",
                                       "export:1.5",  "export:0x1",  "distributed:2", "random:0",
                                       "random:1.01", "random:0.1x", "random:.",      "pin:1",
                                       "export:1:2",  ":1"};
    for (guint i = 0; i < G_N_ELEMENTS(pins); i++) {
        g_autofree char *pin = g_strconcat("mdsPin=", pins[i], NULL);
        refuses(pin, "export:RANK");
    }
    g_autofree char *prefix = g_strnfill(65, 'p');
    g_autofree char *pair = g_strconcat("volumeNamePrefix=", prefix, NULL);
    refuses(pair, "at most 64");
}
END_TEST

START_TEST(a_dataset_is_a_snapshot_and_nothing_is_made_of_it)
{
    g_autoptr(VolumeParams) p = PARSE(NULL, "clusterID=c", "fsName=f", "dataset=g/in@v2");
    ck_assert_str_eq(p->dataset->group, "g");
    json_t *text = params_to_json(p);
    ck_assert_str_eq(json_string_value(json_object_get(text, "dataset")), "g/in@v2");
    json_decref(text);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(PARSE(&error, "clusterID=c", "fsName=f", "dataset=in@v2", "pool=p"));
    ck_assert_ptr_nonnull(strstr(error->message, "pool has no meaning with dataset"));
    g_clear_error(&error);
    ck_assert_ptr_null(
        PARSE(&error, "clusterID=c", "fsName=f", "dataset=in@v2", "backingSnapshot=false"));
    g_clear_error(&error);
    ck_assert_ptr_null(PARSE(&error, "clusterID=c", "type=rbd", "pool=p", "dataset=in@v2"));
}
END_TEST

START_TEST(what_this_release_lacks_is_refused_not_ignored)
{
    refuses("topologyConstrainedPools=x", "no meaning with type=cephfs");
    refuses("staticVolume=true", "PersistentVolume");
    refuses("rootPath=/x", "PersistentVolume");
}
END_TEST

START_TEST(a_class_of_ceph_csi_shows_its_type)
{
    g_autoptr(VolumeParams) image =
        PARSE(NULL, "clusterID=c", "pool=p", "imageFeatures=layering", "mounter=rbd-nbd",
              "tryOtherMounters=false", "mapOptions=krbd:lock_on_read", "encrypted=false",
              "encryptionKMSID=kms");
    ck_assert_ptr_nonnull(image);
    ck_assert_int_eq(image->type, VOLUME_RBD);
    ck_assert_uint_eq(image->meaningless->len, 4);
    g_autoptr(VolumeParams) plain = PARSE(NULL, "clusterID=c", "pool=p", "imageFeatures=layering");
    json_t *a = params_to_json(image), *b = params_to_json(plain);
    ck_assert(json_equal(a, b));
    json_decref(a);
    json_decref(b);
    g_autoptr(VolumeParams) directory =
        PARSE(NULL, "clusterID=c", "fsName=f", "pool=p", "mounter=kernel", "fuseMountOptions=debug",
              "kernelMountOptions=norbytes");
    ck_assert_ptr_nonnull(directory);
    ck_assert_int_eq(directory->type, VOLUME_CEPHFS);
    ck_assert_str_eq(directory->meaningless->pdata[0], "fuseMountOptions");
    refuses("encrypted=true", "does not encrypt");
    refuses("encrypted=yes", "does not encrypt");
    refuses("mapOptions=x", "type=cephfs");
    refuses_image("encrypted=true", "does not encrypt");
    refuses_image("topologyConstrainedPools=[]", "no JSON array");
    refuses_image("fuseMountOptions=debug", "type=rbd");
}
END_TEST

START_TEST(an_images_parameters_are_its_own)
{
    g_autoptr(VolumeParams) params = PARSE(NULL, "type=rbd", "clusterID=c", "pool=rbd/x");
    ck_assert_ptr_null(params);
    params =
        PARSE(NULL, "type=rbd", "clusterID=c", "pool=rbd", "dataPool=ec", "mkfsOptions=-m0 -O x",
              "imageFeatures=fast-diff, layering,object-map,exclusive-lock", "stripeUnit=65536",
              "stripeCount=8", "objectSize=1Mi");
    ck_assert_ptr_nonnull(params);
    ck_assert_int_eq(params->type, VOLUME_RBD);
    ck_assert_str_eq(params->image_features, "layering,exclusive-lock,object-map,fast-diff");
    ck_assert_uint_eq(params->object_size, 1 << 20);
    ck_assert_uint_eq(params->stripe_count, 8);
    json_t *json = params_to_json(params);
    ck_assert_str_eq(json_string_value(json_object_get(json, "dataPool")), "ec");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "stripeUnit")), 65536);
    json_decref(json);

    refuses("imageFeatures=layering", "type=cephfs");
    refuses("dataPool=p", "type=cephfs");
    refuses_image("fsName=f", "type=rbd");
    refuses_image("imageFeatures=layers", "\"layers\" is not known");
    refuses_image("imageFeatures=layering,", "\"\" is not known");
    refuses_image("imageFeatures=layering,object-map", "needs exclusive-lock");
    refuses_image("objectSize=100000", "power of two");
    refuses_image("objectSize=64Mi", "power of two");
    refuses_image("stripeUnit=4096", "go together");
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(PARSE(&error, "type=rbd", "clusterID=c"));
    ck_assert_ptr_nonnull(strstr(error->message, "pool is missing"));
    g_clear_error(&error);
    ck_assert_ptr_null(
        PARSE(&error, "type=rbd", "clusterID=c", "pool=p", "stripeUnit=3000", "stripeCount=2"));
    ck_assert_ptr_nonnull(strstr(error->message, "without rest"));
}
END_TEST

START_TEST(contradictions_and_gaps_are_named)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(PARSE(&error, "fsName=f"));
    ck_assert_ptr_nonnull(strstr(error->message, "clusterID is missing"));
    g_clear_error(&error);
    ck_assert_ptr_null(PARSE(&error, "clusterID=c"));
    ck_assert_ptr_nonnull(strstr(error->message, "fsName is missing"));
    g_clear_error(&error);
    ck_assert_ptr_null(PARSE(&error, "clusterID=c", "fsName=f", "cache=off", "cacheQuota=1Gi"));
    ck_assert_ptr_nonnull(strstr(error->message, "cacheQuota"));
    g_clear_error(&error);
    ck_assert_ptr_null(params_parse(NULL, &error));
}
END_TEST

START_TEST(a_directory_has_no_cluster)
{
    g_autoptr(VolumeParams) p = PARSE(NULL, "type=dir");
    ck_assert_int_eq(p->type, VOLUME_DIR);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(PARSE(&error, "type=dir", "clusterID=c"));
    ck_assert_ptr_nonnull(strstr(error->message, "type=dir"));
}
END_TEST

START_TEST(sizes_are_kubernetes_quantities)
{
    static const struct {
        const char *text;
        guint64 bytes;
    } good[] = {{"0", 0},
                {"4096", 4096},
                {"1k", 1000},
                {"1Ki", 1024},
                {"500M", 500000000},
                {"1Gi", 1ull << 30},
                {"2Ti", 2ull << 40},
                {"1E", 1000000000000000000ull},
                {"7Ei", 7ull << 60},
                {"9223372036854775807", G_MAXINT64}};
    guint64 bytes;
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        ck_assert_msg(params_parse_size(good[i].text, &bytes), "%s", good[i].text);
        ck_assert_uint_eq(bytes, good[i].bytes);
    }
    static const char *const bad[] = {"",
                                      "Gi",
                                      "1.5Gi",
                                      "1 Gi",
                                      "1GiB",
                                      "1gi",
                                      "8Ei",
                                      "1K",
                                      "1ki",
                                      "0x1",
                                      "+1",
                                      "1Gii",
                                      "9223372036854775808"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(!params_parse_size(bad[i], &bytes), "%s", bad[i]);
}
END_TEST

HARNESS_MAIN("driver/volume/params", takes_a_class_of_ceph_csi, takes_our_own,
             an_unknown_name_lists_the_known_ones, values_are_checked,
             a_dataset_is_a_snapshot_and_nothing_is_made_of_it,
             what_this_release_lacks_is_refused_not_ignored, an_images_parameters_are_its_own,
             a_class_of_ceph_csi_shows_its_type, contradictions_and_gaps_are_named,
             a_directory_has_no_cluster, sizes_are_kubernetes_quantities)
