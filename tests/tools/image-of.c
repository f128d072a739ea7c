/* SPDX-License-Identifier: Apache-2.0 */
/*
 * image-of DIR IMAGE OBJECTS: an EROFS image of a local tree by cache/manifest/image.h, and its
 * files' bytes as objects, hard links where they can be. For tests of the format against the kernel
 * and fsck.erofs, without Ceph.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "cache/manifest/image.h"
#include "cache/store/disk/key.h"

typedef struct Todo {
    char *path;
    ErofsImageDir *dir;
} Todo;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "image-of: %s: %s\n", what, why);
    exit(1);
}

static void read_xattrs(const char *path, ErofsImageEntry *entry)
{
    char names[65536];
    ssize_t length = llistxattr(path, names, sizeof(names));
    GArray *list = g_array_new(FALSE, FALSE, sizeof(ErofsImageXattr));
    for (char *name = names; length > 0 && name < names + length; name += strlen(name) + 1) {
        char value[65536];
        ssize_t size = lgetxattr(path, name, value, sizeof(value));
        if (size < 0)
            die(path, strerror(errno));
        ErofsImageXattr x = {g_strdup(name), g_memdup2(value, (gsize)size), (size_t)size};
        g_array_append_val(list, x);
    }
    entry->n_xattrs = list->len;
    entry->xattrs = (ErofsImageXattr *)g_array_free(list, FALSE);
}

static void place_object(const char *path, const char *objects, const struct stat *st, ObjectId *id)
{
    ObjectKey key = {.ino = st->st_ino, .size = (uint64_t)st->st_size};
    char hex[OBJECT_ID_HEX + 1];
    object_key_id(&key, id);
    object_id_hex(id, hex);
    g_autofree char *dir = g_strdup_printf("%s/%.2s", objects, hex);
    g_autofree char *object = g_strdup_printf("%s/%s", dir, hex);
    g_mkdir_with_parents(dir, 0755);
    if (link(path, object) != 0 && errno != EEXIST)
        die(object, strerror(errno));
}

static ErofsImageEntry entry_of(const char *path, const char *name, const char *objects)
{
    ErofsImageEntry entry = {.name = name};
    if (lstat(path, &entry.st) != 0)
        die(path, strerror(errno));
    read_xattrs(path, &entry);
    if (S_ISLNK(entry.st.st_mode)) {
        char target[4096];
        ssize_t n = readlink(path, target, sizeof(target));
        if (n < 0)
            die(path, strerror(errno));
        entry.target = g_strndup(target, (gsize)n);
    }
    if (S_ISREG(entry.st.st_mode) && entry.st.st_size > 0) {
        ObjectId *id = g_new(ObjectId, 1);
        place_object(path, objects, &entry.st, id);
        entry.object = id;
    }
    return entry;
}

static void free_entry(ErofsImageEntry *entry)
{
    for (size_t i = 0; i < entry->n_xattrs; i++) {
        g_free((char *)entry->xattrs[i].name);
        g_free((void *)entry->xattrs[i].value);
    }
    g_free((void *)entry->xattrs);
    g_free((void *)entry->target);
    g_free((void *)entry->object);
    g_free((void *)entry->name);
}

static void add_directory(ErofsImage *image, const Todo *todo, const char *objects, GArray *todos)
{
    DIR *d = opendir(todo->path);
    g_autoptr(GError) error = NULL;
    if (!d)
        die(todo->path, strerror(errno));
    for (struct dirent *e; (e = readdir(d));) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        g_autofree char *path = g_build_filename(todo->path, e->d_name, NULL);
        ErofsImageEntry entry = entry_of(path, g_strdup(e->d_name), objects);
        ErofsImageDir *child = NULL;
        if (!erofs_image_add(image, todo->dir, &entry, &child, &error))
            die(path, error->message);
        if (child) {
            Todo next = {g_steal_pointer(&path), child};
            g_array_append_val(todos, next);
        }
        free_entry(&entry);
    }
    closedir(d);
    if (!erofs_image_end(image, todo->dir, &error))
        die(todo->path, error->message);
}

int main(int argc, char **argv)
{
    if (argc != 4)
        die("usage", "image-of DIR IMAGE OBJECTS");
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        die(argv[2], strerror(errno));
    g_autoptr(GError) error = NULL;
    ErofsImageEntry root = entry_of(argv[1], NULL, argv[3]);
    Todo first = {g_strdup(argv[1]), NULL};
    ErofsImage *image = erofs_image_new(fd, &root, &first.dir, &error);
    if (!image)
        die(argv[1], error->message);
    free_entry(&root);
    GArray *todos = g_array_new(FALSE, FALSE, sizeof(Todo));
    g_array_append_val(todos, first);
    while (todos->len > 0) {
        Todo todo = g_array_index(todos, Todo, todos->len - 1);
        g_array_set_size(todos, todos->len - 1);
        add_directory(image, &todo, argv[3], todos);
        g_free(todo.path);
    }
    uint64_t bytes;
    static const uint8_t uuid[16 + 1] = "hearth-test-tree";
    if (!erofs_image_finish(image, uuid, &bytes, &error))
        die(argv[2], error->message);
    printf("%" G_GUINT64_FORMAT " inodes, %" G_GUINT64_FORMAT " bytes\n", erofs_image_inodes(image),
           bytes);
    erofs_image_free(image);
    g_array_free(todos, TRUE);
    return 0;
}
