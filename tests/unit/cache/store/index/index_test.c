/* SPDX-License-Identifier: Apache-2.0 */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <lmdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/store/index/index.h"
#include "tests/unit/harness.h"

static Index *open_at(const char *path, gboolean expect_created)
{
    g_autoptr(GError) error = NULL;
    gboolean created;
    Index *index = index_open(path, &created, &error);
    ck_assert_msg(index != NULL, "%s", error ? error->message : "");
    ck_assert_int_eq(created, expect_created);
    return index;
}

static IndexChange put(uint64_t ino, uint64_t size, uint64_t last_use_ms, const char *tag)
{
    IndexChange c = {.op = INDEX_PUT};
    c.record.key.ino = ino;
    c.record.key.size = size;
    c.record.last_use_ms = last_use_ms;
    tag_id(tag, &c.record.tag);
    object_key_id(&c.record.key, &c.id);
    return c;
}

static void apply(Index *index, IndexChange c)
{
    IndexTotals delta;
    ck_assert_int_eq(index_apply(index, &c, 1, 0, &delta), 0);
}

static void assert_totals(Index *index, const char *tag, uint64_t bytes, uint64_t objects)
{
    IndexTotals totals;
    TagId id;
    tag_id(tag, &id);
    ck_assert_int_eq(tag ? index_tag_totals(index, &id, &totals) : index_totals(index, &totals), 0);
    ck_assert_uint_eq(totals.bytes, bytes);
    ck_assert_uint_eq(totals.objects, objects);
}

START_TEST(totals_follow_puts_replacements_and_deletions)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    IndexChange a = put(1, 5000, 10, "x"), b = put(2, 100, 20, "y");
    apply(index, a);
    apply(index, b);
    apply(index, a);
    assert_totals(index, NULL, 12288, 2);
    assert_totals(index, "x", 8192, 1);
    tag_id("y", &a.record.tag);
    apply(index, a);
    assert_totals(index, "x", 0, 0);
    assert_totals(index, "y", 12288, 2);
    b.op = INDEX_DELETE;
    apply(index, b);
    apply(index, b);
    assert_totals(index, NULL, 8192, 1);
    index_close(index);
    index = open_at(path, FALSE);
    assert_totals(index, NULL, 8192, 1);
    ck_assert(index_has(index, &a.id));
    ck_assert(!index_has(index, &b.id));
    index_close(index);
    harness_remove(dir);
}
END_TEST

/* Of all tags. */
static void assert_oldest(Index *index, uint64_t ino)
{
    IndexTag tags[8];
    IndexEntry oldest = {.last_use_ms = UINT64_MAX}, entry;
    gboolean end;
    IndexChange want = put(ino, 1, 0, NULL);
    ssize_t n = index_tags(index, NULL, tags, 8);
    ck_assert_int_gt(n, 0);
    for (ssize_t i = 0; i < n; i++) {
        ck_assert_int_eq(index_list(index, &(IndexList){&tags[i].tag, INDEX_FROM_OLDEST, NULL, 1, 1,
                                                        &entry, 1, &end}),
                         1);
        if (entry.last_use_ms < oldest.last_use_ms)
            oldest = entry;
    }
    ck_assert(object_id_equal(&oldest.id, &want.id));
}

START_TEST(touch_moves_to_the_end_unless_used_a_moment_ago)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    IndexTotals delta;
    apply(index, put(1, 1, 1000, "x"));
    apply(index, put(2, 1, 2000, "x"));
    IndexChange touch = put(1, 1, 61000, "x");
    touch.op = INDEX_TOUCH;
    touch.record.last_use_ms = 60999;
    ck_assert_int_eq(index_apply(index, &touch, 1, 60000, &delta), 0);
    assert_oldest(index, 1);
    touch.record.last_use_ms = 61000;
    ck_assert_int_eq(index_apply(index, &touch, 1, 60000, &delta), 0);
    assert_oldest(index, 2);
    ck_assert_uint_eq(delta.objects, 0);
    assert_totals(index, NULL, 8192, 2);
    /* What is not there does not come into being. */
    touch = put(3, 1, 99000, "x");
    touch.op = INDEX_TOUCH;
    ck_assert_int_eq(index_apply(index, &touch, 1, 0, &delta), 0);
    assert_totals(index, NULL, 8192, 2);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(retag_moves_an_object_to_another_tags_totals)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    IndexTotals delta;
    apply(index, put(1, 1, 1000, "old"));
    apply(index, put(2, 1, 2000, "old"));
    IndexChange retag = put(1, 1, 0, "new");
    retag.op = INDEX_RETAG;
    ck_assert_int_eq(index_apply(index, &retag, 1, 0, &delta), 0);
    ck_assert_uint_eq(delta.objects, 0);
    assert_totals(index, "old", 4096, 1);
    assert_totals(index, "new", 4096, 1);
    assert_totals(index, NULL, 8192, 2);
    assert_oldest(index, 1);
    TagId tag;
    IndexEntry entry;
    gboolean end;
    tag_id("new", &tag);
    ck_assert_int_eq(
        index_list(index, &(IndexList){&tag, INDEX_FROM_OLDEST, NULL, 1, 1, &entry, 1, &end}), 1);
    ck_assert(object_id_equal(&entry.id, &retag.id));
    /* What is not there does not come into being. */
    retag = put(3, 1, 0, "new");
    retag.op = INDEX_RETAG;
    ck_assert_int_eq(index_apply(index, &retag, 1, 0, &delta), 0);
    assert_totals(index, NULL, 8192, 2);
    index_close(index);
    harness_remove(dir);
}
END_TEST

/* 100 objects of different age, of two tags. */
static Index *open_odd_and_even(const char *path)
{
    Index *index = open_at(path, TRUE);
    for (uint64_t i = 0; i < 100; i++)
        apply(index, put(i, 4096, (i * 37) % 100 + 1, i % 2 ? "odd" : "even"));
    return index;
}

START_TEST(oldest_lists_by_age_and_tag_and_stops_when_enough)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_odd_and_even(path);
    const IndexFrom from = INDEX_FROM_OLDEST;
    IndexEntry entries[100];
    gboolean end;
    TagId odd;
    tag_id("odd", &odd);
    ck_assert_int_eq(
        index_list(index, &(IndexList){&odd, from, NULL, UINT64_MAX, 0, entries, 100, &end}), 50);
    ck_assert(end);
    for (int i = 1; i < 50; i++)
        ck_assert_uint_lt(entries[i - 1].last_use_ms, entries[i].last_use_ms);
    ck_assert_int_eq(
        index_list(index, &(IndexList){&odd, from, NULL, 4096 * 3 - 1, 0, entries, 100, &end}), 3);
    ck_assert_int_eq(index_list(index, &(IndexList){&odd, from, NULL, 0, 7, entries, 100, &end}),
                     7);
    ck_assert(!end);
    /* In pieces, each member of the tag once. */
    IndexCursor cursor = {.started = FALSE};
    unsigned n = 0;
    uint64_t last = 0;
    for (end = FALSE; !end;) {
        ssize_t got =
            index_list(index, &(IndexList){&odd, from, &cursor, UINT64_MAX, 0, entries, 7, &end});
        ck_assert_int_ge(got, 0);
        for (ssize_t i = 0; i < got; i++) {
            ck_assert_int_eq(memcmp(&entries[i].tag, &odd, sizeof(odd)), 0);
            ck_assert_uint_gt(entries[i].last_use_ms, last);
            last = entries[i].last_use_ms;
        }
        n += (unsigned)got;
    }
    ck_assert_uint_eq(n, 50);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(newest_lists_what_was_used_once_the_last_first)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_odd_and_even(path);
    const IndexFrom from = INDEX_FROM_NEWEST_ONCE;
    IndexTotals delta;
    for (uint64_t i = 1; i < 100; i += 4) { /* every other one of the tag */
        IndexChange touch = put(i, 4096, 1000 + i, "odd");
        touch.op = INDEX_TOUCH;
        ck_assert_int_eq(index_apply(index, &touch, 1, 0, &delta), 0);
    }
    IndexEntry entry;
    IndexCursor cursor = {.started = FALSE};
    gboolean end;
    TagId odd;
    tag_id("odd", &odd);
    unsigned n = 0;
    uint64_t last = UINT64_MAX;
    for (end = FALSE; !end; n++) {
        ck_assert_int_eq(
            index_list(index, &(IndexList){&odd, from, &cursor, 0, 1, &entry, 1, &end}), 1);
        ck_assert_uint_lt(entry.last_use_ms, last);
        ck_assert(!entry.used_again);
        last = entry.last_use_ms;
    }
    ck_assert_uint_eq(n, 25);
    /* Of the others it is known that they were used, after the index is opened again too. */
    index_close(index);
    index = open_at(path, FALSE);
    IndexEntry entries[100];
    ck_assert_int_eq(index_list(index, &(IndexList){&odd, INDEX_FROM_OLDEST, NULL, UINT64_MAX, 0,
                                                    entries, 100, &end}),
                     50);
    for (int i = 0; i < 50; i++)
        ck_assert_int_eq(entries[i].used_again, i >= 25);
    index_close(index);
    harness_remove(dir);
}
END_TEST

/* Writes what earlier versions had instead of the order: all objects by age. */
static void make_earlier(const char *path)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_dbi objects, order, uses;
    MDB_cursor *cursor;
    MDB_val key, data;
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_set_maxdbs(env, 8), 0);
    ck_assert_int_eq(mdb_env_open(env, path, MDB_NOSUBDIR, 0600), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, "objects", 0, &objects), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, "order", 0, &order), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, "uses", MDB_CREATE, &uses), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, objects, &cursor), 0);
    while (mdb_cursor_get(cursor, &key, &data, MDB_NEXT) == 0) {
        FormatRecord record;
        FormatUse use;
        memcpy(&record, data.mv_data, sizeof(record));
        uint64_t be = htobe64(le64toh(record.last_use_ms));
        memcpy(use.last_use_ms_be, &be, sizeof(be));
        memcpy(use.id, key.mv_data, sizeof(use.id));
        MDB_val use_key = {sizeof(use), &use}, tag = {sizeof(record.tag), record.tag};
        ck_assert_int_eq(mdb_put(txn, uses, &use_key, &tag, 0), 0);
    }
    mdb_cursor_close(cursor);
    ck_assert_int_eq(mdb_drop(txn, order, 1), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    mdb_env_close(env);
}

START_TEST(an_index_of_an_earlier_version_is_taken_over)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    index_close(open_odd_and_even(path));
    make_earlier(path);
    IndexEntry entries[100];
    gboolean end;
    TagId odd;
    tag_id("odd", &odd);
    for (int opened = 0; opened < 2; opened++) {
        Index *index = open_at(path, FALSE);
        assert_totals(index, "odd", 50 * 4096, 50);
        ck_assert_int_eq(index_list(index, &(IndexList){&odd, INDEX_FROM_OLDEST, NULL, UINT64_MAX,
                                                        0, entries, 100, &end}),
                         50);
        for (int i = 1; i < 50; i++) {
            ck_assert_uint_lt(entries[i - 1].last_use_ms, entries[i].last_use_ms);
            ck_assert_uint_eq(entries[i].size, 4096);
        }
        index_close(index);
    }
    harness_remove(dir);
}
END_TEST

START_TEST(tags_are_listed_with_their_totals)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_odd_and_even(path);
    IndexTag tags[4], second;
    ck_assert_int_eq(index_tags(index, NULL, tags, 4), 2);
    ck_assert_int_eq(index_tags(index, NULL, tags, 1), 1);
    ck_assert_int_eq(index_tags(index, &tags[0].tag, &second, 1), 1);
    ck_assert_int_ne(memcmp(&tags[0].tag, &second.tag, sizeof(TagId)), 0);
    ck_assert_int_eq(index_tags(index, &second.tag, tags, 4), 0);
    ck_assert_uint_eq(second.totals.objects, 50);
    ck_assert_uint_eq(second.totals.bytes, 50 * 4096);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(a_batch_is_applied_whole_or_not_at_all)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    IndexChange changes[2] = {put(1, 1, 1, "x"), {.op = (IndexOp)77}};
    IndexTotals delta;
    ck_assert_int_lt(index_apply(index, changes, 2, 0, &delta), 0);
    ck_assert(!index_has(index, &changes[0].id));
    ck_assert_uint_eq(delta.objects, 0);
    assert_totals(index, NULL, 0, 0);
    index_close(index);
    harness_remove(dir);
}
END_TEST

static void overwrite(const char *path, const void *data, size_t len, off_t off)
{
    hearth_autofd int fd = open(path, O_WRONLY);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(pwrite(fd, data, len, off), (ssize_t)len);
}

START_TEST(a_file_that_is_no_index_is_made_anew)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    ck_assert(g_file_set_contents(path, "this is no index", -1, NULL));
    index_close(open_at(path, TRUE));
    Index *index = open_at(path, FALSE);
    apply(index, put(1, 1, 1, "x"));
    index_close(index);
    char zeros[8192] = {0};
    overwrite(path, zeros, sizeof(zeros), 0);
    index = open_at(path, TRUE);
    assert_totals(index, NULL, 0, 0);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(a_truncated_index_is_made_anew)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    IndexChange *changes = g_new(IndexChange, 2000);
    IndexTotals delta;
    for (unsigned i = 0; i < 2000; i++)
        changes[i] = put(i, 1, i + 1, "x");
    ck_assert_int_eq(index_apply(index, changes, 2000, 0, &delta), 0);
    g_free(changes);
    index_close(index);
    ck_assert_int_eq(truncate(path, 12 * 4096), 0);
    index = open_at(path, TRUE);
    assert_totals(index, NULL, 0, 0);
    index_close(index);
    harness_remove(dir);
}
END_TEST

/* What a lost environment had is left behind. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:mdb_";
}

START_TEST(an_index_cut_short_while_in_use_is_lost_not_fatal)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    IndexChange a = put(1, 5000, 10, "x");
    IndexTotals totals;
    Record record;
    for (uint64_t i = 0; i < 500; i++)
        apply(index, put(i, 100, i, "x"));
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_int_eq(index_get(index, &a.id, &record), -EUCLEAN);
    ck_assert_int_eq(index_apply(index, &a, 1, 0, &totals), -EUCLEAN);
    ck_assert_int_eq(index_totals(index, &totals), -EUCLEAN);
    ck_assert_int_eq(index_reset(index), 0);
    apply(index, a);
    assert_totals(index, NULL, 8192, 1);
    /* In the middle of a change. */
    ck_assert_int_eq(truncate(path, 0), 0);
    ck_assert_int_eq(index_apply(index, &a, 1, 0, &totals), -EUCLEAN);
    ck_assert_int_eq(index_apply(index, &a, 1, 0, &totals), -EUCLEAN);
    ck_assert_int_eq(index_reset(index), 0);
    apply(index, a);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(an_index_whose_pages_rot_while_in_use_is_lost_not_fatal)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    struct stat st;
    Record record;
    for (uint64_t i = 0; i < 500; i++)
        apply(index, put(i, 100, i, "x"));
    hearth_autofd int fd = open(path, O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(fstat(fd, &st), 0);
    /* Pages that lead to others (flag 1 at 10) and say at 12 that they lead to none. LMDB asserts.
     */
    unsigned rotten = 0;
    for (off_t at = 0; at < st.st_size; at += 4096) {
        uint16_t flags;
        ck_assert_int_eq(pread(fd, &flags, 2, at + 10), 2);
        if (le16toh(flags) != 1)
            continue;
        ck_assert_int_eq(pwrite(fd, "\x10", 2, at + 12), 2);
        rotten++;
    }
    ck_assert_uint_gt(rotten, 0);
    for (uint64_t i = 0; i < 500; i++) {
        const IndexChange c = put(i, 100, i, "x");
        ck_assert_int_lt(index_get(index, &c.id, &record), 0);
    }
    ck_assert_int_eq(index_reset(index), 0);
    assert_totals(index, NULL, 0, 0);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(reset_begins_again_empty)
{
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    apply(index, put(1, 1, 1, "x"));
    ck_assert_int_eq(index_reset(index), 0);
    assert_totals(index, NULL, 0, 0);
    apply(index, put(2, 1, 1, "x"));
    assert_totals(index, NULL, 4096, 1);
    index_close(index);
    harness_remove(dir);
}
END_TEST

/* Of the mapping, in bytes: smaps(5). */
static size_t resident_of(const char *path)
{
    FILE *maps = fopen("/proc/self/smaps", "re");
    char line[4600];
    gboolean here = FALSE;
    size_t kb = 0;
    while (fgets(line, sizeof(line), maps)) {
        if (g_ascii_isxdigit(line[0]) && !g_ascii_isupper(line[0]))
            here = strstr(line, path) && !strstr(line, "-lock");
        if (here && sscanf(line, "Rss: %zu kB", &kb) == 1)
            break;
    }
    fclose(maps);
    return kb * 1024;
}

START_TEST(what_was_read_at_random_does_not_stay_in_memory)
{
    enum { BATCH = 1000, BATCHES = 60, BOUND = 20 << 20 };
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "index.mdb", NULL);
    Index *index = open_at(path, TRUE);
    g_autofree IndexChange *changes = g_new0(IndexChange, BATCH);
    IndexTotals delta;
    for (uint64_t ino = 0; ino < BATCH * BATCHES; ino++) {
        changes[ino % BATCH] = put(ino, 1, ino, "x");
        if (ino % BATCH == BATCH - 1)
            ck_assert_int_eq(index_apply(index, changes, BATCH, 0, &delta), 0);
    }
    struct stat st;
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_gt(st.st_size, BOUND);
    size_t most = resident_of(path);
    for (uint64_t ino = 0; ino < BATCH * BATCHES; ino++) {
        IndexChange c = put(ino, 1, 0, NULL);
        ck_assert(index_has(index, &c.id));
        if (ino % BATCH == 0)
            most = MAX(most, resident_of(path));
    }
    ck_assert_uint_gt(most, 0);
    ck_assert_uint_lt(most, BOUND);
    index_close(index);
    harness_remove(dir);
}
END_TEST

START_TEST(an_index_that_cannot_be_made_is_an_error_that_names_it)
{
    g_autoptr(GError) error = NULL;
    gboolean created;
    ck_assert_ptr_null(index_open("/nonexistent/index.mdb", &created, &error));
    ck_assert_ptr_nonnull(strstr(error->message, "/nonexistent/index.mdb"));
}
END_TEST

HARNESS_MAIN("cache/store/index/index", totals_follow_puts_replacements_and_deletions,
             touch_moves_to_the_end_unless_used_a_moment_ago,
             retag_moves_an_object_to_another_tags_totals,
             oldest_lists_by_age_and_tag_and_stops_when_enough,
             newest_lists_what_was_used_once_the_last_first,
             an_index_of_an_earlier_version_is_taken_over, tags_are_listed_with_their_totals,
             a_batch_is_applied_whole_or_not_at_all, a_file_that_is_no_index_is_made_anew,
             a_truncated_index_is_made_anew, an_index_cut_short_while_in_use_is_lost_not_fatal,
             an_index_whose_pages_rot_while_in_use_is_lost_not_fatal, reset_begins_again_empty,
             what_was_read_at_random_does_not_stay_in_memory,
             an_index_that_cannot_be_made_is_an_error_that_names_it)
