/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/order.h"
#include <string.h>
#include "common/field.h"

json_t *warmup_order_json(const Warmup *warmup, const json_t *status)
{
    json_t *order =
        json_pack("{s:s, s:s, s:s, s:O?}", "namespace", warmup->namespace, "name", warmup->name,
                  "run", field_text(status, "run"), "origin", json_object_get(status, "origin"));
    if (warmup->paths->len > 0) {
        json_t *paths = json_array();
        for (guint i = 0; i < warmup->paths->len; i++)
            json_array_append_new(paths, json_string(warmup->paths->pdata[i]));
        json_object_set_new(order, "paths", paths);
    }
    if (warmup->rate)
        json_object_set_new(order, "rate", json_integer((json_int_t)warmup->rate));
    return order;
}

gboolean warmup_order_read(const json_t *object, WarmupOrder *order)
{
    const json_t *path;
    size_t i;
    *order = (WarmupOrder){.namespace = g_strdup(field_text(object, "namespace")),
                           .name = g_strdup(field_text(object, "name")),
                           .run = g_strdup(field_text(object, "run")),
                           .paths = g_ptr_array_new_with_free_func(g_free),
                           .rate = field_count(object, "rate")};
    json_array_foreach (json_object_get(object, "paths"), i, path) {
        if (!json_is_string(path))
            return FALSE;
        g_ptr_array_add(order->paths, g_strdup(json_string_value(path)));
    }
    return dataset_origin_read(json_object_get(object, "origin"), &order->origin) && *order->run &&
           *order->namespace && *order->name;
}

void warmup_order_clear(WarmupOrder *order)
{
    g_clear_pointer(&order->namespace, g_free);
    g_clear_pointer(&order->name, g_free);
    g_clear_pointer(&order->run, g_free);
    g_clear_pointer(&order->paths, g_ptr_array_unref);
    dataset_origin_clear(&order->origin);
}

static int percent_of(const WarmupDoing *doing)
{
    if (g_str_equal(doing->state, "Succeeded"))
        return 100;
    if (doing->percent >= 0)
        return MIN(doing->percent, 99);
    return doing->total ? (int)MIN(100.0 * (double)doing->bytes / (double)doing->total, 99) : 0;
}

/* Names in a path may have spaces, which no rule knows. */
static char *without_place(const WarmupOrder *order, const char *message)
{
    g_autofree char *place = g_strdup(order->origin.root_path ? order->origin.root_path : "");
    if (g_str_has_suffix(place, "/*"))
        place[strlen(place) - 2] = 0;
    g_auto(GStrv) parts = *place ? g_strsplit(message, place, -1) : NULL;
    g_autofree char *plain = parts ? g_strjoinv("the dataset", parts) : g_strdup(message);
    return warmup_message(plain);
}

json_t *warmup_doing_json(const WarmupOrder *order, const WarmupDoing *doing)
{
    const guint64 left = doing->total > doing->bytes ? doing->total - doing->bytes : 0;
    g_autofree char *text = without_place(order, doing->message ? doing->message : "");
    json_t *entry = json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I}", "namespace", order->namespace,
                              "name", order->name, "run", order->run, "state", doing->state,
                              "percent", percent_of(doing), "bytes", (json_int_t)doing->bytes,
                              "totalBytes", (json_int_t)MAX(doing->total, doing->bytes));
    if (doing->bytes_per_second > 0) {
        json_object_set_new(entry, "bytesPerSecond",
                            json_integer((json_int_t)doing->bytes_per_second));
        if (left > 0)
            json_object_set_new(entry, "etaSeconds",
                                json_integer((json_int_t)(left / doing->bytes_per_second + 1)));
    }
    if (*text)
        json_object_set_new(entry, "message", json_string(text));
    return entry;
}
