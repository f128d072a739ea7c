/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <string.h>
#include "cache/store/disk/record.h"
#include "tests/unit/harness.h"

static Record sample(ObjectId *id)
{
    Record r = {.key = {.ino = 1, .version = 2, .size = 3, .mtime_sec = -4, .mtime_nsec = 5},
                .chunk_bytes = 4 << 20,
                .data_checksum = 0xfeedfacecafebeef,
                .last_use_ms = 1234567890123};
    memset(r.key.space, 0x11, sizeof(r.key.space));
    tag_id("volume", &r.tag);
    object_key_id(&r.key, id);
    return r;
}

START_TEST(record_is_read_back)
{
    ObjectId id;
    FormatRecord raw;
    Record r = sample(&id), back;
    index_record_encode(&r, &raw);
    ck_assert_int_eq(index_record_decode(&raw, sizeof(raw), &id, &back), 0);
    ck_assert_int_eq(back.key.mtime_sec, -4);
    ck_assert_uint_eq(back.key.mtime_nsec, 5);
    ck_assert_uint_eq(back.key.size, 3);
    ck_assert_uint_eq(back.chunk_bytes, r.chunk_bytes);
    ck_assert_uint_eq(back.data_checksum, r.data_checksum);
    ck_assert_uint_eq(back.last_use_ms, r.last_use_ms);
    ck_assert_int_eq(memcmp(&back.tag, &r.tag, sizeof(r.tag)), 0);
}
END_TEST

START_TEST(record_with_any_bit_flipped_is_refused)
{
    ObjectId id;
    FormatRecord raw;
    Record r = sample(&id), back;
    for (size_t bit = 0; bit < sizeof(raw) * 8; bit++) {
        index_record_encode(&r, &raw);
        ((uint8_t *)&raw)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        ck_assert_int_lt(index_record_decode(&raw, sizeof(raw), &id, &back), 0);
    }
}
END_TEST

START_TEST(record_of_another_length_or_version_is_refused)
{
    ObjectId id;
    FormatRecord raw;
    Record r = sample(&id), back;
    uint8_t longer[sizeof(raw) + 1] = {0};
    index_record_encode(&r, &raw);
    memcpy(longer, &raw, sizeof(raw));
    for (size_t len = 0; len < sizeof(raw); len++)
        ck_assert_int_lt(index_record_decode(&raw, len, &id, &back), 0);
    ck_assert_int_eq(index_record_decode(longer, sizeof(longer), &id, &back), -EBADMSG);
    longer[0] = 9;
    ck_assert_int_eq(index_record_decode(longer, sizeof(raw), &id, &back), -EPROTONOSUPPORT);
}
END_TEST

START_TEST(record_of_another_object_is_refused)
{
    ObjectId id;
    FormatRecord raw;
    Record r = sample(&id), back;
    index_record_encode(&r, &raw);
    id.bytes[0] ^= 1;
    ck_assert_int_eq(index_record_decode(&raw, sizeof(raw), &id, &back), -EBADMSG);
}
END_TEST

START_TEST(charge_is_whole_blocks_and_never_nothing)
{
    ck_assert_uint_eq(record_charge(0), 4096);
    ck_assert_uint_eq(record_charge(1), 4096);
    ck_assert_uint_eq(record_charge(4096), 4096);
    ck_assert_uint_eq(record_charge(4097), 8192);
    ck_assert_uint_gt(record_charge(UINT64_MAX), UINT64_MAX - 4096);
}
END_TEST

HARNESS_MAIN("cache/store/disk/record", record_is_read_back, record_with_any_bit_flipped_is_refused,
             record_of_another_length_or_version_is_refused, record_of_another_object_is_refused,
             charge_is_whole_blocks_and_never_nothing)
