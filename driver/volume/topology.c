/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/volume/topology.h"
#include <string.h>

#define VALUE_MAX 63
#define DIGEST_DIGITS 16

char *topology_node_value(const char *node)
{
    if (strlen(node) <= VALUE_MAX)
        return g_strdup(node);
    g_autofree char *digest = g_compute_checksum_for_string(G_CHECKSUM_SHA256, node, -1);
    /* A value ends with a letter or digit, as the digest does. */
    return g_strdup_printf("%.*s-%.*s", VALUE_MAX - DIGEST_DIGITS - 1, node, DIGEST_DIGITS, digest);
}
