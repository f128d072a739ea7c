/* SPDX-License-Identifier: Apache-2.0 */
/* Each cause from counters that are made up, and both sides of each threshold. */
#include "tests/unit/harness.h"
#include "cmd/hearthctl/why/causes.h"

#define MIB (1 << 20)

/* A job that waits for reads of a volume of 100 MiB that is half warm, with a healthy Ceph. */
static WhyFacts cold(void)
{
    return (WhyFacts){.seconds = 10,
                      .wait = 0.5,
                      .running = 1,
                      .waiting = 1,
                      .cpus = 1,
                      .kinds = {1, 0, 0},
                      .warm = 0.5,
                      .bytes_cached = 50 * MIB,
                      .bytes_total = 100 * MIB,
                      .from_fills = 40 * MIB,
                      .misses = 100,
                      .ceph_reads = 100,
                      .ceph_us = 100 * 5000,
                      .ceph_bytes = 40 * MIB,
                      .filled = 100,
                      .cache_bytes = 60 * MIB,
                      .cache_most = 1000ull * MIB};
}

static void assert_cause(const WhyFacts *facts, WhyCause cause)
{
    ck_assert_str_eq(why_cause_name(why_cause(facts)), why_cause_name(cause));
}

START_TEST(a_cold_volume_is_named)
{
    WhyFacts f = cold();
    assert_cause(&f, WHY_COLD);
    f.warm = 0.989;
    assert_cause(&f, WHY_COLD);
    f.warm = WHY_UNKNOWN;
    assert_cause(&f, WHY_COLD);
    f.from_fills = 0;
    f.misses = 0;
    f.from_cache = MIB;
    assert_cause(&f, WHY_DISK);
}
END_TEST

START_TEST(what_is_warm_is_read_from_the_disk_or_shared)
{
    WhyFacts f = cold();
    f.warm = 0.99;
    assert_cause(&f, WHY_DISK);
    f.from_ceph = 5 * MIB;
    f.from_cache = 5 * MIB;
    assert_cause(&f, WHY_DISK);
    f.from_fills = 0;
    f.from_ceph++;
    assert_cause(&f, WHY_SHARED);
}
END_TEST

START_TEST(what_goes_past_the_cache_is_being_written_or_finds_no_room)
{
    WhyFacts f = cold();
    f.warm = WHY_UNKNOWN; /* as of a live volume */
    f.from_fills = 9 * MIB;
    f.from_cache = MIB;
    f.from_ceph = 10 * MIB;
    assert_cause(&f, WHY_COLD);
    f.from_ceph++;
    assert_cause(&f, WHY_SHARED);
    f.image = TRUE; /* its blocks are kept as they come */
    assert_cause(&f, WHY_COLD);
    f.image = FALSE;
    f.native = TRUE; /* a snapshot is never written */
    assert_cause(&f, WHY_COLD);
    f.cache_bytes = 849 * MIB;
    assert_cause(&f, WHY_COLD);
    f.cache_bytes = 850 * MIB;
    assert_cause(&f, WHY_FULL);
    ck_assert(why_has_no_room(&f));
}
END_TEST

START_TEST(of_a_job_that_is_not_seen_and_reads_nothing_no_cause_is_told)
{
    WhyFacts f = cold();
    f.wait = f.other = WHY_UNKNOWN;
    f.from_fills = f.misses = f.ceph_reads = f.ceph_us = f.ceph_bytes = 0;
    assert_cause(&f, WHY_UNREAD);
    f.from_cache = 1;
    assert_cause(&f, WHY_DISK);
    f.from_cache = 0;
    f.wait = 0.5; /* it is seen */
    assert_cause(&f, WHY_SILENT);
}
END_TEST

START_TEST(a_dead_mount_comes_before_all)
{
    WhyFacts f = cold();
    f.lost = TRUE;
    f.wait = 0;
    f.disk_off = TRUE;
    assert_cause(&f, WHY_LOST);
}
END_TEST

START_TEST(a_job_that_hardly_waits_computes_or_is_idle)
{
    WhyFacts f = cold();
    f.wait = 0.10;
    assert_cause(&f, WHY_COLD);
    f.wait = 0.099;
    assert_cause(&f, WHY_CPU);
    f.cpus = 0.49;
    f.running = 0.5;
    assert_cause(&f, WHY_CPU);
    f.running = 0.49;
    assert_cause(&f, WHY_IDLE);
    f.cpus = 0.5;
    assert_cause(&f, WHY_CPU);
    f.other = 0.09;
    assert_cause(&f, WHY_CPU);
    f.other = 0.10;
    assert_cause(&f, WHY_OTHER);
}
END_TEST

START_TEST(without_its_processes_hearthd_counters_decide)
{
    WhyFacts f = cold();
    f.wait = f.other = WHY_UNKNOWN;
    f.running = f.cpus = 0;
    ck_assert(why_waits(&f));
    assert_cause(&f, WHY_COLD);
}
END_TEST

START_TEST(slow_is_what_takes_longer_than_a_healthy_ceph)
{
    WhyFacts f = cold();
    f.ceph_bytes = 0;
    f.ceph_us = f.ceph_reads * 50000;
    assert_cause(&f, WHY_COLD);
    f.ceph_us += f.ceph_reads;
    assert_cause(&f, WHY_SLOW);
    f.ceph_bytes = f.ceph_reads * 4 * MIB; /* larger reads take longer */
    assert_cause(&f, WHY_COLD);
    f.ceph_us = f.ceph_reads * 150001;
    ck_assert_uint_eq(why_slow_us(&f), 150000);
    assert_cause(&f, WHY_SLOW);
    f.ceph_bytes = 1000000000; /* 100 MB/s: it is busy */
    f.ceph_us = f.ceph_reads * 9000000;
    assert_cause(&f, WHY_COLD);
    f.ceph_bytes--;
    assert_cause(&f, WHY_SLOW);
    f.ceph_reads = 0;
    assert_cause(&f, WHY_COLD);
}
END_TEST

START_TEST(full_is_when_what_comes_had_been_evicted)
{
    WhyFacts f = cold();
    f.evicted_bytes = 1;
    assert_cause(&f, WHY_COLD); /* others' data made room */
    f.refetched = 9;
    assert_cause(&f, WHY_COLD);
    f.refetched = 10;
    assert_cause(&f, WHY_FULL);
    f.evicted_bytes = 0;
    assert_cause(&f, WHY_COLD);
    f.evicted_bytes = 1;
    f.refetched = 0;
    f.filled = 0;
    assert_cause(&f, WHY_COLD);
    f.cache_most = f.bytes_total;
    assert_cause(&f, WHY_COLD);
    f.cache_most--; /* it can never be there whole */
    assert_cause(&f, WHY_FULL);
    f.cache_most = 0;
    assert_cause(&f, WHY_COLD);
}
END_TEST

START_TEST(silence_is_waiting_without_an_answer)
{
    WhyFacts f = cold();
    f.wait = 0.5;
    f.from_fills = f.ceph_reads = f.ceph_us = f.ceph_bytes = 0;
    assert_cause(&f, WHY_SILENT);
    f.wait = 0.49;
    assert_cause(&f, WHY_COLD);
    f.wait = 1;
    f.kinds[WAIT_NAME] = 0.6;
    assert_cause(&f, WHY_COLD);
    f.kinds[WAIT_NAME] = 0;
    f.native = TRUE; /* what is warm is read past hearthd */
    assert_cause(&f, WHY_COLD);
    f.fills_active = 1;
    assert_cause(&f, WHY_SILENT);
    f.from_cache = 1;
    assert_cause(&f, WHY_COLD);
}
END_TEST

START_TEST(faults_of_the_cache_come_before_a_slow_ceph)
{
    WhyFacts f = cold();
    f.uncached = TRUE;
    assert_cause(&f, WHY_UNCACHED);
    f.ceph_us = f.ceph_reads * 900000;
    assert_cause(&f, WHY_SLOW);
    f.disk_off = TRUE;
    assert_cause(&f, WHY_BYPASS);
}
END_TEST

START_TEST(what_the_threads_wait_for_decides)
{
    WhyFacts f = cold();
    f.kinds[WAIT_READ] = 0.41;
    f.kinds[WAIT_WRITE] = 0.59;
    assert_cause(&f, WHY_COLD);
    f.kinds[WAIT_WRITE] = 0.6;
    assert_cause(&f, WHY_WRITES);
    f.kinds[WAIT_WRITE] = 0;
    f.kinds[WAIT_NAME] = 0.6;
    assert_cause(&f, WHY_COLD); /* opens of cold files are names, too */
    f.from_fills = f.misses = 0;
    f.from_cache = 1;
    assert_cause(&f, WHY_NAMES);
    f.kinds[WAIT_NAME] = 0.59;
    assert_cause(&f, WHY_DISK);
}
END_TEST

START_TEST(every_cause_has_a_name_of_its_own)
{
    for (int a = 0; a < WHY_CAUSES; a++)
        for (int b = 0; b < a; b++)
            ck_assert_str_ne(why_cause_name((WhyCause)a), why_cause_name((WhyCause)b));
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/why/causes", a_cold_volume_is_named,
             what_is_warm_is_read_from_the_disk_or_shared,
             what_goes_past_the_cache_is_being_written_or_finds_no_room,
             of_a_job_that_is_not_seen_and_reads_nothing_no_cause_is_told,
             a_dead_mount_comes_before_all, a_job_that_hardly_waits_computes_or_is_idle,
             without_its_processes_hearthd_counters_decide,
             slow_is_what_takes_longer_than_a_healthy_ceph,
             full_is_when_what_comes_had_been_evicted, silence_is_waiting_without_an_answer,
             faults_of_the_cache_come_before_a_slow_ceph, what_the_threads_wait_for_decides,
             every_cause_has_a_name_of_its_own)
