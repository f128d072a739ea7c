/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmth/mount_lost.h"
#include "tests/unit/harness.h"

static void report(MountLost *lost, const char *node, const char *a, const char *b)
{
    g_autoptr(GPtrArray) uids = g_ptr_array_new();
    if (a)
        g_ptr_array_add(uids, (gpointer)a);
    if (b)
        g_ptr_array_add(uids, (gpointer)b);
    mount_lost_report(lost, node, uids);
}

/* How many pods are due, of all nodes. */
static guint due(MountLost *lost)
{
    g_autoptr(GPtrArray) nodes = mount_lost_take(lost);
    guint n = 0;
    for (guint i = 0; i < nodes->len; i++)
        n += ((const MountLostNode *)nodes->pdata[i])->uids->len;
    return n;
}

START_TEST(each_pod_is_due_once)
{
    MountLost *lost = mount_lost_new();
    report(lost, "n1", "a", NULL);
    report(lost, "n2", "c", NULL);
    ck_assert_uint_eq(due(lost), 2);
    report(lost, "n1", "a", NULL);
    ck_assert_uint_eq(due(lost), 0);
    report(lost, "n1", "a", "b");
    ck_assert_uint_eq(due(lost), 1);
    report(lost, "n1", NULL, NULL);
    report(lost, "n1", "a", NULL); /* it was healed, and is lost again */
    ck_assert_uint_eq(due(lost), 1);
    mount_lost_free(lost);
}
END_TEST

START_TEST(what_could_not_be_written_is_due_again)
{
    MountLost *lost = mount_lost_new();
    report(lost, "n1", "a", "b");
    g_autoptr(GPtrArray) nodes = mount_lost_take(lost);
    ck_assert_uint_eq(nodes->len, 1);
    report(lost, "n1", "b", NULL); /* a is gone meanwhile */
    mount_lost_again(lost, nodes->pdata[0]);
    ck_assert_uint_eq(due(lost), 1);
    mount_lost_free(lost);
}
END_TEST

HARNESS_MAIN("driver/warmth/mount_lost", each_pod_is_due_once,
             what_could_not_be_written_is_due_again)
