/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/kube/config.h"

void kube_config_free(KubeConfig *c)
{
    if (!c)
        return;
    g_free(c->server);
    g_free(c->namespace);
    g_free(c->ca_file);
    g_clear_pointer(&c->ca_data, g_bytes_unref);
    kube_token_free(c->token);
    g_free(c->cert_file);
    g_free(c->key_file);
    g_clear_pointer(&c->cert_data, g_bytes_unref);
    g_clear_pointer(&c->key_data, g_bytes_unref);
    g_free(c);
}
