/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verification of objects against the checksum taken when their bytes came from the origin. It
 * reads the disk, past the page cache, so that it neither believes what readers have in memory nor
 * pushes it out. Used by store_verify_some() and the scrubber.
 */
#ifndef HEARTH_CACHE_STORE_OBJECTS_VERIFY_H
#define HEARTH_CACHE_STORE_OBJECTS_VERIFY_H

#include "cache/store/objects/objects.h"

typedef struct VerifyPace {
    /* After each piece read; FALSE: go no further. */
    gboolean (*pause)(void *data, size_t bytes);
    void *data;
} VerifyPace;

/*
 * Reads an object. 0; -EBADMSG: its bytes, its length or its seal are not what they were; -ENODATA:
 * it has no checksum; -ENOENT; -ECANCELED; -errno of reading. `pace` may be NULL.
 */
int store_verify(Store *store, const ObjectId *id, const VerifyPace *pace);
/* As store_verify(), and drops the object when it is bad: 1 then. */
int store_check(Store *store, const ObjectId *id, const VerifyPace *pace);

#endif
