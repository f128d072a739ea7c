/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A schedule, as crontab(5) and Kubernetes' CronJobs write it, in UTC:
 *
 *     minute 0-59   hour 0-23   day of month 1-31   month 1-12|JAN-DEC   day of week 0-7|SUN-SAT
 *
 * each "*", a value, a range a-b, either with a step /n (a/n goes to the field's end), or a list of
 * these with ","; or @hourly, @daily, @midnight, @weekly, @monthly, @yearly, @annually. Names in
 * any case. 0 and 7 are Sunday, which also ends a range: SAT-SUN. "?" is "*" for both kinds of
 * days.
 *
 * A day must match both fields of days, but when neither field has "*" one of them is enough.
 * Where the two sources differ, CronJobs decide: with a step above 1, "*" does not count as "*".
 *
 * Sources: crontab(5) of Debian's cron; Kubernetes, CronJob, "Schedule syntax".
 */
#ifndef HEARTH_DRIVER_WARMUP_CRON_H
#define HEARTH_DRIVER_WARMUP_CRON_H

#include <glib.h>

/* Bit n is the value n. Weekdays: 0 is Sunday, 7 is not set. */
typedef struct Cron {
    guint64 minutes;
    guint32 hours, days, months, weekdays;
    gboolean either_day; /* matching days or weekdays is enough */
} Cron;

/* HEARTH_ERROR_INVALID_ARGUMENT, with the field, its value and the allowed values. */
gboolean cron_parse(const char *text, Cron *cron, GError **error);

/* Times are seconds since 1970, and full minutes when returned. */

/* The first after `after_s`; -1: never (31 February), or beyond the year 9999. */
gint64 cron_next(const Cron *cron, gint64 after_s);
/* The last that is after `since_s` and not after `not_after_s`; -1: there is none, or none within
 * eight years. */
gint64 cron_last(const Cron *cron, gint64 not_after_s, gint64 since_s);

#endif
