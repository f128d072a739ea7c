#!/bin/bash
# What is kept of images (cache/block/): read and written once, it is read without Ceph, also after a
# restart, a kill and a new attach; and never when somebody else has written meanwhile. "The OSD
# sent" is what tells who was asked.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
. "$(dirname "$0")/rbd_cache_lib.sh"
start_hearth

# ---- a device ----

random_image block 64
block_capability
up || die "$(said)"
sum=$(by_rbd | sha256sum)
sum_of_device() { SUM=$(read_device | sha256sum); }
cold device_read_cold_is_fetched_once $((64 * MB)) sum_of_device
same and_has_the_bytes "$SUM" "$sum"
kept
between status_tells_what_is_kept "$KEPT" $((64 * MB)) $((66 * MB))
between and_what_came_from_ceph "$(volume_stat bytesOrigin)" $((64 * MB)) $((77 * MB))
hits=$(volume_stat bytesStore)
warm device_read_again_asks_nobody sum_of_device
same and_has_the_bytes_still "$SUM" "$sum"
between status_tells_what_came_from_the_disk "$(($(volume_stat bytesStore) - hits))" $((64 * MB)) $((65 * MB))
write_device 16 8
kept
warm what_was_written_is_read_without_asking touch_device 16 8
equals_ceph and_is_what_ceph_has
head -c 1536 /dev/urandom | dd of="$TARGET" oflag=direct bs=512 seek=$(((3 * MB + 1024) / 512)) conv=notrunc
equals_ceph part_of_a_block_written

hearthctl evict "$VOLUME_ID" >/dev/null || fail evict "failed"
between evicted_volume_leaves_the_disk "$(disk_bytes)" 0 $((2 * MB))
cold evicted_volume_is_fetched_again $((64 * MB)) touch_device
equals_ceph evicted_volume_is_right
kept
hearthctl evict --all >/dev/null || fail evict_all "failed"
between evicted_all_leaves_the_disk "$(disk_bytes)" 0 $((2 * MB))
cold evicted_all_is_fetched_again $((64 * MB)) touch_device
equals_ceph evicted_all_is_right

# ---- it is discarded ----

kept
before=$(disk_bytes)
blkdiscard -o $((8 * MB)) -l $((16 * MB)) "$TARGET" || fail blkdiscard "failed"
same discarded_reads_as_zeros "$(read_device 8 16 | tr -d '\0' | wc -c)" 0
equals_ceph discarded_for_ceph_too
kept
between discarded_leaves_the_disk "$((before - $(disk_bytes)))" $((15 * MB)) $((17 * MB))
warm discarded_is_known_to_be_zeros touch_device 8 16
blkdiscard -z -o $((MB + 512)) -l 1536 "$TARGET" || fail blkdiscard_z "failed"
equals_ceph part_of_a_block_zeroed

# ---- from one attach to the next ----

touch_device
kept
log_from_here
down && up || fail restaged "$(said)"
kept_from_before restaged_is_kept
warm restaged_is_warm touch_device
equals_ceph restaged_is_right
# Who numbers the versions of an image's header numbers those of its neighbours as well.
neighbours() { timeout -k 5 30 rados -c "$CEPH_CONF" -p "$POOL" bench 1 write -b 4096 -t 4 >/dev/null 2>&1; }
touch_device
kept
neighbours
down && up || fail restaged_among_others "$(said)"
warm restaged_is_warm_though_others_write_to_the_pool touch_device
kept
write_device 30 4
down && end hearthd && start_hearthd && wait_for 20 probe_ok && up || fail restarted "$(said)"
warm restarted_in_between_is_warm touch_device
equals_ceph restarted_in_between_is_right
write_device 34 4
end hearthd && start_hearthd
check restarted_under_a_volume heal
warm restarted_under_it_is_warm touch_device
equals_ceph restarted_under_it_is_right
write_device 38 4
kept
log_from_here
end hearthd KILL
start_hearthd
check killed_under_a_volume heal
kept_from_before killed_under_it_is_kept
warm killed_under_it_is_warm touch_device
equals_ceph killed_under_it_is_right

# ---- somebody else writes in between ----

writes_between() { # NAME COMMAND...: others, while it is not attached here
    local before
    touch_device
    kept
    before=$(read_device | sha256sum)
    down || fail "$1" "$(said)"
    "${@:2}" || fail "$1" "${*:2} failed"
    up || die "$(said)"
    if [ "$(by_rbd | sha256sum)" = "$before" ]; then fail "$1" "nothing was written"; else equals_ceph "$1"; fi
}
bench_8() { bench_write 8; }
librbd_writes() { fill "$NAME" "written by another $RANDOM"; }
writes_between what_rbd_bench_writes_is_read bench_8
writes_between what_a_librbd_client_writes_is_read librbd_writes
down
rbd_cmd snap create --no-progress "$IMAGE@then" 2>/dev/null || fail snapshot "rbd snap create"
up || die "$(said)"
write_device 2 10
rolled_back() { rbd_cmd snap rollback --no-progress "$IMAGE@then"; }
writes_between what_a_rollback_brings_back_is_read rolled_back
rbd_cmd snap rm --no-progress "$IMAGE@then"

. "$(dirname "$0")/two_nodes.sh"
mkdir -p "$TMP/mnt2/pod"
spawn_node2() {
    spawn hearthd2 "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE"
    wait_socket hearthd2 "$HEARTHD"
    spawn node2 "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=test-node-2 \
        --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json" --device-dir="$TMP/mnt2/devices"
    wait_socket node2 "$NODE"
}
start_node2
on_the_other_node() {
    on_node2 up || return 1
    on_node2 touch_device && on_node2 write_device 20 6
    on_node2 down
}
writes_between what_another_node_writes_is_read on_the_other_node
# And the other one's cache is of the past by now.
write_device 23 6
down
on_node2 up || fail other_node "$(said)"
on_node2 equals_ceph the_other_node_reads_the_newest_too
on_node2 down
end node2
end hearthd2

# ---- it grows while it is in use ----

IMAGE_CAPABILITY='{"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
create_image "pvc-grows-$RUN" $((64 * MB)) || die "CreateVolume: $(said)"
IMAGE=rbd/${VOLUME_ID##*~}
up || die "$(said)"
write_device 0 64
kept
check expanded expand $((128 * MB))
csi node NodeExpandVolume "$(csi_json '{volume_id: $id, volume_path: $target, staging_target_path: $stage,
    capacity_range: {required_bytes: $bytes}}' --arg id "$VOLUME_ID" --arg target "$TARGET" \
    --arg stage "$STAGE" --argjson bytes $((128 * MB)))" || fail expanded_here "$(said)"
same it_has_grown "$(blockdev --getsize64 "$TARGET")" $((128 * MB))
warm what_was_there_stays_warm touch_device 0 64
write_device 64 16
kept
warm what_was_added_is_kept touch_device 64 16
equals_ceph what_has_grown_is_right
kept
down && up || fail grown_restaged "$(said)"
warm what_has_grown_is_warm_after_restaging touch_device
equals_ceph and_right
down && delete_volume || fail grown_deleted "$(said)"

# ---- file systems ----

for fs in ext4 xfs; do
    new_image $fs 512M
    capability $fs
    up || die "$(said)"
    head -c $((24 * MB)) /dev/urandom >"$TARGET/data"
    sync -f "$TARGET"
    sum=$(sha256sum <"$TARGET/data")
    read_file() { SUM=$(sha256sum <"$TARGET/data"); }
    kept
    drop_page_cache
    warm ${fs}_written_is_read_without_asking read_file
    same ${fs}_and_has_the_bytes "$SUM" "$sum"
    hearthctl evict "$VOLUME_ID" >/dev/null
    drop_page_cache
    asked ${fs}_evicted_is_fetched $((24 * MB)) read_file
    same ${fs}_and_has_them_still "$SUM" "$sum"
    kept
    drop_page_cache
    warm ${fs}_read_again_asks_nobody read_file
    down && up || die "$(said)"
    warm ${fs}_restaged_is_warm read_file
    same ${fs}_and_has_them_after_all "$SUM" "$sum"
    kept
    before=$(volume_stat bytesCached)
    rm "$TARGET/data"
    sync -f "$TARGET"
    # XFS frees it when it likes.
    trimmed() { fstrim "$TARGET" && kept && [ $((before - KEPT)) -ge $((22 * MB)) ]; }
    check ${fs}_trimmed_leaves_the_disk wait_for 15 trimmed
    # What is under the file system, past it.
    sync -f "$TARGET"
    down
    block_capability
    up || die "$(said)"
    equals_ceph ${fs}_trimmed_is_what_ceph_has
    down
done

# ---- a snapshot of which there are two volumes ----

random_image source 32
rbd_cmd snap create --no-progress "$IMAGE@snap" 2>/dev/null || fail source_snapshot "rbd snap create"
hearthctl evict --all >/dev/null
directories=$(directories)
block_capability MULTI_NODE_READER_ONLY
one() { image "$NAME" '{"snapshot": "snap"}'; STAGE=$TMP/mnt/stage TARGET=$TMP/mnt/pod/volume VOLUME_ID=$VOLUME_ID-1; }
other() { image "$NAME" '{"snapshot": "snap"}'; STAGE=$TMP/mnt/stage-b TARGET=$TMP/mnt/pod/other VOLUME_ID=$VOLUME_ID-2; }
both_down() { other; down; one; down; }
at_exit both_down
one && up || fail snapshot_staged "$(said)"
other && up || fail snapshot_staged_twice "$(said)"
one
cold snapshot_read_through_one $((32 * MB)) touch_device
kept
other
warm is_warm_through_the_other touch_device
equals_ceph and_has_the_bytes_of_the_snapshot "rbd/$NAME@snap"
same both_share_one_directory $(($(directories) - directories)) 1
both_down || fail snapshots_down "$(said)"
bench_8 || fail source_is_written "rbd bench"
end hearthd && start_hearthd && wait_for 20 probe_ok
other && up || fail snapshot_staged_again "$(said)"
warm snapshot_is_warm_after_a_restart touch_device
equals_ceph and_knows_nothing_of_later_writes "rbd/$NAME@snap"
end hearthd KILL && start_hearthd
check snapshot_after_a_kill heal
warm snapshot_is_warm_after_a_kill touch_device
equals_ceph and_is_right_after_a_kill "rbd/$NAME@snap"
down
one

# ---- of which nothing is kept ----

nothing_is_kept() { # WHAT: of the volume; everything is asked for twice
    up || { fail "$1" "$(said)"; return; }
    local directories=$(directories)
    asked "$1_asks_ceph" $((16 * MB)) touch_device
    asked "$1_asks_ceph_again" $((16 * MB)) touch_device
    same "$1_has_no_directory" "$(directories)/$(disk_bytes)" "0/$empty"
    equals_ceph "$1_is_right"
    down || fail "$1_down" "$(said)"
}
hearthctl evict --all >/dev/null
wait_for 10 eval '[ "$(directories)" = 0 ]' || fail evict_all_removes_what_is_closed "$(ls "$CACHE/images")"
empty=$(disk_bytes)
random_image several 16
block_capability MULTI_NODE_MULTI_WRITER
nothing_is_kept device_of_several_writers
random_image plain 16 --image-feature layering
block_capability
nothing_is_kept image_without_a_lock
up || die "$(said)"
check hearthctl_says_why_it_is_not_cached grep -q "^not cached: $VOLUME_ID, $IMAGE: the image has no exclusive-lock" <(hearthctl status)
same of_it_alone "$(hearthctl status | grep -c '^not cached:')" 1
down
rbd_cmd feature enable "$IMAGE" exclusive-lock
up || die "$(said)"
same with_the_lock_it_is_cached "$(hearthctl status | grep '^not cached:')" ""
down
same the_log_has_warned_of_it_at_each_opening "$(grep -c "volume $VOLUME_ID, image $IMAGE: nothing of it is cached" "$TMP/log/hearthd.log")" 2
hearthctl evict --all >/dev/null
random_image off 16
image "$NAME" '{"cache": "off"}'
nothing_is_kept cache_off
random_image read 16
block_capability MULTI_NODE_READER_ONLY
nothing_is_kept live_image_for_reading

# ---- no more than so much ----

random_image quota 64
image "$NAME" '{"cacheQuota": "16Mi"}'
block_capability
up || die "$(said)"
touch_device
touch_device
in_quota() { [ "$(disk_bytes)" -le $((16 * MB + MB / 2)) ]; }
check quota_bounds_the_disk wait_for 15 in_quota
between and_something_is_kept "$(disk_bytes)" $((4 * MB)) $((17 * MB))
write_device 8 24
equals_ceph what_is_above_the_quota_is_right
check quota_bounds_it_still wait_for 15 in_quota
equals_ceph what_was_evicted_is_right
down
