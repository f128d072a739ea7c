/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tells a file from the one that takes its place: kubelet makes new ones when a Secret or a
 * ConfigMap changes. A file that is not there is a trace too.
 */
#ifndef HEARTH_COMMON_HTTP_TRACE_H
#define HEARTH_COMMON_HTTP_TRACE_H

#include <glib.h>
#include <sys/stat.h>

/* Files are looked at when somebody asks, and so often at most. */
#define HTTP_LOOK_US G_USEC_PER_SEC

typedef struct HttpTrace {
    dev_t device;
    ino_t inode;
    struct timespec changed;
    off_t size;
} HttpTrace;

static inline HttpTrace http_trace_of(const char *path)
{
    struct stat st = {0};
    if (stat(path, &st) < 0)
        return (HttpTrace){0};
    return (HttpTrace){st.st_dev, st.st_ino, st.st_ctim, st.st_size};
}

static inline gboolean http_trace_same(const HttpTrace *a, const HttpTrace *b)
{
    return a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->changed.tv_sec == b->changed.tv_sec && a->changed.tv_nsec == b->changed.tv_nsec;
}

#endif
