#!/bin/bash
# A node that Ceph does not hear from has nothing of an image that another client may write: it shows
# no old byte once its time is over, what it still had under way is refused when it is heard again, and
# its fsync fails. A snapshot's bytes never change, and go on being read. Links that go down, and a
# hearthd that is stopped (SIGSTOP).
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
network_up
start_ceph --address "$MACHINE"
. "$(dirname "$0")/rbd_cache_lib.sh"
start_controller
node_network a
start_hearthd_in a
start_node

SILENT=11 # seconds after which nothing is answered from what is kept (cache/block/watch.c)
SIZE=8

attach() { # NAME
    use "$1"
    up || die "$1: $(said)"
}
use() { # NAME: the volume that what follows is about
    image "$1-$RUN" "${CONTEXT[$1]:-"{}"}"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
declare -A CONTEXT
# In the background, for it may wait for Ceph; what it reads comes into $TMP/NAME at once or later.
begin() { # NAME COMMAND...
    local name=$1
    shift
    rm -f "$TMP/$name".{out,status}
    { "$@" >"$TMP/$name.out" 2>"$TMP/$name.err"; echo $? >"$TMP/$name.status"; } &
}
ended() { [ -s "$TMP/$1.status" ]; }
waits() { # NAME: it does so for a while
    sleep 1
    if ended "$1"; then fail "$1" "did not wait: status $(<"$TMP/$1.status"), $(wc -c <"$TMP/$1.out") bytes"; else pass "$1"; fi
}
fails() { # NAME
    if ! wait_for 40 ended "$1"; then fail "$1" "does not end"; elif [ "$(<"$TMP/$1.status")" = 0 ]; then
        fail "$1" "succeeded"; else pass "$1"; fi
}
succeeds() { # NAME
    if ! wait_for 40 ended "$1"; then fail "$1" "does not end"; else same "$1" "$(<"$TMP/$1.status")" 0; fi
}
# Fails, or has what Ceph has: FROM-MB MB
right_or_fails() { # NAME FROM-MB MB
    if ! wait_for 40 ended "$1"; then fail "$1" "does not end"; elif [ "$(<"$TMP/$1.status")" != 0 ]; then pass "$1"; else
        same "$1" "$(sum_of <"$TMP/$1.out")" "$(by_rbd | command dd status=none bs=1M iflag=fullblock skip="$2" count="$3" | sum_of)"
    fi
}
sum_of() { sha256sum | cut -c 1-16; }
# Another client takes the image over, as it would from a dead one, and writes its first 4 MB.
taken_over() {
    local lock
    lock=$(rbd_cmd lock ls --format json "$IMAGE")
    if [ "$lock" != '[]' ]; then
        rbd_cmd lock rm "$IMAGE" "$(jq -r '.[0].id' <<<"$lock")" "$(jq -r '.[0].locker' <<<"$lock")" || return 1
    fi
    bench_write 4 || return 1
    THEIRS=$(by_rbd | sum_of)
}
warm_again() { sent touch_device && [ "$SENT" -le $LITTLE ]; }
direct_write() { head -c 4096 /dev/zero | dd of="$TARGET" oflag=direct conv=notrunc bs=4096 seek=3; }
synced_write() { head -c 4096 /dev/zero | dd of="$TARGET" conv=notrunc,fsync bs=4096 seek=5; }
# Nothing of what it held once is served again.
comes_back() { # NAME
    wait_for 30 down || fail "$1" "$(said)"
    check "$1" up
    equals_ceph "${1}_with_what_the_other_wrote"
}

block_capability
random_image written $SIZE
random_image model $SIZE
rbd_cmd snap create --no-progress "$IMAGE@v1" || die "rbd snap"
CONTEXT[model]='{"snapshot": "v1"}'
random_image weights $SIZE
attach written
touch_device
kept
block_capability SINGLE_NODE_READER_ONLY
for name in model weights; do
    attach $name
    touch_device
    kept
    warm ${name}_is_warm touch_device
done
block_capability
use written
warm written_is_warm touch_device

# ---- cut off for a while; no one else writes ----

link_down a
sleep $SILENT
begin a_read_waits_while_ceph_is_not_heard read_device 0 2
waits a_read_waits_while_ceph_is_not_heard
use model
check a_snapshot_is_read_all_the_same timeout 20 bash -c "command dd status=none if='$TARGET' iflag=direct bs=1M count=2 of=/dev/null"
use written
link_up a
right_or_fails a_read_waits_while_ceph_is_not_heard 0 2
succeeds a_read_waits_while_ceph_is_not_heard
check what_is_kept_is_used_again wait_for 20 warm_again
equals_ceph and_is_right

# ---- cut off; another client takes it over ----

link_down a
begin a_direct_write_under_way_fails direct_write
begin the_fsync_of_a_write_under_way_fails synced_write
use weights
check a_readers_image_is_written taken_over
use written
check a_writers_image_is_taken_over taken_over
sleep $SILENT
begin an_old_block_is_not_read read_device 1 2
use weights
begin an_old_block_is_not_read_by_a_reader read_device 1 2
waits an_old_block_is_not_read
waits an_old_block_is_not_read_by_a_reader
link_up a
right_or_fails an_old_block_is_not_read_by_a_reader 1 2
use written
fails an_old_block_is_not_read
fails a_direct_write_under_way_fails
fails the_fsync_of_a_write_under_way_fails
begin a_later_fsync_fails_too synced_write
fails a_later_fsync_fails_too
same no_late_write_is_in_ceph "$(by_rbd | sum_of)" "$THEIRS"
use weights
equals_ceph the_reader_sees_what_was_written
use written
comes_back it_comes_back

# ---- stopped; another client takes it over ----

touch_device
kept
warm it_is_warm_before_it_is_stopped touch_device
kill -STOP "${PID[hearthd]}"
begin a_write_of_a_stopped_hearthd_fails direct_write
begin the_fsync_of_a_stopped_hearthd_fails synced_write
check it_is_taken_over_while_stopped taken_over
sleep $SILENT
begin when_it_goes_on_it_shows_nothing_old read_device 1 2
sleep 1
kill -CONT "${PID[hearthd]}"
fails when_it_goes_on_it_shows_nothing_old
fails a_write_of_a_stopped_hearthd_fails
fails the_fsync_of_a_stopped_hearthd_fails
same no_write_of_a_stopped_hearthd_is_in_ceph "$(by_rbd | sum_of)" "$THEIRS"
comes_back it_comes_back_again
for name in written weights model; do
    use $name
    down || fail down "$name: $(said)"
done
