/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every subcommand of hearthctl needs: errors, calls of hearthd, and which volume an argument
 * names. The connection is made at the first call and kept; the protocol is in
 * proto/wire.h.
 */
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/mounts.h"
#include "cmd/hearthctl/client/text.h"
#include "proto/wire.h"
#include <errno.h>
#include <gio/gio.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* hearthd answers at once; this is for a machine that is busy beyond measure. */
#define ANSWER_MS 10000

int ctl_fail(const Ctl *ctl, const GError *error)
{
    g_autofree char *typed = text_typed(error->message, ctl->as);
    g_autofree char *text = text_printable(typed);
    fprintf(stderr, "hearthctl: %s\n", text);
    return error->domain == G_OPTION_ERROR ? CTL_USAGE : CTL_FAILED;
}

void ctl_usage_error(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error)
        *error = g_error_new_valist(G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, format, args);
    va_end(args);
}

static gboolean connect_once(Ctl *ctl, GError **error)
{
    if (ctl->socket >= 0)
        return TRUE;
    g_autoptr(GError) why = NULL;
    ctl->socket = wire_connect(ctl->socket_path, &why);
    if (ctl->socket >= 0)
        return TRUE;
    const char *fix = "is hearthd running on this node? Another socket is named by --socket or "
                      "HEARTH_SOCKET";
    if (g_error_matches(why, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED))
        fix = "run hearthctl as root";
    else if (g_error_matches(why, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        fix = "hearthd hangs or is stopped; see its log";
    g_set_error(error, why->domain, why->code, "%s; %s", why->message, fix);
    return FALSE;
}

json_t *ctl_call(Ctl *ctl, json_t *request, GError **error)
{
    return ctl_call_with(ctl, request, -1, error);
}

static int timeout_of(const Ctl *ctl)
{
    return ctl->timeout_ms ? ctl->timeout_ms : ANSWER_MS;
}

/* What a failed call means to who called. */
static void explain(const Ctl *ctl, GError **error)
{
    struct ucred peer = {0};
    socklen_t size = sizeof(peer);
    if (ctl->socket < 0 || !error || !*error)
        return;
    if (g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_CLOSED))
        g_prefix_error(error, "hearthd has stopped or restarted: ");
    if (!g_error_matches(*error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        return;
    getsockopt(ctl->socket, SOL_SOCKET, SO_PEERCRED, &peer, &size);
    g_clear_error(error);
    g_set_error(error, G_IO_ERROR, G_IO_ERROR_TIMED_OUT,
                "hearthd does not answer: it hangs or is stopped (pid %d); see its log. Its mounts "
                "end when it is restarted",
                (int)peer.pid);
}

/* On a connection of its own. */
static gboolean answers(const Ctl *ctl)
{
    Ctl other = {.socket_path = ctl->socket_path, .socket = -1, .timeout_ms = ctl->timeout_ms};
    json_auto_t *hello = ctl_call(&other, json_pack("{s:s}", "op", "hello"), NULL);
    ctl_disconnect(&other);
    return hello != NULL;
}

/* `any_time`: it is waited for as long as hearthd answers something else. */
static json_t *call(Ctl *ctl, json_t *request, int fd, gboolean any_time, GError **error)
{
    json_auto_t *sent = request;
    g_autoptr(GError) why = NULL;
    json_t *reply = NULL;
    if (connect_once(ctl, &why) && wire_send(ctl->socket, sent, fd, &why)) {
        reply = wire_reply(ctl->socket, NULL, timeout_of(ctl), &why);
        while (any_time && g_error_matches(why, G_IO_ERROR, G_IO_ERROR_TIMED_OUT) && answers(ctl)) {
            g_clear_error(&why);
            reply = wire_reply(ctl->socket, NULL, timeout_of(ctl), &why);
        }
    }
    explain(ctl, &why);
    if (why)
        g_propagate_error(error, g_steal_pointer(&why));
    return reply;
}

json_t *ctl_call_with(Ctl *ctl, json_t *request, int fd, GError **error)
{
    return call(ctl, request, fd, FALSE, error);
}

json_t *ctl_call_long(Ctl *ctl, json_t *request, GError **error)
{
    return call(ctl, request, -1, TRUE, error);
}

void ctl_disconnect(Ctl *ctl)
{
    if (ctl->socket >= 0)
        close(ctl->socket);
    ctl->socket = -1;
}

json_t *ctl_pages(Ctl *ctl, const char *op, const char *id, GError **error)
{
    json_auto_t *all = json_array();
    g_autofree char *after = g_strdup("");
    for (gboolean more = TRUE; more;) {
        json_auto_t *page = ctl_call(ctl, json_pack("{s:s, s:s}", "op", op, "after", after), error);
        if (!page)
            return NULL;
        json_t *list = json_object_get(page, op);
        const size_t n = json_array_size(list);
        more = n && json_is_true(json_object_get(page, "more"));
        json_array_extend(all, list);
        g_free(after);
        after = g_strdup(n ? ctl_string(json_array_get(list, n - 1), id) : "");
    }
    return json_incref(all);
}

json_t *ctl_jobs(Ctl *ctl, GError **error)
{
    json_auto_t *all = json_array();
    uint64_t after = 0;
    for (gboolean more = TRUE; more;) {
        json_auto_t *page =
            ctl_call(ctl, json_pack("{s:s, s:I}", "op", "jobs", "after", (json_int_t)after), error);
        if (!page)
            return NULL;
        json_t *list = json_object_get(page, "jobs");
        const size_t n = json_array_size(list);
        more = n && json_is_true(json_object_get(page, "more"));
        json_array_extend(all, list);
        after = n ? ctl_number(json_array_get(list, n - 1), "job") : after;
    }
    return json_incref(all);
}

static gboolean is_path(const char *argument)
{
    return argument[0] == '/' || g_str_has_prefix(argument, "./") ||
           g_str_has_prefix(argument, "../") || strcmp(argument, ".") == 0 ||
           strcmp(argument, "..") == 0;
}

/* hearthd knows which volume a word means. That of an earlier release takes IDs alone. */
static char *resolve(Ctl *ctl, const char *word, GError **error)
{
    g_autoptr(GError) cause = NULL;
    json_t *request = json_pack("{s:s, s:s}", "op", "resolve", "volume", word);
    if (!request) {
        ctl_usage_error(error, "the volume must be UTF-8");
        return NULL;
    }
    json_auto_t *reply = ctl_call(ctl, request, &cause);
    const char *id = ctl_string(reply, "volume");
    if (reply)
        return g_strdup(*id ? id : word);
    if (g_error_matches(cause, WIRE_ERROR, WIRE_ERROR_UNIMPLEMENTED))
        return g_strdup(word);
    g_propagate_error(error, g_steal_pointer(&cause));
    return NULL;
}

/* To look at a path of a hearthd that hangs would hang as well. */
static gboolean hangs(Ctl *ctl, const char *mountinfo, const char *argument, GError **error)
{
    g_autofree char *path = g_canonicalize_filename(argument, NULL);
    g_autofree char *volume = NULL, *inside = NULL;
    g_autoptr(GError) why = NULL;
    if (!mounts_find_volume(mountinfo, path, &volume, &inside, NULL))
        return FALSE;
    json_auto_t *hello = ctl_call(ctl, json_pack("{s:s}", "op", "hello"), &why);
    if (hello || !g_error_matches(why, G_IO_ERROR, G_IO_ERROR_TIMED_OUT))
        return FALSE;
    g_propagate_error(error, g_steal_pointer(&why));
    return TRUE;
}

gboolean ctl_find_volume(Ctl *ctl, const char *argument, char **volume, char **inside,
                         GError **error)
{
    char path[PATH_MAX];
    g_autofree char *mountinfo = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &mountinfo, NULL, error))
        return FALSE;
    if (!is_path(argument)) {
        g_autofree char *served = mounts_served_volume(mountinfo, argument);
        *volume = resolve(ctl, served, error);
        *inside = g_strdup("");
        return *volume != NULL;
    }
    if (hangs(ctl, mountinfo, argument, error))
        return FALSE;
    if (!realpath(argument, path)) {
        g_set_error(error, G_IO_ERROR, g_io_error_from_errno(errno), "%s: %s", argument,
                    g_strerror(errno));
        return FALSE;
    }
    if (mounts_find_volume(mountinfo, path, volume, inside, error))
        return TRUE;
    g_prefix_error(error, "cannot find the volume: ");
    return FALSE;
}

/* The name of the one whose member `id` is that; NULL: none. The caller's. */
static char *title_in(const json_t *list, const char *id, const char *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (strcmp(ctl_string(one, id), value) == 0 && ctl_string(one, "name")[0])
            return g_strdup(ctl_string(one, "name"));
    }
    return NULL;
}

char *ctl_title(Ctl *ctl, const char *volume)
{
    char dataset[WIRE_DATASET_DIGITS + 1];
    json_auto_t *volumes = ctl_pages(ctl, "volumes", "volume", NULL);
    char *title = title_in(volumes, "volume", volume);
    if (!title && wire_dataset_of(volume, dataset)) {
        json_auto_t *datasets = ctl_pages(ctl, "datasets", "dataset", NULL);
        title = title_in(datasets, "dataset", dataset);
    }
    return title ? title : g_strdup(volume);
}

json_t *ctl_whole_volume(Ctl *ctl, const char *op, const char *argument, GError **error)
{
    g_autofree char *volume = NULL, *inside = NULL;
    if (!ctl_find_volume(ctl, argument, &volume, &inside, error))
        return NULL;
    if (inside[0]) {
        g_autofree char *title = ctl_title(ctl, volume);
        ctl_usage_error(error,
                        "%s: %s is '%s' in volume %s, but %s needs a whole volume: hearthctl %s %s",
                        op, argument, inside, title, op, op, title);
        return NULL;
    }
    json_t *request = json_pack("{s:s, s:s}", "op", op, "volume", volume);
    if (!request)
        ctl_usage_error(error, "%s: the volume must be UTF-8", op);
    return request;
}
