/*
 * Fuzz target: index records, as read from the index or from an object's extended attribute. What
 * decodes must encode to the very same bytes, or a rebuilt index would differ from the one lost.
 *
 * libFuzzer: clang -fsanitize=fuzzer,address ...; without it (-DFUZZ_STANDALONE) the program reads
 * the files named as arguments, or makes up inputs of its own: [-n rounds].
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>
#include "cache/store/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const uint8_t *data, size_t size, const ObjectId *id)
{
    Record record;
    FormatRecord again;
    int rc = record_decode(data, size, id, &record);
    if (rc == 0) {
        record_encode(&record, &again);
        FormatRecord given;
        if (size != sizeof(given))
            abort();
        memcpy(&given, data, sizeof(given));
        given.reserved = 0;
        if (memcmp(&given, &again, offsetof(FormatRecord, checksum)) != 0)
            abort();
        record_charge(record.key.size);
    } else if (rc != -EBADMSG && rc != -EPROTONOSUPPORT) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ObjectId id = {{0}};
    if (size < sizeof(id))
        return 0;
    memcpy(&id, data, sizeof(id));
    data += sizeof(id);
    size -= sizeof(id);
    check(data, size, &id);
    if (size != sizeof(FormatRecord))
        return 0;
    /* Past the checksum, and past the id, so that the fields are reached. */
    FormatRecord fixed;
    memcpy(&fixed, data, sizeof(fixed));
    fixed.version = FORMAT_RECORD_VERSION;
    fixed.checksum = XXH3_64bits(&fixed, offsetof(FormatRecord, checksum));
    check((const uint8_t *)&fixed, sizeof(fixed), &id);
    fixed.flags = FORMAT_RECORD_ANONYMOUS;
    fixed.checksum = XXH3_64bits(&fixed, offsetof(FormatRecord, checksum));
    check((const uint8_t *)&fixed, sizeof(fixed), &id);
    return 0;
}

#ifdef FUZZ_STANDALONE
static int run_file(const char *path)
{
    static uint8_t buf[65536];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return 1;
    }
    size_t n = fread(buf, 1, sizeof(buf), file);
    fclose(file);
    return LLVMFuzzerTestOneInput(buf, n);
}

int main(int argc, char **argv)
{
    long rounds = 1000000;
    if (argc > 2 && strcmp(argv[1], "-n") == 0)
        rounds = atol(argv[2]);
    else if (argc > 1) {
        int rc = 0;
        for (int i = 1; i < argc; i++)
            rc |= run_file(argv[i]);
        return rc;
    }
    uint64_t seed = 88172645463325252ULL;
    uint8_t buf[256];
    for (long round = 0; round < rounds; round++) {
        size_t size = round % 4 ? sizeof(ObjectId) + sizeof(FormatRecord) : (size_t)(seed % 256);
        for (size_t i = 0; i < size; i++) {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            buf[i] = (uint8_t)seed;
        }
        LLVMFuzzerTestOneInput(buf, size);
    }
    return 0;
}
#endif
