/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Only options in the table are passed on: some others break what an fsync(2) promises
 * (nobarrier), reach for other devices (journal_path, logdev), or take the node down
 * (errors=panic).
 */
#include "driver/node/mount/fs_options.h"
#include <string.h>
#include "driver/node/mount/mount.h"
#include "driver/node/mount/mount_words.h"
#include "driver/node/mount/selinux.h"

enum { EXT4 = 1, XFS = 2, BOTH = EXT4 | XFS };

static const struct {
    const char *name; /* up to "=": with a value; with something after it: that value only */
    unsigned types;
} known[] = {
    {"discard", BOTH},
    {"nodiscard", BOTH},
    {"lazytime", BOTH},
    {"commit=", EXT4},
    {"data=ordered", EXT4},
    {"data=journal", EXT4},
    {"data=writeback", EXT4},
    {"errors=remount-ro", EXT4},
    {"errors=continue", EXT4},
    {"delalloc", EXT4},
    {"nodelalloc", EXT4},
    {"stripe=", EXT4},
    {"inode_readahead_blks=", EXT4},
    {"journal_checksum", EXT4},
    {"dioread_nolock", EXT4},
    {"noinit_itable", EXT4},
    {"init_itable", EXT4},
    {"nouuid", XFS},
    {"allocsize=", XFS},
    {"inode64", XFS},
    {"largeio", XFS},
    {"nolargeio", XFS},
    {"swalloc", XFS},
    {"noalign", XFS},
    {"logbsize=", XFS},
    {"logbufs=", XFS},
    {"wsync", XFS},
    {"noquota", XFS},
};

static unsigned mask_of(const char *fs_type)
{
    if (!fs_type)
        return BOTH;
    return strcmp(fs_type, "xfs") == 0 ? XFS : EXT4;
}

static gboolean is_known(const char *word, unsigned types)
{
    for (guint i = 0; i < G_N_ELEMENTS(known); i++) {
        const char *name = known[i].name;
        gboolean matches = g_str_has_suffix(name, "=")
                               ? g_str_has_prefix(word, name) && word[strlen(name)]
                               : strcmp(word, name) == 0;
        if (matches && (known[i].types & types))
            return TRUE;
    }
    return FALSE;
}

static void refuse_option(const char *word, unsigned types, gboolean labelled, GError **error)
{
    static const char *const scopes[] = {[EXT4] = " with ext4", [XFS] = " with xfs", [BOTH] = ""};
    g_autoptr(GString) names = g_string_new(MOUNT_FLAGS_KNOWN);
    for (guint i = 0; i < G_N_ELEMENTS(known); i++)
        if (known[i].types & types)
            g_string_append_printf(names, ", %s%s", known[i].name,
                                   g_str_has_suffix(known[i].name, "=") ? "..." : "");
    g_autofree char *shown = mount_word_shown(word);
    hearth_fail(error, HEARTH_ERROR_INVALID_ARGUMENT,
                "mount option \"%s\" is not supported%s; use %s%s", shown, scopes[types],
                names->str, selinux_hint(labelled));
}

/* Whether it is an option of any mount. */
static gboolean is_general(const char *word)
{
    uint64_t attrs;
    g_autofree char *context = NULL;
    return selinux_is_option(word) ||
           mount_parse_flags((char *const *)&word, 1, &attrs, &context, NULL);
}

char **fs_options_parse(const char *fs_type, char *const *flags, size_t n, uint64_t *attrs,
                        char **context, GError **error)
{
    const unsigned types = mask_of(fs_type);
    g_autoptr(GPtrArray) general = g_ptr_array_new_with_free_func(g_free);
    g_autoptr(GPtrArray) own = g_ptr_array_new_with_free_func(g_free);
    gboolean labelled = FALSE;
    for (size_t i = 0; i < n; i++) {
        g_auto(GStrv) words = mount_words(flags[i], error);
        if (!words)
            return NULL;
        for (char **word = words; *word; word++) {
            labelled = labelled || selinux_is_option(*word);
            if (is_general(*word)) {
                g_ptr_array_add(general, g_strdup(*word));
            } else if (is_known(*word, types)) {
                g_ptr_array_add(own, g_strdup(*word));
            } else {
                refuse_option(*word, types, labelled, error);
                return NULL;
            }
        }
    }
    if (!mount_parse_flags((char *const *)general->pdata, general->len, attrs, context, error))
        return NULL;
    g_ptr_array_add(own, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&own), FALSE);
}
