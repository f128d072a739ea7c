/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/block/file.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include "common/autofd.h"
#include "tests/unit/harness.h"

#define N 4

typedef struct World {
    char *dir;
    int fd;
    BlockFile *file;
    char data[N * BLOCK_BYTES];
    uint32_t sums[N];
} World;

static void reopen(World *w)
{
    block_file_close(w->file);
    ck_assert_int_eq(block_file_open(w->fd, "name", &w->file), 0);
}

static void begin(World *w)
{
    memset(w, 0, sizeof(*w));
    w->dir = harness_tmpdir();
    w->fd = open(w->dir, O_RDONLY | O_DIRECTORY);
    for (size_t i = 0; i < sizeof(w->data); i++)
        w->data[i] = (char)(i * 13 + i / 4096 + 1);
    reopen(w);
}

static void end(World *w)
{
    block_file_close(w->file);
    close(w->fd);
    harness_remove(w->dir);
}

static int keep(World *w, uint64_t off)
{
    int rc = block_file_write(w->file, w->data, sizeof(w->data), off, w->sums);
    return rc ? rc : block_file_vouch(w->file, w->sums, off, sizeof(w->data));
}

static int damage(World *w, const char *name, off_t off, const char *text)
{
    char id[BLOCK_FILE_ID_BYTES];
    block_file_id("name", id);
    g_autofree char *path = g_build_filename(w->dir, id, name, NULL);
    hearth_autofd int fd = open(path, O_WRONLY);
    return pwrite(fd, text, strlen(text), off) == (ssize_t)strlen(text) ? 0 : -errno;
}

START_TEST(what_is_vouched_for_is_read)
{
    World w;
    char buf[sizeof(w.data)];
    begin(&w);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 1 << 20), -ENOENT);
    ck_assert_int_eq(keep(&w, 1 << 20), 0);
    ck_assert(block_file_has(w.file, 1 << 20, sizeof(buf)));
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 1 << 20), 0);
    ck_assert_mem_eq(buf, w.data, sizeof(buf));
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), (1 << 20) + BLOCK_BYTES), -ENOENT);
    end(&w);
}
END_TEST

START_TEST(data_without_its_word_or_another_blocks_is_absent)
{
    World w;
    char buf[BLOCK_BYTES];
    begin(&w);
    ck_assert_int_eq(block_file_write(w.file, w.data, sizeof(w.data), 0, w.sums), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 0), -ENOENT);
    ck_assert_int_eq(block_file_vouch(w.file, w.sums + 1, 0, BLOCK_BYTES), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 0), -ENOENT);
    /* The same bytes at another place. */
    uint32_t sum;
    ck_assert_int_eq(block_file_write(w.file, w.data, BLOCK_BYTES, 8 * BLOCK_BYTES, &sum), 0);
    ck_assert_int_eq(block_file_vouch(w.file, w.sums, 8 * BLOCK_BYTES, BLOCK_BYTES), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 8 * BLOCK_BYTES), -ENOENT);
    end(&w);
}
END_TEST

START_TEST(damaged_or_punched_data_is_absent)
{
    World w;
    char buf[BLOCK_BYTES];
    begin(&w);
    ck_assert_int_eq(keep(&w, 0), 0);
    ck_assert_int_eq(damage(&w, FORMAT_DATA_NAME, 100, "x"), 0);
    block_file_punch(w.file, BLOCK_BYTES, BLOCK_BYTES);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 0), -ENOENT);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), BLOCK_BYTES), -ENOENT);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 2 * BLOCK_BYTES), 0);
    end(&w);
}
END_TEST

START_TEST(zeros_take_no_space)
{
    World w;
    char buf[sizeof(w.data)];
    begin(&w);
    memset(w.data, 0, sizeof(w.data));
    ck_assert_int_eq(keep(&w, 0), 0);
    ck_assert_uint_le(block_file_bytes(w.file), BLOCK_BYTES);
    memset(buf, 1, sizeof(buf));
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 0), 0);
    ck_assert_mem_eq(buf, w.data, sizeof(buf));
    end(&w);
}
END_TEST

START_TEST(no_bit_of_an_absent_word_makes_zeros)
{
    World w;
    char buf[BLOCK_BYTES];
    begin(&w);
    ck_assert_int_eq(keep(&w, 8 * BLOCK_BYTES), 0);
    for (int bit = 0; bit < 32; bit++) {
        const uint32_t word = GUINT32_TO_LE(1u << bit);
        ck_assert_int_eq(block_file_vouch(w.file, &word, 4 * BLOCK_BYTES, BLOCK_BYTES), 0);
        ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 4 * BLOCK_BYTES), -ENOENT);
    }
    end(&w);
}
END_TEST

START_TEST(the_word_of_another_blocks_zeros_makes_none)
{
    World w;
    char buf[BLOCK_BYTES];
    begin(&w);
    memset(w.data, 0, sizeof(w.data));
    ck_assert_int_eq(keep(&w, 0), 0);
    ck_assert_int_eq(block_file_vouch(w.file, w.sums, 8 * BLOCK_BYTES, BLOCK_BYTES), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 8 * BLOCK_BYTES), -ENOENT);
    end(&w);
}
END_TEST

START_TEST(what_is_forgotten_is_absent_however_much)
{
    World w;
    char buf[BLOCK_BYTES];
    const uint64_t far = 64ull << 20;
    begin(&w);
    ck_assert_int_eq(keep(&w, 0), 0);
    ck_assert_int_eq(keep(&w, far), 0);
    ck_assert_int_eq(block_file_forget(w.file, BLOCK_BYTES, BLOCK_BYTES), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 0), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), BLOCK_BYTES), -ENOENT);
    ck_assert_int_eq(block_file_forget(w.file, 2 * BLOCK_BYTES, far), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), 3 * BLOCK_BYTES), -ENOENT);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), far + BLOCK_BYTES), -ENOENT);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), far + 2 * BLOCK_BYTES), 0);
    ck_assert_int_eq(block_file_truncate(w.file, far), 0);
    ck_assert_int_eq(block_file_read(w.file, buf, sizeof(buf), far + 2 * BLOCK_BYTES), -ENOENT);
    end(&w);
}
END_TEST

START_TEST(the_head_is_read_back_and_a_damaged_one_is_none)
{
    World w;
    const FormatHead *read;
    FormatHead head = {.state = FORMAT_IMAGE_CLEAN, .image_version = 7, .bytes = 1 << 20};
    begin(&w);
    ck_assert_ptr_null(block_file_head(w.file));
    ck_assert_int_eq(block_file_mark(w.file, &head), 0);
    reopen(&w);
    read = block_file_head(w.file);
    ck_assert_ptr_nonnull(read);
    ck_assert_uint_eq(read->state, FORMAT_IMAGE_CLEAN);
    ck_assert_uint_eq(read->image_version, 7);
    ck_assert_int_eq(damage(&w, FORMAT_HEAD_NAME, 20, "x"), 0);
    reopen(&w);
    ck_assert_ptr_null(block_file_head(w.file));
    ck_assert_int_eq(block_file_mark(w.file, &head), 0);
    ck_assert_int_eq(damage(&w, FORMAT_HEAD_NAME, sizeof(head), "longer"), 0);
    ck_assert_int_eq(keep(&w, 0), 0);
    ck_assert_int_eq(block_file_wipe(w.file), 0);
    reopen(&w);
    ck_assert_ptr_null(block_file_head(w.file));
    ck_assert(!block_file_has(w.file, 0, BLOCK_BYTES));
    end(&w);
}
END_TEST

HARNESS_MAIN("cache/block/file", what_is_vouched_for_is_read,
             data_without_its_word_or_another_blocks_is_absent, damaged_or_punched_data_is_absent,
             zeros_take_no_space, no_bit_of_an_absent_word_makes_zeros,
             the_word_of_another_blocks_zeros_makes_none, what_is_forgotten_is_absent_however_much,
             the_head_is_read_back_and_a_damaged_one_is_none)
