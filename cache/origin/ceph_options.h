/* SPDX-License-Identifier: Apache-2.0 */
/* Options that every client of Ceph here gets first, by ceph_conf_set() or rados_conf_set(). */
#ifndef HEARTH_CACHE_ORIGIN_CEPH_OPTIONS_H
#define HEARTH_CACHE_ORIGIN_CEPH_OPTIONS_H

typedef struct CephOption {
    const char *name, *value;
} CephOption;

/* Rows of CephOption. The key goes by option, in memory, never by a keyring file or an argument;
 * nothing is logged. Gathering debug lines in memory costs time on every request. */
#define CEPH_OPTIONS(monitors, secret)                                                             \
    {"mon_host", monitors}, {"key", secret}, {"keyring", ""}, {"log_file", ""},                    \
        {"log_to_stderr", "false"}, {"err_to_stderr", "false"}, {"log_to_file", "false"},          \
        {"debug_ms", "0/0"}, {"debug_objecter", "0/0"}, {"debug_monc", "0/0"},                     \
    {                                                                                              \
        "debug_auth", "0/0"                                                                        \
    }

#endif
