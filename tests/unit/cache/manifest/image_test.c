/* SPDX-License-Identifier: Apache-2.0 */
/* What an image refuses, and that it is one a kernel would take: the superblock and the root. */
#include "cache/manifest/image.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "cache/manifest/erofs.h"
#include "tests/unit/erofs_check.h"
#include "tests/unit/harness.h"

static const ObjectId object = {{0xab, 1}};
static const uint8_t uuid[16] = "0123456789abcde";

typedef struct World {
    int fd;
    ErofsImage *image;
    ErofsImageDir *root;
} World;

static World world_new(void)
{
    World w = {.fd = memfd_create("image", MFD_CLOEXEC)};
    ErofsImageEntry root = {.st = {.st_mode = S_IFDIR | 0755, .st_nlink = 2}};
    w.image = erofs_image_new(w.fd, &root, &w.root, NULL);
    ck_assert_ptr_nonnull(w.image);
    return w;
}

static void world_free(World *w)
{
    erofs_image_dir_free(w->root);
    erofs_image_free(w->image);
    close(w->fd);
}

static ErofsImageEntry file(const char *name, off_t size)
{
    return (ErofsImageEntry){.name = name,
                             .st = {.st_mode = S_IFREG | 0644, .st_nlink = 1, .st_size = size},
                             .object = size ? &object : NULL};
}

static int add(World *w, const ErofsImageEntry *entry)
{
    g_autoptr(GError) error = NULL;
    ErofsImageDir *child = NULL;
    gboolean good = erofs_image_add(w->image, w->root, entry, &child, &error);
    erofs_image_dir_free(child);
    return good ? 0 : error->code;
}

START_TEST(what_cannot_be_is_refused)
{
    World w = world_new();
    g_autofree char *longest = g_strnfill(255, 'n'), *longer = g_strnfill(256, 'n');
    const char *const names[] = {"", ".", "..", "a/b", longer};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        ErofsImageEntry e = file(names[i], 1);
        ck_assert_int_eq(add(&w, &e), G_IO_ERROR_INVALID_DATA);
    }
    ErofsImageEntry good = file(longest, 1), no_object = file("x", 1), whiteout = file("w", 0);
    ck_assert_int_eq(add(&w, &good), 0);
    no_object.object = NULL;
    ck_assert_int_eq(add(&w, &no_object), G_IO_ERROR_INVALID_DATA);
    whiteout.st.st_mode = S_IFCHR;
    ck_assert_int_eq(add(&w, &whiteout), G_IO_ERROR_INVALID_DATA);
    whiteout.st.st_rdev = makedev(1, 3);
    ck_assert_int_eq(add(&w, &whiteout), 0);
    ErofsImageEntry link = {.name = "l", .st = {.st_mode = S_IFLNK | 0777, .st_nlink = 1}};
    ck_assert_int_eq(add(&w, &link), G_IO_ERROR_INVALID_DATA);
    world_free(&w);
}
END_TEST

START_TEST(a_name_twice_is_refused)
{
    World w = world_new();
    ErofsImageEntry e = file("same", 1);
    ck_assert_int_eq(add(&w, &e), 0);
    ck_assert_int_eq(add(&w, &e), 0);
    g_autoptr(GError) error = NULL;
    ck_assert(!erofs_image_end(w.image, g_steal_pointer(&w.root), &error));
    ck_assert_ptr_nonnull(strstr(error->message, "twice"));
    world_free(&w);
}
END_TEST

START_TEST(names_are_sorted_with_the_dots_among_them)
{
    World w = world_new();
    ErofsImageEntry entries[] = {file("b", 5), file("!", 0), file("...", 1)};
    for (gsize i = 0; i < G_N_ELEMENTS(entries); i++)
        ck_assert_int_eq(add(&w, &entries[i]), 0);
    ck_assert(erofs_image_end(w.image, g_steal_pointer(&w.root), NULL));
    uint64_t bytes;
    ck_assert(erofs_image_finish(w.image, uuid, &bytes, NULL));
    const uint8_t *map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, w.fd, 0);
    const ErofsSuper *super = (const void *)(map + EROFS_SUPER_OFFSET);
    ck_assert_uint_eq(super->inodes, 4);
    const ErofsInode *root = (const void *)(map + (size_t)super->root_nid * EROFS_SLOT);
    ck_assert_uint_eq(root->nlink, 2);
    const uint8_t *block = map + (size_t)root->u * EROFS_BLOCK;
    const ErofsDirent *first = (const void *)block;
    ck_assert_uint_eq(first->name_offset / sizeof(ErofsDirent), 5);
    ck_assert_mem_eq(block + first->name_offset, "!......b", 8); /* "!", ".", "..", "...", "b" */
    ck_assert_uint_eq(root->size, 5 * sizeof(ErofsDirent) + 8);
    munmap((void *)map, bytes);
    world_free(&w);
}
END_TEST

static void is_its_own(void *found, const ObjectId *id, uint64_t size)
{
    ck_assert_uint_eq(size, 5);
    ck_assert_mem_eq(id, &object, sizeof(object));
    ++*(unsigned *)found;
}

START_TEST(no_attribute_of_a_source_acts_on_overlayfs)
{
    static const char other[] = "/cd/cd000000000000000000000000000000";
    static const char *const names[] = {"trusted.overlay.redirect",
                                        "trusted.overlay.metacopy",
                                        "trusted.overlay.opaque",
                                        "trusted.overlay.whiteout",
                                        "trusted.x",
                                        "user.overlay.redirect",
                                        "user.overlay.whiteout",
                                        "user.kept",
                                        "system.other",
                                        "security.capability",
                                        "ceph.dir.layout",
                                        "nothing"};
    ErofsImageXattr xattrs[G_N_ELEMENTS(names)];
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++)
        xattrs[i] = (ErofsImageXattr){names[i], other, strlen(other)};
    World w = world_new();
    ErofsImageEntry entries[] = {file("full", 5), file("empty", 0), file("link", 1)};
    entries[2] = (ErofsImageEntry){.name = "dir",
                                   .st = {.st_mode = S_IFDIR | 0755, .st_nlink = 2, .st_ino = 9}};
    ErofsImageDir *child = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(entries); i++) {
        entries[i].xattrs = xattrs;
        entries[i].n_xattrs = G_N_ELEMENTS(xattrs);
        ck_assert(erofs_image_add(w.image, w.root, &entries[i], &child, NULL));
    }
    ck_assert(erofs_image_end(w.image, child, NULL));
    ck_assert(erofs_image_end(w.image, g_steal_pointer(&w.root), NULL));
    uint64_t bytes;
    unsigned found = 0;
    ck_assert(erofs_image_finish(w.image, uuid, &bytes, NULL));
    ErofsCheck check = {.image = mmap(NULL, bytes, PROT_READ, MAP_SHARED, w.fd, 0),
                        .bytes = bytes,
                        .object = is_its_own,
                        .data = &found};
    erofs_check(&check); /* aborts */
    ck_assert_uint_eq(found, 1);
    ck_assert_uint_eq(check.names, 3);
    ck_assert_uint_eq(check.xattrs, 3 * 2); /* user.kept, security.capability */
    munmap((void *)check.image, bytes);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("cache/manifest/image", what_cannot_be_is_refused, a_name_twice_is_refused,
             names_are_sorted_with_the_dots_among_them, no_attribute_of_a_source_acts_on_overlayfs)
