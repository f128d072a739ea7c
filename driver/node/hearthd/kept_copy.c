/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/node/hearthd/kept_copy.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include "common/autofd.h"
#include "common/monotonic.h"
#include "driver/node/hearthd/spec.h"
#include "proto/keep.h"
#include "proto/wire.h"
#include "proto/wire_keys.h"

#define AGAIN_MS 1000
/* It answers at once, unless it is frozen. */
#define CALL_SEC 2
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
#define KEY_NOTE "note"

struct KeptCopy {
    char *path;
    Keeper *keeper;
    GHashTable *mounted; /* until it is loaded; NULL: not known */
    gboolean loaded;
    int link;     /* to hearth-keeper; -1 */
    int reported; /* what was said last of the link: 0 or an errno */
    int wake;     /* eventfd */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t settled; /* all that was marked is copied, or there is no link */
    GHashTable *changed;    /* lock: char *, volumes */
    gboolean linked;        /* lock */
    gboolean busy;          /* lock: some are being copied */
    gboolean stopping;      /* lock */
};

/* ---- one volume */

/* A sealed memfd with the text of `json`, or -1. */
static int seal_json(const json_t *json)
{
    hearth_autofd int fd = memfd_create("hearth-kept", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const size_t size = json_dumpb(json, NULL, 0, JSON_COMPACT);
    if (fd < 0 || size == 0 || ftruncate(fd, (off_t)size) < 0)
        return -1;
    void *text = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (text == MAP_FAILED)
        return -1;
    json_dumpb(json, text, size, JSON_COMPACT);
    munmap(text, size);
    return fcntl(fd, F_ADD_SEALS, SEALS) < 0 ? -1 : hearth_steal_fd(&fd);
}

static json_t *read_sealed(int fd)
{
    struct stat st;
    const int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size <= 0 ||
        st.st_size > WIRE_MAX_MESSAGE)
        return NULL;
    const size_t size = (size_t)st.st_size;
    void *text = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
    if (text == MAP_FAILED)
        return NULL;
    json_t *json = json_loadb(text, size, 0, NULL);
    munmap(text, size);
    return json;
}

/* Not 0: an errno; the request's descriptors are the caller's in any case. */
static int pack(const char *volume, const KeptMount *mount, KeepMessage *request)
{
    strcpy(request->name, volume);
    json_auto_t *kept = json_pack("{s:O, s:s*}", WIRE_KEY_SPEC, mount->spec, KEY_NOTE, mount->note);
    request->fds[0] = kept ? seal_json(kept) : -1;
    if (request->fds[0] < 0)
        return errno ? errno : ENOMEM;
    request->fds[1] = mount->fuse_fd;
    request->fds[2] = mount->state_fd;
    request->n_fds = mount->state_fd >= 0 ? 3 : 2;
    return 0;
}

/* Takes the descriptors that it uses. FALSE: this is no copy of a mount. */
static gboolean unpack(Keeper *keeper, KeepMessage *held)
{
    node_spec_auto_t *kept = held->n_fds >= 2 ? read_sealed(held->fds[0]) : NULL;
    const json_t *spec = json_object_get(kept, WIRE_KEY_SPEC);
    const char *of = json_string_value(json_object_get(spec, WIRE_KEY_VOLUME));
    const KeptResume resume = {.note = json_string_value(json_object_get(kept, KEY_NOTE)),
                               .state_fd = held->n_fds == 3 ? held->fds[2] : -1};
    if (g_strcmp0(of, held->name) != 0 || (!resume.note && resume.state_fd < 0))
        return FALSE;
    keeper_put_loaded(keeper, held->name, spec, &resume, held->fds[1]);
    held->n_fds = 1;
    return TRUE;
}

/* ---- all of them */

static void set_linked(KeptCopy *c, gboolean linked)
{
    pthread_mutex_lock(&c->lock);
    c->linked = linked;
    pthread_cond_broadcast(&c->settled);
    pthread_mutex_unlock(&c->lock);
}

static void lose_link(KeptCopy *c, int rc)
{
    hearth_close_fd(&c->link);
    set_linked(c, FALSE);
    if (rc != c->reported)
        g_message("hearth-keeper at %s: %s; without it the mounts of this node end when hearthd "
                  "and the node plugin end at the same time",
                  c->path, g_strerror(rc));
    c->reported = rc;
}

/* An errno of the link, which is closed then; what hearth-keeper answered is in the reply. */
static int call(KeptCopy *c, const KeepMessage *request, KeepMessage *reply)
{
    int rc = keep_send(c->link, request, 0);
    if (rc == 0)
        rc = keep_receive(c->link, reply, 0);
    if (rc != 0)
        lose_link(c, -rc);
    return rc;
}

static void drop(KeptCopy *c, const char *volume)
{
    KeepMessage request = {.what = KEEP_DROP}, reply;
    g_strlcpy(request.name, volume, sizeof(request.name));
    if (call(c, &request, &reply) == 0)
        keep_close(&reply);
}

static void put(KeptCopy *c, const char *volume, const KeptMount *mount)
{
    KeepMessage request = {.what = KEEP_PUT, .fds = {-1, -1, -1}}, reply = {0};
    /* A copy that it has is of an earlier state. */
    int rc = 0, refused = mount->spec ? pack(volume, mount, &request) : EMFILE;
    if (refused == 0)
        rc = call(c, &request, &reply);
    if (rc == 0 && refused == 0)
        refused = reply.what;
    keep_close(&reply);
    hearth_close_fd(&request.fds[0]);
    if (rc != 0 || refused == 0)
        return;
    g_warning("volume %s: hearth-keeper cannot keep it: %s", volume, g_strerror(refused));
    drop(c, volume);
}

static void copy_one(KeptCopy *c, const char *volume)
{
    g_auto(KeptMount) mount = KEPT_MOUNT_NONE;
    if (keeper_look(c->keeper, volume, &mount))
        put(c, volume, &mount);
    else
        drop(c, volume);
}

static void mark(void *data, const char *volume)
{
    KeptCopy *c = data;
    if (strlen(volume) > KEEP_NAME_MAX)
        return;
    pthread_mutex_lock(&c->lock);
    g_hash_table_add(c->changed, g_strdup(volume));
    pthread_mutex_unlock(&c->lock);
    eventfd_write(c->wake, 1);
}

/* Takes what it uses of `held`. */
static void load(KeptCopy *c, KeepMessage *held)
{
    if ((!c->mounted || g_hash_table_contains(c->mounted, held->name)) && !unpack(c->keeper, held))
        g_warning("volume %s: what hearth-keeper has of it is not known here", held->name);
}

/* The names of all that is held, which is loaded the first time; the caller's. NULL: the link is
 * lost. */
static GPtrArray *walk(KeptCopy *c)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    KeepMessage request = {.what = KEEP_NEXT}, held;
    for (;;) {
        if (call(c, &request, &held) != 0)
            return NULL;
        if (held.what != 0)
            return g_steal_pointer(&names);
        if (!c->loaded)
            load(c, &held);
        keep_close(&held);
        g_ptr_array_add(names, g_strdup(held.name));
        memcpy(request.name, held.name, sizeof(request.name));
    }
}

static void mark_all(KeptCopy *c, GPtrArray *volumes)
{
    for (guint i = 0; i < volumes->len; i++)
        mark(c, volumes->pdata[i]);
}

/* What is held and not kept, after the first time, is dropped. */
static void begin_link(KeptCopy *c)
{
    c->link = keep_connect(c->path, CALL_SEC);
    if (c->link < 0) {
        const int rc = -c->link;
        c->link = -1;
        lose_link(c, rc);
        return;
    }
    g_autoptr(GPtrArray) held = walk(c);
    if (!held)
        return;
    c->loaded = TRUE;
    c->reported = 0;
    set_linked(c, TRUE);
    g_autoptr(GPtrArray) kept = keeper_volumes(c->keeper);
    mark_all(c, held);
    mark_all(c, kept);
}

static GHashTable *take_changed(KeptCopy *c, gboolean *stopping)
{
    GHashTable *none = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    pthread_mutex_lock(&c->lock);
    GHashTable *changed = c->changed;
    c->changed = none;
    c->busy = TRUE;
    *stopping = c->stopping;
    pthread_mutex_unlock(&c->lock);
    return changed;
}

/* A lost link needs no list of what is left to do: all is copied over the next one. */
static void copy_changed(KeptCopy *c, GHashTable *changed)
{
    GHashTableIter iter;
    gpointer volume;
    g_hash_table_iter_init(&iter, changed);
    while (c->link >= 0 && g_hash_table_iter_next(&iter, &volume, NULL))
        copy_one(c, volume);
    pthread_mutex_lock(&c->lock);
    c->busy = FALSE;
    pthread_cond_broadcast(&c->settled);
    pthread_mutex_unlock(&c->lock);
}

static void rest(KeptCopy *c)
{
    const struct timespec until = deadline_after_ms(AGAIN_MS);
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    while (rc == 0 && !c->stopping)
        rc = pthread_cond_timedwait(&c->settled, &c->lock, &until);
    pthread_mutex_unlock(&c->lock);
}

static void wait_for_change(KeptCopy *c)
{
    eventfd_t count;
    struct pollfd fds[] = {{.fd = c->wake, .events = POLLIN}, {.fd = c->link, .events = POLLRDHUP}};
    if (c->link < 0) {
        rest(c);
        return;
    }
    poll(fds, 2, -1);
    if (fds[0].revents)
        eventfd_read(c->wake, &count);
    if (fds[1].revents)
        lose_link(c, ECONNRESET);
}

static void *copy_thread(void *data)
{
    KeptCopy *c = data;
    for (gboolean stopping = FALSE; !stopping;) {
        wait_for_change(c);
        if (c->link < 0)
            begin_link(c);
        g_autoptr(GHashTable) changed = take_changed(c, &stopping);
        copy_changed(c, changed);
    }
    return NULL;
}

KeptCopy *kept_copy_new(const char *hearthd_socket, Keeper *keeper, GHashTable *mounted)
{
    KeptCopy *c = g_new0(KeptCopy, 1);
    g_autofree char *directory = g_path_get_dirname(hearthd_socket);
    c->path = g_build_filename(directory, KEEP_SOCKET, NULL);
    c->link = -1;
    c->keeper = keeper;
    c->mounted = mounted ? g_hash_table_ref(mounted) : NULL;
    c->changed = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    pthread_mutex_init(&c->lock, NULL);
    cond_init_monotonic(&c->settled);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (c->wake < 0)
        g_error("eventfd: %s", g_strerror(errno));
    keeper_on_change(keeper, mark, c);
    begin_link(c);
    const int rc = pthread_create(&c->thread, NULL, copy_thread, c);
    if (rc != 0)
        g_error("no thread: %s", g_strerror(rc));
    return c;
}

void kept_copy_settle(KeptCopy *c, gint64 timeout_ms)
{
    const struct timespec until = deadline_after_ms((uint64_t)timeout_ms);
    int rc = 0;
    pthread_mutex_lock(&c->lock);
    while (rc == 0 && c->linked && (c->busy || g_hash_table_size(c->changed) > 0))
        rc = pthread_cond_timedwait(&c->settled, &c->lock, &until);
    pthread_mutex_unlock(&c->lock);
}

void kept_copy_free(KeptCopy *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = TRUE;
    pthread_cond_broadcast(&c->settled);
    pthread_mutex_unlock(&c->lock);
    eventfd_write(c->wake, 1);
    pthread_join(c->thread, NULL);
    keeper_on_change(c->keeper, NULL, NULL);
    hearth_close_fd(&c->link);
    close(c->wake);
    if (c->mounted)
        g_hash_table_unref(c->mounted);
    g_hash_table_unref(c->changed);
    pthread_cond_destroy(&c->settled);
    pthread_mutex_destroy(&c->lock);
    g_free(c->path);
    g_free(c);
}
