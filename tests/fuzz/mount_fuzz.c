/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mount flags of a capability, lines of /proc/self/mountinfo, and SELinux contexts in either. What
 * is refused must say so in valid UTF-8, and a context that is taken must be the same when it is
 * read again from the line that the kernel would write.
 */
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include "driver/node/mount/fs_options.h"
#include "driver/node/mount/mount.h"
#include "driver/node/mount/selinux.h"

static void check_error(gboolean good, const GError *error)
{
    if (good ? error != NULL : !error || !g_utf8_validate(error->message, -1, NULL))
        abort();
}

static void check_context(const char *context)
{
    g_autofree char *line = g_strdup_printf(
        "1 2 0:7 / /m rw - fuse.hearth hearth:v rw,context=\"%s\",user_id=0", context);
    g_autoptr(MountEntry) entry = mount_parse_line(line);
    if (!entry || !entry->context || !selinux_same(entry->context, context))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *raw = g_strndup((const char *)data, size);
    g_autofree char *text = g_utf8_make_valid(raw, -1); /* as on the wire */
    g_auto(GStrv) flags = g_strsplit(text, "\n", -1);
    const guint n = g_strv_length(flags);
    static const char *const types[] = {"ext4", "xfs", NULL};
    uint64_t attrs;
    g_autofree char *context = NULL;
    g_autoptr(GError) error = NULL;
    gboolean good = mount_parse_flags(flags, n, &attrs, &context, &error);
    check_error(good, error);
    if (context)
        check_context(context);
    for (guint i = 0; i < G_N_ELEMENTS(types); i++) {
        g_autofree char *other = NULL;
        g_autoptr(GError) cause = NULL;
        g_auto(GStrv) options = fs_options_parse(types[i], flags, n, &attrs, &other, &cause);
        check_error(options != NULL, cause);
        if (g_strcmp0(other, context) != 0 && context)
            abort();
    }
    g_autoptr(GPtrArray) table = mount_parse(raw);
    for (guint i = 0; i < n; i++) {
        g_autofree char *line = g_strdup_printf("1 2 0:7 / /m rw - overlay hearth:v %s", flags[i]);
        g_autoptr(MountEntry) entry = mount_parse_line(line);
        if (i > 0 && entry && entry->context)
            selinux_same(entry->context, flags[i - 1]);
    }
    return 0;
}
