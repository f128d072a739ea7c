/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has been read from disk, from which reads of natively mounted datasets are estimated: nobody
 * is asked when the kernel reads these by itself, but its disk counts. What the page cache answers
 * is in neither.
 */
#ifndef HEARTH_CACHE_REPORT_DISK_READS_H
#define HEARTH_CACHE_REPORT_DISK_READS_H

#include <glib.h>

/*
 * Bytes read from the block device below the directory since it appeared, by whoever. FALSE: it has
 * none of its own, as Btrfs and network file systems.
 * Source: Documentation/block/stat.rst
 */
gboolean disk_reads_of_device(const char *dir, guint64 *bytes);

/* Bytes that this process had the kernel read from any disk. Source: proc(5), /proc/pid/io. */
gboolean disk_reads_of_process(guint64 *bytes);

#endif
