/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One file for each location and user, named by a hash of both. It is written whole and linked
 * under its name, so that it is complete or not there. The oldest one goes when there are too many.
 */
#include "cache/volume/last_seen.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>
#include "common/autofd.h"
#include "cache/volume/key_hash.h"
#include "cache/store/disk/key.h"

/* 1: without a key. Such a note is listed, but no dataset is opened by it. */
#define VERSION 2
#define PREFIX "place."
#define MAX_BYTES 16384

/* The members that identify a location and user; the reference is the caller's. */
static json_t *location_of(const VolumeSpec *spec)
{
    return json_pack("{s:i, s:s, s:s, s:s, s:s}", "version", VERSION, "clusterID", spec->cluster_id,
                     "fsName", spec->fs_name, "rootPath", spec->root_path, "userID", spec->user_id);
}

static char *path_of(const char *dir, const json_t *location)
{
    char *text = json_dumps(location, JSON_COMPACT | JSON_SORT_KEYS);
    XXH128_canonical_t hash;
    ObjectId id;
    char hex[33];
    XXH128_canonicalFromHash(&hash, XXH3_128bits(text, strlen(text)));
    memcpy(id.bytes, hash.digest, sizeof(id.bytes));
    object_id_hex(&id, hex);
    free(text);
    return g_strconcat(dir, "/" PREFIX, hex, NULL);
}

/* NULL: there is none, or none that can be read. */
static json_t *read_note(const char *path)
{
    json_t *note = NULL;
    struct stat st;
    hearth_autofd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= MAX_BYTES)
        note = json_loadfd(fd, JSON_REJECT_DUPLICATES, NULL);
    return note;
}

/* The dataset in the note of the spec's location and user, NULL without one; *key, the hash in it,
 * is the caller's too. */
static char *find_note(const char *dir, const VolumeSpec *spec, char **key)
{
    json_auto_t *location = location_of(spec);
    g_autofree char *path = path_of(dir, location);
    json_auto_t *note = read_note(path);
    ObjectId id;
    char *dataset = g_strdup(json_string_value(json_object_get(note, "dataset")));
    *key = g_strdup(json_string_value(json_object_get(note, "key")));
    json_object_del(note, "dataset");
    json_object_del(note, "key");
    if (!dataset || !*key || !json_equal(note, location) || !object_id_parse(dataset, &id)) {
        g_clear_pointer(&dataset, g_free);
        g_clear_pointer(key, g_free);
    }
    return dataset;
}

char *last_seen_dataset(const char *dir, const VolumeSpec *spec)
{
    g_autofree char *key = NULL;
    return find_note(dir, spec, &key);
}

gboolean last_seen_key_matches(const char *dir, const VolumeSpec *spec)
{
    g_autofree char *key = NULL, *dataset = find_note(dir, spec, &key);
    return dataset && key_hash_matches(key, spec->user_key);
}

void last_seen_forget(const char *dir, const VolumeSpec *spec)
{
    json_auto_t *location = location_of(spec);
    g_autofree char *path = path_of(dir, location);
    unlink(path);
}

/* The same location may be noted for several users. */
static void add_location(json_t *all, const char *dataset, json_t *note)
{
    static const char *const names[] = {"clusterID", "fsName", "rootPath"};
    json_auto_t *location = json_object();
    json_t *list = json_object_get(all, dataset), *other;
    size_t i;
    for (i = 0; i < G_N_ELEMENTS(names); i++)
        json_object_set(location, names[i], json_object_get(note, names[i]));
    if (!list) {
        list = json_array();
        json_object_set_new(all, dataset, list);
    }
    json_array_foreach (list, i, other)
        if (json_equal(other, location))
            break;
    if (i == json_array_size(list))
        json_array_append(list, location);
}

json_t *last_seen_list(const char *dir)
{
    json_t *all = json_object();
    DIR *files = opendir(dir);
    for (struct dirent *e; files && (e = readdir(files));) {
        if (!g_str_has_prefix(e->d_name, PREFIX))
            continue;
        g_autofree char *path = g_build_filename(dir, e->d_name, NULL);
        json_auto_t *note = read_note(path);
        const char *dataset = json_string_value(json_object_get(note, "dataset"));
        ObjectId id;
        const json_int_t version = json_integer_value(json_object_get(note, "version"));
        const gboolean known = version >= 1 && version <= VERSION;
        if (known && dataset && object_id_parse(dataset, &id))
            add_location(all, dataset, note);
    }
    if (files)
        closedir(files);
    return all;
}

/* The oldest one beyond the bound. */
static void make_room(const char *dir)
{
    g_autofree char *oldest = NULL;
    struct timespec when = {0};
    unsigned n = 0;
    DIR *all = opendir(dir);
    for (struct dirent *e; all && (e = readdir(all));) {
        struct stat st;
        if (!g_str_has_prefix(e->d_name, PREFIX) ||
            fstatat(dirfd(all), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
            continue;
        n++;
        if (oldest && (st.st_mtim.tv_sec > when.tv_sec ||
                       (st.st_mtim.tv_sec == when.tv_sec && st.st_mtim.tv_nsec > when.tv_nsec)))
            continue;
        g_free(oldest);
        oldest = g_strdup(e->d_name);
        when = st.st_mtim;
    }
    if (n >= LAST_SEEN_MAX)
        unlinkat(dirfd(all), oldest, 0);
    if (all)
        closedir(all);
}

/* Durably, so that it outlives the node's reboot. */
static gboolean write_note(const char *dir, const char *path, const char *text)
{
    char self[32];
    hearth_autofd int fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    const size_t n = strlen(text);
    if (fd < 0 || write(fd, text, n) != (ssize_t)n || fsync(fd) != 0)
        return FALSE;
    unlink(path);
    snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
    if (linkat(fd, "", AT_FDCWD, path, AT_EMPTY_PATH) < 0 &&
        linkat(AT_FDCWD, self, AT_FDCWD, path, AT_SYMLINK_FOLLOW) < 0 && errno != EEXIST)
        return FALSE;
    hearth_autofd int dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return dir_fd >= 0 && fsync(dir_fd) == 0;
}

void last_seen_note(const char *dir, const VolumeSpec *spec, const char *dataset)
{
    g_autofree char *key = NULL, *known = find_note(dir, spec, &key);
    if (g_strcmp0(known, dataset) == 0 && key_hash_matches(key, spec->user_key))
        return;
    if (!known)
        make_room(dir);
    json_auto_t *note = location_of(spec);
    g_autofree char *path = path_of(dir, note), *hash = key_hash_new(spec->user_key);
    json_object_set_new(note, "dataset", json_string(dataset));
    json_object_set_new(note, "key", json_string(hash));
    char *text = json_dumps(note, JSON_COMPACT | JSON_SORT_KEYS);
    if (!write_note(dir, path, text)) {
        g_warning("dataset %s: it cannot be noted in %s where it is (%s), so it cannot be staged "
                  "while Ceph is away",
                  dataset, path, g_strerror(errno));
        unlink(path); /* its key is not the last one that Ceph accepted */
    }
    free(text);
}
