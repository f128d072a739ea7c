/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/hearthctl/report/rates.h"
#include "cmd/hearthctl/client/client.h"
#include "proto/wire.h"
#include <string.h>

void rates_look_clear(RatesLook *look)
{
    g_clear_pointer(&look->status, json_decref);
    g_clear_pointer(&look->volumes, json_decref);
    g_clear_pointer(&look->datasets, json_decref);
    *look = (RatesLook){0};
}

static uint64_t number(const json_t *object, const char *name)
{
    json_int_t n = json_integer_value(json_object_get(object, name));
    return n > 0 ? (uint64_t)n : 0;
}

static const char *string(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    return text ? text : "";
}

static double rate(uint64_t before, uint64_t now, double seconds)
{
    return now < before ? RATE_UNKNOWN : (double)(now - before) / seconds;
}

/* Of one counter of a look's object; RATE_UNKNOWN when there is no object before, or an earlier
 * hearthd does not have the counter. */
static double rate_of(const json_t *before, const json_t *now, const char *name, double seconds)
{
    if (!json_object_get(now, name))
        return RATE_UNKNOWN;
    return before ? rate(number(before, name), number(now, name), seconds) : RATE_UNKNOWN;
}

/* Milliseconds that each took on average. */
static double mean_ms(const json_t *before, const json_t *now, const char *count, const char *us)
{
    const double n = rate_of(before, now, count, 1), sum = rate_of(before, now, us, 1);
    return n > 0 && sum >= 0 ? sum / n / 1000 : RATE_UNKNOWN;
}

static void row_free(void *data)
{
    RatesRow *row = data;
    g_free(row->name);
    g_free(row->id);
    g_free(row->place);
    g_free(row);
}

static const json_t *find(const json_t *list, const char *member, const char *value)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (strcmp(string(one, member), value) == 0)
            return one;
    }
    return NULL;
}

static double percent(const json_t *object)
{
    const json_int_t total = json_integer_value(json_object_get(object, "bytesTotal"));
    if (total <= 0)
        return RATE_UNKNOWN;
    return MIN(100.0, 100.0 * (double)number(object, "bytesCached") / (double)total);
}

static char *place_of(const json_t *object)
{
    const char *fs = string(object, "fsName"), *path = string(object, "rootPath");
    return fs[0] ? g_strdup_printf("%s:%s", fs, path) : g_strdup(path);
}

static RatesRow *volume_row(const json_t *before, const json_t *now, double seconds)
{
    RatesRow *row = g_new0(RatesRow, 1);
    row->id = g_strdup(string(now, "volume"));
    row->name = g_strdup(ctl_name(now, "volume"));
    row->place = place_of(now);
    row->served = json_is_true(json_object_get(now, "attached"));
    row->native = row->served && string(now, "dataset")[0];
    row->warm = json_is_true(json_object_get(now, "cache")) ? percent(now) : RATE_UNKNOWN;
    row->hits = number(now, "hits");
    row->misses = number(now, "misses");
    row->opens = rate_of(before, now, "opens", seconds);
    row->cache = rate_of(before, now, "bytesStore", seconds);
    row->fill = rate_of(before, now, "bytesFill", seconds);
    row->ceph = rate_of(before, now, "bytesOrigin", seconds);
    row->written = rate_of(before, now, "bytesWritten", seconds);
    row->open_ms = row->native ? RATE_UNKNOWN : mean_ms(before, now, "opens", "openUs");
    row->read_ms = mean_ms(before, now, "reads", "readUs");
    return row;
}

/* A dataset that no mount uses: only how much of it is here. */
static RatesRow *dataset_row(const json_t *dataset)
{
    RatesRow *row = g_new0(RatesRow, 1);
    row->id = g_strconcat(WIRE_DATASET_PREFIX, string(dataset, "dataset"), NULL);
    row->name = g_strdup(string(dataset, "name")[0] ? string(dataset, "name") : row->id);
    row->place = place_of(json_array_get(json_object_get(dataset, "places"), 0));
    row->warm = percent(dataset);
    row->open_ms = row->read_ms = row->opens = row->cache = row->fill = row->ceph = row->written =
        RATE_UNKNOWN;
    return row;
}

static double origin_bytes(const json_t *volumes, const json_t *before, double seconds)
{
    double sum = 0;
    for (size_t i = 0; i < json_array_size(volumes); i++) {
        const json_t *v = json_array_get(volumes, i);
        const json_t *was = find(before, "volume", string(v, "volume"));
        const double one = rate_of(was, v, "bytesOrigin", seconds);
        sum += MAX(one, 0);
    }
    return sum;
}

Rates *rates_between(const RatesLook *before, const RatesLook *now)
{
    Rates *rates = g_new0(Rates, 1);
    rates->rows = g_ptr_array_new_with_free_func(row_free);
    const json_t *was = before ? json_object_get(before->status, "daemon") : NULL;
    const json_t *is = json_object_get(now->status, "daemon");
    rates->restarted = was && (number(was, "pid") != number(is, "pid") ||
                               number(was, "uptimeSec") > number(is, "uptimeSec"));
    if (!was || rates->restarted || now->at_us <= before->at_us)
        before = NULL;
    const double seconds =
        before ? (double)(now->at_us - before->at_us) / G_USEC_PER_SEC : RATE_UNKNOWN;
    const json_t *old = before ? json_object_get(before->status, "cache") : NULL;
    const json_t *cache = json_object_get(now->status, "cache");
    rates->fetched = rate_of(old, cache, "originBytes", seconds);
    rates->ceph_ms = mean_ms(old, cache, "originReads", "originUs");
    rates->evicted = rate_of(old, cache, "evictedObjects", seconds);
    rates->evicted_bytes = rate_of(old, cache, "evictedBytes", seconds);
    rates->filled = rate_of(old, cache, "fillsCompleted", seconds);
    rates->native = rate_of(old, cache, "nativeBytes", seconds);
    rates->cpu = rate_of(before ? was : NULL, is, "cpuMs", seconds);
    if (rates->cpu >= 0)
        rates->cpu /= 10; /* ms a second */
    if (rates->fetched >= 0)
        rates->fetched += origin_bytes(now->volumes, before->volumes, seconds);
    for (size_t i = 0; i < json_array_size(now->volumes); i++) {
        const json_t *v = json_array_get(now->volumes, i);
        const json_t *then = before ? find(before->volumes, "volume", string(v, "volume")) : NULL;
        g_ptr_array_add(rates->rows, volume_row(then, v, seconds));
    }
    for (size_t i = 0; i < json_array_size(now->datasets); i++) {
        const json_t *d = json_array_get(now->datasets, i);
        if (!find(now->volumes, "dataset", string(d, "dataset")))
            g_ptr_array_add(rates->rows, dataset_row(d));
    }
    rates_sort(rates, RATES_BY_NAME);
    return rates;
}

void rates_free(Rates *rates)
{
    if (!rates)
        return;
    g_ptr_array_unref(rates->rows);
    g_free(rates);
}

/* ---- JSON ---- */

static json_t *known(double rate)
{
    return rate < 0 ? json_null() : json_real(rate);
}

static json_t *row_json(const RatesRow *row)
{
    json_t *json =
        json_pack("{s:s, s:s, s:s, s:b, s:b, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "volume",
                  row->id, "name", row->name, "place", row->place, "served", row->served, "native",
                  row->native, "warmPercent", known(row->warm), "hits", (json_int_t)row->hits,
                  "misses", (json_int_t)row->misses, "opensPerSec", known(row->opens),
                  "cacheBytesPerSec", known(row->cache), "fillBytesPerSec", known(row->fill),
                  "cephBytesPerSec", known(row->ceph), "writtenBytesPerSec", known(row->written));
    json_object_set_new(json, "openMs", known(row->open_ms));
    json_object_set_new(json, "readMs", known(row->read_ms));
    return json;
}

json_t *rates_json(const Rates *rates)
{
    json_t *rows = json_array();
    for (guint i = 0; i < rates->rows->len; i++)
        json_array_append_new(rows, row_json(rates->rows->pdata[i]));
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:o}", "cephReadMs",
                     known(rates->ceph_ms), "cephBytesPerSec", known(rates->fetched),
                     "nativeBytesPerSec", known(rates->native), "evictedPerSec",
                     known(rates->evicted), "evictedBytesPerSec", known(rates->evicted_bytes),
                     "filledPerSec", known(rates->filled), "cpuPercent", known(rates->cpu),
                     "restarted", rates->restarted, "volumes", rows);
}

/* ---- order ---- */

static const char *const sort_names[RATES_SORTS] = {"volume", "warm", "hits", "misses", "opens",
                                                    "cache",  "fill", "ceph", "written"};

const char *rates_sort_name(RatesSort by)
{
    return (unsigned)by < RATES_SORTS ? sort_names[by] : NULL;
}

gboolean rates_sort_parse(const char *text, RatesSort *by)
{
    for (guint i = 0; i < RATES_SORTS; i++)
        if (g_ascii_strcasecmp(text, sort_names[i]) == 0) {
            *by = (RatesSort)i;
            return TRUE;
        }
    return FALSE;
}

static double key_of(const RatesRow *row, RatesSort by)
{
    switch (by) {
    case RATES_BY_WARM:
        return row->warm;
    case RATES_BY_HITS:
        return (double)row->hits;
    case RATES_BY_MISSES:
        return (double)row->misses;
    case RATES_BY_OPENS:
        return row->opens;
    case RATES_BY_CACHE:
        return row->cache;
    case RATES_BY_FILL:
        return row->fill;
    case RATES_BY_CEPH:
        return row->ceph;
    case RATES_BY_WRITTEN:
        return row->written;
    case RATES_BY_NAME:
    case RATES_SORTS:
        break;
    }
    return 0;
}

static gint compare(gconstpointer a, gconstpointer b, gpointer data)
{
    const RatesRow *x = *(const RatesRow *const *)a, *y = *(const RatesRow *const *)b;
    const double p = key_of(x, *(const RatesSort *)data), q = key_of(y, *(const RatesSort *)data);
    if (p != q)
        return p > q ? -1 : 1;
    return strcmp(x->name, y->name);
}

void rates_sort(Rates *rates, RatesSort by)
{
    g_ptr_array_sort_with_data(rates->rows, compare, &by);
}
