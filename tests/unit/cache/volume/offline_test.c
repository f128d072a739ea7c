/* SPDX-License-Identifier: Apache-2.0 */
/* Opening datasets that this node knows: what counts while Ceph is silent, and when it speaks. */
#include "cache/volume/offline.h"
#include "cache/volume/last_seen.h"
#include "cache/origin/deferred.h"
#include "tests/unit/cache/control/fakes.h"
#include "tests/unit/harness.h"

typedef struct World {
    char *tree, *cache, *manifests;
    Store *store;
    Datasets *all;
    Offline *offline;
    VolumeSpec *spec;
} World;

static VolumeSpec *new_spec(const char *path, const char *key)
{
    json_t *request =
        json_pack("{s:s, s:b, s:{s:s, s:s, s:[s], s:s, s:s, s:s, s:s}}", "volume", "v", "readOnly",
                  1, "origin", "type", "cephfs", "clusterID", "c", "monitors", "127.0.0.1:1",
                  "fsName", "f", "rootPath", path, "userID", "u", "userKey", key);
    VolumeSpec *spec = spec_parse(request, NULL);
    ck_assert_ptr_nonnull(spec);
    json_decref(request);
    return spec;
}

static void put_file(const World *w, const char *name)
{
    g_autofree char *path = g_build_filename(w->tree, name, NULL);
    ck_assert(g_file_set_contents(path, "bytes", -1, NULL));
}

/* The dataset of an origin, once it is ready; its ID is the caller's. */
static char *use(const World *w, Origin *origin)
{
    DatasetReport report;
    g_autoptr(GError) error = NULL;
    Dataset *d = datasets_join(w->all, origin, TRUE, &error);
    ck_assert_msg(d != NULL, "%s", error ? error->message : "");
    ck_assert_msg(dataset_wait(d, 60000, &report, &error), "%s", error ? error->message : "");
    ck_assert(report.ready);
    offline_note(w->offline, w->spec, report.id);
    ck_assert(dataset_leave(d, origin, 60000));
    return g_strdup(report.id);
}

static Origin *open_known(const World *w)
{
    g_autoptr(GError) error = NULL;
    Origin *origin = offline_connect(w->offline, w->spec, NULL, &error);
    ck_assert_msg(origin != NULL, "%s", error ? error->message : "");
    return origin;
}

/* A node that knows its dataset. */
static char *up(World *w)
{
    *w = (World){.tree = harness_tmpdir(), .cache = harness_tmpdir()};
    w->manifests = g_build_filename(w->cache, "manifests", NULL);
    w->store = fake_store_new();
    w->all = datasets_new(w->store, w->cache, TRUE);
    w->offline = offline_new(w->all);
    w->spec = new_spec(w->tree, "K1");
    put_file(w, "file");
    Origin *origin = open_known(w);
    ck_assert(!origin_is_deferred(origin));
    char *id = use(w, origin);
    origin_close(origin);
    return id;
}

static void down(World *w)
{
    offline_free(w->offline);
    datasets_free(w->all);
    fake_store_free(w->store);
    spec_free(w->spec);
    harness_remove(w->tree);
    harness_remove(w->cache);
    g_free(w->manifests);
}

static gboolean is_known(const World *w, const char *id)
{
    g_autofree char *noted = last_seen_dataset(w->manifests, w->spec);
    return g_strcmp0(noted, id) == 0;
}

static gboolean has_manifest(const World *w, const char *id)
{
    g_autofree char *path = g_build_filename(w->manifests, id, NULL);
    return g_file_test(path, G_FILE_TEST_EXISTS);
}

static void connect_with(const World *w, const VolumeSpec *spec, int refusal)
{
    fake_ceph_error = refusal;
    g_autoptr(GError) error = NULL;
    g_autoptr(Origin) origin = offline_connect(w->offline, spec, NULL, &error);
    fake_ceph_error = 0;
    ck_assert_msg((origin != NULL) == (refusal == 0), "%s", error ? error->message : "accepted");
    ck_assert(!refusal || g_error_matches(error, G_IO_ERROR, refusal));
}

START_TEST(in_silence_it_is_what_was_known)
{
    World w;
    OriginNode *node;
    OriginAttr attr;
    g_autofree char *id = up(&w);
    fake_ceph_hang(TRUE);
    Origin *origin = open_known(&w);
    ck_assert_int_eq(origin_deferred_wait(origin, 0, NULL), ORIGIN_DEFERRED_AWAY);
    g_autofree char *same = use(&w, origin);
    ck_assert_str_eq(same, id);
    ck_assert_int_eq(origin_find(origin, "file", &node, &attr), -ENOTCONN);
    fake_ceph_hang(FALSE);
    ck_assert_int_eq(origin_deferred_wait(origin, 60000, NULL), ORIGIN_DEFERRED_HERE);
    ck_assert_int_eq(origin_find(origin, "file", &node, &attr), 0);
    origin->ops->put(origin, node);
    origin_close(origin);
    down(&w);
}
END_TEST

START_TEST(whom_osds_refuse_the_mds_does_not_answer_for)
{
    World w;
    g_autofree char *id = up(&w);
    g_autoptr(GError) error = NULL;
    fake_ceph_hang(TRUE);
    Origin *origin = open_known(&w);
    fake_ceph_may_read = -EPERM;
    fake_ceph_hang(FALSE);
    ck_assert_int_eq(origin_deferred_wait(origin, 60000, &error), ORIGIN_DEFERRED_REFUSED);
    ck_assert_ptr_nonnull(strstr(error->message, "client.u"));
    ck_assert_ptr_nonnull(strstr(error->message, "osd capabilities"));
    origin_close(origin);
    g_clear_error(&error);
    ck_assert_ptr_null(offline_connect(w.offline, w.spec, NULL, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_PERMISSION_DENIED));
    ck_assert(is_known(&w, NULL));
    fake_ceph_may_read = 0;
    down(&w);
}
END_TEST

START_TEST(what_ceph_says_counts)
{
    World w;
    g_autofree char *id = up(&w);
    put_file(&w, "another");
    Origin *origin = open_known(&w);
    ck_assert(!origin_is_deferred(origin));
    ck_assert(is_known(&w, NULL));
    ck_assert(!has_manifest(&w, id));
    g_autofree char *other = use(&w, origin);
    ck_assert_str_ne(other, id);
    ck_assert(is_known(&w, other));
    origin_close(origin);
    down(&w);
}
END_TEST

START_TEST(what_is_gone_is_forgotten)
{
    World w;
    g_autofree char *id = up(&w);
    g_autoptr(GError) error = NULL;
    fake_ceph_error = G_IO_ERROR_NOT_FOUND;
    ck_assert_ptr_null(offline_connect(w.offline, w.spec, NULL, &error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_NOT_FOUND));
    ck_assert(is_known(&w, NULL));
    ck_assert(!has_manifest(&w, id));
    fake_ceph_error = 0;
    down(&w);
}
END_TEST

START_TEST(without_its_manifest_nothing_is_known)
{
    World w;
    g_autofree char *id = up(&w);
    g_autofree char *path = g_build_filename(w.manifests, id, NULL);
    ck_assert_int_eq(truncate(path, 100), 0);
    Origin *origin = open_known(&w);
    ck_assert(!origin_is_deferred(origin));
    origin_close(origin);
    /* Nor is it noted what may be read, which only the manifest tells. */
    g_autoptr(VolumeSpec) k2 = new_spec(w.tree, "K2");
    connect_with(&w, k2, 0);
    ck_assert(is_known(&w, NULL));
    down(&w);
}
END_TEST

START_TEST(a_key_that_is_accepted_again_is_believed_again)
{
    World w;
    g_autofree char *id = up(&w);
    g_autoptr(VolumeSpec) k2 = new_spec(w.tree, "K2");
    connect_with(&w, k2, 0); /* which corrects the note by itself */
    ck_assert(last_seen_key_matches(w.manifests, k2) &&
              !last_seen_key_matches(w.manifests, w.spec));
    connect_with(&w, w.spec, 0);
    offline_note(w.offline, w.spec, id);
    ck_assert(last_seen_key_matches(w.manifests, w.spec) &&
              !last_seen_key_matches(w.manifests, k2));
    /* That of a volume which was opened with it before. */
    offline_note(w.offline, k2, id);
    ck_assert(last_seen_key_matches(w.manifests, w.spec));
    down(&w);
}
END_TEST

START_TEST(a_refused_key_is_believed_once_it_is_accepted_again)
{
    World w;
    g_autofree char *id = up(&w);
    for (int i = 0; i < 2; i++) { /* with a note, and without */
        connect_with(&w, w.spec, G_IO_ERROR_PERMISSION_DENIED);
        ck_assert(is_known(&w, NULL));
        offline_note(w.offline, w.spec, id);
        ck_assert(is_known(&w, NULL));
    }
    connect_with(&w, w.spec, 0);
    offline_note(w.offline, w.spec, id);
    ck_assert(last_seen_key_matches(w.manifests, w.spec));
    down(&w);
}
END_TEST

START_TEST(a_refusal_counts_before_the_first_note)
{
    World w;
    g_autofree char *id = up(&w);
    connect_with(&w, w.spec, G_IO_ERROR_NOT_FOUND);
    connect_with(&w, w.spec, 0); /* its manifest is still being made */
    connect_with(&w, w.spec, G_IO_ERROR_PERMISSION_DENIED);
    offline_note(w.offline, w.spec, id);
    ck_assert(is_known(&w, NULL));
    down(&w);
}
END_TEST

START_TEST(a_wrong_key_takes_no_right_away)
{
    World w;
    g_autofree char *id = up(&w);
    g_autoptr(VolumeSpec) wrong = new_spec(w.tree, "wrong");
    connect_with(&w, wrong, G_IO_ERROR_PERMISSION_DENIED);
    ck_assert(last_seen_key_matches(w.manifests, w.spec));
    offline_note(w.offline, wrong, id);
    ck_assert(last_seen_key_matches(w.manifests, w.spec));
    connect_with(&w, w.spec, G_IO_ERROR_NOT_FOUND);
    connect_with(&w, w.spec, 0);
    connect_with(&w, wrong, G_IO_ERROR_PERMISSION_DENIED); /* before the first note */
    offline_note(w.offline, w.spec, id);
    ck_assert(last_seen_key_matches(w.manifests, w.spec));
    down(&w);
}
END_TEST

START_TEST(another_snapshots_volume_does_not_say_what_is_there)
{
    World w;
    g_autofree char *id = up(&w);
    put_file(&w, "another");
    connect_with(&w, w.spec, 0);
    offline_note(w.offline, w.spec, id); /* of a volume from before */
    ck_assert(is_known(&w, NULL));
    down(&w);
}
END_TEST

HARNESS_MAIN("cache/volume/offline", whom_osds_refuse_the_mds_does_not_answer_for,
             a_key_that_is_accepted_again_is_believed_again,
             a_refused_key_is_believed_once_it_is_accepted_again,
             a_refusal_counts_before_the_first_note, a_wrong_key_takes_no_right_away,
             another_snapshots_volume_does_not_say_what_is_there, in_silence_it_is_what_was_known,
             what_ceph_says_counts, what_is_gone_is_forgotten,
             without_its_manifest_nothing_is_known)
