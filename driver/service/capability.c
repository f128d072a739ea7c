#include "driver/service/capability.h"
#include "driver/error.h"

static gboolean refuse(GError **error, gsize i, const char *text)
{
    g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                "volume_capabilities[%" G_GSIZE_FORMAT "] %s", i, text);
    return FALSE;
}

gboolean capability_check_form(Csi__V1__VolumeCapability *const *list, gsize n, GError **error)
{
    if (n == 0) {
        g_set_error(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT,
                    "volume_capabilities is empty");
        return FALSE;
    }
    for (gsize i = 0; i < n; i++) {
        const Csi__V1__VolumeCapability *c = list[i];
        if (c->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT &&
            c->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK)
            return refuse(error, i, "has no access type: give mount");
        if (!c->access_mode ||
            c->access_mode->mode == CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN ||
            !protobuf_c_enum_descriptor_get_value(
                &csi__v1__volume_capability__access_mode__mode__descriptor,
                (int)c->access_mode->mode))
            return refuse(error, i, "has no access mode, or one that is not of CSI 1.12");
    }
    return TRUE;
}

gboolean capability_check_supported(Csi__V1__VolumeCapability *const *list, gsize n,
                                    VolumeType type, GError **error)
{
    for (gsize i = 0; i < n; i++) {
        if (list[i]->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_BLOCK) {
            g_autofree char *text =
                g_strdup_printf("asks for a block device, which type=%s has not; set volumeMode: "
                                "Filesystem in the PersistentVolumeClaim",
                                volume_type_name(type));
            return refuse(error, i, text);
        }
    }
    return TRUE;
}
