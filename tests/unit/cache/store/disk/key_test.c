/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/disk/key.h"
#include "tests/unit/cache/store/fake_origin.h"
#include "tests/unit/harness.h"

START_TEST(id_is_the_same_in_every_build)
{
    FakeOrigin fake;
    fake_init(&fake);
    OriginNode node = fake_file(0x1122334455667788, 110000);
    node.attr.st.st_mtim.tv_nsec = 123456789;
    ObjectKey key;
    ObjectId id;
    fake_key(&fake, &node, &key, &id);
    char hex[OBJECT_ID_HEX + 1];
    object_id_hex(&id, hex);
    ck_assert_str_eq(hex, "a74ee7379efa5377be5118133d374855");
}
END_TEST

START_TEST(id_depends_on_every_part_of_the_identity)
{
    FakeOrigin fake;
    fake_init(&fake);
    ObjectKey base, key;
    ObjectId base_id, id;
    OriginNode node = fake_file(1, 2);
    fake_key(&fake, &node, &base, &base_id);
    for (int part = 0; part < 6; part++) {
        key = base;
        switch (part) {
        case 0:
            key.space[23] ^= 1;
            break;
        case 1:
            key.ino++;
            break;
        case 2:
            key.version++;
            break;
        case 3:
            key.size++;
            break;
        case 4:
            key.mtime_sec--;
            break;
        case 5:
            key.mtime_nsec++;
            break;
        }
        object_key_id(&key, &id);
        ck_assert_msg(!object_id_equal(&id, &base_id), "part %d does not count", part);
    }
}
END_TEST

START_TEST(snapshot_and_live_inode_share_an_object)
{
    FakeOrigin fake;
    fake_init(&fake);
    ObjectKey key;
    ObjectId live, snapshot;
    OriginNode node = fake_file(1, 2);
    fake_key(&fake, &node, &key, &live);
    node.attr.snapshot = 42;
    fake_key(&fake, &node, &key, &snapshot);
    ck_assert(object_id_equal(&live, &snapshot));
}
END_TEST

START_TEST(id_text_is_read_back_and_nothing_else)
{
    ObjectId id = {{0x00, 0x01, 0x9a, 0xff, 0xab, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}}, back;
    char hex[OBJECT_ID_HEX + 1];
    object_id_hex(&id, hex);
    ck_assert(object_id_parse(hex, &back));
    ck_assert(object_id_equal(&id, &back));
    ck_assert(!object_id_parse("", &back));
    ck_assert(!object_id_parse("00019affab05060708090a0b0c0d0e0", &back));
    ck_assert(!object_id_parse("00019affab05060708090a0b0c0d0e0f0", &back));
    ck_assert(!object_id_parse("00019AFFab05060708090a0b0c0d0e0f", &back));
    ck_assert(!object_id_parse("00019affab05060708090a0b0c0d0e0g", &back));
}
END_TEST

START_TEST(tags_differ_and_no_tag_is_the_empty_one)
{
    TagId a, b, none, empty;
    tag_id("pvc-1", &a);
    tag_id("pvc-2", &b);
    tag_id(NULL, &none);
    tag_id("", &empty);
    ck_assert_int_ne(memcmp(&a, &b, sizeof(a)), 0);
    ck_assert_int_eq(memcmp(&none, &empty, sizeof(none)), 0);
}
END_TEST

HARNESS_MAIN("cache/store/disk/key", id_is_the_same_in_every_build,
             id_depends_on_every_part_of_the_identity, snapshot_and_live_inode_share_an_object,
             id_text_is_read_back_and_nothing_else, tags_differ_and_no_tag_is_the_empty_one)
