/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cluster/config.h"
#include <string.h>
#include "tests/unit/harness.h"

typedef struct File {
    char *dir, *path;
} File;

static File file_new(const char *text)
{
    File f = {.dir = harness_tmpdir()};
    f.path = g_build_filename(f.dir, "config.json", NULL);
    if (text)
        ck_assert(g_file_set_contents(f.path, text, -1, NULL));
    return f;
}

static void file_free(File *f)
{
    g_free(f->path);
    harness_remove(f->dir);
}

static void fails(const char *text, const char *because)
{
    File f = file_new(text);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(config_load(f.path, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_FAILED_PRECONDITION));
    ck_assert_msg(strstr(error->message, because) != NULL, "%s", error->message);
    ck_assert_msg(strstr(error->message, f.path) != NULL, "%s", error->message);
    file_free(&f);
}

START_TEST(reads_ceph_csis_file)
{
    File f = file_new(
        "[{\"clusterID\": \"a\", \"monitors\": [\"10.0.0.1:6789\", \"[v2:10.0.0.2:3300]\"],"
        "  \"readAffinity\": {\"enabled\": true, \"crushLocationLabels\": [\"a.b/zone\", "
        "\"host\"]},"
        "  \"cephConf\": {\"ms_client_mode\": \"secure\"},"
        "  \"rbd\": {\"radosNamespace\": \"x\", \"netNamespaceFilePath\": \"/r\"},"
        "  \"cephFS\": {\"subvolumeGroup\": \"team\", \"netNamespaceFilePath\": \"/n\"}},"
        " {\"clusterID\": \"b\", \"monitors\": [\"mon.example\"], \"cephConf\": null,"
        "  \"readAffinity\": null, \"rbd\": {\"netNamespaceFilePath\": null}},"
        " {\"clusterID\": \"c\", \"monitors\": [\"m\"], \"cephFS\": {\"subvolumeGroup\": \"\"}}]");
    g_autoptr(ClusterConfig) a = config_find(f.path, "a", NULL);
    g_autoptr(ClusterConfig) b = config_find(f.path, "b", NULL);
    g_autoptr(ClusterConfig) c = config_find(f.path, "c", NULL);
    ck_assert_str_eq(a->subvolume_group, "team");
    ck_assert_str_eq(a->rados_namespace, "x");
    ck_assert_str_eq(b->rados_namespace, "");
    ck_assert_str_eq(a->monitors[1], "[v2:10.0.0.2:3300]");
    ck_assert_ptr_null(a->monitors[2]);
    ck_assert_str_eq(a->cephfs_net_namespace, "/n");
    ck_assert_str_eq(a->rbd_net_namespace, "/r");
    ck_assert_ptr_null(a->net_namespace);
    ck_assert_str_eq(a->ceph_conf[0], "ms_client_mode");
    ck_assert_str_eq(a->ceph_conf[1], "secure");
    ck_assert_str_eq(a->crush_labels[0], "a.b/zone");
    ck_assert_str_eq(a->crush_labels[1], "host");
    ck_assert_ptr_null(b->ceph_conf[0]);
    ck_assert_ptr_null(b->crush_labels);
    ck_assert_ptr_null(b->cephfs_net_namespace);
    ck_assert_str_eq(b->subvolume_group, "csi");
    ck_assert_str_eq(c->subvolume_group, "csi");
    file_free(&f);
}
END_TEST

START_TEST(an_unknown_cluster_lists_the_known_ones)
{
    File f = file_new("[{\"clusterID\": \"a\", \"monitors\": [\"m\"]},"
                      " {\"clusterID\": \"b\", \"monitors\": [\"m\"]}]");
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(config_find(f.path, "z", &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_ptr_nonnull(strstr(error->message, "known: a, b"));
    file_free(&f);
}
END_TEST

START_TEST(a_change_counts_at_once)
{
    File f = file_new("[{\"clusterID\": \"a\", \"monitors\": [\"m1\"]}]");
    g_autoptr(ClusterConfig) before = config_find(f.path, "a", NULL);
    ck_assert(
        g_file_set_contents(f.path, "[{\"clusterID\": \"a\", \"monitors\": [\"m2\"]}]", -1, NULL));
    g_autoptr(ClusterConfig) after = config_find(f.path, "a", NULL);
    ck_assert_str_eq(before->monitors[0], "m1");
    ck_assert_str_eq(after->monitors[0], "m2");
    file_free(&f);
}
END_TEST

START_TEST(errors_name_file_entry_and_fix)
{
    fails(NULL, "--cluster-config");
    fails("", "line");
    fails("[{\"clusterID\": \"a\",]", "line 1");
    fails("{\"clusterID\": \"a\"}", "array");
    fails("[{\"monitors\": [\"m\"]}]", "entry 0 has no \"clusterID\"");
    fails("[7]", "entry 0");
    fails("[{\"clusterID\": 7, \"monitors\": [\"m\"]}]", "entry 0");
    fails("[{\"clusterID\": \"a\"}]", "entry 0 (a) has no \"monitors\"");
    fails("[{\"clusterID\": \"a\", \"monitors\": []}]", "no \"monitors\"");
    fails("[{\"clusterID\": \"a\", \"monitors\": [\"m\", 1]}]", "\"monitors\"[1]");
    fails("[{\"clusterID\": \"a\", \"monitors\": [\"m n\"]}]", "\"monitors\"[0]");
    fails("[{\"clusterID\": \"a\", \"monitors\": [\"m\"], \"cephFS\": 1}]", "\"cephFS\"");
    fails("[{\"clusterID\": \"a\", \"monitors\": [\"m\"], \"cephFS\": {\"subvolumeGroup\": "
          "\"a/b\"}}]",
          "subvolumeGroup");
    fails("[{\"clusterID\": \"a\", \"monitors\": [\"m\"], \"cephFS\": {\"subvolumeGroup\": "
          "\"_nogroup\"}}]",
          "subvolumeGroup");
    fails("[{\"clusterID\": \"a\", \"monitors\": [\"m\"]}, {\"clusterID\": \"a\", "
          "\"monitors\": [\"n\"]}]",
          "entries 0 and 1");
}
END_TEST

START_TEST(what_clients_are_told_is_checked)
{
#define ENTRY "[{\"clusterID\": \"a\", \"monitors\": [\"m\"], "
    fails(ENTRY "\"cephConf\": {\"ms_client_mode\": \"secure\", \"rbd_cache\": true}}]",
          "entry 0 (a): \"cephConf\": option rbd_cache cannot be set, because");
    fails(ENTRY "\"cephConf\": []}]", "\"cephConf\": must be an object");
    fails(ENTRY "\"readAffinity\": {\"enabled\": \"true\"}}]", "\"enabled\" is true or false");
    fails(ENTRY "\"readAffinity\": {\"enabled\": true}}]", "crushLocationLabels");
    fails(ENTRY "\"readAffinity\": {\"enabled\": true, \"crushLocationLabels\": [\"a/b c\"]}}]",
          "crushLocationLabels");
    fails(ENTRY "\"rbd\": {\"netNamespaceFilePath\": \"ns\"}}]", "rbd.netNamespaceFilePath");
    fails(ENTRY "\"cephFS\": {\"netNamespaceFilePath\": 1}}]", "cephFS.netNamespaceFilePath");
}
END_TEST

HARNESS_MAIN("driver/cluster/config", reads_ceph_csis_file, an_unknown_cluster_lists_the_known_ones,
             a_change_counts_at_once, errors_name_file_entry_and_fix,
             what_clients_are_told_is_checked)
