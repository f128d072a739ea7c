/* SPDX-License-Identifier: Apache-2.0 */
/* The head of an image's files (format.h), from and to the disk's bytes. */
#ifndef HEARTH_CACHE_BLOCK_HEAD_H
#define HEARTH_CACHE_BLOCK_HEAD_H

#include <glib.h>
#include "cache/block/format.h"

/* Numbers of *head are in the machine's order, its texts end in a NUL. FALSE: it is not whole, of
 * another format, or of an image of another name. */
gboolean head_decode(const void *data, size_t size, const char *name, FormatHead *head);
/* Fills in magic, version, name and checksum. The name is shorter than head->name. */
void head_encode(const FormatHead *head, const char *name, FormatHead *data);

#endif
