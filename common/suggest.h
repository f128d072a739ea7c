/* SPDX-License-Identifier: Apache-2.0 */
/* Which word was meant by one with a typing error. */
#ifndef HEARTH_COMMON_SUGGEST_H
#define HEARTH_COMMON_SUGGEST_H

#include <glib.h>

/* The candidate that few edits make of `word`, or that alone begins with it; borrowed, NULL: none
 * is near. `candidates` ends with NULL. */
const char *suggest(const char *word, const char *const *candidates);

#endif
