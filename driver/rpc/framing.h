/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The small texts and numbers of gRPC over HTTP/2 that are not HTTP/2's own:
 * https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md. Pure functions.
 */
#ifndef HEARTH_DRIVER_RPC_FRAMING_H
#define HEARTH_DRIVER_RPC_FRAMING_H

#include <glib.h>

/* Every message is preceded by one byte "compressed" and its length, 32 bits big-endian. */
#define RPC_PREFIX_BYTES 5
void rpc_prefix_write(guint8 prefix[RPC_PREFIX_BYTES], guint32 length);
guint32 rpc_prefix_length(const guint8 prefix[RPC_PREFIX_BYTES]);

/* "application/grpc", also with "+proto" or parameters after ";". */
gboolean rpc_content_type_ok(const char *value, size_t length);

/* grpc-timeout: 1 to 8 digits and a unit of H M S m u n. FALSE: malformed. Rounds up. */
gboolean rpc_timeout_parse(const char *value, size_t length, gint64 *timeout_us);
/* The header for `timeout_ms` > 0, rounded up where 8 digits do not hold it. */
void rpc_timeout_format(gint64 timeout_ms, char out[16]);

/*
 * grpc-message: UTF-8, each byte outside printable ASCII and '%' as %XX. Encoding makes invalid
 * UTF-8 valid and cuts, at a character, what would pass RPC_MESSAGE_MAX_BYTES when encoded.
 * Decoding leaves what is not a well-formed escape as it is and always gives UTF-8.
 */
#define RPC_MESSAGE_MAX_BYTES 6144
char *rpc_percent_encode(const char *message);
char *rpc_percent_decode(const char *value, size_t length);

/* "NOT_FOUND" of 5; "UNKNOWN" of a number that gRPC does not know. */
const char *rpc_code_name(guint code);

#endif
