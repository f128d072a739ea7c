/* SPDX-License-Identifier: Apache-2.0 */
/* What is kept of a key: it is known again by it, nothing else is, and no text is believed that is
 * not exactly one of ours. */
#include "cache/volume/key_hash.h"
#include <string.h>
#include "tests/unit/harness.h"

#define KEY "AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A=="
/* PBKDF2-HMAC-SHA256 of "password", 16 bytes "0123456789abcdef", 1000 rounds, by Python's hashlib.
 */
#define KNOWN                                                                                      \
    "pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg==$hRRjgXWkW8ResfIvBP99J/T4vkgEmMRV/0tJTOjR59I="

START_TEST(a_key_is_known_again_and_no_other)
{
    g_autofree char *hash = key_hash_new(KEY), *again = key_hash_new(KEY);
    ck_assert_str_ne(hash, again);
    ck_assert(key_hash_matches(hash, KEY));
    ck_assert(!key_hash_matches(hash, KEY "="));
    ck_assert(!key_hash_matches(hash, ""));
    ck_assert_ptr_null(strstr(hash, "AQBSdF"));
    ck_assert(key_hash_matches(KNOWN, "password"));
}
END_TEST

START_TEST(what_is_no_hash_matches_nothing)
{
    static const char *const bad[] = {
        "",
        "$",
        "$$$",
        "pbkdf2-sha256$1000$MDEyMzQ1Njc4OWFiY2RlZg==$",
        "pbkdf2-sha256$999$MDEyMzQ1Njc4OWFiY2RlZg==$hRRjgXWkW8ResfIvBP99J/T4vkgEmMRV/0tJTOjR59I=",
        "pbkdf2-sha256$4294967296000$MDEyMzQ1Njc4OWFiY2RlZg==$hRRjgXWkW8ResfIvBP99J/T4vkgEmMRV/"
        "0tJTOjR59I=",
        "pbkdf2-sha256$-1$MDEyMzQ1Njc4OWFiY2RlZg==$hRRjgXWkW8ResfIvBP99J/T4vkgEmMRV/0tJTOjR59I=",
        "pbkdf2-sha1$1000$MDEyMzQ1Njc4OWFiY2RlZg==$hRRjgXWkW8ResfIvBP99J/T4vkgEmMRV/0tJTOjR59I=",
    };
    for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
        ck_assert(!key_hash_matches(bad[i], "password"));
}
END_TEST

/* Each byte changed, left out and doubled. */
START_TEST(no_text_but_ours_is_taken_for_it)
{
    const size_t n = strlen(KNOWN);
    for (size_t i = 0; i < n; i++) {
        g_autofree char *cut = g_strndup(KNOWN, i), *doubled = NULL, *left_out = NULL;
        ck_assert(!key_hash_matches(cut, "password"));
        left_out = g_strconcat(cut, KNOWN + i + 1, NULL);
        doubled = g_strdup_printf("%s%c%s", cut, KNOWN[i], KNOWN + i);
        ck_assert(!key_hash_matches(left_out, "password"));
        /* 10000 rounds and not 1000, say. */
        ck_assert(!key_hash_matches(doubled, "password"));
        for (unsigned bit = 0; bit < 7; bit++) {
            g_autofree char *flipped = g_strdup(KNOWN);
            flipped[i] = (char)(flipped[i] ^ (1 << bit));
            ck_assert_msg(!key_hash_matches(flipped, "password"), "%s", flipped);
        }
    }
}
END_TEST

HARNESS_MAIN("cache/volume/key_hash", a_key_is_known_again_and_no_other,
             what_is_no_hash_matches_nothing, no_text_but_ours_is_taken_for_it)
