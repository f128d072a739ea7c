/* SPDX-License-Identifier: Apache-2.0 */
/* Manifests of local trees: what is in the file, what damage shows, what ends a build. */
#include "cache/manifest/build.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cache/manifest/erofs.h"
#include "cache/manifest/image.h"
#include "cache/store/disk/key.h"
#include "tests/unit/harness.h"

typedef struct World {
    char *dir, *tree;
    Origin *origin;
    OriginNode *root;
    OriginAttr attr;
    BuildProgress progress;
    uint64_t max_bytes;
    int fd;
} World;

static World world_new(void)
{
    World w = {.dir = harness_tmpdir(), .max_bytes = UINT64_MAX};
    w.tree = g_build_filename(w.dir, "tree", NULL);
    ck_assert_int_eq(mkdir(w.tree, 0755), 0);
    g_autofree char *file = g_build_filename(w.dir, "manifest", NULL);
    w.fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    ck_assert_int_ge(w.fd, 0);
    return w;
}

static void world_open(World *w)
{
    w->origin = origin_dir_open(w->tree, NULL);
    ck_assert_ptr_nonnull(w->origin);
    ck_assert_int_eq(w->origin->ops->root(w->origin, &w->root, &w->attr), 0);
}

static void world_free(World *w)
{
    w->origin->ops->put(w->origin, w->root);
    w->origin->ops->destroy(w->origin);
    close(w->fd);
    harness_remove(w->dir);
    g_free(w->tree);
}

static gboolean build(World *w, GError **error)
{
    const BuildTree tree = {.origin = w->origin, .root = w->root, .attr = w->attr, .threads = 4};
    return manifest_build(w->fd, w->dir, &tree, w->max_bytes, &w->progress, error);
}

static void put_file(const World *w, const char *name, size_t size)
{
    g_autofree char *path = g_build_filename(w->tree, name, NULL);
    g_autofree char *bytes = g_strnfill(size, 'x');
    ck_assert(g_file_set_contents(path, bytes, (gssize)size, NULL));
}

static void put_dir(const World *w, const char *name)
{
    g_autofree char *path = g_build_filename(w->tree, name, NULL);
    ck_assert_int_eq(mkdir(path, 0750), 0);
}

static gboolean finds(World *w, const Manifest *m, const char *name)
{
    OriginNode *node;
    OriginAttr attr;
    ObjectKey key, found;
    ObjectId id;
    ck_assert_int_eq(w->origin->ops->lookup(w->origin, w->root, name, &node, &attr), 0);
    object_key_init(&key, w->origin, &attr);
    object_key_id(&key, &id);
    w->origin->ops->put(w->origin, node);
    uint64_t index;
    if (manifest_find(m, &id, &index) != 0 || !manifest_key(m, index, &found))
        return FALSE;
    return memcmp(&key, &found, sizeof(key)) == 0;
}

START_TEST(a_manifest_tells_what_it_is_of)
{
    World w = world_new();
    put_file(&w, "a", 1000);
    put_file(&w, "empty", 0);
    put_dir(&w, "d");
    put_file(&w, "d/b", 50);
    g_autofree char *a = g_build_filename(w.tree, "a", NULL),
                    *same = g_build_filename(w.tree, "d/same", NULL);
    ck_assert_int_eq(link(a, same), 0);
    world_open(&w);
    ck_assert(build(&w, NULL));
    g_autoptr(Manifest) m = manifest_open(w.fd, TRUE, NULL);
    ck_assert_ptr_nonnull(m);
    ck_assert(manifest_is_of(m, w.origin, &w.attr));
    ck_assert_uint_eq(m->footer.files, 4); /* names */
    ck_assert_uint_eq(m->footer.inodes, 5);
    ck_assert_uint_eq(m->footer.bytes, 2050);
    ck_assert_uint_eq(m->footer.records, 3);
    ck_assert(finds(&w, m, "a"));
    const ErofsSuper *super = (const void *)((const char *)m->map + EROFS_SUPER_OFFSET);
    ck_assert_uint_eq(super->magic, EROFS_MAGIC);
    ck_assert_uint_eq((uint64_t)super->blocks * EROFS_BLOCK, m->footer.image_bytes);
    ck_assert_uint_eq(atomic_load(&w.progress.files), 4);
    OriginAttr other = w.attr;
    other.version++;
    ck_assert(!manifest_is_of(m, w.origin, &other));
    world_free(&w);
}
END_TEST

START_TEST(it_tells_whether_everybody_may_read_it)
{
    static const struct {
        const char *name;
        mode_t mode;
        gboolean readable;
    } cases[] = {{"d", 0755, TRUE},   {"d", 0751, FALSE},   {"d", 0754, FALSE},
                 {"d/f", 0644, TRUE}, {"d/f", 0640, FALSE}, {"", 0700, FALSE}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        World w = world_new();
        put_dir(&w, "d");
        put_file(&w, "d/f", 10);
        g_autofree char *d = g_build_filename(w.tree, "d", NULL),
                        *f = g_build_filename(d, "f", NULL),
                        *changed = g_build_filename(w.tree, cases[i].name, NULL);
        ck_assert(chmod(d, 0755) == 0 && chmod(f, 0644) == 0);
        ck_assert_int_eq(chmod(changed, cases[i].mode), 0);
        world_open(&w);
        ck_assert(build(&w, NULL));
        g_autoptr(Manifest) m = manifest_open(w.fd, TRUE, NULL);
        ck_assert_int_eq((m->footer.flags & MANIFEST_READABLE) != 0, cases[i].readable);
        world_free(&w);
    }
}
END_TEST

START_TEST(many_entries_go_through_every_queue)
{
    World w = world_new();
    for (int d = 0; d < 20; d++) {
        g_autofree char *dir = g_strdup_printf("d%d", d);
        put_dir(&w, dir);
        for (int f = 0; f < 300; f++) {
            g_autofree char *name = g_strdup_printf("d%d/f%d", d, f);
            put_file(&w, name, (size_t)f % 3);
        }
    }
    world_open(&w);
    ck_assert(build(&w, NULL));
    g_autoptr(Manifest) m = manifest_open(w.fd, TRUE, NULL);
    ck_assert_uint_eq(m->footer.files, 6000);
    ck_assert_uint_eq(m->footer.records, 4000);
    ck_assert_uint_eq(m->footer.inodes, 6021);
    for (uint64_t i = 1; i < m->footer.records; i++)
        ck_assert_int_lt(memcmp(&m->table[i - 1], &m->table[i], sizeof(TableRecord)), 0);
    world_free(&w);
}
END_TEST

START_TEST(damage_shows)
{
    World w = world_new();
    put_file(&w, "a", 1000);
    world_open(&w);
    ck_assert(build(&w, NULL));
    struct stat st;
    ck_assert_int_eq(fstat(w.fd, &st), 0);
    g_autoptr(GError) error = NULL;
    /* A byte of each: image, table, footer. */
    const off_t at[] = {EROFS_BLOCK + 5, st.st_size - (off_t)sizeof(ManifestFooter) - 3,
                        st.st_size - 60};
    for (gsize i = 0; i < G_N_ELEMENTS(at); i++) {
        char byte, changed;
        ck_assert_int_eq(pread(w.fd, &byte, 1, at[i]), 1);
        changed = (char)(byte ^ 1);
        ck_assert_int_eq(pwrite(w.fd, &changed, 1, at[i]), 1);
        ck_assert_ptr_null(manifest_open(w.fd, TRUE, &error));
        ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA));
        g_clear_error(&error);
        ck_assert_int_eq(pwrite(w.fd, &byte, 1, at[i]), 1);
    }
    ck_assert_int_eq(ftruncate(w.fd, st.st_size - 16), 0);
    ck_assert_ptr_null(manifest_open(w.fd, FALSE, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA));
    ck_assert_int_eq(ftruncate(w.fd, 100), 0);
    ck_assert_ptr_null(manifest_open(w.fd, FALSE, NULL));
    world_free(&w);
}
END_TEST

/* The file is cut short beneath the mapping: the same signal as of a disk that fails. */
START_TEST(a_page_that_cannot_be_read_is_an_error)
{
    World w = world_new();
    for (int i = 0; i < 200; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        put_file(&w, name, 1);
    }
    world_open(&w);
    ck_assert(build(&w, NULL));
    g_autoptr(Manifest) m = manifest_open(w.fd, TRUE, NULL);
    ObjectKey key;
    ObjectId id;
    uint64_t index;
    Name name;
    ck_assert(manifest_key(m, 0, &key));
    object_key_id(&key, &id);
    ck_assert_int_eq(manifest_find(m, &id, &index), 0);
    ck_assert(!atomic_load(&m->unreadable));
    ck_assert_int_eq(ftruncate(w.fd, EROFS_BLOCK), 0);
    ck_assert_int_eq(manifest_find(m, &id, &index), -EIO);
    ck_assert(atomic_load(&m->unreadable));
    ck_assert(!manifest_key(m, 0, &key));
    ck_assert_uint_eq(key.size, 0);
    ck_assert_ptr_null(manifest_path(m, 0));
    ck_assert(!names_read(&m->names, 0, &name));
    world_free(&w);
}
END_TEST

START_TEST(many_ties_of_a_hostile_tree_are_not_searched)
{
    World w = world_new();
    for (int i = 0; i < 300; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        put_file(&w, name, 1);
    }
    world_open(&w);
    ck_assert(build(&w, NULL));
    g_autoptr(Manifest) m = manifest_open(w.fd, TRUE, NULL);
    /* All records begin alike; the one that is looked for is the last. */
    g_autofree TableRecord *table = g_memdup2(m->table, 300 * sizeof(TableRecord));
    ObjectKey key;
    ObjectId id;
    uint64_t index;
    ck_assert(manifest_key(m, 299, &key));
    object_key_id(&key, &id);
    for (int i = 0; i < 300; i++)
        memcpy(table[i].id, id.bytes, sizeof(table[i].id));
    m->table = table;
    ck_assert_int_eq(manifest_find(m, &id, &index), -ENOENT);
    ck_assert(manifest_key(m, 10, &key));
    world_free(&w);
}
END_TEST

START_TEST(a_build_can_be_cancelled)
{
    World w = world_new();
    for (int i = 0; i < 2000; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        put_file(&w, name, 1);
    }
    world_open(&w);
    atomic_store(&w.progress.cancel, TRUE);
    g_autoptr(GError) error = NULL;
    ck_assert(!build(&w, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_CANCELLED));
    world_free(&w);
}
END_TEST

START_TEST(what_it_may_take_is_bounded)
{
    World w = world_new();
    for (int i = 0; i < 2000; i++) {
        g_autofree char *name = g_strdup_printf("f%d", i);
        put_file(&w, name, 1);
    }
    world_open(&w);
    w.max_bytes = 100000;
    g_autoptr(GError) error = NULL;
    ck_assert(!build(&w, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NO_SPACE));
    struct stat st;
    ck_assert_int_eq(fstat(w.fd, &st), 0);
    ck_assert_int_lt(st.st_size, 2 << 20);
    w.max_bytes = 2 << 20;
    ck_assert_int_eq(ftruncate(w.fd, 0), 0);
    ck_assert(build(&w, NULL));
    ck_assert_int_eq(fstat(w.fd, &st), 0);
    ck_assert_int_le(st.st_size, 2 << 20);
    world_free(&w);
}
END_TEST

typedef struct Failing {
    OriginOps ops;
    const OriginOps *real;
} Failing;

static Failing failing;

static int fail_opendir(Origin *o, OriginNode *node, OriginDir **dir)
{
    OriginAttr attr;
    failing.real->getattr(o, node, &attr);
    return attr.st.st_mode & 01000 ? -EACCES : failing.real->opendir(o, node, dir);
}

static atomic_uint lookups;

static int count_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                        OriginAttr *attr)
{
    atomic_fetch_add(&lookups, 1);
    return failing.real->lookup(o, parent, name, node, attr);
}

/* Its listing has told all of it: a lookup is one more request for each. */
START_TEST(a_listed_directory_is_not_looked_up)
{
    World w = world_new();
    for (int i = 0; i < 50; i++) {
        g_autofree char *name = g_strdup_printf("d%d", i);
        put_dir(&w, name);
    }
    world_open(&w);
    failing = (Failing){*w.origin->ops, w.origin->ops};
    failing.ops.lookup = count_lookup;
    w.origin->ops = &failing.ops;
    ck_assert(build(&w, NULL));
    ck_assert_uint_eq(lookups, 0);
    w.origin->ops = failing.real;
    world_free(&w);
}
END_TEST

/* So a node whose manifest was lost can go on serving a mount. */
START_TEST(a_tree_has_the_same_places_however_often_it_is_built)
{
    World w = world_new();
    uint64_t first = 0;
    for (int i = 0; i < 40; i++) {
        g_autofree char *dir = g_strdup_printf("d%d", i);
        put_dir(&w, dir);
        for (int j = 0; j < 20; j++) {
            g_autofree char *name = g_strdup_printf("d%d/f%d", i, j);
            put_file(&w, name, (size_t)(j * 10));
        }
    }
    g_autofree char *from = g_build_filename(w.tree, "d7/f3", NULL),
                    *to = g_build_filename(w.tree, "d30/link", NULL);
    ck_assert_int_eq(link(from, to), 0);
    world_open(&w);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(ftruncate(w.fd, 0), 0);
        ck_assert_int_eq(lseek(w.fd, 0, SEEK_SET), 0);
        ck_assert(build(&w, NULL));
        g_autoptr(Manifest) m = manifest_open(w.fd, TRUE, NULL);
        uint64_t places;
        ck_assert(manifest_places(m, &places));
        first = i == 0 ? places : first;
        ck_assert_uint_eq(places, first);
    }
    world_free(&w);
}
END_TEST

START_TEST(an_unreadable_directory_is_named)
{
    World w = world_new();
    put_dir(&w, "d");
    put_dir(&w, "d/closed");
    g_autofree char *closed = g_build_filename(w.tree, "d/closed", NULL);
    ck_assert_int_eq(chmod(closed, 01755), 0);
    put_file(&w, "a", 1);
    world_open(&w);
    failing = (Failing){*w.origin->ops, w.origin->ops};
    failing.ops.opendir = fail_opendir;
    w.origin->ops = &failing.ops;
    g_autoptr(GError) error = NULL;
    ck_assert(!build(&w, &error));
    ck_assert_msg(strstr(error->message, "/d/closed") != NULL, "%s", error->message);
    ck_assert_int_eq(error->code, G_IO_ERROR_PERMISSION_DENIED);
    w.origin->ops = failing.real;
    world_free(&w);
}
END_TEST

START_TEST(of_one_deep_down_the_end_of_its_path_is_shown)
{
    World w = world_new();
    GString *name = g_string_new("top");
    put_dir(&w, name->str);
    for (int i = 0; i < 100; i++)
        put_dir(&w, g_string_append(name, "/n")->str);
    put_dir(&w, g_string_append(name, "/closed")->str);
    g_autofree char *closed = g_build_filename(w.tree, name->str, NULL);
    g_string_free(name, TRUE);
    ck_assert_int_eq(chmod(closed, 01755), 0);
    world_open(&w);
    failing = (Failing){*w.origin->ops, w.origin->ops};
    failing.ops.opendir = fail_opendir;
    w.origin->ops = &failing.ops;
    g_autoptr(GError) error = NULL;
    ck_assert(!build(&w, &error));
    ck_assert_msg(strstr(error->message, ".../n/n/n") != NULL, "%s", error->message);
    ck_assert_msg(strstr(error->message, "/n/closed") != NULL, "%s", error->message);
    ck_assert_ptr_null(strstr(error->message, "top"));
    w.origin->ops = failing.real;
    world_free(&w);
}
END_TEST

HARNESS_MAIN("cache/manifest/build", a_manifest_tells_what_it_is_of,
             it_tells_whether_everybody_may_read_it, many_entries_go_through_every_queue,
             damage_shows, a_page_that_cannot_be_read_is_an_error,
             many_ties_of_a_hostile_tree_are_not_searched, a_build_can_be_cancelled,
             what_it_may_take_is_bounded, a_listed_directory_is_not_looked_up,
             a_tree_has_the_same_places_however_often_it_is_built, an_unreadable_directory_is_named,
             of_one_deep_down_the_end_of_its_path_is_shown)
