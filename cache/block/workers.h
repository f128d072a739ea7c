/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads that process items in order. GLib's pool does the same with locks that
 * ThreadSanitizer cannot see. */
#ifndef HEARTH_CACHE_BLOCK_WORKERS_H
#define HEARTH_CACHE_BLOCK_WORKERS_H

#include <glib.h>

typedef struct Workers Workers;

Workers *workers_new(unsigned threads, void (*run)(void *item, void *data), void *data);
/* Any thread; never waits. */
void workers_push(Workers *workers, void *item);
/* Runs what was pushed, then ends. */
void workers_free(Workers *workers);

#endif
