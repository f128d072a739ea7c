/* SPDX-License-Identifier: Apache-2.0 */
/* Finding by path, for every origin alike. */
#include <errno.h>
#include <string.h>
#include "cache/origin/origin.h"

int origin_find(Origin *o, const char *path, OriginNode **node, OriginAttr *attr)
{
    OriginNode *at;
    int r = o->ops->root(o, &at, attr);
    while (r == 0 && *path) {
        char name[256];
        size_t length = strcspn(path, "/");
        OriginNode *parent = at;
        if (length >= sizeof(name)) {
            r = -ENAMETOOLONG;
        } else {
            memcpy(name, path, length);
            name[length] = '\0';
            r = o->ops->lookup(o, parent, name, &at, attr);
        }
        o->ops->put(o, parent);
        path += length + (path[length] == '/');
    }
    if (r == 0)
        *node = at;
    return r;
}
