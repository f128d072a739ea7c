/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What protobuf-c leaves to its users, for any message by its descriptor. It truncates strings at a
 * NUL and does not look at UTF-8, so an ID "a\0b" would become "a", and a name that Go refuses to
 * read would leave us: both are checked on the wire, in both directions. And it keeps every entry
 * of a map, where the last of a duplicate key counts.
 */
#ifndef HEARTH_DRIVER_RPC_VALIDATE_H
#define HEARTH_DRIVER_RPC_VALIDATE_H

#include <glib.h>
#include <protobuf-c/protobuf-c.h>

/*
 * Checks a serialised message. HEARTH_ERROR_INVALID_ARGUMENT names the field by its path, such as
 * "volume_capabilities[1].mount.fs_type", never its value.
 */
gboolean rpc_validate_wire(const ProtobufCMessageDescriptor *descriptor, const guint8 *bytes,
                           size_t length, GError **error);

/*
 * Leaves one entry for each key of every map in a decoded message: the last. Entries dropped are
 * not freed, hence only for messages in an arena.
 */
void rpc_settle_maps(ProtobufCMessage *message);

/* Is this the type of a map's entries? They are messages "...Entry" of `key` = 1 and `value` = 2.
 */
gboolean rpc_is_map_entry(const ProtobufCMessageDescriptor *descriptor);
/* Is this singular field set, as far as its quantifier (has_..., the case of a oneof) says? */
gboolean rpc_field_is_set(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field);

#endif
