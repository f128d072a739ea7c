/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/service/call_log.h"
#include "driver/volume/attributes.h"
#include "tests/unit/driver/service/world.h"

/* The fields of the lines written while a test runs, as "key=value " each. */
static pthread_mutex_t lines_lock = PTHREAD_MUTEX_INITIALIZER;
static GString *lines;

static GLogWriterOutput collect(GLogLevelFlags level, const GLogField *fields, gsize n,
                                gpointer data)
{
    (void)data;
    pthread_mutex_lock(&lines_lock);
    g_string_append_printf(lines, "level=%d ", (int)(level & G_LOG_LEVEL_MASK));
    for (gsize i = 0; i < n; i++)
        g_string_append_printf(lines, "%s=%s ", fields[i].key, (const char *)fields[i].value);
    g_string_append_c(lines, '\n');
    pthread_mutex_unlock(&lines_lock);
    return G_LOG_WRITER_HANDLED;
}

START_TEST(a_line_has_the_call_and_no_body)
{
    lines = g_string_new(NULL);
    g_log_set_writer_func(collect, NULL, NULL);
    char *dir = harness_tmpdir();
    g_autofree char *socket = g_build_filename(dir, "s", NULL);
    Backend *backends[] = {fake_backend(fake_new())};
    g_autoptr(Controller) controller = controller_new(backends, 1);
    g_autoptr(CallLog) log = call_log_new();
    RpcServerConfig config = {.socket_path = socket};
    RpcServer *server = rpc_server_new(&config, NULL);
    call_log_add(log, server, controller_methods(), controller);
    ck_assert(rpc_server_start(server, NULL));
    RpcClient *client = rpc_client_connect(socket, NULL);
    World w = {.client = client};
    ck_assert_int_eq(create(&w, create_request("pvc-1", good_parameters, GIB), NULL, NULL), 0);
    static const char *const for_claim[] = {"clusterID=c", "fsName=f",
                                            ATTRIBUTE_PVC_NAMESPACE "=team",
                                            ATTRIBUTE_PVC_NAME "=data", NULL};
    ck_assert_int_eq(create(&w, create_request("pvc-2", for_claim, GIB), NULL, NULL), 0);
    ck_assert_int_eq(delete (&w, delete_request("h1~cephfs~c~f~csi~x", NULL)),
                     HEARTH_ERROR_INVALID_ARGUMENT);
    rpc_client_close(client);
    ck_assert(rpc_server_stop(server, 1000));
    harness_remove(dir);

    g_auto(GStrv) each = g_strsplit(lines->str, "\n", -1);
    ck_assert_uint_eq(g_strv_length(each), 4);
    ck_assert_ptr_nonnull(strstr(each[0], "method=/csi.v1.Controller/CreateVolume code=OK ms="));
    ck_assert_ptr_nonnull(strstr(each[0], " volume=pvc-1 "));
    ck_assert_ptr_null(strstr(each[0], " claim="));
    ck_assert_ptr_nonnull(strstr(each[1], " volume=pvc-2 claim=team/data "));
    ck_assert_ptr_nonnull(strstr(each[2], "code=INVALID_ARGUMENT"));
    ck_assert_ptr_nonnull(strstr(each[2], " volume=h1~cephfs~c~f~csi~x "));
    ck_assert_ptr_nonnull(strstr(each[2], "error="));
    ck_assert_ptr_null(strstr(lines->str, "AQAAAA"));
    ck_assert_ptr_null(strstr(lines->str, "fsName"));
    g_string_free(lines, TRUE);
}
END_TEST

START_TEST(codes_have_grpcs_names)
{
    ck_assert_str_eq(call_log_code_name(0), "OK");
    ck_assert_str_eq(call_log_code_name(HEARTH_ERROR_FAILED_PRECONDITION), "FAILED_PRECONDITION");
    ck_assert_str_eq(call_log_code_name(HEARTH_ERROR_UNAUTHENTICATED), "UNAUTHENTICATED");
    ck_assert_str_eq(call_log_code_name(99), "UNKNOWN");
    ck_assert_str_eq(call_log_code_name(-1), "UNKNOWN");
}
END_TEST

HARNESS_MAIN("driver/service/call_log", a_line_has_the_call_and_no_body, codes_have_grpcs_names)
