/* SPDX-License-Identifier: Apache-2.0 */
/* Times, shares and sizes as hearthctl prints them. The strings are the caller's. */
#ifndef HEARTH_CMD_HEARTHCTL_REPORT_WORDS_H
#define HEARTH_CMD_HEARTHCTL_REPORT_WORDS_H

#include <glib.h>
#include <stdint.h>

/* "5s", "4m10s", "2h5m", "3d4h". */
char *words_duration(uint64_t seconds);
/* The same of milliseconds, with a tenth below a minute: "2.2s". */
char *words_duration_ms(uint64_t ms);
/* "61%": rounded down, so that 100% is all of it. "-" when `whole` is 0. */
char *words_percent(uint64_t part, uint64_t whole);
/* "84/217 MiB": both in the unit of the second. */
char *words_part(uint64_t part, uint64_t whole);
/* As a shell takes it, to be typed again; what cannot be typed is "?". The caller's. */
char *words_shell(const char *word);
/* "s" for every number but 1. */
const char *words_plural(uint64_t n);

#endif
