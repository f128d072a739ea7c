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

void journal_entry_free(JournalEntry *entry)
{
    if (!entry)
        return;
    g_free(entry->request_name);
    g_free(entry->name);
    g_free(entry->source);
    g_free(entry);
}

void backend_free(Backend *backend)
{
    if (!backend)
        return;
    backend->ops->free(backend->impl);
    g_free(backend);
}
