/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include "cache/fuse/device.h"
#include <linux/falloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include "tests/unit/cache/fuse/fake_kernel.h"

#define BYTES 1000000u
#define IMAGE_NODE 2

/* An image in memory, which completes when it is told to, or at once. */
typedef struct Pending {
    ImageDone done;
    void *data;
    ssize_t result;
} Pending;

typedef struct FakeImage {
    Image base;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t bytes;
    char content[BYTES * 2];
    gboolean hold; /* completions wait */
    int error;     /* what every request gives */
    GArray *pending;
    unsigned flushes;
    char note[64];
} FakeImage;

static void complete(Image *image, ImageDone done, void *data, ssize_t result)
{
    FakeImage *f = (FakeImage *)image;
    pthread_mutex_lock(&f->lock);
    Pending p = {done, data, f->error ? f->error : result};
    gboolean hold = f->hold;
    if (hold)
        g_array_append_val(f->pending, p);
    pthread_cond_broadcast(&f->changed);
    pthread_mutex_unlock(&f->lock);
    if (!hold)
        done(data, p.result);
}

static void fake_read(Image *image, void *buf, size_t len, uint64_t off, ImageDone done, void *data)
{
    memcpy(buf, ((FakeImage *)image)->content + off, len);
    complete(image, done, data, (ssize_t)len);
}

static void fake_write(Image *image, const void *buf, size_t len, uint64_t off, ImageDone done,
                       void *data)
{
    memcpy(((FakeImage *)image)->content + off, buf, len);
    complete(image, done, data, (ssize_t)len);
}

static void fake_flush(Image *image, ImageDone done, void *data)
{
    ((FakeImage *)image)->flushes++;
    complete(image, done, data, 0);
}

static void fake_zero(Image *image, uint64_t off, uint64_t len, ImageDone done, void *data)
{
    memset(((FakeImage *)image)->content + off, 0, len);
    complete(image, done, data, 0);
}

static int fake_size(Image *image, uint64_t *bytes)
{
    *bytes = ((FakeImage *)image)->bytes;
    return 0;
}

static ssize_t fake_get_note(Image *image, const char *name, char *text, size_t size)
{
    FakeImage *f = (FakeImage *)image;
    if (!f->note[0] || strcmp(name, "n") != 0)
        return -ENODATA;
    g_strlcpy(text, f->note, size);
    return (ssize_t)strlen(text);
}

static int fake_set_note(Image *image, const char *name, const char *text)
{
    ck_assert_str_eq(name, "n");
    FakeImage *f = (FakeImage *)image;
    g_strlcpy(f->note, text ? text : "", sizeof(f->note));
    return 0;
}

static void release_held(FakeImage *f, unsigned wanted)
{
    pthread_mutex_lock(&f->lock);
    while (f->pending->len < wanted)
        pthread_cond_wait(&f->changed, &f->lock);
    g_autoptr(GArray) ready = g_steal_pointer(&f->pending);
    f->pending = g_array_new(FALSE, FALSE, sizeof(Pending));
    f->hold = FALSE;
    pthread_mutex_unlock(&f->lock);
    /* The last first: no order is promised. */
    for (guint i = ready->len; i > 0; i--) {
        Pending p = g_array_index(ready, Pending, i - 1);
        p.done(p.data, p.result);
    }
}

typedef struct Fixture {
    FakeImage *image;
    Device *device;
    Kernel kernel;
    _Atomic int ended;
} Fixture;

static void on_ended(void *data)
{
    atomic_fetch_add(&((Fixture *)data)->ended, 1);
}

static Fixture *setup(gboolean read_only)
{
    static const ImageOps ops = {.type = "fake",
                                 .read = fake_read,
                                 .write = fake_write,
                                 .flush = fake_flush,
                                 .zero = fake_zero,
                                 .size = fake_size,
                                 .get_note = fake_get_note,
                                 .set_note = fake_set_note};
    Fixture *f = g_new0(Fixture, 1);
    f->image = g_new0(FakeImage, 1);
    f->image->base = (Image){.ops = &ops, .read_only = read_only};
    f->image->bytes = BYTES;
    f->image->pending = g_array_new(FALSE, FALSE, sizeof(Pending));
    pthread_mutex_init(&f->image->lock, NULL);
    pthread_cond_init(&f->image->changed, NULL);
    for (unsigned i = 0; i < sizeof(f->image->content); i++)
        f->image->content[i] = (char)(i * 7 + i / 256);
    g_autoptr(GError) error = NULL;
    int fd = kernel_start(&f->kernel);
    f->device = device_start(&f->image->base, fd, on_ended, f, &error);
    ck_assert_msg(f->device != NULL, "%s", error ? error->message : "");
    kernel_init(&f->kernel);
    return f;
}

static void teardown(Fixture *f)
{
    ck_assert(device_stop(f->device, 10000));
    close(f->kernel.fd);
    g_array_unref(f->image->pending);
    pthread_mutex_destroy(&f->image->lock);
    pthread_cond_destroy(&f->image->changed);
    g_free(f->image);
    g_free(f);
}

static Reply *write_at(Fixture *f, uint64_t off, const char *bytes, uint32_t len)
{
    g_autofree char *body = g_malloc(sizeof(struct fuse_write_in) + len);
    struct fuse_write_in in = {.offset = off, .size = len};
    memcpy(body, &in, sizeof(in));
    memcpy(body + sizeof(in), bytes, len);
    return kernel_call(&f->kernel, FUSE_WRITE, IMAGE_NODE, body, sizeof(in) + len);
}

static int fallocate_at(Fixture *f, uint32_t mode, uint64_t off, uint64_t len)
{
    struct fuse_fallocate_in in = {.mode = mode, .offset = off, .length = len};
    return kernel_call(&f->kernel, FUSE_FALLOCATE, IMAGE_NODE, &in, sizeof(in))->error;
}

START_TEST(one_file_has_the_bytes_of_the_image)
{
    Fixture *f = setup(FALSE);
    ck_assert_int_eq(kernel_lookup(&f->kernel, 1, "other")->error, -ENOENT);
    Reply *r = kernel_lookup(&f->kernel, 1, DEVICE_FILE);
    ck_assert_int_eq(r->error, 0);
    ck_assert_uint_eq(r->entry.attr.size, BYTES);
    ck_assert_uint_eq(r->entry.nodeid, IMAGE_NODE);
    ck_assert_int_eq(kernel_open(&f->kernel, IMAGE_NODE, O_RDWR)->error, 0);
    r = kernel_read(&f->kernel, IMAGE_NODE, 0, 12345, 5000);
    ck_assert_uint_eq(r->len, 5000);
    ck_assert_int_eq(memcmp(r->data, f->image->content + 12345, 5000), 0);
    ck_assert_int_eq(write_at(f, 777, "written", 7)->error, 0);
    ck_assert_int_eq(memcmp(f->image->content + 777, "written", 7), 0);
    teardown(f);
}
END_TEST

START_TEST(nothing_is_read_or_written_past_the_end)
{
    Fixture *f = setup(FALSE);
    ck_assert_uint_eq(kernel_read(&f->kernel, IMAGE_NODE, 0, BYTES - 10, 100)->len, 10);
    ck_assert_uint_eq(kernel_read(&f->kernel, IMAGE_NODE, 0, BYTES, 100)->len, 0);
    ck_assert_uint_eq(kernel_read(&f->kernel, IMAGE_NODE, 0, UINT64_MAX / 2, 100)->len, 0);
    ck_assert_int_eq(write_at(f, BYTES - 3, "four", 4)->error, -EFBIG);
    ck_assert_int_eq(write_at(f, UINT64_MAX / 2, "x", 1)->error, -EFBIG);
    ck_assert_int_eq(write_at(f, BYTES - 4, "four", 4)->error, 0);
    teardown(f);
}
END_TEST

START_TEST(discards_read_as_zeros)
{
    Fixture *f = setup(FALSE);
    const uint32_t punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
    char before = f->image->content[999], after = f->image->content[3000];
    ck_assert_int_eq(fallocate_at(f, punch, 1000, 2000), 0);
    ck_assert_int_eq(f->image->content[999], before);
    ck_assert_int_eq(f->image->content[1000] | f->image->content[2999], 0);
    ck_assert_int_eq(f->image->content[3000], after);
    ck_assert_int_eq(fallocate_at(f, FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, BYTES - 5, 100),
                     0);
    ck_assert_int_eq(f->image->content[BYTES - 1], 0);
    ck_assert_int_ne(f->image->content[BYTES] | f->image->content[BYTES + 1], 0);
    ck_assert_int_eq(fallocate_at(f, punch, BYTES + 5, 100), 0);
    ck_assert_int_eq(fallocate_at(f, 0, 0, 100), -EOPNOTSUPP);
    ck_assert_int_eq(fallocate_at(f, FALLOC_FL_COLLAPSE_RANGE, 0, 4096), -EOPNOTSUPP);
    teardown(f);
}
END_TEST

START_TEST(fsync_flushes_and_is_answered_after_it)
{
    Fixture *f = setup(FALSE);
    struct fuse_fsync_in in = {0};
    f->image->hold = TRUE;
    uint64_t unique = kernel_send(&f->kernel, FUSE_FSYNC, IMAGE_NODE, &in, sizeof(in));
    pthread_mutex_lock(&f->image->lock);
    while (f->image->pending->len < 1)
        pthread_cond_wait(&f->image->changed, &f->image->lock);
    pthread_mutex_unlock(&f->image->lock);
    struct pollfd p = {.fd = f->kernel.fd, .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 50), 0);
    release_held(f->image, 1);
    static Reply reply;
    ck_assert(kernel_receive(&f->kernel, unique, &reply, 10000));
    ck_assert_int_eq(reply.error, 0);
    ck_assert_uint_eq(f->image->flushes, 1);
    teardown(f);
}
END_TEST

/* More than there are threads: none waits for a request. */
START_TEST(many_requests_are_under_way_at_once)
{
    enum { MANY = 100 };
    Fixture *f = setup(FALSE);
    uint64_t first = 0;
    f->image->hold = TRUE;
    for (unsigned i = 0; i < MANY; i++) {
        struct fuse_read_in in = {.offset = i * 512, .size = 512};
        uint64_t unique = kernel_send(&f->kernel, FUSE_READ, IMAGE_NODE, &in, sizeof(in));
        first = first ? first : unique;
    }
    release_held(f->image, MANY);
    gboolean seen[MANY] = {FALSE};
    for (unsigned i = 0; i < MANY; i++) {
        char buf[4096];
        const struct fuse_out_header *out = (void *)buf;
        struct pollfd p = {.fd = f->kernel.fd, .events = POLLIN};
        ck_assert_int_eq(poll(&p, 1, 10000), 1);
        ck_assert_int_eq(read(f->kernel.fd, buf, sizeof(buf)), sizeof(*out) + 512);
        uint64_t index = (out->unique - first) / 2;
        ck_assert(index < MANY && !seen[index]);
        seen[index] = TRUE;
        ck_assert_int_eq(memcmp(out + 1, f->image->content + index * 512, 512), 0);
    }
    teardown(f);
}
END_TEST

START_TEST(stop_waits_for_what_is_under_way_but_not_for_ever)
{
    Fixture *f = setup(FALSE);
    f->image->hold = TRUE;
    struct fuse_read_in in = {.size = 512};
    kernel_send(&f->kernel, FUSE_READ, IMAGE_NODE, &in, sizeof(in));
    pthread_mutex_lock(&f->image->lock);
    while (f->image->pending->len < 1)
        pthread_cond_wait(&f->image->changed, &f->image->lock);
    pthread_mutex_unlock(&f->image->lock);
    ck_assert(!device_stop(f->device, 0));
    release_held(f->image, 1);
    teardown(f);
}
END_TEST

START_TEST(reader_is_refused_to_write)
{
    Fixture *f = setup(TRUE);
    ck_assert_int_eq(kernel_open(&f->kernel, IMAGE_NODE, O_RDWR)->error, -EROFS);
    ck_assert_int_eq(kernel_open(&f->kernel, IMAGE_NODE, O_RDONLY)->error, 0);
    ck_assert_int_eq(write_at(f, 0, "x", 1)->error, -EROFS);
    ck_assert_int_eq(fallocate_at(f, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096), -EROFS);
    teardown(f);
}
END_TEST

START_TEST(errors_are_a_disks_and_a_lost_image_ends_the_device)
{
    Fixture *f = setup(FALSE);
    f->image->error = -ETIMEDOUT;
    ck_assert_int_eq(kernel_read(&f->kernel, IMAGE_NODE, 0, 0, 512)->error, -EIO);
    f->image->error = -ENOSPC;
    ck_assert_int_eq(write_at(f, 0, "x", 1)->error, -ENOSPC);
    ck_assert_int_eq(atomic_load(&f->ended), 0);
    f->image->error = -ESHUTDOWN;
    ck_assert_int_eq(write_at(f, 0, "x", 1)->error, -EIO);
    ck_assert_int_eq(kernel_read(&f->kernel, IMAGE_NODE, 0, 0, 512)->error, -EIO);
    ck_assert(device_stop(f->device, 10000)); /* the completions have returned */
    ck_assert_int_eq(atomic_load(&f->ended), 1);
    f->device = NULL;
    teardown(f);
}
END_TEST

START_TEST(growth_is_seen_and_the_kernel_told)
{
    Fixture *f = setup(FALSE);
    g_autoptr(GError) error = NULL;
    uint64_t bytes;
    f->image->bytes = BYTES + 4096;
    ck_assert(device_resize(f->device, &bytes, &error));
    ck_assert_uint_eq(bytes, BYTES + 4096);
    Reply *r = kernel_lookup(&f->kernel, 1, DEVICE_FILE);
    ck_assert_uint_eq(r->entry.attr.size, BYTES + 4096);
    ck_assert_uint_eq(f->kernel.attrs_dropped, 1);
    ck_assert_uint_eq(kernel_read(&f->kernel, IMAGE_NODE, 0, BYTES, 4096)->len, 4096);
    teardown(f);
}
END_TEST

START_TEST(notes_are_extended_attributes)
{
    Fixture *f = setup(FALSE);
    char get[sizeof(struct fuse_getxattr_in) + 32];
    struct fuse_getxattr_in in = {.size = 64};
    memcpy(get, &in, sizeof(in));
    memcpy(get + sizeof(in), "user.hearth.n", 14);
    const size_t len = sizeof(in) + 14;
    ck_assert_int_eq(kernel_call(&f->kernel, FUSE_GETXATTR, IMAGE_NODE, get, len)->error, -ENODATA);
    g_strlcpy(f->image->note, "x", sizeof(f->image->note));
    Reply *r = kernel_call(&f->kernel, FUSE_GETXATTR, IMAGE_NODE, get, len);
    ck_assert(r->error == 0 && r->len == 1 && r->data[0] == 'x');
    ck_assert_int_eq(
        kernel_call(&f->kernel, FUSE_REMOVEXATTR, IMAGE_NODE, "user.hearth.n", 14)->error, 0);
    ck_assert_str_eq(f->image->note, "");
    ck_assert_int_eq(kernel_call(&f->kernel, FUSE_REMOVEXATTR, IMAGE_NODE, "user.other", 11)->error,
                     -ENODATA);
    teardown(f);
}
END_TEST

HARNESS_MAIN("cache/fuse/device", one_file_has_the_bytes_of_the_image,
             nothing_is_read_or_written_past_the_end, discards_read_as_zeros,
             fsync_flushes_and_is_answered_after_it, many_requests_are_under_way_at_once,
             stop_waits_for_what_is_under_way_but_not_for_ever, reader_is_refused_to_write,
             errors_are_a_disks_and_a_lost_image_ends_the_device,
             growth_is_seen_and_the_kernel_told, notes_are_extended_attributes)
