/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls the progress of a job, and waits for signals in between, so that Ctrl-C cancels the job at
 * once and a change of the window draws the bar again.
 *
 * The cursor rests at the begin of the bar. When a terminal becomes narrower and folds the bar into
 * several rows, the cursor stays in the first of them, so the next drawing clears all.
 */
#include "cmd/hearthctl/follow.h"
#include "cmd/hearthctl/client/terminal.h"
#include "cmd/hearthctl/client/text.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/report/words.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLEAR "\r\033[J"
#define FIRST_INTERVAL_MS 10
#define TERMINAL_INTERVAL_MS 200
#define PLAIN_INTERVAL_MS 1000
#define PLAIN_LINE_EVERY_SEC 3

json_t *follow_ask(Ctl *ctl, uint64_t id, GError **error)
{
    return ctl_call(ctl, json_pack("{s:s, s:I}", "op", "job", "job", (json_int_t)id), error);
}

gboolean follow_cancel(Ctl *ctl, uint64_t id, GError **error)
{
    json_auto_t *reply =
        ctl_call(ctl, json_pack("{s:s, s:I}", "op", "cancel", "job", (json_int_t)id), error);
    return reply != NULL;
}

gboolean follow_is_running(const json_t *job)
{
    return strcmp(ctl_string(job, "state"), "running") == 0;
}

static void print_result(const Follow *follow, const json_t *job, uint64_t came)
{
    g_autofree char *text = follow->as_json ? json_dumps(job, JSON_INDENT(2)) : NULL;
    g_autofree char *line = progress_result(job, came);
    printf("%s\n", text ? text : line);
    fflush(stdout);
}

static int check_code(const json_t *job)
{
    return ctl_number(job, "filesDone") == ctl_number(job, "filesTotal") ? CTL_OK : CTL_FAILED;
}

int follow_result(const Follow *follow, const json_t *job, uint64_t came)
{
    const char *state = ctl_string(job, "state");
    g_autofree char *why = text_printable(ctl_string(job, "error"));
    const uint64_t failed = ctl_number(job, "filesFailed");
    const gboolean check = json_is_true(json_object_get(job, "check"));
    print_result(follow, job, came);
    if (strcmp(state, "cancelled") == 0) {
        fprintf(stderr, "hearthctl: the job was cancelled%s%s", why[0] ? ": " : "", why);
        g_autofree char *again = text_typed(follow->again ? follow->again : "", follow->ctl->as);
        if (again[0])
            fprintf(stderr, "; the same command continues where it stopped: %s", again);
        fprintf(stderr, "\n");
        return CTL_FAILED;
    }
    if (strcmp(state, "done") != 0) {
        fprintf(stderr, "hearthctl: the job failed%s%s\n", why[0] ? ": " : "", why);
        return CTL_FAILED;
    }
    if (failed == 0)
        return check ? check_code(job) : CTL_OK;
    fprintf(stderr, "hearthctl: %" G_GUINT64_FORMAT " file%s could not be %s; the first: %s\n",
            failed, words_plural(failed), check ? "checked" : "warmed", why);
    return CTL_FAILED;
}

static void draw_bar(const json_t *job)
{
    g_autofree char *bar = progress_bar(job, terminal_columns(STDERR_FILENO));
    fprintf(stderr, "\r%s\033[J\r", bar);
    fflush(stderr);
}

static void block_signals(sigset_t *signals)
{
    const int wanted[] = {SIGINT, SIGTERM, SIGWINCH};
    sigemptyset(signals);
    for (guint i = 0; i < G_N_ELEMENTS(wanted); i++)
        sigaddset(signals, wanted[i]);
    sigprocmask(SIG_BLOCK, signals, NULL);
}

/* A line now and then, where nobody can see a bar. */
static void print_line(const json_t *job, gint64 *last_us)
{
    if (g_get_monotonic_time() - *last_us <= PLAIN_LINE_EVERY_SEC * G_USEC_PER_SEC)
        return;
    g_autofree char *text = progress_text(job);
    fprintf(stderr, "%s\n", text);
    *last_us = g_get_monotonic_time();
}

/* The second signal: the job is left alone. */
static int leave(const Follow *follow)
{
    fprintf(stderr,
            "hearthctl: the job is still running in hearthd; '%s job %" G_GUINT64_FORMAT
            "' shows it\n",
            follow->ctl->as ? follow->ctl->as : "hearthctl", follow->id);
    return CTL_FAILED;
}

static int fail(const Ctl *ctl, const GError *error, gboolean terminal)
{
    if (terminal)
        fputs(CLEAR, stderr);
    return ctl_fail(ctl, error);
}

int follow_job(const Follow *follow)
{
    const gboolean terminal = terminal_columns(STDERR_FILENO) > 0;
    const long longest_ms = terminal ? TERMINAL_INTERVAL_MS : PLAIN_INTERVAL_MS;
    long wait_ms = FIRST_INTERVAL_MS;
    gint64 last_line_us = g_get_monotonic_time();
    uint64_t came = 0;
    unsigned stops = 0;
    sigset_t signals;
    block_signals(&signals);
    for (;;) {
        g_autoptr(GError) error = NULL;
        json_auto_t *job = follow_ask(follow->ctl, follow->id, &error);
        if (!job)
            return fail(follow->ctl, error, terminal);
        const uint64_t done = ctl_number(job, "bytesDone"), held = ctl_number(job, "bytesHeld");
        came = MAX(came, done - MIN(held, done));
        if (!follow_is_running(job)) {
            if (terminal)
                fputs(CLEAR, stderr);
            return follow_result(follow, job, came);
        }
        if (terminal)
            draw_bar(job);
        else
            print_line(job, &last_line_us);
        /* Often at first: most jobs on a warm volume are over at once. */
        const struct timespec wait = {wait_ms / 1000, wait_ms % 1000 * 1000000};
        wait_ms = MIN(wait_ms * 2, longest_ms);
        const int signal = sigtimedwait(&signals, NULL, &wait);
        if (signal != SIGINT && signal != SIGTERM)
            continue;
        if (++stops > 1)
            return leave(follow);
        if (!follow_cancel(follow->ctl, follow->id, &error))
            return fail(follow->ctl, error, terminal);
    }
}
