/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/capability.h"
#include "common/error.h"
#include "tests/unit/driver/service/world.h"

static int form(Csi__V1__VolumeCapability *c)
{
    g_autoptr(GError) error = NULL;
    int code = capability_check_form(&c, 1, &error) ? 0 : error->code;
    csi__v1__volume_capability__free_unpacked(c, NULL);
    return code;
}

START_TEST(every_access_mode_of_the_spec_is_fine)
{
    for (int mode = 1; mode <= 7; mode++) {
        Csi__V1__VolumeCapability *c = world_capability(mode, FALSE);
        ck_assert(capability_check_supported(&c, 1, VOLUME_CEPHFS, NULL));
        ck_assert_int_eq(form(c), 0);
    }
}
END_TEST

START_TEST(incomplete_ones_are_refused)
{
    ck_assert(!capability_check_form(NULL, 0, NULL));
    ck_assert_int_eq(form(world_capability(0, FALSE)), HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(form(world_capability(8, FALSE)), HEARTH_ERROR_INVALID_ARGUMENT);
    Csi__V1__VolumeCapability *c = g_new0(Csi__V1__VolumeCapability, 1);
    csi__v1__volume_capability__init(c);
    ck_assert_int_eq(form(c), HEARTH_ERROR_INVALID_ARGUMENT);
    c = world_capability(1, FALSE);
    g_free(c->access_mode);
    c->access_mode = NULL;
    ck_assert_int_eq(form(c), HEARTH_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_block_device_is_named_with_its_place)
{
    Csi__V1__VolumeCapability *list[] = {world_capability(1, FALSE), world_capability(1, TRUE)};
    ck_assert(capability_check_form(list, 2, NULL));
    g_autoptr(GError) error = NULL;
    ck_assert(!capability_check_supported(list, 2, VOLUME_CEPHFS, &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    ck_assert_ptr_nonnull(strstr(error->message, "volume_capabilities[1]"));
    for (int i = 0; i < 2; i++)
        csi__v1__volume_capability__free_unpacked(list[i], NULL);
}
END_TEST

START_TEST(a_file_system_on_an_image_has_one_writing_node)
{
    for (int mode = 1; mode <= 7; mode++) {
        Csi__V1__VolumeCapability *fs = world_capability(mode, FALSE);
        Csi__V1__VolumeCapability *block = world_capability(mode, TRUE);
        gboolean shared = mode == 4 || mode == 5; /* MULTI_NODE_SINGLE_WRITER, _MULTI_WRITER */
        ck_assert_int_eq(capability_check_supported(&fs, 1, VOLUME_RBD, NULL), !shared);
        ck_assert(capability_check_supported(&block, 1, VOLUME_RBD, NULL));
        csi__v1__volume_capability__free_unpacked(fs, NULL);
        csi__v1__volume_capability__free_unpacked(block, NULL);
    }
}
END_TEST

HARNESS_MAIN("driver/service/capability", every_access_mode_of_the_spec_is_fine,
             incomplete_ones_are_refused, a_block_device_is_named_with_its_place,
             a_file_system_on_an_image_has_one_writing_node)
