/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another client of images, through plain librbd. Says "ok" when all are open, then answers each
 * line it reads with "ok [ANSWER]" or "fail REASON":
 *
 *     rbd-client CONF POOL NAMESPACE IMAGE...
 *     write TEXT        at the start of the first image
 *     read N            N bytes from the start of the first
 *     count MS          writes 1, 2, 3, ... as 8 bytes at the start of each image in turn, each
 *                       after the one before is acknowledged; answers with the last number and the
 *                       longest a write took, in ms
 */
#include <glib.h>
#include <rados/librados.h>
#include <rbd/librbd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_IMAGES 8

static int answer(int rc, const char *text)
{
    if (rc < 0)
        printf("fail %s\n", g_strerror(-rc));
    else
        printf("ok%s%s\n", *text ? " " : "", text);
    fflush(stdout);
    return rc;
}

static void count(rbd_image_t *images, int n, gint64 ms)
{
    gint64 end_us = g_get_monotonic_time() + ms * 1000, worst_us = 0;
    guint64 number = 0;
    ssize_t rc = 0;
    while (rc >= 0 && g_get_monotonic_time() < end_us) {
        number++;
        gint64 start_us = g_get_monotonic_time();
        rc = rbd_write(images[number % (guint64)n], 0, sizeof(number), (const char *)&number);
        worst_us = MAX(worst_us, g_get_monotonic_time() - start_us);
    }
    g_autofree char *text =
        g_strdup_printf("%" G_GUINT64_FORMAT " %" G_GINT64_FORMAT, number, worst_us / 1000);
    answer((int)rc, text);
}

static void serve(rbd_image_t *images, int n)
{
    char line[4096], bytes[4096];
    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\n")] = '\0';
        if (g_str_has_prefix(line, "write ")) {
            answer((int)rbd_write(images[0], 0, strlen(line + 6), line + 6), "");
        } else if (g_str_has_prefix(line, "read ")) {
            ssize_t rc =
                rbd_read(images[0], 0, MIN((size_t)atoi(line + 5), sizeof(bytes) - 1), bytes);
            bytes[MAX(rc, 0)] = '\0';
            answer((int)rc, bytes);
        } else if (g_str_has_prefix(line, "count ")) {
            count(images, n, atoi(line + 6));
        } else {
            answer(-EINVAL, "");
        }
    }
}

int main(int argc, char **argv)
{
    rados_t cluster;
    rados_ioctx_t io;
    rbd_image_t images[MAX_IMAGES];
    int n = 0;
    if (argc < 5 || argc - 4 > MAX_IMAGES) {
        fprintf(stderr, "rbd-client CONF POOL NAMESPACE IMAGE...\n");
        return 2;
    }
    int rc = rados_create(&cluster, "admin");
    if (rc == 0)
        rc = rados_conf_read_file(cluster, argv[1]);
    if (rc == 0)
        rc = rados_conf_set(cluster, "rbd_cache", "false");
    if (rc == 0)
        rc = rados_connect(cluster);
    if (rc == 0)
        rc = rados_ioctx_create(cluster, argv[2], &io);
    if (rc == 0)
        rados_ioctx_set_namespace(io, argv[3]);
    while (rc == 0 && n < argc - 4) {
        rc = rbd_open(io, argv[4 + n], &images[n], NULL);
        n += rc == 0;
    }
    if (answer(rc, "") == 0)
        serve(images, n);
    while (n > 0)
        rbd_close(images[--n]);
    if (rc == 0) {
        rados_ioctx_destroy(io);
        rados_shutdown(cluster);
    }
    return rc == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
