/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one log sink: GLib's structured log as JSON lines on stderr. Libraries return errors; what
 * the edge logs, it logs with g_log_structured() or g_message()/g_warning()/g_info()/g_debug();
 * fields named in lower case ("volume", "dataset", "request") become members.
 */
#ifndef HEARTH_COMMON_LOG_H
#define HEARTH_COMMON_LOG_H

#include <glib.h>

/* level: "error" "warning" "info" (default) "debug"; FALSE for another word. */
gboolean log_init(const char *program, const char *level, GError **error);

#endif
