/* SPDX-License-Identifier: Apache-2.0 */
/* What csi-call speaks: tests/tools/message_json.h. */
#include "tests/tools/message_json.h"

#include "csi.pb-c.h"
#include "tests/unit/harness.h"

#define CREATE (&csi__v1__create_volume_request__descriptor)

static ProtobufCMessage *from_text(const ProtobufCMessageDescriptor *type, const char *text,
                                   GError **error)
{
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_ptr_nonnull(json);
    ProtobufCMessage *message = message_from_json(type, json, "", error);
    json_decref(json);
    return message;
}

/* From JSON, over the wire, and back. */
static void expect_round_trip(const ProtobufCMessageDescriptor *type, const char *in,
                              const char *out)
{
    GError *error = NULL;
    ProtobufCMessage *message = from_text(type, in, &error);
    ck_assert_msg(message != NULL, "%s", error ? error->message : "");
    size_t length = protobuf_c_message_get_packed_size(message);
    g_autofree guint8 *bytes = g_malloc(length + 1);
    protobuf_c_message_pack(message, bytes);
    protobuf_c_message_free_unpacked(message, NULL);
    message = protobuf_c_message_unpack(type, NULL, length, bytes);
    json_t *json = message_to_json(message);
    char *text = json_dumps(json, JSON_COMPACT);
    ck_assert_str_eq(text, out);
    free(text);
    json_decref(json);
    protobuf_c_message_free_unpacked(message, NULL);
}

START_TEST(requests_survive_the_wire)
{
    expect_round_trip(CREATE, "{}", "{}");
    static const char full[] =
        "{\"name\":\"größe\",\"capacityRange\":{\"requiredBytes\":9223372036854775807},"
        "\"volumeCapabilities\":[{\"mount\":{\"fsType\":\"ext4\",\"mountFlags\":[\"ro\",\"\"]},"
        "\"accessMode\":{\"mode\":\"MULTI_NODE_MULTI_WRITER\"}},{\"block\":{}}],"
        "\"parameters\":{\"a\":\"1\",\"b\":\"\"},\"secrets\":{\"userKey\":\"x\"},"
        "\"volumeContentSource\":{\"snapshot\":{\"snapshotId\":\"s\"}},"
        "\"accessibilityRequirements\":{\"requisite\":[{\"segments\":{\"z\":\"a\"}}]}}";
    expect_round_trip(CREATE, full, full);
    expect_round_trip(CREATE,
                      "{\"capacity_range\":{\"required_bytes\":\"5\",\"limitBytes\":0},"
                      "\"name\":null,\"volume_capabilities\":[{\"access_mode\":{\"mode\":5}}]}",
                      "{\"capacityRange\":{\"requiredBytes\":5},\"volumeCapabilities\":"
                      "[{\"accessMode\":{\"mode\":\"MULTI_NODE_MULTI_WRITER\"}}]}");
}
END_TEST

START_TEST(well_known_types_are_their_values)
{
    expect_round_trip(&csi__v1__probe_response__descriptor, "{\"ready\":false}",
                      "{\"ready\":false}");
    expect_round_trip(&csi__v1__get_capacity_response__descriptor,
                      "{\"availableCapacity\":1,\"maximumVolumeSize\":\"0\"}",
                      "{\"availableCapacity\":1,\"maximumVolumeSize\":0}");
    expect_round_trip(&csi__v1__snapshot__descriptor,
                      "{\"creationTime\":{\"seconds\":1700000000,\"nanos\":5}}",
                      "{\"creationTime\":\"2023-11-14T22:13:20.000000005Z\"}");
}
END_TEST

START_TEST(mistakes_name_the_field)
{
    static const char *const cases[][2] = {
        {"[]", "the request must be an object"},
        {"{\"nme\":\"x\"}", "nme is not a field"},
        {"{\"name\":1}", "name must be a string"},
        {"{\"parameters\":[]}", "parameters must be an object"},
        {"{\"parameters\":{\"a\":\"1\",\"b\":2}}", "parameters[\"b\"] must be a string"},
        {"{\"volumeCapabilities\":{}}", "volumeCapabilities must be an array"},
        {"{\"volumeCapabilities\":[{},{\"mount\":{\"mountFlags\":[\"a\",1]}}]}",
         "volumeCapabilities[1].mount.mountFlags[1] must be a string"},
        {"{\"volumeCapabilities\":[{\"mount\":{},\"block\":{}}]}",
         "volumeCapabilities[0].block excludes another field of its oneof that is set"},
        {"{\"volumeCapabilities\":[{\"accessMode\":{\"mode\":\"WRITER\"}}]}",
         "volumeCapabilities[0].accessMode.mode must be the name or number of an enum value"},
        {"{\"capacityRange\":{\"limitBytes\":1.5}}",
         "capacityRange.limitBytes must be a 64-bit integer"},
        {"{\"capacityRange\":{\"limitBytes\":\"9223372036854775808\"}}",
         "capacityRange.limitBytes must be a 64-bit integer"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        ck_assert_ptr_null(from_text(CREATE, cases[i][0], &error));
        ck_assert_str_eq(error->message, cases[i][1]);
    }
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(from_text(&csi__v1__list_volumes_request__descriptor,
                                 "{\"maxEntries\":2147483648}", &error));
    ck_assert_str_eq(error->message, "maxEntries must be a 32-bit integer");
}
END_TEST

HARNESS_MAIN("driver/rpc/message_json", requests_survive_the_wire,
             well_known_types_are_their_values, mistakes_name_the_field)
