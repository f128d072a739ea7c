/* SPDX-License-Identifier: Apache-2.0 */
/* The first byte of the text is written after all others. */
#include "cache/fuse/mount_state.h"
#include <errno.h>
#include <gio/gio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cache/fuse/take_over.h"

#define VERSION 1

static gboolean fail_errno(GError **error, const char *what)
{
    g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "the state of the mount: %s: %s",
                what, g_strerror(errno));
    return FALSE;
}

int mount_state_new(GError **error)
{
    const int fd = memfd_create("hearth-mount-state", MFD_CLOEXEC);
    if (fd < 0)
        fail_errno(error, "memfd_create");
    return fd;
}

static gboolean write_at(int fd, const char *text, size_t len, off_t at)
{
    while (len > 0) {
        const ssize_t n = pwrite(fd, text, len, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return FALSE;
        text += n;
        at += n;
        len -= (size_t)n;
    }
    return TRUE;
}

gboolean mount_state_leave(int fd, const char *kind, GBytes *init, json_t *state, GError **error)
{
    json_auto_t *all = state;
    gsize size;
    const guchar *bytes = g_bytes_get_data(init, &size);
    g_autofree char *base64 = g_base64_encode(bytes, size);
    json_object_set_new(all, "version", json_integer(VERSION));
    json_object_set_new(all, "kind", json_string(kind));
    json_object_set_new(all, "init", json_string(base64));
    char *text = json_dumps(all, JSON_COMPACT);
    const size_t len = text ? strlen(text) : 0;
    if (len > MOUNT_STATE_MAX)
        errno = EFBIG;
    const gboolean done = len > 1 && len <= MOUNT_STATE_MAX && write_at(fd, text + 1, len - 1, 1) &&
                          write_at(fd, text, 1, 0);
    free(text); /* jansson's */
    return done || fail_errno(error, "write");
}

/* Its first byte: wire_state_is_left(). */
static void mark(int fd, const char *first)
{
    if (!write_at(fd, first, 1, 0))
        g_warning("the state of a mount cannot be marked: %s", g_strerror(errno));
}

Readers *mount_state_go_on(int fd, struct fuse_session *fuse, void (*ended)(void *data), void *data,
                           GError **error)
{
    mark(fd, "");
    /* Before anything is read: what comes later is not sent again. */
    Readers *readers =
        take_over_resend(fuse, error) ? readers_start(fuse, ended, data, error) : NULL;
    if (!readers)
        mark(fd, "{");
    return readers;
}

static GBytes *init_in(const json_t *state)
{
    const char *base64 = json_string_value(json_object_get(state, "init"));
    if (!base64 || strlen(base64) > TAKE_OVER_INIT_MAX * 2)
        return NULL;
    gsize size = 0;
    guchar *init = g_base64_decode(base64, &size);
    g_autoptr(GBytes) bytes = g_bytes_new_take(init, size);
    return take_over_is_init(bytes) ? g_steal_pointer(&bytes) : NULL;
}

json_t *mount_state_read(int fd, const char *kind, GBytes **init, GError **error)
{
    struct stat st;
    *init = NULL;
    if (fstat(fd, &st) < 0) {
        fail_errno(error, "fstat");
        return NULL;
    }
    json_auto_t *state = NULL;
    if (S_ISREG(st.st_mode) && st.st_size > 0 && st.st_size <= MOUNT_STATE_MAX) {
        const size_t size = (size_t)st.st_size;
        g_autofree char *text = g_malloc(size);
        if (pread(fd, text, size, 0) == st.st_size)
            state = json_loadb(text, size, 0, NULL);
    }
    const json_t *version = json_object_get(state, "version");
    const char *of = json_string_value(json_object_get(state, "kind"));
    if (json_integer_value(version) == VERSION && of && strcmp(of, kind) == 0)
        *init = init_in(state);
    if (*init)
        return g_steal_pointer(&state);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_INVALID_DATA,
                "the state that was left of the mount is not one that this hearthd knows");
    return NULL;
}
