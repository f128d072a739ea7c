/* SPDX-License-Identifier: Apache-2.0 */
/* hearthctl jobs and job: the warm jobs of hearthd, and one of them. */
#include "cmd/hearthctl/client/commands.h"
#include "cmd/hearthctl/follow.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/report/words.h"
#include "cmd/hearthctl/view/view.h"
#include <stdio.h>

static const CtlHelp job_help = {
    .usage = "NUMBER",
    .about = "Shows a warm job, follows or cancels it.",
    .notes = "hearthd remembers the last 64 jobs that ended.\n\nExamples:\n"
             "  hearthctl job 7\n  hearthctl job 7 --wait\n  hearthctl job 7 --cancel\n",
};

static char *warm_command(const json_t *job)
{
    const char *path = ctl_string(job, "path");
    g_autofree char *name = words_shell(ctl_name(job, "volume")), *inside = words_shell(path);
    return g_strdup_printf("hearthctl warm %s%s%s", name, path[0] ? " --path " : "",
                           path[0] ? inside : "");
}

static int print_job(Follow *follow, gboolean cancel, GError **error)
{
    json_auto_t *job = follow_ask(follow->ctl, follow->id, error);
    if (!job)
        return CTL_FAILED;
    g_autofree char *again = warm_command(job);
    const uint64_t done = ctl_number(job, "bytesDone"), held = ctl_number(job, "bytesHeld");
    follow->again = again;
    if (!follow_is_running(job))
        return follow_result(follow, job, done - MIN(held, done));
    const View view = view_stdout(follow->ctl, FALSE);
    if (follow->as_json)
        lines_print_json(job);
    else
        lines_print(view_job(job, cancel, &view));
    return CTL_OK;
}

static int follow_known(Follow *follow, GError **error)
{
    json_auto_t *job = follow_ask(follow->ctl, follow->id, error);
    if (!job)
        return CTL_FAILED;
    g_autofree char *again = warm_command(job);
    follow->again = again;
    return follow_job(follow);
}

int ctl_job(Ctl *ctl, int argc, char **argv)
{
    gboolean cancel = FALSE, wait = FALSE;
    Follow follow = {.ctl = ctl};
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"cancel", 0, 0, G_OPTION_ARG_NONE, &cancel, "Cancel the job", NULL},
        {"wait", 'w', 0, G_OPTION_ARG_NONE, &wait, "Follow it until it has ended", NULL},
        {"json", 0, 0, G_OPTION_ARG_NONE, &follow.as_json, "Print one JSON object", NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &job_help, &error))
        return ctl_fail(ctl, error);
    if (argc != 2 || !g_ascii_string_to_unsigned(argv[1], 10, 1, G_MAXINT64, &follow.id, NULL)) {
        ctl_usage_error(&error, "job: name one job by its number%s%s; hearthctl jobs lists them",
                        argc == 2 ? ", not " : "", argc == 2 ? argv[1] : "");
        return ctl_fail(ctl, error);
    }
    if (cancel && !follow_cancel(ctl, follow.id, &error))
        return ctl_fail(ctl, error);
    const int code = wait ? follow_known(&follow, &error) : print_job(&follow, cancel, &error);
    if (error)
        return ctl_fail(ctl, error);
    return cancel ? CTL_OK : code;
}

static const CtlHelp jobs_help = {
    .usage = "",
    .about = "Lists the warm jobs of this node: those that run, then those that ended.",
    .notes = "ETA is the time left at the job's rate. A job runs in hearthd: it goes on when the\n"
             "terminal of its 'hearthctl warm' is closed. hearthd remembers the last 64 jobs that\n"
             "ended, until it is restarted.\n"
             "\n"
             "Examples:\n"
             "  hearthctl jobs\n"
             "  hearthctl job 7 --wait\n"
             "  hearthctl jobs --json | jq '.[] | select(.state == \"running\").job'\n",
};

int ctl_jobs_command(Ctl *ctl, int argc, char **argv)
{
    gboolean as_json = FALSE, wide = FALSE;
    g_autoptr(GError) error = NULL;
    const GOptionEntry entries[] = {
        {"json", 'j', 0, G_OPTION_ARG_NONE, &as_json, "Print a JSON array", NULL},
        {"wide", 'w', 0, G_OPTION_ARG_NONE, &wide, CTL_WIDE_HELP, NULL},
        G_OPTION_ENTRY_NULL};
    if (!ctl_parse(ctl, &argc, &argv, entries, &jobs_help, &error))
        return ctl_fail(ctl, error);
    if (argc > 1) {
        ctl_usage_error(&error, "jobs: unexpected argument '%s'; one job is hearthctl job NUMBER",
                        argv[1]);
        return ctl_fail(ctl, error);
    }
    json_auto_t *jobs = ctl_jobs(ctl, &error);
    json_auto_t *volumes = jobs ? ctl_pages(ctl, "volumes", "volume", &error) : NULL;
    if (!volumes)
        return ctl_fail(ctl, error);
    const View view = view_stdout(ctl, wide);
    if (as_json)
        lines_print_json(jobs);
    else
        lines_print(view_jobs(jobs, volumes, g_get_real_time() / 1000, &view));
    return CTL_OK;
}
