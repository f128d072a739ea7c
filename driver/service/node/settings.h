/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mutable parameters of a volume (volume/mutable.h) on a node. They are in the volume's record,
 * which the node reads when it stages the volume: a change counts from the next staging on. The
 * connection to Ceph is shared by the calls that read at the time and closed after the last, so
 * that an idle node plugin holds none.
 */
#ifndef HEARTH_DRIVER_SERVICE_NODE_SETTINGS_H
#define HEARTH_DRIVER_SERVICE_NODE_SETTINGS_H

#include <glib.h>
#include <jansson.h>
#include "driver/backend/backend.h"

typedef struct Settings Settings;

/* `connect` makes the backend; NULL: nothing is read. The path is copied. */
Settings *settings_new(Backend *(*connect)(const char *config_path), const char *config_path);
/* No call may be running. */
void settings_free(Settings *settings);

/*
 * Puts the parameters of the record into the spec; only our own volumes have one. It never fails a
 * staging: an error is logged with its fix, and the volume is used as it was created.
 */
void settings_apply(Settings *settings, const char *volume, GHashTable *secrets, gint64 timeout_ms,
                    json_t *spec);

#endif
