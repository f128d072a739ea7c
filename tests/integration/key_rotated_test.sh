#!/bin/bash
# The key of a volume that is mounted is replaced in Ceph, and the volume staged again with the new one. When its session
# is lost later, the next connection is made with the key that Ceph accepted last.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth
NODE_ID=rotates-$$
at_exit "ceph_cmd auth rm client.$NODE_ID >/dev/null 2>&1"
new_key() {
    ceph_cmd auth rm "client.$NODE_ID" >/dev/null 2>&1
    NODE_KEY=$(ceph_cmd auth get-or-create-key "client.$NODE_ID" mon 'allow r, profile rbd' \
        mds 'allow rw fsname=hearthfs path=/volumes/csi' osd 'allow rw tag cephfs data=hearthfs' 2>/dev/null)
    [ -n "$NODE_KEY" ] || die "no key of $NODE_ID"
}
reads() { [ "$(timeout 10 cat "$TARGET/file")" = text ]; }

new_key
published_volume pvc-rotated-$RANDOM 1073741824
printf text >"$TARGET/file"
sync -f "$TARGET"
new_key
check staged_with_the_new_key stage
for id in $(ceph_cmd tell mds.a client ls 2>/dev/null | jq -r --arg root "$ROOT_PATH" \
    '.[] | select(.client_metadata.root == $root) | .id'); do
    ceph_cmd tell mds.a client evict id="$id" >/dev/null 2>&1 || die "cannot evict $id"
done
for _ in $(seq 20); do timeout 5 stat "$TARGET/file" >/dev/null 2>&1; done
check the_session_is_lost wait_for 30 grep -q 'the session with Ceph is lost' "$TMP/log/hearthd.log"
check the_next_is_made_with_the_new_key wait_for 40 reads
same and_no_other_key_was_tried "$(grep -c 'not connected to Ceph again yet' "$TMP/log/hearthd.log")" 0
