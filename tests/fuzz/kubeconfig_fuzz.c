/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A kubeconfig. What is taken names a server that a token may be sent to; what is refused says
 * why, in valid UTF-8 and with the file.
 */
#include "tests/fuzz/fuzz.h"
#include <stdlib.h>
#include <string.h>
#include "driver/kube/config.h"
#include "driver/kube/error.h"

static void check(const KubeConfig *c)
{
    const gboolean http = g_str_has_prefix(c->server, "http://127.0.0.1") ||
                          g_str_has_prefix(c->server, "http://localhost") ||
                          g_str_has_prefix(c->server, "http://[::1]");
    if ((!http && !g_str_has_prefix(c->server, "https://")) || !c->namespace ||
        (c->cert_file || c->cert_data) != (c->key_file || c->key_data))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char path[] = "/nowhere/config";
    g_autoptr(GError) error = NULL;
    g_autoptr(KubeConfig) config = kube_config_parse((const char *)data, size, path, &error);
    if (config)
        check(config);
    else if (!error || error->domain != KUBE_ERROR || error->code != KUBE_ERROR_CONFIG ||
             !strstr(error->message, path) || !g_utf8_validate(error->message, -1, NULL))
        abort();
    return 0;
}
