/* SPDX-License-Identifier: Apache-2.0 */
/* The operations on what is cached. A volume need not be open: what it left is found by its tag. */
#include "cache/control/ops_cache.h"
#include <errno.h>
#include "cache/report/datasets.h"
#include "cache/report/status.h"
#include "cache/store/disk/key.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

static void clear_pin(gpointer pin)
{
    g_free(((ReportPin *)pin)->volume);
    g_free(((ReportPin *)pin)->name);
}

/* The caller's. */
static char *name_of(Control *c, const char *id)
{
    g_autoptr(VolumeReport) open = volumes_report(c->volumes, id);
    char *name = open ? g_strdup(open->name) : datasets_name(c->datasets, id);
    return name ? name : g_strdup(id);
}

GArray *ops_pins(Control *c)
{
    GArray *pins = g_array_new(FALSE, TRUE, sizeof(ReportPin));
    g_array_set_clear_func(pins, clear_pin);
    g_autoptr(GPtrArray) tags = c->store ? store_pins(c->store) : g_ptr_array_new();
    for (guint i = 0; i < tags->len; i++) {
        ReportPin pin = {.volume = volumes_of_tag(tags->pdata[i])};
        pin.name = name_of(c, pin.volume);
        store_tag_usage(c->store, tags->pdata[i], &pin.bytes, &pin.objects);
        g_array_append_val(pins, pin);
    }
    return pins;
}

static gboolean has_store(const Control *c, GError **error)
{
    return c->store || wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                                 "hearthd runs without a cache; see its log and --cache-dir");
}

/* The tag of a volume that is open, or has left something in the cache; the caller's. */
static char *known_tag(Control *c, const char *id, GError **error)
{
    if (!has_store(c, error))
        return NULL;
    uint64_t bytes = 0, objects = 0;
    g_autofree char *tag = volumes_tag(c->volumes, id);
    g_autoptr(VolumeReport) open = volumes_report(c->volumes, id);
    store_tag_usage(c->store, tag, &bytes, &objects);
    if (open || objects || store_is_pinned(c->store, tag))
        return g_steal_pointer(&tag);
    wire_fail(error, WIRE_ERROR_NOT_FOUND,
              "volume %s is not open on this node and nothing of it is cached", id);
    return NULL;
}

gboolean ops_pin(Call *call, GError **error)
{
    Control *c = call->control;
    const json_t *on = json_object_get(call->request, WIRE_KEY_ON);
    g_autofree char *tag = known_tag(c, call_string(call, WIRE_KEY_VOLUME), error);
    if (!tag)
        return FALSE;
    int rc = store_pin(c->store, tag, !on || json_is_true(on));
    if (rc < 0)
        return wire_fail(error, WIRE_ERROR_INTERNAL, "the pin cannot be noted down in %s: %s",
                         c->cache_dir,
                         rc == -E2BIG ? "too many volumes are pinned" : g_strerror(-rc));
    return TRUE;
}

/* Evicts objects of a volume, or with tag NULL of all; bytes freed. What is there in part goes
 * first. */
static uint64_t evict_objects(Store *store, const char *tag, uint64_t wanted, gboolean pinned_too)
{
    if (wanted == 0)
        return 0;
    const uint64_t parts = store_evict_parts(store, tag, wanted);
    const uint64_t rest = wanted - MIN(wanted, parts);
    if (rest == 0)
        return parts;
    if (!tag && pinned_too)
        return parts + store_evict_pinned_too(store, rest);
    return parts + store_evict(store, tag, rest);
}

static uint64_t pinned_bytes(Control *c)
{
    uint64_t bytes = 0;
    g_autoptr(GArray) pins = ops_pins(c);
    for (guint i = 0; i < pins->len; i++)
        bytes += g_array_index(pins, ReportPin, i).bytes;
    return bytes;
}

static json_t *json_bytes(uint64_t bytes)
{
    return json_integer((json_int_t)MIN(bytes, (uint64_t)G_MAXINT64));
}

gboolean ops_evict(Call *call, GError **error)
{
    Control *c = call->control;
    const char *id = call_string(call, WIRE_KEY_VOLUME);
    gboolean pinned_too = json_is_true(json_object_get(call->request, WIRE_KEY_PINNED));
    if (!has_store(c, error))
        return FALSE;
    g_autofree char *tag = id ? known_tag(c, id, error) : NULL;
    if (id && !tag)
        return FALSE;
    if (tag && !pinned_too && store_is_pinned(c->store, tag))
        return wire_fail(error, WIRE_ERROR_FAILED_PRECONDITION,
                         "volume %s is pinned; 'hearthctl evict --pinned' drops it all the same, "
                         "'hearthctl pin --off' ends that",
                         id);
    gboolean bounded = json_object_get(call->request, WIRE_KEY_BYTES) != NULL;
    uint64_t wanted = bounded ? call_count(call, WIRE_KEY_BYTES) : UINT64_MAX;
    uint64_t freed = evict_objects(c->store, tag, wanted, pinned_too);
    g_autofree char *image = id ? volumes_image_name(c->volumes, id) : NULL;
    if (image || !id)
        freed += image_cache_evict(c->images, image, wanted - MIN(wanted, freed));
    uint64_t kept = id || pinned_too ? 0 : pinned_bytes(c);
    json_object_set_new(call->reply, WIRE_KEY_FREED_BYTES, json_bytes(freed));
    json_object_set_new(call->reply, WIRE_KEY_PINNED_BYTES, json_bytes(kept));
    return TRUE;
}

/* ---- verifying */

/* Bytes verified by one call, so that it is answered within a few seconds. */
#define VERIFY_BYTES (256u << 20)

static gboolean is_of_manifest(void *manifest, const ObjectId *id)
{
    uint64_t index;
    return manifest_find(manifest, id, &index) == 0;
}

static json_t *list_bad(const StoreVerify *run)
{
    const Manifest *manifest = run->data;
    json_t *list = json_array();
    for (unsigned i = 0; i < run->bad; i++) {
        char hex[OBJECT_ID_HEX + 1];
        uint64_t index;
        object_id_hex(&run->bad_ids[i], hex);
        gboolean named = manifest && manifest_find(manifest, &run->bad_ids[i], &index) == 0;
        g_autofree char *path = named ? manifest_path(manifest, index) : NULL;
        g_autofree char *text = g_utf8_make_valid(path ? path : "", -1);
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", WIRE_KEY_OBJECT, hex, WIRE_KEY_PATH, text));
    }
    return list;
}

static gboolean verify_some(Call *call, const char *tag, StoreVerify *run, GError **error)
{
    char after[OBJECT_ID_HEX + 1];
    int rc = store_verify_some(call->control->store, tag, run, VERIFY_BYTES);
    if (rc < 0)
        return wire_fail(error, WIRE_ERROR_UNAVAILABLE,
                         "the cache's index cannot be read: %s; try again", g_strerror(-rc));
    object_id_hex(&run->after, after);
    call_add(call, json_pack("{s:I, s:I, s:I, s:o, s:s, s:b}", WIRE_KEY_OBJECTS,
                             (json_int_t)run->objects, WIRE_KEY_BYTES, (json_int_t)run->bytes,
                             WIRE_KEY_UNCHECKED, (json_int_t)run->unchecked, WIRE_KEY_BAD,
                             list_bad(run), WIRE_KEY_AFTER, after, WIRE_KEY_MORE, !run->end));
    return TRUE;
}

gboolean ops_verify(Call *call, GError **error)
{
    Control *c = call->control;
    const char *id = call_string(call, WIRE_KEY_VOLUME), *after = call_string(call, WIRE_KEY_AFTER);
    StoreVerify run = {.started = after && after[0], .wanted = NULL};
    if (run.started && !object_id_parse(after, &run.after))
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "verify: field 'after' is not what an earlier reply gave");
    if (!has_store(c, error))
        return FALSE;
    g_autofree char *tag = id ? known_tag(c, id, error) : NULL;
    if (id && !tag)
        return FALSE;
    /* All objects of a dataset, whichever volume had them fetched. */
    Volume *volume = id ? volumes_use(c->volumes, id, NULL) : NULL;
    const Manifest *manifest = volume ? volumes_ready_manifest(c->volumes, volume) : NULL;
    run.wanted = manifest ? is_of_manifest : NULL;
    run.data = (void *)manifest;
    gboolean done = verify_some(call, tag, &run, error);
    if (volume)
        volumes_done(c->volumes, volume);
    return done;
}
