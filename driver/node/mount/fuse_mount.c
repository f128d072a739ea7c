/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/mount/fuse_mount.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/mount/selinux.h"

/* Lines "e <text>" read from the context. */
char *mount_context_message(int context)
{
    char text[512];
    ssize_t n = read(context, text, sizeof(text) - 1);
    if (n <= 0)
        return NULL;
    text[n] = '\0';
    return g_strdup(g_strstrip(text));
}

/* A detached mount served through fuse_fd, or -1. */
static int mount_descriptor(int fuse_fd, const char *volume, const MountOptions *wanted,
                            GError **error)
{
    g_autofree char *source = g_strconcat(MOUNT_SOURCE_PREFIX, volume, NULL);
    g_autofree char *fd_text = g_strdup_printf("%d", fuse_fd);
    const struct {
        const char *key, *value; /* no value: a flag */
    } options[] = {
        {"source", source},
        {"subtype", "hearth"},
        {"fd", fd_text},
        {"rootmode", "40000"},
        {"user_id", "0"},
        {"group_id", "0"},
        {"max_read", "1048576"},
        {"allow_other", NULL},
        {"default_permissions", NULL},
        {"ro", NULL},
        {"context", wanted->context},
    };
    hearth_autofd int context = fsopen("fuse", FSOPEN_CLOEXEC);
    if (context < 0) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "volume %s: fsopen of fuse (CAP_SYS_ADMIN and Linux 5.12 are needed): %s",
                    volume, g_strerror(errno));
        return -1;
    }
    int rc = 0;
    const char *step = "";
    for (guint i = 0; i < G_N_ELEMENTS(options) && rc == 0; i++) {
        step = options[i].key;
        if ((strcmp(step, "ro") == 0 && !(wanted->attrs & MOUNT_ATTR_RDONLY)) ||
            (strcmp(step, "context") == 0 && !wanted->context))
            continue;
        rc = fsconfig(context, options[i].value ? FSCONFIG_SET_STRING : FSCONFIG_SET_FLAG, step,
                      options[i].value, 0);
    }
    if (rc == 0) {
        step = "create";
        rc = fsconfig(context, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
    }
    int fd = -1;
    if (rc == 0) {
        step = "fsmount";
        fd = fsmount(context, FSMOUNT_CLOEXEC, (unsigned)wanted->attrs);
    }
    if (fd < 0) {
        int cause = errno;
        g_autofree char *more = mount_context_message(context);
        g_autofree char *labelled = selinux_shown(wanted->context);
        const char *colon = more ? ": " : "";
        hearth_fail(error, HEARTH_ERROR_INTERNAL, "volume %s: mounting FUSE%s: %s%s%s: %s", volume,
                    labelled, step, colon, more ? more : "", g_strerror(cause));
    }
    return fd;
}

int mount_fuse_detached(const char *volume, const MountOptions *options, int *fuse_fd,
                        GError **error)
{
    *fuse_fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (*fuse_fd >= 0)
        return mount_descriptor(*fuse_fd, volume, options, error);
    hearth_fail(error, HEARTH_ERROR_INTERNAL,
                "/dev/fuse (is the module fuse loaded, and the device in the container?): %s",
                g_strerror(errno));
    return -1;
}
