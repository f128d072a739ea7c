/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An overlay reads the files in objects/ without hearthd. If an object was truncated, by hand or
 * when its file system was repaired, the overlay would return too few bytes. So the size of each
 * object of a dataset is checked each time the dataset comes into use. The scrub checks the
 * content.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"
#include "cache/dataset/internal.h"
#include "cache/store/disk/key.h"

static gboolean is_misfit(int objects, const ObjectId *id, uint64_t size)
{
    char hex[DATASET_ID], path[DATASET_ID + 3];
    struct stat st;
    object_id_hex(id, hex);
    g_snprintf(path, sizeof(path), "%.2s/%s", hex, hex);
    return fstatat(objects, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != size);
}

void datasets_drop_misfits(Dataset *d)
{
    Datasets *all = d->all;
    const Manifest *m = d->manifest;
    uint64_t dropped = 0;
    hearth_autofd int objects = open(all->objects, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (uint64_t i = 0; objects >= 0 && i < m->footer.records; i++) {
        ObjectKey key;
        ObjectId id;
        if (i % 4096 == 0 && !datasets_is_wanted(d))
            break;
        if (!manifest_key(m, i, &key))
            continue;
        object_key_id(&key, &id);
        if (!is_misfit(objects, &id, key.size))
            continue;
        /* Opening it with the expected size drops it. */
        int fd = store_open_object(all->store, &id, key.size);
        hearth_close_fd(&fd);
        dropped++;
    }
    if (dropped)
        g_warning("dataset %s: %" G_GUINT64_FORMAT
                  " objects had a wrong size; they are dropped and "
                  "fetched again",
                  d->id, dropped);
}
