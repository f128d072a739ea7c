/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of mount.h that only parses: mountinfo, paths, flags. Nothing here changes a mount.
 */
#include "driver/node/mount/mount.h"
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include "driver/node/mount/mount_words.h"
#include "driver/node/mount/selinux.h"

void mount_entry_free(MountEntry *entry)
{
    if (!entry)
        return;
    g_free(entry->root);
    g_free(entry->target);
    g_free(entry->type);
    g_free(entry->source);
    g_free(entry->lower);
    g_free(entry->context);
    g_free(entry);
}

/* The kernel writes space, tab, newline, backslash and # as \ and three octal digits. */
static char *unescape(const char *s)
{
    char *out = g_malloc(strlen(s) + 1), *o = out;
    while (*s) {
        if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] >= '0' && s[2] <= '7' &&
            s[3] >= '0' && s[3] <= '7') {
            *o++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
            s += 4;
        } else {
            *o++ = *s++;
        }
    }
    *o = '\0';
    return out;
}

static gboolean has_option(char *const *options, const char *name)
{
    return g_strv_contains((const gchar *const *)options, name);
}

/* The kernel's options of a mount or a file system; for g_strfreev(). */
static char **told_options(const char *field)
{
    char **words = mount_words(field, NULL);
    return words ? words : g_strsplit(field, ",", -1);
}

static gboolean parse_number(const char *s, char end, uint64_t *value, const char **rest)
{
    if (!g_ascii_isdigit(*s))
        return FALSE;
    char *stop;
    errno = 0;
    *value = strtoull(s, &stop, 10);
    if (errno != 0 || *stop != end)
        return FALSE;
    if (rest)
        *rest = stop + 1;
    return TRUE;
}

/*
 * Of an overlay's options: "lowerdir+=first,..." or "lowerdir=first:second::data,...". In the
 * latter a backslash escapes colons and itself.
 */
static char *first_lower(char *const *list)
{
    for (guint i = 0; list[i]; i++) {
        if (g_str_has_prefix(list[i], "lowerdir+="))
            return unescape(list[i] + strlen("lowerdir+="));
        if (!g_str_has_prefix(list[i], "lowerdir="))
            continue;
        char *path = unescape(list[i] + strlen("lowerdir=")), *to = path;
        for (const char *from = path; *from && *from != ':'; from++) {
            if (*from == '\\' && from[1])
                from++;
            *to++ = *from;
        }
        *to = '\0';
        return path;
    }
    return NULL;
}

/* context="system_u:object_r:container_file_t:s0:c1,c2"; the quotes only where there is a comma. */
static char *context_of(char *const *list)
{
    for (guint i = 0; list[i]; i++) {
        g_autofree char *value = mount_word_value(list[i], "context");
        if (value)
            return unescape(value);
    }
    return NULL;
}

void mount_entry_take_options(MountEntry *entry, const char *super)
{
    g_auto(GStrv) list = told_options(super);
    if (strcmp(entry->type, MOUNT_STACK_TYPE) == 0)
        entry->lower = first_lower(list);
    entry->context = context_of(list);
    entry->read_only = entry->read_only || has_option(list, "ro");
}

/*
 * 36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue
 * id parent dev root target options [optional fields] - type source super-options
 */
MountEntry *mount_parse_line(const char *line)
{
    g_auto(GStrv) fields = g_strsplit(line, " ", -1);
    guint n = g_strv_length(fields);
    guint dash = 6;
    while (dash < n && strcmp(fields[dash], "-") != 0)
        dash++;
    if (dash + 3 >= n)
        return NULL;
    uint64_t id, major_no, minor_no;
    const char *minor_text;
    if (!parse_number(fields[0], '\0', &id, NULL) ||
        !parse_number(fields[2], ':', &major_no, &minor_text) ||
        !parse_number(minor_text, '\0', &minor_no, NULL) || fields[4][0] != '/')
        return NULL;
    MountEntry *entry = g_new0(MountEntry, 1);
    entry->id = id;
    entry->dev = makedev(major_no, minor_no);
    entry->root = unescape(fields[3]);
    entry->target = unescape(fields[4]);
    entry->type = unescape(fields[dash + 1]);
    entry->source = unescape(fields[dash + 2]);
    g_auto(GStrv) own = told_options(fields[5]);
    entry->read_only = has_option(own, "ro");
    mount_entry_take_options(entry, fields[dash + 3]);
    return entry;
}

GPtrArray *mount_parse(const char *text)
{
    GPtrArray *table = g_ptr_array_new_with_free_func((GDestroyNotify)mount_entry_free);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (guint i = 0; lines[i]; i++) {
        MountEntry *entry = mount_parse_line(lines[i]);
        if (entry)
            g_ptr_array_add(table, entry);
    }
    return table;
}

const MountEntry *mount_find(const GPtrArray *table, const char *target)
{
    for (guint i = table->len; i > 0; i--) {
        const MountEntry *entry = table->pdata[i - 1];
        if (strcmp(entry->target, target) == 0)
            return entry;
    }
    return NULL;
}

const char *mount_volume(const MountEntry *entry)
{
    if ((strcmp(entry->type, MOUNT_TYPE) != 0 && strcmp(entry->type, MOUNT_STACK_TYPE) != 0) ||
        !g_str_has_prefix(entry->source, MOUNT_SOURCE_PREFIX))
        return NULL;
    return entry->source + strlen(MOUNT_SOURCE_PREFIX);
}

const char *mount_served_volume(const MountEntry *entry)
{
    return strcmp(entry->type, MOUNT_TYPE) == 0 ? mount_volume(entry) : NULL;
}

static HearthError realpath_code(int rc)
{
    switch (rc) {
    case ENOENT:
        return HEARTH_ERROR_NOT_FOUND;
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
        return HEARTH_ERROR_INVALID_ARGUMENT;
    default:
        return HEARTH_ERROR_INTERNAL;
    }
}

char *mount_canonical_path(const char *path, const char *field, GError **error)
{
    if (path[0] != '/') {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s \"%.200s\": give an absolute path",
                    field, path);
        return NULL;
    }
    if (strlen(path) >= PATH_MAX) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "%s: longer than %d bytes", field,
                    PATH_MAX - 1);
        return NULL;
    }
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    g_autoptr(GString) parent = g_string_new(NULL);
    const char *last = NULL;
    for (guint i = 0; parts[i]; i++) {
        if (strcmp(parts[i], ".") == 0 || strcmp(parts[i], "..") == 0) {
            hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                        "%s \"%s\": \"%s\" is not allowed in it", field, path, parts[i]);
            return NULL;
        }
        if (parts[i][0] == '\0')
            continue;
        if (last)
            g_string_append_printf(parent, "/%s", last);
        last = parts[i];
    }
    if (!last || strlen(last) > NAME_MAX) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                    "%s \"%.200s\": not a path that can be mounted on", field, path);
        return NULL;
    }
    g_string_append(parent, "/."); /* so that a file is refused */
    char *real = realpath(parent->str, NULL);
    if (!real) {
        int rc = errno;
        hearth_fail(error, realpath_code(rc), "%s: its directory %.*s: %s", field,
                    MAX(1, (int)parent->len - 2), parent->str, g_strerror(rc));
        return NULL;
    }
    char *canonical = g_strdup_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, last);
    free(real);
    return canonical;
}

char *mount_canonical_dir(const char *path)
{
    char *real = realpath(path, NULL);
    if (real) {
        char *copy = g_strdup(real);
        free(real);
        return copy;
    }
    g_autofree char *parent = g_path_get_dirname(path), *name = g_path_get_basename(path);
    if (strcmp(parent, path) == 0 || strcmp(parent, ".") == 0)
        return g_strdup(path);
    g_autofree char *resolved = mount_canonical_dir(parent);
    return g_build_filename(resolved, name, NULL);
}

/* TRUE: the word is a flag of any mount, and *bits has it. */
static gboolean take_flag(const char *word, uint64_t *bits)
{
    static const struct {
        const char *name;
        uint64_t clear, set;
    } known[] = {
        {"ro", 0, MOUNT_ATTR_RDONLY},
        {"rw", MOUNT_ATTR_RDONLY, 0},
        {"noexec", 0, MOUNT_ATTR_NOEXEC},
        {"exec", MOUNT_ATTR_NOEXEC, 0},
        {"noatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_NOATIME},
        {"relatime", MOUNT_ATTR__ATIME, MOUNT_ATTR_RELATIME},
        {"nodiratime", 0, MOUNT_ATTR_NODIRATIME},
        /* Always so. */
        {"nosuid", 0, 0},
        {"nodev", 0, 0},
    };
    guint k = 0;
    while (k < G_N_ELEMENTS(known) && strcmp(known[k].name, word) != 0)
        k++;
    if (k == G_N_ELEMENTS(known))
        return FALSE;
    *bits = (*bits & ~known[k].clear) | known[k].set;
    return TRUE;
}

gboolean mount_parse_flags(char *const *flags, size_t n, uint64_t *attrs, char **context,
                           GError **error)
{
    uint64_t bits = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    g_autofree char *label = NULL;
    for (size_t i = 0; i < n; i++) {
        g_auto(GStrv) words = mount_words(flags[i], error); /* "ro,noatime" is one flag to some */
        if (!words)
            return FALSE;
        for (guint w = 0; words[w]; w++) {
            if (take_flag(words[w], &bits))
                continue;
            if (selinux_is_option(words[w])) {
                if (!selinux_take_option(words[w], &label, error))
                    return FALSE;
                continue;
            }
            g_autofree char *shown = mount_word_shown(words[w]);
            return hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                               "mount option \"%s\" is not supported; use " MOUNT_FLAGS_KNOWN "%s",
                               shown, selinux_hint(label != NULL));
        }
    }
    *attrs = bits;
    *context = g_steal_pointer(&label);
    return TRUE;
}
