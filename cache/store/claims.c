/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/claims.h"
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/store/index/format.h"
#include "cache/store/index/replace.h"

typedef struct Claim {
    TagId id;
    char *tag;
    unsigned uses;
    gboolean pinned;
} Claim;

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

static void free_claim(gpointer data)
{
    Claim *claim = data;
    g_free(claim->tag);
    g_free(claim);
}

void claims_init(Claims *claims)
{
    pthread_mutex_init(&claims->lock, NULL);
    claims->by_id = g_hash_table_new_full(id_hash, id_equal, NULL, free_claim);
}

void claims_destroy(Claims *claims)
{
    g_hash_table_destroy(claims->by_id);
    pthread_mutex_destroy(&claims->lock);
}

static Claim *get_locked(Claims *claims, const char *tag)
{
    TagId id;
    tag_id(tag, &id);
    Claim *claim = g_hash_table_lookup(claims->by_id, &id);
    if (claim)
        return claim;
    claim = g_new0(Claim, 1);
    claim->id = id;
    claim->tag = g_strdup(tag);
    g_hash_table_insert(claims->by_id, &claim->id, claim);
    return claim;
}

static void tidy_locked(Claims *claims, Claim *claim)
{
    if (!claim->uses && !claim->pinned)
        g_hash_table_remove(claims->by_id, &claim->id);
}

void claims_use(Claims *claims, const char *tag, int by)
{
    pthread_mutex_lock(&claims->lock);
    Claim *claim = get_locked(claims, tag);
    claim->uses = by > 0 ? claim->uses + 1 : claim->uses - MIN(claim->uses, 1);
    tidy_locked(claims, claim);
    pthread_mutex_unlock(&claims->lock);
}

gboolean claims_pin(Claims *claims, const char *tag, gboolean on)
{
    pthread_mutex_lock(&claims->lock);
    Claim *claim = get_locked(claims, tag);
    gboolean changed = !claim->pinned != !on;
    claim->pinned = on;
    tidy_locked(claims, claim);
    pthread_mutex_unlock(&claims->lock);
    return changed;
}

static ClaimRank rank_of(const Claim *claim)
{
    return !claim ? CLAIM_NONE : claim->pinned ? CLAIM_PINNED : CLAIM_USED;
}

ClaimRank claims_rank(Claims *claims, const TagId *id)
{
    pthread_mutex_lock(&claims->lock);
    ClaimRank rank = rank_of(g_hash_table_lookup(claims->by_id, id));
    pthread_mutex_unlock(&claims->lock);
    return rank;
}

GArray *claims_list(Claims *claims, ClaimRank rank)
{
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(TagId));
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&claims->lock);
    g_hash_table_iter_init(&iter, claims->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (rank_of(value) == rank)
            g_array_append_val(ids, ((Claim *)value)->id);
    pthread_mutex_unlock(&claims->lock);
    return ids;
}

static gint compare_texts(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

GPtrArray *claims_pinned(Claims *claims)
{
    GPtrArray *tags = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&claims->lock);
    g_hash_table_iter_init(&iter, claims->by_id);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        if (((Claim *)value)->pinned)
            g_ptr_array_add(tags, g_strdup(((Claim *)value)->tag));
    pthread_mutex_unlock(&claims->lock);
    g_ptr_array_sort(tags, compare_texts);
    return tags;
}

/* ---- the file */

static gboolean take_pins(Claims *claims, const uint8_t *data, size_t size)
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
            claims_pin(claims, tag, TRUE);
    return TRUE;
}

void claims_load(Claims *claims, int dir_fd)
{
    hearth_autofd int fd = openat(dir_fd, FORMAT_PINS_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno == ENOENT)
        return;
    g_autofree uint8_t *data = g_malloc(FORMAT_PINS_MAX + 1);
    ssize_t n = fd < 0 ? -1 : pread(fd, data, FORMAT_PINS_MAX + 1, 0);
    if (n < 0)
        g_warning("cache: file " FORMAT_PINS_NAME " cannot be read: %s; nothing is pinned",
                  g_strerror(errno));
    else if (n > FORMAT_PINS_MAX || !take_pins(claims, data, (size_t)n))
        g_warning("cache: file " FORMAT_PINS_NAME
                  " is damaged or of another version; nothing is pinned");
}

int claims_save(Claims *claims, int dir_fd)
{
    g_autoptr(GPtrArray) tags = claims_pinned(claims);
    g_autoptr(GByteArray) texts = g_byte_array_new();
    FormatPins header = {.version = htole32(FORMAT_PINS_VERSION)};
    memcpy(header.magic, FORMAT_PINS_MAGIC, sizeof(header.magic));
    for (guint i = 0; i < tags->len; i++)
        g_byte_array_append(texts, tags->pdata[i], (guint)strlen(tags->pdata[i]) + 1);
    if (texts->len + sizeof(header) > FORMAT_PINS_MAX)
        return -E2BIG;
    header.bytes = htole32(texts->len);
    header.checksum = htole64(XXH3_64bits(texts->data, texts->len));
    g_byte_array_prepend(texts, (const guint8 *)&header, sizeof(header));
    return replace_file(dir_fd, FORMAT_PINS_NAME, FORMAT_PINS_NEW_NAME, texts->data, texts->len);
}
