#!/bin/bash
# Files that are open for writing on a node stay cached there: several descriptors of one node read and write a file,
# beside a writer on another node, and each byte is compared. The cases are in open_writers.py.
#
# Also that such a file is read from the cache: without that the comparison would show nothing about it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
init
start_ceph
start_hearth
start_node2
published_volume pvc-writers-$RANDOM 1073741824
publish_on_node2

export SETTLED="'$BUILD/hearthctl' --socket '$HEARTHD' status --json | jq -e '.cache.fillsActive == 0'"
export FROM_STORE="'$BUILD/hearthctl' --socket '$HEARTHD' status --json |
    jq '.volumes[] | select(.volume == \"$VOLUME_ID\").bytesStore'"
both() { # CASE: in a session of its own, as one that hangs in the kernel is not to be waited for
    timeout -k 5 120 python3 "$TOP/tests/integration/open_writers.py" "$1" "$TARGET" "$TARGET2"
}
for case in writes_here_are_read_here writes_there_are_read_here syncs_and_closes_end_a_lease sizes_change \
    appends_are_read mappings_are_written acknowledged_writes_are_seen; do
    check "$case" both "$case"
done

# A warm file of 16 MiB that the kernel has forgotten, open for writing twice, read once by both.
dd if=/dev/urandom of="$TARGET/warm" bs=1M count=16 conv=fsync status=none || die "cannot write"
hearthctl warm "$TARGET" >/dev/null || die "cannot warm: $(hearthctl warm "$TARGET" 2>&1 | tail -n 1)"
check fills_end wait_for 30 settled
drop_all
from_store=$(volume_stat bytesStore) from_ceph=$(volume_stat bytesOrigin)
check reads_beside_an_open_writer both reads
from_store=$(($(volume_stat bytesStore) - from_store)) from_ceph=$(($(volume_stat bytesOrigin) - from_ceph))
if [ $from_store -gt $((from_ceph * 2)) ]; then
    pass such_a_file_is_read_from_the_cache
else
    fail such_a_file_is_read_from_the_cache "$from_store bytes from the cache, $from_ceph from Ceph"
fi
