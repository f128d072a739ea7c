/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tries, in a directory of its own, the kernel features that a dataset's stack needs: a small
 * overlay whose one file is a hole that leads to another in a data-only layer. If it reads as that
 * other one, the kernel has it all.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/dataset/layers_internal.h"

#define CONTENT "hearth"
#define CONTENT_BYTES (sizeof(CONTENT) - 1)

static const char *const parts[] = {"names", "objects", "fill"};

static gboolean make_file(const char *path, const char *content, off_t bytes)
{
    hearth_autofd int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    const size_t n = content ? strlen(content) : 0;
    return fd >= 0 && (n == 0 || write(fd, content, n) == (ssize_t)n) && ftruncate(fd, bytes) == 0;
}

/* FALSE with errno. */
static gboolean make_tree(const char *dir)
{
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *path = g_build_filename(dir, parts[i], NULL);
        if (mkdir(path, 0700) != 0)
            return FALSE;
    }
    g_autofree char *name = g_build_filename(dir, parts[0], "file", NULL);
    g_autofree char *object = g_build_filename(dir, parts[2], "object", NULL);
    g_autofree char *empty = g_build_filename(dir, "image", NULL);
    if (!make_file(name, NULL, CONTENT_BYTES))
        return FALSE;
    if (!make_file(object, CONTENT, CONTENT_BYTES))
        return FALSE;
    if (!make_file(empty, NULL, 4096))
        return FALSE;
    if (setxattr(name, "trusted.overlay.metacopy", "", 0, 0) != 0)
        return FALSE;
    return setxattr(name, "trusted.overlay.redirect", "/object", strlen("/object"), 0) == 0;
}

static void remove_tree(const char *dir)
{
    static const char *const files[] = {"names/file", "fill/object", "image"};
    for (guint i = 0; i < G_N_ELEMENTS(files); i++) {
        g_autofree char *path = g_build_filename(dir, files[i], NULL);
        unlink(path);
    }
    for (guint i = 0; i < G_N_ELEMENTS(parts); i++) {
        g_autofree char *path = g_build_filename(dir, parts[i], NULL);
        rmdir(path);
    }
    rmdir(dir);
}

static gboolean reads_right(int mount)
{
    char text[CONTENT_BYTES];
    hearth_autofd int fd = openat(mount, "file", O_RDONLY | O_CLOEXEC);
    return fd >= 0 && pread(fd, text, sizeof(text), 0) == (ssize_t)sizeof(text) &&
           memcmp(text, CONTENT, sizeof(text)) == 0;
}

static StackSyntax probe_syntax(const char *dir, char **why)
{
    static const StackSyntax tried[] = {STACK_APPENDED, STACK_JOINED};
    g_autofree char *lower = g_build_filename(dir, parts[0], NULL);
    g_autofree char *objects = g_build_filename(dir, parts[1], NULL);
    g_autofree char *fill = g_build_filename(dir, parts[2], NULL);
    const LayerStack stack = {
        .source = "hearth", .manifest = lower, .objects = objects, .fill = fill};
    for (guint i = 0; i < G_N_ELEMENTS(tried); i++) {
        g_autofree char *said = NULL;
        int rc = layers_mount_overlay(tried[i], &stack, &said);
        hearth_autofd int mount = rc >= 0 ? rc : -1;
        if (mount >= 0 && reads_right(mount))
            return tried[i];
        const char *reason = "files do not lead to them";
        if (mount < 0)
            reason = said ? said : g_strerror(-rc);
        g_free(*why);
        *why = g_strdup_printf("overlayfs has no data-only layers (Linux 6.5): %s", reason);
    }
    return STACK_NONE;
}

/* What is no image is refused as such only where files are taken at all. */
static gboolean probe_file(const char *dir, gboolean *has_erofs)
{
    g_autofree char *image = g_build_filename(dir, "image", NULL);
    g_autofree char *said = NULL;
    hearth_autofd int context = fsopen("erofs", FSOPEN_CLOEXEC);
    *has_erofs = context >= 0;
    return *has_erofs && layers_mount_file(image, &said) == -EINVAL;
}

void layers_probe(KernelLayers *k, const char *dir, char **why)
{
    g_autofree char *tree = g_build_filename(dir, "probe", NULL);
    gboolean has_erofs = FALSE;
    remove_tree(tree); /* of a process that died */
    if (g_mkdir_with_parents(tree, 0700) == 0 && make_tree(tree)) {
        k->syntax = probe_syntax(tree, why);
        if (k->syntax != STACK_NONE)
            g_clear_pointer(why, g_free);
        k->from_file = probe_file(tree, &has_erofs);
        if (!*why && !has_erofs)
            *why = g_strdup("the kernel has no EROFS");
    } else {
        *why = g_strdup_printf("trying it in %s (see --device-dir): %s", tree, g_strerror(errno));
    }
    remove_tree(tree);
}

void layers_features(const char *dir, LayersFeatures *features)
{
    KernelLayers probed = {0};
    *features = (LayersFeatures){0};
    layers_probe(&probed, dir, &features->why);
    features->data_only = probed.syntax != STACK_NONE;
    features->from_file = probed.from_file;
}
