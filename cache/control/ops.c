/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An operation is a row: its name, its fields, its handler. Handlers add to the reply or set an
 * error; dispatch does the rest, so that no handler can forget to refuse a field or to close a
 * descriptor.
 */
#include "cache/control/ops.h"
#include "cache/control/ops_cache.h"
#include "cache/control/ops_log.h"
#include "cache/control/resolve.h"
#include "cache/report/datasets.h"
#include "proto/wire_fields.h"
#include "cache/volume/own_names.h"
#include "proto/wire.h"
#include "cache/fuse/inode_budget.h"
#include "cache/origin/rbd/io_flusher.h"
#include "cache/report/status.h"
#include "proto/wire_keys.h"
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE_VOLUMES 64
/* Longest time that a request may block; a client asks again to wait longer. */
#define MAX_WAIT_MS 600000u
#define PAGE_BYTES (WIRE_MAX_MESSAGE - 1024)

typedef gboolean (*Handler)(Call *call, GError **error);

typedef struct Op {
    const char *name;
    Handler handler;
    const WireField *fields; /* NULL: the handler checks them */
    gboolean wants_fd;
} Op;

static gboolean op_hello(Call *call, GError **error)
{
    (void)error;
    call_add(call, json_pack("{s:s, s:i, s:s, s:i}", WIRE_KEY_VERSION, HEARTH_VERSION, WIRE_KEY_PID,
                             (int)getpid(), WIRE_KEY_CACHE_DIR,
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
    if (!volumes_open(call->control->volumes, g_steal_pointer(&spec), call->peer->connection,
                      &attached, error))
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_ATTACHED, json_boolean(attached));
    return TRUE;
}

static void add_resume(Call *call, const char *volume)
{
    g_autofree char *note = volumes_mount_note(call->control->volumes, volume);
    if (note)
        json_object_set_new(call->reply, WIRE_KEY_RESUME, json_string(note));
}

static gboolean op_attach(Call *call, GError **error)
{
    struct stat st;
    if (call->fd < 0 || fstat(call->fd, &st) < 0 || !S_ISCHR(st.st_mode))
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "attach: the message must carry the descriptor of a mounted /dev/fuse");
    const char *volume = call_string(call, WIRE_KEY_VOLUME),
               *layer = call_string(call, WIRE_KEY_LAYER);
    if (layer && strcmp(layer, WIRE_LAYER_FILL) != 0)
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "attach: field 'layer' is '%.32s'; \"fill\" is the only one", layer);
    const VolumeMount mount = {.fuse_fd = hearth_steal_fd(&call->fd),
                               .fill_layer = layer != NULL,
                               .restored =
                                   json_is_true(json_object_get(call->request, WIRE_KEY_RESTORED)),
                               .note = call_string(call, WIRE_KEY_RESUME)};
    if (!volumes_attach(call->control->volumes, volume, &mount, error))
        return FALSE;
    add_resume(call, volume);
    uint64_t job;
    g_autoptr(GError) cause = NULL;
    const JobOptions options = {.bytes_per_sec = call->control->warm_rate,
                                .list_fd = -1,
                                .pid = call->peer->pid,
                                .uid = call->peer->uid};
    if (volumes_wants_warm(call->control->volumes, volume) &&
        !jobs_warm(call->control->jobs, volume, "", &options, &job, &cause))
        g_warning("volume %s: it is not warmed: %s", volume, cause->message);
    return TRUE;
}

static gboolean op_state(Call *call, GError **error)
{
    call->reply_fd =
        volumes_mount_state(call->control->volumes, call_string(call, WIRE_KEY_VOLUME), error);
    return call->reply_fd >= 0;
}

static gboolean op_restore(Call *call, GError **error)
{
    if (call->fd < 0)
        return wire_fail(error, WIRE_ERROR_INVALID_ARGUMENT,
                         "restore: the message must carry what \"state\" has given");
    return volumes_restore(call->control->volumes, call_string(call, WIRE_KEY_VOLUME),
                           hearth_steal_fd(&call->fd), error);
}

static gboolean op_manifest(Call *call, GError **error)
{
    Dataset *dataset;
    DatasetReport r;
    gint64 wait_ms = (gint64)MIN(call_count(call, WIRE_KEY_WAIT_MS), MAX_WAIT_MS);
    if (!volumes_manifest(call->control->volumes, call_string(call, WIRE_KEY_VOLUME), wait_ms,
                          &dataset, &r, error))
        return FALSE;
    g_autofree char *path = dataset_path(dataset), *objects = dataset_objects(dataset);
    const char *state = r.ready ? WIRE_MANIFEST_READY : WIRE_MANIFEST_BUILDING;
    const char *ready_path = r.ready ? path : "";
    call_add(call, json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:b}", WIRE_KEY_STATE, state,
                             WIRE_KEY_DATASET, r.id, WIRE_KEY_PATH, ready_path, WIRE_KEY_OBJECTS,
                             objects, WIRE_KEY_FILES, (json_int_t)r.files, WIRE_KEY_DIRECTORIES,
                             (json_int_t)r.directories, WIRE_KEY_BYTES, (json_int_t)r.bytes,
                             WIRE_KEY_READABLE, r.readable));
    dataset_unref(dataset);
    return TRUE;
}

static gboolean op_detach(Call *call, GError **error)
{
    return volumes_detach(call->control->volumes, call_string(call, WIRE_KEY_VOLUME), error);
}

static gboolean op_fetch(Call *call, GError **error)
{
    json_t *spec = volumes_fetch(call->control->volumes, call_string(call, WIRE_KEY_VOLUME),
                                 &call->reply_fd, error);
    if (!spec)
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_SPEC, spec);
    add_resume(call, call_string(call, WIRE_KEY_VOLUME));
    return TRUE;
}

static gboolean op_resize(Call *call, GError **error)
{
    uint64_t bytes;
    if (!volumes_resize(call->control->volumes, call_string(call, WIRE_KEY_VOLUME), &bytes, error))
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_BYTES, json_integer((json_int_t)bytes));
    return TRUE;
}

static gboolean op_status(Call *call, GError **error)
{
    (void)error;
    Control *c = call->control;
    StoreStats stats = {0};
    if (c->store)
        store_stats(c->store, &stats);
    g_autoptr(GArray) pins = ops_pins(c);
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
    call_add(call, report_status(&status));
    json_object_set_new(call->reply, WIRE_KEY_UNCACHED, volumes_uncached(c->volumes));
    return TRUE;
}

static gboolean op_volumes(Call *call, GError **error)
{
    (void)error;
    /* One more than fits a page, to know whether there are more. */
    g_autoptr(GPtrArray) list =
        volumes_list(call->control->volumes, call_string(call, WIRE_KEY_AFTER), PAGE_VOLUMES + 1);
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
    json_t *page = datasets_list(call->control->datasets, call_string(call, WIRE_KEY_AFTER), &more);
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
    const char *id = call_string(call, WIRE_KEY_VOLUME);
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
    const char *path = call_string(call, WIRE_KEY_PATH);
    const JobOptions options = {.bytes_per_sec = call_count(call, WIRE_KEY_RATE),
                                .list_fd = call->fd,
                                .check =
                                    json_is_true(json_object_get(call->request, WIRE_KEY_CHECK)),
                                .pid = call->peer->pid,
                                .uid = call->peer->uid};
    if (!jobs_warm(jobs, call_string(call, WIRE_KEY_VOLUME), path ? path : "", &options, &id,
                   error))
        return FALSE;
    if (json_is_true(json_object_get(call->request, WIRE_KEY_WAIT)))
        jobs_wait(jobs, id);
    json_object_set_new(call->reply, WIRE_KEY_JOB, json_integer((json_int_t)id));
    return TRUE;
}

static gboolean op_job(Call *call, GError **error)
{
    json_t *report = jobs_report(call->control->jobs, call_count(call, WIRE_KEY_JOB), error);
    if (!report)
        return FALSE;
    call_add(call, report);
    return TRUE;
}

static gboolean op_jobs(Call *call, GError **error)
{
    gboolean more;
    (void)error;
    json_t *page =
        jobs_list(call->control->jobs, call_count(call, WIRE_KEY_AFTER), PAGE_BYTES, &more);
    json_object_set_new(call->reply, WIRE_KEY_JOBS, page);
    json_object_set_new(call->reply, WIRE_KEY_MORE, json_boolean(more));
    return TRUE;
}

static gboolean op_cancel(Call *call, GError **error)
{
    return jobs_cancel(call->control->jobs, call_count(call, WIRE_KEY_JOB), error);
}

static gboolean op_resolve(Call *call, GError **error)
{
    g_autofree char *id = resolve_volume(call->control, call_string(call, WIRE_KEY_VOLUME), error);
    if (!id)
        return FALSE;
    json_object_set_new(call->reply, WIRE_KEY_VOLUME, json_string(id));
    return TRUE;
}

static const WireField no_fields[] = {{NULL, 0, FALSE}};
static const WireField volume_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
                                          {NULL, 0, FALSE}};
static const WireField attach_fields[] = {{WIRE_KEY_VOLUME, WIRE_FIELD_STRING, TRUE},
                                          {WIRE_KEY_LAYER, WIRE_FIELD_STRING, FALSE},
                                          {WIRE_KEY_RESUME, WIRE_FIELD_STRING, FALSE},
                                          {WIRE_KEY_RESTORED, WIRE_FIELD_BOOLEAN, FALSE},
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
    {WIRE_OP_STATE, op_state, volume_fields, FALSE},
    {WIRE_OP_RESTORE, op_restore, volume_fields, TRUE},
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
    {WIRE_OP_EVICT, ops_evict, evict_fields, FALSE},
    {WIRE_OP_RESIZE, op_resize, volume_fields, FALSE},
    {WIRE_OP_MANIFEST, op_manifest, manifest_fields, FALSE},
    {WIRE_OP_PIN, ops_pin, pin_fields, FALSE},
    {WIRE_OP_VERIFY, ops_verify, verify_fields, FALSE},
    {WIRE_OP_DATASETS, op_datasets, page_fields, FALSE},
    {WIRE_OP_RESOLVE, op_resolve, volume_fields, FALSE},
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
    const char *name = call_string(call, WIRE_KEY_OP);
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

json_t *ops_dispatch(Control *control, const ConnectionPeer *peer, const json_t *request, int fd,
                     int *reply_fd)
{
    json_auto_t *reply = json_object();
    Call call = {.control = control,
                 .peer = peer,
                 .request = request,
                 .fd = fd,
                 .reply_fd = -1,
                 .reply = reply};
    g_autoptr(GError) error = NULL;
    json_object_set_new(reply, WIRE_KEY_OK, json_true());
    g_auto(OpsLog) log = {0};
    ops_log_begin(&log, &call);
    gboolean fine = handle_request(&call, &error);
    ops_log_end(&log, &call, error);
    hearth_close_fd(&call.fd);
    *reply_fd = call.reply_fd;
    return fine ? g_steal_pointer(&reply) : wire_error_reply(error);
}
