/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The parts are fixed, because kernels and Ceph's libraries are told a bound once, or only forget
 * slowly: a part that is lent to another kind would not come back in time.
 */
#include "cmd/hearthd/memory.h"
#include "cache/fuse/inode_budget.h"
#include "cache/fuse/layer/bypass_budget.h"
#include "cache/fuse/written.h"
#include "cache/origin/client_memory.h"
#include "cache/store/store.h"
#include "common/cgroup.h"

#define DEFAULT_BYTES ((uint64_t)2 << 30)
#define IMAGE_BUFFERS ((uint64_t)64 << 20)

static uint64_t default_bytes(void)
{
    const Cgroup cgroup = CGROUP_OF_PROCESS;
    return MIN(DEFAULT_BYTES, cgroup_memory_most(&cgroup) / 2);
}

void memory_divide(uint64_t bytes, unsigned fill_threads, gint64 live_inodes)
{
    const uint64_t all = bytes ? bytes : MAX(default_bytes(), MEMORY_LEAST_BYTES);
    const uint64_t buffers = store_buffers_most(fill_threads) + IMAGE_BUFFERS + BYPASS_BUDGET_BYTES;
    const uint64_t rest = MAX(all - MIN(buffers, all), all / 4), quarter = rest / 4;
    const uint64_t written = quarter / 8, inodes = quarter - written;
    client_memory_set(rest / 2, quarter / CLIENT_NAME_BYTES);
    written_memory_set(written);
    if (live_inodes != MEMORY_LIVE_INODES_UNSET)
        inode_budget_set((uint64_t)live_inodes);
    else
        inode_budget_set(MIN(inodes / INODE_BUDGET_BYTES, INODE_BUDGET_DEFAULT));
}
