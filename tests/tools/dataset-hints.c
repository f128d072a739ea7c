/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps DatasetHints from the command line, as the controller does, until it is told to end.
 *
 *   dataset-hints KUBECONFIG DRIVER
 *
 * Prints troubles as they come, and at the end requests by method and status.
 */
#include <signal.h>
#include <stdio.h>
#include "driver/kube/error.h"
#include "driver/affinity/hints.h"

static gboolean may_act(void *data)
{
    (void)data;
    return TRUE;
}

static void on_trouble(const GError *error, void *data)
{
    (void)data;
    printf("%s\n", error ? error->message : "well again");
}

static void on_count(const char *method, int status, guint64 count, void *data)
{
    (void)data;
    printf("requests: %s %d: %" G_GUINT64_FORMAT "\n", method, status, count);
}

int main(int argc, char **argv)
{
    static const DatasetHintsOps ops = {.may_act = may_act, .on_trouble = on_trouble};
    g_autoptr(GError) error = NULL;
    sigset_t ends;
    int got;
    setvbuf(stdout, NULL, _IOLBF, 0);
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    /* Threads take this over. */
    pthread_sigmask(SIG_BLOCK, &ends, NULL);
    KubeConfig *config = argc == 3 ? kube_config_load(argv[1], &error) : NULL;
    if (!config) {
        fprintf(stderr, "dataset-hints: %s\n", error ? error->message : "KUBECONFIG DRIVER");
        return 1;
    }
    g_autoptr(KubeClient) client = kube_client_new(config, NULL);
    g_autoptr(DatasetHints) hints = dataset_hints_new(client, argv[2], &ops, NULL);
    sigwait(&ends, &got);
    dataset_hints_free(g_steal_pointer(&hints));
    kube_client_each_count(client, on_count, NULL);
    return 0;
}
