/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/warmup.h"
#include <string.h>
#include "common/error.h"
#include "common/field.h"
#include "driver/kube/time.h"
#include "driver/volume/params.h"

const KubeResource warmup_resource = {"csi.hearth.dev", "v1alpha1", "cachewarmups"};

/* Characters. */
#define MESSAGE_MAX 200
/* The end of the year 9999: the last time that can be written. */
#define TIME_MAX_S G_GINT64_CONSTANT(253402300799)

#define refuse(error, ...) hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT, __VA_ARGS__)

/* "": it is not there. */
static gboolean text_of(const json_t *spec, const char *name, const char **text, GError **error)
{
    const json_t *value = json_object_get(spec, name);
    *text = field_text(spec, name);
    if (value && !json_is_null(value) && !json_is_string(value))
        return refuse(error, "spec.%s is no text; put it in quotes", name);
    return TRUE;
}

/* ---- the dataset ---- */

/* The limit of the schema. */
#define DATASET_MAX 512

static gboolean is_key(const char *dataset)
{
    return strlen(dataset) == DATASET_KEY_DIGITS &&
           strspn(dataset, "0123456789abcdef") == DATASET_KEY_DIGITS;
}

static gboolean read_target(const json_t *spec, Warmup *warmup, GError **error)
{
    const char *claim, *dataset;
    if (!text_of(spec, "persistentVolumeClaim", &claim, error) ||
        !text_of(spec, "dataset", &dataset, error))
        return FALSE;
    if (*claim && *dataset)
        return refuse(error,
                      "spec.persistentVolumeClaim \"%s\" and spec.dataset \"%s\" are both given; "
                      "leave one out",
                      claim, dataset);
    if (!*claim && !*dataset)
        return refuse(error, "it does not say what is to be warm; give spec.persistentVolumeClaim "
                             "or spec.dataset");
    if (*dataset && !is_key(dataset) &&
        (!dataset_title_is(dataset) || strlen(dataset) > DATASET_MAX))
        return refuse(error,
                      "spec.dataset \"%.512s\" is none; write SUBVOLUME@SNAPSHOT, such as "
                      "imagenet@2026-11, or the 16 hex digits that `kubectl get nodecache -o yaml` "
                      "tells, or use spec.persistentVolumeClaim",
                      dataset);
    warmup->claim = *claim ? g_strdup(claim) : NULL;
    warmup->dataset = g_strdup(dataset);
    return TRUE;
}

/* Without empty and "." components ("a//b/./"); the caller's. NULL: it has "..". */
static char *tidy(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    g_autoptr(GString) tidied = g_string_new(NULL);
    for (char **part = parts; *part; part++) {
        if (g_str_equal(*part, ".."))
            return NULL;
        if (**part && !g_str_equal(*part, "."))
            g_string_append_printf(tidied, "%s%s", tidied->len ? "/" : "", *part);
    }
    return g_string_free(g_steal_pointer(&tidied), FALSE);
}

static gboolean read_paths(const json_t *spec, Warmup *warmup, GError **error)
{
    const json_t *list = json_object_get(spec, "paths"), *item;
    gboolean all = FALSE;
    size_t i;
    if (list && !json_is_null(list) && !json_is_array(list))
        return refuse(error, "spec.paths is no list; write [\"train/0\", \"labels\"]");
    if (json_array_size(list) > WARMUP_PATHS_MAX)
        return refuse(error, "spec.paths has %zu; %d at most, name directories above them",
                      json_array_size(list), WARMUP_PATHS_MAX);
    json_array_foreach (list, i, item) {
        const char *path = json_string_value(item);
        if (!path || !*path)
            return refuse(error,
                          "spec.paths[%zu] is no path; name a file or directory of the "
                          "dataset",
                          i);
        if (*path == '/')
            return refuse(error,
                          "spec.paths[%zu] \"%s\" is absolute; paths begin at the dataset's root, "
                          "so leave out the first / and write \"%s\"",
                          i, path, path + 1);
        char *tidied = tidy(path);
        if (!tidied)
            return refuse(
                error, "spec.paths[%zu] \"%s\" has \"..\" in it; name it from the dataset's root",
                i, path);
        all |= !*tidied;
        g_ptr_array_add(warmup->paths, tidied);
    }
    if (all)
        g_ptr_array_set_size(warmup->paths, 0);
    return TRUE;
}

static gboolean read_rate(const json_t *spec, Warmup *warmup, GError **error)
{
    const char *rate;
    if (!text_of(spec, "rate", &rate, error))
        return FALSE;
    if (*rate && (!params_parse_size(rate, &warmup->rate) || warmup->rate == 0))
        return refuse(error,
                      "spec.rate \"%s\" is none; use whole bytes a second, above 0, such as 200Mi",
                      rate);
    if (*rate && warmup->rate < WARMUP_RATE_MIN)
        return refuse(error, "spec.rate \"%s\" is too low; use 256Ki at least, or leave it out",
                      rate);
    return TRUE;
}

/* ---- where and when ---- */

static gboolean read_selector(const json_t *selector, Warmup *warmup, GError **error)
{
    const char *label;
    json_t *value;
    if (selector && !json_is_null(selector) && !json_is_object(selector))
        return refuse(error, "spec.nodeSelector is none; write {label: value}");
    json_object_foreach ((json_t *)selector, label, value) {
        if (!json_is_string(value))
            return refuse(error, "spec.nodeSelector has no text for \"%s\"; put it in quotes",
                          label);
        g_hash_table_insert(warmup->selector, g_strdup(label), g_strdup(json_string_value(value)));
    }
    return TRUE;
}

static gboolean read_nodes(const json_t *spec, Warmup *warmup, GError **error)
{
    const json_t *nodes = json_object_get(spec, "nodes");
    const json_int_t n = json_integer_value(nodes);
    if (nodes && !json_is_null(nodes) && (n < 1 || n > WARMUP_NODES_MAX)) {
        g_autofree char *given = json_dumps(nodes, JSON_ENCODE_ANY);
        return refuse(error, "spec.nodes %s is no number of nodes; use 1 to %d", given,
                      WARMUP_NODES_MAX);
    }
    if (!read_selector(json_object_get(spec, "nodeSelector"), warmup, error))
        return FALSE;
    if (n > 0 && g_hash_table_size(warmup->selector) > 0)
        return refuse(error, "spec.nodes %d and spec.nodeSelector are both given; leave one out",
                      (int)n);
    warmup->nodes = (guint)n;
    return TRUE;
}

static gboolean read_schedule(const json_t *spec, Warmup *warmup, GError **error)
{
    const char *schedule;
    if (!text_of(spec, "schedule", &schedule, error))
        return FALSE;
    warmup->scheduled = *schedule != '\0';
    if (warmup->scheduled && !cron_parse(schedule, &warmup->cron, error)) {
        g_prefix_error(error, "spec.schedule: ");
        return FALSE;
    }
    return TRUE;
}

gboolean warmup_read(const json_t *object, Warmup *warmup, GError **error)
{
    const json_t *metadata = json_object_get(object, "metadata");
    const json_t *spec = json_object_get(object, "spec");
    gint64 created_us = 0;
    if (!kube_time_parse(field_text(metadata, "creationTimestamp"), &created_us))
        created_us = 0;
    *warmup = (Warmup){
        .namespace = g_strdup(field_text(metadata, "namespace")),
        .name = g_strdup(field_text(metadata, "name")),
        .uid = g_strdup(field_text(metadata, "uid")),
        .generation = json_integer_value(json_object_get(metadata, "generation")),
        .created_s = created_us / G_USEC_PER_SEC,
        .going = *field_text(metadata, "deletionTimestamp") != '\0',
        .suspend = json_is_true(json_object_get(spec, "suspend")),
        .paths = g_ptr_array_new_with_free_func(g_free),
        .selector = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
    };
    if (!read_target(spec, warmup, error))
        return FALSE;
    if (!read_paths(spec, warmup, error))
        return FALSE;
    if (!read_rate(spec, warmup, error))
        return FALSE;
    if (!read_nodes(spec, warmup, error))
        return FALSE;
    return read_schedule(spec, warmup, error);
}

void warmup_clear(Warmup *warmup)
{
    g_clear_pointer(&warmup->namespace, g_free);
    g_clear_pointer(&warmup->name, g_free);
    g_clear_pointer(&warmup->uid, g_free);
    g_clear_pointer(&warmup->claim, g_free);
    g_clear_pointer(&warmup->dataset, g_free);
    g_clear_pointer(&warmup->paths, g_ptr_array_unref);
    g_clear_pointer(&warmup->selector, g_hash_table_unref);
}

/* ---- runs ---- */

char *warmup_run_name(const char *uid, const WarmupRun *run)
{
    return g_strdup_printf("%s.%" G_GINT64_FORMAT ".%" G_GINT64_FORMAT, uid, run->generation,
                           run->time_s);
}

gboolean warmup_run_parse(const char *uid, const char *name, WarmupRun *run)
{
    g_auto(GStrv) parts = g_strsplit(name, ".", -1);
    return *uid && g_strv_length(parts) == 3 && g_str_equal(parts[0], uid) &&
           g_ascii_string_to_signed(parts[1], 10, 0, G_MAXINT64, &run->generation, NULL) &&
           g_ascii_string_to_signed(parts[2], 10, 0, TIME_MAX_S, &run->time_s, NULL);
}

void warmup_done_read(const Warmup *warmup, const json_t *status, WarmupDone *done)
{
    gint64 at_us;
    *done = (WarmupDone){.any = FALSE};
    done->any = warmup_run_parse(warmup->uid, field_text(status, "run"), &done->run);
    done->under_way = done->any && g_str_equal(field_text(status, "phase"), "Warming");
    /* A status that was restored with another uid belongs to another object. */
    if (done->any && kube_time_parse(field_text(status, "lastScheduleTime"), &at_us))
        done->last_schedule_s = at_us / G_USEC_PER_SEC;
}

gboolean warmup_due(const Warmup *warmup, const WarmupDone *done, gint64 now_s, WarmupRun *run)
{
    const gboolean changed = !done->any || done->run.generation != warmup->generation;
    *run = (WarmupRun){.generation = warmup->generation};
    if (warmup->suspend || warmup->going)
        return FALSE;
    if (!warmup->scheduled)
        return changed;
    if (done->under_way) {
        run->time_s = done->run.time_s;
        return changed;
    }
    run->time_s = cron_last(&warmup->cron, now_s, MAX(warmup->created_s, done->last_schedule_s));
    return run->time_s >= 0;
}

gint64 warmup_next_s(const Warmup *warmup, gint64 now_s)
{
    return warmup->scheduled && !warmup->suspend && !warmup->going ? cron_next(&warmup->cron, now_s)
                                                                   : -1;
}

/* GLib's, behind a file's name. */
#define CLOSING_QUOTE "\u201d"

/* The length of a word that begins with "/". */
static gsize path_length(const char *text, char before)
{
    gsize n = 0;
    if (text[0] != '/' || (before && (g_ascii_isalnum(before) || strchr("._-/", before))))
        return 0;
    while (text[n] && !strchr(" \t\n\"'`),;]>", text[n]) &&
           !g_str_has_prefix(text + n, CLOSING_QUOTE) &&
           !(text[n] == ':' && (!text[n + 1] || text[n + 1] == ' ')))
        n++;
    return n;
}

char *warmup_message(const char *text)
{
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_autoptr(GString) plain = g_string_new(NULL);
    for (const char *p = valid; *p;) {
        const gsize n = path_length(p, p > valid ? p[-1] : 0);
        if (n > 0)
            g_string_append(plain, "(path)");
        else
            g_string_append_c(plain, *p);
        p += MAX(n, 1);
    }
    return g_utf8_strlen(plain->str, -1) > MESSAGE_MAX
               ? g_utf8_substring(plain->str, 0, MESSAGE_MAX)
               : g_strdup(plain->str);
}
