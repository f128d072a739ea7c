/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All that names the content is compared: a version alone may come again when a client died with
 * changes that it had not sent. A write of this node that began since makes it useless, although
 * `written` has it: writes of two clients may end in the same version.
 */
#include "cache/fuse/kept.h"
#include <string.h>

Kept *kept_new(const Kept *kept)
{
    Kept *k = g_new(Kept, 1);
    *k = *kept;
    k->written = written_ref(kept->written);
    return k;
}

void kept_free(Kept *k)
{
    if (!k)
        return;
    written_unref(k->written);
    g_free(k);
}

static gboolean same_key(const ObjectKey *a, const ObjectKey *b)
{
    return memcmp(a->space, b->space, sizeof(a->space)) == 0 && a->ino == b->ino &&
           a->version == b->version && a->size == b->size && a->mtime_sec == b->mtime_sec &&
           a->mtime_nsec == b->mtime_nsec;
}

gboolean kept_is_good(const Kept *k, const Kept *now)
{
    return k && k->written == now->written && k->session == now->session &&
           k->writes == now->writes && same_key(&k->current, &now->current);
}
