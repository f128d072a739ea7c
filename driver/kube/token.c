/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/token.h"
#include <pthread.h>
#include <string.h>
#include "driver/kube/error.h"

#define KEEP_US (60 * G_USEC_PER_SEC)
#define TOKEN_MAX (64 * 1024)

struct KubeToken {
    char *path; /* NULL: fixed */
    pthread_mutex_t lock;
    char *text;     /* guarded by lock, like the fields below */
    gint64 read_us; /* when, or when it was last tried */
};

void kube_token_wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    g_free(text);
}

/* What may stand in a header, so that nothing in a file can add headers of its own. */
static gboolean is_plain(const char *text)
{
    if (!*text)
        return FALSE;
    for (const char *p = text; *p; p++) {
        if (!g_ascii_isgraph(*p))
            return FALSE;
    }
    return TRUE;
}

static KubeToken *token_alloc(void)
{
    KubeToken *t = g_new0(KubeToken, 1);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

KubeToken *kube_token_new(const char *token, const char *where, GError **error)
{
    if (!is_plain(token)) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG,
                    "%s is empty, or has blanks or other characters that a token has not", where);
        return NULL;
    }
    KubeToken *t = token_alloc();
    t->text = g_strdup(token);
    return t;
}

KubeToken *kube_token_new_file(const char *path)
{
    KubeToken *t = token_alloc();
    t->path = g_strdup(path);
    return t;
}

void kube_token_free(KubeToken *t)
{
    if (!t)
        return;
    kube_token_wipe(t->text);
    pthread_mutex_destroy(&t->lock);
    g_free(t->path);
    g_free(t);
}

static char *read_token(const char *path, GError **error)
{
    char *text;
    gsize size;
    g_autoptr(GError) cause = NULL;
    if (!g_file_get_contents(path, &text, &size, &cause)) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG, "service account token: %s",
                    cause->message);
        return NULL;
    }
    if (size <= TOKEN_MAX && strlen(text) == size && is_plain(g_strstrip(text)))
        return text;
    explicit_bzero(text, size);
    g_free(text);
    g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG, "%s holds no token", path);
    return NULL;
}

static gboolean read_locked(KubeToken *t, gint64 now_us, GError **error)
{
    char *text = read_token(t->path, error);
    t->read_us = now_us;
    if (!text)
        return FALSE;
    kube_token_wipe(t->text);
    t->text = text;
    return TRUE;
}

char *kube_token_get(KubeToken *t, gint64 now_us, GError **error)
{
    g_autoptr(GError) cause = NULL;
    pthread_mutex_lock(&t->lock);
    if (t->path && (!t->text || now_us - t->read_us >= KEEP_US))
        read_locked(t, now_us, &cause);
    char *copy = g_strdup(t->text);
    pthread_mutex_unlock(&t->lock);
    if (!copy)
        g_propagate_error(error, g_steal_pointer(&cause));
    return copy;
}

gboolean kube_token_renew(KubeToken *t, const char *refused, gint64 now_us)
{
    pthread_mutex_lock(&t->lock);
    /* Another thread may have been here before. */
    if (t->path && g_strcmp0(t->text, refused) == 0)
        read_locked(t, now_us, NULL);
    const gboolean other = g_strcmp0(t->text, refused) != 0;
    pthread_mutex_unlock(&t->lock);
    return other;
}
