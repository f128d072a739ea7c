/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation is a row: its name, its fields, its handler. Handlers add to the reply or set an
 * error; dispatch does the rest, so that no handler can forget to refuse a field or to close a
 * descriptor.
 */
#include "cache/control/ops.h"
#include "cache/report/datasets.h"
#include "proto/wire_fields.h"
#include "cache/volume/own_names.h"
#include "proto/wire.h"
#include "cache/origin/rbd/io_flusher.h"
#include "cache/report/status.h"
#include "cache/store/disk/key.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE_VOLUMES 64
/* Of one request; who waits longer asks again. */
#define MAX_WAIT_MS 600000u
#define PAGE_BYTES (WIRE_MAX_MESSAGE - 1024)

typedef struct Call {
    Control *control;
    uint64_t connection;
    const json_t *request;
    int fd;       /* a handler that keeps it steals it */
    int reply_fd; /* likewise to send */
    json_t *reply;
} Call;

typedef gboolean (*Handler)(Call *call, GError **error);

typedef struct Op {
    const char *name;
    Handler handler;
    const WireField *fields; /* NULL: the handler checks them */
    gboolean wants_fd;
} Op;

static const char *string_field(const Call *call, const char *name)
{
    return json_string_value(json_object_get(call->request, name));
}

static uint64_t count_field(const Call *call, const char *name)
{
    return (uint64_t)json_integer_value(json_object_get(call->request, name));
}

static gboolean op_hello(Call *call, GError **error)
{
    (void)error;
    json_t *hello = json_pack(
        "{s:s, s:i, s:s, s:i}", "version", HEARTH_VERSION, "pid", (int)getpid(), "cacheDir",
        call->control->cache_dir ? call->control->cache_dir : "", "protocol", 1);
    json_object_update(call->reply, hello);
    json_decref(hello);
    return TRUE;
}

static gboolean op_open(Call *call, GError **error)
{
    gboolean attached;
    g_autoptr(VolumeSpec) spec = spec_parse(call->request, error);
    if (!spec || !own_names_check(spec, error) ||
        !spec_check_allowed(spec, call->control->dir_root, error) ||
        !volumes_open(call->control->volumes, g_steal_pointer(&spec), call->connection, &attached,
                      error))
        return FALSE;
    json_object_set_new(call->reply, "attached", json_boolean(attached));
    return TRUE;
}

static gboolean op_attach(Call *call, GError **error)
{
    struct stat st;
    if (call->fd < 0 || fstat(call->fd, &st) < 0 || !S_ISCHR(st.st_mode)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT,
                    "attach: the message must carry the descriptor of a mounted /dev/fuse");
        return FALSE;
    }
    const char *volume = string_field(call, "volume"), *layer = string_field(call, "layer");
    if (layer && strcmp(layer, "fill") != 0) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT,
                    "attach: field 'layer' is '%.32s'; \"fill\" is the only one", layer);
        return FALSE;
    }
    if (!volumes_attach(call->control->volumes, volume, layer != NULL, hearth_steal_fd(&call->fd),
                        error))
        return FALSE;
    uint64_t job;
    g_autoptr(GError) cause = NULL;
    const JobOptions options = {.bytes_per_sec = call->control->warm_rate, .list_fd = -1};
    if (volumes_wants_warm(call->control->volumes, volume) &&
        !jobs_warm(call->control->jobs, volume, "", &options, &job, &cause))
        g_warning("volume %s: it is not warmed: %s", volume, cause->message);
    return TRUE;
}

static gboolean op_manifest(Call *call, GError **error)
{
    Dataset *dataset;
    DatasetReport r;
    gint64 wait_ms = (gint64)MIN(count_field(call, "waitMs"), MAX_WAIT_MS);
    if (!volumes_manifest(call->control->volumes, string_field(call, "volume"), wait_ms, &dataset,
                          &r, error))
        return FALSE;
    g_autofree char *path = dataset_path(dataset), *objects = dataset_objects(dataset);
    json_t *told =
        json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b}", "state",
                  r.ready ? "ready" : "building", "dataset", r.id, "path", r.ready ? path : "",
                  "objects", objects, "files", (json_int_t)r.files, "directories",
                  (json_int_t)r.directories, "bytes", (json_int_t)r.bytes, "readable", r.readable);
    json_object_update(call->reply, told);
    json_decref(told);
    dataset_unref(dataset);
    return TRUE;
}

static gboolean op_detach(Call *call, GError **error)
{
    return volumes_detach(call->control->volumes, string_field(call, "volume"), error);
}

static gboolean op_fetch(Call *call, GError **error)
{
    json_t *spec =
        volumes_fetch(call->control->volumes, string_field(call, "volume"), &call->reply_fd, error);
    if (!spec)
        return FALSE;
    json_object_set_new(call->reply, "spec", spec);
    return TRUE;
}

static gboolean op_resize(Call *call, GError **error)
{
    uint64_t bytes;
    if (!volumes_resize(call->control->volumes, string_field(call, "volume"), &bytes, error))
        return FALSE;
    json_object_set_new(call->reply, "bytes", json_integer((json_int_t)bytes));
    return TRUE;
}

static void clear_pin(gpointer pin)
{
    g_free(((ReportPin *)pin)->volume);
}

static GArray *list_pins(Store *store)
{
    GArray *pins = g_array_new(FALSE, TRUE, sizeof(ReportPin));
    g_array_set_clear_func(pins, clear_pin);
    g_autoptr(GPtrArray) tags = store ? store_pins(store) : g_ptr_array_new();
    for (guint i = 0; i < tags->len; i++) {
        ReportPin pin = {.volume = volumes_of_tag(tags->pdata[i])};
        store_tag_usage(store, tags->pdata[i], &pin.bytes, &pin.objects);
        g_array_append_val(pins, pin);
    }
    return pins;
}

static gboolean op_status(Call *call, GError **error)
{
    (void)error;
    Control *c = call->control;
    StoreStats stats = {0};
    if (c->store)
        store_stats(c->store, &stats);
    g_autoptr(GArray) pins = list_pins(c->store);
    const ReportStatus status = {
        .uptime_sec = (g_get_monotonic_time() - c->started_us) / G_TIME_SPAN_SECOND,
        .cache_dir = c->cache_dir,
        .store = c->store ? &stats : NULL,
        .pins = pins,
        .volumes = volumes_count(c->volumes),
        .io_flusher = io_flusher_allowed(),
    };
    json_t *report = report_status(&status);
    json_object_update(call->reply, report);
    json_object_set_new(call->reply, "uncached", volumes_uncached(c->volumes));
    json_decref(report);
    return TRUE;
}

static gboolean op_volumes(Call *call, GError **error)
{
    (void)error;
    /* One more than a page holds tells whether there are more. */
    g_autoptr(GPtrArray) list =
        volumes_list(call->control->volumes, string_field(call, "after"), PAGE_VOLUMES + 1);
    json_t *page = json_array();
    size_t bytes = 0;
    guint i = 0;
    for (; i < list->len && i < PAGE_VOLUMES; i++) {
        json_t *volume = report_volume(list->pdata[i]);
        size_t size = json_dumpb(volume, NULL, 0, JSON_COMPACT);
        if (i > 0 && bytes + size > PAGE_BYTES) {
            json_decref(volume);
            break;
        }
        bytes += size + 1;
        json_array_append_new(page, volume);
    }
    json_object_set_new(call->reply, "volumes", page);
    json_object_set_new(call->reply, "more", json_boolean(i < list->len));
    return TRUE;
}

static gboolean op_datasets(Call *call, GError **error)
{
    gboolean more;
    (void)error;
    json_t *page = datasets_list(call->control->datasets, string_field(call, "after"), &more);
    json_object_set_new(call->reply, "datasets", page);
    json_object_set_new(call->reply, "more", json_boolean(more));
    return TRUE;
}

static gboolean op_refused(Call *call, GError **error)
{
    (void)error;
    json_object_set_new(call->reply, "volumes", volumes_refused(call->control->volumes));
    return TRUE;
}

static gboolean op_volume(Call *call, GError **error)
{
    const char *id = string_field(call, "volume");
    g_autoptr(VolumeReport) volume = volumes_report(call->control->volumes, id);
    if (!volume) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_NOT_FOUND, "volume %s is not open on this node",
                    id);
        return FALSE;
    }
    json_object_set_new(call->reply, "volume", report_volume(volume));
    return TRUE;
}

static gboolean op_warm(Call *call, GError **error)
{
    uint64_t id;
    Jobs *jobs = call->control->jobs;
    const char *path = string_field(call, "path");
    const JobOptions options = {.bytes_per_sec = count_field(call, "rate"), .list_fd = call->fd};
    if (!jobs_warm(jobs, string_field(call, "volume"), path ? path : "", &options, &id, error))
        return FALSE;
    if (json_is_true(json_object_get(call->request, "wait")))
        jobs_wait(jobs, id);
    json_object_set_new(call->reply, "job", json_integer((json_int_t)id));
    return TRUE;
}

static gboolean op_job(Call *call, GError **error)
{
    json_t *report = jobs_report(call->control->jobs, count_field(call, "job"), error);
    if (!report)
        return FALSE;
    json_object_update(call->reply, report);
    json_decref(report);
    return TRUE;
}

static gboolean op_cancel(Call *call, GError **error)
{
    return jobs_cancel(call->control->jobs, count_field(call, "job"), error);
}

static gboolean has_store(const Control *c, GError **error)
{
    if (!c->store)
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION,
                    "hearthd runs without a cache; see its log and --cache-dir");
    return c->store != NULL;
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
    g_set_error(error, WIRE_ERROR, WIRE_ERROR_NOT_FOUND,
                "volume %s is not open on this node and nothing of it is cached", id);
    return NULL;
}

static gboolean op_pin(Call *call, GError **error)
{
    Control *c = call->control;
    const json_t *on = json_object_get(call->request, "on");
    g_autofree char *tag = known_tag(c, string_field(call, "volume"), error);
    int rc = tag ? store_pin(c->store, tag, !on || json_is_true(on)) : 0;
    if (rc < 0)
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INTERNAL,
                    "the pin cannot be noted down in %s: %s", c->cache_dir,
                    rc == -E2BIG ? "too many volumes are pinned" : g_strerror(-rc));
    return tag && rc == 0;
}

static uint64_t evict_all(Store *store, uint64_t wanted, gboolean pinned_too)
{
    return pinned_too ? store_evict_pinned_too(store, wanted) : store_evict(store, NULL, wanted);
}

static gboolean op_evict(Call *call, GError **error)
{
    Control *c = call->control;
    const char *id = string_field(call, "volume");
    gboolean pinned_too = json_is_true(json_object_get(call->request, "pinned"));
    uint64_t kept = 0;
    g_autofree char *tag = id ? known_tag(c, id, error) : NULL;
    if (id ? !tag : !has_store(c, error))
        return FALSE;
    if (tag && !pinned_too && store_is_pinned(c->store, tag)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_FAILED_PRECONDITION,
                    "volume %s is pinned; 'hearthctl evict --pinned' drops it all the same, "
                    "'hearthctl pin --off' ends that",
                    id);
        return FALSE;
    }
    uint64_t wanted =
        json_object_get(call->request, "bytes") ? count_field(call, "bytes") : UINT64_MAX;
    uint64_t freed = !wanted ? 0
                     : tag   ? store_evict(c->store, tag, wanted)
                             : evict_all(c->store, wanted, pinned_too);
    g_autofree char *image = id ? volumes_image_name(c->volumes, id) : NULL;
    if (image || !id)
        freed += image_cache_evict(c->images, image, wanted - MIN(wanted, freed));
    g_autoptr(GArray) pins = list_pins(c->store);
    for (guint i = 0; !tag && !pinned_too && i < pins->len; i++)
        kept += g_array_index(pins, ReportPin, i).bytes;
    json_object_set_new(call->reply, "freedBytes",
                        json_integer((json_int_t)MIN(freed, (uint64_t)G_MAXINT64)));
    json_object_set_new(call->reply, "pinnedBytes",
                        json_integer((json_int_t)MIN(kept, (uint64_t)G_MAXINT64)));
    return TRUE;
}

/* ---- verifying */

/* Of one call: so that it is answered within a few seconds. */
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
        json_array_append_new(list, json_pack("{s:s, s:s}", "object", hex, "path", text));
    }
    return list;
}

static gboolean verify_some(Call *call, const char *tag, StoreVerify *run, GError **error)
{
    char after[OBJECT_ID_HEX + 1];
    int rc = store_verify_some(call->control->store, tag, run, VERIFY_BYTES);
    if (rc < 0) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_UNAVAILABLE,
                    "the cache's index cannot be read: %s; try again", g_strerror(-rc));
        return FALSE;
    }
    object_id_hex(&run->after, after);
    json_t *told =
        json_pack("{s:I, s:I, s:I, s:o, s:s, s:b}", "objects", (json_int_t)run->objects, "bytes",
                  (json_int_t)run->bytes, "unchecked", (json_int_t)run->unchecked, "bad",
                  list_bad(run), "after", after, "more", !run->end);
    json_object_update(call->reply, told);
    json_decref(told);
    return TRUE;
}

static gboolean op_verify(Call *call, GError **error)
{
    Control *c = call->control;
    const char *id = string_field(call, "volume"), *after = string_field(call, "after");
    StoreVerify run = {.started = after && after[0], .wanted = NULL};
    if (run.started && !object_id_parse(after, &run.after)) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT,
                    "verify: field 'after' is not what an earlier reply gave");
        return FALSE;
    }
    g_autofree char *tag = id ? known_tag(c, id, error) : NULL;
    if (id ? !tag : !has_store(c, error))
        return FALSE;
    /* Of a dataset, all it has, whoever fetched it. */
    Volume *volume = id ? volumes_use(c->volumes, id, NULL) : NULL;
    const Manifest *manifest = volume ? volumes_ready_manifest(c->volumes, volume) : NULL;
    run.wanted = manifest ? is_of_manifest : NULL;
    run.data = (void *)manifest;
    gboolean done = verify_some(call, tag, &run, error);
    if (volume)
        volumes_done(c->volumes, volume);
    return done;
}

static const WireField no_fields[] = {{NULL, 0, FALSE}};
static const WireField volume_fields[] = {{"volume", WIRE_FIELD_STRING, TRUE}, {NULL, 0, FALSE}};
static const WireField attach_fields[] = {
    {"volume", WIRE_FIELD_STRING, TRUE}, {"layer", WIRE_FIELD_STRING, FALSE}, {NULL, 0, FALSE}};
static const WireField manifest_fields[] = {
    {"volume", WIRE_FIELD_STRING, TRUE}, {"waitMs", WIRE_FIELD_COUNT, FALSE}, {NULL, 0, FALSE}};
static const WireField page_fields[] = {{"after", WIRE_FIELD_STRING, FALSE}, {NULL, 0, FALSE}};
static const WireField job_fields[] = {{"job", WIRE_FIELD_COUNT, TRUE}, {NULL, 0, FALSE}};
static const WireField warm_fields[] = {{"volume", WIRE_FIELD_STRING, TRUE},
                                        {"path", WIRE_FIELD_STRING, FALSE},
                                        {"wait", WIRE_FIELD_BOOLEAN, FALSE},
                                        {"rate", WIRE_FIELD_COUNT, FALSE},
                                        {NULL, 0, FALSE}};
static const WireField evict_fields[] = {{"volume", WIRE_FIELD_STRING, FALSE},
                                         {"bytes", WIRE_FIELD_COUNT, FALSE},
                                         {"pinned", WIRE_FIELD_BOOLEAN, FALSE},
                                         {NULL, 0, FALSE}};
static const WireField verify_fields[] = {
    {"volume", WIRE_FIELD_STRING, FALSE}, {"after", WIRE_FIELD_STRING, FALSE}, {NULL, 0, FALSE}};
static const WireField pin_fields[] = {
    {"volume", WIRE_FIELD_STRING, TRUE}, {"on", WIRE_FIELD_BOOLEAN, FALSE}, {NULL, 0, FALSE}};

static const Op ops[] = {
    {"hello", op_hello, no_fields, FALSE},
    {"open", op_open, NULL, FALSE},
    {"attach", op_attach, attach_fields, TRUE},
    {"detach", op_detach, volume_fields, FALSE},
    {"fetch", op_fetch, volume_fields, FALSE},
    {"status", op_status, no_fields, FALSE},
    {"volumes", op_volumes, page_fields, FALSE},
    {"volume", op_volume, volume_fields, FALSE},
    {"refused", op_refused, no_fields, FALSE},
    {"warm", op_warm, warm_fields, TRUE},
    {"job", op_job, job_fields, FALSE},
    {"cancel", op_cancel, job_fields, FALSE},
    {"evict", op_evict, evict_fields, FALSE},
    {"resize", op_resize, volume_fields, FALSE},
    {"manifest", op_manifest, manifest_fields, FALSE},
    {"pin", op_pin, pin_fields, FALSE},
    {"verify", op_verify, verify_fields, FALSE},
    {"datasets", op_datasets, page_fields, FALSE},
};

static const Op *find_op(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++)
        if (strcmp(ops[i].name, name) == 0)
            return &ops[i];
    return NULL;
}

static gboolean check_fields(const Op *op, const json_t *request, GError **error)
{
    if (!op->fields)
        return TRUE;
    json_t *fields = json_copy((json_t *)request);
    json_object_del(fields, "op");
    gboolean fine = wire_fields_check(op->name, fields, op->fields, error);
    json_decref(fields);
    return fine;
}

static gboolean run(Call *call, GError **error)
{
    const char *name = string_field(call, "op");
    if (!name) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT,
                    "field 'op' is missing or no string");
        return FALSE;
    }
    const Op *op = find_op(name);
    if (!op) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_UNIMPLEMENTED,
                    "op '%.32s' is not known to hearthd " HEARTH_VERSION, name);
        return FALSE;
    }
    if (call->fd >= 0 && !op->wants_fd) {
        g_set_error(error, WIRE_ERROR, WIRE_ERROR_INVALID_ARGUMENT, "%s: takes no file descriptor",
                    name);
        return FALSE;
    }
    return check_fields(op, call->request, error) && op->handler(call, error);
}

json_t *ops_dispatch(Control *control, uint64_t connection, const json_t *request, int fd,
                     int *reply_fd)
{
    Call call = {.control = control,
                 .connection = connection,
                 .request = request,
                 .fd = fd,
                 .reply_fd = -1,
                 .reply = json_object()};
    g_autoptr(GError) error = NULL;
    json_object_set_new(call.reply, "ok", json_true());
    gboolean fine = run(&call, &error);
    hearth_close_fd(&call.fd);
    *reply_fd = call.reply_fd;
    if (fine)
        return call.reply;
    json_decref(call.reply);
    return wire_error_reply(error);
}
