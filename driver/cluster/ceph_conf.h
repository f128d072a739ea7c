/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options for Ceph's client libraries that an administrator sets for a cluster: "cephConf" of
 * config.json (config.h). They reach every client that Hearth makes, so those that would
 * break Hearth's promises, or show a key, are refused by name with the reason. Other names are left
 * to the library, which refuses an unknown option when a client is made.
 */
#ifndef HEARTH_DRIVER_CLUSTER_CEPH_CONF_H
#define HEARTH_DRIVER_CLUSTER_CEPH_CONF_H

#include <glib.h>
#include <jansson.h>

/* Why an option of this name is refused, in words that follow "because"; NULL: it may be set. */
const char *ceph_conf_refusal(const char *name);

/*
 * name, value, name, value, ..., NULL, of a JSON object with strings, numbers or booleans; the
 * caller's. NULL: *why, the caller's too, names the option and says what is wrong with it. No
 * object (NULL): an empty list.
 */
char **ceph_conf_parse(const json_t *object, char **why);

#endif
