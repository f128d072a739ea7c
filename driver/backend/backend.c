/* SPDX-License-Identifier: Apache-2.0 */
#include "driver/backend/backend.h"

void backend_volume_free(BackendVolume *volume)
{
    if (!volume)
        return;
    g_free(volume->path);
    g_free(volume->failure);
    g_free(volume);
}

void backend_free(Backend *backend)
{
    if (!backend)
        return;
    backend->ops->free(backend->impl);
    g_free(backend);
}
