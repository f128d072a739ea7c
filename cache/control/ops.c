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
#include "cache/fuse/inode_budget.h"
#include "cache/origin/rbd/io_flusher.h"
#include "cache/report/status.h"
#include "cache/store/disk/key.h"
#include "proto/wire_keys.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE_VOLUMES 64
/* Longest time that a request may block; a client asks again to wait longer. */
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

/* Adds all members of an object, which it takes over, to the reply. */
static void add_members(Call *call, json_t *members)
{
    json_auto_t *owned = members;
    json_object_update(call->reply, owned);
}

static gboolean op_hello(Call *call, GError **error)
{
    (void)error;
    add_members(call, json_pack("{s:s, s:i, s:s, s:i}", WIRE_KEY_VERSION, HEARTH_VERSION,
                                WIRE_KEY_PID, (int)getpid(), WIRE_KEY_CACHE_DIR,
                                call->control->cache_dir ? call->control->cache_dir : "",
                                WIRE_KEY_PROTOCOL, 1));
    return TRUE;
}

static gboolean op_open(Call *call, GError **error)
{
    gboolean attached;
    g_autoptr(VolumeSpec) spec = spec_parse(call->request, error);
    if (!spec)
        return FALSE;
    if (!own_names_check(spec, error) || !spec_check_allowed(spec, call->control->dir_root, error))
        return FALSE;
    if (!volumes_open(call->control->volumes, g_steal_pointer(&spec), call->connection, &attached,
                      error))
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_ATTACHED, json_boolean(attached));
    return TRUE;
}

static gboolean op_attach(Call *call, GError **error)
{
    struct stat st;
    if (call->fd < 0 || fstat(call->fd, &st) < 0 || !S_ISCHR(st.st_mode))
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "attach: the message must carry the descriptor of a mounted /dev/fuse");
    const char *volume = string_field(call, WIRE_KEY_VOLUME),
               *layer = string_field(call, WIRE_KEY_LAYER);
    if (layer && strcmp(layer, WIRE_LAYER_FILL) != 0)
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "attach: field 'layer' is '%.32s'; \"fill\" is the only one", layer);
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
    gint64 wait_ms = (gint64)MIN(count_field(call, WIRE_KEY_WAIT_MS), MAX_WAIT_MS);
    if (!volumes_manifest(call->control->volumes, string_field(call, WIRE_KEY_VOLUME), wait_ms,
                          &dataset, &r, error))
        return FALSE;
    g_autofree char *path = dataset_path(dataset), *objects = dataset_objects(dataset);
    const char *state = r.ready ? WIRE_MANIFEST_READY : WIRE_MANIFEST_BUILDING;
    const char *ready_path = r.ready ? path : "";
    add_members(call, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b}", WIRE_KEY_STATE, state,
                                WIRE_KEY_DATASET, r.id, WIRE_KEY_PATH, ready_path, WIRE_KEY_OBJECTS,
                                objects, WIRE_KEY_FILES, (json_int_t)r.files, WIRE_KEY_DIRECTORIES,
                                (json_int_t)r.directories, WIRE_KEY_BYTES, (json_int_t)r.bytes,
                                WIRE_KEY_READABLE, r.readable));
    dataset_unref(dataset);
    return TRUE;
}

static gboolean op_detach(Call *call, GError **error)
{
    return volumes_detach(call->control->volumes, string_field(call, WIRE_KEY_VOLUME), error);
}

static gboolean op_fetch(Call *call, GError **error)
{
    json_t *spec = volumes_fetch(call->control->volumes, string_field(call, WIRE_KEY_VOLUME),
                                 &call->reply_fd, error);
    if (!spec)
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_SPEC, spec);
    return TRUE;
}

static gboolean op_resize(Call *call, GError **error)
{
    uint64_t bytes;
    if (!volumes_resize(call->control->volumes, string_field(call, WIRE_KEY_VOLUME), &bytes, error))
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_BYTES, json_integer((json_int_t)bytes));
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
        .live_inodes = inode_budget_held(),
        .live_inodes_most = inode_budget_most(),
        .cephfs_connections = origin_cephfs_connections(),
        .uses = ops_uses(c, &stats),
    };
    add_members(call, report_status(&status));
    json_object_set_new(call->reply, WIRE_KEY_UNCACHED, volumes_uncached(c->volumes));
    return TRUE;
}

static gboolean op_volumes(Call *call, GError **error)
{
    (void)error;
    /* One more than fits a page, to know whether there are more. */
    g_autoptr(GPtrArray) list =
        volumes_list(call->control->volumes, string_field(call, WIRE_KEY_AFTER), PAGE_VOLUMES + 1);
    json_t *page = json_array();
    size_t bytes = 0;
    guint i = 0;
    for (; i < list->len && i < PAGE_VOLUMES; i++) {
        json_auto_t *volume = report_volume(list->pdata[i]);
        size_t size = json_dumpb(volume, NULL, 0, JSON_COMPACT);
        if (i > 0 && bytes + size > PAGE_BYTES)
            break;
        bytes += size + 1;
        json_array_append(page, volume);
    }
    json_object_set_new(call->reply, WIRE_KEY_VOLUMES, page);
    json_object_set_new(call->reply, WIRE_KEY_MORE, json_boolean(i < list->len));
    return TRUE;
}

static gboolean op_datasets(Call *call, GError **error)
{
    gboolean more;
    (void)error;
    json_t *page =
        datasets_list(call->control->datasets, string_field(call, WIRE_KEY_AFTER), &more);
    json_object_set_new(call->reply, WIRE_KEY_DATASETS, page);
    json_object_set_new(call->reply, WIRE_KEY_MORE, json_boolean(more));
    return TRUE;
}

static gboolean op_refused(Call *call, GError **error)
{
    (void)error;
    json_object_set_new(call->reply, WIRE_KEY_VOLUMES, volumes_refused(call->control->volumes));
    return TRUE;
}

static gboolean op_volume(Call *call, GError **error)
{
    const char *id = string_field(call, WIRE_KEY_VOLUME);
    g_autoptr(VolumeReport) volume = volumes_report(call->control->volumes, id);
    if (!volume)
        return wire_fail(error, WIRE_ERROR_NOT_FOUND, "volume %s is not open on this node", id);
    json_object_set_new(call->reply, WIRE_KEY_VOLUME, report_volume(volume));
    return TRUE;
}

static gboolean op_warm(Call *call, GError **error)
{
    uint64_t id;
    Jobs *jobs = call->control->jobs;
    const char *path = string_field(call, WIRE_KEY_PATH);
    const JobOptions options = {.bytes_per_sec = count_field(call, WIRE_KEY_RATE),
                                .list_fd = call->fd,
                                .check =
                                    json_is_true(json_object_get(call->request, WIRE_KEY_CHECK))};
    if (!jobs_warm(jobs, string_field(call, WIRE_KEY_VOLUME), path ? path : "", &options, &id,
                   error))
        return FALSE;
    if (json_is_true(json_object_get(call->request, WIRE_KEY_WAIT)))
        jobs_wait(jobs, id);
    json_object_set_new(call->reply, WIRE_KEY_JOB, json_integer((json_int_t)id));
    return TRUE;
}

static gboolean op_job(Call *call, GError **error)
{
    json_t *report = jobs_report(call->control->jobs, count_field(call, WIRE_KEY_JOB), error);
    if (!report)
        return FALSE;
    add_members(call, report);
    return TRUE;
}

static gboolean op_jobs(Call *call, GError **error)
{
    gboolean more;
    (void)error;
    json_t *page =
        jobs_list(call->control->jobs, count_field(call, WIRE_KEY_AFTER), PAGE_BYTES, &more);
    json_object_set_new(call->reply, WIRE_KEY_JOBS, page);
    json_object_set_new(call->reply, WIRE_KEY_MORE, json_boolean(more));
    return TRUE;
}

static gboolean op_cancel(Call *call, GError **error)
{
    return jobs_cancel(call->control->jobs, count_field(call, WIRE_KEY_JOB), error);
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

static gboolean op_pin(Call *call, GError **error)
{
    Control *c = call->control;
    const json_t *on = json_object_get(call->request, WIRE_KEY_ON);
    g_autofree char *tag = known_tag(c, string_field(call, WIRE_KEY_VOLUME), error);
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

static uint64_t pinned_bytes(Store *store)
{
    uint64_t bytes = 0;
    g_autoptr(GArray) pins = list_pins(store);
    for (guint i = 0; i < pins->len; i++)
        bytes += g_array_index(pins, ReportPin, i).bytes;
    return bytes;
}

static json_t *json_bytes(uint64_t bytes)
{
    return json_integer((json_int_t)MIN(bytes, (uint64_t)G_MAXINT64));
}

static gboolean op_evict(Call *call, GError **error)
{
    Control *c = call->control;
    const char *id = string_field(call, WIRE_KEY_VOLUME);
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
    uint64_t wanted = bounded ? count_field(call, WIRE_KEY_BYTES) : UINT64_MAX;
    uint64_t freed = evict_objects(c->store, tag, wanted, pinned_too);
    g_autofree char *image = id ? volumes_image_name(c->volumes, id) : NULL;
    if (image || !id)
        freed += image_cache_evict(c->images, image, wanted - MIN(wanted, freed));
    uint64_t kept = id || pinned_too ? 0 : pinned_bytes(c->store);
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
    add_members(call, json_pack("{s:I, s:I, s:I, s:o, s:s, s:b}", WIRE_KEY_OBJECTS,
                                (json_int_t)run->objects, WIRE_KEY_BYTES, (json_int_t)run->bytes,
                                WIRE_KEY_UNCHECKED, (json_int_t)run->unchecked, WIRE_KEY_BAD,
                                list_bad(run), WIRE_KEY_AFTER, after, WIRE_KEY_MORE, !run->end));
    return TRUE;
}

static gboolean op_verify(Call *call, GError **error)
{
    Control *c = call->control;
    const char *id = string_field(call, WIRE_KEY_VOLUME),
               *after = string_field(call, WIRE_KEY_AFTER);
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

static const WireField no_fields[] = {{NULL, 0, FALSE}};
static const WireField volume_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
                                          {NULL, 0, FALSE}};
static const WireField attach_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
                                          {WIRE_KEY_LAYER, WIRE_FIELD_STRING, FALSE},
                                          {NULL, 0, FALSE}};
static const WireField manifest_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
                                            {WIRE_KEY_WAIT_MS, WIRE_FIELD_COUNT, FALSE},
                                            {NULL, 0, FALSE}};
static const WireField page_fields[] = {{WIRE_KEY_AFTER, WIRE_FIELD_STRING, FALSE},
                                        {NULL, 0, FALSE}};
static const WireField job_fields[] = {{WIRE_KEY_JOB, WIRE_FIELD_COUNT, TRUE}, {NULL, 0, FALSE}};
static const WireField jobs_fields[] = {{WIRE_KEY_AFTER, WIRE_FIELD_COUNT, FALSE},
                                        {NULL, 0, FALSE}};
static const WireField warm_fields[] = {
    {WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},  {WIRE_KEY_PATH, WIRE_FIELD_STRING, FALSE},
    {WIRE_KEY_WAIT, WIRE_FIELD_BOOLEAN, FALSE},  {WIRE_KEY_RATE, WIRE_FIELD_COUNT, FALSE},
    {WIRE_KEY_CHECK, WIRE_FIELD_BOOLEAN, FALSE}, {NULL, 0, FALSE}};
static const WireField evict_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, FALSE},
                                         {WIRE_KEY_BYTES, WIRE_FIELD_COUNT, FALSE},
                                         {WIRE_KEY_PINNED, WIRE_FIELD_BOOLEAN, FALSE},
                                         {NULL, 0, FALSE}};
static const WireField verify_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, FALSE},
                                          {WIRE_KEY_AFTER, WIRE_FIELD_STRING, FALSE},
                                          {NULL, 0, FALSE}};
static const WireField pin_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
                                       {WIRE_KEY_ON, WIRE_FIELD_BOOLEAN, FALSE},
                                       {NULL, 0, FALSE}};

static const Op ops[] = {
    {WIRE_OP_HELLO, op_hello, no_fields, FALSE},
    {WIRE_OP_OPEN, op_open, NULL, FALSE},
    {WIRE_OP_ATTACH, op_attach, attach_fields, TRUE},
    {WIRE_OP_DETACH, op_detach, volume_fields, FALSE},
    {WIRE_OP_FETCH, op_fetch, volume_fields, FALSE},
    {WIRE_OP_STATUS, op_status, no_fields, FALSE},
    {WIRE_OP_VOLUMES, op_volumes, page_fields, FALSE},
    {WIRE_OP_VOLUME, op_volume, volume_fields, FALSE},
    {WIRE_OP_REFUSED, op_refused, no_fields, FALSE},
    {WIRE_OP_WARM, op_warm, warm_fields, TRUE},
    {WIRE_OP_JOB, op_job, job_fields, FALSE},
    {WIRE_OP_JOBS, op_jobs, jobs_fields, FALSE},
    {WIRE_OP_CANCEL, op_cancel, job_fields, FALSE},
    {WIRE_OP_EVICT, op_evict, evict_fields, FALSE},
    {WIRE_OP_RESIZE, op_resize, volume_fields, FALSE},
    {WIRE_OP_MANIFEST, op_manifest, manifest_fields, FALSE},
    {WIRE_OP_PIN, op_pin, pin_fields, FALSE},
    {WIRE_OP_VERIFY, op_verify, verify_fields, FALSE},
    {WIRE_OP_DATASETS, op_datasets, page_fields, FALSE},
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
    json_auto_t *fields = json_copy((json_t *)request);
    json_object_del(fields, WIRE_KEY_OP);
    return wire_fields_check(op->name, fields, op->fields, error);
}

static gboolean handle_request(Call *call, GError **error)
{
    const char *name = string_field(call, WIRE_KEY_OP);
    if (!name)
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "field 'op' is missing or no string");
    const Op *op = find_op(name);
    if (!op)
        return wire_fail(error, WIRE_ERROR_UNIMPLEMENTED,
                         "op '%.32s' is not known to hearthd " HEARTH_VERSION, name);
    if (call->fd >= 0 && !op->wants_fd)
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT, "%s: takes no file descriptor", name);
    return check_fields(op, call->request, error) && op->handler(call, error);
}

json_t *ops_dispatch(Control *control, uint64_t connection, const json_t *request, int fd,
                     int *reply_fd)
{
    json_auto_t *reply = json_object();
    Call call = {.control = control,
                 .connection = connection,
                 .request = request,
                 .fd = fd,
                 .reply_fd = -1,
                 .reply = reply};
    g_autoptr(GError) error = NULL;
    json_object_set_new(reply, WIRE_KEY_OK, json_true());
    gboolean fine = handle_request(&call, &error);
    hearth_close_fd(&call.fd);
    *reply_fd = call.reply_fd;
    return fine ? g_steal_pointer(&reply) : wire_error_reply(error);
}
