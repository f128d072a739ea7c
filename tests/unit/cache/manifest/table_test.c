/* Tables of more than one run: sorted, each record once, each found. */
#include "cache/manifest/table.h"
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <xxhash.h>
#include "tests/unit/harness.h"

static void id_of(uint64_t n, ObjectId *id)
{
    XXH128_hash_t h = XXH3_128bits(&n, sizeof(n));
    memcpy(id->bytes, &h, sizeof(id->bytes));
}

static gboolean is_it(uint64_t ino, void *data)
{
    return ino == *(uint64_t *)data;
}

START_TEST(runs_are_merged)
{
    enum { N = 2200000 }; /* three runs */
    g_autofree char *dir = harness_tmpdir();
    g_autoptr(TableWriter) w = table_writer_new(dir);
    ObjectId id;
    for (uint64_t i = 0; i < N; i++) {
        id_of(i, &id);
        ck_assert(table_add(w, &id, i, NULL));
    }
    id_of(7, &id); /* a hard link's second name, in another run */
    ck_assert(table_add(w, &id, 7, NULL));
    int fd = memfd_create("table", MFD_CLOEXEC);
    uint64_t records;
    ck_assert(table_finish(w, fd, &records, NULL));
    ck_assert_uint_eq(records, N);
    TableRecord *table = mmap(NULL, N * sizeof(*table), PROT_READ, MAP_SHARED, fd, 0);
    ck_assert(table != MAP_FAILED);
    for (uint64_t i = 1; i < N; i++)
        ck_assert_int_lt(memcmp(&table[i - 1], &table[i], sizeof(*table)), 0);
    for (uint64_t i = 0; i < N; i += 1009) {
        id_of(i, &id);
        ck_assert(table_find(table, N, &id, is_it, &i));
    }
    uint64_t missing = N;
    id_of(missing, &id);
    ck_assert(!table_find(table, N, &id, is_it, &missing));
    munmap(table, N * sizeof(*table));
    close(fd);
    harness_remove(g_steal_pointer(&dir));
}
END_TEST

START_TEST(an_empty_table_finds_nothing)
{
    g_autofree char *dir = harness_tmpdir();
    g_autoptr(TableWriter) w = table_writer_new(dir);
    int fd = memfd_create("table", MFD_CLOEXEC);
    uint64_t records = 1, any = 0;
    ObjectId id;
    id_of(0, &id);
    ck_assert(table_finish(w, fd, &records, NULL));
    ck_assert_uint_eq(records, 0);
    ck_assert(!table_find(NULL, 0, &id, is_it, &any));
    close(fd);
    harness_remove(g_steal_pointer(&dir));
}
END_TEST

HARNESS_MAIN("cache/manifest/table", runs_are_merged, an_empty_table_finds_nothing)
