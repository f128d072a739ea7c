/* SPDX-License-Identifier: Apache-2.0 */
/* Collects what is used of each budget. */
#include "cache/control/ops.h"
#include "cache/fuse/inode_budget.h"
#include "cache/fuse/layer/bypass_budget.h"
#include "cache/fuse/written.h"
#include "cache/origin/client_memory.h"
#include "cache/origin/thread_room.h"

static ReportUse client_names(const ClientMemory *clients)
{
    return (ReportUse){clients->names * CLIENT_NAME_BYTES, clients->names_most * CLIENT_NAME_BYTES};
}

ReportUses ops_uses(const Control *c, const StoreStats *stats)
{
    ClientMemory clients;
    uint64_t threads, most;
    client_memory_look(&clients);
    thread_room_look(&threads, &most);
    ReportUses uses = {
        .memory =
            {
                [REPORT_LIVE_INODES] = {inode_budget_held() * INODE_BUDGET_BYTES,
                                        inode_budget_most() * INODE_BUDGET_BYTES},
                [REPORT_WRITTEN_BLOCKS] = {written_memory_held(), written_memory_most()},
                [REPORT_CLIENT_DATA] = {clients.bytes, clients.bytes_most},
                [REPORT_CLIENT_NAMES] = client_names(&clients),
                [REPORT_FETCH_BUFFERS] = {stats->buffer_bytes, stats->max_buffer_bytes},
                [REPORT_BYPASS_BUFFERS] = {bypass_budget_used(), BYPASS_BUDGET_BYTES},
            },
        .threads = {threads, most == UINT64_MAX ? 0 : most},
    };
    ReportUse *images = &uses.memory[REPORT_IMAGE_BUFFERS];
    if (c->images)
        image_cache_buffers(c->images, &images->used, &images->most);
    return uses;
}
