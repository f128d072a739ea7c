/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The MDS makes all clients of the subvolumes pause: they give back what lets them write, and new
 * requests wait. Then the snapshots are taken, and the clients go on.
 *
 *     quiesce, await → snapshot, ... → release
 *
 * The set of subvolumes that pause has a name of this attempt alone, and ends by itself: within
 * EXPIRATION_S of our last word, so that a controller that is killed stops nobody for longer. Only
 * a release of the very set that we have seen pause says that the pause has lasted; else something
 * may have been written between two snapshots. These are left to the next attempt: whoever notices
 * so late may find those of an attempt that was made meanwhile.
 */
#include "driver/backend/cephfs/group.h"
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include "driver/backend/ceph/mon.h"
#include "driver/backend/cephfs/internal.h"
#include "driver/backend/cephfs/snap.h"

#define PREFIX "fs quiesce"
/* Ceph counts the first for each subvolume; a client that gives nothing back is waited for. */
#define TIMEOUT_S 20
#define EXPIRATION_S 10
/* Awaiting a set that has paused makes it last for EXPIRATION_S from then on. */
#define EXTEND_US (3 * G_USEC_PER_SEC)
#define FIRST_RELEASE 19

typedef struct Pause {
    CephConn *conn;
    const char *fs_name;
    char *set;
    json_int_t version; /* of the set, as it was when we have last seen it pause */
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

static gboolean lost(GError **error)
{
    return hearth_fail(error, HEARTH_ERROR_ABORTED,
                       "the pause of the group's subvolumes ended before all snapshots were taken: "
                       "they are not of one moment; try again, which removes them first");
}

/* An answer of the first command, which is to make them pause. */
static gboolean refused(Pause *p, const CephReply *reply, GError **error)
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

/* Takes over `more`. */
static gboolean ask(Pause *p, json_t *more, CephReply *reply, GError **error)
{
    const Subvolume where = {.fs_name = p->fs_name};
    json_object_set_new(more, "set_id", json_string(p->set));
    gint64 now = g_get_monotonic_time();
    if (!cephfs_mgr_send(p->conn, PREFIX, &where, more, reply, p->deadline_us, error))
        return FALSE;
    if (reply->rc == 0) {
        json_auto_t *answer = json_loads(reply->output, 0, NULL);
        const json_t *set = json_object_get(json_object_get(answer, "sets"), p->set);
        p->version = json_integer_value(json_object_get(set, "version"));
        p->seen_us = now;
    }
    return TRUE;
}

static gboolean begin(Pause *p, const Subvolume *subvolumes, gsize n, GError **error)
{
    reply_auto CephReply reply = {0};
    json_t *members = json_array();
    for (gsize i = 0; i < n; i++) {
        g_autofree char *member = g_strdup_printf("%s/%s", subvolumes[i].group, subvolumes[i].name);
        json_array_append_new(members, json_string(member));
    }
    json_t *more = json_pack("{s:o, s:f, s:f, s:b}", "members", members, "timeout",
                             (double)TIMEOUT_S, "expiration", (double)EXPIRATION_S, "await", 1);
    return ask(p, more, &reply, error) && (reply.rc == 0 || refused(p, &reply, error));
}

/* Has the pause last, if it is not over. */
static gboolean extend(Pause *p, GError **error)
{
    reply_auto CephReply reply = {0};
    if (g_get_monotonic_time() - p->seen_us < EXTEND_US)
        return TRUE;
    json_t *more = json_pack("{s:b, s:I}", "await", 1, "if_version", p->version);
    return ask(p, more, &reply, error) && (reply.rc == 0 || lost(error));
}

static gboolean release(Pause *p, GError **error)
{
    reply_auto CephReply reply = {0};
    json_t *more = json_pack("{s:b, s:b, s:I}", "release", 1, "await", 1, "if_version", p->version);
    return ask(p, more, &reply, error) && (reply.rc == 0 || lost(error));
}

/* What fails ends by itself. */
static void cancel(Pause *p)
{
    reply_auto CephReply reply = {0};
    ask(p, json_pack("{s:b}", "cancel", 1), &reply, NULL);
}

static gboolean take(Pause *p, const Subvolume *subvolumes, const char *const *snapshots, gsize n,
                     GError **error)
{
    for (gsize i = 0; i < n; i++) {
        if (!extend(p, error) ||
            !cephfs_snap_create(p->conn, &subvolumes[i], snapshots[i], p->deadline_us, error))
            return FALSE;
    }
    return release(p, error);
}

gboolean cephfs_group_snapshot(CephConn *conn, const Subvolume *subvolumes,
                               const char *const *snapshots, gsize n, gint64 deadline_us,
                               GError **error)
{
    g_autofree char *unique = g_uuid_string_random();
    g_autofree char *set = g_strconcat("hearth-", unique, NULL);
    Pause pause = {
        .conn = conn, .fs_name = subvolumes[0].fs_name, .set = set, .deadline_us = deadline_us};
    if (begin(&pause, subvolumes, n, error) && take(&pause, subvolumes, snapshots, n, error))
        return TRUE;
    cancel(&pause);
    return FALSE;
}
