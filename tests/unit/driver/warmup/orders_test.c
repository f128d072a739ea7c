/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/warmup/orders.h"
#include "tests/unit/harness.h"

/* "namespace/name" of each, made one second after the other. */
typedef struct World {
    Warmup warmups[200];
    WarmupObject runs[200];
    GPtrArray *list;
} World;

static void add(World *w, const char *namespace, const char *name)
{
    const guint i = w->list->len;
    w->warmups[i] =
        (Warmup){.namespace = (char *)namespace, .name = (char *)name, .created_s = 1000 + i};
    w->runs[i].warmup = &w->warmups[i];
    g_ptr_array_add(w->list, &w->runs[i]);
}

static char *turns(const World *w, guint n)
{
    g_autoptr(GPtrArray) runs = warmup_orders_turns(w->list);
    g_autoptr(GString) text = g_string_new(NULL);
    ck_assert_uint_eq(runs->len, w->list->len);
    for (guint i = 0; i < MIN(n, runs->len); i++) {
        const WarmupObject *run = runs->pdata[i];
        g_string_append_printf(text, "%s/%s ", run->warmup->namespace, run->warmup->name);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

START_TEST(each_namespace_has_its_turn_however_many_another_has)
{
    World w = {.list = g_ptr_array_new()};
    for (int i = 0; i < 100; i++)
        add(&w, "aaa", i == 0 ? "first" : "more");
    add(&w, "zzz", "late");
    add(&w, "mmm", "later");
    g_autofree char *text = turns(&w, 5);
    ck_assert_str_eq(text, "aaa/first zzz/late mmm/later aaa/more aaa/more ");
    g_ptr_array_unref(w.list);
}
END_TEST

START_TEST(within_a_namespace_the_oldest_comes_first)
{
    World w = {.list = g_ptr_array_new()};
    add(&w, "a", "z");
    add(&w, "b", "y");
    add(&w, "a", "x");
    add(&w, "b", "w");
    g_autofree char *text = turns(&w, 9);
    ck_assert_str_eq(text, "a/z b/y a/x b/w ");
    g_ptr_array_unref(w.list);
}
END_TEST

START_TEST(of_none_there_is_none)
{
    World w = {.list = g_ptr_array_new()};
    g_autofree char *text = turns(&w, 9);
    ck_assert_str_eq(text, "");
    g_ptr_array_unref(w.list);
}
END_TEST

HARNESS_MAIN("driver/warmup/orders", each_namespace_has_its_turn_however_many_another_has,
             within_a_namespace_the_oldest_comes_first, of_none_there_is_none)
