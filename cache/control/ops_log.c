/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/control/ops_log.h"
#include <string.h>
#include "cache/report/datasets.h"
#include "common/field.h"
#include "common/size.h"
#include "proto/wire_keys.h"

/* What was done, the caller's; NULL: nothing that is worth a line. */
typedef char *(*Tell)(const OpsLog *log, const Call *call);

typedef struct OpsLogRow {
    const char *op;
    const char *doing; /* of a failure: "cannot DOING VOLUME" */
    Tell tell;
} OpsLogRow;

static char *tell_attach(const OpsLog *log, const Call *call)
{
    (void)call;
    return g_strdup_printf("volume %s is mounted", log->name);
}

/* Claims of datasets are opened and closed around a mount that hearthd does not serve. */
static char *tell_detach(const OpsLog *log, const Call *call)
{
    (void)call;
    return log->mounted ? g_strdup_printf("volume %s is unmounted", log->name) : NULL;
}

static char *tell_evict(const OpsLog *log, const Call *call)
{
    g_autofree char *size = size_format(field_count(call->reply, WIRE_KEY_FREED_BYTES));
    if (log->name)
        return g_strdup_printf("evicted %s of volume %s", size, log->name);
    return g_strdup_printf("evicted %s of all volumes", size);
}

static char *tell_pin(const OpsLog *log, const Call *call)
{
    const json_t *on = json_object_get(call->request, WIRE_KEY_ON);
    const gboolean pinned = !on || json_is_true(on);
    return g_strdup_printf("volume %s is %s", log->name, pinned ? "pinned" : "pinned no more");
}

/* A run is many calls: the last is told, and those that found something. */
static char *tell_verify(const OpsLog *log, const Call *call)
{
    const size_t bad = json_array_size(json_object_get(call->reply, WIRE_KEY_BAD));
    const char *name = log->name ? log->name : "all";
    if (bad)
        return g_strdup_printf("verifying volume %s: %zu bad objects dropped", name, bad);
    if (json_is_true(json_object_get(call->reply, WIRE_KEY_MORE)))
        return NULL;
    return g_strdup_printf("verified volume %s", name);
}

static char *tell_cancel(const OpsLog *log, const Call *call)
{
    (void)log;
    return g_strdup_printf("warm job %" G_GUINT64_FORMAT " is being cancelled",
                           call_count(call, WIRE_KEY_JOB));
}

static char *tell_nothing(const OpsLog *log, const Call *call)
{
    (void)log;
    (void)call;
    return NULL;
}

static const OpsLogRow rows[] = {
    {WIRE_OP_ATTACH, "mount", tell_attach},  {WIRE_OP_DETACH, "unmount", tell_detach},
    {WIRE_OP_EVICT, "evict", tell_evict},    {WIRE_OP_PIN, "pin", tell_pin},
    {WIRE_OP_VERIFY, "verify", tell_verify}, {WIRE_OP_CANCEL, "cancel a job of", tell_cancel},
    {WIRE_OP_WARM, "warm", tell_nothing},
};

static const OpsLogRow *find_row(const char *op)
{
    for (gsize i = 0; op && i < G_N_ELEMENTS(rows); i++)
        if (strcmp(rows[i].op, op) == 0)
            return &rows[i];
    return NULL;
}

void ops_log_begin(OpsLog *log, const Call *call)
{
    const char *id = call_string(call, WIRE_KEY_VOLUME);
    log->row = find_row(call_string(call, WIRE_KEY_OP));
    if (!log->row || !id)
        return;
    g_autoptr(VolumeReport) volume = volumes_report(call->control->volumes, id);
    log->mounted = volume && volume->mounted;
    log->name = volume ? g_strdup(volume->name) : datasets_name(call->control->datasets, id);
    if (!log->name)
        log->name = g_strdup(id);
}

void ops_log_end(const OpsLog *log, const Call *call, const GError *error)
{
    g_autofree char *text = NULL;
    if (!log->row)
        return;
    if (error)
        text = g_strdup_printf("cannot %s %s: %s", log->row->doing,
                               log->name ? log->name : "all volumes", error->message);
    else
        text = log->row->tell(log, call);
    if (!text)
        return;
    const char *id = call_string(call, WIRE_KEY_VOLUME);
    g_autofree char *pid = g_strdup_printf("%d", (int)call->peer->pid);
    g_autofree char *uid = g_strdup_printf("%u", (unsigned)call->peer->uid);
    g_log_structured(G_LOG_DOMAIN, error ? G_LOG_LEVEL_WARNING : G_LOG_LEVEL_INFO, "volume",
                     id ? id : "", "name", log->name ? log->name : "", "pid", pid, "uid", uid,
                     "MESSAGE", "%s, asked by pid %s, uid %s", text, pid, uid);
}

void ops_log_clear(OpsLog *log)
{
    g_clear_pointer(&log->name, g_free);
}
