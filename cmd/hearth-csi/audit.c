/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearth-csi audit: prints differences between the records of the driver and Ceph, as a table or
 * JSON, and repairs them on request (driver/service/controller/audit.h).
 */
#include "cmd/hearth-csi/audit.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include "driver/service/controller/audit.h"
#include "driver/cluster/config.h"

enum { AUDIT_CLEAN = 0, AUDIT_FAILED = 1, AUDIT_USAGE = 2, AUDIT_FOUND = 3 };

typedef struct Options {
    char *cluster_config, *secret_dir, *dir_root, *cluster_id, *format, *min_age, **remove;
    gboolean repair;
    gint64 min_age_seconds;
} Options;

static const char about[] =
    "Compares the driver's records with the volumes and snapshots in Ceph, on every cluster of\n"
    "the configuration. Changes nothing without --repair or --remove.\n\n"
    "Exit status: 0 no differences; 3 differences that were not repaired; 1 not everything could "
    "be\n"
    "checked; 2 wrong usage.";

static const char examples[] =
    "Examples:\n"
    "  hearth-csi audit --secret-dir /etc/hearth/secret\n"
    "  hearth-csi audit --secret-dir /etc/hearth/secret --format json | jq '.findings[].name'\n"
    "  hearth-csi audit --secret-dir /etc/hearth/secret --repair\n"
    "  hearth-csi audit --secret-dir /etc/hearth/secret --remove cephfs/csi/csi-vol-pvc-1";

/* "90", "90s", "15m", "2h", "3d" in seconds. */
static gboolean parse_age(const char *text, gint64 *seconds)
{
    char *end = NULL;
    guint64 n = g_ascii_strtoull(text, &end, 10);
    static const struct {
        const char *unit;
        guint factor;
    } units[] = {{"", 1}, {"s", 1}, {"m", 60}, {"h", 3600}, {"d", 86400}};
    if (!g_ascii_isdigit(*text) || n > 100000000)
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(units); i++) {
        if (strcmp(end, units[i].unit) == 0) {
            *seconds = (gint64)(n * units[i].factor);
            return TRUE;
        }
    }
    return FALSE;
}

static gboolean parse(int *argc, char ***argv, Options *o, GError **error)
{
    const GOptionEntry entries[] = {
        {"cluster-config", 0, 0, G_OPTION_ARG_FILENAME, &o->cluster_config,
         "ceph-csi's config.json (" CONFIG_DEFAULT_PATH ")", "FILE"},
        {"secret-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->secret_dir,
         "A mounted Secret with userID and userKey, as the controller's", "DIR"},
        {"cluster-id", 0, 0, G_OPTION_ARG_STRING, &o->cluster_id, "Only this cluster", "ID"},
        {"dir-root", 0, 0, G_OPTION_ARG_FILENAME, &o->dir_root,
         "Also volumes of type=dir under this directory", "DIR"},
        {"format", 'f', 0, G_OPTION_ARG_STRING, &o->format, "table (default) or json", "FORMAT"},
        {"repair", 0, 0, G_OPTION_ARG_NONE, &o->repair,
         "Repair what is safe to repair, as a repeated call would", NULL},
        {"min-age", 0, 0, G_OPTION_ARG_STRING, &o->min_age,
         "--repair skips younger ones: a call may be running (10m)", "AGE"},
        {"remove", 0, 0, G_OPTION_ARG_STRING_ARRAY, &o->remove,
         "Remove this volume or snapshot without a record, WITH ITS DATA; may be repeated", "NAME"},
        {NULL, 0, 0, 0, NULL, NULL, NULL}};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, about);
    g_option_context_set_description(context, examples);
    g_option_context_add_main_entries(context, entries, NULL);
    g_set_prgname("hearth-csi audit");
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (!o->cluster_config)
        o->cluster_config = g_strdup(CONFIG_DEFAULT_PATH);
    if (*argc > 1)
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_UNKNOWN_OPTION,
                    "\"%s\": options only, no arguments", (*argv)[1]);
    else if (o->format && strcmp(o->format, "table") != 0 && strcmp(o->format, "json") != 0)
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--format=%s: use table or json", o->format);
    else if (!parse_age(o->min_age ? o->min_age : "10m", &o->min_age_seconds))
        g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
                    "--min-age=%s: use a number with s, m, h or d", o->min_age);
    else
        return TRUE;
    return FALSE;
}

static void options_clear(Options *o)
{
    g_free(o->cluster_config);
    g_free(o->secret_dir);
    g_free(o->dir_root);
    g_free(o->cluster_id);
    g_free(o->format);
    g_free(o->min_age);
    g_strfreev(o->remove);
}

static gint64 age_of(const AuditFinding *f)
{
    return f->created ? MAX(g_get_real_time() / G_USEC_PER_SEC - f->created, 0) : -1;
}

/* As kubectl writes ages. */
static char *age_text(const AuditFinding *f)
{
    gint64 age = age_of(f);
    if (age < 0)
        return g_strdup("-");
    if (age < 120)
        return g_strdup_printf("%ds", (int)age);
    if (age < 2 * 3600)
        return g_strdup_printf("%dm", (int)(age / 60));
    if (age < 48 * 3600)
        return g_strdup_printf("%dh", (int)(age / 3600));
    return g_strdup_printf("%" G_GINT64_FORMAT "d", age / 86400);
}

static const char *status_of(const AuditFinding *f)
{
    if (f->fixed)
        return "fixed";
    return f->failure ? "not fixed" : "found";
}

#define COLUMNS 6

static void add_row(GPtrArray *rows, const char *const cells[COLUMNS])
{
    char **row = g_new0(char *, COLUMNS + 1);
    for (int i = 0; i < COLUMNS; i++)
        row[i] = g_strdup(cells[i]);
    g_ptr_array_add(rows, row);
}

static void free_row(gpointer row)
{
    g_strfreev(row);
}

static char *meaning_of(const AuditFinding *f, const AuditText *text)
{
    if (f->fixed)
        return g_strdup(text->means);
    if (f->failure)
        return g_strdup(f->failure);
    return g_strdup_printf("%s; %s", text->means, f->detail ? f->detail : text->todo);
}

static void print_table(const AuditResult *result)
{
    static const char *const head[COLUMNS] = {"TYPE", "PROBLEM", "NAME",
                                              "AGE",  "STATUS",  "MEANS; WHAT TO DO"};
    const GPtrArray *findings = result->report->findings;
    if (findings->len == 0)
        return;
    g_autoptr(GPtrArray) rows = g_ptr_array_new_with_free_func(free_row);
    add_row(rows, head);
    for (guint i = 0; i < findings->len; i++) {
        const AuditFinding *f = findings->pdata[i];
        const AuditText *text = audit_text(f->kind);
        g_autofree char *name = audit_finding_name(f);
        g_autofree char *age = age_text(f);
        g_autofree char *last = meaning_of(f, text);
        const char *const cells[COLUMNS] = {
            volume_type_name(f->id->type), text->name, name, age, status_of(f), last};
        add_row(rows, cells);
    }
    int widths[COLUMNS] = {0};
    for (guint i = 0; i < rows->len; i++) {
        char **row = rows->pdata[i];
        for (int k = 0; k < COLUMNS - 1; k++)
            widths[k] = MAX(widths[k], (int)strlen(row[k]));
    }
    for (guint i = 0; i < rows->len; i++) {
        char **row = rows->pdata[i];
        for (int k = 0; k < COLUMNS - 1; k++)
            printf("%-*s   ", widths[k], row[k]);
        puts(row[COLUMNS - 1]);
    }
}

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static void print_json(const AuditResult *result)
{
    static const char *const fixes[] = {[AUDIT_FIX_SAFE] = "repair",
                                        [AUDIT_FIX_BY_NAME] = "remove",
                                        [AUDIT_FIX_BY_HAND] = "by hand"};
    json_t *findings = json_array(), *errors = json_array();
    for (guint i = 0; i < result->report->findings->len; i++) {
        const AuditFinding *f = result->report->findings->pdata[i];
        const AuditText *text = audit_text(f->kind);
        g_autofree char *name = audit_finding_name(f);
        gint64 age = age_of(f);
        json_t *o = json_object();
        json_object_set_new(o, "type", json_string(volume_type_name(f->id->type)));
        json_object_set_new(o, "clusterID", text_or_null(f->id->cluster_id));
        json_object_set_new(o, "problem", json_string(text->name));
        json_object_set_new(o, "name", json_string(name));
        json_object_set_new(o, "volume", text_or_null(f->id->name));
        json_object_set_new(o, "snapshot", text_or_null(f->snapshot));
        json_object_set_new(o, "ageSeconds", age < 0 ? json_null() : json_integer(age));
        json_object_set_new(o, "means", json_string(text->means));
        json_object_set_new(o, "todo", json_string(text->todo));
        json_object_set_new(o, "fix", json_string(fixes[text->fix]));
        json_object_set_new(o, "mend", json_string(fixes[text->fix])); /* its name in 0.1 */
        json_object_set_new(o, "detail", text_or_null(f->detail));
        json_object_set_new(o, "fixed", json_boolean(f->fixed));
        json_object_set_new(o, "mended", json_boolean(f->fixed)); /* its name in 0.1 */
        json_object_set_new(o, "failure", text_or_null(f->failure));
        json_array_append_new(findings, o);
    }
    for (guint i = 0; i < result->errors->len; i++)
        json_array_append_new(errors, json_string(result->errors->pdata[i]));
    json_auto_t *root = json_pack(
        "{s:o, s:o, s:{s:i, s:i, s:i, s:i}}", "findings", findings, "errors", errors, "looked",
        "places", (int)result->locations, "records", (int)result->report->records, "volumes",
        (int)result->report->volumes, "snapshots", (int)result->report->snapshots);
    json_dumpf(root, stdout, JSON_INDENT(2));
    putchar('\n');
}

static int finish(const AuditResult *result, gboolean json)
{
    const GPtrArray *findings = result->report->findings;
    guint left = 0;
    for (guint i = 0; i < findings->len; i++)
        left += !((const AuditFinding *)findings->pdata[i])->fixed;
    if (json)
        print_json(result);
    else
        print_table(result);
    for (guint i = 0; i < result->errors->len; i++)
        fprintf(stderr, "hearth-csi audit: %s\n", (const char *)result->errors->pdata[i]);
    if (!json)
        fprintf(stderr, "%u records, %u volumes and %u snapshots in %u places: %u out of step%s\n",
                result->report->records, result->report->volumes, result->report->snapshots,
                result->locations, left, left < findings->len ? "; the others are fixed" : "");
    fflush(NULL);
    if (result->errors->len)
        return AUDIT_FAILED;
    return left ? AUDIT_FOUND : AUDIT_CLEAN;
}

static gsize make_backends(const Options *o, Backend **backends, GError **error)
{
    gsize n = 0;
    if (o->dir_root) {
        backends[n] = backend_dir_new(o->dir_root, error);
        if (!backends[n++])
            return 0;
    }
    if (!o->dir_root || g_file_test(o->cluster_config, G_FILE_TEST_EXISTS)) {
        backends[n++] = backend_cephfs_new(o->cluster_config);
        backends[n++] = backend_rbd_new(o->cluster_config, RBD_DEFAULT_CLONE_DEPTH);
    }
    return n;
}

int audit_main(int argc, char **argv)
{
    Options o = {0};
    Backend *backends[3] = {NULL};
    g_autoptr(GError) error = NULL;
    int status = AUDIT_USAGE;
    if (parse(&argc, &argv, &o, &error)) {
        AuditConfig config = {.backends = backends,
                              .n_backends = make_backends(&o, backends, &error),
                              .secret_dir = o.secret_dir,
                              .cluster_id = o.cluster_id,
                              .repair = o.repair,
                              .min_age_seconds = o.min_age_seconds,
                              .remove = o.remove};
        g_autoptr(AuditResult) result = config.n_backends ? audit_run(&config) : NULL;
        status = result ? finish(result, g_strcmp0(o.format, "json") == 0) : AUDIT_FAILED;
        for (gsize i = 0; i < config.n_backends; i++)
            backend_free(backends[i]);
    }
    if (error)
        fprintf(stderr, "hearth-csi audit: %s\n", error->message);
    options_clear(&o);
    return status;
}
