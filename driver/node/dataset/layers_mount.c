/* SPDX-License-Identifier: Apache-2.0 */
/* The two mounts of a dataset's stack by the kernel's mount API: EROFS from a file, and overlayfs.
 */
#include <errno.h>
#include <string.h>
#include <sys/mount.h>
#include "common/autofd.h"
#include "driver/node/dataset/layers_internal.h"
#include "driver/node/mount/mount.h"

/* The longest string that fsconfig(2) takes. */
#define OPTION_MAX 255

static int option(int context, const char *key, const char *value)
{
    if (value && strlen(value) > OPTION_MAX)
        return -ENAMETOOLONG;
    const unsigned command = value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG;
    return fsconfig(context, command, key, value, 0) == 0 ? 0 : -errno;
}

/* The detached mount of a context, or the error of an earlier step. */
static int finish(int context, int rc, uint64_t attrs, char **said)
{
    if (rc == 0 && fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0) != 0)
        rc = -errno;
    if (rc == 0) {
        rc = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)attrs);
        if (rc >= 0)
            return rc;
        rc = -errno;
    }
    *said = mount_context_message(context);
    return rc;
}

int layers_mount_file(const char *file, char **said)
{
    hearth_autofd int context = fsopen("erofs", FSOPEN_CLOEXEC);
    if (context < 0)
        return -errno;
    int rc = option(context, "source", file);
    if (rc == 0)
        rc = option(context, "ro", NULL);
    return finish(context, rc, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, said);
}

/* In a joined list a colon divides. */
static void append_escaped(GString *list, const char *path)
{
    for (; *path; path++) {
        if (*path == ':' || *path == '\\')
            g_string_append_c(list, '\\');
        g_string_append_c(list, *path);
    }
}

static int set_layers(int context, StackSyntax syntax, const LayerStack *stack)
{
    const char *const data[] = {stack->objects, stack->fill};
    if (syntax == STACK_APPENDED) {
        int rc = option(context, "lowerdir+", stack->manifest);
        for (guint i = 0; rc == 0 && i < G_N_ELEMENTS(data); i++)
            rc = option(context, "datadir+", data[i]);
        return rc;
    }
    g_autoptr(GString) list = g_string_new(NULL);
    append_escaped(list, stack->manifest);
    for (guint i = 0; i < G_N_ELEMENTS(data); i++) {
        g_string_append(list, "::");
        append_escaped(list, data[i]);
    }
    return option(context, "lowerdir", list->str);
}

int layers_mount_overlay(StackSyntax syntax, const LayerStack *stack, char **said)
{
    hearth_autofd int context = fsopen("overlay", FSOPEN_CLOEXEC);
    if (context < 0)
        return -errno;
    int rc = option(context, "source", stack->source);
    if (rc == 0)
        rc = set_layers(context, syntax, stack);
    if (rc == 0)
        rc = option(context, "metacopy", "on");
    if (rc == 0)
        rc = option(context, "redirect_dir", "on");
    if (rc == 0)
        rc = option(context, "ro", NULL);
    if (rc == 0 && stack->context)
        rc = option(context, "context", stack->context);
    return finish(context, rc, stack->attrs | MOUNT_ATTR_RDONLY, said);
}
