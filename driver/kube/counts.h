/* SPDX-License-Identifier: Apache-2.0 */
/* Requests counted by method and HTTP status. Thread-safe. */
#ifndef HEARTH_DRIVER_KUBE_COUNTS_H
#define HEARTH_DRIVER_KUBE_COUNTS_H

#include <glib.h>

typedef struct KubeCounts KubeCounts;

KubeCounts *kube_counts_new(void);
void kube_counts_free(KubeCounts *counts);
/* method is borrowed for ever: a literal. status 0: no answer came. */
void kube_counts_add(KubeCounts *counts, const char *method, int status);
/* Goes over a copy, so `each` may be slow. */
void kube_counts_each(KubeCounts *counts,
                      void (*each)(const char *method, int status, guint64 count, void *data),
                      void *data);

#endif
