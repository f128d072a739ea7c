#!/bin/bash
# Images on a node: file systems and devices over a loop device, over what hearthd serves; what is
# acknowledged is in Ceph; locks, crashes, damage, foreign content, growth.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_static.sh"
init
start_ceph
start_hearthd
start_node
RUN=$RANDOM
# Other tests share the cluster and count what is in its pools.
remove_images() {
    local image
    for image in $(rbd_cmd ls rbd | grep -e "-$RUN\$" | sort -r); do
        rbd_cmd snap purge --no-progress "rbd/$image" 2>/dev/null
        rbd_cmd rm --no-progress "rbd/$image" 2>/dev/null
    done
}
at_exit 'remove_images; remove_images'

nothing_left() { # NAME
    same "$1" "$(mounts_below "$TMP/mnt") $(loops_below "$TMP") $(ls "$DEVICES" 2>/dev/null)$(ls "$TMP/mnt/pod")" "  "
}
refused() { # NAME CODE TEXT COMMAND...
    local name=$1 code=$2 text=$3
    shift 3
    if "$@"; then fail "$name" "$* succeeded"; elif [ "$CSI_CODE" = "$code" ] && [[ $CSI_MESSAGE == *"$text"* ]]; then
        pass "$name"
    else
        fail "$name" "$(said), wanted $code with \"$text\""
    fi
}
expand() { # BYTES
    csi node NodeExpandVolume "$(csi_json '{volume_id: $id, volume_path: $target, staging_target_path: $stage,
        capacity_range: {required_bytes: $bytes}}' --arg id "$VOLUME_ID" --arg target "$TARGET" \
        --arg stage "$STAGE" --argjson bytes "$1")"
}
device_read_only() { cat "/sys/block/${1#/dev/}/ro"; }
may_grow_ext4() { [ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 24 & 1)) = 1 ]; }
fs_bytes() { echo $(($(stat -f -c '%b * %S' "$TARGET"))); }

# ---- ext4 and xfs ----

for fs in ext4 xfs; do
    new_image $fs 1G
    capability $fs "$WRITER" '["noatime", "discard"]'
    check ${fs}_staged stage
    check ${fs}_staged_again stage
    check ${fs}_published publish
    check ${fs}_published_again publish
    same ${fs}_is_mounted "$(findmnt -no FSTYPE "$TARGET")" $fs
    case $(findmnt -no OPTIONS "$TARGET") in *noatime*) pass ${fs}_options ;; *) fail ${fs}_options "$(findmnt -no OPTIONS "$TARGET")" ;; esac
    same ${fs}_direct_io "$(losetup -nO DIO "$(loop_device)" | tr -d ' ')" 1

    # Through the mount, then from Ceph, without an unmount between: fsync is enough.
    dd if=/dev/urandom of="$TARGET/data" bs=1M count=64 conv=fsync 2>/dev/null
    sync -f "$TARGET"
    rbd_cmd snap create "rbd/$NAME@s1" || fail ${fs}_snapshot "rbd snap create"
    sum=$(sha256sum <"$TARGET/data")
    mkdir -p "$TMP/mnt/export"
    rbd_cmd export "rbd/$NAME@s1" "$TMP/export.img" >/dev/null
    mount -o "loop$([ $fs = xfs ] && echo ,nouuid)" "$TMP/export.img" "$TMP/mnt/export" &&
        same ${fs}_export_equals_what_was_written "$(sha256sum <"$TMP/mnt/export/data")" "$sum"
    umount "$TMP/mnt/export"
    rm -f "$TMP/export.img"

    # Discard reaches the image.
    dd if=/dev/urandom of="$TARGET/big" bs=1M count=200 conv=fsync 2>/dev/null
    rbd_cmd snap rm "rbd/$NAME@s1"
    before=$(rbd_cmd du --format json "rbd/$NAME" | jq '[.images[].used_size] | add')
    rm "$TARGET/big"
    sync -f "$TARGET"
    fstrim "$TARGET" || fail ${fs}_fstrim "fstrim failed"
    after=$(rbd_cmd du --format json "rbd/$NAME" | jq '[.images[].used_size] | add')
    if [ "$after" -lt $((before - 150000000)) ]; then pass ${fs}_trim_frees_space; else fail ${fs}_trim_frees_space "$before -> $after"; fi

    # Growth: while mounted, and while not staged.
    rbd_cmd resize "rbd/$NAME" --size 2G >/dev/null 2>&1
    if [ $fs = ext4 ] && ! may_grow_ext4; then
        refused ext4_expand_says_what_it_needs FAILED_PRECONDITION CAP_SYS_RESOURCE expand 2147483648
        skip ext4_has_grown "growing a mounted ext4 takes CAP_SYS_RESOURCE, which root has not here"
    else
        check ${fs}_expand expand 2147483648
        if [ "$(fs_bytes)" -gt 1900000000 ]; then pass ${fs}_has_grown; else fail ${fs}_has_grown "$(fs_bytes)"; fi
        check ${fs}_expand_again expand 2147483648
    fi
    refused ${fs}_expand_before_the_controller FAILED_PRECONDITION ControllerExpandVolume expand 3221225472
    check ${fs}_unpublished unpublish
    check ${fs}_unpublished_again unpublish
    check ${fs}_unstaged unstage
    check ${fs}_unstaged_again unstage
    nothing_left ${fs}_nothing_is_left
    same ${fs}_lock_is_returned "$(rbd_cmd lock ls "rbd/$NAME")" ""
    rbd_cmd resize "rbd/$NAME" --size 3G >/dev/null 2>&1
    check ${fs}_staged_larger up
    if [ "$(fs_bytes)" -gt 2800000000 ]; then pass ${fs}_grows_at_stage; else fail ${fs}_grows_at_stage "$(fs_bytes)"; fi
    check ${fs}_expanded_once_it_has_grown expand 3221225472
    same ${fs}_keeps_its_content "$(sha256sum <"$TARGET/data")" "$sum"
    check ${fs}_statistics csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $target}' --arg id "$VOLUME_ID" --arg target "$TARGET")"
    same ${fs}_statistics_of_bytes_and_inodes "$(jq -c '[.usage[] | .unit, (.total | tonumber) > 0]' <<<"$REPLY_JSON")" '["BYTES",true,"INODES",true]'
    check ${fs}_down down
    nothing_left ${fs}_nothing_is_left_again
done

# ---- a volume from the controller ----

start_controller
csi controller CreateVolume "$(csi_json '{name: $name, capacity_range: {required_bytes: 1073741824},
    volume_capabilities: [{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}],
    secrets: $secrets, parameters: {type: "rbd", clusterID: $c, pool: "rbd", mkfsOptions: "-L hearth -m1"}}' \
    --arg name "pvc-node-$RUN" --arg c "$CEPH_FSID")" || fail create "$(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
capability ext4
check provisioned_volume_is_staged up
same mkfs_options_are_the_classs "$(blkid -p -s LABEL -o value "$(loop_device)")" hearth
check provisioned_volume_down down
check provisioned_volume_is_deleted delete_volume
end controller

# ---- read-only, snapshots, clones ----

new_image ro 512M
capability ext4
up || die "$(said)"
echo seen >"$TARGET/file"
down || die "$(said)"
rbd_cmd snap create "rbd/$NAME@snap"
image "$NAME" '{"snapshot": "snap"}'
VOLUME_ID=$VOLUME_ID-snap
refused snapshot_is_not_staged_for_writing INVALID_ARGUMENT snapshot stage
capability ext4 MULTI_NODE_READER_ONLY
check snapshot_is_staged up
same snapshot_is_read "$(cat "$TARGET/file")" seen
if touch "$TARGET/x" 2>/dev/null; then fail snapshot_is_read_only "written"; else pass snapshot_is_read_only; fi
check snapshot_down down
rbd_cmd snap protect "rbd/$NAME@snap"
rbd_cmd clone "rbd/$NAME@snap" "rbd/clone-$RUN"
image "$NAME"
capability ext4 MULTI_NODE_READER_ONLY
check image_is_staged_for_reading up
same reader_takes_no_lock "$(rbd_cmd lock ls "rbd/$NAME")" ""
check reader_down down
image "clone-$RUN"
capability ext4
check clone_is_written up
same clone_has_the_content "$(cat "$TARGET/file")" seen
echo changed >"$TARGET/file"
check clone_down down
nothing_left nothing_is_left_of_readers
new_image blank-ro 512M
capability ext4 MULTI_NODE_READER_ONLY
refused blank_image_for_reading FAILED_PRECONDITION "no file system" stage
capability ext4 MULTI_NODE_MULTI_WRITER
refused many_writers_of_a_file_system INVALID_ARGUMENT cephfs stage
capability ext4 "$WRITER" '["nobarrier"]'
refused option_that_is_not_allowed INVALID_ARGUMENT "data=ordered" stage
nothing_left nothing_is_left_of_refusals

# ---- content that is not ours ----

new_image foreign 512M
capability ext4
printf 'a database' >"$TMP/head"
dd if=/dev/zero of="$TMP/foreign.img" bs=1M count=0 seek=512 2>/dev/null
dd if="$TMP/head" of="$TMP/foreign.img" bs=1 seek=1048576 conv=notrunc 2>/dev/null
rbd_cmd rm "rbd/$NAME" >/dev/null 2>&1
rbd_cmd import "$TMP/foreign.img" "rbd/$NAME" >/dev/null
refused unknown_content_is_not_formatted FAILED_PRECONDITION "not empty" stage
# One partition of type 83, and the signature of a DOS table.
printf '\200\0\2\0\203\0\10\0\0\10\0\0\0\0\10\0' | dd of="$TMP/foreign.img" bs=1 seek=446 conv=notrunc 2>/dev/null
printf '\125\252' | dd of="$TMP/foreign.img" bs=1 seek=510 conv=notrunc 2>/dev/null
rbd_cmd rm "rbd/$NAME" >/dev/null 2>&1
rbd_cmd import "$TMP/foreign.img" "rbd/$NAME" >/dev/null
refused partition_table_is_not_formatted FAILED_PRECONDITION "partition table" stage
mkfs.xfs -q -f "$TMP/foreign.img"
rbd_cmd rm "rbd/$NAME" >/dev/null 2>&1
rbd_cmd import "$TMP/foreign.img" "rbd/$NAME" >/dev/null
refused another_file_system_is_not_formatted FAILED_PRECONDITION "has xfs" stage
capability ""
check whatever_is_there_is_mounted up
same whatever_is_there "$(findmnt -no FSTYPE "$TARGET")" xfs
check whatever_is_there_down down
mkfs.ext4 -q -F "$TMP/foreign.img"
tune2fs -e panic -E mount_opts=errors=panic "$TMP/foreign.img" >/dev/null
rbd_cmd rm "rbd/$NAME" >/dev/null 2>&1
rbd_cmd import "$TMP/foreign.img" "rbd/$NAME" >/dev/null
check image_that_asks_for_a_panic_is_mounted up
same its_errors_do_not_panic_the_node \
    "$(grep errors= "/proc/fs/ext4/$(basename "$(findmnt -no SOURCE "$TARGET")")/options")" errors=remount-ro
check image_that_asks_for_a_panic_down down
rm -f "$TMP/foreign.img"

# ---- a formatting that was cut off ----

mkdir -p "$TMP/bin"
cat >"$TMP/bin/mkfs.ext4" <<'END'
#!/bin/sh
# Writes what mkfs would leave behind in the midst of it: something, and no superblock.
for device; do :; done
echo "inode tables" | dd of="$device" bs=4096 seek=2 conv=notrunc,fsync 2>/dev/null
kill -KILL $$
END
chmod 755 "$TMP/bin/mkfs.ext4"
new_image half 512M
capability ext4
end node
PATH="$TMP/bin:$PATH" start_node
refused killed_mkfs_fails INTERNAL mkfs.ext4 stage
nothing_left nothing_is_left_of_a_killed_mkfs
end node
start_node
check half_made_file_system_is_made_anew up
echo kept >"$TARGET/file"
check half_made_down down
check half_made_again up
same made_once "$(cat "$TARGET/file")" kept
check half_made_again_down down
rm "$TMP/bin/mkfs.ext4"
printf '#!/bin/sh\necho "Operation not permitted while trying to open"\nexit 8\n' >"$TMP/bin/e2fsck"
chmod 755 "$TMP/bin/e2fsck"
end node
PATH="$TMP/bin:$PATH" start_node
refused what_is_not_looked_at_is_not_called_damaged FAILED_PRECONDITION "e2fsck could not read" stage
case $CSI_MESSAGE in *damaged*) fail not_damaged "$CSI_MESSAGE" ;; esac
end node
start_node

# ---- devices ----

new_image block 256M
block_capability
check device_staged stage
check device_published publish
check device_published_again publish
if [ -b "$TARGET" ]; then pass target_is_a_device; else fail target_is_a_device "$(stat -c %F "$TARGET")"; fi
dd if=/dev/urandom of="$TMP/random" bs=1M count=32 2>/dev/null
dd if="$TMP/random" of="$TARGET" bs=1M seek=7 conv=fsync,notrunc 2>/dev/null
rbd_cmd export "rbd/$NAME" "$TMP/export.img" >/dev/null
dd if="$TMP/export.img" bs=1M skip=7 count=32 2>/dev/null | cmp - "$TMP/random" &&
    pass device_equals_the_image || fail device_equals_the_image "other bytes"
blkdiscard -o 7340032 -l 33554432 "$TARGET"
same discarded_reads_as_zeros "$(dd if="$TARGET" bs=1M skip=7 count=32 iflag=direct 2>/dev/null | tr -d '\0' | wc -c)" 0
dd if="$TMP/random" of="$TARGET" bs=1M seek=1 count=1 conv=fsync,notrunc 2>/dev/null
blkdiscard -z -o 1049088 -l 1536 "$TARGET"
cmp <(dd if="$TARGET" bs=1M skip=1 count=1 iflag=direct 2>/dev/null) \
    <(head -c 512 "$TMP/random"; head -c 1536 /dev/zero; head -c 1048576 "$TMP/random" | tail -c +2049) &&
    pass zeroed_exactly || fail zeroed_exactly "other bytes"
rbd_cmd resize "rbd/$NAME" --size 512M >/dev/null 2>&1
check device_expanded expand 536870912
same device_has_grown "$(blockdev --getsize64 "$TARGET")" 536870912
check device_statistics csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $target}' --arg id "$VOLUME_ID" --arg target "$TARGET")"
same device_statistics_tell_the_size "$(jq -r '.usage[].total' <<<"$REPLY_JSON")" 536870912
first=$TARGET TARGET=$TMP/mnt/pod/second
check second_target publish
READONLY=true TARGET=$TMP/mnt/pod/third refused read_only_beside_a_writer FAILED_PRECONDITION "$first" publish
refused unstage_while_published FAILED_PRECONDITION "$first" unstage
check second_unpublished unpublish
TARGET=$first
check device_unpublished unpublish
READONLY=true
check device_published_for_reading publish
if dd if=/dev/zero of="$TARGET" bs=4096 count=1 oflag=direct 2>/dev/null; then fail read_only_device "written"; else pass read_only_device; fi
READONLY=false
unpublish
publish
check writable_again dd if=/dev/zero of="$TARGET" bs=4096 count=1 oflag=direct
unpublish
READONLY=true publish && unpublish
same unpublished_reader_stays_one "$(device_read_only "$(loop_device)")" 1
LOOP=$(loop_device)
READONLY=true publish || fail publish_for_reading "$(said)"
exec 8<"$LOOP"
unpublish || fail unpublish_beside_a_holder "$(said)"
refused unstage_beside_a_holder FAILED_PRECONDITION "in use" unstage
same it_stays_read_only_to_its_holder "$(device_read_only "$LOOP")" 1
exec 8<&-
check unstage_when_it_has_ended wait_for 10 unstage
capability ext4
LAST=$NAME
new_image after 256M
if up && [ "$(loop_device)" = "$LOOP" ]; then
    check next_with_the_number_writes touch "$TARGET/x"
    mine=1
else
    skip next_with_the_number_writes "somebody else has $LOOP: $(said)"
    mine=
fi
down || fail next_with_the_number_down "$(said)"
if [ -z "$mine" ] || [ -e "/sys/block/${LOOP##*/}/loop/backing_file" ]; then
    skip its_flag_goes_with_it "somebody else has $LOOP"
else
    same its_flag_goes_with_it "$(device_read_only "$LOOP")" 0
fi
NAME=$LAST
image "$NAME"
block_capability
stage || fail staged_once_more "$(said)"
capability ext4
refused device_is_not_staged_as_a_file_system ALREADY_EXISTS "block device" stage
block_capability
check device_down down
nothing_left nothing_is_left_of_the_device

# ---- one pod: what kubelet does after its restart ----

KUBELET=$TMP/mnt/pod/plugins/kubernetes.io/csi/volumeDevices
ONE=$KUBELET/publish/pv/one TWO=$KUBELET/publish/pv/two OWN=$KUBELET/pv/dev/one
mkdir -p "$(dirname "$ONE")" "$(dirname "$OWN")"
touch "$OWN"
block_capability SINGLE_NODE_SINGLE_WRITER
POD=$TARGET TARGET=$ONE
up || die "$(said)"
mount --bind "$ONE" "$OWN"
check device_of_one_pod_is_published_again publish
TARGET=$TWO refused device_of_one_pod_is_no_other_pods FAILED_PRECONDITION "$ONE" publish
umount "$OWN"
check device_of_one_pod_down down

# ---- a device that is gone below its publication ----

block_capability
LOST=$NAME LOST_TARGET=$TMP/mnt/pod/lost
TARGET=$LOST_TARGET
up || die "$(said)"
LOOP=$(loop_device)
losetup -d "$LOOP"
TARGET=$POD
for kind in ext4 block; do
    new_image "beside-$kind" 256M
    if [ $kind = block ]; then block_capability SINGLE_NODE_SINGLE_WRITER; else capability $kind; fi
    STAGE=$TMP/mnt/stage-$kind
    check "${kind}_is_staged_beside_a_lost_device" stage
    check "${kind}_is_published_beside_a_lost_device" publish
    echo "     $(loop_device) beside the lost $LOOP"
    TARGET=$LOST_TARGET refused "${kind}_does_not_unpublish_the_lost_one" FAILED_PRECONDITION "" unpublish
    if [ $kind = block ]; then
        image "$LOST"
        TARGET=$POD refused lost_one_does_not_unpublish_the_other FAILED_PRECONDITION "" unpublish
        TARGET=$LOST_TARGET STAGE=$TMP/mnt/stage
        check lost_device_is_unpublished unpublish
        check lost_device_is_unstaged unstage
        TARGET=$POD STAGE=$TMP/mnt/stage-$kind
        image "$NAME"
    fi
    check "${kind}_beside_a_lost_device_down" down
done
STAGE=$TMP/mnt/stage
rm -rf "${KUBELET%%/kubernetes.io*}"
nothing_left nothing_is_left_of_the_lost_device

# ---- two nodes ----

new_image two 512M
capability ext4
up || die "$(said)"
NODE1=$NODE HEARTHD1=$HEARTHD
second_node() { NODE=$TMP/run/node2.sock HEARTHD=$TMP/run/hearthd2.sock STAGE=$TMP/mnt/stage2; }
first_node() { NODE=$NODE1 HEARTHD=$HEARTHD1 STAGE=$TMP/mnt/stage; }
second_node
spawn hearthd2 "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$TMP/cache2"
wait_socket hearthd2 "$HEARTHD"
spawn node2 "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=second \
    --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json" --device-dir="$TMP/mnt/devices2"
wait_socket node2 "$NODE"
holder=$(rbd_cmd lock ls --format json "rbd/$NAME" | jq -r '.[0].address')
refused second_node_is_refused_and_told_the_holder FAILED_PRECONDITION "$holder" stage
first_node
echo written >"$TARGET/file"
check first_node_is_not_disturbed sync -f "$TARGET"
down || die "$(said)"
second_node
check second_node_takes_over stage
check second_node_unstages unstage
new_image plain 256M --image-feature layering
first_node
check image_without_a_lock_is_staged stage
second_node
refused image_without_a_lock_is_refused_too FAILED_PRECONDITION "in use" stage
first_node
check image_without_a_lock_unstaged unstage
new_image shared 256M
block_capability MULTI_NODE_MULTI_WRITER
check device_of_many_writers stage
second_node
check device_of_many_writers_on_the_second_node stage
check device_of_many_writers_unstaged unstage
first_node
check device_of_many_writers_unstaged_here unstage
end node2
end hearthd2

# ---- the node plugin dies ----

new_image restart 512M
capability ext4
up || die "$(said)"
echo before >"$TARGET/file"
end node KILL
echo meanwhile >>"$TARGET/file"
start_node
check stage_after_a_restart stage
check publish_after_a_restart publish
same content_after_a_restart "$(tr '\n' ' ' <"$TARGET/file")" "before meanwhile "
end node KILL
start_node
check unpublish_after_a_restart unpublish
check unstage_after_a_restart unstage
nothing_left nothing_is_left_after_a_restart
# At any moment of staging.
for delay in 0.01 0.02 0.03 0.05 0.08 0.12; do
    (CSI_TIMEOUT=5 stage) >/dev/null 2>&1 &
    call=$!
    sleep $delay
    end node KILL
    wait $call
    start_node
    up || fail "staging_after_a_crash_at_$delay" "$(said)"
    down || fail "unstaging_after_a_crash_at_$delay" "$(said)"
done
nothing_left staging_goes_on_after_a_crash_at_any_moment

# ---- hearthd dies ----

for fs in ext4 xfs; do
    new_image kill-$fs 512M
    capability $fs
    up || die "$(said)"
    i=0
    while [ $i -lt 50 ]; do
        i=$((i + 1))
        echo $i >"$TARGET/f$i" && sync "$TARGET/f$i" && echo $i
    done >"$TMP/acknowledged" 2>/dev/null &
    writer=$!
    sleep 0.3
    end hearthd KILL
    wait $writer
    start_hearthd
    probe_ok() { csi node Probe '{}'; }
    check ${fs}_probe wait_for 10 probe_ok
    check ${fs}_staged_after_the_kill wait_for 40 stage
    check ${fs}_published_after_the_kill publish
    lost=
    while read -r i; do
        [ "$(cat "$TARGET/f$i" 2>/dev/null)" = "$i" ] || lost="$lost $i"
    done <"$TMP/acknowledged"
    if [ -s "$TMP/acknowledged" ] && [ -z "$lost" ]; then pass ${fs}_no_acknowledged_write_is_lost; else
        fail ${fs}_no_acknowledged_write_is_lost "of $(wc -l <"$TMP/acknowledged"): lost $lost"; fi
    check ${fs}_down_after_the_kill down
    nothing_left ${fs}_nothing_is_left_after_the_kill
    stage_device() { block_capability; stage && publish; }
    check ${fs}_device_for_fsck stage_device
    if [ $fs = xfs ]; then check xfs_is_clean xfs_repair -n "$(loop_device)"; else check ext4_is_clean e2fsck -fn "$(loop_device)"; fi
    check ${fs}_device_down down
done

# Only publish is repeated: the keeper has what it takes.
new_image publish 512M
capability ext4
up || die "$(said)"
echo kept >"$TARGET/file"
sync -f "$TARGET"
end hearthd KILL
start_hearthd
wait_for 10 probe_ok
check publish_heals publish
same publish_heals_with_its_content "$(cat "$TARGET/file")" kept
end hearthd KILL
check unpublish_without_hearthd unpublish
start_hearthd
wait_for 10 probe_ok
check unstage_what_is_dead unstage
nothing_left nothing_is_left_of_the_dead
