#!/bin/bash
# A broken cache is never a broken volume (promise 3): full, emptied, truncated and read-only cache
# disks fail no read and no write, and no read shows other bytes.
. "$(dirname "$0")/lib.sh"
init
start_ceph

disk() { # a small ext4 at $TMP/disk
    truncate -s 256M "$TMP/disk.img"
    mkfs.ext4 -q -m 0 -N 4000 "$TMP/disk.img" || return 1
    mkdir -p "$TMP/disk"
    # losetup first: mount leaves no loop device behind, this way it is ours to free.
    LOOP=$(losetup --find --show "$TMP/disk.img") || return 1
    at_exit losetup -d "$LOOP"
    mount -t ext4 -o errors=remount-ro "$LOOP" "$TMP/disk"
}
if ! why=$(losetup --find 2>&1); then
    skip all "no loop device: $why"
    exit 0
fi
disk || die "cannot make a file system on a loop device"
CACHE=$TMP/disk/cache
start_hearth
published_volume pvc-fault-$RANDOM 2147483648

data() { "$BUILD/tools/demo-read" "$@"; }
data write "$TARGET/set" "$TMP/manifest" --files 400 --size 100000 --large 40000000 >/dev/null || die "cannot write"
right() { # NAME: every byte, from wherever it comes
    local out
    drop_page_cache
    if out=$(data read "$TARGET/set" "$TMP/manifest" --verify --seed $RANDOM 2>&1); then
        pass "$1"
    else
        fail "$1" "$out"
    fi
}
has_cached() { [ "$(cache_stat bytes)" -ge 75000000 ]; }
objects() { find "$CACHE/objects" -type f; }

right filling
wait_for 20 has_cached || fail cached "only $(cache_stat bytes) bytes are cached"
right from_the_cache

objects | shuf -n 100 | xargs -r truncate -s 50
right truncated_objects
objects | shuf -n 100 | xargs -r truncate -s 0
right emptied_objects
objects | shuf -n 50 | xargs -r truncate -s +1
right grown_objects
objects | shuf -n 200 | xargs -r rm
right missing_objects
rm -rf "$CACHE/objects"
right missing_directory
echo written >"$TARGET/file"
same write_without_the_directory "$(cat "$TARGET/file")" written

# The index is mapped: a page of it that cannot be read is a signal.
truncate -s 0 "$CACHE/index.mdb"
right index_cut_short
check hearthd_outlives_its_index running hearthd
right with_a_new_index

# A full disk, filled by somebody else.
hearthctl evict --all >/dev/null 2>&1
dd if=/dev/zero of="$TMP/disk/ballast" bs=1M 2>/dev/null
right full_disk
echo written again >"$TARGET/file"
same write_with_a_full_disk "$(cat "$TARGET/file")" "written again"
rm "$TMP/disk/ballast"
right room_again

# A data set larger than the disk: eviction makes room, and what is read is right.
data write "$TARGET/more" "$TMP/more" --seed 2 --files 1000 --size 300000 --large 0 >/dev/null || fail write_more "see above"
if out=$(data read "$TARGET/more" "$TMP/more" --verify 2>&1 && data read "$TARGET/more" "$TMP/more" --verify 2>&1); then
    pass larger_than_the_disk
else
    fail larger_than_the_disk "$out"
fi
rm -rf "$TARGET/more"

# The kernel makes a failing disk read-only.
right before_read_only
broken() { ! touch "$TMP/disk/probe" 2>/dev/null; }
echo broken >"/sys/fs/ext4/${LOOP#/dev/}/trigger_fs_error" 2>/dev/null
if wait_for 5 broken; then
    right read_only_disk
    echo third >"$TARGET/file"
    same write_with_a_read_only_disk "$(cat "$TARGET/file")" third
    data write "$TARGET/new" "$TMP/new" --seed 3 --files 50 --large 0 >/dev/null || fail write_new "on a read-only disk"
    if out=$(data read "$TARGET/new" "$TMP/new" --verify 2>&1); then pass new_files_with_a_read_only_disk; else
        fail new_files_with_a_read_only_disk "$out"; fi
    disk_state=$(cache_stat disk)
    [ "$disk_state" != ok ] && pass "status_says_${disk_state}" || fail status_tells_the_disk "still says ok"
else
    skip read_only_disk "this kernel has no trigger_fs_error"
fi

# Gone altogether, under a running hearthd.
umount -l "$TMP/disk"
right unmounted_disk

# hearthd starts without its disk, and with a corrupt index.
unpublish && unstage || fail unstage "$(said)"
end node
end hearthd
CACHE=$TMP/disk2
mkdir "$CACHE"
start_hearthd
start_node
stage && publish || die "$(said)"
right fresh_directory
unpublish && unstage
end node
end hearthd
for file in "$CACHE"/index.mdb* "$CACHE"/hearth-store; do
    [ -f "$file" ] && head -c 8192 /dev/urandom >"$file"
done
start_hearthd
start_node
stage && publish || die "$(said)"
right corrupt_index
unpublish && unstage
end node
end hearthd
rm -rf "$CACHE"
echo "a file" >"$CACHE"
start_hearthd
start_node
stage && publish || die "$(said)"
right cache_directory_is_a_file
