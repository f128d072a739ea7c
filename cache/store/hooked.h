/* SPDX-License-Identifier: Apache-2.0 */
/* A store with hooks, for tests. */
#ifndef HEARTH_CACHE_STORE_HOOKED_H
#define HEARTH_CACHE_STORE_HOOKED_H

#include "cache/store/fill/fills.h"
#include "cache/store/store.h"

/* As store_open(); hooks are copied, hooks->data and boot_id borrowed until store_close(). */
Store *store_open_hooked(const StoreConfig *config, const StoreHooks *hooks, GError **error);

#endif
