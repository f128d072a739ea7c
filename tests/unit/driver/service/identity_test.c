/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/driver/service/world.h"

#define CALL(world, name, lower, out)                                                              \
    ({                                                                                             \
        void *request_ = g_malloc0(csi__v1__##lower##_request__descriptor.sizeof_message);         \
        protobuf_c_message_init(&csi__v1__##lower##_request__descriptor, request_);                \
        world_call((world)->client, "/csi.v1.Identity/" name, request_,                            \
                   &csi__v1__##lower##_response__descriptor, out, NULL);                           \
    })

START_TEST(says_who_it_is)
{
    World *w = world_new();
    Csi__V1__GetPluginInfoResponse *r = NULL;
    ck_assert_int_eq(CALL(w, "GetPluginInfo", get_plugin_info, &r), 0);
    ck_assert_str_eq(r->name, "csi.hearth.dev");
    ck_assert_str_eq(r->vendor_version, "1.2.3");
    csi__v1__get_plugin_info_response__free_unpacked(r, NULL);
    world_free(w);
}
END_TEST

START_TEST(has_a_controller_topology_and_groups)
{
    World *w = world_new();
    Csi__V1__GetPluginCapabilitiesResponse *r = NULL;
    ck_assert_int_eq(CALL(w, "GetPluginCapabilities", get_plugin_capabilities, &r), 0);
    ck_assert_uint_eq(r->n_capabilities, 3);
    ck_assert_int_eq(r->capabilities[0]->service->type,
                     CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__CONTROLLER_SERVICE);
    ck_assert_int_eq(r->capabilities[1]->service->type,
                     CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__VOLUME_ACCESSIBILITY_CONSTRAINTS);
    ck_assert_int_eq(r->capabilities[2]->service->type,
                     CSI__V1__PLUGIN_CAPABILITY__SERVICE__TYPE__GROUP_CONTROLLER_SERVICE);
    csi__v1__get_plugin_capabilities_response__free_unpacked(r, NULL);
    /* Not where no backend can. */
    w->identity.group_controller = FALSE;
    ck_assert_int_eq(CALL(w, "GetPluginCapabilities", get_plugin_capabilities, &r), 0);
    ck_assert_uint_eq(r->n_capabilities, 2);
    csi__v1__get_plugin_capabilities_response__free_unpacked(r, NULL);
    world_free(w);
}
END_TEST

START_TEST(probe_says_what_the_backend_says)
{
    World *w = world_new();
    ck_assert_int_eq(CALL(w, "Probe", probe, NULL), 0);
    w->fake->unhealthy = TRUE;
    ck_assert_int_eq(CALL(w, "Probe", probe, NULL), HEARTH_ERROR_FAILED_PRECONDITION);
    world_free(w);
}
END_TEST

START_TEST(names_follow_csis_rule)
{
    g_autofree char *most = g_strnfill(63, 'a'), *over = g_strnfill(64, 'a');
    ck_assert(identity_check_name("csi.hearth.dev", NULL));
    ck_assert(identity_check_name(most, NULL));
    static const char *const bad[] = {"", ".a", "a.", "a_b", "a/b", "-a"};
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(!identity_check_name(bad[i], NULL), "%s", bad[i]);
    ck_assert(!identity_check_name(over, NULL));
}
END_TEST

HARNESS_MAIN("driver/service/identity", says_who_it_is, has_a_controller_topology_and_groups,
             probe_says_what_the_backend_says, names_follow_csis_rule)
