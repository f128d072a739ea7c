/* SPDX-License-Identifier: Apache-2.0 */
/* What this node knows of datasets, in use or not: the JSON of op "datasets"
 * (docs/design/protocol.md). */
#ifndef HEARTH_CACHE_REPORT_DATASETS_H
#define HEARTH_CACHE_REPORT_DATASETS_H

#include <jansson.h>
#include "cache/dataset/datasets.h"

/* Those with IDs after `after` (NULL: from the first), in order; a new reference. *more: there are
 * others. Reads small files of the cache directory. */
json_t *datasets_list(Datasets *all, const char *after, gboolean *more);

/* What people call the dataset of a volume "dataset-..." (WIRE_DATASET_PREFIX), the caller's; NULL:
 * the volume is none, or the dataset is not known. Reads the notes on it. `datasets` may be NULL.
 */
char *datasets_name(Datasets *datasets, const char *volume);

#endif
