/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks of VolumeCapability, without I/O: first the form of the list, then whether the type of
 * volume supports each element. Controller and Node call both.
 */
#include "driver/service/capability.h"
#include <string.h>
#include "common/error.h"

static gboolean fail_element(GError **error, gsize i, const char *text)
{
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume_capabilities[%" G_GSIZE_FORMAT "] %s", i, text);
}

gboolean capability_check_form(Csi__V1__VolumeCapability *const *list, gsize n, GError **error)
{
    if (n == 0)
        return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "volume_capabilities is empty");
    for (gsize i = 0; i < n; i++) {
        const Csi__V1__VolumeCapability *c = list[i];
        if (c->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT &&
            c->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
            return fail_element(error, i, "has no access type: give mount");
        if (!c->access_mode ||
            c->access_mode->mode == CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN ||
            !protobuf_c_enum_descriptor_get_value(
                &csi__v1__volume_capability__access_mode__mode__descriptor,
                (int)c->access_mode->mode))
            return fail_element(error, i, "has no access mode, or one that is not of CSI 1.12");
    }
    return TRUE;
}

static gboolean check_image(const Csi__V1__VolumeCapability *c, gsize i, GError **error)
{
    if (c->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
        return TRUE;
    switch (c->access_mode->mode) {
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_MULTI_WRITER:
    case CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_SINGLE_WRITER:
        return fail_element(
            error, i,
            "asks for a file system of an image on several nodes with a writer among "
            "them, which would destroy it; use ReadWriteOnce, or type=cephfs for "
            "ReadWriteMany");
    default:
        break;
    }
    const char *fs_type = c->mount ? c->mount->fs_type : "";
    if (!*fs_type || strcmp(fs_type, "ext4") == 0 || strcmp(fs_type, "xfs") == 0)
        return TRUE;
    g_autofree char *shown = g_strescape(fs_type, NULL);
    g_autofree char *text =
        g_strdup_printf("asks for file system \"%.32s\"; use ext4 or xfs", shown);
    return fail_element(error, i, text);
}

gboolean capability_check_supported(Csi__V1__VolumeCapability *const *list, gsize n,
                                    VolumeType type, GError **error)
{
    for (gsize i = 0; i < n; i++) {
        if (type == VOLUME_RBD) {
            if (!check_image(list[i], i, error))
                return FALSE;
            continue;
        }
        if (list[i]->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK) {
            g_autofree char *text =
                g_strdup_printf("asks for a block device, which type=%s has not; set volumeMode: "
                                "Filesystem in the PersistentVolumeClaim",
                                volume_type_name(type));
            return fail_element(error, i, text);
        }
    }
    return TRUE;
}

gboolean capability_reads_only(Csi__V1__VolumeCapability *const *list, gsize n)
{
    for (gsize i = 0; i < n; i++) {
        if (list[i]->access_mode->mode !=
                CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__SINGLE_NODE_READER_ONLY &&
            list[i]->access_mode->mode !=
                CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__MULTI_NODE_READER_ONLY)
            return FALSE;
    }
    return TRUE;
}

gboolean capability_mount_group(const Csi__V1__VolumeCapability *capability, gint64 *group,
                                GError **error)
{
    guint64 number;
    const char *text = "";
    *group = -1;
    if (capability->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT &&
        capability->mount)
        text = capability->mount->volume_mount_group;
    if (!*text)
        return TRUE;
    /* The last number means "no change" to chown(2). */
    if (g_ascii_string_to_unsigned(text, 10, 0, G_MAXUINT32 - 1, &number, NULL)) {
        *group = (gint64)number;
        return TRUE;
    }
    g_autofree char *shown = g_strescape(text, NULL);
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "volume_mount_group \"%.32s\" is no number of a group", shown);
}
