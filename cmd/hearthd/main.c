/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hearthd: the cache of one node. Reads flags, opens the store, serves the control socket until
 * SIGTERM or SIGINT. The socket's appearance says that it is ready.
 *
 * A cache directory that cannot be used is no reason not to serve volumes: hearthd then runs with
 * the store off and says so in its log and in "status".
 */
#include "cache/control/server.h"
#include "common/size.h"
#include "proto/wire.h"
#include "cache/fuse/readers.h"
#include "cache/origin/rbd/io_flusher.h"
#include "cache/origin/thread_room.h"
#include "cmd/hearthd/crashes.h"
#include "cmd/hearthd/memory.h"
#include "cmd/hearthd/standby.h"
#include "common/descriptor_limit.h"
#include "common/log.h"
#include "common/metrics/serve.h"
#include "common/no_cores.h"
#include "common/tasks.h"
#include <errno.h>
#include <gio/gio.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Kubernetes kills what has not ended after terminationGracePeriodSeconds. */
#define STOP_TIMEOUT_MS 8500
#define STOP_ALARM_SEC 10
/* Larger objects are fetched as far as they are read. */
#define WHOLE_BYTES (4u << 20)
#define DEFAULT_LOW_PERCENT 80
#define DEFAULT_HIGH_PERCENT 90
/* Longer than a predecessor may take to stop that does not keep its lock so long (standby.h). */
#define BUSY_TIMEOUT_SEC 30

typedef struct Options {
    char *socket, *cache_dir, *cache_size, *warm_rate, *scrub_rate, *image_chunk, *verity, *memory,
        *log_level, *log_format, *dir_root;
    MetricsConfig metrics;
    gint64 cache_inodes, live_inodes;
    uint64_t cache_bytes;  /* of cache_size; 0: no bound */
    uint64_t warm_bytes;   /* of warm_rate, a second; 0: no bound */
    uint64_t scrub_bytes;  /* of scrub_rate, a second; 0: none */
    uint64_t chunk_bytes;  /* of image_chunk; 0: its default */
    uint64_t memory_bytes; /* of memory; 0: its default */
    int high, low, fill_threads, fuse_threads, max_threads;
    gboolean no_cache, require_cache, version;
} Options;

static void clear_options(Options *o)
{
    g_free(o->socket);
    g_free(o->cache_dir);
    g_free(o->cache_size);
    g_free(o->warm_rate);
    g_free(o->scrub_rate);
    g_free(o->image_chunk);
    g_free(o->verity);
    g_free(o->memory);
    g_free(o->log_level);
    g_free(o->log_format);
    metrics_config_clear(&o->metrics);
    g_free(o->dir_root);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Options, clear_options)

static const char summary[] = "Serves CephFS volumes and RBD images through a cache in a local "
                              "directory. The node plugin of Hearth\n"
                              "(hearth-csi --role=node) and hearthctl talk to it over --socket.";

static const char description[] =
    "Sizes are bytes, or a number with K, M, G, T (powers of 1000) or Ki, Mi, Gi, Ti (powers of\n"
    "1024). The cache directory should be on an ext4 or XFS file system of its own, on NVMe.\n"
    "\n"
    "Examples:\n"
    "  hearthd --cache-dir=/var/lib/hearth --cache-size=800G\n"
    "  hearthd --no-cache --socket=/tmp/hearthd.sock --log-level=debug\n";

static gboolean bad_value(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean bad_value(GError **error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (error)
        *error = g_error_new_valist(G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, format, args);
    va_end(args);
    return FALSE;
}

static gboolean check_range(const char *name, int value, int min, int max, GError **error)
{
    if (value == 0 || (value >= min && value <= max))
        return TRUE;
    return bad_value(error, "--%s=%d: must be %d to %d", name, value, min, max);
}

static gboolean check_absolute(const char *name, const char *path, GError **error)
{
    return !path || path[0] == '/' ||
           bad_value(error, "--%s=%s: must be an absolute path", name, path);
}

static gboolean check_cache_dir(const Options *o, GError **error)
{
    if (!o->no_cache && (!o->cache_dir || !o->cache_dir[0]))
        return bad_value(error, "--cache-dir is missing: name a directory on a local disk, or give "
                                "--no-cache to serve without a cache");
    if (o->no_cache && (o->cache_dir || o->require_cache))
        return bad_value(error, "--no-cache excludes --cache-dir and --require-cache");
    return check_absolute("cache-dir", o->cache_dir, error) &&
           check_absolute("dir-root", o->dir_root, error);
}

static gboolean check_chunk(const Options *o, GError **error)
{
    const gboolean in_range = o->chunk_bytes >= 4096 && o->chunk_bytes <= (4u << 20);
    const gboolean power_of_two = (o->chunk_bytes & (o->chunk_bytes - 1)) == 0;
    if (!o->image_chunk || (in_range && power_of_two))
        return TRUE;
    return bad_value(error, "--image-chunk=%s: must be a power of two, 4Ki to 4Mi", o->image_chunk);
}

static gboolean check_sizes(Options *o, GError **error)
{
    o->scrub_bytes = STORE_SCRUB_DAILY;
    const struct {
        const char *name, *text;
        uint64_t *bytes;
    } sizes[] = {
        {"--cache-size", o->cache_size, &o->cache_bytes},
        {"--scrub-rate", o->scrub_rate, &o->scrub_bytes},
        {"--image-chunk", o->image_chunk, &o->chunk_bytes},
        {"--warm-rate", o->warm_rate, &o->warm_bytes},
        {"--memory", o->memory, &o->memory_bytes},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        g_autoptr(GError) cause = NULL;
        if (sizes[i].text && !size_parse(sizes[i].name, sizes[i].text, sizes[i].bytes, &cause))
            return bad_value(error, "%s", cause->message);
    }
    if (o->cache_size && o->cache_bytes == 0)
        return bad_value(error, "--cache-size=0: give --no-cache to serve without a cache");
    if (o->memory && o->memory_bytes < MEMORY_LEAST_BYTES)
        return bad_value(error, "--memory=%s: must be at least 128Mi", o->memory);
    return check_chunk(o, error);
}

static gboolean check_count(const char *name, gint64 value, GError **error)
{
    return value >= 0 ||
           bad_value(error, "--%s=%" G_GINT64_FORMAT ": must be 0 (no bound) or more", name, value);
}

static gboolean check_numbers(const Options *o, GError **error)
{
    const struct {
        const char *name;
        int value, min, max;
    } ranges[] = {
        {"high-watermark", o->high, 2, 100},           {"low-watermark", o->low, 1, 99},
        {"fill-threads", o->fill_threads, 1, 64},      {"fuse-threads", o->fuse_threads, 1, 256},
        {"max-threads", o->max_threads, 200, 1000000},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(ranges); i++)
        if (!check_range(ranges[i].name, ranges[i].value, ranges[i].min, ranges[i].max, error))
            return FALSE;
    if (!check_count("cache-inodes", o->cache_inodes, error) ||
        (o->live_inodes != MEMORY_LIVE_INODES_UNSET &&
         !check_count("live-inodes", o->live_inodes, error)))
        return FALSE;
    const int low = o->low ? o->low : DEFAULT_LOW_PERCENT;
    const int high = o->high ? o->high : DEFAULT_HIGH_PERCENT;
    if (low >= high)
        return bad_value(error, "--low-watermark=%d: must be below --high-watermark=%d", low, high);
    return TRUE;
}

static gboolean check_options(Options *o, GError **error)
{
    if (!check_cache_dir(o, error))
        return FALSE;
    if (!metrics_check(&o->metrics, error))
        return FALSE;
    if (!check_sizes(o, error))
        return FALSE;
    if (o->verity && strcmp(o->verity, "auto") != 0 && strcmp(o->verity, "off") != 0)
        return bad_value(error, "--verity=%s: must be auto or off", o->verity);
    return check_numbers(o, error);
}

static gboolean parse_options(int *argc, char ***argv, Options *o, GError **error)
{
    const GOptionEntry entries[] = {
        {"socket", 's', 0, G_OPTION_ARG_FILENAME, &o->socket,
         "Control socket (default: " WIRE_DEFAULT_SOCKET
         "); while another hearthd serves it, this one "
         "waits",
         "PATH"},
        {"cache-dir", 0, 0, G_OPTION_ARG_FILENAME, &o->cache_dir,
         "Directory of the cache; made when there is none", "DIR"},
        {"cache-size", 0, 0, G_OPTION_ARG_STRING, &o->cache_size,
         "Most bytes to cache (default: what the file system has)", "SIZE"},
        {"cache-inodes", 0, 0, G_OPTION_ARG_INT64, &o->cache_inodes,
         "Most files to cache (default: what the file system has)", "N"},
        {"high-watermark", 0, 0, G_OPTION_ARG_INT, &o->high,
         "Evict when fuller than this percentage (default: 90)", "PERCENT"},
        {"low-watermark", 0, 0, G_OPTION_ARG_INT, &o->low,
         "Evict down to this percentage (default: 80)", "PERCENT"},
        {"fill-threads", 0, 0, G_OPTION_ARG_INT, &o->fill_threads,
         "Threads that fetch into the cache, long waits for Ceph not counted (default: 32)", "N"},
        {"fuse-threads", 0, 0, G_OPTION_ARG_INT, &o->fuse_threads,
         "Threads that serve all volumes, those that wait for Ceph not counted (default: 16)", "N"},
        {"live-inodes", 0, 0, G_OPTION_ARG_INT64, &o->live_inodes,
         "Files and directories of live volumes that are remembered, at most, those in use apart; "
         "2.25 KB each; needs Linux 6.18 (default: 100000, or fewer by --memory; 0: no bound)",
         "N"},
        {"memory", 0, 0, G_OPTION_ARG_STRING, &o->memory,
         "Memory for what is remembered of all volumes and kept by clients of Ceph (default: half "
         "of the limit of the cgroup, at most 2Gi)",
         "SIZE"},
        {"max-threads", 0, 0, G_OPTION_ARG_INT, &o->max_threads,
         "Threads with which no more connections to Ceph are made (default: what pids.max and the "
         "kernel allow)",
         "N"},
        {"warm-rate", 0, 0, G_OPTION_ARG_STRING, &o->warm_rate,
         "Most bytes a second of a warm job that a volume begins (warm: onStage; default: no "
         "bound)",
         "SIZE"},
        {"scrub-rate", 0, 0, G_OPTION_ARG_STRING, &o->scrub_rate,
         "Bytes a second that are read to verify what is cached (default: all of it within a day; "
         "0: none)",
         "SIZE"},
        {"image-chunk", 0, 0, G_OPTION_ARG_STRING, &o->image_chunk,
         "What a read that misses the cache fetches of an RBD image (default: 64Ki)", "SIZE"},
        {"verity", 0, 0, G_OPTION_ARG_STRING, &o->verity,
         "auto: the kernel checks each page of what is cached (fs-verity); off (default)", "WHEN"},
        {"no-cache", 0, 0, G_OPTION_ARG_NONE, &o->no_cache, "Read everything from Ceph", NULL},
        {"require-cache", 0, 0, G_OPTION_ARG_NONE, &o->require_cache,
         "Exit when the cache directory cannot be used, instead of serving without", NULL},
        {"dir-root", 0, 0, G_OPTION_ARG_FILENAME, &o->dir_root,
         "Also serve type=dir, directories below this one, for development (default: none)", "DIR"},
        METRICS_OPTIONS(&o->metrics),
        {"log-level", 0, 0, G_OPTION_ARG_STRING, &o->log_level,
         "error, warning, info (default) or debug", "LEVEL"},
        {"log-format", 0, 0, G_OPTION_ARG_STRING, &o->log_format,
         "json (default), or text as klog writes it", "FORMAT"},
        {"version", 0, 0, G_OPTION_ARG_NONE, &o->version, "Print the version and exit", NULL},
        G_OPTION_ENTRY_NULL};
    g_autoptr(GOptionContext) context = g_option_context_new(NULL);
    g_option_context_set_summary(context, summary);
    g_option_context_set_description(context, description);
    g_option_context_add_main_entries(context, entries, NULL);
    if (!g_option_context_parse(context, argc, argv, error))
        return FALSE;
    if (*argc > 1)
        return bad_value(error, "unexpected argument '%s'; see hearthd --help", (*argv)[1]);
    return o->version || check_options(o, error);
}

/*
 * A hearthd of 0.1.0, or one that could not stop in time, holds the directory for longer than the
 * socket: an upgrade must not leave the new hearthd without its cache. A signal ends the wait.
 */
static Store *open_when_free(const StoreConfig *config, const sigset_t *signals, GError **error)
{
    gint64 deadline = g_get_monotonic_time() + BUSY_TIMEOUT_SEC * G_USEC_PER_SEC;
    const struct timespec interval = {.tv_nsec = 100 * 1000000};
    for (gboolean logged = FALSE;; logged = TRUE) {
        g_autoptr(GError) failed = NULL;
        Store *store = store_open(config, &failed);
        if (store)
            return store;
        gboolean busy = g_error_matches(failed, G_IO_ERROR, G_IO_ERROR_BUSY) &&
                        g_get_monotonic_time() < deadline;
        if (busy && !logged)
            g_message("waiting for the hearthd that uses %s to end", config->dir);
        if (!busy) {
            g_propagate_error(error, g_steal_pointer(&failed));
            return NULL;
        }
        if (sigtimedwait(signals, NULL, &interval) > 0) {
            g_set_error(error, G_IO_ERROR, G_IO_ERROR_CANCELLED, "stopped while it waited for %s",
                        config->dir);
            return NULL;
        }
    }
}

/* NULL with *error NULL: serve without a cache. */
static Store *open_store(const Options *o, const sigset_t *signals, GError **error)
{
    if (o->no_cache)
        return NULL;
    const StoreConfig config = {
        .dir = o->cache_dir,
        .max_bytes = o->cache_bytes,
        .max_inodes = (uint64_t)o->cache_inodes,
        .high_percent = (unsigned)o->high,
        .low_percent = (unsigned)o->low,
        .fill_threads = (unsigned)o->fill_threads,
        .whole_bytes = WHOLE_BYTES,
        .verity = o->verity && strcmp(o->verity, "auto") == 0,
        .scrub_bytes_per_sec = o->scrub_bytes,
    };
    g_autoptr(GError) failed = NULL;
    Store *store = open_when_free(&config, signals, &failed);
    if (store)
        return store;
    if (o->require_cache || g_error_matches(failed, G_IO_ERROR, G_IO_ERROR_CANCELLED)) {
        g_propagate_error(error, g_steal_pointer(&failed));
        return NULL;
    }
    g_critical("serving without a cache, every read goes to Ceph: %s; fix the cause and restart "
               "hearthd",
               failed->message);
    return NULL;
}

static int print_failure(const GError *error)
{
    fprintf(stderr, "hearthd: %s\n", error->message);
    return error->domain == G_OPTION_ERROR ? 2 : 1;
}

/* Ceph may never answer a request; a mount that is not served any more must not wait for it. */
static void exit_on_alarm(int signal_number)
{
    (void)signal_number;
    standby_end(); /* a thread in the kernel may keep the process for longer */
    static const char text[] =
        "{\"level\":\"error\",\"program\":\"hearthd\",\"msg\":\"stopping took "
        "too long, ending now\"}\n";
    if (write(STDERR_FILENO, text, sizeof(text) - 1) < 0)
        _exit(2);
    _exit(1);
}

static void wait_for_signal(const sigset_t *signals)
{
    int number;
    while (sigwait(signals, &number) != 0)
        ;
    g_message("stopping: %s", strsignal(number));
    struct sigaction action = {.sa_handler = exit_on_alarm};
    sigaction(SIGALRM, &action, NULL);
    alarm(STOP_ALARM_SEC);
}

static void warn_of_io_flusher(void)
{
    if (!io_flusher_allowed())
        g_warning("threads that serve images may wait for their own write-back when memory is "
                  "short: give hearthd CAP_SYS_RESOURCE, which PR_SET_IO_FLUSHER takes");
}

static void suspect_requests(unsigned crashes)
{
    if (crashes < CRASHES_MANY)
        return;
    g_warning("hearthd has crashed %u times in a row: requests that were under way then are "
              "answered with EIO",
              crashes);
    readers_fail_redelivered(TRUE);
}

static GBytes *metrics_of(void *server)
{
    return control_server_metrics(server);
}

int main(int argc, char **argv)
{
    g_auto(Options) o = {.live_inodes = MEMORY_LIVE_INODES_UNSET};
    g_autoptr(GError) error = NULL;
    no_cores("hearthd");
    /* With glibc's default of eight a core, memory that threads of libcephfs once used stays
     * allocated: 30 MB while files are filled. */
    mallopt(M_ARENA_MAX, 4);
    wire_wipe_freed_json();
    if (!parse_options(&argc, &argv, &o, &error))
        return print_failure(error);
    if (o.version) {
        printf("hearthd %s\n", HEARTH_VERSION);
        return 0;
    }
    if (!log_init("hearthd", o.log_level, o.log_format, &error))
        return print_failure(error);
    /* Each node of a directory origin and each open object is a descriptor. */
    const int limited = raise_descriptor_limit();
    if (limited != 0)
        g_warning("cannot raise the limit of open files: %s", g_strerror(limited));
    warn_of_io_flusher();
    umask(077);
    /* Blocked before the first thread, so that every thread leaves them to sigwait(). */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    const char *socket_path = o.socket ? o.socket : WIRE_DEFAULT_SOCKET;
    const Standby standby = standby_begin(socket_path, &signals, &error);
    if (standby != STANDBY_SERVES)
        return standby == STANDBY_ENDS ? 0 : print_failure(error);
    tasks_common(); /* without a thread it could not begin later */
    suspect_requests(crashes_begin(socket_path));

    Store *store = open_store(&o, &signals, &error);
    if (error)
        return print_failure(error);
    const ControlServerConfig config = {
        .socket_path = socket_path,
        .store = store,
        .cache_dir = o.cache_dir,
        .dir_root = o.dir_root,
        .warm_rate = o.warm_bytes,
        .image_chunk_bytes = (uint32_t)o.chunk_bytes,
    };
    readers_set_threads((unsigned)o.fuse_threads);
    memory_divide(o.memory_bytes, (unsigned)o.fill_threads, o.live_inodes);
    thread_room_set_most((unsigned)o.max_threads);
    ControlServer *server = control_server_start(&config, &error);
    MetricsServer *metrics = NULL;
    if (server && o.metrics.address) {
        metrics = metrics_server_new(&o.metrics, metrics_of, server, &error);
        if (!metrics)
            control_server_stop(g_steal_pointer(&server), STOP_TIMEOUT_MS);
    }
    if (!server) {
        if (store)
            store_close(store);
        return print_failure(error);
    }
    g_message("hearthd %s serves %s, cache %s", HEARTH_VERSION, config.socket_path,
              store ? o.cache_dir : "off");
    wait_for_signal(&signals);
    metrics_server_free(metrics);
    const gboolean stopped = control_server_stop(server, STOP_TIMEOUT_MS);
    if (stopped && store)
        store_close(store);
    if (stopped) {
        crashes_end();
        g_message("stopped");
    }
    standby_end();
    /* Threads that wait for Ceph are left behind; they use what exit() would destroy. */
    fflush(NULL);
    _exit(stopped ? 0 : 1);
}
