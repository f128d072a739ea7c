/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NodeLayers over the kernel. A request to a layer may hang with hearthd, so all of them run in
 * bounded threads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include "common/autofd.h"
#include "driver/node/dataset/layers_internal.h"
#include "driver/node/mount/mount.h"
#include "driver/node/mount/selinux.h"

#define MAX_STUCK 32
/* How much of a tree verify() looks at, to find files that say something. */
#define VERIFY_ENTRIES 5000
#define VERIFY_FILES 16
#define VERIFY_DEPTH 32

gboolean layers_parse_mode(const char *text, LayersMode *mode, GError **error)
{
    static const char *const names[] = {"auto", "loop", "fuse"};
    for (guint i = 0; i < G_N_ELEMENTS(names); i++)
        if (strcmp(text, names[i]) == 0) {
            *mode = (LayersMode)i;
            return TRUE;
        }
    return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                       "dataset mount \"%s\": use auto, loop or fuse", text);
}

/* ---- the operations, each a job ---- */

typedef struct LayersJob {
    StackSyntax syntax;
    char *source, *manifest, *objects, *fill, *context;
    uint64_t attrs;
    int fd; /* the result, or the mount to check */
    int rc; /* 0 or -errno */
    char *said;
} LayersJob;

static void job_free(void *data)
{
    LayersJob *job = data;
    if (job->fd >= 0)
        close(job->fd);
    g_free(job->source);
    g_free(job->manifest);
    g_free(job->objects);
    g_free(job->fill);
    g_free(job->context);
    g_free(job->said);
    g_free(job);
}

/* FAILED_PRECONDITION: the kernel will refuse these arguments every time. */
static int code_of(int rc)
{
    switch (rc) {
    case -EINVAL:
    case -ENODEV:
    case -ENOTBLK:
    case -EOPNOTSUPP:
    case -ENOENT:
    case -ENOTDIR:
    case -ELOOP:
    case -EUCLEAN:
    case -ENAMETOOLONG:
    case -EPERM:
        return HEARTH_ERROR_FAILED_PRECONDITION;
    case -ENOTCONN:
    case -ECONNABORTED:
        return HEARTH_ERROR_UNAVAILABLE;
    default:
        return HEARTH_ERROR_INTERNAL;
    }
}

static void set_failure(GError **error, const LayersJob *job, const char *what)
{
    const char *reason = g_strerror(-job->rc);
    if (job->said)
        hearth_fail(error, code_of(job->rc), "%s: %s: %s", what, reason, job->said);
    else
        hearth_fail(error, code_of(job->rc), "%s: %s", what, reason);
}

static void manifest_run(void *data)
{
    LayersJob *job = data;
    int rc = layers_mount_file(job->manifest, &job->said);
    job->fd = rc >= 0 ? rc : -1;
    job->rc = MIN(rc, 0);
}

static int mount_loop(KernelLayers *k, const char *file, const char *tag, gint64 timeout_ms,
                      GError **error)
{
    char *const options[] = {"ro", NULL};
    /* It goes with the mount. */
    LoopDevice device = {.number = -1, .read_only = TRUE, .autoclear = TRUE};
    hearth_autofd int held = k->block->ops->loop_attach(k->block, file, tag, &device, error);
    if (held < 0)
        return -1;
    const BlockMount mount = {.number = device.number,
                              .type = "erofs",
                              .options = options,
                              .attrs = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV};
    return k->block->ops->mount(k->block, &mount, timeout_ms, error);
}

static int kernel_mount_manifest(NodeLayers *l, const char *file, const char *tag,
                                 gint64 timeout_ms, GError **error)
{
    KernelLayers *k = (KernelLayers *)l;
    if (!k->from_file)
        return mount_loop(k, file, tag, timeout_ms, error);
    LayersJob *job = g_new0(LayersJob, 1);
    job->manifest = g_strdup(file);
    job->fd = -1;
    g_autofree char *what = g_strdup_printf("mounting the manifest %s", file);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){manifest_run, job, job_free}, timeout_ms,
                     error))
        return -1;
    /* EROFS reads only files of file systems that it can read pages of. */
    const gboolean loop = job->rc == -ENOTBLK;
    if (job->rc != 0 && !loop)
        set_failure(error, job, what);
    int fd = hearth_steal_fd(&job->fd);
    job_free(job);
    return loop ? mount_loop(k, file, tag, timeout_ms, error) : fd;
}

static void stack_run(void *data)
{
    LayersJob *job = data;
    const LayerStack stack = {.source = job->source,
                              .manifest = job->manifest,
                              .objects = job->objects,
                              .fill = job->fill,
                              .attrs = job->attrs,
                              .context = job->context};
    int rc = layers_mount_overlay(job->syntax, &stack, &job->said);
    job->fd = rc >= 0 ? rc : -1;
    job->rc = MIN(rc, 0);
}

static int mount_stack(KernelLayers *k, const LayerStack *stack, gint64 timeout_ms, GError **error)
{
    LayersJob *job = g_new0(LayersJob, 1);
    job->syntax = k->syntax;
    job->source = g_strdup(stack->source);
    job->manifest = g_strdup(stack->manifest);
    job->objects = g_strdup(stack->objects);
    job->fill = g_strdup(stack->fill);
    job->context = g_strdup(stack->context);
    job->attrs = stack->attrs;
    job->fd = -1;
    g_autofree char *labelled = selinux_shown(stack->context);
    g_autofree char *what = g_strdup_printf("mounting %s, %s and %s with overlayfs%s",
                                            stack->manifest, stack->objects, stack->fill, labelled);
    if (!bounded_run(k->bounded, what, what, &(BoundedJob){stack_run, job, job_free}, timeout_ms,
                     error))
        return -1;
    if (job->rc != 0)
        set_failure(error, job, what);
    int fd = hearth_steal_fd(&job->fd);
    job_free(job);
    return fd;
}

/* ---- verifying ---- */

typedef struct Verify {
    unsigned entries, files, holes; /* looked at */
    gboolean good;
    int rc;
} Verify;

/* A file that is followed is not a hole from end to end; the manifest's own files are. */
static void verify_file(Verify *v, int dir, const char *name)
{
    hearth_autofd int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) != 0) {
        v->rc = -errno;
        return;
    }
    if (!S_ISREG(st.st_mode) || st.st_size == 0)
        return;
    v->files++;
    if (lseek(fd, 0, SEEK_DATA) >= 0)
        v->good = TRUE;
    else if (errno == ENXIO)
        v->holes++; /* a sparse file may be one */
    else
        v->rc = -errno;
}

static void verify_dir(Verify *v, int parent, const char *name, unsigned depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir) {
        v->rc = -errno;
        return;
    }
    const struct dirent *e;
    while (!v->good && v->rc == 0 && v->files < VERIFY_FILES && v->entries < VERIFY_ENTRIES &&
           (e = readdir(dir))) {
        v->entries++;
        if (e->d_type == DT_REG)
            verify_file(v, dirfd(dir), e->d_name);
        else if (e->d_type == DT_DIR && depth > 0 && strcmp(e->d_name, ".") != 0 &&
                 strcmp(e->d_name, "..") != 0)
            verify_dir(v, dirfd(dir), e->d_name, depth - 1);
    }
    closedir(dir);
}

static void verify_run(void *data)
{
    LayersJob *job = data;
    Verify v = {0};
    verify_dir(&v, job->fd, ".", VERIFY_DEPTH);
    job->rc = v.rc;
    if (v.rc == 0 && !v.good && v.holes > 0) {
        job->rc = -EINVAL;
        job->said = g_strdup("its files lead nowhere and would read as zeros");
    }
}

static gboolean verify(KernelLayers *k, int mount_fd, gint64 timeout_ms, GError **error)
{
    LayersJob *job = g_new0(LayersJob, 1);
    job->fd = fcntl(mount_fd, F_DUPFD_CLOEXEC, 3);
    g_autofree char *key = g_strdup_printf("verify %d", mount_fd);
    static const char what[] = "opening a file of the dataset";
    if (!bounded_run(k->bounded, key, what, &(BoundedJob){verify_run, job, job_free}, timeout_ms,
                     error))
        return FALSE;
    const gboolean good = job->rc == 0;
    if (!good)
        set_failure(error, job, what);
    job_free(job);
    return good;
}

static int kernel_mount_stack(NodeLayers *l, const LayerStack *stack, gint64 timeout_ms,
                              GError **error)
{
    KernelLayers *k = (KernelLayers *)l;
    const gint64 until_us = g_get_monotonic_time() + timeout_ms * 1000;
    hearth_autofd int fd = mount_stack(k, stack, timeout_ms, error);
    if (fd < 0)
        return -1;
    const gint64 left_ms = MAX((until_us - g_get_monotonic_time()) / 1000, 0);
    return verify(k, fd, left_ms, error) ? hearth_steal_fd(&fd) : -1;
}

/* Reconfiguring a file system, as it is, drops its unused dentries; overlayfs keeps no inode
 * without one. */
static gboolean kernel_refresh(NodeLayers *l, const char *path, dev_t dev, GError **error)
{
    (void)l;
    struct stat st;
    hearth_autofd int point = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (point >= 0 && fstat(point, &st) == 0 && st.st_dev != dev)
        return TRUE; /* another one meanwhile */
    hearth_autofd int context =
        point < 0 ? -1 : fspick(point, "", FSPICK_CLOEXEC | FSPICK_EMPTY_PATH);
    if (context >= 0 && fsconfig(context, FSCONFIG_SET_FLAG, "ro", NULL, 0) == 0 &&
        fsconfig(context, FSCONFIG_CMD_RECONFIGURE, NULL, NULL, 0) == 0)
        return TRUE;
    return hearth_fail(error, HEARTH_ERROR_INTERNAL, "reconfiguring %s: %s", path,
                       g_strerror(errno));
}

static gboolean kernel_close_stack(NodeLayers *l, const char *path, dev_t dev, gboolean closed,
                                   GError **error)
{
    return layers_deny_set(((KernelLayers *)l)->deny, path, dev, closed, error);
}

static void kernel_free(NodeLayers *l)
{
    KernelLayers *k = (KernelLayers *)l;
    layers_deny_free(k->deny);
    bounded_free(k->bounded);
    g_free(k);
}

static const NodeLayersOps kernel_ops = {
    .free = kernel_free,
    .mount_manifest = kernel_mount_manifest,
    .mount_stack = kernel_mount_stack,
    .refresh = kernel_refresh,
    .close_stack = kernel_close_stack,
};

NodeLayers *node_layers_new(NodeBlock *block, const char *dir, LayersMode mode)
{
    KernelLayers *k = g_new0(KernelLayers, 1);
    k->base.ops = &kernel_ops;
    k->block = block;
    k->bounded = bounded_new(MAX_STUCK);
    bounded_set_of_mounts(k->bounded);
    k->deny = layers_deny_new();
    g_autofree char *why = NULL;
    if (mode == LAYERS_FUSE)
        why = g_strdup("--dataset-mount=fuse");
    else
        layers_probe(k, dir, &why);
    k->base.usable = why == NULL;
    k->from_file = k->from_file && mode == LAYERS_AUTO;
    const char *source = k->from_file ? "from files" : "through loop devices";
    const char *syntax = k->syntax == STACK_APPENDED ? "datadir+" : "lowerdir=a::b";
    if (why)
        g_message("datasets are served by FUSE alone: %s", why);
    else
        g_message("datasets are mounted natively: EROFS %s, overlayfs with data-only layers (%s)",
                  source, syntax);
    return &k->base;
}
