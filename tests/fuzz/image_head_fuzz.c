/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz target: the head of an image's files. What decodes must encode to the very same bytes, and
 * its texts end.
 */
#include "tests/fuzz/fuzz.h"
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "cache/block/head.h"

static void check(const void *data, size_t size, const char *name)
{
    FormatHead head, again;
    if (!head_decode(data, size, name, &head))
        return;
    if (size != sizeof(head) || strlen(head.boot_id) >= sizeof(head.boot_id) ||
        strlen(head.nonce) >= sizeof(head.nonce))
        abort();
    head_encode(&head, name, &again);
    if (memcmp(data, &again, offsetof(FormatHead, name)) != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    FormatHead fixed;
    check(data, size, "name");
    if (size < offsetof(FormatHead, name))
        return 0;
    /* Past the checksum, so that the fields are reached. */
    memset(&fixed, 0, sizeof(fixed));
    memcpy(&fixed, data, MIN(size, sizeof(fixed)));
    memcpy(fixed.magic, FORMAT_HEAD_MAGIC, sizeof(fixed.magic));
    fixed.version = GUINT32_TO_LE(FORMAT_HEAD_VERSION);
    g_strlcpy(fixed.name, "name", sizeof(fixed.name));
    fixed.checksum = GUINT64_TO_LE(XXH3_64bits(&fixed, offsetof(FormatHead, checksum)));
    check(&fixed, sizeof(fixed), "name");
    return 0;
}
