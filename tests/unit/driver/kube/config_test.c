/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/config.h"
#include <string.h>
#include "driver/kube/error.h"
#include "tests/unit/harness.h"

static void put(const char *dir, const char *name, const char *text)
{
    g_autofree char *path = g_build_filename(dir, name, NULL);
    ck_assert(g_file_set_contents(path, text, -1, NULL));
}

static KubeConfig *parse(const char *cluster, const char *user, GError **error)
{
    g_autofree char *text =
        g_strdup_printf("apiVersion: v1\n"
                        "kind: Config\n"
                        "current-context: here\n"
                        "contexts:\n"
                        "- name: elsewhere\n"
                        "  context: {cluster: far, user: nobody}\n"
                        "- name: here\n"
                        "  context: {cluster: near, user: me, namespace: mine}\n"
                        "clusters:\n"
                        "- name: near\n"
                        "  cluster: {%s}\n"
                        "users:\n"
                        "- name: me\n"
                        "  user: {%s}\n",
                        cluster, user);
    return kube_config_parse(text, strlen(text), "/etc/kube/config", error);
}

static void refuses(const char *cluster, const char *user, const char *why)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeConfig) config = parse(cluster, user, &error);
    ck_assert_msg(config == NULL, "taken: %s", why);
    ck_assert(g_error_matches(error, KUBE_ERROR, KUBE_ERROR_CONFIG));
    ck_assert_msg(strstr(error->message, why) && strstr(error->message, "/etc/kube/config"),
                  "\"%s\" lacks \"%s\"", error->message, why);
}

START_TEST(in_cluster_reads_service_account)
{
    char *dir = harness_tmpdir();
    g_autoptr(GError) error = NULL;
    put(dir, "token", "abc.def\n");
    put(dir, "ca.crt", "-----BEGIN CERTIFICATE-----\n");
    put(dir, "namespace", "hearth-system\n");
    g_autoptr(KubeConfig) c = kube_config_in_cluster(dir, "10.96.0.1", "443", &error);
    ck_assert_ptr_nonnull(c);
    ck_assert_str_eq(c->server, "https://10.96.0.1:443");
    ck_assert_str_eq(c->namespace, "hearth-system");
    char *token = kube_token_get(c->token, 0, NULL);
    ck_assert_str_eq(token, "abc.def");
    kube_token_wipe(token);
    ck_assert(!c->insecure);
    g_autoptr(KubeConfig) v6 = kube_config_in_cluster(dir, "fd00::1", "6443", &error);
    ck_assert_str_eq(v6->server, "https://[fd00::1]:6443");
    harness_remove(dir);
}
END_TEST

START_TEST(in_cluster_tells_what_is_missing)
{
    char *dir = harness_tmpdir();
    g_autoptr(GError) outside = NULL, bare = NULL, tokenless = NULL;
    ck_assert_ptr_null(kube_config_in_cluster(dir, NULL, NULL, &outside));
    ck_assert_ptr_nonnull(strstr(outside->message, "--kubeconfig"));
    ck_assert_ptr_null(kube_config_in_cluster(dir, "10.96.0.1", "443", &bare));
    ck_assert_ptr_nonnull(strstr(bare->message, "automountServiceAccountToken"));
    put(dir, "ca.crt", "x");
    ck_assert_ptr_null(kube_config_in_cluster(dir, "10.96.0.1", "443", &tokenless));
    ck_assert_ptr_nonnull(strstr(tokenless->message, "token"));
    harness_remove(dir);
}
END_TEST

START_TEST(kubeconfig_follows_current_context)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeConfig) c =
        parse("server: 'https://api.example:6443/', certificate-authority-data: "
              "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==",
              "token: abc", &error);
    ck_assert_msg(c != NULL, "%s", error ? error->message : "");
    ck_assert_str_eq(c->server, "https://api.example:6443");
    ck_assert_str_eq(c->namespace, "mine");
    ck_assert(memcmp(g_bytes_get_data(c->ca_data, NULL), "-----BEGIN", 10) == 0);
    char *token = kube_token_get(c->token, 0, NULL);
    ck_assert_str_eq(token, "abc");
    kube_token_wipe(token);
}
END_TEST

START_TEST(kubeconfig_takes_certificate_from_data_and_file)
{
    char *dir = harness_tmpdir();
    put(dir, "me.crt", "-----BEGIN CERTIFICATE-----\n");
    g_autofree char *path = g_build_filename(dir, "config", NULL);
    const char *text = "{current-context: c, contexts: [{name: c, context: {cluster: k, user: u}}],"
                       " clusters: [{name: k, cluster: {server: 'https://h:1',"
                       " insecure-skip-tls-verify: true}}],"
                       " users: [{name: u, user: {client-certificate: me.crt, client-key-data: "
                       "LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0tLS0tCg==}}]}";
    g_autoptr(GError) error = NULL;
    put(dir, "config", text);
    g_autoptr(KubeConfig) c = kube_config_read(path, &error);
    ck_assert_msg(c != NULL, "%s", error ? error->message : "");
    g_autofree char *beside = g_build_filename(dir, "me.crt", NULL);
    ck_assert_str_eq(c->cert_file, beside);
    ck_assert_ptr_nonnull(c->key_data);
    ck_assert(c->insecure);
    ck_assert_str_eq(c->namespace, "default");
    ck_assert_ptr_null(c->token);
    harness_remove(dir);
}
END_TEST

START_TEST(kubeconfig_refuses_by_name_what_is_not_spoken)
{
    const char *server = "server: 'https://h:1'";
    refuses(server, "exec: {command: aws}", "user \"me\": exec is not supported");
    refuses(server, "username: a, password: b", "username is not supported");
    refuses(server, "auth-provider: {name: gcp}", "auth-provider is not supported");
    refuses(server, "token: a, as: root", "as is not supported");
    refuses("server: 'https://h:1', proxy-url: 'http://p'", "token: a", "proxy-url");
    refuses("server: 'https://h:1', tls-server-name: x", "token: a", "tls-server-name");
}
END_TEST

START_TEST(kubeconfig_names_what_is_wrong)
{
    const char *server = "server: 'https://h:1'";
    refuses("certificate-authority: /nowhere", "token: a", "/nowhere");
    refuses("insecure-skip-tls-verify: true", "token: a", "has no server");
    refuses("server: 'ftp://h:1'", "token: a", "not https://");
    refuses("server: 'h:1'", "token: a", "https://HOST:PORT");
    refuses("server: [1]", "token: a", "server is not text");
    refuses(server,
            "client-certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCg==", "belong together");
    refuses(server, "client-key-data: '!!', client-certificate-data: '!!'", "not base64 of a PEM");
    refuses(server, "token: \"a\\nX-Evil: 1\"", "token");
    refuses("", "token: a", "has no server");
    const char *text = "{current-context: c, contexts: [{name: c, context: {cluster: k}}]}";
    g_autoptr(GError) lost = NULL, broken = NULL;
    ck_assert_ptr_null(kube_config_parse(text, strlen(text), "f", &lost));
    ck_assert_str_eq(lost->message, "kubeconfig f: clusters has no cluster named \"k\"");
    ck_assert_ptr_null(kube_config_parse("a:\n- [", 6, "f", &broken));
    ck_assert_msg(strstr(broken->message, "line 3: did not find") != NULL, "%s", broken->message);
}
END_TEST

/* A token would go over the network for everyone to read. */
START_TEST(kubeconfig_refuses_http_but_on_loopback)
{
    g_autoptr(GError) error = NULL;
    refuses("server: 'http://10.0.0.1:8080'", "token: a", "not https://");
    refuses("server: 'http://127.0.0.1.example:8080'", "token: a", "not https://");
    refuses("server: 'http://127.0.0.1@evil:80'", "token: a", "https://");
    g_autoptr(KubeConfig) c = parse("server: 'http://127.0.0.1:8080'", "token: a", &error);
    ck_assert_ptr_nonnull(c);
}
END_TEST

START_TEST(errors_never_hold_a_token)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeConfig) c = parse("server: 'https://h:1'", "token: \"geheim \\t\"", &error);
    ck_assert_ptr_null(c);
    ck_assert_ptr_null(strstr(error->message, "geheim"));
}
END_TEST

START_TEST(several_files_are_refused)
{
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(kube_config_load("/a/config:/b/config", &error));
    ck_assert_ptr_nonnull(strstr(error->message, "name one"));
}
END_TEST

HARNESS_MAIN("driver/kube/config", in_cluster_reads_service_account,
             in_cluster_tells_what_is_missing, kubeconfig_follows_current_context,
             kubeconfig_takes_certificate_from_data_and_file,
             kubeconfig_refuses_by_name_what_is_not_spoken, kubeconfig_names_what_is_wrong,
             kubeconfig_refuses_http_but_on_loopback, errors_never_hold_a_token,
             several_files_are_refused)
