/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/watch/seen.h"
#include "tests/unit/harness.h"

static void on_change(KubeChange change, const json_t *object, void *data)
{
    const json_t *meta = json_object_get(object, "metadata");
    const char *namespace = json_string_value(json_object_get(meta, "namespace"));
    g_string_append_printf(data, "%c%s/%s ", "+~-"[change], namespace ? namespace : "",
                           json_string_value(json_object_get(meta, "name")));
}

typedef struct World {
    GString *told;
    KubeKnown *known;
} World;

static void world_new(World *w)
{
    w->told = g_string_new(NULL);
    w->known = kube_known_new(on_change, w->told);
}

static void world_free(World *w)
{
    kube_known_free(w->known);
    g_string_free(w->told, TRUE);
}

static json_t *thing(const char *namespace, const char *name, const char *uid, const char *version)
{
    return json_pack("{s:{s:s*, s:s, s:s, s:s}}", "metadata", "namespace", namespace, "name", name,
                     "uid", uid, "resourceVersion", version);
}

static void put(World *w, const char *namespace, const char *name, const char *uid,
                const char *version)
{
    json_t *object = thing(namespace, name, uid, version);
    kube_known_put(w->known, object);
    json_decref(object);
}

static void drop(World *w, const char *name, const char *uid)
{
    json_t *object = thing("n", name, uid, "99");
    kube_known_remove(w->known, object);
    json_decref(object);
}

static void told(World *w, const char *wanted)
{
    ck_assert_str_eq(w->told->str, wanted);
    g_string_truncate(w->told, 0);
}

START_TEST(each_change_is_told_once)
{
    World w;
    world_new(&w);
    put(&w, "n", "a", "u", "1");
    put(&w, "n", "a", "u", "1");
    put(&w, "n", "a", "u", "2");
    drop(&w, "a", "u");
    drop(&w, "a", "u");
    told(&w, "+n/a ~n/a -n/a ");
    world_free(&w);
}
END_TEST

START_TEST(vanished_objects_are_told_after_a_list)
{
    World w;
    world_new(&w);
    put(&w, "n", "a", "u1", "1");
    put(&w, NULL, "b", "u2", "2");
    put(&w, "n", "c", "u3", "3");
    told(&w, "+n/a +/b +n/c ");
    kube_known_list_begin(w.known);
    put(&w, "n", "c", "u3", "3");
    put(&w, "n", "a", "u1", "7");
    told(&w, "~n/a ");
    kube_known_list_end(w.known);
    told(&w, "-/b ");
    ck_assert_uint_eq(kube_known_count(w.known), 2);
    world_free(&w);
}
END_TEST

START_TEST(list_that_was_broken_off_deletes_nothing)
{
    World w;
    world_new(&w);
    put(&w, "n", "a", "u1", "1");
    put(&w, "n", "b", "u2", "1");
    told(&w, "+n/a +n/b ");
    kube_known_list_begin(w.known);
    put(&w, "n", "b", "u2", "1");
    kube_known_list_begin(w.known);
    put(&w, "n", "a", "u1", "1");
    kube_known_list_end(w.known);
    told(&w, "-n/b ");
    world_free(&w);
}
END_TEST

START_TEST(another_uid_is_another_object)
{
    World w;
    world_new(&w);
    put(&w, "n", "a", "u1", "1");
    put(&w, "n", "a", "u2", "5");
    told(&w, "+n/a -n/a +n/a ");
    /* Of the one before. */
    drop(&w, "a", "u1");
    told(&w, "");
    world_free(&w);
}
END_TEST

START_TEST(nameless_objects_are_passed_over)
{
    World w;
    world_new(&w);
    json_t *object = json_object();
    kube_known_put(w.known, object);
    kube_known_remove(w.known, object);
    json_decref(object);
    told(&w, "");
    world_free(&w);
}
END_TEST

HARNESS_MAIN("driver/kube/watch/seen", each_change_is_told_once,
             vanished_objects_are_told_after_a_list, list_that_was_broken_off_deletes_nothing,
             another_uid_is_another_object, nameless_objects_are_passed_over)
