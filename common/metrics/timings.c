/* SPDX-License-Identifier: Apache-2.0 */
#include "common/metrics/timings.h"
#include <pthread.h>

typedef struct Timing {
    char *what, *result;
    Histogram histogram;
} Timing;

struct Timings {
    pthread_mutex_t lock;
    GHashTable *pairs; /* lock: "WHAT\nRESULT" -> Timing, which stays */
};

static void timing_free(void *data)
{
    Timing *timing = data;
    g_free(timing->what);
    g_free(timing->result);
    g_free(timing);
}

Timings *timings_new(void)
{
    Timings *t = g_new0(Timings, 1);
    pthread_mutex_init(&t->lock, NULL);
    t->pairs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, timing_free);
    return t;
}

void timings_free(Timings *t)
{
    if (!t)
        return;
    g_hash_table_unref(t->pairs);
    pthread_mutex_destroy(&t->lock);
    g_free(t);
}

static Timing *find_locked(Timings *t, const char *what, const char *result)
{
    g_autofree char *key = g_strconcat(what, "\n", result, NULL);
    Timing *timing = g_hash_table_lookup(t->pairs, key);
    if (timing)
        return timing;
    if (g_hash_table_size(t->pairs) >= TIMINGS_MAX && !g_str_equal(what, "other"))
        return find_locked(t, "other", "other");
    timing = g_new0(Timing, 1);
    timing->what = g_strdup(what);
    timing->result = g_strdup(result);
    g_hash_table_insert(t->pairs, g_steal_pointer(&key), timing);
    return timing;
}

void timings_add(Timings *t, const char *what, const char *result, gint64 us)
{
    pthread_mutex_lock(&t->lock);
    Timing *timing = find_locked(t, what, result);
    pthread_mutex_unlock(&t->lock);
    histogram_add(&timing->histogram, us);
}

void timings_tell(Timings *t, OpenMetrics *metrics, const char *what_label,
                  const char *result_label)
{
    GHashTableIter iter;
    gpointer value;
    pthread_mutex_lock(&t->lock);
    g_hash_table_iter_init(&iter, t->pairs);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const Timing *timing = value;
        openmetrics_add_histogram(metrics, &timing->histogram, what_label, timing->what,
                                  result_label, timing->result, NULL);
    }
    pthread_mutex_unlock(&t->lock);
}
