#!/bin/bash
# A dataset of which one placement group hangs, on a real Ceph: reads of it wait for longer than Ceph is ever silent, and
# end well when it is back; other files are read meanwhile; who waits can be killed. With all of Ceph stopped, reads fail
# in time; a class may say that they fail sooner.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
WAIT=${WAIT:-27} # seconds; more than 25
KILLED_IN=3
MANY=40 # more than the threads that fetch
start_ceph --conf 'mon_allow_pool_size_one = true'
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

STEP=setup
weak_pool
ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create hung-$$ --group_name csi --size 1073741824
ROOT_PATH=$(sub getpath hung-$$ --group_name csi)
second_client
client() { talk client "$@" || die "the source: $* gave $ANSWER"; }
client mkdir /weak
weak_layout client /weak
for i in 1 2 3 4; do client write "/weak/$i" "text of $i"; done
for i in $(seq "$MANY"); do client write "/weak/many$i" "many $i"; done
for i in $(seq 40); do client write "/$i" "$i"; done
for i in $(seq 8); do client write "/late$i" "late $i"; done
client write /cold cold
client write /colder colder
client mkdir /apart
client write /apart/coldest coldest
subsnap create hung-$$ v1 --group_name csi
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
delete_volume() { :; } # it goes with the cluster, which is this test's own
create_volume pvc-hung-$$ 1073741824 "{\"dataset\": \"hung-$$@v1\"}" || die "CreateVolume: $(said)"
stage && publish || die "stage: $(said)"
hang_weak

STEP=hung
read_in() { # NAME SECONDS: reads the file; how long it took is in TOOK
    local began=$SECONDS
    timeout "$2" cat "$TARGET/$1"
    local rc=$?
    TOOK=$((SECONDS - began))
    return $rc
}
waits() { kill -0 "$1" 2>/dev/null && [[ $(awk '/^State/ {print $2}' "/proc/$1/status" 2>/dev/null) != Z ]]; }
dies() { # NAME PID: after SIGKILL
    kill -KILL "$2"
    check "$1" wait_for $KILLED_IN eval "! waits $2"
}
cat "$TARGET/weak/1" >"$TMP/waited" 2>"$TMP/err" &
waiting=$!
began=$SECONDS
cat "$TARGET/weak/2" >/dev/null 2>&1 &
through_pages=$!
dd if="$TARGET/weak/3" of="$TMP/direct" iflag=direct bs=64k status=none 2>/dev/null &
direct=$!
slowest=0
for i in $(seq 40); do
    [ "$(read_in "$i" 10)" = "$i" ] || fail another_file_is_read "$i"
    read_in "$i" 10 >/dev/null
    [ $TOOK -le $slowest ] || slowest=$TOOK
done
pass other_files_are_read_meanwhile
[ $slowest -le 2 ] && pass and_at_once || fail and_at_once "one took $slowest s"
check a_direct_read_waits waits $direct
dies who_reads_directly_can_be_killed $direct
dies who_reads_through_pages_can_be_killed $through_pages
for i in $(seq "$MANY"); do
    cat "$TARGET/weak/many$i" >"$TMP/many.$i" 2>&1 &
    readers[i]=$!
done
for i in $(seq 8); do
    [ "$(read_in "late$i" 20)" = "late $i" ] || fail beside_many_another_file_is_read "$i"
done
pass beside_many_other_files_are_read
check all_of_the_many_wait waits "${readers[MANY]}"
while [ $((SECONDS - began)) -lt "$WAIT" ]; do sleep 1; done
check a_read_waits_longer_than_ceph_may_be_silent waits $waiting
same and_without_an_error "$(<"$TMP/err")" ""

STEP=back
heal_weak
done_well() { ! waits $waiting; }
check it_ends_when_the_group_is_back wait_for 60 done_well
wait $waiting
same well "$?/$(<"$TMP/waited")" "0/text of 1"
wait "${readers[@]}"
same all_of_the_many_end_well "$(for i in $(seq "$MANY"); do [ "$(<"$TMP/many.$i")" = "many $i" ] || echo "$i"; done)" ""
same files_that_nobody_waits_for_are_read_too "$(read_in weak/4 20)" "text of 4"

STEP=mds
# A client that has not seen the directory asks the MDS.
unpublish && unstage && stage && publish || die "staged again: $(said)"
halt mds.a
cat "$TARGET/apart/coldest" >"$TMP/waited" 2>"$TMP/err" &
waiting=$!
sleep "$WAIT"
check a_read_waits_while_a_monitor_answers waits $waiting
continue_ceph
check it_ends_when_the_mds_is_back wait_for 150 done_well
wait $waiting
same well "$?/$(<"$TMP/waited")" "0/coldest"

STEP=silent
stop_ceph
read_in cold 60 >"$TMP/out" 2>"$TMP/err"
same a_cold_read_fails "$?/$(grep -c 'Input/output error' "$TMP/err")" 1/1
[ $TOOK -ge 10 ] && [ $TOOK -le 35 ] && pass after_about_20_s || fail after_about_20_s "$TOOK s"
read_in colder 60 >"$TMP/out" 2>"$TMP/err"
same the_next_fails_too "$?/$(grep -c 'Input/output error' "$TMP/err")" 1/1
[ $TOOK -le 5 ] && pass and_soon || fail and_soon "$TOOK s"
for i in 1 40; do same "warm_files_are_read_$i" "$(read_in "$i" 10)" "$i"; done
continue_ceph
read_again() { [ "$(read_in cold 30 2>/dev/null)" = cold ]; }
check when_it_is_back_so_is_the_file wait_for 150 read_again
unpublish && unstage || fail unstaged "$(said)"
exit 0
