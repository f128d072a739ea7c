/* SPDX-License-Identifier: Apache-2.0 */
/* What commands with one result say: evict, pin, unpin, verify, job, version. */
#include "tests/unit/cmd/hearthctl/golden.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/view/view.h"

static void add_all(Lines *all, char **lines)
{
    for (char **line = lines; *line; line++)
        lines_add_taken(all, *line);
    g_free(lines);
}

static json_t *parse(const char *text)
{
    json_error_t error;
    json_t *json = json_loads(text, 0, &error);
    ck_assert_msg(json != NULL, "%s: %s", text, error.text);
    return json;
}

static void add(Lines *all, char **(*show)(const json_t *result, const View *view),
                const char *text, const View *view)
{
    json_auto_t *result = parse(text);
    add_all(all, show(result, view));
}

static char **evict_lines(const json_t *answers, const View *view)
{
    (void)answers;
    Lines *all = lines_new();
    add(all, view_evicted, "{\"freedBytes\": 53687091200, \"pinnedBytes\": 0}", view);
    add(all, view_evicted, "{\"freedBytes\": 0, \"pinnedBytes\": 171798691840}", view);
    return lines_end(all);
}

static char **pin_lines(const json_t *answers, const View *view)
{
    (void)answers;
    Lines *all = lines_new();
    add(all, view_pinned,
        "{\"volume\": \"dataset-0f3c\", \"name\": \"imagenet@2026-11\", \"pinned\": true, "
        "\"bytes\": 171798691840}",
        view);
    add(all, view_pinned,
        "{\"volume\": \"h1~cephfs~955aba63-f154-4ea1-b2f2-0242ac110002~hearthfs~csi~csi-vol-pvc-1\""
        ", \"pinned\": true, \"bytes\": 0}",
        view);
    add(all, view_pinned, "{\"volume\": \"v\", \"name\": \"train/data\", \"pinned\": false}", view);
    return lines_end(all);
}

static char **verify_lines(const json_t *answers, const View *view)
{
    (void)answers;
    Lines *all = lines_new();
    add(all, view_bad_object,
        "{\"path\": \"train/\\u65e5\\u672c\\u001b[2Jshard-000.tar\", \"object\": "
        "\"0f3c11d2aa34bb900f3c11d2aa34bb900f3c11d2aa34bb900f3c11d2aa34bb90\"}",
        view);
    add(all, view_bad_object, "{\"path\": \"\", \"object\": \"0f3c11d2\"}", view);
    add(all, view_verified,
        "{\"objects\": 5000, \"bytes\": 171798691840, \"unchecked\": 0, \"bad\": [{}, {}]}", view);
    add(all, view_verified, "{\"objects\": 1, \"bytes\": 0, \"unchecked\": 1, \"bad\": []}", view);
    return lines_end(all);
}

static char **job_lines(const json_t *answers, const View *view)
{
    Lines *all = lines_new();
    const json_t *jobs = json_object_get(answers, "jobs");
    for (size_t i = 0; i < json_array_size(jobs); i++)
        add_all(all, view_job(json_array_get(jobs, i), i == 0, view));
    return lines_end(all);
}

static char **version_lines(const json_t *answers, const View *view)
{
    (void)answers;
    Lines *all = lines_new();
    add(all, view_version, "{\"hearthctl\": \"0.1.0\", \"hearthd\": \"0.0.9\", \"pid\": 4711}",
        view);
    return lines_end(all);
}

START_TEST(results_of_commands)
{
    golden_check("evict.txt", NULL, evict_lines);
    golden_check("pin.txt", NULL, pin_lines);
    golden_check("verify.txt", NULL, verify_lines);
    golden_check("version.txt", NULL, version_lines);
}
END_TEST

START_TEST(a_job_by_its_number)
{
    json_auto_t *answers = golden_answers("jobs.json");
    golden_check("job.txt", answers, job_lines);
}
END_TEST

HARNESS_MAIN("cmd/hearthctl/results", results_of_commands, a_job_by_its_number)
