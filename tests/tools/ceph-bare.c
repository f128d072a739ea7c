/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What CreateVolume and DeleteVolume stand for, without a driver: the same commands over one
 * connection of librados, from one thread for each operation in flight. The other side of
 * `make bench-csi`.
 *
 *   ceph-bare cephfs CEPH.CONF ID KEYRING [fs=NAME] [group=NAME] in-flight=N count=N
 *   ceph-bare rbd CEPH.CONF ID KEYRING [pool=NAME] in-flight=N count=N
 *   ceph-bare resident ...   both for each volume; prints its resident size, in KiB, instead
 *
 *   CephFS   fs subvolume create (size, mode), fs subvolume getpath; fs subvolume rm
 *   RBD      rbd_create4; rbd_remove
 *
 * Prints a line of JSON for each volume: {"start", "create", "remove"}, start in seconds since the
 * first, the others in ms. Options of the connection are those of the driver.
 */
#include <glib.h>
#include <malloc.h>
#include <pthread.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Bench {
    rados_t cluster;
    rados_ioctx_t io;
    const char *fs, *group, *pool;
    int in_flight, count;
    gint64 begin_us;
    atomic_int next;
    pthread_mutex_t print;
    pthread_barrier_t started;
} Bench;

static void die(const char *what, int rc)
{
    fprintf(stderr, "ceph-bare: %s: %s\n", what, g_strerror(-rc));
    exit(1);
}

/* One command to the mgr; the answer is not looked at. */
static void mgr(Bench *b, const char *prefix, const char *name, const char *more)
{
    g_autofree char *text =
        g_strdup_printf("{\"prefix\": \"%s\", \"vol_name\": \"%s\", \"group_name\": \"%s\", "
                        "\"sub_name\": \"%s\", \"format\": \"json\"%s}",
                        prefix, b->fs, b->group, name, more);
    const char *command = text;
    char *output, *status;
    size_t output_length, status_length;
    int rc = rados_mgr_command(b->cluster, &command, 1, NULL, 0, &output, &output_length, &status,
                               &status_length);
    if (rc != 0)
        die(prefix, rc);
    rados_buffer_free(output);
    rados_buffer_free(status);
}

static void cephfs_create(Bench *b, const char *name)
{
    mgr(b, "fs subvolume create", name, ", \"size\": 1073741824, \"mode\": \"777\"");
    mgr(b, "fs subvolume getpath", name, "");
}

static void cephfs_remove(Bench *b, const char *name)
{
    mgr(b, "fs subvolume rm", name, "");
}

static void rbd_make(Bench *b, const char *name)
{
    rbd_image_options_t options;
    rbd_image_options_create(&options);
    int rc = rbd_create4(b->io, name, 1 << 30, options);
    rbd_image_options_destroy(options);
    if (rc != 0)
        die("rbd_create4", rc);
}

static void rbd_unmake(Bench *b, const char *name)
{
    int rc = rbd_remove(b->io, name);
    if (rc != 0)
        die("rbd_remove", rc);
}

static void make_both(Bench *b, const char *name)
{
    cephfs_create(b, name);
    rbd_make(b, name);
}

static void remove_both(Bench *b, const char *name)
{
    cephfs_remove(b, name);
    rbd_unmake(b, name);
}

static const struct Kind {
    const char *name;
    void (*create)(Bench *b, const char *name);
    void (*remove)(Bench *b, const char *name);
} kinds[] = {{"cephfs", cephfs_create, cephfs_remove},
             {"rbd", rbd_make, rbd_unmake},
             {"resident", make_both, remove_both}};

static const struct Kind *kind;

static double ms_since(gint64 us)
{
    return (double)(g_get_monotonic_time() - us) / 1000;
}

static void *work(void *data)
{
    Bench *b = data;
    pthread_barrier_wait(&b->started);
    int i;
    while ((i = atomic_fetch_add(&b->next, 1)) < b->count) {
        g_autofree char *name = g_strdup_printf("bare-%d-%d", (int)getpid(), i);
        gint64 start_us = g_get_monotonic_time();
        kind->create(b, name);
        double create_ms = ms_since(start_us);
        gint64 remove_us = g_get_monotonic_time();
        kind->remove(b, name);
        double remove_ms = ms_since(remove_us);
        if (kind->create == make_both)
            continue;
        pthread_mutex_lock(&b->print);
        printf("{\"start\": %.6f, \"create\": %.3f, \"remove\": %.3f}\n",
               (double)(start_us - b->begin_us) / G_USEC_PER_SEC, create_ms, remove_ms);
        pthread_mutex_unlock(&b->print);
    }
    return NULL;
}

static void connect_cluster(Bench *b, char **argv)
{
    const char *const options[][2] = {{"keyring", argv[4]},       {"ms_async_op_threads", "1"},
                                      {"log_to_stderr", "false"}, {"log_file", ""},
                                      {"admin_socket", ""},       {"rados_osd_op_timeout", "30"},
                                      {"rbd_cache", "false"}};
    g_autofree char *entity = g_strconcat("client.", argv[3], NULL);
    int rc = rados_create2(&b->cluster, "ceph", entity, 0);
    if (rc == 0)
        rc = rados_conf_read_file(b->cluster, argv[2]);
    for (guint i = 0; rc == 0 && i < G_N_ELEMENTS(options); i++)
        rc = rados_conf_set(b->cluster, options[i][0], options[i][1]);
    if (rc == 0)
        rc = rados_connect(b->cluster);
    if (rc == 0 && kind->create != cephfs_create)
        rc = rados_ioctx_create(b->cluster, b->pool, &b->io);
    if (rc != 0)
        die("connecting", rc);
}

static void print_resident(void)
{
    g_autofree char *status = NULL;
    g_file_get_contents("/proc/self/status", &status, NULL, NULL);
    const char *line = status ? strstr(status, "VmRSS:") : NULL;
    printf("%ld\n", line ? strtol(line + strlen("VmRSS:"), NULL, 10) : 0L);
}

int main(int argc, char **argv)
{
    Bench b = {.fs = "hearthfs", .group = "csi", .pool = "rbd", .in_flight = 1, .count = 1};
    for (guint i = 0; argc > 4 && i < G_N_ELEMENTS(kinds); i++) {
        if (strcmp(kinds[i].name, argv[1]) == 0)
            kind = &kinds[i];
    }
    for (int i = 5; i < argc; i++) {
        if (g_str_has_prefix(argv[i], "fs="))
            b.fs = argv[i] + 3;
        else if (g_str_has_prefix(argv[i], "group="))
            b.group = argv[i] + 6;
        else if (g_str_has_prefix(argv[i], "pool="))
            b.pool = argv[i] + 5;
        else if (sscanf(argv[i], "in-flight=%d", &b.in_flight) != 1 &&
                 sscanf(argv[i], "count=%d", &b.count) != 1)
            kind = NULL;
    }
    if (!kind || b.in_flight < 1 || b.in_flight > 256) {
        fprintf(stderr, "usage: ceph-bare cephfs|rbd|resident CEPH.CONF ID KEYRING [fs=NAME] "
                        "[group=NAME] [pool=NAME] in-flight=N count=N\n");
        return 2;
    }
    mallopt(M_ARENA_MAX, 2); /* as the driver */
    connect_cluster(&b, argv);
    pthread_mutex_init(&b.print, NULL);
    pthread_barrier_init(&b.started, NULL, (unsigned)b.in_flight + 1);
    pthread_t threads[256];
    for (int i = 0; i < b.in_flight; i++)
        pthread_create(&threads[i], NULL, work, &b);
    b.begin_us = g_get_monotonic_time();
    pthread_barrier_wait(&b.started);
    for (int i = 0; i < b.in_flight; i++)
        pthread_join(threads[i], NULL);
    if (kind->create == make_both)
        print_resident();
    if (b.io)
        rados_ioctx_destroy(b.io);
    rados_shutdown(b.cluster);
    return 0;
}
