/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/block/head.h"
#include <stddef.h>
#include <string.h>
#include <xxhash.h>

static uint64_t checksum_of(const FormatHead *data)
{
    return GUINT64_TO_LE(XXH3_64bits(data, offsetof(FormatHead, checksum)));
}

static gboolean ends(const char *text, size_t size)
{
    return memchr(text, '\0', size) != NULL;
}

gboolean head_decode(const void *data, size_t size, const char *name, FormatHead *h)
{
    if (size != sizeof(*h))
        return FALSE;
    memcpy(h, data, sizeof(*h));
    if (h->checksum != checksum_of(h) ||
        memcmp(h->magic, FORMAT_HEAD_MAGIC, sizeof(h->magic)) != 0 ||
        GUINT32_FROM_LE(h->version) != FORMAT_HEAD_VERSION ||
        !ends(h->boot_id, sizeof(h->boot_id)) || !ends(h->nonce, sizeof(h->nonce)) ||
        !ends(h->client, sizeof(h->client)) || !ends(h->name, sizeof(h->name)) ||
        strcmp(h->name, name) != 0)
        return FALSE;
    h->version = GUINT32_FROM_LE(h->version);
    h->state = GUINT32_FROM_LE(h->state);
    h->image_version = GUINT64_FROM_LE(h->image_version);
    h->bytes = GUINT64_FROM_LE(h->bytes);
    return TRUE;
}

void head_encode(const FormatHead *head, const char *name, FormatHead *data)
{
    *data = *head;
    memcpy(data->magic, FORMAT_HEAD_MAGIC, sizeof(data->magic));
    data->version = GUINT32_TO_LE(FORMAT_HEAD_VERSION);
    data->state = GUINT32_TO_LE(head->state);
    data->image_version = GUINT64_TO_LE(head->image_version);
    data->bytes = GUINT64_TO_LE(head->bytes);
    memset(data->name, 0, sizeof(data->name));
    memcpy(data->name, name, strlen(name));
    data->checksum = checksum_of(data);
}
