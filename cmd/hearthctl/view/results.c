/* SPDX-License-Identifier: Apache-2.0 */
/* The results of commands that have no table. */
#include "cmd/hearthctl/view/view.h"
#include "cmd/hearthctl/client/client.h"
#include "cmd/hearthctl/client/text.h"
#include "cmd/hearthctl/report/lines.h"
#include "cmd/hearthctl/report/progress.h"
#include "cmd/hearthctl/report/words.h"
#include "common/size.h"

char **view_evicted(const json_t *result, const View *view)
{
    Lines *lines = lines_new();
    g_autofree char *freed = size_format(ctl_number(result, "freedBytes"));
    g_autofree char *kept = size_format(ctl_number(result, "pinnedBytes"));
    lines_add(lines, view, "%s freed", freed);
    if (ctl_number(result, "pinnedBytes"))
        lines_add(lines, view, "%s are pinned and were skipped; --pinned drops them too", kept);
    return lines_end(lines);
}

char **view_pinned(const json_t *result, const View *view)
{
    Lines *lines = lines_new();
    g_autofree char *name = text_printable(ctl_name(result, "volume"));
    g_autofree char *size = size_format(ctl_number(result, "bytes"));
    if (json_is_true(json_object_get(result, "pinned")))
        lines_add(lines, view,
                  "%s: pinned; %s of it are in the cache now (hearthctl warm fetches the rest)",
                  name, size);
    else
        lines_add(lines, view, "%s: not pinned any more", name);
    return lines_end(lines);
}

char **view_bad_object(const json_t *bad, const View *view)
{
    Lines *lines = lines_new();
    g_autofree char *path = text_printable(ctl_string(bad, "path"));
    g_autofree char *object = text_printable(ctl_string(bad, "object"));
    g_autofree char *word = style_text("bad:", STYLE_BAD, view->colour);
    lines_add(lines, view, "%s %s%s%s", word, path, path[0] ? ", object " : "object ", object);
    return lines_end(lines);
}

char **view_verified(const json_t *result, const View *view)
{
    Lines *lines = lines_new();
    const uint64_t objects = ctl_number(result, "objects");
    const uint64_t unchecked = ctl_number(result, "unchecked");
    g_autofree char *bytes = size_format(ctl_number(result, "bytes"));
    lines_add(lines, view, "%" G_GUINT64_FORMAT " object%s, %s: %zu bad", objects,
              words_plural(objects), bytes, json_array_size(json_object_get(result, "bad")));
    if (unchecked)
        lines_add(lines, view,
                  "%" G_GUINT64_FORMAT " of them could not be compared: the index was lost since",
                  unchecked);
    return lines_end(lines);
}

char **view_job(const json_t *job, gboolean cancel, const View *view)
{
    Lines *lines = lines_new();
    g_autofree char *text = progress_text(job), *name = text_printable(ctl_name(job, "volume"));
    lines_add(lines, view, "%s: %s%s", name, text, cancel ? ", being cancelled" : "");
    return lines_end(lines);
}

char **view_version(const json_t *versions, const View *view)
{
    Lines *lines = lines_new();
    g_autofree char *version = text_printable(ctl_string(versions, "hearthd"));
    lines_add(lines, view, "hearthctl %s", ctl_string(versions, "hearthctl"));
    lines_add(lines, view, "hearthd   %s (pid %" G_GUINT64_FORMAT ")", version,
              ctl_number(versions, "pid"));
    return lines_end(lines);
}
