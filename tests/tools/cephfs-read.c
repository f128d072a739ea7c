/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a file through libcephfs alone, with a clock: what is to be compared with a cold read.
 *
 *   cephfs-read CONF USER KEYRING FS PATH [THREADS [BLOCK]]
 *
 * The threads take blocks in turn, as a fill does. Prints MB/s.
 */
#include <cephfs/libcephfs.h>
#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static struct ceph_mount_info *mount_info;
static int fd;
static int64_t block = 4 << 20;
static atomic_llong next_block, bytes;

static void check(const char *what, int rc)
{
    if (rc >= 0)
        return;
    fprintf(stderr, "cephfs-read: %s: %s\n", what, g_strerror(-rc));
    exit(1);
}

static void *run_thread(void *data)
{
    (void)data;
    g_autofree char *buf = g_malloc((size_t)block);
    for (;;) {
        int64_t at = atomic_fetch_add(&next_block, 1) * block;
        int n = ceph_read(mount_info, fd, buf, block, at);
        check("read", n);
        if (n == 0)
            return NULL;
        atomic_fetch_add(&bytes, n);
    }
}

int main(int argc, char **argv)
{
    if (argc < 6) {
        fprintf(stderr, "usage: cephfs-read CONF USER KEYRING FS PATH [THREADS [BLOCK]]\n");
        return 2;
    }
    int threads = argc > 6 ? CLAMP(atoi(argv[6]), 1, 64) : 4;
    block = argc > 7 ? atoll(argv[7]) : block;
    check("create", ceph_create(&mount_info, argv[2]));
    check(argv[1], ceph_conf_read_file(mount_info, argv[1]));
    check("keyring", ceph_conf_set(mount_info, "keyring", argv[3]));
    /* As every process that reads in parallel: the object cacher would do it under one lock. */
    check("client_oc", ceph_conf_set(mount_info, "client_oc", "false"));
    check(argv[4], ceph_select_filesystem(mount_info, argv[4]));
    check("mount", ceph_mount(mount_info, "/"));
    fd = ceph_open(mount_info, argv[5], O_RDONLY, 0);
    check(argv[5], fd);
    pthread_t ids[64];
    gint64 start = g_get_monotonic_time();
    for (int i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, run_thread, NULL);
    for (int i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    double seconds = (double)(g_get_monotonic_time() - start) / G_USEC_PER_SEC;
    printf("%.1f\n", (double)atomic_load(&bytes) / 1e6 / seconds);
    ceph_close(mount_info, fd);
    ceph_unmount(mount_info);
    ceph_release(mount_info);
    return 0;
}
