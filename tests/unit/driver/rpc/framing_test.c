/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/rpc/framing.h"

#include <string.h>

#include "tests/unit/harness.h"

START_TEST(timeout_units)
{
    static const struct {
        const char *text;
        gint64 us; /* -1: malformed */
    } cases[] = {
        {"1H", 3600000000},
        {"2M", 120000000},
        {"3S", 3000000},
        {"4m", 4000},
        {"5u", 5},
        {"6n", 1},
        {"0n", 0},
        {"1001n", 2},
        {"99999999H", 99999999 * G_GINT64_CONSTANT(3600000000)},
        {"00000001S", 1000000},
        {"100000000S", -1},
        {"S", -1},
        {"", -1},
        {"5", -1},
        {"5s", -1},
        {"-1S", -1},
        {"+1S", -1},
        {"1.5S", -1},
        {" 1S", -1},
        {"1S ", -1},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        gint64 us = -1;
        gboolean ok = rpc_timeout_parse(cases[i].text, strlen(cases[i].text), &us);
        ck_assert_msg(ok == (cases[i].us >= 0), "%s", cases[i].text);
        if (ok)
            ck_assert_int_eq(us, cases[i].us);
    }
}
END_TEST

START_TEST(timeout_is_formatted_in_eight_digits_and_never_shortened)
{
    static const struct {
        gint64 ms;
        const char *text;
    } cases[] = {{1, "1m"},
                 {99999999, "99999999m"},
                 {100000000, "100000S"},
                 {100000001, "100001S"},
                 {G_MAXINT64, "99999999H"}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        char text[16];
        rpc_timeout_format(cases[i].ms, text);
        ck_assert_str_eq(text, cases[i].text);
    }
}
END_TEST

START_TEST(content_types)
{
    static const char *const good[] = {"application/grpc", "application/grpc+proto",
                                       "application/grpc;charset=utf-8", "Application/gRPC"},
                             *const bad[] = {"",
                                             "application/grp",
                                             "application/json",
                                             "application/grpc-web",
                                             "application/grpc+json",
                                             "application/grpc+protobuf"};
    for (size_t i = 0; i < G_N_ELEMENTS(good); i++)
        ck_assert_msg(rpc_content_type_ok(good[i], strlen(good[i])), "%s", good[i]);
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert_msg(!rpc_content_type_ok(bad[i], strlen(bad[i])), "%s", bad[i]);
}
END_TEST

START_TEST(messages_survive_percent_encoding)
{
    static const char *const messages[] = {"",    "plain text", "100%", "größe\n",
                                           "%41", "日本 \x7f",  " ",    " both ends  "};
    for (size_t i = 0; i < G_N_ELEMENTS(messages); i++) {
        g_autofree char *encoded = rpc_percent_encode(messages[i]);
        for (const char *p = encoded; *p; p++)
            ck_assert(*p >= 0x20 && *p <= 0x7e);
        size_t n = strlen(encoded);
        ck_assert(n == 0 || (encoded[0] != ' ' && encoded[n - 1] != ' '));
        g_autofree char *decoded = rpc_percent_decode(encoded, strlen(encoded));
        ck_assert_str_eq(decoded, messages[i]);
    }
    g_autofree char *lone = rpc_percent_decode("%", 1), *half = rpc_percent_decode("a%4", 3),
                    *word = rpc_percent_decode("%zz", 3);
    ck_assert_str_eq(lone, "%");
    ck_assert_str_eq(half, "a%4");
    ck_assert_str_eq(word, "%zz");
    g_autofree char *invalid = rpc_percent_encode("a\xff");
    ck_assert_str_eq(invalid, "a%EF%BF%BD");
    g_autofree char *nul = rpc_percent_decode("a%00b%ff", 8);
    ck_assert(g_utf8_validate(nul, -1, NULL));
}
END_TEST

START_TEST(long_messages_are_cut_at_a_character)
{
    g_autofree char *text = g_malloc(30001);
    for (size_t i = 0; i < 30000; i += 3)
        memcpy(text + i, "日", 3);
    text[30000] = '\0';
    g_autofree char *encoded = rpc_percent_encode(text);
    ck_assert_uint_le(strlen(encoded), RPC_MESSAGE_MAX_BYTES);
    ck_assert_uint_eq(strlen(encoded) % 9, 0);
}
END_TEST

START_TEST(prefix_is_big_endian)
{
    guint8 prefix[RPC_PREFIX_BYTES];
    rpc_prefix_write(prefix, 0x01020304);
    ck_assert_mem_eq(prefix, "\0\1\2\3\4", 5);
    ck_assert_uint_eq(rpc_prefix_length(prefix), 0x01020304);
    ck_assert_uint_eq(rpc_prefix_length((const guint8 *)"\0\xff\xff\xff\xff"), G_MAXUINT32);
    ck_assert_str_eq(rpc_code_name(5), "NOT_FOUND");
    ck_assert_str_eq(rpc_code_name(17), "UNKNOWN");
}
END_TEST

HARNESS_MAIN("driver/rpc/framing", timeout_units,
             timeout_is_formatted_in_eight_digits_and_never_shortened, content_types,
             messages_survive_percent_encoding, long_messages_are_cut_at_a_character,
             prefix_is_big_endian)
