/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the sessions that this process has with MDSs. An MDS refuses a second session of a name,
 * with EPERM, and the session of a connection that is ending stands until libcephfs is done with
 * it. So a client has a few names, and each is of one connection at a time, or of connections that
 * follow one another.
 */
#ifndef HEARTH_CACHE_ORIGIN_CEPHFS_CLIENT_SESSION_NAMES_H
#define HEARTH_CACHE_ORIGIN_CEPHFS_CLIENT_SESSION_NAMES_H

#include <glib.h>

/* Of a client. */
#define SESSION_NAMES 2

typedef struct SessionName SessionName;

/* The client's i-th name; caller's. */
char *session_name_of(const char *client, unsigned i);
/* One of the client's that nothing here has; is waited for until until_ms (monotonic_ms()). NULL:
 * all of them were in use. */
SessionName *session_name_take(const char *client, int64_t until_ms);
/* That name, though something may have it: for a connection that ends the session of the one
 * before.
 */
SessionName *session_name_again(const char *name);
const char *session_name(const SessionName *name);
/* Each that was got, once; NULL does nothing. */
void session_name_release(SessionName *name);
/* Waits until nothing has a name. FALSE: something still has after limit_ms. */
gboolean session_names_await_none(unsigned limit_ms);

#endif
