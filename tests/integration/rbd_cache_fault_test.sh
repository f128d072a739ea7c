#!/bin/bash
# What is kept of images (cache/block/) when something breaks: the cache's disk, Ceph, the lock. No
# read and no write of a volume fails for the disk, no read shows other bytes than Ceph has, neither
# then nor in a later run, and memory is bounded.
#
# For longer: OUTAGE=60, the seconds that the OSD is away: 15 or more.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
OUTAGE=${OUTAGE:-15}
if ! why=$(losetup --find 2>&1); then
    skip all "no loop device: $why"
    exit 0
fi
start_ceph

mount_disk() { mount -t ext4 -o errors=remount-ro "$LOOP" "$TMP/disk"; }
disk() { # a small ext4 at $TMP/disk
    truncate -s 256M "$TMP/disk.img"
    mkfs.ext4 -q -m 0 -N 4000 "$TMP/disk.img" || return 1
    mkdir -p "$TMP/disk"
    LOOP=$(losetup --find --show "$TMP/disk.img") || return 1
    at_exit losetup -d "$LOOP"
    mount_disk
}
disk || die "cannot make a file system on a loop device"
CACHE=$TMP/disk/cache
. "$(dirname "$0")/rbd_cache_lib.sh"
start_hearth
data_files() { find "$CACHE/images" -name data -size +0; }

# ---- a full disk ----

random_image full 96
block_capability
up || die "$(said)"
touch_device 0 48
kept
dd if=/dev/zero of="$TMP/disk/ballast" bs=1M 2>/dev/null
check full_disk_writes write_device 32 32
check full_disk_reads touch_device
equals_ceph full_disk_is_right
check full_disk_discards blkdiscard -o $((40 * MB)) -l $((4 * MB)) "$TARGET"
equals_ceph full_disk_discarded_is_right
end hearthd KILL && start_hearthd
check full_disk_restaged heal
write_device 8 8
equals_ceph full_disk_restaged_is_right
rm "$TMP/disk/ballast"
room_again() { touch_device && kept && sent touch_device && [ "$SENT" -le $LITTLE ]; }
check room_again_is_kept_again wait_for 20 room_again
equals_ceph room_again_is_right

# ---- damage ----

for file in $(data_files); do
    head -c $((8 * MB)) /dev/urandom | dd of="$file" bs=1M seek=4 conv=notrunc
    head -c 100 /dev/urandom | dd of="$file" bs=1 seek=$((50 * MB + 7)) conv=notrunc
    truncate -s $((80 * MB)) "$file"
done
equals_ceph damaged_data_is_not_read
touch_device
for file in $(data_files); do
    head -c 4096 /dev/urandom | dd of="${file%data}sums" bs=4096 seek=2 conv=notrunc
    truncate -s 65536 "${file%data}sums"
done
equals_ceph damaged_words_are_not_believed
write_device 60 4
equals_ceph written_after_damage_is_right
check hearthd_outlives_damage running hearthd
rm -rf "$CACHE/images"
check without_the_directory_writes write_device 4 4
equals_ceph without_the_directory_is_right
down && up || fail without_the_directory_restaged "$(said)"
write_device 12 4
equals_ceph without_the_directory_restaged_is_right
down
end hearthd && start_hearthd && wait_for 20 probe_ok
up || fail directory_made_anew "$(said)"
touch_device
kept
warm directory_made_anew_is_kept_again touch_device
equals_ceph directory_made_anew_is_right

# ---- a run in between that keeps nothing ----

# It takes over from one that was killed, writes, and is killed; the next takes over from it.
kill_twice() { # NAME COMMAND...: how the run in between is staged
    image "$NAME"
    touch_device
    kept
    end hearthd KILL
    "${@:2}" || fail "$1" "in between: $(said)"
    write_device 10 6
    equals_ceph "${1}_in_between"
    end hearthd KILL
    start_hearthd
    image "$NAME"
    check "${1}_restaged" heal
    equals_ceph "${1}_is_right"
    hearthctl evict "$VOLUME_ID" >/dev/null # what is wrong is wrong once
}
without_flag() {
    rm -f "$HEARTHD"
    spawn hearthd "$BUILD/hearthd" --socket="$HEARTHD" --no-cache
    wait_socket hearthd "$HEARTHD"
    heal
}
without_parameter() {
    start_hearthd
    wait_for 20 probe_ok
    wait_for 20 down
    image "$NAME" '{"cache": "off"}'
    heal
}
another_directory() {
    CACHE=$TMP/disk/another start_hearthd
    heal
}
kill_twice run_without_a_cache without_flag
kill_twice run_of_another_directory another_directory
rm -rf "$TMP/disk/another"
kill_twice run_with_the_cache_off without_parameter

# ---- a disk that the kernel makes read-only ----

broken() { ! touch "$TMP/disk/probe" 2>/dev/null; }
touch_device
kept
# Not the latest words alone are to be on the disk.
sync -f "$TMP/disk"
echo broken >"/sys/fs/ext4/${LOOP#/dev/}/trigger_fs_error" 2>/dev/null
if wait_for 5 broken; then
    check read_only_disk_writes write_device 20 10
    check read_only_disk_reads touch_device
    equals_ceph read_only_disk_is_right
    end hearthd KILL
    start_hearthd
    check read_only_disk_restaged heal
    write_device 30 10
    equals_ceph read_only_disk_restaged_is_right
    end hearthd KILL
    umount "$TMP/disk" && e2fsck -fy "$LOOP" >/dev/null 2>&1
    mount_disk || fail writable_again "cannot mount it"
    start_hearthd
    check writable_again_restaged heal
    equals_ceph nothing_stale_is_read_when_it_is_writable_again
else
    skip read_only_disk "this kernel has no trigger_fs_error"
fi

# ---- another client takes the image over ----

touch_device
kept
warm is_warm_before_it_is_taken_over touch_device
taken_over() { # what `rbd lock rm` does: the holder is blocklisted
    local lock
    lock=$(rbd_cmd lock ls --format json "$IMAGE") &&
        rbd_cmd lock rm "$IMAGE" "$(jq -r '.[0].id' <<<"$lock")" "$(jq -r '.[0].locker' <<<"$lock")"
}
check taken_over taken_over
bench_write 8 || fail taken_over_written "rbd bench"
# Nothing but warm data is read.
fails() { ! touch_device 50 1 2>/dev/null; }
started=$SECONDS
check what_is_kept_is_refused_when_it_is_lost wait_for 15 fails
between within_ten_seconds $((SECONDS - started)) 0 10
wait_for 20 down || fail lost_taken_down "$(said)"
check lost_comes_back up
equals_ceph with_what_the_other_wrote

# ---- Ceph is away ----

writable=$TARGET NAME=${IMAGE#rbd/}
rbd_cmd snap create --no-progress "$IMAGE@then" || fail snapshot "rbd snap create"
as_written() { block_capability && image "$NAME" && STAGE=$TMP/mnt/stage TARGET=$writable; }
as_snapshot() {
    block_capability MULTI_NODE_READER_ONLY
    image "$NAME" '{"snapshot": "then"}' && VOLUME_ID=$VOLUME_ID-then STAGE=$TMP/mnt/stage-then TARGET=$TMP/mnt/pod/then
}
as_snapshot
up || fail snapshot_staged "$(said)"
touch_device 0 32
kept
as_written
hearthctl evict "$VOLUME_ID" >/dev/null
touch_device 0 32
kept
slowest() { # of warm reads until $TMP/back is there: in ms, or nothing when one failed
    local worst=0 started took
    until [ -e "$TMP/back" ]; do
        started=$(date +%s%3N)
        touch_device $((RANDOM % 31)) 1 || return 1
        took=$(($(date +%s%3N) - started))
        [ $took -le $worst ] || worst=$took
        sleep 0.1
    done
    echo $worst
}
halt osd.0
as_snapshot
slowest >"$TMP/slowest" &
reads=$!
as_written
write_device 80 8 >"$TMP/writes" 2>&1 &
writes=$!
touch_device 64 8 >"$TMP/colds" 2>&1 &
colds=$!
# Another client may have the image by then, for all that can be known here.
sleep 11
touch_device 0 8 >"$TMP/warms" 2>&1 &
warms=$!
sleep $((OUTAGE - 11))
waiting() { kill -0 $writes && kill -0 $colds && kill -0 $warms; }
check writes_and_reads_of_a_writable_image_wait_for_ceph waiting
touch "$TMP/back"
wait $reads
between "a_snapshot_is_read_without_ceph ($(cat "$TMP/slowest") ms at most)" "$(cat "$TMP/slowest")" 0 2000
continue_ceph
if wait $writes; then pass writes_go_on; else fail writes_go_on "$(cat "$TMP/writes")"; fi
if wait $colds; then pass cold_reads_go_on; else fail cold_reads_go_on "$(cat "$TMP/colds")"; fi
if wait $warms; then pass warm_reads_go_on; else fail warm_reads_go_on "$(cat "$TMP/warms")"; fi
equals_ceph after_the_outage_it_is_right
warm_again() { sent touch_device 0 32 && [ "$SENT" -le $LITTLE ]; }
check what_is_kept_is_used_again wait_for 20 warm_again
as_snapshot
down || fail down "$(said)"
as_written
down || fail down "$(said)"

# ---- memory ----

if command -v fio >/dev/null; then
    end hearthd
    CACHE=$TMP/cache
    start_hearthd
    wait_for 20 probe_ok
    new_image big 1G
    bench_big() { rbd_cmd bench --io-type write --io-size 4M --io-threads 4 --io-total 1G --io-pattern seq "$IMAGE" >/dev/null 2>&1; }
    bench_big || fail big "rbd bench"
    up || die "$(said)"
    resident() { awk -v f="$1:" '$1 == f { print $2 * 1024 }' "/proc/${PID[hearthd]}/status"; }
    touch_device 0 1
    before=$(resident VmRSS)
    echo 5 >"/proc/${PID[hearthd]}/clear_refs" # its peak begins anew
    check deep_reading fio --name=cold --filename="$TARGET" --rw=read --bs=1M --iodepth=32 --ioengine=libaio --direct=1 --size=1G --readonly
    grown=$(($(resident VmHWM) - before))
    # Buffers, and as much again that librbd has under way; not what was read.
    between "memory_is_bounded ($((grown / MB)) MB more)" $grown $((-1024 * MB)) $((256 * MB))
    kept
    # What comes faster than the disk takes it is not waited for, and not kept.
    between "deep_reading_keeps_what_it_can ($((KEPT / MB)) MB)" "$KEPT" $((128 * MB)) $((1100 * MB))
    down
else
    skip memory_is_bounded "no fio"
fi
check hearthd_has_lived_through_it running hearthd
