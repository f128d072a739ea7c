/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/publications.h"
#include <string.h>
#include "tests/unit/harness.h"

#define KUBELET "/var/lib/kubelet"
#define FS(pod, pv) KUBELET "/pods/" pod "/volumes/kubernetes.io~csi/" pv "/mount"
#define DEVICES KUBELET "/plugins/csi.hearth.dev/devices"
#define BLOCK KUBELET "/plugins/kubernetes.io/csi/volumeDevices"
#define DATASET "0123456789abcdef0123456789abcdef"

static const char table[] =
    "20 1 0:5 / /dev rw - devtmpfs devtmpfs rw\n"
    "30 1 0:40 / " KUBELET "/plugins/kubernetes.io/csi/s/globalmount rw - fuse.hearth hearth:live "
    "rw\n"
    "31 1 0:40 / " FS(
        "p1",
        "pv-live") " rw - fuse.hearth hearth:live rw\n"
                   "32 1 0:40 /sub " KUBELET
                   "/pods/p1/volume-subpaths/pv-live/main/0 rw - fuse.hearth "
                   "hearth:live rw\n"
                   "33 1 0:41 / " FS(
                       "p2",
                       "pv-set") " ro - overlay hearth:claim ro,lowerdir+=" DEVICES "/" DATASET
                                 ".3.manifest,datadir+=/o\n"
                                 "34 1 0:42 / " DEVICES
                                 "/image-1 rw - fuse.hearth hearth:image rw\n"
                                 "35 1 7:3 / " FS(
                                     "p3",
                                     "pv-image") " rw - ext4 /dev/loop3 rw\n"
                                                 "36 1 0:5 /loop4 " BLOCK
                                                 "/publish/pv-block/p4 rw - devtmpfs devtmpfs "
                                                 "rw\n"
                                                 "37 1 0:5 /loop4 " BLOCK
                                                 "/pv-block/dev/p4 rw - devtmpfs devtmpfs rw\n"
                                                 "38 1 7:5 / " FS(
                                                     "p5",
                                                     "pv-other") " rw - ext4 /dev/loop5 rw\n"
                                                                 "39 1 0:43 / " FS(
                                                                     "p6",
                                                                     "pv-nfs") " rw - nfs "
                                                                               "server:/x rw\n"
                                                                               "40 1 0:44 "
                                                                               "/ " FS(
                                                                                   "p7",
                                                                                   "pv-"
                                                                                   "overla"
                                                                                   "y") " r"
                                                                                        "w "
                                                                                        "- "
                                                                                        "ov"
                                                                                        "er"
                                                                                        "la"
                                                                                        "y "
                                                                                        "ov"
                                                                                        "er"
                                                                                        "la"
                                                                                        "y "
                                                                                        "rw"
                                                                                        ",l"
                                                                                        "ow"
                                                                                        "er"
                                                                                        "di"
                                                                                        "r="
                                                                                        "/a"
                                                                                        ":/"
                                                                                        "b"
                                                                                        "\n"
                                                                                        "41"
                                                                                        " 1"
                                                                                        " 0"
                                                                                        ":4"
                                                                                        "5 "
                                                                                        "/"
                                                                                        " " DEVICES
                                                                                        "/i"
                                                                                        "ma"
                                                                                        "ge"
                                                                                        "-1"
                                                                                        "2 "
                                                                                        "rw"
                                                                                        " -"
                                                                                        " f"
                                                                                        "us"
                                                                                        "e."
                                                                                        "he"
                                                                                        "ar"
                                                                                        "th"
                                                                                        " h"
                                                                                        "ea"
                                                                                        "rt"
                                                                                        "h:"
                                                                                        "bl"
                                                                                        "oc"
                                                                                        "k "
                                                                                        "rw"
                                                                                        "\n";

static char *backing(const char *loop)
{
    if (strcmp(loop, "loop3") == 0)
        return g_strdup(DEVICES "/image-1/image");
    if (strcmp(loop, "loop4") == 0)
        return g_strdup(DEVICES "/image-12/image");
    return strcmp(loop, "loop5") == 0 ? g_strdup("/var/disk.img") : NULL;
}

START_TEST(each_kind_of_volume_is_found_once_for_each_pod)
{
    static const struct {
        const char *volume, *pod;
    } wanted[] = {{"live", "p1"}, {"dataset-" DATASET, "p2"}, {"image", "p3"}, {"block", "p4"}};
    g_autoptr(GPtrArray) all = publications_of(table, backing);
    ck_assert_uint_eq(all->len, G_N_ELEMENTS(wanted));
    for (guint i = 0; i < all->len; i++) {
        const Publication *p = all->pdata[i];
        ck_assert_str_eq(p->volume, wanted[i].volume);
        ck_assert_str_eq(p->pod, wanted[i].pod);
        ck_assert_ptr_nonnull(strstr(p->target, wanted[i].pod));
    }
}
END_TEST

START_TEST(what_is_no_table_has_none)
{
    g_autoptr(GPtrArray) all = publications_of("garbage\n", NULL);
    ck_assert_uint_eq(all->len, 0);
}
END_TEST

HARNESS_MAIN("driver/node/mount/publications", each_kind_of_volume_is_found_once_for_each_pod,
             what_is_no_table_has_none)
