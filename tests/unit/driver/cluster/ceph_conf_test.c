/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/cluster/ceph_conf.h"
#include <string.h>
#include "tests/unit/harness.h"

static char **parse(const char *text, char **why)
{
    json_t *object = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(object);
    char **list = ceph_conf_parse(object, why);
    json_decref(object);
    return list;
}

START_TEST(values_are_text_for_ceph)
{
    g_autofree char *why = NULL;
    g_auto(GStrv) list =
        parse("{\"ms_client_mode\": \"secure\", \"objecter_inflight_ops\": 2048, "
              "\"ms_tcp_nodelay\": false, \"rbd_read_from_replica_policy\": \"balance\"}",
              &why);
    ck_assert_ptr_null(why);
    g_autofree char *all = g_strjoinv(" ", list);
    ck_assert_str_eq(all, "ms_client_mode secure objecter_inflight_ops 2048 ms_tcp_nodelay false "
                          "rbd_read_from_replica_policy balance");
}
END_TEST

START_TEST(without_any_there_are_none)
{
    g_autofree char *why = NULL;
    g_auto(GStrv) list = ceph_conf_parse(NULL, &why);
    ck_assert_ptr_nonnull(list);
    ck_assert_ptr_null(list[0]);
}
END_TEST

/* One of each kind of promise, and those that the table's patterns are for. */
START_TEST(what_breaks_a_promise_is_refused_with_the_reason)
{
    static const struct {
        const char *name, *because;
    } refused[] = {
        {"mon_host", "monitors"},
        {"key", "Secret"},
        {"keyring", "Secret"},
        {"auth_client_required", "Secret"},
        {"cephx_sign_messages", "Secret"},
        {"log_file", "keys"},
        {"log_to_stderr", "keys"},
        {"debug_auth", "keys"},
        {"admin_socket", "keys"},
        {"admin_socket_mode", "keys"},
        {"ms_dump_on_send", "keys"},
        {"crush_location_hook", "code"},
        {"plugin_dir", "code"},
        {"rbd_plugins", "code"},
        {"client_reconnect_stale", "fresh"},
        {"client_cache_size", "fresh"},
        {"client_oc", "fresh"},
        {"client_permissions", "fresh"},
        {"client_mount_timeout", "fresh"},
        {"fuse_default_permissions", "fresh"},
        {"rbd_cache", "acknowledged"},
        {"rbd_cache_max_dirty", "acknowledged"},
        {"rbd_disable_zero_copy_writes", "acknowledged"},
        {"rbd_persistent_cache_mode", "acknowledged"},
        {"rbd_blocklist_on_break_lock", "acknowledged"},
        {"rbd_default_features", "StorageClasses"},
        {"rbd_move_to_trash_on_remove", "StorageClasses"},
        {"rados_osd_op_timeout", "outage"},
        {"rados_mon_op_timeout", "outage"},
        {"librados_thread_count", "Ceph 16"},
        {"rados_replica_read_policy", "readAffinity"},
        {"ms_crc_data", "damage"},
        {"ms_inject_socket_failures", "faults"},
        {"osd_pool_default_size", "daemons"},
        {"ms_service_mode", "daemons"},
        {"mds_cache_memory_limit", "daemons"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(refused); i++) {
        g_autofree char *why = NULL;
        g_autofree char *text = g_strdup_printf("{\"%s\": \"x\"}", refused[i].name);
        ck_assert_msg(parse(text, &why) == NULL, "%s", refused[i].name);
        g_autofree char *named = g_strdup_printf("option %s cannot", refused[i].name);
        ck_assert_msg(strstr(why, named) && strstr(why, refused[i].because), "%s", why);
    }
}
END_TEST

START_TEST(what_only_tunes_may_be_set)
{
    static const char *const names[] = {
        "ms_client_mode",
        "ms_mon_client_mode",
        "ms_osd_compress_mode",
        "ms_tcp_rcvbuf",
        "ms_bind_ipv6",
        "ms_async_op_threads",
        "crush_location",
        "mon_client_ping_interval",
        "client_metadata",
        "client_readahead_min",
        "objecter_inflight_ops",
        "rbd_op_threads",
        "rbd_readahead_max_bytes",
        "osd_client_op_priority",
        "keys",
        "hosts",
    };
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        ck_assert_msg(ceph_conf_refusal(names[i]) == NULL, "%s", names[i]);
}
END_TEST

/* Ceph takes "mon host" and " mon_host " for mon_host. */
START_TEST(other_spellings_of_a_name_are_refused)
{
    static const char *const names[] = {"mon host", " mon_host", "mon-host",      "MON_HOST",
                                        "",         "a=b",       "client.ms_type"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *why = NULL;
        g_autofree char *text = g_strdup_printf("{\"%s\": \"x\"}", names[i]);
        ck_assert_msg(parse(text, &why) == NULL, "%s", names[i]);
        ck_assert_msg(strstr(why, "small letters") != NULL, "%s", why);
    }
}
END_TEST

START_TEST(values_are_one_line)
{
    static const char *const values[] = {"\"a\\nb\"", "[]", "{}", "null", "\"\\u0001\""};
    for (guint i = 0; i < G_N_ELEMENTS(values); i++) {
        g_autofree char *why = NULL;
        g_autofree char *text = g_strdup_printf("{\"ms_client_mode\": %s}", values[i]);
        ck_assert_msg(parse(text, &why) == NULL, "%s", values[i]);
        ck_assert_msg(strstr(why, "ms_client_mode must be a string of one line") != NULL, "%s",
                      why);
    }
    g_autofree char *why = NULL;
    ck_assert_ptr_null(parse("[\"ms_client_mode\"]", &why));
    ck_assert_ptr_nonnull(strstr(why, "must be an object"));
}
END_TEST

HARNESS_MAIN("driver/cluster/ceph_conf", values_are_text_for_ceph, without_any_there_are_none,
             what_breaks_a_promise_is_refused_with_the_reason, what_only_tunes_may_be_set,
             other_spellings_of_a_name_are_refused, values_are_one_line)
