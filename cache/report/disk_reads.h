/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes read from disk, to estimate the reads of natively mounted datasets: the kernel serves these
 * without hearthd, but the disk counts them. Reads from the page cache are not counted.
 */
#ifndef HEARTH_CACHE_REPORT_DISK_READS_H
#define HEARTH_CACHE_REPORT_DISK_READS_H

#include <glib.h>

/*
 * Bytes read from the block device below the directory since the device appeared, by all processes.
 * FALSE: the file system has no block device of its own, such as Btrfs and network file systems.
 * Source: Documentation/block/stat.rst
 */
gboolean disk_reads_of_device(const char *dir, guint64 *bytes);

/*
 * An upper bound of what the kernel read below the directory for others than this process: datasets
 * that are mounted natively, and whatever else is on that disk. FALSE as above.
 */
gboolean disk_reads_native(const char *dir, guint64 *bytes);

/* Bytes that the kernel read from any disk for this process. Source: proc(5), /proc/pid/io. */
gboolean disk_reads_of_process(guint64 *bytes);

#endif
