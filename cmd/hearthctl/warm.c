/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthctl warm and job. Polls the progress of a job, and waits for signals in between, so that
 * Ctrl-C cancels the job at once.
 */
#include "cmd/hearthctl/client/commands.h"
#include "common/autofd.h"
#include "common/size.h"
#include "proto/wire.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BAR_WIDTH 24
#define FIRST_INTERVAL_MS 10
#define TERMINAL_INTERVAL_MS 200
#define PLAIN_INTERVAL_MS 1000
#define PLAIN_LINE_EVERY_SEC 3

static const char *const cannot_reach = "hearthctl: the job is still running in hearthd\n";

static uint64_t rate_of(const json_t *job)
{
    /* Bytes that were cached before were not fetched, so they do not count for the rate. */
    uint64_t ms = ctl_number(job, "elapsedMs");
    uint64_t done = ctl_number(job, "bytesDone"), held = ctl_number(job, "bytesHeld");
    return ms && done > held ? (done - held) * 1000 / ms : 0;
}

static char *describe(const json_t *job)
{
    uint64_t done = ctl_number(job, "bytesDone"), total = ctl_number(job, "bytesTotal");
    uint64_t rate = rate_of(job);
    g_autofree char *bytes_done = size_format(done);
    g_autofree char *bytes_total = size_format(total);
    if (json_is_true(json_object_get(job, "scanning")))
        return g_strdup_printf("scanning: %" G_GUINT64_FORMAT " files, %s so far",
                               ctl_number(job, "filesTotal"), bytes_total);
    g_autofree char *speed = size_format(rate);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%" G_GUINT64_FORMAT "/%" G_GUINT64_FORMAT " files, %s/%s, %s/s",
                           ctl_number(job, "filesDone"), ctl_number(job, "filesTotal"), bytes_done,
                           bytes_total, speed);
    if (ctl_number(job, "filesFailed"))
        g_string_append_printf(text, ", %" G_GUINT64_FORMAT " failed",
                               ctl_number(job, "filesFailed"));
    if (rate && total > done)
        g_string_append_printf(text, ", %" G_GUINT64_FORMAT " s left", (total - done) / rate + 1);
    return g_string_free(text, FALSE);
}

static void print_bar(const json_t *job)
{
    uint64_t done = ctl_number(job, "bytesDone"), total = ctl_number(job, "bytesTotal");
    double part = total ? MIN(1.0, (double)done / (double)total) : 0;
    char bar[BAR_WIDTH + 1];
    memset(bar, ' ', BAR_WIDTH);
    memset(bar, '#', (size_t)(part * BAR_WIDTH));
    bar[BAR_WIDTH] = '\0';
    g_autofree char *text = describe(job);
    fprintf(stderr, "\r\033[K[%s] %3.0f%%  %s", bar, part * 100, text);
    fflush(stderr);
}

/* Prints the result of a job that has ended, and returns the exit code. */
static int print_result(const json_t *job)
{
    const char *state = ctl_string(job, "state"), *why = ctl_string(job, "error");
    uint64_t failed = ctl_number(job, "filesFailed");
    g_autofree char *bytes = size_format(ctl_number(job, "bytesDone"));
    uint64_t files = ctl_number(job, "filesDone");
    uint64_t held = ctl_number(job, "bytesHeld");
    g_autofree char *before = size_format(held);
    printf("%s: %" G_GUINT64_FORMAT " file%s, %s warm in %.1f s", ctl_string(job, "volume"), files,
           files == 1 ? "" : "s", bytes, (double)ctl_number(job, "elapsedMs") / 1000);
    if (held)
        printf("; held before: %s", before);
    printf("\n");
    fflush(stdout);
    const gboolean done = strcmp(state, "done") == 0;
    const char *ended = strcmp(state, "cancelled") == 0 ? "was cancelled" : "failed";
    if (done && failed == 0)
        return CTL_OK;
    if (done)
        fprintf(stderr,
                "hearthctl: %" G_GUINT64_FORMAT " file%s could not be warmed; the first: %s\n",
                failed, failed == 1 ? "" : "s", why);
    else
        fprintf(stderr, "hearthctl: the job %s%s%s\n", ended, why[0] ? ": " : "", why);
    return CTL_FAILED;
}

static json_t *ask_job(Ctl *ctl, uint64_t id, GError **error)
{
    return ctl_call(ctl, json_pack("{s:s, s:I}", "op", "job", "job", (json_int_t)id), error);
}

static gboolean cancel_job(Ctl *ctl, uint64_t id, GError **error)
{
    json_auto_t *reply =
        ctl_call(ctl, json_pack("{s:s, s:I}", "op", "cancel", "job", (json_int_t)id), error);
    return reply != NULL;
}

static gboolean is_running(const json_t *job)
{
    return strcmp(ctl_string(job, "state"), "running") == 0;
}

/* Follows the job to its end. The first signal cancels it, a second one detaches from it. */
static int follow_job(Ctl *ctl, uint64_t id)
{
    gboolean terminal = isatty(STDERR_FILENO);
    long longest_ms = terminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS;
    long wait_ms = FIRST_INTERVAL_MS;
    gint64 last_line = g_get_monotonic_time();
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    unsigned signals_seen = 0;
    for (;;) {
        g_autoptr(GError) error = NULL;
        json_auto_t *job = ask_job(ctl, id, &error);
        if (!job)
            return ctl_fail(error);
        if (!is_running(job)) {
            if (terminal)
                fprintf(stderr, "\r\033[K");
            int code = print_result(job);
            return code;
        }
        if (terminal) {
            print_bar(job);
        } else if (g_get_monotonic_time() - last_line > PLAIN_LINE_EVERY_SEC * G_USEC_PER_SEC) {
            g_autofree char *text = describe(job);
            fprintf(stderr, "%s\n", text);
            last_line = g_get_monotonic_time();
        }
        /* Often at first: most jobs on a warm volume are over at once. */
        struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};
        wait_ms = MIN(wait_ms * 2, longest_ms);
        if (sigtimedwait(&signals, NULL, &wait) > 0) {
            if (++signals_seen > 1) {
                fputs(cannot_reach, stderr);
                return CTL_FAILED;
            }
            if (!cancel_job(ctl, id, &error))
                return ctl_fail(error);
        }
    }
}

static const char warm_about[] =
    "Fetches the files of a volume, of a part of it, or of a list, that "
    "are not cached yet.";
static const char warm_examples[] =
    "VOLUME is an ID as 'hearthctl status' shows it. PATH is a directory or file on a mounted\n"
    "volume; all files below it are fetched. The names in a list are relative to it, one a line;\n"
    "absolute names must be below PATH. Files that readers wait for are fetched first. Ctrl-C\n"
    "cancels the job; the same command continues where it stopped, also after a restart of\n"
    "hearthd. The exit code is 1 when a file could not be fetched.\n"
    "\n"
    "Examples:\n"
    "  hearthctl warm pvc-0a1b2c\n"
    "  hearthctl warm pvc-0a1b2c --path train/shard-000\n"
    "  hearthctl warm /mnt/imagenet/train\n"
    "  hearthctl warm pvc-0a1b2c --rate 100M --no-wait\n"
    "  find /mnt/imagenet/train -name '*.tar' | hearthctl warm /mnt/imagenet --files-from -\n";
static const CtlHelp warm_help = {
    .usage = "VOLUME|PATH", .about = warm_about, .notes = warm_examples};

static char *join_paths(const char *a, const char *b)
{
    return g_strdup_printf("%s%s%s", a, a[0] && b[0] ? "/" : "", b);
}

int ctl_warm(Ctl *ctl, int argc, char **argv)
{
    g_autofree char *sub = NULL, *volume = NULL, *inside = NULL, *rate = NULL, *from = NULL;
    uint64_t bytes_per_sec = 0;
    gboolean no_wait = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"path", 'p', 0, G_OPTION_ARG_FILENAME, &sub, "Only this path inside the volume", "SUB"},
        {"files-from", 'f', 0, G_OPTION_ARG_FILENAME, &from,
         "Only these files: their names, one a line; - reads standard input", "FILE"},
        {"rate", 'r', 0, G_OPTION_ARG_STRING, &rate, "Maximum bytes per second of the job", "SIZE"},
        {"no-wait", 0, 0, G_OPTION_ARG_NONE, &no_wait, "Print the job's number and return", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &warm_help, &error))
        return ctl_fail(error);
    if (argc != 2) {
        ctl_usage_error(&error, "warm: name one volume or path; see hearthctl warm --help");
        return ctl_fail(error);
    }
    if (rate && (!size_parse("--rate", rate, &bytes_per_sec, &error) || !bytes_per_sec)) {
        if (!error)
            ctl_usage_error(&error, "--rate=%s: give more than 0, or leave it out", rate);
        ctl_fail(error);
        return CTL_USAGE;
    }
    if (!ctl_find_volume(argv[1], &volume, &inside, &error))
        return ctl_fail(error);
    g_autofree char *path = join_paths(inside, sub ? sub : "");
    json_auto_t *request = json_pack("{s:s, s:s, s:s, s:I}", "op", "warm", "volume", volume, "path",
                                     path, "rate", (json_int_t)bytes_per_sec);
    if (!request) {
        ctl_usage_error(&error, "warm: the volume and the path must be UTF-8");
        return ctl_fail(error);
    }
    hearth_autofd int list = from ? ctl_list_files(from, argv[1], &error) : -1;
    if (from && list < 0)
        return ctl_fail(error);
    json_auto_t *reply = ctl_call_with(ctl, g_steal_pointer(&request), list, &error);
    if (!reply)
        return ctl_fail(error);
    uint64_t id = ctl_number(reply, "job");
    if (!no_wait)
        return follow_job(ctl, id);
    printf("%" G_GUINT64_FORMAT "\n", id);
    return CTL_OK;
}

static const CtlHelp job_help = {
    .usage = "NUMBER",
    .about = "Shows a warm job, follows or cancels it.",
    .notes = "hearthd remembers the last 64 jobs that ended.\n\nExamples:\n"
             "  hearthctl job 7\n  hearthctl job 7 --wait\n  hearthctl job 7 --cancel\n",
};

int ctl_job(Ctl *ctl, int argc, char **argv)
{
    gboolean cancel = FALSE, wait = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"cancel", 0, 0, G_OPTION_ARG_NONE, &cancel, "Cancel the job", NULL},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &wait, "Follow it until it has ended", NULL},
        G_OPTION_ENTRY_NULL};
    guint64 id;
    if (!ctl_parse(ctl, &argc, &argv, entries, &job_help, &error))
        return ctl_fail(error);
    if (argc != 2 || !g_ascii_string_to_unsigned(argv[1], 10, 1, G_MAXINT64, &id, NULL)) {
        ctl_usage_error(&error, "job: name one job by its number; see hearthctl job --help");
        return ctl_fail(error);
    }
    if (cancel && !cancel_job(ctl, id, &error))
        return ctl_fail(error);
    if (wait)
        return follow_job(ctl, id);
    json_auto_t *job = ask_job(ctl, id, &error);
    if (!job)
        return ctl_fail(error);
    int code = CTL_OK;
    if (is_running(job)) {
        g_autofree char *text = describe(job);
        printf("%s: %s%s\n", ctl_string(job, "volume"), text, cancel ? ", being cancelled" : "");
    } else {
        code = print_result(job);
    }
    return cancel ? CTL_OK : code;
}
