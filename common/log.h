/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one log sink: GLib's structured log as lines on stderr, in JSON or as klog writes. Libraries
 * return errors; what the edge logs, it logs with g_log_structured() or
 * g_message()/g_warning()/g_info()/g_debug(); fields named in lower case ("volume", "dataset",
 * "request") become members. Those that count something ("ms", "bytes", "pid", ...; log.c has the
 * list) are numbers in JSON.
 */
#ifndef HEARTH_COMMON_LOG_H
#define HEARTH_COMMON_LOG_H

#include <glib.h>

/* level: "error" "warning" "info" (default) "debug"; format: "json" (default) "text". NULL: the
 * default. FALSE for another word. */
gboolean log_init(const char *program, const char *level, const char *format, GError **error);

#endif
