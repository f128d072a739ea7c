/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ends calls of libcephfs that wait for a session which does not exist any more. An MDS may end a
 * session without a blocklist entry (mds_session_blocklist_on_evict=false). libcephfs (16) then
 * keeps its calls waiting for ever: it neither connects again (client_reconnect_stale is off,
 * config.c) nor fails. ceph_abort_conn() frees what these calls use, so it must come after them.
 *
 * But libcephfs ends all calls, with ESHUTDOWN, when it sees itself on the OSDs' blocklist. So the
 * connection's own client is put there, by the right that the profile "rbd" of monitors gives. Late
 * writes of the lost session cannot reach Ceph from then on, either.
 *
 * The entry is of one client, which has a number of its own (its nonce): never of the whole node.
 */
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include "cache/origin/aside.h"
#include "cache/origin/cephfs/client/client.h"
#include "cache/origin/thread_room.h"

typedef struct ShutOut {
    CephfsOriginConfig *config;
    char *address;
    int result;
} ShutOut;

/* "[v2:10.0.0.1:0/77,v1:10.0.0.1:0/77]", "v1:[fd00::1]:0/77", or without the version. */
char *cephfs_blocklist_address(const char *addresses)
{
    static const char form[] =
        "^\\[?(?:v[12]:|any:)?((?:\\[[0-9a-fA-F:.%]+\\]|[0-9.]+):[0-9]+/[1-9][0-9]*)(?:[],].*)?$";
    g_autoptr(GRegex) regex = g_regex_new(form, 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(regex, addresses, 0, &match))
        return NULL;
    return g_match_info_fetch(match, 1);
}

static void shut_out_free(void *data)
{
    ShutOut *s = data;
    cephfs_config_free(s->config);
    g_free(s->address);
    g_free(s);
}

static void shut_out(void *data)
{
    ShutOut *s = data;
    g_autofree char *command = g_strdup_printf(
        "{\"prefix\": \"osd blocklist\", \"blocklistop\": \"add\", \"addr\": \"%s\"}", s->address);
    s->result = -EAGAIN;
    if (!thread_room_take(THREAD_ROOM_QUESTION, 0, NULL))
        return;
    s->result = ceph_client_enter_network(&s->config->ceph, NULL)
                    ? cephfs_command_monitors(s->config, command)
                    : -ENETUNREACH;
    thread_room_give(THREAD_ROOM_QUESTION);
}

int cephfs_shut_out(struct ceph_mount_info *mount, const CephfsOriginConfig *config,
                    unsigned limit_sec)
{
    char *addresses = NULL;
    int r = ceph_getaddrs(mount, &addresses);
    if (r < 0)
        return r;
    g_autofree char *address = cephfs_blocklist_address(addresses);
    free(addresses);
    if (!address)
        return -EINVAL;
    ShutOut *s = g_new0(ShutOut, 1);
    *s = (ShutOut){.config = cephfs_config_copy(config), .address = g_steal_pointer(&address)};
    if (!aside_call(shut_out, s, shut_out_free, limit_sec * 1000))
        return -ETIMEDOUT;
    r = s->result;
    shut_out_free(s);
    return r;
}
