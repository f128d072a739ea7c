#!/bin/bash
# Two readers of one missing 512 MB file cause one fetch: counted in bytes sent by the OSD.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth
published_volume pvc-fetch-$RANDOM 2147483648

size=512000000
"$BUILD/tools/demo-read" write "$TARGET/set" "$TMP/manifest" --files 0 --large $size --threads 1 >/dev/null ||
    die "cannot write the file"
# Nothing of it may be in this node's memory or cache.
unpublish && unstage || die "$(said)"
hearthctl evict --all >/dev/null 2>&1 || hearthctl evict >/dev/null || die "hearthctl evict"
drop_page_cache
stage && publish || die "$(said)"
same nothing_is_cached_before "$(cache_stat bytes)" 0

before=$(osd_bytes)
pids=()
for reader in 1 2; do
    "$BUILD/tools/demo-read" read "$TARGET/set" "$TMP/manifest" --threads 1 --verify >"$TMP/reader$reader" 2>&1 &
    pids+=($!)
done
for reader in 1 2; do
    if wait "${pids[reader - 1]}"; then
        pass "reader_${reader}_got_every_byte_right"
    else
        fail "reader_${reader}_got_every_byte_right" "$(<"$TMP/reader$reader")"
    fi
done
fill_is_complete() { [ "$(cache_stat bytes)" -ge $size ]; }
check file_is_cached_whole wait_for 30 fill_is_complete
sent=$(($(osd_bytes) - before))
echo "     the OSD sent $sent bytes for two readers of $size"
if [ $sent -ge $((size * 9 / 10)) ] && [ $sent -le $((size * 11 / 10)) ]; then
    pass two_readers_one_fetch
else
    fail two_readers_one_fetch "the OSD sent $sent bytes for a file of $size"
fi

before=$(osd_bytes)
drop_page_cache
check warm_read "$BUILD/tools/demo-read" read "$TARGET/set" "$TMP/manifest" --threads 1 --verify
sent=$(($(osd_bytes) - before))
if [ $sent -lt 1000000 ]; then
    pass warm_read_asks_ceph_for_nothing
else
    fail warm_read_asks_ceph_for_nothing "the OSD sent $sent bytes"
fi
