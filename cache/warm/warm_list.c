/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list is an array sorted by the hash of the path; the paths themselves are read from the
 * mapping of the memfd, whose seals keep it as it is. Entries with equal hashes are compared by
 * path.
 */
#include "cache/warm/warm_list.h"
#include "proto/wire.h"
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

/* A file that could shrink under its mapping would end the process. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_WRITE)

typedef struct Entry {
    uint64_t hash;
    uint64_t offset : 63; /* of its line */
    uint64_t taken : 1;
} Entry;

struct WarmList {
    char *beneath;
    const char *text;
    size_t bytes;
    GArray *entries; /* Entry; by hash */
};

static gboolean invalid_list(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean invalid_list(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error)
        *error = g_error_new_valist(WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT, format, args);
    va_end(args);
    return FALSE;
}

static size_t line_length(const WarmList *list, uint64_t offset)
{
    const char *start = list->text + offset;
    const char *end = memchr(start, '\n', list->bytes - offset);
    return end ? (size_t)(end - start) : list->bytes - offset;
}

/* The clean path of a line: "" when there is none, NULL when it has "..". */
static char *path_at(const WarmList *list, uint64_t offset)
{
    g_autofree char *line = g_strndup(list->text + offset, line_length(list, offset));
    GString *path = g_string_new(list->beneath);
    gboolean good = TRUE, any = FALSE;
    for (char *part = line, *next; part && good; part = next) {
        next = strchr(part, '/');
        if (next)
            *next++ = '\0';
        good = strcmp(part, "..") != 0;
        if (!part[0] || strcmp(part, ".") == 0)
            continue;
        g_string_append_printf(path, "%s%s", path->len ? "/" : "", part);
        any = TRUE;
    }
    if (good && !any)
        g_string_truncate(path, 0);
    return g_string_free(path, !good);
}

static uint64_t hash_of(const char *path)
{
    return XXH3_64bits(path, strlen(path));
}

static gint by_offset(gconstpointer a, gconstpointer b)
{
    uint64_t x = ((const Entry *)a)->offset, y = ((const Entry *)b)->offset;
    return x < y ? -1 : x > y;
}

static gint by_hash(gconstpointer a, gconstpointer b)
{
    const Entry *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    return by_offset(a, b);
}

/* The first entry of this hash. */
static guint lower_bound(const GArray *entries, uint64_t hash)
{
    guint from = 0, to = entries->len;
    while (from < to) {
        guint middle = from + (to - from) / 2;
        if (g_array_index(entries, Entry, middle).hash < hash)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static Entry *find_entry(const WarmList *list, const char *path)
{
    uint64_t hash = hash_of(path);
    for (guint i = lower_bound(list->entries, hash); i < list->entries->len; i++) {
        Entry *entry = &g_array_index(list->entries, Entry, i);
        if (entry->hash != hash)
            break;
        g_autofree char *other = path_at(list, entry->offset);
        if (strcmp(other, path) == 0)
            return entry;
    }
    return NULL;
}

static gboolean read_lines(WarmList *list, GError **error)
{
    guint64 number = 0;
    for (uint64_t at = 0; at < list->bytes; at += line_length(list, at) + 1) {
        number++;
        g_autofree char *path = path_at(list, at);
        if (!path)
            return invalid_list(
                error, "line %" G_GUINT64_FORMAT " of the files: must not contain '..'", number);
        if (!path[0])
            continue;
        if (list->entries->len == WARM_LIST_MAX)
            return invalid_list(
                error, "more than %u files are named; warm the directory they are in (--path)",
                WARM_LIST_MAX);
        Entry entry = {.hash = hash_of(path), .offset = at};
        g_array_append_val(list->entries, entry);
    }
    return list->entries->len > 0 || invalid_list(error, "no files are named");
}

/* Of lines that name the same file, the first stays. */
static void remove_doubles(WarmList *list)
{
    g_array_sort(list->entries, by_hash);
    guint kept = 0;
    for (guint i = 0; i < list->entries->len; i++) {
        Entry entry = g_array_index(list->entries, Entry, i);
        gboolean again = FALSE;
        for (guint j = kept; j-- > 0 && !again;) {
            const Entry *other = &g_array_index(list->entries, Entry, j);
            if (other->hash != entry.hash)
                break;
            g_autofree char *a = path_at(list, entry.offset), *b = path_at(list, other->offset);
            again = strcmp(a, b) == 0;
        }
        if (!again)
            g_array_index(list->entries, Entry, kept++) = entry;
    }
    g_array_set_size(list->entries, kept);
}

WarmList *warm_list_read(int fd, const char *beneath, GError **error)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0) {
        invalid_list(error,
                     "the files must come in a memfd that is sealed against shrinking and writing");
        return NULL;
    }
    if (st.st_size == 0) {
        invalid_list(error, "no files are named");
        return NULL;
    }
    void *text = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (text == MAP_FAILED) {
        invalid_list(error, "the list of files cannot be read: %s", g_strerror(errno));
        return NULL;
    }
    WarmList *list = g_new0(WarmList, 1);
    list->beneath = g_strdup(beneath);
    list->text = text;
    list->bytes = (size_t)st.st_size;
    list->entries = g_array_new(FALSE, FALSE, sizeof(Entry));
    if (!read_lines(list, error)) {
        warm_list_free(list);
        return NULL;
    }
    remove_doubles(list);
    return list;
}

void warm_list_free(WarmList *list)
{
    if (!list)
        return;
    munmap((void *)list->text, list->bytes);
    g_array_unref(list->entries);
    g_free(list->beneath);
    g_free(list);
}

gboolean warm_list_has(WarmList *list, const char *path, gboolean take)
{
    Entry *entry = find_entry(list, path);
    if (entry && take)
        entry->taken = 1;
    return entry != NULL;
}

gboolean warm_list_rest(WarmList *list, gboolean (*each)(void *data, const char *path), void *data)
{
    g_autoptr(GArray) rest = g_array_new(FALSE, FALSE, sizeof(Entry));
    for (guint i = 0; i < list->entries->len; i++) {
        Entry entry = g_array_index(list->entries, Entry, i);
        if (!entry.taken)
            g_array_append_val(rest, entry);
    }
    g_array_sort(rest, by_offset);
    gboolean go_on = TRUE;
    for (guint i = 0; i < rest->len && go_on; i++) {
        g_autofree char *path = path_at(list, g_array_index(rest, Entry, i).offset);
        go_on = each(data, path);
    }
    return go_on;
}
