/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MDS pauses all clients of the subvolumes: they give back the capabilities to write, and new
 * requests wait. Then the snapshots are taken, and the clients continue.
 *
 *     quiesce, await → snapshot, ... → release
 *
 * The set of paused subvolumes has a name that only this attempt uses, and it expires by itself
 * EXPIRATION_S after our last command, so a killed controller stops no client for longer. Only when
 * the release names the version of the set that was seen paused is it known that the pause lasted;
 * else something may have been written between two snapshots. They are left for the next attempt to
 * remove, because another controller may have taken its own meanwhile.
 */
#include "driver/backend/cephfs/group.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "driver/backend/ceph/mon.h"
#include "driver/backend/cephfs/internal.h"
#include "driver/backend/cephfs/snap.h"

#define PREFIX "fs quiesce"
/* Ceph counts the timeout for each subvolume; it waits for clients that give nothing back. */
#define TIMEOUT_S 20
#define EXPIRATION_S 10
/* Awaiting a set that has paused makes it last for EXPIRATION_S from then on. */
#define EXTEND_US (3 * G_USEC_PER_SEC)
#define FIRST_RELEASE 19

typedef struct Pause {
    CephConn *conn;
    const char *fs_name;
    char *set;
    json_int_t version; /* of the set, when it was last seen paused */
    gint64 seen_us, deadline_us;
} Pause;

/* Whether the cluster is older than the command, which sets the error. */
static gboolean is_too_old(Pause *p, GError **error)
{
    json_auto_t *answer = ceph_mon_ask(p->conn, "version", p->deadline_us, NULL);
    const char *text = json_string_value(json_object_get(answer, "version"));
    char release[32] = "";
    guint major = 0;
    gboolean old = text && sscanf(text, "ceph version %31[0-9.]", release) == 1 &&
                   sscanf(release, "%u", &major) == 1 && major < FIRST_RELEASE;
    return old &&
           !hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                        "group snapshots of type=cephfs need Ceph %d, which can make all clients "
                        "of several subvolumes pause (`ceph fs quiesce`), and this cluster runs "
                        "%s; upgrade it, or snapshot each claim on its own",
                        FIRST_RELEASE, release);
}

static gboolean fail_pause_lost(GError **error)
{
    return hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "the pause of the group's subvolumes ended before all snapshots were taken: "
                       "they are not of one moment; try again, which removes them first");
}

/* The error for an answer to the first command, which pauses the clients. Always FALSE. */
static gboolean fail_refused(Pause *p, const CephReply *reply, GError **error)
{
    const Subvolume group = {.fs_name = p->fs_name, .group = "", .name = p->set};
    if (reply->rc == -ETIMEDOUT || reply->rc == -EINPROGRESS)
        return hearth_fail(error, HEARTH_ERROR_ABORTED,
                           "the clients of the group's subvolumes did not all pause within %d s; "
                           "see `ceph health detail` for clients that release nothing, and try "
                           "again",
                           TIMEOUT_S);
    if (reply->rc == -ENOENT && strstr(reply->status, "leader"))
        return hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                           "file system %s has no MDS that could make its clients pause: %s",
                           p->fs_name, reply->status);
    if (reply->rc == -ENOENT)
        return hearth_fail(error, HEARTH_ERROR_NOT_FOUND, "%s: %s", PREFIX, reply->status);
    /* What a mgr answers to a command that it does not know. */
    if ((reply->rc == -EINVAL || reply->rc == -EOPNOTSUPP || reply->rc == -ENOSYS) &&
        is_too_old(p, error))
        return FALSE;
    cephfs_mgr_fail(error, p->conn, reply, PREFIX, &group);
    return FALSE;
}

/* Takes over `more`, the members of the command that are not the same in all. */
static gboolean send_quiesce(Pause *p, json_t *more, CephReply *reply, GError **error)
{
    const Subvolume where = {.fs_name = p->fs_name};
    json_auto_t *taken = more;
    json_t *command = cephfs_mgr_command(PREFIX, &where);
    json_object_update(command, taken);
    json_object_set_new(command, "set_id", json_string(p->set));
    gint64 now = g_get_monotonic_time();
    if (!cephfs_mgr_send(p->conn, command, reply, p->deadline_us, error))
        return FALSE;
    if (reply->rc == 0) {
        json_auto_t *answer = json_loads(reply->output, 0, NULL);
        const json_t *set = json_object_get(json_object_get(answer, "sets"), p->set);
        p->version = json_integer_value(json_object_get(set, "version"));
        p->seen_us = now;
    }
    return TRUE;
}

static gboolean begin_pause(Pause *p, const Subvolume *subvolumes, gsize n, GError **error)
{
    reply_auto CephReply reply = {0};
    json_t *members = json_array();
    for (gsize i = 0; i < n; i++) {
        g_autofree char *member = g_strdup_printf("%s/%s", subvolumes[i].group, subvolumes[i].name);
        json_array_append_new(members, json_string(member));
    }
    json_t *more = json_pack("{s:o, s:f, s:f, s:b}", "members", members, "timeout",
                             (double)TIMEOUT_S, "expiration", (double)EXPIRATION_S, "await", 1);
    return send_quiesce(p, more, &reply, error) &&
           (reply.rc == 0 || fail_refused(p, &reply, error));
}

/* Extends the pause, if it is not over. */
static gboolean extend_pause(Pause *p, GError **error)
{
    reply_auto CephReply reply = {0};
    if (g_get_monotonic_time() - p->seen_us < EXTEND_US)
        return TRUE;
    json_t *more = json_pack("{s:b, s:I}", "await", 1, "if_version", p->version);
    return send_quiesce(p, more, &reply, error) && (reply.rc == 0 || fail_pause_lost(error));
}

static gboolean release_pause(Pause *p, GError **error)
{
    reply_auto CephReply reply = {0};
    json_t *more = json_pack("{s:b, s:b, s:I}", "release", 1, "await", 1, "if_version", p->version);
    return send_quiesce(p, more, &reply, error) && (reply.rc == 0 || fail_pause_lost(error));
}

/* A pause that cannot be cancelled expires. */
static void cancel_pause(Pause *p)
{
    reply_auto CephReply reply = {0};
    send_quiesce(p, json_pack("{s:b}", "cancel", 1), &reply, NULL);
}

static gboolean take_snapshots(Pause *p, const Subvolume *subvolumes, const char *const *snapshots,
                               gsize n, GError **error)
{
    for (gsize i = 0; i < n; i++) {
        if (!extend_pause(p, error) ||
            !cephfs_snap_create(p->conn, &subvolumes[i], snapshots[i], p->deadline_us, error))
            return FALSE;
    }
    return release_pause(p, error);
}

gboolean cephfs_group_snapshot(CephConn *conn, const Subvolume *subvolumes,
                               const char *const *snapshots, gsize n, gint64 deadline_us,
                               GError **error)
{
    g_autofree char *unique = g_uuid_string_random();
    g_autofree char *set = g_strconcat("hearth-", unique, NULL);
    Pause pause = {
        .conn = conn, .fs_name = subvolumes[0].fs_name, .set = set, .deadline_us = deadline_us};
    if (begin_pause(&pause, subvolumes, n, error) &&
        take_snapshots(&pause, subvolumes, snapshots, n, error))
        return TRUE;
    cancel_pause(&pause);
    return FALSE;
}
