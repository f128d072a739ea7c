/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a kubeconfig: the current context, its cluster and its user. libyaml reads it into nodes
 * that are looked up by name, so aliases cost nothing and nothing recurses.
 */
#include <string.h>
#include <yaml.h>
#include "driver/kube/config.h"
#include "driver/kube/error.h"

#define FILE_MAX (1024 * 1024)

typedef struct Reader {
    yaml_document_t *document;
    const char *path; /* of the file */
    GError **error;   /* of the call that is being served */
} Reader;

typedef struct File {
    char *text;
    gsize size;
} File;

static void file_wipe(File *file)
{
    if (file->text)
        explicit_bzero(file->text, file->size);
    g_free(file->text);
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(File, file_wipe)

static void file_free(void *data)
{
    file_wipe(data);
    g_free(data);
}

static gboolean fail_at(Reader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);
static gboolean fail_at(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *why = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *valid = g_utf8_make_valid(why, -1);
    g_set_error(r->error, KUBE_ERROR, KUBE_ERROR_CONFIG, "kubeconfig %s: %s", r->path, valid);
    return FALSE;
}

static yaml_node_t *node_of(Reader *r, int index)
{
    return yaml_document_get_node(r->document, index);
}

static gboolean is_scalar(const yaml_node_t *node, const char *text)
{
    return node && node->type == YAML_SCALAR_NODE && node->data.scalar.length == strlen(text) &&
           memcmp(node->data.scalar.value, text, node->data.scalar.length) == 0;
}

/* NULL: not a map, or without the key. */
static yaml_node_t *member(Reader *r, const yaml_node_t *map, const char *key)
{
    if (!map || map->type != YAML_MAPPING_NODE)
        return NULL;
    for (const yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
         p++) {
        if (is_scalar(node_of(r, p->key), key))
            return node_of(r, p->value);
    }
    return NULL;
}

/* *text is NULL when the key is missing or empty. FALSE when the value is no text. */
static gboolean text_of(Reader *r, const yaml_node_t *map, const char *in, const char *key,
                        char **text)
{
    *text = NULL;
    const yaml_node_t *node = member(r, map, key);
    if (!node || is_scalar(node, "") || is_scalar(node, "~") || is_scalar(node, "null"))
        return TRUE;
    if (node->type != YAML_SCALAR_NODE ||
        strlen((const char *)node->data.scalar.value) != node->data.scalar.length)
        return fail_at(r, "%s: %s is not text", in, key);
    *text = g_strdup((const char *)node->data.scalar.value);
    return TRUE;
}

/* The entry of `list` with that name, and in it the map named `kind`. */
static yaml_node_t *entry(Reader *r, const char *list, const char *kind, const char *name)
{
    const yaml_node_t *entries = member(r, yaml_document_get_root_node(r->document), list);
    if (entries && entries->type == YAML_SEQUENCE_NODE) {
        for (const yaml_node_item_t *i = entries->data.sequence.items.start;
             i < entries->data.sequence.items.top; i++) {
            const yaml_node_t *one = node_of(r, *i);
            yaml_node_t *found = member(r, one, kind);
            if (is_scalar(member(r, one, "name"), name) && found &&
                found->type == YAML_MAPPING_NODE)
                return found;
        }
    }
    fail_at(r, "%s has no %s named \"%s\"", list, kind, name);
    return NULL;
}

/* KEY names a file, KEY-data has its contents. */
static gboolean file_or_data(Reader *r, const yaml_node_t *map, const char *in, const char *key,
                             char **file, GBytes **data)
{
    g_autofree char *path = NULL, *encoded = NULL, *data_key = g_strconcat(key, "-data", NULL);
    if (!text_of(r, map, in, key, &path) || !text_of(r, map, in, data_key, &encoded))
        return FALSE;
    if (encoded) {
        gsize size;
        guchar *decoded = g_base64_decode(encoded, &size);
        const gboolean pem = g_strstr_len((char *)decoded, (gssize)size, "-----BEGIN ") != NULL;
        /* Wiped when freed, because it may be a key. */
        File *kept = g_new0(File, 1);
        *kept = (File){(char *)decoded, size};
        *data = g_bytes_new_with_free_func(decoded, size, file_free, kept);
        explicit_bzero(encoded, strlen(encoded));
        return pem || fail_at(r, "%s: %s is not base64 of a PEM file", in, data_key);
    }
    if (!path)
        return TRUE;
    g_autofree char *directory = g_path_get_dirname(r->path);
    *file =
        g_path_is_absolute(path) ? g_steal_pointer(&path) : g_build_filename(directory, path, NULL);
    return g_file_test(*file, G_FILE_TEST_IS_REGULAR) ||
           fail_at(r, "%s: %s names %s, which is not there", in, key, *file);
}

/* Fails for members that would change our identity or the server, and are not supported. */
static gboolean refuse_members(Reader *r, const yaml_node_t *map, const char *in,
                               const char *const *keys, const char *fix)
{
    for (; *keys; keys++) {
        const yaml_node_t *node = member(r, map, *keys);
        if (node && !is_scalar(node, "") && !is_scalar(node, "null"))
            return fail_at(r, "%s: %s is not supported; %s", in, *keys, fix);
    }
    return TRUE;
}

static gboolean is_loopback(const char *server)
{
    const char *host = server + strlen("http://");
    const char *names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        const char *end = host + strlen(names[i]);
        if (g_str_has_prefix(host, names[i]) && (!*end || *end == ':' || *end == '/'))
            return TRUE;
    }
    return FALSE;
}

static gboolean read_cluster(Reader *r, const yaml_node_t *map, const char *name, KubeConfig *c)
{
    static const char *const refused[] = {"proxy-url", "tls-server-name", NULL};
    g_autofree char *in = g_strdup_printf("cluster \"%s\"", name), *insecure = NULL;
    if (!refuse_members(r, map, in, refused, "name the API server by what its certificate says"))
        return FALSE;
    if (!text_of(r, map, in, "server", &c->server))
        return FALSE;
    if (!text_of(r, map, in, "insecure-skip-tls-verify", &insecure))
        return FALSE;
    if (!file_or_data(r, map, in, "certificate-authority", &c->ca_file, &c->ca_data))
        return FALSE;
    if (!c->server)
        return fail_at(r, "%s has no server", in);
    for (gsize size = strlen(c->server); size && c->server[size - 1] == '/';)
        c->server[--size] = '\0';
    g_autoptr(GUri) uri = g_uri_parse(c->server, G_URI_FLAGS_NONE, NULL);
    if (!uri || !g_uri_get_host(uri) || !*g_uri_get_host(uri) || g_uri_get_userinfo(uri) ||
        g_uri_get_query(uri) || g_uri_get_fragment(uri))
        return fail_at(r, "%s: server is no address; it is written https://HOST:PORT", in);
    if (!g_str_has_prefix(c->server, "https://") &&
        !(g_str_has_prefix(c->server, "http://") && is_loopback(c->server)))
        return fail_at(r, "%s: server %s is not https://, which only one on loopback may be", in,
                       c->server);
    c->insecure = insecure && g_str_equal(insecure, "true");
    return TRUE;
}

static gboolean read_client_certificate(Reader *r, const yaml_node_t *map, const char *in,
                                        KubeConfig *c)
{
    if (!file_or_data(r, map, in, "client-certificate", &c->cert_file, &c->cert_data))
        return FALSE;
    if (!file_or_data(r, map, in, "client-key", &c->key_file, &c->key_data))
        return FALSE;
    if ((c->cert_file || c->cert_data) != (c->key_file || c->key_data))
        return fail_at(r, "%s: client-certificate and client-key belong together", in);
    return TRUE;
}

static gboolean read_user(Reader *r, const yaml_node_t *map, const char *name, KubeConfig *c)
{
    static const char *const refused[] = {"exec", "auth-provider", "username",  "password",
                                          "as",   "as-uid",        "as-groups", "as-user-extra",
                                          NULL};
    static const char fix[] =
        "use a token (`kubectl create token`), tokenFile or a client certificate";
    g_autofree char *in = g_strdup_printf("user \"%s\"", name), *token_file = NULL;
    char *token = NULL;
    if (!refuse_members(r, map, in, refused, fix))
        return FALSE;
    if (!text_of(r, map, in, "tokenFile", &token_file))
        return FALSE;
    if (!text_of(r, map, in, "token", &token))
        return FALSE;
    gboolean ok = read_client_certificate(r, map, in, c);
    /* The file wins, as for kubectl. */
    if (ok && token_file) {
        g_autofree char *directory = g_path_get_dirname(r->path);
        g_autofree char *path = g_path_is_absolute(token_file)
                                    ? g_strdup(token_file)
                                    : g_build_filename(directory, token_file, NULL);
        c->token = kube_token_new_file(path);
    } else if (ok && token) {
        g_autofree char *where = g_strdup_printf("kubeconfig %s: %s: token", r->path, in);
        c->token = kube_token_new(token, where, r->error);
        ok = c->token != NULL;
    }
    kube_token_wipe(token);
    return ok;
}

static gboolean read_document(Reader *r, KubeConfig *c)
{
    const yaml_node_t *root = yaml_document_get_root_node(r->document);
    g_autofree char *current = NULL, *cluster = NULL, *user = NULL;
    if (!root || root->type != YAML_MAPPING_NODE)
        return fail_at(r, "it is no map of clusters, users and contexts");
    if (!text_of(r, root, "it", "current-context", &current))
        return FALSE;
    if (!current)
        return fail_at(r, "current-context is not set; `kubectl config use-context NAME` does");
    const yaml_node_t *context = entry(r, "contexts", "context", current), *map;
    g_autofree char *in = g_strdup_printf("context \"%s\"", current);
    if (!context || !text_of(r, context, in, "cluster", &cluster))
        return FALSE;
    if (!text_of(r, context, in, "user", &user))
        return FALSE;
    if (!text_of(r, context, in, "namespace", &c->namespace))
        return FALSE;
    if (!cluster)
        return fail_at(r, "%s has no cluster", in);
    if (!c->namespace)
        c->namespace = g_strdup("default");
    map = entry(r, "clusters", "cluster", cluster);
    if (!map || !read_cluster(r, map, cluster, c))
        return FALSE;
    if (!user)
        return TRUE;
    map = entry(r, "users", "user", user);
    return map && read_user(r, map, user, c);
}

KubeConfig *kube_config_parse(const char *text, gsize size, const char *path, GError **error)
{
    yaml_parser_t parser;
    yaml_document_t document;
    Reader r = {&document, path, error};
    if (!yaml_parser_initialize(&parser))
        g_error("out of memory");
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
    g_autoptr(KubeConfig) c = g_new0(KubeConfig, 1);
    gboolean ok = FALSE;
    if (!yaml_parser_load(&parser, &document)) {
        fail_at(&r, "line %zu: %s", parser.problem_mark.line + 1,
                parser.problem ? parser.problem : "it is no YAML");
    } else {
        ok = read_document(&r, c);
        yaml_document_delete(&document);
    }
    yaml_parser_delete(&parser);
    return ok ? g_steal_pointer(&c) : NULL;
}

KubeConfig *kube_config_read(const char *path, GError **error)
{
    if (!g_file_test(path, G_FILE_TEST_EXISTS) && strchr(path, ':')) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG,
                    "kubeconfig %s: several files are not merged; name one", path);
        return NULL;
    }
    g_auto(File) file = {0};
    g_autoptr(GError) cause = NULL;
    if (!g_file_get_contents(path, &file.text, &file.size, &cause)) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG, "kubeconfig: %s", cause->message);
        return NULL;
    }
    if (file.size > FILE_MAX) {
        g_set_error(error, KUBE_ERROR, KUBE_ERROR_CONFIG, "kubeconfig %s: larger than 1 MiB", path);
        return NULL;
    }
    return kube_config_parse(file.text, file.size, path, error);
}
