/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/node/settings.h"
#include <pthread.h>
#include "driver/provision/provision.h"
#include "driver/node/hearthd/spec.h"

/* A cache's quota is not worth more of a pod's start. */
#define READ_MS 5000

struct Settings {
    Backend *(*connect)(const char *config_path);
    char *config_path;
    pthread_mutex_t lock; /* guards the two below; held while the backend is made, which waits for
                             nothing */
    Backend *backend;     /* NULL while it is not used */
    unsigned users;
};

Settings *settings_new(Backend *(*connect)(const char *config_path), const char *config_path)
{
    Settings *s = g_new0(Settings, 1);
    s->connect = connect;
    s->config_path = g_strdup(config_path);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void settings_free(Settings *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    g_free(s->config_path);
    g_free(s);
}

static const Backend *take(Settings *s)
{
    pthread_mutex_lock(&s->lock);
    if (s->users++ == 0)
        s->backend = s->connect(s->config_path);
    const Backend *backend = s->backend;
    pthread_mutex_unlock(&s->lock);
    return backend;
}

static void give(Settings *s)
{
    Backend *unused = NULL;
    pthread_mutex_lock(&s->lock);
    if (--s->users == 0)
        unused = g_steal_pointer(&s->backend);
    pthread_mutex_unlock(&s->lock);
    backend_free(unused);
}

void settings_apply(Settings *s, const char *volume, GHashTable *secret_map, gint64 timeout_ms,
                    json_t *spec)
{
    g_autoptr(VolumeId) id = s->connect ? volume_id_decode(volume, NULL) : NULL;
    g_autoptr(Secrets) secrets = NULL;
    g_autoptr(GError) error = NULL;
    if (!id || id->type != VOLUME_CEPHFS ||
        !(secrets = secrets_new(secret_map, SECRETS_PREFER_USER, NULL)))
        return;
    const ProvisionTarget at = {.backend = take(s),
                                .id = id,
                                .secrets = secrets,
                                .deadline_us =
                                    g_get_monotonic_time() + MIN(timeout_ms / 2, READ_MS) * 1000};
    json_auto_t *changes = provision_read_mutable(&at, &error);
    give(s);
    if (changes)
        node_spec_change(spec, changes);
    else
        g_warning("volume %s: its mutable parameters are not known here, it is used as it was "
                  "created: %s",
                  volume, error->message);
}
