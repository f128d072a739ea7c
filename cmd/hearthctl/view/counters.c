/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/view/counters.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"
#include "proto/wire_keys.h"
#include <string.h>

static void add_store(Lines *lines, const json_t *cache, const View *view)
{
    const uint64_t max = ctl_number(cache, "maxBytes");
    g_autofree char *used = size_format(ctl_number(cache, "bytes"));
    g_autofree char *bound = size_format(max);
    g_autofree char *left = size_format(ctl_number(cache, "freeBytes"));
    g_autofree char *fetched = size_format(ctl_number(cache, "originBytes"));
    lines_add(lines, view, "cache %s: %s of %s in %" G_GUINT64_FORMAT " objects, %s free",
              ctl_string(cache, "dir"), used, max ? bound : "no bound",
              ctl_number(cache, "objects"), left);
    lines_add(lines, view,
              "since start: %s fetched, %" G_GUINT64_FORMAT " fills done, %" G_GUINT64_FORMAT
              " under way, %" G_GUINT64_FORMAT " failed; %" G_GUINT64_FORMAT " disk errors",
              fetched, ctl_number(cache, "fillsCompleted"), ctl_number(cache, "fillsActive"),
              ctl_number(cache, "fillsFailed"), ctl_number(cache, "diskErrors"));
}

static void add_scrub(Lines *lines, const json_t *cache, gint64 now_ms, const View *view)
{
    const json_t *scrub = json_object_get(cache, "scrub");
    const uint64_t ended = ctl_number(scrub, "endedMs"), now = (uint64_t)now_ms;
    const uint64_t bad = ctl_number(cache, "badObjects");
    const char *verity = ctl_string(cache, "verity");
    g_autofree char *ago = words_duration(now > ended ? (now - ended) / 1000 : 0);
    g_autofree char *read = size_format(ctl_number(scrub, "bytes"));
    g_autoptr(GString) text = g_string_new(NULL);
    if (strcmp(verity, WIRE_VERITY_OFF) != 0)
        g_string_append_printf(text, "fs-verity: %s; ", verity);
    if (!ctl_number(scrub, "bytesPerSec"))
        g_string_append(text, "scrub: off; ");
    else if (ended)
        g_string_append_printf(text, "scrub: %s verified, ended %s ago; ", read, ago);
    else
        g_string_append_printf(text, "scrub: %s verified so far; ", read);
    lines_add(lines, view, "%s%" G_GUINT64_FORMAT " bad object%s found since start", text->str, bad,
              words_plural(bad));
}

/* An earlier hearthd, beside which an upgrade may run this hearthctl, does not have them. */
static void add_uses(Lines *lines, const json_t *daemon, const View *view)
{
    const json_t *memory = json_object_get(daemon, "memory");
    const json_t *kinds = json_object_get(memory, "kinds");
    if (!memory)
        return;
    uint64_t used = 0, most = 0;
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        used += ctl_number(json_array_get(kinds, i), "bytes");
        most += ctl_number(json_array_get(kinds, i), "maxBytes");
    }
    const uint64_t threads = ctl_number(daemon, "maxThreads");
    g_autofree char *resident = size_format(ctl_number(memory, "residentBytes"));
    g_autofree char *granted = size_format(used), *budget = size_format(most);
    g_autofree char *bound =
        threads ? g_strdup_printf(" of %" G_GUINT64_FORMAT, threads) : g_strdup("");
    lines_add(lines, view,
              "pid %" G_GUINT64_FORMAT "; memory: %s resident; %s of %s granted to volumes; "
              "%" G_GUINT64_FORMAT " threads%s, %" G_GUINT64_FORMAT " connections to CephFS",
              ctl_number(daemon, "pid"), resident, granted, budget, ctl_number(daemon, "threads"),
              bound, ctl_number(daemon, "cephfsConnections"));
}

void counters_add(Lines *lines, const json_t *status, gint64 now_ms, const View *view)
{
    const json_t *cache = json_object_get(status, "cache");
    if (strcmp(ctl_string(cache, "disk"), WIRE_DISK_OFF) != 0) {
        add_store(lines, cache, view);
        add_scrub(lines, cache, now_ms, view);
    }
    add_uses(lines, json_object_get(status, "daemon"), view);
}

void counters_add_faults(Lines *lines, const json_t *cache, const View *view)
{
    const uint64_t errors = ctl_number(cache, "diskErrors"), bad = ctl_number(cache, "badObjects");
    const uint64_t failed = ctl_number(cache, "fillsFailed");
    g_autofree char *word = style_text("since start:", STYLE_WARN, view->colour);
    if (errors || bad || failed)
        lines_add(lines, view,
                  "%s %" G_GUINT64_FORMAT " disk errors, %" G_GUINT64_FORMAT
                  " bad objects, %" G_GUINT64_FORMAT " failed fills (hearthctl doctor)",
                  word, errors, bad, failed);
}
