/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rpc/validate.h"

#include <string.h>

#include "csi.pb-c.h"
#include "common/error.h"
#include "driver/rpc/arena.h"
#include "tests/unit/harness.h"

static char *verdict(const ProtobufCMessageDescriptor *type, const char *bytes, size_t length)
{
    g_autoptr(GError) error = NULL;
    if (rpc_validate_wire(type, (const guint8 *)bytes, length, &error))
        return g_strdup("ok");
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
    return g_strdup(error->message);
}

/* In CreateVolumeRequest. */
#define EXPECT(bytes, message)                                                                     \
    do {                                                                                           \
        g_autofree char *got =                                                                     \
            verdict(&csi__v1__create_volume_request__descriptor, bytes, sizeof(bytes) - 1);        \
        ck_assert_str_eq(got, message);                                                            \
    } while (0)
#define MALFORMED "message csi.v1.CreateVolumeRequest is malformed"

START_TEST(strings_are_checked_at_every_depth)
{
    EXPECT("", "ok");
    EXPECT("\x0a\x03"
           "vol",
           "ok");
    EXPECT("\x0a\x02\xc3\xbc", "ok");
    EXPECT("\x0a\x01\0", "field name holds a NUL byte");
    EXPECT("\x0a\x02\xc0\x80", "field name is not valid UTF-8");     /* an over-long NUL */
    EXPECT("\x0a\x03\xed\xa0\x80", "field name is not valid UTF-8"); /* a surrogate */
    EXPECT("\x0a\x01\xc3", "field name is not valid UTF-8");
    /* volume_capabilities { } volume_capabilities { mount { mount_flags "a" mount_flags NUL } } */
    EXPECT("\x1a\x00\x1a\x08\x12\x06\x12\x01"
           "a\x12\x01\0",
           "field volume_capabilities[1].mount.mount_flags[1] holds a NUL byte");
    EXPECT("\x2a\x03\x0a\x01\xff", "field secrets[0].key is not valid UTF-8");
    EXPECT("\x32\x05\x0a\x03\x0a\x01\xff",
           "field volume_content_source.snapshot.snapshot_id is not valid UTF-8");
}
END_TEST

START_TEST(unknown_fields_are_skipped)
{
    /* 99: varint, 64-bit, bytes that are no UTF-8, 32-bit */
    EXPECT("\x98\x06\x05\x99\x06"
           "12345678\x9a\x06\x02\xff\0\x9d\x06"
           "1234",
           "ok");
}
END_TEST

START_TEST(malformed_wire_is_refused)
{
    EXPECT("\x0a", MALFORMED);
    EXPECT("\x0a\x05hi", MALFORMED);
    EXPECT("\x0b", MALFORMED);                                         /* a group */
    EXPECT("\x02\x00", MALFORMED);                                     /* field 0 */
    EXPECT("\x8a\x80\x80\x80\x80\x01\x00", MALFORMED);                 /* a tag beyond 32 bits */
    EXPECT("\x0a\x80\x80\x80\x80\x10", MALFORMED);                     /* a length beyond 32 bits */
    EXPECT("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", MALFORMED); /* 2^64-1 */
    EXPECT("\x98\x06\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", MALFORMED);
    EXPECT("\x99\x06"
           "1234567",
           MALFORMED);
    EXPECT("\x08\x01", "field name is malformed"); /* a string sent as a number */
    EXPECT("\x12\x02\x0a\x00", "field capacity_range.required_bytes is malformed");
    EXPECT("\x1a\x01\x0a", "field volume_capabilities[0] is malformed");
}
END_TEST

/* Whatever the walk passes, protobuf-c decodes; on the bytes of a request, each changed. */
START_TEST(what_passes_is_decoded_alike)
{
    static const char seed[] = "\x0a\x03vol\x12\x02\x08\x05\x1a\x08\x12\x06\x0a\x04"
                               "ext4\x22\x06\x0a\x01k\x12\x01v\x32\x04\x0a\x02\x0a\x00\x3a\x00";
    guint passed = 0;
    for (size_t i = 0; i < sizeof(seed) - 1; i++) {
        for (guint byte = 0; byte < 256; byte++) {
            guint8 bytes[sizeof(seed) - 1];
            memcpy(bytes, seed, sizeof(bytes));
            bytes[i] = byte;
            const ProtobufCMessageDescriptor *type = &csi__v1__create_volume_request__descriptor;
            if (!rpc_validate_wire(type, bytes, sizeof(bytes), NULL))
                continue;
            ProtobufCMessage *message = protobuf_c_message_unpack(type, NULL, sizeof(bytes), bytes);
            ck_assert_ptr_nonnull(message);
            protobuf_c_message_free_unpacked(message, NULL);
            passed++;
        }
    }
    ck_assert_uint_gt(passed, 100);
}
END_TEST

START_TEST(maps_keep_the_last_of_each_key_in_order)
{
    /* parameters: a=1 b=2 a=3 c=4, secrets: x=1 x=2, topology segments: z=1 z=2 */
    static const char bytes[] = "\x22\x06\x0a\x01"
                                "a\x12\x01"
                                "1\x22\x06\x0a\x01"
                                "b\x12\x01"
                                "2\x22\x06\x0a\x01"
                                "a\x12\x01"
                                "3\x22\x06\x0a\x01"
                                "c\x12\x01"
                                "4\x2a\x06\x0a\x01x\x12\x01"
                                "1\x2a\x06\x0a\x01x\x12\x01"
                                "2\x3a\x12\x0a\x10\x0a\x06\x0a\x01z\x12\x01"
                                "1\x0a\x06\x0a\x01z\x12\x01"
                                "2";
    RpcArena arena;
    rpc_arena_init(&arena);
    ProtobufCMessage *message =
        protobuf_c_message_unpack(&csi__v1__create_volume_request__descriptor, &arena.allocator,
                                  sizeof(bytes) - 1, (const guint8 *)bytes);
    ck_assert_ptr_nonnull(message);
    rpc_settle_maps(message);
    const Csi__V1__CreateVolumeRequest *request = (const Csi__V1__CreateVolumeRequest *)message;
    GString *seen = g_string_new(NULL);
    for (size_t i = 0; i < request->n_parameters; i++)
        g_string_append_printf(seen, "%s=%s ", request->parameters[i]->key,
                               request->parameters[i]->value);
    ck_assert_str_eq(seen->str, "b=2 a=3 c=4 ");
    g_string_free(seen, TRUE);
    ck_assert_uint_eq(request->n_secrets, 1);
    ck_assert_str_eq(request->secrets[0]->value, "2");
    ck_assert_uint_eq(request->accessibility_requirements->requisite[0]->n_segments, 1);
    rpc_arena_clear(&arena);
}
END_TEST

START_TEST(map_entries_are_recognised)
{
    ck_assert(rpc_is_map_entry(&csi__v1__topology__segments_entry__descriptor));
    ck_assert(!rpc_is_map_entry(&csi__v1__list_volumes_response__entry__descriptor));
    ck_assert(!rpc_is_map_entry(&csi__v1__list_snapshots_response__entry__descriptor));
    ck_assert(!rpc_is_map_entry(&csi__v1__capacity_range__descriptor));
}
END_TEST

HARNESS_MAIN("driver/rpc/validate", strings_are_checked_at_every_depth, unknown_fields_are_skipped,
             malformed_wire_is_refused, what_passes_is_decoded_alike,
             maps_keep_the_last_of_each_key_in_order, map_entries_are_recognised)
