#!/bin/bash
# Snapshots mounted natively, on a real Ceph: every kind of file, byte for byte and attribute by
# attribute beside ceph-fuse; what is read when Ceph, hearthd or the node plugin is away; what two
# claims share; what is left when they go.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node --hearthd-wait=2

TREE="python3 $(dirname "$0")/tree.py"
code() { same "$1" "$CSI_CODE" "$2"; }
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_PATH=\$ROOT_PATH"; }
# The claim, staged at a path of its own.
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT ROOT_PATH=\$$1_PATH"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
snapshot() { # NAME
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
        --arg id "$VOLUME_ID" --arg name "$1")" || return 1
    SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
}
restore() { # NAME
    csi controller CreateVolume "$(create_request "$1" 2147483648 "{}" |
        jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c '.volume.volumeContext // {}' <<<"$REPLY_JSON")
    ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
}
# What was read again is native: the node plugin looks for it.
native() {
    local bytes
    drop_page_cache
    bytes=$(fuse_bytes)
    warm >"$TMP/out"
    [ "$(fuse_bytes)" = "$bytes" ]
}
# hearthd holds the objects it read last open, so others are read in between.
evict_all() {
    hearthctl evict --all >/dev/null
    drop_all
    cat "$TARGET"/tree/many/*0 >/dev/null
    wait_for 60 settled
    hearthctl evict --all >/dev/null
    drop_all
}
use() { stage && publish; }
is_source() { diff "$TMP/source" "$1" || { tail -n 2 "$TMP/err" && false; }; }
mount_type() { findmnt -n -o FSTYPE --mountpoint "$1" | tail -n 1; }
# Reads that came to hearthd, of all volumes; and files fetched.
fuse_bytes() { hearthctl status --json | jq '[.volumes[] | .bytesStore + .bytesFill + .bytesOrigin] | add // 0'; }
served() { hearthctl status --json | jq -r '[.volumes[].volume] | sort | join(" ")'; }
says() { cat "$TMP/out" "$TMP/err" && grep -q "$1" "$TMP/err"; }
as_before() { cmp "$TMP/warm-before" "$1" || { head -n 3 "$TMP/err" && false; }; }

# ---- a source ----
create_volume pvc-src-$$ || die "CreateVolume: $(said)"
SOURCE_ID=$VOLUME_ID
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
mounted() { mountpoint -q "$TMP/mnt/ceph"; }
wait_for 30 mounted || die "ceph-fuse does not mount: $(tail -n 3 "$TMP/log/ceph-fuse.log")"
mkdir "$TMP/mnt/ceph$ROOT_PATH/tree"
$TREE make "$TMP/mnt/ceph$ROOT_PATH/tree" "${ENTRIES:-20000}" || die "cannot make the tree"
sync -f "$TMP/mnt/ceph$ROOT_PATH"
snapshot snap-$$ || die "CreateSnapshot: $(said)"
echo later >"$TMP/mnt/ceph$ROOT_PATH/tree/small/file000"
rm "$TMP/mnt/ceph$ROOT_PATH/tree/odd/empty"
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
restore pvc-a-$$ || die "CreateVolume: $(said)"
remember A
restore pvc-b-$$ || die "CreateVolume: $(said)"
remember B
$TREE list "$TMP/mnt/ceph$A_PATH" >"$TMP/source" || die "cannot list the source"

# ---- the stack ----
recall A
check staged stage
same the_staging_mount_is_an_overlay "$(mount_type "$STAGE")" overlay
same its_source_is_the_volume "$(findmnt -n -o SOURCE --mountpoint "$STAGE")" "hearth:$A_ID"
check published publish
same two_layers_are_mounted "$(mounts_below "$DEVICES" | wc -l)" 2
grep -q 'read-only' < <(touch "$TARGET/x" 2>&1 | tr 'R' 'r') && pass writes_are_refused || fail writes_are_refused
$TREE list "$TARGET" >"$TMP/cold" 2>"$TMP/err"
check cold_it_is_the_source is_source "$TMP/cold"
wait_for 60 settled || fail fills_settle "$(cache_stat fillsActive) are active"
drop_all
$TREE list "$TARGET" >"$TMP/warm" 2>"$TMP/err"
check warm_it_is_the_source is_source "$TMP/warm"
drop_all
asked=$(mds_asked) bytes=$(fuse_bytes)
$TREE list "$TARGET" >"$TMP/warm" 2>"$TMP/err"
same a_warm_pass_asks_no_mds_and_no_hearthd "names asked $(($(mds_asked) - asked)), bytes read $(($(fuse_bytes) - bytes))" "names asked 0, bytes read 0"
check and_is_the_source is_source "$TMP/warm"
csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $p}' --arg id "$VOLUME_ID" --arg p "$TARGET")"
files=$(grep -c . "$TMP/source")
# Links and devices are not counted.
check its_usage_is_the_datasets [ "$(jq -r '.usage[1].used' <<<"$REPLY_JSON")" -gt $((files - 10)) ]
check and_its_bytes [ "$(jq -r '.usage[0].used' <<<"$REPLY_JSON")" -gt 150000000 ]

# ---- a second claim ----
recall B
check a_second_claim_is_staged use
same it_shares_the_layers "$(mounts_below "$DEVICES" | wc -l)" 2
bytes=$(cache_stat originBytes)
$TREE list "$TARGET" >"$TMP/second" 2>"$TMP/err"
check it_is_the_source is_source "$TMP/second"
same it_reads_nothing_from_ceph "$(($(cache_stat originBytes) - bytes))" 0
csi node NodePublishVolume "$(publish_request | jq -c '.volume_capability.mount.volume_mount_group = "4242"')"
code a_group_that_may_not_read_all_has_to_wait FAILED_PRECONDITION
# A claim, or a path in it, stands for the dataset they share.
check a_claim_is_pinned hearthctl pin "$B_ID"
same the_dataset_is_pinned "$(hearthctl status --json | jq -c '[.volumes[] | select(.pinned).volume[0:8]]')" '["dataset-"]'
check by_a_path_it_is_no_longer hearthctl pin "$TARGET" --off
same and_nothing_is_pinned "$(cache_stat 'pins | length')" 0
hearthctl warm "$TARGET/tree/small" >"$TMP/out" 2>&1
check a_path_is_warmed grep -q 'held before' "$TMP/out"
find "$TARGET/tree/small" -type f | hearthctl warm "$TARGET" --files-from - >"$TMP/out" 2>&1 && pass a_list_is_warmed || fail a_list_is_warmed "$(cat "$TMP/out")"
recall A
check again stage && check again_published publish

# ---- objects go beneath it ----
exec {held}<"$TARGET/tree/large/two"
evict_all
$TREE list "$TARGET" >"$TMP/evicted" 2>"$TMP/err"
check evicted_beneath_it_is_the_source is_source "$TMP/evicted"
same an_open_file_stays "$(b2sum <&$held)" "$(b2sum <"$TMP/mnt/ceph$A_PATH/tree/large/two")"
exec {held}<&-
wait_for 60 settled
# Someone else's hand.
find "$CACHE/objects" -type f | sort | awk 'NR % 3 == 0' | xargs rm
drop_all
$TREE list "$TARGET" >"$TMP/removed" 2>"$TMP/err"
check removed_beneath_it_is_the_source is_source "$TMP/removed"

# ---- Ceph is away ----
evict_all
warm() { find "$TARGET/tree/small" -name 'file0*' -exec b2sum {} + | sort; }
warm >"$TMP/warm-before"
wait_for 60 settled
check what_was_fetched_becomes_native wait_for 60 native
stop_ceph
warm >"$TMP/warm-away" 2>"$TMP/err"
check without_ceph_warm_files_are_read as_before "$TMP/warm-away"
same and_all_names_are_there "$(find "$TARGET" -printf x | wc -c)" "$files"
began=$SECONDS
timeout 60 b2sum "$TARGET/tree/small/file200" >"$TMP/out" 2>"$TMP/err"
took=$((SECONDS - began))
check cold_ones_fail_with_EIO says "Input/output error"
check within_30_s [ "$took" -le 30 ]
continue_ceph
readable() { b2sum "$TARGET/tree/small/file200" >"$TMP/out" 2>&1; }
check and_are_read_when_it_is_back wait_for 60 readable
$TREE list "$TARGET" >"$TMP/back" 2>"$TMP/err"
check as_they_are_in_the_source is_source "$TMP/back"

# ---- the node plugin is restarted ----
wait_for 60 settled
end node KILL
start_node --hearthd-wait=2
check after_a_restart_it_is_staged stage
check after_a_restart_it_is_published publish
same nothing_was_mounted_again "$(mounts_below "$DEVICES" | wc -l)" 2
TARGET=$TMP/mnt/pod/extra
check and_elsewhere publish
$TREE list "$TARGET" >"$TMP/extra" 2>"$TMP/err"
check there_it_is_the_source is_source "$TMP/extra"
check and_goes unpublish

# ---- hearthd is killed ----
recall A
evict_all
warm >"$TMP/warm-before"
wait_for 60 settled
check again_what_was_fetched_becomes_native wait_for 60 native

# ---- it is stopped, and loses its sessions ----
kill -STOP "${PID[hearthd]}"
timeout 60 bash -c "$(declare -f warm); TARGET='$TARGET'; warm" >"$TMP/warm-stopped" 2>"$TMP/err"
check with_hearthd_stopped_warm_files_are_read as_before "$TMP/warm-stopped"
kill -CONT "${PID[hearthd]}"
for id in $(ceph_cmd tell mds.a client ls --format json 2>/dev/null | jq -r --arg u "$NODE_ID" '.[] | select(.client_metadata.entity_id == $u) | .id'); do
    ceph_cmd tell mds.a client evict id="$id" >/dev/null 2>&1 && evicted=yes
done
same its_sessions_are_ended "${evicted:-none}" yes
warm >"$TMP/warm-evicted" 2>"$TMP/err"
check without_a_session_warm_files_are_read as_before "$TMP/warm-evicted"
fetched_again() { b2sum "$TARGET/tree/small/file240" >"$TMP/out" 2>&1; }
check cold_ones_are_read_by_the_next_session wait_for 60 fetched_again
check which_is_right cmp "$TARGET/tree/small/file240" "$TMP/mnt/ceph$A_PATH/tree/small/file240"

end hearthd KILL
warm >"$TMP/warm-dead" 2>"$TMP/err"
check without_hearthd_warm_files_are_read as_before "$TMP/warm-dead"
cat "$TARGET/tree/small/file249" >/dev/null 2>&1 # waits for the next hearthd
b2sum "$TARGET/tree/small/file250" >"$TMP/out" 2>"$TMP/err"
check cold_ones_say_it_is_not_connected says "endpoint is not connected"
start_hearthd
TARGET=$TMP/mnt/pod/healed
check a_new_pod_gets_a_new_stack publish
$TREE list "$TARGET" >"$TMP/healed" 2>"$TMP/err"
check which_is_the_source is_source "$TMP/healed"
check unpublished unpublish
recall A
warm >"$TMP/warm-old" 2>"$TMP/err"
check the_old_one_reads_on_what_is_warm as_before "$TMP/warm-old"
check published_again publish
check it_is_the_new_one cmp "$TARGET/tree/small/file250" "$TMP/mnt/ceph$A_PATH/tree/small/file250"
recall B
check the_second_claim_is_healed use
check too cmp "$TARGET/tree/small/file251" "$TMP/mnt/ceph$A_PATH/tree/small/file251"
same all_on_one_place "$(mounts_below "$DEVICES" | wc -l)" 2

# ---- all goes ----
unpublish && unstage || fail unstage "$(said)"
check the_layers_stay_for_the_first [ "$(mounts_below "$DEVICES" | wc -l)" = 2 ]
recall A
unpublish && unstage || fail unstage "$(said)"
same nothing_is_mounted "$(mounts_below "$TMP/mnt" | grep -v "^$TMP/mnt/ceph$")" ""
same nothing_is_left_in_the_directory "$(ls "$DEVICES")" ""
same nothing_is_served "$(served)" ""

# ---- older kernels ----
for how in loop fuse; do
    end node
    start_node --dataset-mount=$how
    hearthctl evict --all >/dev/null
    check "$how-is_staged" use
    case $how in loop) type=overlay ;; fuse) type=fuse.hearth ;; esac
    same "$how-is_mounted_so" "$(mount_type "$STAGE")" $type
    $TREE list "$TARGET" >"$TMP/$how" 2>"$TMP/err"
    check "$how-is_the_source" is_source "$TMP/$how"
    unpublish && unstage || fail "$how-unstage" "$(said)"
    same "$how-leaves_nothing" "$(mounts_below "$DEVICES")$(ls "$DEVICES")$(losetup -l -n -O BACK-FILE | grep -F "$TMP")" ""
done
for v in A B; do recall $v && delete_volume || fail delete "$(said)"; done
csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")" || fail delete "$(said)"
VOLUME_ID=$SOURCE_ID
delete_volume || fail delete "$(said)"
