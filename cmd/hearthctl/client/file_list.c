/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of hearthctl warm --files-from. It is copied into a sealed memfd, so that hearthd
 * neither waits for a pipe nor sees the list change.
 */
#include "cmd/hearthctl/client/client.h"
#include <errno.h>
#include <fcntl.h>
#include <gio/gio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The part of an absolute path below `above`, or NULL if it is not below it. */
static const char *beneath(const char *line, const char *above)
{
    size_t length = above ? strlen(above) : 0;
    while (length > 0 && above[length - 1] == '/')
        length--;
    if (!above || above[0] != '/')
        return line; /* the argument is a volume: its root is "/" */
    return strncmp(line, above, length) == 0 && line[length] == '/' ? line + length + 1 : NULL;
}

static gboolean copy_lines(FILE *in, FILE *out, const char *name, const char *above, GError **error)
{
    char *text = NULL;
    size_t size = 0;
    guint64 number = 0;
    gboolean good = TRUE;
    for (ssize_t n; good && (n = getline(&text, &size, in)) >= 0;) {
        number++;
        if (n > 0 && text[n - 1] == '\n')
            text[--n] = '\0';
        const char *path = text[0] == '/' ? beneath(text, above) : text;
        good = path != NULL && strlen(text) == (size_t)n;
        if (!path)
            ctl_usage_error(error, "%s, line %" G_GUINT64_FORMAT ": '%s' is not beneath %s", name,
                            number, text, above);
        else if (!good)
            ctl_usage_error(error, "%s, line %" G_GUINT64_FORMAT ": it has a NUL byte", name,
                            number);
        else
            fprintf(out, "%s\n", path);
    }
    if (good && ferror(in)) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "%s: %s", name,
                    g_strerror(errno));
        good = FALSE;
    }
    free(text);
    return good;
}

int ctl_list_files(const char *from, const char *above, GError **error)
{
    gboolean is_stdin = strcmp(from, "-") == 0;
    FILE *in = is_stdin ? stdin : fopen(from, "re");
    if (!in) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "--files-from %s: %s", from,
                    g_strerror(errno));
        return -1;
    }
    int fd = memfd_create("files", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    gboolean good = out && copy_lines(in, out, is_stdin ? "standard input" : from, above, error);
    if (out && fclose(out) != 0 && good)
        good = FALSE;
    if (good &&
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) < 0)
        good = FALSE;
    if (!good && error && !*error)
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno),
                    "--files-from %s: the names cannot be kept: %s", from, g_strerror(errno));
    if (!is_stdin)
        fclose(in);
    if (good)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}
