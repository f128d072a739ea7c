/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tag has an entry only while it is used or pinned. The pins file is replaced as a whole at each
 * change; damage is logged, and then no tag is pinned.
 */
#include "cache/store/objects/tags.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/store/disk/format.h"
#include "cache/store/disk/replace.h"

typedef struct TagState {
    TagId id;
    char *tag;
    unsigned uses;
    gboolean pinned;
    double again; /* the part of the objects fetched lately that had been evicted */
    double turn;  /* sum of `again` over the choices of an end, less those for the newest */
} TagState;

#define FETCHES_AVERAGED 16
#define NEWEST_AT_MOST (15.0 / 16) /* what is never read any more must not stay for ever */

static guint id_hash(gconstpointer id)
{
    guint n;
    memcpy(&n, ((const TagId *)id)->bytes, sizeof(n));
    return n;
}

static gboolean id_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(a, b, sizeof(TagId)) == 0;
}

static void free_state(gpointer data)
{
    TagState *state = data;
    g_free(state->tag);
    g_free(state);
}

void tags_init(Tags *tags)
{
    pthread_mutex_init(&tags->lock, NULL);
    tags->by_id = g_hash_table_new_full(id_hash, id_equal, NULL, free_state);
}

void tags_destroy(Tags *tags)
{
    g_hash_table_destroy(tags->by_id);
    pthread_mutex_destroy(&tags->lock);
}

static TagState *state_of_locked(Tags *tags, const char *tag)
{
    TagId id;
    tag_id(tag, &id);
    TagState *state = g_hash_table_lookup(tags->by_id, &id);
    if (state)
        return state;
    state = g_new0(TagState, 1);
    state->id = id;
    state->tag = g_strdup(tag);
    g_hash_table_insert(tags->by_id, &state->id, state);
    return state;
}

static void remove_if_unused_locked(Tags *tags, TagState *state)
{
    if (!state->uses && !state->pinned)
        g_hash_table_remove(tags->by_id, &state->id);
}

void tags_use(Tags *tags, const char *tag, int by)
{
    pthread_mutex_lock(&tags->lock);
    TagState *state = state_of_locked(tags, tag);
    state->uses = by > 0 ? state->uses + 1 : state->uses - MIN(state->uses, 1);
    remove_if_unused_locked(tags, state);
    pthread_mutex_unlock(&tags->lock);
}

gboolean tags_pin(Tags *tags, const char *tag, gboolean on)
{
    pthread_mutex_lock(&tags->lock);
    TagState *state = state_of_locked(tags, tag);
    gboolean changed = !state->pinned != !on;
    state->pinned = on;
    remove_if_unused_locked(tags, state);
    pthread_mutex_unlock(&tags->lock);
    return changed;
}

static TagRank rank_of(const TagState *state)
{
    if (!state)
        return TAG_RANK_NONE;
    return state->pinned ? TAG_RANK_PINNED : TAG_RANK_USED;
}

TagRank tags_rank(Tags *tags, const TagId *id)
{
    pthread_mutex_lock(&tags->lock);
    TagRank rank = rank_of(g_hash_table_lookup(tags->by_id, id));
    pthread_mutex_unlock(&tags->lock);
    return rank;
}

void tags_fetched(Tags *tags, const TagId *id, gboolean again)
{
    pthread_mutex_lock(&tags->lock);
    TagState *state = g_hash_table_lookup(tags->by_id, id);
    if (state)
        state->again += ((again ? 1 : 0) - state->again) / FETCHES_AVERAGED;
    pthread_mutex_unlock(&tags->lock);
}

gboolean tags_takes_newest(Tags *tags, const TagId *id)
{
    gboolean newest = FALSE;
    pthread_mutex_lock(&tags->lock);
    TagState *state = g_hash_table_lookup(tags->by_id, id);
    if (state) {
        state->turn += MIN(state->again, NEWEST_AT_MOST);
        newest = state->turn >= 0.5;
        state->turn -= newest ? 1 : 0;
    }
    pthread_mutex_unlock(&tags->lock);
    return newest;
}

GArray *tags_list(Tags *tags, TagRank rank)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(TagId));
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&tags->lock);
    g_hash_table_iter_init(&iter, tags->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (rank_of(value) == rank)
            g_array_append_val(ids, ((TagState *)value)->id);
    pthread_mutex_unlock(&tags->lock);
    return ids;
}

static gint compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *tags_pinned(Tags *tags)
{
    GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&tags->lock);
    g_hash_table_iter_init(&iter, tags->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((TagState *)value)->pinned)
            g_ptr_array_add(texts, g_strdup(((TagState *)value)->tag));
    pthread_mutex_unlock(&tags->lock);
    g_ptr_array_sort(texts, compare_texts);
    return texts;
}

/* ---- the file */

static gboolean parse_pins(Tags *tags, const uint8_t *data, size_t size)
{
    FormatPins header;
    if (size < sizeof(header))
        return FALSE;
    memcpy(&header, data, sizeof(header));
    const char *texts = (const char *)data + sizeof(header);
    size_t bytes = size - sizeof(header);
    if (memcmp(header.magic, FORMAT_PINS_MAGIC, sizeof(header.magic)) != 0 ||
        le32toh(header.version) != FORMAT_PINS_VERSION || le32toh(header.bytes) != bytes ||
        le64toh(header.checksum) != XXH3_64bits(texts, bytes) ||
        (bytes > 0 && texts[bytes - 1] != '\0'))
        return FALSE;
    for (const char *tag = texts; tag < texts + bytes; tag += strlen(tag) + 1)
        if (tag[0])
            tags_pin(tags, tag, TRUE);
    return TRUE;
}

void tags_load(Tags *tags, int dir_fd)
{
    hearth_autofd int fd = openat(dir_fd, FORMAT_PINS_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return;
    g_autofree uint8_t *data = g_malloc(FORMAT_PINS_MAX + 1);
    ssize_t n = fd < 0 ? -1 : pread(fd, data, FORMAT_PINS_MAX + 1, 0);
    if (n < 0)
        g_warning("cache: file " FORMAT_PINS_NAME " cannot be read: %s; nothing is pinned",
                  g_strerror(errno));
    else if (n > FORMAT_PINS_MAX || !parse_pins(tags, data, (size_t)n))
        g_warning("cache: file " FORMAT_PINS_NAME
                  " is damaged or of another version; nothing is pinned");
}

int tags_save(Tags *tags, int dir_fd)
{
    g_autoptr(GPtrArray) pinned = tags_pinned(tags);
    g_autoptr(GByteArray) texts = g_byte_array_new();
    FormatPins header = {.version = htole32(FORMAT_PINS_VERSION)};
    memcpy(header.magic, FORMAT_PINS_MAGIC, sizeof(header.magic));
    for (guint i = 0; i < pinned->len; i++)
        g_byte_array_append(texts, pinned->pdata[i], (guint)strlen(pinned->pdata[i]) + 1);
    if (texts->len + sizeof(header) > FORMAT_PINS_MAX)
        return -E2BIG;
    header.bytes = htole32(texts->len);
    header.checksum = htole64(XXH3_64bits(texts->data, texts->len));
    g_byte_array_prepend(texts, (const guint8 *)&header, sizeof(header));
    return replace_file(dir_fd, FORMAT_PINS_NAME, FORMAT_PINS_NEW_NAME, texts->data, texts->len);
}
