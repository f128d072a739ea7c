/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first row that matches decides; a name that matches none may be set. A row that ends with '*'
 * matches all names that begin so. Names are in Ceph's own spelling: Ceph also takes "mon host" for
 * "mon_host", and such a spelling must not get past the table. config.c calls this.
 */
#include "driver/cluster/ceph_conf.h"
#include <string.h>

#define MAX_OPTIONS 64
#define MAX_VALUE 1024

#define ALLOWED NULL
#define IDENTITY                                                                                   \
    "who Hearth is to Ceph comes from the Secret, and where Ceph is from \"monitors\" alone"
#define LOGS "Ceph's own logs, dumps and sockets may show keys and data"
#define CODE "it has Hearth load or run other code"
#define PROCESS "it is for a process of Ceph's own, and Hearth is none"
#define DAEMON "it is an option of Ceph's daemons, not of a client"
#define FAULTS "it makes faults, for tests of Ceph"
#define FILES "what Hearth promises of fresh and synced files depends on it"
#define IMAGES "what is acknowledged of an image must be in Ceph, and its lock with one node"
#define CLASSES "how images are made and removed is said by StorageClasses and by Hearth"
#define TIME "Hearth bounds its calls itself, and an outage that ends must lose no write"
#define CHECKSUMS "damage on the way to Ceph would not be noticed"
#define AFFINITY "use \"readAffinity\", which has it for both kinds of volumes"

static const struct {
    const char *pattern, *refusal;
} rows[] = {
    {"name", IDENTITY},
    {"cluster", IDENTITY},
    {"fsid", IDENTITY},
    {"host", IDENTITY},
    {"key", IDENTITY},
    {"keyfile", IDENTITY},
    {"keyring", IDENTITY},
    {"monmap", IDENTITY},
    {"mon_host*", IDENTITY},
    {"mon_dns_srv_name", IDENTITY},
    {"mon_initial_members", IDENTITY},
    {"auth_*", IDENTITY},
    {"cephx_*", IDENTITY},
    {"no_config_file", IDENTITY},
    {"log_*", LOGS},
    {"debug_*", LOGS},
    {"clog_*", LOGS},
    {"err_to_*", LOGS},
    {"admin_socket*", LOGS},
    {"crash_dir", LOGS},
    {"ms_dump_*", LOGS},
    {"fuse_debug", LOGS},
    {"client_trace", LOGS},
    {"event_tracing", LOGS},
    {"jaeger_*", LOGS},
    {"rados_tracing", LOGS},
    {"rbd_tracing", LOGS},
    {"rbd_blkin_trace_all", LOGS},
    {"osdc_blkin_trace_all", LOGS},
    {"plugin_*", CODE},
    {"erasure_code_dir", CODE},
    {"rbd_plugins", CODE},
    {"crush_location_hook*", CODE},
    {"openssl_engine_opts", CODE},
    {"ms_type", CODE},
    {"ms_public_type", CODE},
    {"ms_cluster_type", CODE},
    {"ms_dpdk_*", CODE},
    {"enable_experimental_*", CODE},
    {"daemonize", PROCESS},
    {"chdir", PROCESS},
    {"run_dir", PROCESS},
    {"pid_file", PROCESS},
    {"setuser*", PROCESS},
    {"setgroup*", PROCESS},
    {"fatal_signal_handlers", PROCESS},
    {"heartbeat_*", PROCESS},
    {"thp", PROCESS},
    {"lockdep*", FAULTS},
    {"inject_*", FAULTS},
    {"fake_*", FAULTS},
    {"ms_inject_*", FAULTS},
    {"ms_blackhole_*", FAULTS},
    {"ms_die_*", FAULTS},
    {"objecter_inject_*", FAULTS},
    {"objecter_debug_*", FAULTS},
    {"objecter_retry_writes_after_first_reply", FAULTS},
    {"ms_crc_*", CHECKSUMS},
    {"rados_osd_op_timeout", TIME},
    {"rados_mon_op_timeout", TIME},
    {"objecter_timeout", TIME},
    {"librados_thread_count", "with more threads Ceph 16 closes an image while it is opened"},
    {"rados_replica_read_policy", AFFINITY},
    {"client_readahead_*", ALLOWED},
    {"client_metadata", ALLOWED},
    {"client_asio_thread_count", ALLOWED},
    {"client_collect_and_send_global_metrics", ALLOWED},
    {"client_*", FILES},
    {"fuse_*", FILES},
    {"filer_*", FILES},
    {"rbd_cache*", IMAGES},
    {"rbd_parent_cache_*", IMAGES},
    {"rbd_persistent_cache_*", IMAGES},
    {"rbd_auto_exclusive_lock_*", IMAGES},
    {"rbd_block*", IMAGES},
    {"rbd_black*", IMAGES},
    {"rbd_clone_copy_on_read", IMAGES},
    {"rbd_request_timed_out_seconds", IMAGES},
    {"rbd_invalidate_object_map_on_timeout", IMAGES},
    {"rbd_skip_partial_discard", IMAGES},
    {"rbd_disable_zero_copy_writes", IMAGES},
    {"rbd_discard_*", IMAGES},
    {"rbd_quiesce_*", IMAGES},
    {"rbd_default_*", CLASSES},
    {"rbd_move_*", CLASSES},
    {"rbd_mirror*", CLASSES},
    {"rbd_validate_*", CLASSES},
    {"osd_client_op_priority", ALLOWED},
    {"mon_client_*", ALLOWED},
    {"osd_*", DAEMON},
    {"mon_*", DAEMON},
    {"mds_*", DAEMON},
    {"mgr_*", DAEMON},
    {"rgw_*", DAEMON},
    {"bluestore_*", DAEMON},
    {"bluefs_*", DAEMON},
    {"filestore_*", DAEMON},
    {"ms_cluster_mode", DAEMON},
    {"ms_service_mode", DAEMON},
    {"ms_mon_cluster_mode", DAEMON},
    {"ms_mon_service_mode", DAEMON},
};

static gboolean fits(const char *name, const char *pattern)
{
    const size_t n = strlen(pattern) - 1;
    return pattern[n] == '*' ? strncmp(name, pattern, n) == 0 : strcmp(name, pattern) == 0;
}

const char *ceph_conf_refusal(const char *name)
{
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++)
        if (fits(name, rows[i].pattern))
            return rows[i].refusal;
    return NULL;
}

static gboolean is_name(const char *name)
{
    return *name && strlen(name) < 128 &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}

/* As Ceph's options take it; the caller's. NULL: it is none. */
static char *value_text(const json_t *value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    const char *text = json_string_value(value);
    if (json_is_boolean(value))
        text = json_is_true(value) ? "true" : "false";
    if (json_is_integer(value))
        return g_strdup_printf("%" JSON_INTEGER_FORMAT, json_integer_value(value));
    if (json_is_real(value))
        text = g_ascii_dtostr(number, sizeof(number), json_real_value(value));
    if (!text || strlen(text) > MAX_VALUE)
        return NULL;
    for (const char *c = text; *c; c++)
        if (g_ascii_iscntrl(*c))
            return NULL;
    return g_strdup(text);
}

char **ceph_conf_parse(const json_t *object, char **why)
{
    const char *name, *refusal;
    json_t *value;
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    if (object && (!json_is_object(object) || json_object_size(object) > MAX_OPTIONS)) {
        *why = g_strdup_printf("must be an object of at most %d options and their values",
                               MAX_OPTIONS);
        return NULL;
    }
    json_object_foreach ((json_t *)object, name, value) {
        char *text = is_name(name) ? value_text(value) : NULL;
        if (!is_name(name))
            *why = g_strdup_printf("option \"%s\" must be written as Ceph does, as "
                                   "ms_client_mode: small letters, digits and '_'",
                                   name);
        else if (!text)
            *why = g_strdup_printf("option %s must be a string of one line and at most %d bytes, a "
                                   "number, true or false",
                                   name, MAX_VALUE);
        else if ((refusal = ceph_conf_refusal(name)))
            *why =
                g_strdup_printf("option %s cannot be set, because %s: take it out", name, refusal);
        else {
            g_ptr_array_add(list, g_strdup(name));
            g_ptr_array_add(list, g_steal_pointer(&text));
            continue;
        }
        g_free(text);
        return NULL;
    }
    g_ptr_array_add(list, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&list), FALSE);
}
