/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A snapshot whose owner is hostile: names, types, sizes, link counts, targets and attributes as
 * Ceph would tell them, whatever they are. Either the tree is refused with an error, or the
 * manifest built of it is well formed, what the kernel mounts of it does no harm (erofs_check.h),
 * and each of its redirects leads to an object of this tree.
 *
 * Entries follow each other: see take_node(). One whose type is 7 ends its directory.
 */
#include "tests/fuzz/fuzz.h"
#include <errno.h>
#include <glib.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "cache/manifest/build.h"
#include "cache/manifest/manifest.h"
#include "cache/store/disk/key.h"
#include "tests/unit/erofs_check.h"

#define NODES_MAX 400
#define XATTRS_MAX 3
#define MAX_BYTES (4u << 20)

typedef struct Xattr {
    char *name, *value;
    size_t size;
} Xattr;

struct OriginNode {
    char name[256], target[4200];
    int target_length;
    OriginAttr attr;
    unsigned n_xattrs;
    Xattr xattrs[XATTRS_MAX];
    GPtrArray *children; /* of a directory */
};

struct OriginDir {
    OriginNode *node;
};

typedef struct Input {
    const uint8_t *data;
    size_t left;
    unsigned nodes;
} Input;

/* ---- the tree */

static uint64_t take(Input *in, unsigned bytes)
{
    uint64_t value = 0;
    for (; bytes > 0 && in->left > 0; bytes--, in->left--)
        value = value << 8 | *in->data++;
    return value;
}

/* A length, and so many bytes of the input; what is missing are 'x'. */
static size_t take_text(Input *in, char *to, size_t most, unsigned length_bytes)
{
    size_t length = take(in, length_bytes) % (most + 1), n = MIN(length, in->left);
    memcpy(to, in->data, n);
    memset(to + n, 'x', length - n);
    in->data += n;
    in->left -= n;
    return length;
}

static void take_xattrs(Input *in, OriginNode *node, unsigned n)
{
    for (node->n_xattrs = 0; node->n_xattrs < n; node->n_xattrs++) {
        Xattr *x = &node->xattrs[node->n_xattrs];
        x->name = g_malloc0(300);
        take_text(in, x->name, 299, 1);
        x->value = g_malloc(70000);
        x->size = take_text(in, x->value, 70000, 2);
    }
}

/* Of the first byte, bits 0 to 2 are the type, 3 and 4 how many attributes follow, 5: numbers are
 * large, 6: a hard link. */
static OriginNode *take_node(Input *in)
{
    static const mode_t types[] = {S_IFREG, S_IFDIR, S_IFLNK, S_IFCHR, S_IFBLK, S_IFIFO, 0};
    uint8_t what = (uint8_t)take(in, 1);
    if ((what & 7) == 7 || ++in->nodes > NODES_MAX)
        return NULL;
    OriginNode *node = g_new0(OriginNode, 1);
    struct stat *st = &node->attr.st;
    unsigned wide = what & 32 ? 8 : 1;
    take_text(in, node->name, 255, 1);
    st->st_mode = types[what & 7] | (take(in, 2) & 07777);
    st->st_size = (off_t)take(in, wide);
    st->st_ino = what & 64 ? take(in, 1) : 1000 + in->nodes;
    st->st_nlink = what & 64 ? take(in, 1) : 1;
    st->st_rdev = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? take(in, wide) : 0;
    st->st_mtim = (struct timespec){(time_t)take(in, wide), (long)take(in, wide)};
    st->st_uid = (uid_t)take(in, 1);
    node->attr.version = take(in, wide);
    node->attr.snapshot = 5;
    take_xattrs(in, node, what >> 3 & 3);
    if (S_ISLNK(st->st_mode))
        node->target_length = (int)take_text(in, node->target, sizeof(node->target) - 1, 2);
    return node;
}

static void take_children(Input *in, OriginNode *dir, unsigned depth)
{
    dir->children = g_ptr_array_new();
    for (OriginNode *node; in->left > 0 && depth < 50 && (node = take_node(in));) {
        g_ptr_array_add(dir->children, node);
        if (S_ISDIR(node->attr.st.st_mode))
            take_children(in, node, depth + 1);
    }
}

static void free_node(OriginNode *node)
{
    for (guint i = 0; node->children && i < node->children->len; i++)
        free_node(node->children->pdata[i]);
    if (node->children)
        g_ptr_array_unref(node->children);
    for (unsigned i = 0; i < node->n_xattrs; i++) {
        g_free(node->xattrs[i].name);
        g_free(node->xattrs[i].value);
    }
    g_free(node);
}

/* ---- the origin */

static OriginNode *op_get(Origin *o, OriginNode *node)
{
    (void)o;
    return node;
}

static void op_put(Origin *o, OriginNode *node)
{
    (void)o, (void)node;
}

static int op_lookup(Origin *o, OriginNode *parent, const char *name, OriginNode **node,
                     OriginAttr *attr)
{
    (void)o;
    for (guint i = 0; i < parent->children->len; i++) {
        *node = parent->children->pdata[i];
        *attr = (*node)->attr;
        if (strcmp((*node)->name, name) == 0)
            return 0;
    }
    return -ENOENT;
}

static int op_opendir(Origin *o, OriginNode *node, OriginDir **dir)
{
    (void)o;
    *dir = g_new(OriginDir, 1);
    (*dir)->node = node;
    return 0;
}

static int op_closedir(Origin *o, OriginDir *dir)
{
    (void)o;
    g_free(dir);
    return 0;
}

static int op_readdir(Origin *o, OriginDir *dir, int64_t off, gboolean with_attr, OriginEntry *e)
{
    (void)o, (void)with_attr;
    if (off >= dir->node->children->len)
        return 0;
    e->node = dir->node->children->pdata[off];
    memcpy(e->name, e->node->name, sizeof(e->name));
    e->attr = e->node->attr;
    e->next = off + 1;
    return 1;
}

static int op_readlink(Origin *o, OriginNode *node, char *buf, size_t size)
{
    (void)o;
    size_t n = MIN(size, (size_t)node->target_length);
    memcpy(buf, node->target, n);
    return (int)n;
}

static ssize_t op_listxattr(Origin *o, OriginNode *node, char *buf, size_t size)
{
    (void)o;
    size_t all = 0;
    for (unsigned i = 0; i < node->n_xattrs; i++) {
        size_t n = strlen(node->xattrs[i].name) + 1;
        if (size && all + n > size)
            return -ERANGE;
        if (size)
            memcpy(buf + all, node->xattrs[i].name, n);
        all += n;
    }
    return (ssize_t)all;
}

static ssize_t op_getxattr(Origin *o, OriginNode *node, const char *name, void *buf, size_t size)
{
    (void)o;
    for (unsigned i = 0; i < node->n_xattrs; i++) {
        const Xattr *x = &node->xattrs[i];
        if (strcmp(x->name, name) != 0)
            continue;
        if (size)
            memcpy(buf, x->value, MIN(size, x->size));
        return size && size < x->size ? -ERANGE : (ssize_t)x->size;
    }
    return -ENODATA;
}

static const OriginOps ops = {.type = "tree",
                              .get = op_get,
                              .put = op_put,
                              .lookup = op_lookup,
                              .opendir = op_opendir,
                              .closedir = op_closedir,
                              .readdir = op_readdir,
                              .readlink = op_readlink,
                              .listxattr = op_listxattr,
                              .getxattr = op_getxattr};

/* ---- what must hold */

typedef struct Seen {
    const Manifest *manifest;
    Origin *origin;
    OriginNode *root;
} Seen;

static OriginNode *find(OriginNode *at, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    for (char **part = parts; *part; part++) {
        OriginNode *next = NULL;
        for (guint i = 0; at->children && i < at->children->len && !next; i++) {
            OriginNode *child = at->children->pdata[i];
            next = strcmp(child->name, *part) == 0 ? child : NULL;
        }
        EROFS_WANT(next);
        at = next;
    }
    return at;
}

/* A redirect leads to an object that a file of this tree has. */
static void check_object(void *data, const ObjectId *id, uint64_t size)
{
    const Seen *seen = data;
    uint64_t index;
    ObjectKey key, own;
    ObjectId of;
    EROFS_WANT(manifest_find(seen->manifest, id, &index) == 0);
    EROFS_WANT(manifest_key(seen->manifest, index, &key));
    g_autofree char *path = manifest_path(seen->manifest, index);
    EROFS_WANT(path);
    object_key_init(&own, seen->origin, &find(seen->root, path)->attr);
    object_key_id(&own, &of);
    EROFS_WANT(object_id_equal(&of, id) && memcmp(&own, &key, sizeof(own)) == 0);
    EROFS_WANT(size <= INT64_MAX);
}

static void check_manifest(int fd, Origin *origin, OriginNode *root)
{
    g_autoptr(Manifest) m = manifest_open(fd, TRUE, NULL);
    EROFS_WANT(m && manifest_is_of(m, origin, &root->attr));
    EROFS_WANT(m->map_bytes <= MAX_BYTES + sizeof(ManifestFooter) + (2u << 20));
    Seen seen = {m, origin, root};
    ErofsCheck check = {
        .image = m->map, .bytes = m->footer.image_bytes, .object = check_object, .data = &seen};
    erofs_check(&check);
    EROFS_WANT(check.names + 1 >= m->footer.inodes);
    for (uint64_t i = 0; i < m->footer.records; i++) {
        ObjectKey key;
        g_autofree char *path = manifest_path(m, i);
        EROFS_WANT(path && manifest_key(m, i, &key) && key.size > 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Input in = {.data = data, .left = size};
    Origin origin = {.ops = &ops, .space = "a file system's space"};
    BuildProgress progress = {0};
    g_autoptr(GError) error = NULL;
    OriginNode *root = g_new0(OriginNode, 1);
    root->attr = (OriginAttr){
        .st = {.st_mode = S_IFDIR | 0755, .st_ino = 1, .st_nlink = 2}, .version = 7, .snapshot = 5};
    take_xattrs(&in, root, take(&in, 1) & 3);
    take_children(&in, root, 0);
    int fd = memfd_create("manifest", MFD_CLOEXEC);
    const BuildTree tree = {.origin = &origin, .root = root, .attr = root->attr, .threads = 2};
    if (manifest_build(fd, g_get_tmp_dir(), &tree, MAX_BYTES, &progress, &error))
        check_manifest(fd, &origin, root);
    else
        EROFS_WANT(error);
    close(fd);
    free_node(root);
    return 0;
}
