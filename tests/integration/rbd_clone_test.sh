#!/bin/bash
# What clones of one snapshot have in common is kept once (cache/block/, cache/origin/rbd/parent.c), and
# what is opened for reading only is kept as long as nobody writes the image. A clone that is written,
# flattened, or outlives its parent has its own bytes all the same.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
. "$(dirname "$0")/rbd_cache_lib.sh"
start_hearth

SIZE=32
READER=SINGLE_NODE_READER_ONLY
clone() { # NAME [FLAGS of rbd clone]
    rbd_cmd clone "$PARENT" "rbd/$1-$RUN" "${@:2}" || die "rbd clone $1"
}
# The volume that what follows is about: several are staged at once.
use() { # NAME
    image "$1-$RUN"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
attach() { # NAME
    use "$1"
    up || die "$1: $(said)"
}
each_down() {
    for name in "$@"; do
        use "$name"
        down
    done
}

random_image model $SIZE
PARENT=$IMAGE@v1
rbd_cmd snap create --no-progress "$PARENT" && rbd_cmd snap protect "$PARENT" || die "rbd snap"
block_capability
for name in a b c; do clone $name; done

# ---- shared ----

attach a
attach b
use a
cold first_clone_is_fetched $((SIZE * MB)) touch_device
equals_ceph first_clone_is_right
kept
use b
warm second_clone_is_there_already touch_device
equals_ceph second_clone_is_right
between they_are_stored_once "$(disk_bytes)" $((SIZE * MB)) $(((SIZE + 2) * MB))
same the_parent_has_a_directory_of_its_own "$(directories)" 3

# ---- written ----

write_device 3 2
use a
equals_ceph a_clone_has_nothing_of_what_another_writes
warm and_asks_nobody_for_the_rest touch_device
use b
equals_ceph a_clone_has_what_it_wrote
kept
warm a_written_clone_is_warm touch_device
blkdiscard -o $((8 * MB)) -l $((4 * MB)) "$TARGET" || fail blkdiscard "failed"
same what_a_clone_discards_is_not_the_parents "$(read_device 8 4 | tr -d '\0' | wc -c)" 0
equals_ceph a_clone_that_discarded_is_right
kept

# ---- from one attach to the next ----

each_down a b
attach b
equals_ceph attached_again_a_clone_has_its_own
kept
warm attached_again_it_is_warm touch_device
attach a
warm attached_again_the_other_is_warm touch_device
end hearthd KILL
start_hearthd
use b
heal || fail healed "$(said)"
equals_ceph after_a_kill_it_has_its_own
use a
heal || fail healed "$(said)"
warm after_a_kill_what_they_share_is_warm touch_device

# Written by another client in between, past this node.
each_down a b
use a
bench_write 8
up || fail written_elsewhere "$(said)"
equals_ceph what_was_written_elsewhere_is_read

# ---- no clone any more ----

rbd_cmd flatten --no-progress "$IMAGE" || fail flatten "failed"
equals_ceph flattened_while_attached_it_is_right
write_device 20 1
equals_ceph flattened_and_written_it_is_right
each_down a
for name in b c; do
    use $name
    rbd_cmd flatten --no-progress "$IMAGE" || fail flatten "failed"
done
rbd_cmd snap unprotect "$PARENT" && rbd_cmd snap rm --no-progress "$PARENT" || fail snap_rm "failed"
hearthctl evict --all >/dev/null || fail evict "failed"
for name in a b c; do
    attach $name
    equals_ceph "${name}_outlives_its_parent"
done
each_down a b c

# ---- of some size ----

random_image odd 10
rbd_cmd resize --no-progress --size $((9 * MB + 1536))B --allow-shrink "$IMAGE" || die "rbd resize"
PARENT=$IMAGE@v1
rbd_cmd snap create --no-progress "$PARENT" && rbd_cmd snap protect "$PARENT" || die "rbd snap"
clone grown
clone twin
use grown
rbd_cmd resize --no-progress --size 24M "$IMAGE" || fail resize "failed"
attach grown
equals_ceph a_clone_that_was_grown_is_right
attach twin
equals_ceph its_twin_is_right
use grown
write_device 9 1
write_device 12 1
equals_ceph written_across_its_parents_end_it_is_right
use twin
equals_ceph its_twin_is_right_still
each_down grown twin
# A clone of a clone.
use grown
rbd_cmd snap create --no-progress "$IMAGE@v2" && rbd_cmd snap protect "$IMAGE@v2" || die "rbd snap"
PARENT=$IMAGE@v2
clone nested
clone nested2
attach nested
equals_ceph a_clone_of_a_clone_is_right
kept
attach nested2
warm clones_of_a_clone_share touch_device
equals_ceph and_are_right
each_down nested nested2
attach grown
equals_ceph a_clone_that_has_a_snapshot_is_right
write_device 2 1
equals_ceph and_written_it_is_right
each_down grown

# ---- opened for reading only ----

block_capability $READER
attach nested
warm a_reader_finds_what_others_share touch_device
equals_ceph a_reader_is_right
each_down nested
random_image weights $SIZE
attach weights
cold a_reader_fetches_once $((SIZE * MB)) touch_device
kept
warm a_reader_asks_nobody_again touch_device
each_down weights
attach weights
warm the_next_reader_is_warm touch_device
each_down weights
block_capability
attach weights
touch_device
write_device 5 1
each_down weights
block_capability $READER
attach weights
warm a_reader_after_a_writer_is_warm touch_device
equals_ceph and_has_what_was_written
# A reader's image that somebody writes: within 5 s it is noticed.
bench_write 4
sleep 6
equals_ceph what_another_writes_meanwhile_is_read
each_down weights
attach weights
equals_ceph the_reader_after_that_is_right
kept
warm and_is_warm_again touch_device
each_down weights
block_capability
attach weights
warm a_writer_after_readers_is_warm touch_device
each_down weights

# A file system of model weights: written once, then read by many.
capability ext4
new_image disk 64M
attach disk
head -c $((24 * MB)) /dev/urandom >"$TARGET/weights" && sync "$TARGET/weights" || fail write "failed"
sum=$(sha256sum <"$TARGET/weights")
each_down disk
rbd_cmd snap create --no-progress "$IMAGE@v1" && rbd_cmd snap protect "$IMAGE@v1" || die "rbd snap"
PARENT=$IMAGE@v1
clone reader
clone reader2
hearthctl evict --all >/dev/null
capability ext4 MULTI_NODE_READER_ONLY
read_weights() { SUM=$(dd if="$TARGET/weights" iflag=direct bs=1M | sha256sum); }
attach reader
asked a_mounted_reader_fetches $((24 * MB)) read_weights
same and_has_the_bytes "$SUM" "$sum"
kept
attach reader2
warm a_mounted_reader_of_another_clone_is_warm read_weights
same and_has_the_bytes_too "$SUM" "$sum"
each_down reader reader2
# A device that others may write is not kept, for its readers look at what was written just now.
block_capability MULTI_NODE_READER_ONLY
attach reader
touch_device
asked a_shared_device_is_read_from_ceph $((20 * MB)) touch_device
each_down reader
