/* SPDX-License-Identifier: Apache-2.0 */
/* Tables of more than one run: sorted, each record found. */
#include "cache/manifest/table.h"
#include <endian.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "tests/unit/harness.h"

static void id_of(uint64_t n, ObjectId *id)
{
    ObjectKey key = {.ino = n, .version = n * 3, .size = n + 1, .mtime_sec = -(int64_t)n};
    object_key_id(&key, id);
}

static gboolean add(TableWriter *w, uint64_t n, uint64_t at)
{
    ObjectId id;
    id_of(n, &id);
    return table_add(w, &id, at, NULL);
}

static gboolean finds(const TableRecord *table, uint64_t records, uint64_t n, uint64_t at)
{
    ObjectId id;
    id_of(n, &id);
    for (uint64_t i = table_first(table, records, &id); i < records && table_may_be(&table[i], &id);
         i++)
        if (le64toh(table[i].at) == at)
            return TRUE;
    return FALSE;
}

START_TEST(runs_are_merged)
{
    enum { N = 1200000 }; /* three runs */
    g_autofree char *dir = harness_tmpdir();
    g_autoptr(TableWriter) w = table_writer_new(dir);
    for (uint64_t i = 0; i < N; i++)
        ck_assert(add(w, i, i * 50));
    ck_assert(add(w, 7, 1)); /* a hard link's second name, in another run */
    int fd = memfd_create("table", MFD_CLOEXEC);
    uint64_t records;
    ck_assert(table_finish(w, fd, &records, NULL));
    ck_assert_uint_eq(records, N + 1);
    TableRecord *table = mmap(NULL, records * sizeof(*table), PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(table != MAP_FAILED);
    for (uint64_t i = 1; i < records; i++)
        ck_assert_int_lt(memcmp(&table[i - 1], &table[i], sizeof(*table)), 0);
    for (uint64_t i = 0; i < N; i += 1009)
        ck_assert(finds(table, records, i, i * 50));
    ck_assert(finds(table, records, 7, 350));
    ck_assert(finds(table, records, 7, 1));
    ck_assert(!finds(table, records, N, N * 50));
    munmap(table, records * sizeof(*table));
    close(fd);
    harness_remove(g_steal_pointer(&dir));
}
END_TEST

START_TEST(an_empty_table_finds_nothing)
{
    g_autofree char *dir = harness_tmpdir();
    g_autoptr(TableWriter) w = table_writer_new(dir);
    int fd = memfd_create("table", MFD_CLOEXEC);
    uint64_t records = 1;
    ck_assert(table_finish(w, fd, &records, NULL));
    ck_assert_uint_eq(records, 0);
    ck_assert(!finds(NULL, 0, 0, 0));
    close(fd);
    harness_remove(g_steal_pointer(&dir));
}
END_TEST

HARNESS_MAIN("cache/manifest/table", runs_are_merged, an_empty_table_finds_nothing)
