/* SPDX-License-Identifier: Apache-2.0 */
#include "common/quantity.h"
#include "tests/unit/harness.h"

static void is(guint64 bytes, const char *text)
{
    g_autofree char *got = quantity_text(bytes);
    ck_assert_str_eq(got, text);
}

START_TEST(bytes_are_three_digits_and_a_unit)
{
    is(0, "0");
    is(1023, "1023");
    is(1024, "1.0Ki");
    is(1536, "1.5Ki");
    is(200 << 20, "200Mi");
    is(G_GUINT64_CONSTANT(3) << 40, "3.0Ti");
    is(G_MAXUINT64, "16384Pi");
}
END_TEST

HARNESS_MAIN("common/quantity", bytes_are_three_digits_and_a_unit)
