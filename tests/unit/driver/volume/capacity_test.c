/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/capacity.h"
#include "tests/unit/harness.h"

#define MIB (G_GINT64_CONSTANT(1) << 20)
#define GIB (G_GINT64_CONSTANT(1) << 30)

static gint64 chosen_for(VolumeType type, gint64 required, gint64 limit)
{
    gint64 bytes = -1;
    g_autoptr(GError) error = NULL;
    CapacityRange range = {required, limit};
    return capacity_choose(range, type, &bytes, &error) ? bytes : -error->code;
}

static gint64 chosen(gint64 required, gint64 limit)
{
    return chosen_for(VOLUME_CEPHFS, required, limit);
}

static gboolean fits(gint64 required, gint64 limit, gint64 bytes)
{
    return capacity_fits((CapacityRange){required, limit}, VOLUME_CEPHFS, bytes);
}

START_TEST(chooses_what_is_required)
{
    ck_assert_int_eq(chosen(5 * GIB, 0), 5 * GIB);
    ck_assert_int_eq(chosen(5 * GIB, 5 * GIB), 5 * GIB);
    ck_assert_int_eq(chosen(5 * GIB, 9 * GIB), 5 * GIB);
}
END_TEST

START_TEST(defaults_to_1_gib_within_the_limit)
{
    ck_assert_int_eq(chosen(0, 0), GIB);
    ck_assert_int_eq(chosen(0, 10 * GIB), GIB);
    ck_assert_int_eq(chosen(0, 100 * MIB), 100 * MIB);
}
END_TEST

START_TEST(rounds_up_to_what_a_quota_counts_unless_limited)
{
    ck_assert_int_eq(chosen(1, 0), 4 * MIB);
    ck_assert_int_eq(chosen(5 * MIB, 0), 8 * MIB);
    ck_assert_int_eq(chosen(5 * MIB, 6 * MIB), 6 * MIB);
    ck_assert_int_eq(chosen(MIB + 1, MIB + 1), MIB + 1);
}
END_TEST

/* A volume that is restored from a snapshot must not need more than its claim asked for. */
START_TEST(an_image_of_1_mib_stays_so)
{
    ck_assert_int_eq(chosen_for(VOLUME_RBD, MIB, 0), MIB);
    ck_assert_int_eq(chosen_for(VOLUME_RBD, 5 * MIB + 1, 0), 6 * MIB);
    ck_assert_int_eq(chosen_for(VOLUME_RBD, 1, 0), MIB);
    ck_assert_int_eq(chosen_for(VOLUME_RBD, 0, 0), GIB);
    const CapacityRange range = {MIB, 0};
    ck_assert(capacity_fits(range, VOLUME_RBD, MIB));
    ck_assert(!capacity_fits(range, VOLUME_RBD, 2 * MIB));
    /* As a creation that began before an upgrade has recorded it. */
    ck_assert(capacity_fits(range, VOLUME_RBD, 4 * MIB));
}
END_TEST

START_TEST(refuses_what_cannot_be)
{
    ck_assert_int_eq(chosen(-1, 0), -HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(chosen(0, -1), -HEARTH_ERROR_INVALID_ARGUMENT);
    ck_assert_int_eq(chosen(0, 1), -HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_int_eq(chosen(1, MIB - 1), -HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_int_eq(chosen(2 * GIB, GIB), -HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_int_eq(chosen(G_MAXINT64, 0), -HEARTH_ERROR_OUT_OF_RANGE);
    ck_assert_int_eq(chosen(G_MAXINT64, G_MAXINT64), -HEARTH_ERROR_OUT_OF_RANGE);
}
END_TEST

START_TEST(a_repetition_fits_and_another_size_does_not)
{
    ck_assert(fits(5 * GIB, 0, 5 * GIB));
    ck_assert(fits(5 * MIB, 0, 8 * MIB));
    ck_assert(!fits(6 * GIB, 0, 5 * GIB));
    ck_assert(!fits(4 * GIB, 0, 5 * GIB));
    ck_assert(fits(4 * GIB, 6 * GIB, 5 * GIB));
    ck_assert(!fits(0, 4 * GIB, 5 * GIB));
    ck_assert(fits(0, 0, 5 * GIB));
}
END_TEST

HARNESS_MAIN("driver/volume/capacity", chooses_what_is_required, defaults_to_1_gib_within_the_limit,
             rounds_up_to_what_a_quota_counts_unless_limited, an_image_of_1_mib_stays_so,
             refuses_what_cannot_be, a_repetition_fits_and_another_size_does_not)
