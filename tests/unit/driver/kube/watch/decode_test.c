/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/watch/decode.h"
#include <string.h>
#include "driver/kube/error.h"
#include "tests/unit/harness.h"

typedef struct Seen {
    GString *events;
    gboolean refuse;
} Seen;

static gboolean on_event(KubeEventType type, const json_t *object, void *data, GError **error)
{
    Seen *seen = data;
    if (seen->refuse) {
        g_set_error_literal(error, KUBE_ERROR, KUBE_ERROR_GONE, "refused");
        return FALSE;
    }
    g_string_append_printf(seen->events, "%d:%d ", type,
                           (int)json_integer_value(json_object_get(object, "n")));
    return TRUE;
}

static const char stream[] = "{\"type\":\"ADDED\",\"object\":{\"n\":1}}\n"
                             "\n"
                             "{\"type\":\"MODIFIED\",\"object\":{\"n\":2,\"t\":\"\\u0000x\"}}\r\n"
                             "{\"type\":\"NEWKIND\",\"object\":{\"n\":9}}\n"
                             "{\"type\":\"DELETED\",\"object\":{\"n\":3}}\n"
                             "{\"type\":\"BOOKMARK\",\"object\":{\"n\":4}}\n"
                             "{\"type\":\"ERROR\",\"object\":{\"n\":5}}\n";

START_TEST(events_are_found_however_they_are_cut)
{
    for (gsize part = 1; part <= strlen(stream); part++) {
        Seen seen = {.events = g_string_new(NULL)};
        g_autoptr(KubeDecoder) d = kube_decoder_new(100, on_event, &seen);
        for (gsize at = 0; at < strlen(stream); at += part)
            ck_assert(kube_decoder_push(d, stream + at, MIN(part, strlen(stream) - at), NULL));
        ck_assert_str_eq(seen.events->str, "0:1 1:2 2:3 3:4 4:5 ");
        g_string_free(seen.events, TRUE);
    }
}
END_TEST

START_TEST(incomplete_line_is_no_event)
{
    Seen seen = {.events = g_string_new(NULL)};
    g_autoptr(KubeDecoder) d = kube_decoder_new(100, on_event, &seen);
    const char *line = "{\"type\":\"ADDED\",\"object\":{\"n\":1}}";
    ck_assert(kube_decoder_push(d, line, strlen(line), NULL));
    ck_assert_str_eq(seen.events->str, "");
    ck_assert(kube_decoder_push(d, "\n", 1, NULL));
    ck_assert_str_eq(seen.events->str, "0:1 ");
    g_string_free(seen.events, TRUE);
}
END_TEST

START_TEST(long_line_is_refused_before_it_is_kept)
{
    Seen seen = {.events = g_string_new(NULL)};
    g_autoptr(KubeDecoder) d = kube_decoder_new(100, on_event, &seen);
    g_autofree char *blanks = g_strnfill(60, ' ');
    g_autoptr(GError) error = NULL;
    ck_assert(kube_decoder_push(d, blanks, 60, NULL));
    ck_assert(!kube_decoder_push(d, blanks, 60, &error));
    ck_assert(g_error_matches(error, KUBE_ERROR, KUBE_ERROR_MALFORMED));
    g_string_free(seen.events, TRUE);
}
END_TEST

START_TEST(what_is_no_event_ends_the_stream)
{
    const char *lines[] = {"nonsense\n",
                           "[]\n",
                           "{\"type\":\"ADDED\"}\n",
                           "{\"object\":{}}\n",
                           "{\"type\":1,\"object\":{}}\n",
                           "{\"type\":\"ADDED\",\"object\":[]}\n"};
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
        Seen seen = {.events = g_string_new(NULL)};
        g_autoptr(KubeDecoder) d = kube_decoder_new(100, on_event, &seen);
        g_autoptr(GError) error = NULL;
        ck_assert_msg(!kube_decoder_push(d, lines[i], strlen(lines[i]), &error), "%s", lines[i]);
        ck_assert(g_error_matches(error, KUBE_ERROR, KUBE_ERROR_MALFORMED));
        g_string_free(seen.events, TRUE);
    }
}
END_TEST

START_TEST(refused_event_ends_the_stream)
{
    Seen seen = {.events = g_string_new(NULL), .refuse = TRUE};
    g_autoptr(KubeDecoder) d = kube_decoder_new(100, on_event, &seen);
    g_autoptr(GError) error = NULL;
    ck_assert(!kube_decoder_push(d, stream, strlen(stream), &error));
    ck_assert_str_eq(error->message, "refused");
    g_string_free(seen.events, TRUE);
}
END_TEST

HARNESS_MAIN("driver/kube/watch/decode", events_are_found_however_they_are_cut,
             incomplete_line_is_no_event, long_line_is_refused_before_it_is_kept,
             what_is_no_event_ends_the_stream, refused_event_ends_the_stream)
