#!/bin/bash
# hearthd may make hardly any more threads, and reads of one volume hang in an inactive placement group. They take the
# threads that there are, but for the last ones: another volume is read, written and synced meanwhile, and hearthd lives.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
HUNG=60
if [ -d /sys/fs/cgroup/pids ]; then GROUP=/sys/fs/cgroup/pids/hearth-limit-$$; else GROUP=/sys/fs/cgroup/hearth-limit-$$; fi
has_group() { mkdir "$GROUP" && [ -e "$GROUP/pids.max" ] || { echo +pids >/sys/fs/cgroup/cgroup.subtree_control; [ -e "$GROUP/pids.max" ]; }; } 2>/dev/null
at_exit 'rmdir "$GROUP" 2>/dev/null'
has_group || { skip "${TEST_NAME%_test}" "no cgroup with pids.max can be made"; exit 0; }
start_ceph --conf 'mon_allow_pool_size_one = true'
HEARTHD_WITH=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP")
start_hearth
FIRST=${PID[hearthd]}
delete_volume() { :; } # it goes with the cluster, which is this test's own

other() { # COMMAND...: with the variables those of the second volume
    local VOLUME_ID=$OTHER_ID VOLUME_CONTEXT=$OTHER_CONTEXT STAGE=$TMP/mnt/other TARGET=$TMP/mnt/pod/other
    "$@"
}
create_volume pvc-other-$RANDOM 1073741824 || die "CreateVolume: $(said)"
OTHER_ID=$VOLUME_ID OTHER_CONTEXT=$VOLUME_CONTEXT
at_exit other remove_volume
other stage || die "NodeStageVolume: $(said)"
other publish || die "NodePublishVolume: $(said)"
OTHER=$TMP/mnt/pod/other
for i in $(seq 10); do echo "text of $i" >"$OTHER/$i"; done
sync -f "$OTHER"
published_volume pvc-hung-$RANDOM 1073741824
second_client
weak_pool
talk client mkdir /weak || die "$ANSWER"
weak_layout client /weak
for i in $(seq "$HUNG"); do talk client write "/weak/$i" "text of $i" || die "$ANSWER"; done
exec {HELD}<"$OTHER/1" # its connection stays
[ "$(cat "$TARGET/weak/1")" = "text of 1" ] || die "a read before"
spawn readers python3 "$TOP/tests/integration/hung_reads.py" "$TMP/run/readers" "$TMP/go" "$TARGET"/weak/*
wait_for 60 test -e "$TMP/run/readers" || die "the readers do not open their files"
hang_weak
LIMIT=$(($(<"$GROUP/pids.current") + 12))
echo "$LIMIT" >"$GROUP/pids.max"

waiting() { # N: so many threads of the readers wait in the kernel
    [ "$(cat /proc/"${PID[readers]}"/task/*/stat | sed 's/.*) //' | grep -c '^D')" -ge "$1" ]
}
touch "$TMP/go"
check reads_hang wait_for 60 waiting 20
# They take what they may have: the number of threads does not change any more.
is_settled() { local n=$(<"$GROUP/pids.current"); sleep 0.5; [ "$n" = "$(<"$GROUP/pids.current")" ]; }
check threads_settle wait_for 60 is_settled
echo "# pids.max $LIMIT, $(<"$GROUP/pids.current") threads with $HUNG reads that hang"
reads() { [ "$(timeout 20 cat "$OTHER/$1")" = "text of $1" ]; }
for i in 2 3 4; do check "another_volume_is_read_$i" reads $i; done
writes() { timeout 20 bash -c 'echo new >"$0" && sync "$0"' "$OTHER/new"; }
check and_written_and_synced writes
check and_listed timeout 20 ls "$OTHER"
check some_threads_are_left [ "$(<"$GROUP/pids.current")" -lt "$LIMIT" ]
lives() { running hearthd && [ "${PID[hearthd]}" = "$FIRST" ]; }
check hearthd_lives lives

# ---- not one more ----
echo "$(<"$GROUP/pids.current")" >"$GROUP/pids.max"
echo closed >"$OTHER/closed"
began=$SECONDS
# Its handle is looked at after 10 s (WITNESS_MS in cache/origin/cephfs/file.c), by a thread if there is one.
until [ $((SECONDS - began)) -ge 12 ]; do sleep 0.5; done
check what_was_closed_before_is_synced timeout 20 sync "$OTHER/closed"
check another_volume_is_read_without_a_thread reads 5
check hearthd_lives_without_a_thread lives

heal_weak
check hung_reads_end_well wait_for 120 grep -q "^$HUNG read well" "$TMP/log/readers.log"
echo max >"$GROUP/pids.max"
check hearthd_lives_at_the_end lives
exec {HELD}<&-
