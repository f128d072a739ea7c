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
waits() { # JOB: it does so for a while
    sleep 1
    if ended "$1"; then fail "${1}_waits" "status $(<"$TMP/$1.status"), $(wc -c <"$TMP/$1.out") bytes"; else pass "${1}_waits"; fi
}
ends() { # NAME JOB
    wait_for 40 ended "$2" || { fail "$1" "does not end"; return 1; }
}
fails() { # JOB
    ends "${1}_fails" "$1" || return
    if [ "$(<"$TMP/$1.status")" = 0 ]; then fail "${1}_fails" "succeeded"; else pass "${1}_fails"; fi
}
succeeds() { ends "${1}_succeeds" "$1" && same "${1}_succeeds" "$(<"$TMP/$1.status")" 0; } # JOB
# Fails, or has what Ceph has.
shows_nothing_old() { # JOB FROM-MB MB
    ends "${1}_shows_nothing_old" "$1" || return
    if [ "$(<"$TMP/$1.status")" != 0 ]; then pass "${1}_shows_nothing_old"; else
        same "${1}_shows_nothing_old" "$(sum_of <"$TMP/$1.out")" "$(by_rbd | dd bs=1M iflag=fullblock skip="$2" count="$3" | sum_of)"
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
begin a_read_of_what_is_kept read_device 0 2
waits a_read_of_what_is_kept
use model
check a_snapshot_is_read_all_the_same timeout 20 bash -c "command dd status=none if='$TARGET' iflag=direct bs=1M count=2 of=/dev/null"
use written
link_up a
shows_nothing_old a_read_of_what_is_kept 0 2
succeeds a_read_of_what_is_kept
check what_is_kept_is_used_again wait_for 20 warm_again
equals_ceph and_is_right

# ---- cut off; another client takes it over ----

link_down a
begin a_direct_write_under_way direct_write
begin the_fsync_of_a_write_under_way synced_write
use weights
check a_readers_image_is_written taken_over
use written
check a_writers_image_is_taken_over taken_over
sleep $SILENT
begin a_read_once_taken_over read_device 1 2
use weights
begin a_readers_read_once_taken_over read_device 1 2
waits a_read_once_taken_over
waits a_readers_read_once_taken_over
link_up a
shows_nothing_old a_readers_read_once_taken_over 1 2
use written
fails a_read_once_taken_over
fails a_direct_write_under_way
fails the_fsync_of_a_write_under_way
begin a_later_fsync synced_write
fails a_later_fsync
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
check it_is_taken_over_while_stopped taken_over
sleep $SILENT
begin a_read_once_it_goes_on read_device 1 2
sleep 1 # first of all that it has to do then
begin a_write_of_a_stopped_hearthd direct_write
begin the_fsync_of_a_stopped_hearthd synced_write
kill -CONT "${PID[hearthd]}"
fails a_read_once_it_goes_on
fails a_write_of_a_stopped_hearthd
fails the_fsync_of_a_stopped_hearthd
same no_write_of_a_stopped_hearthd_is_in_ceph "$(by_rbd | sum_of)" "$THEIRS"
comes_back it_comes_back_again

if [ -n "${LONG:-}" ]; then
    # Ceph forgets that it had watched the image; no one else takes it.
    touch_device
    kept
    link_down a
    sleep 45
    link_up a
    begin a_read_after_a_long_cut read_device 0 2
    succeeds a_read_after_a_long_cut
    shows_nothing_old a_read_after_a_long_cut 0 2
    touch_again() { touch_device && kept && warm_again; }
    check what_is_read_then_is_kept wait_for 60 touch_again
    equals_ceph after_a_long_cut_it_is_right

    # Taken over, given back, and the blocklist's entry is over: Ceph answers as if nothing were.
    kill -STOP "${PID[hearthd]}"
    check it_is_taken_over_for_a_while taken_over
    for entry in $(ceph_cmd osd blocklist ls 2>/dev/null | awk '{ print $1 }'); do ceph_cmd osd blocklist rm "$entry" 2>/dev/null; done
    sleep $SILENT
    begin a_read_when_it_is_not_blocklisted read_device 1 2
    sleep 1
    kill -CONT "${PID[hearthd]}"
    shows_nothing_old a_read_when_it_is_not_blocklisted 1 2
    sleep 5
    begin a_read_later read_device 1 2
    shows_nothing_old a_read_later 1 2
    comes_back it_comes_back_at_last
fi
for name in written weights model; do
    use $name
    down || fail down "$name: $(said)"
done
