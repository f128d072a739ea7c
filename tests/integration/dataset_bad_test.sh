#!/bin/bash
# What can be wrong with a dataset, and what then is read: its bytes, or an error, and never anything
# else. Manifests and objects that are damaged, a snapshot that goes while it is mounted, directories
# that cannot be a cache.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

code() { same "$1" "$CSI_CODE" "$2"; }
mount_type() { findmnt -n -o FSTYPE --mountpoint "$1" | tail -n 1; }
sums() { (cd "$TARGET" && find . -type f -exec md5sum {} + | sort -k 2); }
right() { # NAME: every byte
    drop_all
    sums >"$TMP/sums" 2>"$TMP/err"
    check "$1" cmp "$TMP/before" "$TMP/sums"
}
use() { stage && publish; }
leave() { unpublish && unstage || fail "$1" "$(said)"; }
told() { # NAME TEXT: hearthd's log since the last
    tail -n +$((${LOGGED:-0} + 1)) "$TMP/log/hearthd.log" >"$TMP/told"
    LOGGED=$(wc -l <"$TMP/log/hearthd.log")
    grep -q "$2" "$TMP/told" && pass "$1" || fail "$1" "$(tail -n 2 "$TMP/told")"
}

ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create bad-$$ --group_name csi --size 1073741824
at_exit "subsnap rm bad-$$ v1 --group_name csi; sub rm bad-$$ --group_name csi"
ROOT_PATH=$(sub getpath bad-$$ --group_name csi)
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
wait_for 30 mountpoint -q "$TMP/mnt/ceph" || die "ceph-fuse does not mount"
mkdir "$TMP/mnt/ceph$ROOT_PATH/set"
for i in $(seq 100 199); do head -c $((i * 300)) /dev/urandom >"$TMP/mnt/ceph$ROOT_PATH/set/file$i"; done
head -c 20000000 /dev/urandom >"$TMP/mnt/ceph$ROOT_PATH/large"
sync -f "$TMP/mnt/ceph$ROOT_PATH"
(cd "$TMP/mnt/ceph$ROOT_PATH" && find . -type f -exec md5sum {} + | sort -k 2) >"$TMP/before"
subsnap create bad-$$ v1 --group_name csi
# What is read later must be the snapshot's.
for i in $(seq 100 199); do echo live >"$TMP/mnt/ceph$ROOT_PATH/set/file$i"; done
sync -f "$TMP/mnt/ceph$ROOT_PATH"
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
create_volume pvc-$$ 1073741824 "{\"dataset\": \"bad-$$@v1\"}" || die "CreateVolume: $(said)"
use || die "stage: $(said)"
right as_it_should_be
wait_for 60 settled
DATASET=$(basename "$CACHE"/manifests/????????????????????????????????)
MANIFEST=$CACHE/manifests/$DATASET
leave first

# ---- its manifest, here ----
damaged() { # NAME COMMAND...: of the file while hearthd is away
    local name=$1
    shift
    end hearthd
    "$@"
    start_hearthd
    check "$name-is_staged" use
    same "$name-natively" "$(mount_type "$STAGE")" overlay
    right "$name-is_right"
    leave "$name"
}
poke() { printf 'XXXXXXXX' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }
damaged manifest_changed poke "$MANIFEST" 5000
told it_is_told "is removed and built again: the manifest is corrupt"
damaged manifest_cut truncate -s 4097 "$MANIFEST"
told it_is_told_too "is removed and built again"
damaged manifest_empty truncate -s 0 "$MANIFEST"

# ---- objects ----
objects() { find "$CACHE/objects" -type f | sort; }
use || die "stage: $(said)"
right before_objects_are_damaged
wait_for 60 settled
leave objects
objects | awk 'NR % 3 == 0' | xargs truncate -s 50
objects | awk 'NR % 3 == 1' | xargs truncate -s +1
use || die "stage: $(said)"
noticed() { grep -q "objects had a wrong size" "$TMP/log/hearthd.log"; }
check a_wrong_size_is_noticed wait_for 30 noticed
right and_fetched_again
wait_for 60 settled
same none_is_of_a_wrong_size "$(objects | xargs stat -c %s | grep -c '^50$')" 0

# ---- the snapshot goes while it is mounted ----
# Mounted anew: what the kernel knows of objects it reads on in, also when they are evicted.
leave objects_again
hearthctl evict --all >/dev/null
use || die "stage: $(said)"
warm() { (cd "$TARGET" && md5sum ./set/file1[0-4]?); }
warm >"$TMP/warm-before"
cat "$TARGET/large" >/dev/null
wait_for 60 settled
same what_was_read_is_held "$(objects | wc -l)" 51
drop_all
warm >/dev/null
subsnap rm bad-$$ v1 --group_name csi
sleep 5 # for the OSD to take away what only the snapshot had
warm >"$TMP/warm-after" 2>"$TMP/err"
check gone_warm_files_are_read cmp "$TMP/warm-before" "$TMP/warm-after"
drop_all
sums >"$TMP/sums" 2>"$TMP/err"
same no_other_bytes_are_read "$(comm -13 <(sort "$TMP/before") <(sort "$TMP/sums"))" ""
check cold_ones_fail grep -q "Input/output error" "$TMP/err"
leave gone
stage
code it_is_not_staged_again NOT_FOUND
subsnap create bad-$$ v1 --group_name csi
(cd "$TMP/mnt/ceph$ROOT_PATH" && find . -type f -exec md5sum {} + | sort -k 2) >"$TMP/before"

# ---- directories that cannot be a cache ----
disk() { # OPTIONS: an ext4 at $TMP/disk
    truncate -s 256M "$TMP/disk.img"
    mkfs.ext4 -q -m 0 "$@" "$TMP/disk.img" && mkdir -p "$TMP/disk" || return 1
    LOOP=$(losetup --find --show "$TMP/disk.img") || return 1
    mount -t ext4 "$LOOP" "$TMP/disk"
}
undisk() {
    umount "$TMP/disk" 2>/dev/null
    losetup -d "$LOOP" 2>/dev/null
}
at_exit undisk
without() { # NAME TYPE TEXT: is read all the same, mounted as TYPE ('': any), and TEXT is told
    end hearthd
    start_hearthd
    check "$1-is_staged" use
    [ -z "$2" ] || same "$1-is_mounted_so" "$(mount_type "$STAGE")" "$2"
    right "$1-is_right"
    right "$1-is_right_again"
    [ -z "$3" ] || told "$1-is_told" "$3"
    leave "$1"
    end hearthd
}
LOGGED=$(wc -l <"$TMP/log/hearthd.log")
mkdir "$TMP/tiny" "$TMP/low" "$TMP/up" "$TMP/work" "$TMP/over"
CACHE=$TMP/tiny/cache
mount -t tmpfs -o size=1M tmpfs "$TMP/tiny" && without tmpfs_too_small '' ''
umount "$TMP/tiny"
mount -t ramfs ramfs "$TMP/tiny" && without no_attributes fuse.hearth ""
check which_the_node_plugin_tells grep -q "has no extended attributes" "$TMP/log/node.log"
umount "$TMP/tiny"
CACHE=$TMP/over/cache
mount -t tmpfs tmpfs "$TMP/low" && mkdir "$TMP/low"/{low,up,work} &&
    mount -t overlay -o "lowerdir=$TMP/low/low,upperdir=$TMP/low/up,workdir=$TMP/low/work" overlay "$TMP/over" &&
    without overlay fuse.hearth "is on overlayfs"
umount "$TMP/over" "$TMP/low"
CACHE=$TMP/disk/cache
if disk; then
    end hearthd
    start_hearthd
    end hearthd
    mount -o remount,ro "$TMP/disk"
    without read_only fuse.hearth "Read-only file system; the cache needs a writable file system"
    undisk
fi
CACHE=$TMP/cache
start_hearthd
check at_last_it_is_staged use
right at_last_it_is_right
leave at_last
delete_volume || fail delete "$(said)"
