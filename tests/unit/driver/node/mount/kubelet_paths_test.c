/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/kubelet_paths.h"
#include "tests/unit/harness.h"

#define POD "0b6ef1f6-3c4e-4c0c-9a3e-3f6dbb1f5d10"
#define OTHER "ffffffff-3c4e-4c0c-9a3e-3f6dbb1f5d10"
#define ROOT "/var/lib/kubelet"
#define FS(root, pod, pv) root "/pods/" pod "/volumes/kubernetes.io~csi/" pv "/mount"
#define SUB(root, pod, pv) root "/pods/" pod "/volume-subpaths/" pv "/main/0"
#define DEVICES "/plugins/kubernetes.io/csi/volumeDevices/"
#define PUBLISHED(pod, pv) ROOT DEVICES "publish/" pv "/" pod
#define BOUND(pod, pv) ROOT DEVICES pv "/dev/" pod

START_TEST(binds_of_the_same_pod_are_part_of_its_publication)
{
    ck_assert(kubelet_made_of(SUB(ROOT, POD, "pv"), FS(ROOT, POD, "pv")));
    ck_assert(kubelet_made_of(BOUND(POD, "pv"), PUBLISHED(POD, "pv")));
    /* Wherever kubelet's directory is, and where the host's root is mounted once more. */
    ck_assert(kubelet_made_of(SUB("/host/pods/x/volumes", POD, "pv"), FS("/data", POD, "pv")));
    /* Names that are also words of these paths. */
    ck_assert(kubelet_made_of(SUB(ROOT, POD, "pods"), FS(ROOT, POD, "pods")));
    ck_assert(kubelet_made_of(BOUND(POD, "dev"), PUBLISHED(POD, "dev")));
}
END_TEST

START_TEST(others_are_not)
{
    static const struct {
        const char *path, *target;
    } rows[] = {
        {SUB(ROOT, OTHER, "pv"), FS(ROOT, POD, "pv")},
        {SUB(ROOT, POD, "another"), FS(ROOT, POD, "pv")},
        {FS(ROOT, POD, "another"), FS(ROOT, POD, "pv")},
        {BOUND(OTHER, "pv"), PUBLISHED(POD, "pv")},
        {BOUND(POD, "another"), PUBLISHED(POD, "pv")},
        {PUBLISHED(OTHER, "pv"), PUBLISHED(POD, "pv")},
        {SUB(ROOT, POD, "pv"), "/target"},
        {"/a", FS(ROOT, POD, "pv")},
        {ROOT DEVICES "pv/else/" POD, PUBLISHED(POD, "pv")},
        {"", ""},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
        ck_assert_msg(!kubelet_made_of(rows[i].path, rows[i].target), "%s", rows[i].path);
    ck_assert(kubelet_is_device_bind(BOUND(POD, "pv")));
    ck_assert(!kubelet_is_device_bind(PUBLISHED(POD, "pv")));
    ck_assert(!kubelet_is_device_bind(SUB(ROOT, POD, "pv")));
}
END_TEST

HARNESS_MAIN("driver/node/mount/kubelet_paths", binds_of_the_same_pod_are_part_of_its_publication,
             others_are_not)
