/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What caches of Ceph's clients may take, all connections to CephFS together. libcephfs keeps bytes
 * of files, read or not yet written to Ceph, and names.
 *
 * Bytes: a new connection gets an eighth of what is free, since Ceph before 18 can only set it when
 * a client is made; and no less than a minimum, with which it works. Names: each connection gets
 * the same share, which is smaller with each further one, and libcephfs then forgets some.
 */
#ifndef HEARTH_CACHE_ORIGIN_CLIENT_MEMORY_H
#define HEARTH_CACHE_ORIGIN_CLIENT_MEMORY_H

#include <glib.h>
#include <stdint.h>

/* Of one client. Half of the bytes is for what is not written to Ceph yet. */
#define CLIENT_BYTES_MOST (64u << 20)
#define CLIENT_BYTES_LEAST (2u << 20)
#define CLIENT_NAMES_MOST 65536u
#define CLIENT_NAMES_LEAST 1024u
/* What libcephfs takes for a name and its inode (docs/design/facts.md). */
#define CLIENT_NAME_BYTES 1792u

/* Before the first connection. The default is what 16 connections can use. */
void client_memory_set(uint64_t bytes, uint64_t names);
/* A connection begins: its bytes, which are given back when it has ended. */
uint64_t client_memory_take(void);
void client_memory_give(uint64_t bytes);
/* How many names each connection may keep now. */
unsigned client_memory_names(void);

typedef struct ClientMemory {
    uint64_t bytes, bytes_most; /* granted to connections */
    uint64_t names, names_most; /* the same, in names */
} ClientMemory;
void client_memory_look(ClientMemory *memory);

#endif
