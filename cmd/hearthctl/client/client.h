/* SPDX-License-Identifier: Apache-2.0 */
/* Used by every subcommand of hearthctl: options, errors, calls of hearthd. */
#ifndef HEARTH_CMD_HEARTHCTL_CLIENT_CLIENT_H
#define HEARTH_CMD_HEARTHCTL_CLIENT_CLIENT_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

enum {
    CTL_OK = 0,
    CTL_FAILED = 1,
    CTL_USAGE = 2,
};

#define CTL_WIDE_HELP "Show everything, also what does not fit the terminal"

typedef struct Ctl {
    char *socket_path;
    int socket;     /* -1 until the first call */
    int timeout_ms; /* of a call; 0: the usual one */
    gboolean no_colour;
    char *as; /* what the user types for "hearthctl"; NULL: that */
} Ctl;

/* What a subcommand's --help says beside its options; each may be NULL. */
typedef struct CtlHelp {
    const char *usage; /* names the arguments */
    const char *about; /* before the options */
    const char *notes; /* after them */
} CtlHelp;

/* Parses the options of a subcommand, --socket among them. FALSE with a usage error. */
gboolean ctl_parse(Ctl *ctl, int *argc, char ***argv, const GOptionEntry *entries,
                   const CtlHelp *help, GError **error);
/* Prints "hearthctl: ..." and gives the exit code. */
int ctl_fail(const Ctl *ctl, const GError *error);
void ctl_usage_error(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* Calls hearthd; takes the request. */
json_t *ctl_call(Ctl *ctl, json_t *request, GError **error);
/* The same with a descriptor (borrowed; -1: none). */
json_t *ctl_call_with(Ctl *ctl, json_t *request, int fd, GError **error);
/* One that may take any time, such as reading the whole cache: it fails when hearthd does not
 * answer anything meanwhile. */
json_t *ctl_call_long(Ctl *ctl, json_t *request, GError **error);
/* Closes the connection: the next call makes another. */
void ctl_disconnect(Ctl *ctl);
/* All pages of an op that lists, as one array: the op's name is the list's too, and `id` the member
 * of an element that the next page begins after. */
json_t *ctl_pages(Ctl *ctl, const char *op, const char *id, GError **error);
/* All jobs of hearthd, running and ended, oldest first. */
json_t *ctl_jobs(Ctl *ctl, GError **error);
/* The mounts of pods of this node that nobody serves any more: LostMount * (mounts.h), the
 * caller's. `served`: all pages of op "volumes". NULL: the mount table cannot be read. */
GPtrArray *ctl_lost_mounts(const json_t *served);
/* Publication * of pods (driver/node/mount/publications.h), the caller's; NULL: the mount table
 * cannot be read. */
GPtrArray *ctl_publications(void);
/* Whether nobody serves it any more. It takes a second at most. */
gboolean ctl_mount_is_dead(const char *point);
/*
 * The names of files in `from` ("-": standard input), one a line, as a memfd for op "warm".
 * Absolute ones must be beneath the path `above`, and come without it. -1 with an error.
 */
int ctl_list_files(const char *from, const char *above, GError **error);
/*
 * What VOLUME|PATH on the command line names: the ID, and the path inside the volume ("" for its
 * root). A path begins with "/", "./" or "../", or is "." or "..". Any other word may be each name
 * that hearthd knows (op "resolve").
 */
gboolean ctl_find_volume(Ctl *ctl, const char *argument, char **volume, char **inside,
                         GError **error);

/* The request {"op", "volume"} for what VOLUME|PATH on the command line names as a whole; NULL with
 * a usage or lookup error. */
json_t *ctl_whole_volume(Ctl *ctl, const char *op, const char *argument, GError **error);

/* What people call the volume with this ID, for messages; the ID itself where hearthd does not say.
 * The caller's. */
char *ctl_title(Ctl *ctl, const char *volume);

/* What people call a volume or dataset of a reply, for tables; borrowed. An earlier hearthd has
 * only the ID, member `id`. */
static inline const char *ctl_name(const json_t *object, const char *id)
{
    const char *name = json_string_value(json_object_get(object, "name"));
    const char *text = name && *name ? name : json_string_value(json_object_get(object, id));
    return text ? text : "";
}

static inline uint64_t ctl_number(const json_t *object, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(object, name));
    return n > 0 ? (uint64_t)n : 0;
}

static inline const char *ctl_string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

#endif
