/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Zeroed memory of one call, which is the kernel's again as soon as it is freed. What is large is
 * mapped: malloc maps too, but after the first such piece was freed it takes those of that size
 * from its heap, where one small piece that lives on above them keeps all of it.
 */
#ifndef HEARTH_DRIVER_RPC_PAGES_H
#define HEARTH_DRIVER_RPC_PAGES_H

#include <glib.h>
#include <stdlib.h>
#include <sys/mman.h>

#define RPC_PAGES_MIN_BYTES (32 * 1024)

/* NULL without memory. */
static inline void *rpc_pages_new(size_t size)
{
    if (size < RPC_PAGES_MIN_BYTES)
        return calloc(1, size);
    void *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return pages == MAP_FAILED ? NULL : pages;
}

/* `size` as it was asked for. The caller wipes it. */
static inline void rpc_pages_free(void *pages, size_t size)
{
    if (size < RPC_PAGES_MIN_BYTES)
        free(pages);
    else if (munmap(pages, size) < 0)
        g_error("munmap of %zu bytes", size);
}

#endif
