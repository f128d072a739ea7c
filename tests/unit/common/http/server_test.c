/* SPDX-License-Identifier: Apache-2.0 */
#include "common/http/server.h"
#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>
#include "tests/unit/driver/http/certificates.h"

#define BODY_MAX 200000

typedef struct World {
    HttpServer *server;
    HttpServerConfig config;
    char *dir; /* NULL: without TLS */
    Pair a, b;
    gint asked, changes, troubles; /* atomic */
} World;

static void echo(const HttpRequest *request, HttpReply *reply, void *data)
{
    World *w = data;
    g_atomic_int_inc(&w->asked);
    ck_assert_int_eq(request->body[request->size], 0);
    reply->content_type = request->content_type ? "application/json" : "text/x-none";
    reply->body = g_bytes_new(request->body, request->size);
}

static void hello(const HttpRequest *request, HttpReply *reply, void *data)
{
    World *w = data;
    ck_assert_str_eq(request->method, "GET");
    ck_assert_str_eq(request->path, "/hello");
    ck_assert_uint_eq(request->size, 0);
    g_atomic_int_inc(&w->asked);
    reply->body = g_bytes_new_static("hello", 5);
}

static void on_certificate(const GError *error, gint64 expires_s, void *data)
{
    World *w = data;
    (void)expires_s;
    g_atomic_int_inc(error ? &w->troubles : &w->changes);
}

static void world_new(World *w, gboolean tls, HttpServerConfig config)
{
    g_autoptr(GError) error = NULL;
    *w = (World){.config = config};
    const HttpRoute routes[] = {{"POST", "/echo", echo, w}, {"GET", "/hello", hello, w}};
    if (tls) {
        w->dir = harness_tmpdir();
        w->a = pair_new("a", 3600);
        w->b = pair_new("b", 7200);
        pair_put(w->dir, w->a.certificate, w->a.key);
    }
    config.address = "127.0.0.1:0";
    config.what = "--test-address";
    config.certificate = w->dir;
    config.routes = routes;
    config.n_routes = G_N_ELEMENTS(routes);
    config.body_max = config.body_max ? config.body_max : BODY_MAX;
    config.on_certificate = on_certificate;
    config.data = w;
    w->server = http_server_new(&config, &error);
    ck_assert_msg(w->server != NULL, "%s", error ? error->message : "");
}

static void world_free(World *w)
{
    http_server_free(w->server);
    if (w->dir)
        harness_remove(w->dir);
    pair_clear(&w->a);
    pair_clear(&w->b);
}

/* ---- a client ---- */

typedef struct Client {
    CURL *curl;
    long status;
    GString *body;
} Client;

static size_t on_bytes(char *bytes, size_t size, size_t n, void *data)
{
    g_string_append_len(data, bytes, (gssize)(size * n));
    return size * n;
}

/* trusted: a certificate in PEM; NULL: without TLS. */
static Client client_new(const char *trusted)
{
    Client c = {curl_easy_init(), 0, g_string_new(NULL)};
    curl_easy_setopt(c.curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(c.curl, CURLOPT_WRITEDATA, c.body);
    curl_easy_setopt(c.curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(c.curl, CURLOPT_TIMEOUT, 20L);
    if (trusted) {
        struct curl_blob blob = {(void *)trusted, strlen(trusted), CURL_BLOB_COPY};
        curl_easy_setopt(c.curl, CURLOPT_CAINFO_BLOB, &blob);
        curl_easy_setopt(c.curl, CURLOPT_CAPATH, NULL);
    }
    return c;
}

static void client_clear(Client *c)
{
    curl_easy_cleanup(c->curl);
    g_string_free(c->body, TRUE);
}

/* body: NULL for GET. */
static CURLcode ask(World *w, Client *c, const char *path, const char *body, gsize size)
{
    g_autofree char *url = g_strdup_printf("http%s://127.0.0.1:%d%s", w->dir ? "s" : "",
                                           http_server_port(w->server), path);
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
    headers = curl_slist_append(headers, "Expect:");
    g_string_truncate(c->body, 0);
    c->status = 0;
    curl_easy_setopt(c->curl, CURLOPT_URL, url);
    curl_easy_setopt(c->curl, CURLOPT_HTTPGET, 1L);
    curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, NULL);
    if (body) {
        curl_easy_setopt(c->curl, CURLOPT_POST, 1L);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDS, body);
        curl_easy_setopt(c->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)size);
        curl_easy_setopt(c->curl, CURLOPT_HTTPHEADER, headers);
    }
    const CURLcode rc = curl_easy_perform(c->curl);
    curl_easy_getinfo(c->curl, CURLINFO_RESPONSE_CODE, &c->status);
    curl_slist_free_all(headers);
    return rc;
}

static long connects_of(Client *c)
{
    long n = -1;
    curl_easy_getinfo(c->curl, CURLINFO_NUM_CONNECTS, &n);
    return n;
}

/* ---- a client that does not keep to the rules ---- */

static int raw_connect(World *w)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(http_server_port(w->server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval limit = {.tv_sec = 20};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

static void raw_send(int fd, const char *text)
{
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* A byte each 50 ms; how long until the server has had enough. */
static gint64 dribble_ms(int fd, const char *text)
{
    const gint64 began_us = g_get_monotonic_time();
    for (const char *p = text; g_get_monotonic_time() - began_us < 20 * G_USEC_PER_SEC; p++) {
        char got;
        if (send(fd, *p ? p : --p, 1, MSG_NOSIGNAL) < 0)
            break;
        g_usleep(50000);
        const ssize_t n = recv(fd, &got, 1, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            break;
    }
    return (g_get_monotonic_time() - began_us) / 1000;
}

static char *read_all(int fd)
{
    GString *all = g_string_new(NULL);
    char part[4096];
    ssize_t n;
    while ((n = recv(fd, part, sizeof(part), 0)) > 0)
        g_string_append_len(all, part, n);
    return g_string_free(all, FALSE);
}

/* ---- tests ---- */

START_TEST(request_is_answered_by_its_route)
{
    for (int tls = 0; tls < 2; tls++) {
        World w;
        world_new(&w, tls, (HttpServerConfig){0});
        Client c = client_new(tls ? w.a.certificate : NULL);
        g_autofree char *large = g_strnfill(BODY_MAX, 'x');
        ck_assert_int_eq(ask(&w, &c, "/hello?timeout=2s", NULL, 0), CURLE_OK);
        ck_assert_int_eq(c.status, 200);
        ck_assert_str_eq(c.body->str, "hello");
        ck_assert_int_eq(ask(&w, &c, "/echo", "{\"a\": 1}", 8), CURLE_OK);
        ck_assert_str_eq(c.body->str, "{\"a\": 1}");
        const char *type;
        curl_easy_getinfo(c.curl, CURLINFO_CONTENT_TYPE, &type);
        ck_assert_str_eq(type, "application/json");
        ck_assert_int_eq(ask(&w, &c, "/echo", "", 0), CURLE_OK);
        ck_assert_int_eq(c.status, 200);
        ck_assert_int_eq(ask(&w, &c, "/echo", large, BODY_MAX), CURLE_OK);
        ck_assert_str_eq(c.body->str, large);
        ck_assert_int_eq(connects_of(&c), 0);
        ck_assert_int_eq(w.asked, 4);
        client_clear(&c);
        world_free(&w);
    }
}
END_TEST

START_TEST(what_is_not_served_is_refused)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){0});
    Client c = client_new(NULL);
    ck_assert_int_eq(ask(&w, &c, "/", NULL, 0), CURLE_OK);
    ck_assert_int_eq(c.status, 404);
    ck_assert_int_eq(ask(&w, &c, "/hello/", NULL, 0), CURLE_OK);
    ck_assert_int_eq(c.status, 404);
    ck_assert_int_eq(ask(&w, &c, "/echo", NULL, 0), CURLE_OK);
    ck_assert_int_eq(c.status, 405);
    ck_assert_int_eq(ask(&w, &c, "/hello", "x", 1), CURLE_OK);
    ck_assert_int_eq(c.status, 405);
    ck_assert_int_eq(w.asked, 0);
    client_clear(&c);
    const int fd = raw_connect(&w);
    raw_send(fd, "\x16\x03\x01 this is no HTTP\r\n\r\n");
    g_autofree char *got = read_all(fd);
    ck_assert(g_str_equal(got, "") || strstr(got, " 400 ") || strstr(got, " 404 "));
    close(fd);
    world_free(&w);
}
END_TEST

START_TEST(body_that_is_too_large_is_refused_before_it_is_sent)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){0});
    const int fd = raw_connect(&w);
    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 200001\r\n\r\n");
    g_autofree char *got = read_all(fd);
    ck_assert_msg(g_str_has_prefix(got, "HTTP/1.1 413 "), "%s", got);
    close(fd);
    world_free(&w);
}
END_TEST

START_TEST(body_that_does_not_tell_its_size_is_bounded_too)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){.body_max = 1000});
    const int fd = raw_connect(&w);
    g_autofree char *chunk = g_strnfill(0x300, 'x');
    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
                 "Connection: close\r\n\r\n");
    for (int i = 0; i < 2; i++) {
        raw_send(fd, "300\r\n");
        raw_send(fd, chunk);
        raw_send(fd, "\r\n");
    }
    raw_send(fd, "0\r\n\r\n");
    g_autofree char *got = read_all(fd);
    ck_assert_msg(g_str_has_prefix(got, "HTTP/1.1 413 "), "%s", got);
    ck_assert_int_eq(w.asked, 0);
    close(fd);
    world_free(&w);
}
END_TEST

START_TEST(bodies_together_are_bounded_and_given_back)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){.body_max = 1000, .bodies_max = 1000});
    Client c = client_new(NULL);
    g_autofree char *half = g_strnfill(600, 'x');
    const int fd = raw_connect(&w);
    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
    raw_send(fd, half);
    /* The server has seen that when it answers another. */
    for (int i = 0; i < 100 && c.status != 503; i++)
        ck_assert_int_eq(ask(&w, &c, "/echo", half, 600), CURLE_OK);
    ck_assert_int_eq(c.status, 503);
    ck_assert_int_eq(ask(&w, &c, "/echo", half, 300), CURLE_OK);
    ck_assert_int_eq(c.status, 200);
    close(fd);
    for (int i = 0; i < 100 && c.status != 200; i++)
        ck_assert_int_eq(ask(&w, &c, "/echo", half, 600), CURLE_OK);
    for (int i = 0; i < 10; i++) {
        ck_assert_int_eq(ask(&w, &c, "/echo", half, 600), CURLE_OK);
        ck_assert_int_eq(c.status, 200);
    }
    client_clear(&c);
    world_free(&w);
}
END_TEST

START_TEST(request_that_dribbles_ends_in_time)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){.request_ms = 1000, .idle_ms = 60000});
    const int head = raw_connect(&w), body = raw_connect(&w), silent = raw_connect(&w);
    gint64 ms = dribble_ms(head, "GET /hello HTTP/1.1\r\nX-Long: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    ck_assert_int_ge(ms, 900);
    ck_assert_int_le(ms, 5000);
    g_autofree char *nothing = read_all(silent);
    ck_assert_str_eq(nothing, "");
    close(body);
    const int again = raw_connect(&w);
    raw_send(again, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n");
    ms = dribble_ms(again, "{}");
    ck_assert_int_ge(ms, 900);
    ck_assert_int_le(ms, 5000);
    ck_assert_int_eq(w.asked, 0);
    close(head);
    close(silent);
    close(again);
    world_free(&w);
}
END_TEST

START_TEST(connection_may_idle_longer_than_a_request_may_take)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){.request_ms = 500, .idle_ms = 3000});
    Client c = client_new(NULL);
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    g_usleep(1500000);
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(connects_of(&c), 0);
    g_usleep(5000000);
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(connects_of(&c), 1);
    client_clear(&c);
    world_free(&w);
}
END_TEST

START_TEST(others_are_served_when_who_held_all_connections_runs_out_of_time)
{
    World w;
    world_new(&w, TRUE, (HttpServerConfig){.connections = 8, .request_ms = 1000});
    int held[8];
    for (gsize i = 0; i < G_N_ELEMENTS(held); i++)
        held[i] = raw_connect(&w);
    Client c = client_new(w.a.certificate);
    const gint64 began_us = g_get_monotonic_time();
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_ge(g_get_monotonic_time() - began_us, 500000);
    ck_assert_int_le(g_get_monotonic_time() - began_us, 10 * G_USEC_PER_SEC);
    for (gsize i = 0; i < G_N_ELEMENTS(held); i++)
        close(held[i]);
    client_clear(&c);
    world_free(&w);
}
END_TEST

START_TEST(rotated_certificate_is_shown_and_no_connection_dropped)
{
    World w;
    world_new(&w, TRUE, (HttpServerConfig){0});
    Client before = client_new(w.a.certificate), stranger = client_new(w.b.certificate);
    ck_assert_int_eq(ask(&w, &before, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(ask(&w, &stranger, "/hello", NULL, 0), CURLE_PEER_FAILED_VERIFICATION);
    ck_assert_int_eq(w.asked, 1);
    pair_put(w.dir, w.b.certificate, w.b.key);
    g_usleep(1100000);
    Client after = client_new(w.b.certificate), late = client_new(w.a.certificate);
    ck_assert_int_eq(ask(&w, &after, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(ask(&w, &late, "/hello", NULL, 0), CURLE_PEER_FAILED_VERIFICATION);
    ck_assert_int_eq(ask(&w, &before, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(connects_of(&before), 0);
    ck_assert_int_eq(g_atomic_int_get(&w.changes), 1);
    /* One that cannot be used does not take the good one's place. */
    pair_put(w.dir, w.a.certificate, w.b.key);
    g_usleep(1100000);
    curl_easy_setopt(after.curl, CURLOPT_FRESH_CONNECT, 1L);
    ck_assert_int_eq(ask(&w, &after, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(g_atomic_int_get(&w.troubles), 1);
    client_clear(&before);
    client_clear(&stranger);
    client_clear(&after);
    client_clear(&late);
    world_free(&w);
}
END_TEST

static void show(Client *c, const Pair *pair)
{
    struct curl_blob certificate = {pair->certificate, strlen(pair->certificate), CURL_BLOB_COPY},
                     key = {pair->key, strlen(pair->key), CURL_BLOB_COPY};
    curl_easy_setopt(c->curl, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(c->curl, CURLOPT_SSLCERT_BLOB, &certificate);
    curl_easy_setopt(c->curl, CURLOPT_SSLKEY_BLOB, &key);
}

START_TEST(who_shows_no_certificate_of_the_authorities_is_refused)
{
    World w;
    Pair known = pair_new("apiserver", 3600), other = pair_new("pod", 3600),
         expired = pair_new("late", -60);
    g_autofree char *both = g_strconcat(known.certificate, expired.certificate, NULL);
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "ca.crt", NULL);
    ck_assert(g_file_set_contents(path, both, -1, NULL));
    world_new(&w, TRUE, (HttpServerConfig){.client_ca = path});
    Client c = client_new(w.a.certificate);
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(c.status, 401);
    ck_assert_uint_eq(c.body->len, 0);
    ck_assert_int_eq(ask(&w, &c, "/echo", "{}", 2), CURLE_OK);
    ck_assert_int_eq(c.status, 401);
    show(&c, &other);
    ask(&w, &c, "/hello", NULL, 0);
    ck_assert_int_ne(c.status, 200);
    show(&c, &expired);
    ask(&w, &c, "/hello", NULL, 0);
    ck_assert_int_ne(c.status, 200);
    show(&c, &known);
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(c.status, 200);
    client_clear(&c);
    world_free(&w);
    pair_clear(&known);
    pair_clear(&other);
    pair_clear(&expired);
    harness_remove(dir);
}
END_TEST

static void on_authorities(const GError *error, void *data)
{
    World *w = data;
    g_atomic_int_inc(error ? &w->troubles : &w->changes);
}

START_TEST(other_authorities_count_once_their_file_is_replaced)
{
    World w;
    Pair first = pair_new("first", 3600), next = pair_new("next", 3600);
    char *dir = harness_tmpdir();
    g_autofree char *path = g_build_filename(dir, "ca.crt", NULL);
    ck_assert(g_file_set_contents(path, first.certificate, -1, NULL));
    world_new(&w, TRUE, (HttpServerConfig){.client_ca = path, .on_authorities = on_authorities});
    Client old = client_new(w.a.certificate), new = client_new(w.a.certificate);
    show(&old, &first);
    show(&new, &next);
    ck_assert_int_eq(ask(&w, &old, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(old.status, 200);
    ck_assert_int_eq(ask(&w, &new, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(new.status, 401);
    ck_assert(g_file_set_contents(path, next.certificate, -1, NULL));
    g_usleep(1100000);
    ck_assert_int_eq(ask(&w, &new, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(new.status, 200);
    /* Also on a connection on which it was known. */
    curl_easy_setopt(old.curl, CURLOPT_FRESH_CONNECT, 0L);
    ck_assert_int_eq(ask(&w, &old, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(old.status, 401);
    ck_assert_int_eq(connects_of(&old), 0);
    ck_assert_int_eq(g_atomic_int_get(&w.changes), 1);
    /* One without a certificate takes nobody's place. */
    ck_assert(g_file_set_contents(path, "none", -1, NULL));
    g_usleep(1100000);
    curl_easy_setopt(new.curl, CURLOPT_SSLVERSION,
                     (long)(CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2));
    ck_assert_int_eq(ask(&w, &new, "/hello", NULL, 0), CURLE_OK);
    ck_assert_int_eq(new.status, 200);
    ck_assert_int_eq(g_atomic_int_get(&w.troubles), 1);
    client_clear(&old);
    client_clear(&new);
    world_free(&w);
    pair_clear(&first);
    pair_clear(&next);
    harness_remove(dir);
}
END_TEST

START_TEST(old_tls_is_refused)
{
    World w;
    world_new(&w, TRUE, (HttpServerConfig){0});
    Client c = client_new(w.a.certificate);
    /* OpenSSL would not even ask, else; libcurls of others take no such list. */
    curl_easy_setopt(c.curl, CURLOPT_SSL_CIPHER_LIST, "DEFAULT@SECLEVEL=0");
    curl_easy_setopt(c.curl, CURLOPT_SSLVERSION,
                     (long)(CURL_SSLVERSION_TLSv1_0 | CURL_SSLVERSION_MAX_TLSv1_1));
    ck_assert_int_ne(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    curl_easy_setopt(c.curl, CURLOPT_SSL_CIPHER_LIST, NULL);
    curl_easy_setopt(c.curl, CURLOPT_SSLVERSION,
                     (long)(CURL_SSLVERSION_TLSv1_2 | CURL_SSLVERSION_MAX_TLSv1_2));
    ck_assert_int_eq(ask(&w, &c, "/hello", NULL, 0), CURLE_OK);
    client_clear(&c);
    world_free(&w);
}
END_TEST

typedef struct Load {
    World *w;
    gint good; /* atomic */
} Load;

static void *load(void *data)
{
    Load *l = data;
    for (int i = 0; i < 10; i++) {
        Client c = client_new(l->w->a.certificate);
        for (int j = 0; j < 10; j++) {
            if (ask(l->w, &c, "/echo", "{}", 2) == CURLE_OK && c.status == 200)
                g_atomic_int_inc(&l->good);
        }
        client_clear(&c);
    }
    return NULL;
}

START_TEST(many_at_once_are_answered_while_certificates_come)
{
    World w;
    world_new(&w, TRUE, (HttpServerConfig){0});
    Load l = {.w = &w};
    pthread_t threads[8];
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, load, &l), 0);
    for (int i = 0; i < 5; i++) {
        pair_put(w.dir, w.a.certificate, w.a.key);
        g_usleep(300000);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(l.good, 800);
    world_free(&w);
}
END_TEST

START_TEST(end_closes_what_is_open)
{
    World w;
    world_new(&w, FALSE, (HttpServerConfig){0});
    const int fd = raw_connect(&w);
    raw_send(fd, "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{");
    g_usleep(200000);
    const gint64 began_us = g_get_monotonic_time();
    http_server_free(g_steal_pointer(&w.server));
    ck_assert_int_le(g_get_monotonic_time() - began_us, 2 * G_USEC_PER_SEC);
    g_autofree char *got = read_all(fd);
    ck_assert_str_eq(got, "");
    close(fd);
    world_free(&w);
}
END_TEST

HARNESS_MAIN("common/http/server", request_is_answered_by_its_route, what_is_not_served_is_refused,
             body_that_is_too_large_is_refused_before_it_is_sent,
             body_that_does_not_tell_its_size_is_bounded_too,
             bodies_together_are_bounded_and_given_back, request_that_dribbles_ends_in_time,
             connection_may_idle_longer_than_a_request_may_take,
             others_are_served_when_who_held_all_connections_runs_out_of_time,
             rotated_certificate_is_shown_and_no_connection_dropped,
             who_shows_no_certificate_of_the_authorities_is_refused,
             other_authorities_count_once_their_file_is_replaced, old_tls_is_refused,
             many_at_once_are_answered_while_certificates_come, end_closes_what_is_open)
