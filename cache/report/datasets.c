/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The datasets are those with a note of where they were seen (cache/volume/last_seen.h). Totals
 * come from the footer of the manifest. The objects of a dataset in use were counted file by file.
 * For another dataset the objects with its tag are counted, without objects that it shares with a
 * dataset of a higher rank.
 */
#include "cache/report/datasets.h"
#include <fcntl.h>
#include <string.h>
#include "common/autofd.h"
#include "common/dataset_key.h"
#include "common/field.h"
#include "common/volume_name.h"
#include "cache/volume/last_seen.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

#define PAGE_DATASETS 64
/* A message has room for so much. */
#define PAGE_BYTES (96u << 10)

static gboolean resting_report(Datasets *all, const char *id, DatasetReport *r)
{
    g_autofree char *dir = datasets_manifests_dir(all);
    g_autofree char *path = g_build_filename(dir, id, NULL);
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    g_autoptr(Manifest) manifest = fd >= 0 ? manifest_open(fd, FALSE, NULL) : NULL;
    if (!manifest)
        return FALSE;
    *r = (DatasetReport){.files = manifest->footer.files, .bytes = manifest->footer.bytes};
    store_tag_usage(datasets_store(all), id, &r->cached_bytes, &r->cached_files);
    return TRUE;
}

static VolumeNames names_of(const char *id, const json_t *places)
{
    const json_t *place = json_array_get(places, 0);
    return (VolumeNames){.id = id,
                         .claim = "",
                         .pv = "",
                         .cluster_id = field_text(place, WIRE_KEY_CLUSTER_ID),
                         .fs_name = field_text(place, WIRE_KEY_FS_NAME),
                         .root_path = field_text(place, WIRE_KEY_ROOT_PATH)};
}

/* Each is the caller's. */
static char *name_of(const char *id, const json_t *places)
{
    const VolumeNames names = names_of(id, places);
    return volume_name(&names);
}

static char *label_of(const json_t *places)
{
    const VolumeNames names = names_of("", places);
    return dataset_key(names.cluster_id, names.fs_name, names.root_path);
}

char *datasets_name(Datasets *all, const char *volume)
{
    if (!all || !g_str_has_prefix(volume, WIRE_DATASET_PREFIX))
        return NULL;
    const char *id = volume + strlen(WIRE_DATASET_PREFIX);
    g_autofree char *dir = datasets_manifests_dir(all);
    json_auto_t *known = last_seen_list(dir);
    const json_t *places = json_object_get(known, id);
    return places ? name_of(id, places) : NULL;
}

/* NULL: its manifest is not on this node, so its size is not known. */
static json_t *describe_dataset(Datasets *all, const char *id, json_t *places)
{
    DatasetReport r;
    if (!datasets_report(all, id, &r) && !resting_report(all, id, &r))
        return NULL;
    g_autofree char *name = name_of(id, places), *label = label_of(places);
    return json_pack("{s:s, s:s, s:s, s:O, s:I, s:I, s:I, s:I, s:b}", WIRE_KEY_DATASET, id,
                     WIRE_KEY_NAME, name, WIRE_KEY_LABEL, label ? label : "", WIRE_KEY_PLACES,
                     places, WIRE_KEY_FILES_TOTAL, (json_int_t)r.files, WIRE_KEY_BYTES_TOTAL,
                     (json_int_t)r.bytes, WIRE_KEY_FILES_CACHED,
                     (json_int_t)MIN(r.cached_files, r.files), WIRE_KEY_BYTES_CACHED,
                     (json_int_t)MIN(r.cached_bytes, r.bytes), WIRE_KEY_PINNED,
                     (int)store_is_pinned(datasets_store(all), id));
}

static gint by_name(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

json_t *datasets_list(Datasets *all, const char *after, gboolean *more)
{
    json_t *page = json_array();
    size_t bytes = 0;
    *more = FALSE;
    if (!all)
        return page;
    g_autofree char *dir = datasets_manifests_dir(all);
    json_auto_t *known = last_seen_list(dir);
    g_autoptr(GPtrArray) ids = g_ptr_array_new();
    const char *id;
    json_t *places;
    json_object_foreach (known, id, places)
        if (!after || strcmp(id, after) > 0)
            g_ptr_array_add(ids, (gpointer)id);
    g_ptr_array_sort(ids, by_name);
    for (guint i = 0; i < ids->len && !*more; i++) {
        json_auto_t *one =
            describe_dataset(all, ids->pdata[i], json_object_get(known, ids->pdata[i]));
        if (!one)
            continue;
        bytes += json_dumpb(one, NULL, 0, JSON_COMPACT) + 1;
        *more =
            json_array_size(page) == PAGE_DATASETS || (bytes > PAGE_BYTES && json_array_size(page));
        if (!*more)
            json_array_append(page, one);
    }
    return page;
}
