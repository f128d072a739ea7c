/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each file that a process has open in a volume may be a descriptor of hearthd. Some are left for
 * the control socket and for connections to Ceph: without them no volume is staged.
 */
#ifndef HEARTH_CACHE_STORE_DISK_DESCRIPTORS_H
#define HEARTH_CACHE_STORE_DISK_DESCRIPTORS_H

/* Of RLIMIT_NOFILE a quarter, and no more than this. */
#define DESCRIPTORS_KEPT 8192

/* What open(2) has just returned for a file of the store: the descriptor, or -errno. -EMFILE: it
 * was one too many, and is closed. */
int descriptors_admit(int fd);

#endif
