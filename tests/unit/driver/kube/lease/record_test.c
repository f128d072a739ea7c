/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/lease/record.h"
#include "tests/unit/harness.h"

static json_t *lease(const char *holder, int seconds, const char *renewed)
{
    return json_pack("{s:{s:s}, s:{s:s, s:i, s:s, s:i}}", "metadata", "resourceVersion", "1",
                     "spec", "holderIdentity", holder, "leaseDurationSeconds", seconds, "renewTime",
                     renewed, "leaseTransitions", 4);
}

static const json_t *spec(const json_t *object, const char *key)
{
    return json_object_get(json_object_get(object, "spec"), key);
}

START_TEST(lease_is_taken_until_unchanged_for_its_duration)
{
    LeaseRecord r = {0};
    lease_record_see(&r, lease("other", 15, "x"), 1000);
    ck_assert(lease_record_is_taken(&r, "me", 60, 1000));
    ck_assert(lease_record_is_taken(&r, "me", 60, 15999));
    ck_assert(!lease_record_is_taken(&r, "me", 60, 16000));
    ck_assert(!lease_record_is_taken(&r, "other", 60, 1000));
    /* The same again is no sign of life; a renewal is. */
    lease_record_see(&r, lease("other", 15, "x"), 9000);
    ck_assert(!lease_record_is_taken(&r, "me", 60, 16000));
    lease_record_see(&r, lease("other", 15, "y"), 16000);
    ck_assert(lease_record_is_taken(&r, "me", 60, 30999));
    lease_record_clear(&r);
}
END_TEST

START_TEST(durations_that_are_missing_or_absurd_are_bounded)
{
    LeaseRecord r = {0};
    lease_record_see(&r, lease("other", 0, "x"), 0);
    ck_assert(lease_record_is_taken(&r, "me", 60, 59999));
    ck_assert(!lease_record_is_taken(&r, "me", 60, 60000));
    lease_record_see(&r, lease("other", G_MAXINT32, "x"), 0);
    ck_assert(!lease_record_is_taken(&r, "me", 60, 3600 * 1000));
    lease_record_clear(&r);
}
END_TEST

START_TEST(first_claim_makes_the_object)
{
    LeaseRecord r = {0};
    json_t *object = lease_record_claim(&r, "ns", "hearth", "me", 15, 1760000000000042LL);
    json_t *wanted =
        json_pack("{s:s, s:s, s:{s:s, s:s}, s:{s:s, s:i, s:s, s:s, s:i}}", "apiVersion",
                  "coordination.k8s.io/v1", "kind", "Lease", "metadata", "name", "hearth",
                  "namespace", "ns", "spec", "holderIdentity", "me", "leaseDurationSeconds", 15,
                  "acquireTime", "2025-10-09T08:53:20.000042Z", "renewTime",
                  "2025-10-09T08:53:20.000042Z", "leaseTransitions", 0);
    ck_assert(json_equal(object, wanted));
    json_decref(object);
    json_decref(wanted);
}
END_TEST

START_TEST(renewal_keeps_and_takeover_counts)
{
    LeaseRecord r = {0};
    lease_record_see(&r, lease("other", 15, "x"), 0);
    json_t *taken = lease_record_claim(&r, "ns", "hearth", "me", 15, 1000000);
    ck_assert_int_eq(json_integer_value(spec(taken, "leaseTransitions")), 5);
    ck_assert_str_eq(json_string_value(spec(taken, "acquireTime")), "1970-01-01T00:00:01.000000Z");
    ck_assert_str_eq(
        json_string_value(json_object_get(json_object_get(taken, "metadata"), "resourceVersion")),
        "1");
    lease_record_see(&r, taken, 0);
    json_t *renewed = lease_record_claim(&r, "ns", "hearth", "me", 15, 3000000);
    ck_assert_int_eq(json_integer_value(spec(renewed, "leaseTransitions")), 5);
    ck_assert_str_eq(json_string_value(spec(renewed, "acquireTime")),
                     "1970-01-01T00:00:01.000000Z");
    ck_assert_str_eq(json_string_value(spec(renewed, "renewTime")), "1970-01-01T00:00:03.000000Z");
    json_decref(renewed);
    lease_record_clear(&r);
}
END_TEST

START_TEST(released_lease_is_free_at_once)
{
    LeaseRecord r = {0};
    lease_record_see(&r, lease("me", 15, "x"), 0);
    lease_record_see(&r, lease_record_release(&r, 5000000), 5000);
    ck_assert_str_eq(lease_record_holder(&r), "");
    ck_assert(!lease_record_is_taken(&r, "other", 15, 5000));
    lease_record_clear(&r);
}
END_TEST

HARNESS_MAIN("driver/kube/lease/record", lease_is_taken_until_unchanged_for_its_duration,
             durations_that_are_missing_or_absurd_are_bounded, first_claim_makes_the_object,
             renewal_keeps_and_takeover_counts, released_lease_is_free_at_once)
