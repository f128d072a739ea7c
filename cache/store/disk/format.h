/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the store writes to disk. All numbers are little-endian and of fixed
 * width; structs are packed and never hold a pointer. Change a layout here only together with its
 * version: another version is refused by name (header) or dropped (record).
 */
#ifndef HEARTH_CACHE_STORE_DISK_FORMAT_H
#define HEARTH_CACHE_STORE_DISK_FORMAT_H

#include <stdint.h>

#define FORMAT_HEADER_NAME "hearth-store"
#define FORMAT_HEADER_NEW_NAME "hearth-store.new" /* renamed over the header */
#define FORMAT_LOCK_NAME "lock"
#define FORMAT_PINS_NAME "pins"
#define FORMAT_PINS_NEW_NAME "pins.new" /* renamed over the pins */
#define FORMAT_OBJECTS_NAME "objects"
#define FORMAT_PARTIAL_NAME "partial"
#define FORMAT_INDEX_NAME "index.mdb"
#define FORMAT_INDEX_LOCK_NAME "index.mdb-lock" /* LMDB's reader table */

#define FORMAT_MAGIC "HRTHSTOR"
#define FORMAT_VERSION 1

/*
 * Whether an object that has no record may be served. A record is committed only after the object's
 * bytes were synced, so objects with a record are always good.
 */
enum {
    FORMAT_STATE_CLEAN = 1, /* closed: everything is synced and recorded */
    FORMAT_STATE_OPEN = 2,  /* in use during the boot named: good while that boot lasts */
    FORMAT_STATE_UNTRUSTED =
        3, /* the machine died in use: objects without a record may have holes */
};

/* <dir>/hearth-store */
typedef struct __attribute__((packed)) FormatHeader {
    char magic[8];
    uint32_t version;
    uint32_t state;
    char boot_id[40]; /* text of /proc/sys/kernel/random/boot_id, NUL padded */
    uint32_t crashes; /* owners in a row that neither closed the store nor lived for long */
    uint32_t reserved;
    uint64_t checksum; /* XXH3-64 of all before */
} FormatHeader;

/*
 * One object: the value of its key (the 16 bytes of its id) in the index, and a copy in the
 * extended attribute below, from which a lost index is rebuilt.
 */
#define FORMAT_RECORD_VERSION 1
#define FORMAT_RECORD_XATTR "user.hearth"
enum {
    FORMAT_RECORD_ANONYMOUS =
        1 << 0, /* rebuilt without the attribute: of the key, only size holds */
};
typedef struct __attribute__((packed)) FormatRecord {
    uint16_t version;
    uint16_t flags;
    uint32_t chunk_bytes; /* unit of data_checksum */
    uint64_t size;
    uint64_t data_checksum; /* XXH3-64 over the chunks' XXH3-64, each as 8 bytes, in order */
    uint64_t last_use_ms;   /* since 1970 */
    uint8_t tag[16];        /* XXH3-128 of the tag's text */
    uint8_t space[24];
    uint64_t ino;
    uint64_t inode_version;
    uint64_t mtime_sec; /* two's complement */
    uint32_t mtime_nsec;
    uint32_t used_again; /* 1: used since it was fetched; 0 also in records of earlier versions */
    uint64_t checksum;   /* XXH3-64 of all before */
} FormatRecord;

/*
 * Key of the index's second database ("order"): the objects of each tag, those used since they were
 * fetched after the others, each by age. The value is the object's size.
 */
typedef struct __attribute__((packed)) FormatOrder {
    uint8_t tag[16];
    uint8_t used_again;
    uint8_t last_use_ms_be[8]; /* big-endian, so that LMDB's byte order is time's order */
    uint8_t id[16];
} FormatOrder;

/* Key of a database of earlier versions ("uses"), all objects by age; the value is the tag. */
typedef struct __attribute__((packed)) FormatUse {
    uint8_t last_use_ms_be[8];
    uint8_t id[16];
} FormatUse;

/* Totals: of a tag (database "tags", key its 16 bytes) and of all (database "meta", key "totals").
 */
typedef struct __attribute__((packed)) FormatTotals {
    uint64_t bytes; /* as charged: rounded up to blocks */
    uint64_t objects;
} FormatTotals;

/* <dir>/pins: this, then the pinned tags' texts, each with its NUL. */
#define FORMAT_PINS_MAGIC "HRTHPINS"
#define FORMAT_PINS_VERSION 1
#define FORMAT_PINS_MAX 65536 /* bytes of the file */
typedef struct __attribute__((packed)) FormatPins {
    char magic[8];
    uint32_t version;
    uint32_t bytes;    /* of the texts */
    uint64_t checksum; /* XXH3-64 of the texts */
} FormatPins;

_Static_assert(sizeof(FormatPins) == 24, "pins layout");
_Static_assert(sizeof(FormatHeader) == 72, "header layout");
_Static_assert(sizeof(FormatRecord) == 112, "record layout");
_Static_assert(sizeof(FormatOrder) == 41, "order layout");
_Static_assert(sizeof(FormatUse) == 24, "use layout");

#endif
