/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/hearthd.h"
#include <gio/gio.h>
#include <string.h>
#include "common/autofd.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"
#include "common/field.h"
#include "driver/node/hearthd/spec.h"

#define PROTOCOL 1
/* For an answer, beyond the time that is asked to be waited. */
#define ANSWER_MS 5000

struct HearthdLink {
    int fd;
    char *path;
};

static const int codes[] = {
    [WIRE_ERROR_INTERNAL] = HEARTH_ERROR_INTERNAL,
    [WIRE_ERROR_INVALID_ARGUMENT] = HEARTH_ERROR_INVALID_ARGUMENT,
    [WIRE_ERROR_NOT_FOUND] = HEARTH_ERROR_NOT_FOUND,
    [WIRE_ERROR_ALREADY_EXISTS] = HEARTH_ERROR_ALREADY_EXISTS,
    [WIRE_ERROR_FAILED_PRECONDITION] = HEARTH_ERROR_FAILED_PRECONDITION,
    [WIRE_ERROR_UNAVAILABLE] = HEARTH_ERROR_UNAVAILABLE,
    [WIRE_ERROR_PERMISSION_DENIED] = HEARTH_ERROR_PERMISSION_DENIED,
    [WIRE_ERROR_DEADLINE_EXCEEDED] = HEARTH_ERROR_DEADLINE_EXCEEDED,
    [WIRE_ERROR_ABORTED] = HEARTH_ERROR_ABORTED,
    [WIRE_ERROR_UNIMPLEMENTED] = HEARTH_ERROR_UNIMPLEMENTED,
};

static void set_error(const char *path, const char *what, const GError *cause, GError **error)
{
    if (cause->domain == WIRE_ERROR) {
        gboolean known = cause->code >= 0 && (size_t)cause->code < G_N_ELEMENTS(codes);
        hearth_fail(error, known ? codes[cause->code] : HEARTH_ERROR_INTERNAL, "hearthd: %s",
                    cause->message);
    } else if (g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_TIMED_OUT)) {
        hearth_fail(error, HEARTH_ERROR_DEADLINE_EXCEEDED,
                    "hearthd at %s did not answer \"%s\" in time", path, what);
    } else {
        hearth_fail(error, HEARTH_ERROR_UNAVAILABLE,
                    "hearthd at %s: %s (%s); is the hearthd pod of this node running?", path, what,
                    cause->message);
    }
}

HearthdLink *hearthd_connect(const char *socket_path, gboolean *absent, GError **error)
{
    g_autoptr(GError) cause = NULL;
    int fd = wire_connect(socket_path, &cause);
    if (absent)
        *absent = g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_NOT_FOUND) ||
                  g_error_matches(cause, G_IO_ERROR, G_IO_ERROR_CONNECTION_REFUSED);
    if (fd < 0) {
        set_error(socket_path, "connect", cause, error);
        return NULL;
    }
    HearthdLink *link = g_new0(HearthdLink, 1);
    link->fd = fd;
    link->path = g_strdup(socket_path);
    return link;
}

void hearthd_close(HearthdLink *link)
{
    if (!link)
        return;
    close(link->fd);
    g_free(link->path);
    g_free(link);
}

int hearthd_link_fd(const HearthdLink *link)
{
    return link->fd;
}

static json_t *call(HearthdLink *link, const json_t *request, int send_fd, int *receive_fd,
                    gint64 timeout_ms, GError **error)
{
    g_autoptr(GError) cause = NULL;
    int timeout = (int)CLAMP(timeout_ms, 0, G_MAXINT);
    json_t *reply = wire_call(link->fd, request, send_fd, receive_fd, timeout, &cause);
    if (!reply)
        set_error(link->path, json_string_value(json_object_get(request, "op")), cause, error);
    return reply;
}

static json_t *call_volume(HearthdLink *link, const char *op, const char *volume, int send_fd,
                           int *receive_fd, gint64 timeout_ms, GError **error)
{
    json_auto_t *request = json_pack("{s:s, s:s}", WIRE_KEY_OP, op, WIRE_KEY_VOLUME, volume);
    if (!request) {
        hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, "the volume ID is not UTF-8");
        return NULL;
    }
    json_t *reply = call(link, request, send_fd, receive_fd, timeout_ms, error);
    return reply;
}

/*
 * Removes crushLocation from the request when hearthd is of a release that does not know it. Of the
 * members that configure Ceph clients only this one may be left out: without it reads are slower.
 * Without the others the clients would not be as the cluster file requires.
 */
static gboolean leave_out_unknown(json_t *request, const GError *cause)
{
    static const char field[] = WIRE_KEY_CRUSH_LOCATION;
    json_t *origin = json_object_get(request, WIRE_KEY_ORIGIN);
    if (!g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT) ||
        !strstr(cause->message, "unknown field 'crushLocation'") ||
        json_object_del(origin, field) != 0)
        return FALSE;
    g_message("volume %s: the hearthd of this node is older than readAffinity (%s), so it "
              "does not read the nearest copies: replace its pod when the node is drained",
              json_string_value(json_object_get(request, WIRE_KEY_VOLUME)), field);
    return TRUE;
}

gboolean hearthd_open(HearthdLink *link, const json_t *spec, gint64 timeout_ms, gboolean *attached,
                      GError **error)
{
    json_t *request = json_deep_copy(spec);
    json_object_set_new(request, WIRE_KEY_OP, json_string(WIRE_OP_OPEN));
    g_autoptr(GError) cause = NULL;
    json_auto_t *reply = call(link, request, -1, NULL, timeout_ms, &cause);
    if (!reply && leave_out_unknown(request, cause)) {
        g_clear_error(&cause);
        reply = call(link, request, -1, NULL, timeout_ms, &cause);
    }
    node_spec_free(request);
    if (!reply)
        g_propagate_error(error, g_steal_pointer(&cause));
    if (!reply)
        return FALSE;
    *attached = json_is_true(json_object_get(reply, WIRE_KEY_ATTACHED));
    return TRUE;
}

gboolean hearthd_attach(HearthdLink *link, const char *volume, const char *layer, int fuse_fd,
                        gint64 timeout_ms, GError **error)
{
    json_auto_t *request = json_pack("{s:s, s:s, s:s*}", WIRE_KEY_OP, WIRE_OP_ATTACH,
                                     WIRE_KEY_VOLUME, volume, WIRE_KEY_LAYER, layer);
    json_auto_t *reply = call(link, request, fuse_fd, NULL, timeout_ms, error);
    return reply != NULL;
}

static gboolean is_dataset(const char *text)
{
    return text && strlen(text) == HEARTHD_DATASET_DIGITS &&
           strspn(text, "0123456789abcdef") == HEARTHD_DATASET_DIGITS;
}

static char *string(const json_t *object, const char *name)
{
    return g_strdup(json_string_value(json_object_get(object, name)));
}

gboolean hearthd_use(HearthdLink *link, const char *volume, gint64 timeout_ms, HearthdUse *use,
                     GError **error)
{
    json_auto_t *reply = call_volume(link, WIRE_OP_VOLUME, volume, -1, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    const json_t *v = json_object_get(reply, WIRE_KEY_VOLUME);
    use->bytes = field_count(v, WIRE_KEY_BYTES_STORE) + field_count(v, WIRE_KEY_BYTES_FILL) +
                 field_count(v, WIRE_KEY_BYTES_ORIGIN);
    use->objects = field_count(v, WIRE_KEY_OBJECTS);
    return TRUE;
}

gboolean hearthd_manifest(HearthdLink *link, const char *volume, gint64 wait_ms, HearthdManifest *m,
                          GError **error)
{
    *m = (HearthdManifest){0};
    json_auto_t *request =
        json_pack("{s:s, s:s, s:I}", WIRE_KEY_OP, WIRE_OP_MANIFEST, WIRE_KEY_VOLUME, volume,
                  WIRE_KEY_WAIT_MS, (json_int_t)MAX(wait_ms, 0));
    json_auto_t *reply = call(link, request, -1, NULL, MAX(wait_ms, 0) + ANSWER_MS, error);
    if (!reply)
        return FALSE;
    m->ready = g_strcmp0(json_string_value(json_object_get(reply, WIRE_KEY_STATE)),
                         WIRE_MANIFEST_READY) == 0;
    m->dataset = string(reply, WIRE_KEY_DATASET);
    m->path = string(reply, WIRE_KEY_PATH);
    m->objects = string(reply, WIRE_KEY_OBJECTS);
    m->readable = json_is_true(json_object_get(reply, WIRE_KEY_READABLE));
    m->files = field_count(reply, WIRE_KEY_FILES);
    m->directories = field_count(reply, WIRE_KEY_DIRECTORIES);
    m->bytes = field_count(reply, WIRE_KEY_BYTES);
    if (!m->ready || (is_dataset(m->dataset) && m->path && m->objects))
        return TRUE;
    hearthd_manifest_clear(m);
    return hearth_fail(
        error, HEARTH_ERROR_INTERNAL,
        "hearthd's answer to \"manifest\" of volume %s lacks the dataset or its places", volume);
}

gboolean hearthd_detach(HearthdLink *link, const char *volume, gint64 timeout_ms, GError **error)
{
    json_auto_t *reply = call_volume(link, WIRE_OP_DETACH, volume, -1, NULL, timeout_ms, error);
    return reply != NULL;
}

gboolean hearthd_is_attached(HearthdLink *link, const char *volume, gint64 timeout_ms,
                             gboolean *attached, GError **error)
{
    g_autoptr(GError) cause = NULL;
    json_auto_t *reply = call_volume(link, WIRE_OP_VOLUME, volume, -1, NULL, timeout_ms, &cause);
    if (!reply && !g_error_matches(cause, HEARTH_ERROR, HEARTH_ERROR_NOT_FOUND)) {
        g_propagate_error(error, g_steal_pointer(&cause));
        return FALSE;
    }
    *attached =
        json_is_true(json_object_get(json_object_get(reply, WIRE_KEY_VOLUME), WIRE_KEY_ATTACHED));
    return TRUE;
}

json_t *hearthd_fetch(HearthdLink *link, const char *volume, gint64 timeout_ms, int *fuse_fd,
                      GError **error)
{
    hearth_autofd int fd = -1;
    json_t *reply = call_volume(link, WIRE_OP_FETCH, volume, -1, &fd, timeout_ms, error);
    if (!reply)
        return NULL;
    json_t *spec = json_object_get(reply, WIRE_KEY_SPEC);
    if (!json_is_object(spec) || fd < 0) {
        hearth_fail(error, HEARTH_ERROR_INTERNAL,
                    "hearthd answered \"fetch\" of volume %s without its spec or descriptor",
                    volume);
        node_spec_free(reply);
        return NULL;
    }
    json_t *copy = json_deep_copy(spec);
    node_spec_free(reply);
    *fuse_fd = hearth_steal_fd(&fd);
    return copy;
}

gboolean hearthd_resize(HearthdLink *link, const char *volume, gint64 timeout_ms, guint64 *bytes,
                        GError **error)
{
    json_auto_t *reply = call_volume(link, WIRE_OP_RESIZE, volume, -1, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    *bytes = (guint64)json_integer_value(json_object_get(reply, WIRE_KEY_BYTES));
    return TRUE;
}

gboolean hearthd_warm(HearthdLink *link, const char *volume, const char *path,
                      guint64 bytes_per_second, gint64 timeout_ms, guint64 *job, GError **error)
{
    json_auto_t *request =
        json_pack("{s:s, s:s, s:s, s:I}", WIRE_KEY_OP, WIRE_OP_WARM, WIRE_KEY_VOLUME, volume,
                  WIRE_KEY_PATH, path, WIRE_KEY_RATE, (json_int_t)bytes_per_second);
    json_auto_t *reply = call(link, request, -1, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    *job = field_count(reply, WIRE_KEY_JOB);
    return TRUE;
}

static json_t *call_job(HearthdLink *link, const char *op, guint64 job, gint64 timeout_ms,
                        GError **error)
{
    json_auto_t *request = json_pack("{s:s, s:I}", WIRE_KEY_OP, op, WIRE_KEY_JOB, (json_int_t)job);
    json_t *reply = call(link, request, -1, NULL, timeout_ms, error);
    return reply;
}

json_t *hearthd_job(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error)
{
    return call_job(link, WIRE_OP_JOB, job, timeout_ms, error);
}

gboolean hearthd_cancel(HearthdLink *link, guint64 job, gint64 timeout_ms, GError **error)
{
    json_auto_t *reply = call_job(link, WIRE_OP_CANCEL, job, timeout_ms, error);
    return reply != NULL;
}

json_t *hearthd_status(HearthdLink *link, gint64 timeout_ms, GError **error)
{
    json_auto_t *request = json_pack("{s:s}", WIRE_KEY_OP, WIRE_OP_STATUS);
    json_t *reply = call(link, request, -1, NULL, timeout_ms, error);
    return reply;
}

json_t *hearthd_refused(HearthdLink *link, gint64 timeout_ms)
{
    json_auto_t *request = json_pack("{s:s}", WIRE_KEY_OP, WIRE_OP_REFUSED);
    json_auto_t *reply = call(link, request, -1, NULL, timeout_ms, NULL);
    json_t *list = json_incref(json_object_get(reply, WIRE_KEY_VOLUMES));
    return list;
}

json_t *hearthd_datasets(HearthdLink *link, gint64 timeout_ms, GError **error)
{
    json_auto_t *all = json_array();
    g_autofree char *after = g_strdup("");
    for (gboolean more = TRUE; more;) {
        json_auto_t *request =
            json_pack("{s:s, s:s}", WIRE_KEY_OP, WIRE_OP_DATASETS, WIRE_KEY_AFTER, after);
        json_auto_t *page = call(link, request, -1, NULL, timeout_ms, error);
        if (!page)
            return NULL;
        const json_t *list = json_object_get(page, WIRE_KEY_DATASETS);
        const size_t n = json_array_size(list);
        more = n && json_is_true(json_object_get(page, WIRE_KEY_MORE));
        json_array_extend(all, (json_t *)list);
        g_free(after);
        after = string(n ? json_array_get(list, n - 1) : NULL, WIRE_KEY_DATASET);
        more = more && after;
    }
    return g_steal_pointer(&all);
}

gboolean hearthd_probe(const char *socket_path, gint64 timeout_ms, GError **error)
{
    g_autoptr(HearthdLink) link = hearthd_connect(socket_path, NULL, error);
    if (!link)
        return FALSE;
    json_auto_t *request = json_pack("{s:s}", WIRE_KEY_OP, WIRE_OP_HELLO);
    json_auto_t *reply = call(link, request, -1, NULL, timeout_ms, error);
    if (!reply)
        return FALSE;
    json_int_t protocol = json_integer_value(json_object_get(reply, WIRE_KEY_PROTOCOL));
    if (protocol != PROTOCOL)
        hearth_fail(error, HEARTH_ERROR_FAILED_PRECONDITION,
                    "hearthd at %s speaks protocol %lld, this node plugin %d: use the same "
                    "release of both",
                    socket_path, (long long)protocol, PROTOCOL);
    return protocol == PROTOCOL;
}
