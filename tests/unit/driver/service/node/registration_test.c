/* SPDX-License-Identifier: Apache-2.0 */
/* The test is kubelet: it calls the socket that appears in a directory. */
#include "driver/service/node/registration.h"
#include <gio/gio.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include "driver/rpc/client.h"
#include "driver/rpc/server.h"
#include "pluginregistration.pb-c.h"
#include "tests/unit/harness.h"

#define ENDPOINT "/var/lib/kubelet/plugins/csi.hearth.dev/csi.sock"

static char *dir, *path;
static atomic_int refusals;

static void count(void *data)
{
    atomic_fetch_add((atomic_int *)data, 1);
}

static void names(void)
{
    if (dir)
        return;
    dir = harness_tmpdir();
    path = g_build_filename(dir, "csi.hearth.dev-reg.sock", NULL);
}

static Registration *begin(GError **error)
{
    names();
    RegistrationConfig config = {.driver_name = "csi.hearth.dev",
                                 .endpoint = ENDPOINT,
                                 .directory = dir,
                                 .refused = count,
                                 .refused_data = &refusals};
    return registration_start(&config, error);
}

static void end(Registration *registration)
{
    registration_stop(registration);
    g_clear_pointer(&path, g_free);
    g_clear_pointer(&dir, harness_remove);
}

static void *call(const char *method, const ProtobufCMessage *request,
                  const ProtobufCMessageDescriptor *type)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(RpcClient) client = rpc_client_connect(path, &error);
    ck_assert_msg(client != NULL, "%s", error ? error->message : "");
    g_autofree char *name = g_strconcat("/pluginregistration.Registration/", method, NULL);
    void *reply = rpc_client_call(client, name, request, type, 10000, &error);
    ck_assert_msg(reply != NULL, "%s", error ? error->message : "");
    return reply;
}

static void assert_tells_itself(void)
{
    Pluginregistration__InfoRequest request = PLUGINREGISTRATION__INFO_REQUEST__INIT;
    Pluginregistration__PluginInfo *info =
        call("GetInfo", &request.base, &pluginregistration__plugin_info__descriptor);
    ck_assert_str_eq(info->type, "CSIPlugin");
    ck_assert_str_eq(info->name, "csi.hearth.dev");
    ck_assert_str_eq(info->endpoint, ENDPOINT);
    ck_assert_uint_eq(info->n_supported_versions, 1);
    ck_assert_str_eq(info->supported_versions[0], "1.0.0");
    protobuf_c_message_free_unpacked(&info->base, NULL);
}

static void say(gboolean registered, const char *why)
{
    Pluginregistration__RegistrationStatus status = PLUGINREGISTRATION__REGISTRATION_STATUS__INIT;
    status.plugin_registered = registered;
    status.error = (char *)why;
    ProtobufCMessage *reply = call("NotifyRegistrationStatus", &status.base,
                                   &pluginregistration__registration_status_response__descriptor);
    protobuf_c_message_free_unpacked(reply, NULL);
}

START_TEST(kubelet_learns_who_it_is_however_often_it_asks)
{
    Registration *registration = begin(NULL);
    ck_assert_ptr_nonnull(registration);
    assert_tells_itself();
    say(TRUE, "");
    /* kubelet was restarted. */
    assert_tells_itself();
    say(TRUE, "");
    ck_assert_int_eq(atomic_load(&refusals), 0);
    end(registration);
}
END_TEST

static char *logged;

static GLogWriterOutput keep_log(GLogLevelFlags level, const GLogField *fields, gsize n, void *data)
{
    (void)data;
    for (gsize i = 0; i < n; i++)
        if (level == G_LOG_LEVEL_CRITICAL && strcmp(fields[i].key, "MESSAGE") == 0) {
            g_free(logged);
            logged = g_strdup(fields[i].value);
        }
    return G_LOG_WRITER_HANDLED;
}

START_TEST(a_refusal_is_answered_logged_and_told)
{
    g_log_set_writer_func(keep_log, NULL, NULL);
    Registration *registration = begin(NULL);
    ck_assert_ptr_nonnull(registration);
    say(FALSE, "dial unix: no such file");
    ck_assert_int_eq(atomic_load(&refusals), 1);
    end(registration);
    ck_assert_ptr_nonnull(logged);
    ck_assert_ptr_nonnull(strstr(logged, "dial unix: no such file"));
    ck_assert_ptr_nonnull(strstr(logged, ENDPOINT));
    g_free(logged);
}
END_TEST

START_TEST(the_socket_is_there_for_root_alone_and_goes_at_the_end)
{
    Registration *registration = begin(NULL);
    struct stat st;
    ck_assert_int_eq(lstat(path, &st), 0);
    ck_assert(S_ISSOCK(st.st_mode));
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    registration_stop(registration);
    ck_assert_int_eq(lstat(path, &st), -1);
    end(NULL);
}
END_TEST

START_TEST(the_socket_of_a_dead_process_is_replaced)
{
    names();
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    g_strlcpy(address.sun_path, path, sizeof(address.sun_path));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    close(fd);
    Registration *registration = begin(NULL);
    ck_assert_ptr_nonnull(registration);
    assert_tells_itself();
    end(registration);
}
END_TEST

START_TEST(one_that_lives_keeps_its_socket)
{
    Registration *registration = begin(NULL);
    g_autoptr(GError) error = NULL;
    ck_assert_ptr_null(begin(&error));
    ck_assert(g_error_matches(error, G_IO_ERROR, G_IO_ERROR_ADDRESS_IN_USE));
    ck_assert_ptr_nonnull(strstr(error->message, "--plugin-registration-path"));
    assert_tells_itself();
    end(registration);
}
END_TEST

START_TEST(endpoints_are_paths_that_fit_a_socket)
{
    g_autoptr(GError) error = NULL;
    ck_assert(registration_check_endpoint(ENDPOINT, NULL));
    g_autofree char *most = g_strnfill(107, '/'), *over = g_strnfill(108, '/');
    ck_assert(registration_check_endpoint(most, NULL));
    ck_assert(!registration_check_endpoint(over, NULL));
    ck_assert(!registration_check_endpoint("", NULL));
    ck_assert(!registration_check_endpoint("unix:///csi/csi.sock", &error));
    ck_assert(g_error_matches(error, HEARTH_ERROR, HEARTH_ERROR_INVALID_ARGUMENT));
}
END_TEST

HARNESS_MAIN("driver/service/node/registration", kubelet_learns_who_it_is_however_often_it_asks,
             a_refusal_is_answered_logged_and_told,
             the_socket_is_there_for_root_alone_and_goes_at_the_end,
             the_socket_of_a_dead_process_is_replaced, one_that_lives_keeps_its_socket,
             endpoints_are_paths_that_fit_a_socket)
