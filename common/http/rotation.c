/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/rotation.h"
#include "common/http/trace.h"

typedef struct Traces {
    HttpTrace certificate, key;
} Traces;

struct HttpRotation {
    char *directory;
    void (*on_change)(const GError *error, gint64 expires_s, void *data);
    void *data;
    HttpCertificate *latest;
    Traces seen; /* when `latest` was read, or last could not be */
    gint64 looked_us;
    gboolean troubled;
};

static HttpTrace trace_of(const char *directory, const char *name)
{
    g_autofree char *path = g_build_filename(directory, name, NULL);
    return http_trace_of(path);
}

static Traces traces_of(const char *directory)
{
    return (Traces){trace_of(directory, HTTP_CERTIFICATE_FILE), trace_of(directory, HTTP_KEY_FILE)};
}

HttpRotation *http_rotation_new(const char *directory,
                                void (*on_change)(const GError *error, gint64 expires_s,
                                                  void *data),
                                void *data, GError **error)
{
    /* Before the reading, so that a change during it is seen later. */
    const Traces seen = traces_of(directory);
    HttpCertificate *first = http_certificate_load(directory, error);
    if (!first)
        return NULL;
    HttpRotation *r = g_new0(HttpRotation, 1);
    r->directory = g_strdup(directory);
    r->on_change = on_change;
    r->data = data;
    r->latest = first;
    r->seen = seen;
    return r;
}

void http_rotation_free(HttpRotation *r)
{
    if (!r)
        return;
    http_certificate_unref(r->latest);
    g_free(r->directory);
    g_free(r);
}

static void look(HttpRotation *r)
{
    const Traces now = traces_of(r->directory);
    if (!r->troubled && http_trace_same(&now.certificate, &r->seen.certificate) &&
        http_trace_same(&now.key, &r->seen.key))
        return;
    g_autoptr(GError) error = NULL;
    HttpCertificate *next = http_certificate_load(r->directory, &error);
    const gboolean news = next || !r->troubled;
    r->seen = now;
    r->troubled = !next;
    if (next) {
        http_certificate_unref(r->latest);
        r->latest = next;
    }
    if (news && r->on_change)
        r->on_change(error, http_certificate_expires_s(r->latest), r->data);
}

HttpCertificate *http_rotation_get(HttpRotation *r, gint64 now_us)
{
    if (now_us - r->looked_us >= HTTP_LOOK_US) {
        r->looked_us = now_us;
        look(r);
    }
    return http_certificate_ref(r->latest);
}

const HttpCertificate *http_rotation_latest(const HttpRotation *r)
{
    return r->latest;
}
