/* SPDX-License-Identifier: Apache-2.0 */
#include "cache/store/disk/mapped.h"
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

/* 16 MiB of neighbours at most. */
#define LOOKS_MAX 256

void mapped_find(Mapped *m, const char *path, size_t length)
{
    struct stat st;
    m->at = NULL;
    m->length = length;
    FILE *maps = stat(path, &st) == 0 ? fopen("/proc/self/maps", "re") : NULL;
    if (!maps)
        return;
    /* proc_pid_maps(5): lines end with a path of any length, which is skipped. */
    uintptr_t from, to;
    uint64_t inode;
    while (!m->at && fscanf(maps, "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %" SCNu64 "%*[^\n]", &from,
                            &to, &inode) == 3) {
        if (inode == st.st_ino && to - from == length)
            m->at = (void *)from; /* NOLINT(performance-no-int-to-ptr) */
    }
    fclose(maps);
}

void mapped_looked(Mapped *m, unsigned places)
{
    if (!m->at || atomic_fetch_add(&m->looks, places) + places < LOOKS_MAX)
        return;
    atomic_store(&m->looks, 0);
    madvise(m->at, m->length, MADV_DONTNEED);
}
