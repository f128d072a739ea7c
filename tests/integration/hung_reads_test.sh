#!/bin/bash
# Reads of files whose placement group is inactive hang, and another client wants to write these files. A healthy
# file of the same mount, held open and mapped, is rewritten by another client meanwhile: who holds it sees the new bytes
# at once. When the placement group is back, all that hung ends well.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
HUNG=${HUNG:-20} # reads; more than there are threads for requests
start_ceph --conf 'mon_allow_pool_size_one = true'
start_hearth
published_volume pvc-hung-$RANDOM 1073741824
delete_volume() { :; } # it goes with the cluster, which is this test's own
second_client
client() { talk client "$@" || fail "${STEP}_client_$1" "$* gave $ANSWER"; }
talk_start putter "$BUILD/tools/cephfs-client" "$CEPH_CONF" admin "$CEPH_KEYRING" hearthfs "$ROOT_PATH" ||
    die "the putter does not connect"

STEP=setup
weak_pool
client mkdir /weak
weak_layout client /weak
for i in $(seq "$HUNG"); do client write "/weak/$i" "text of $i"; done
client write /healthy HEALTHY-OLD
client write /cold COLD
hit_rises() {
    local before
    before=$(volume_stat hits)
    cat "$TARGET/healthy" >/dev/null
    [ "$(volume_stat hits)" -gt "$before" ]
}
check healthy_file_is_in_the_cache wait_for 10 hit_rises
echo early >"$TARGET/weak/.unsynced" && sync -f "$TARGET"
talk_start hold "$BUILD/tools/file-hold" "$TARGET/healthy" || die "cannot hold a file"
talk hold read
talk hold map
same mapping_before "$ANSWER" HEALTHY-OLD
spawn readers python3 "$TOP/tests/integration/hung_reads.py" "$TMP/run/readers" "$TMP/go" "$TARGET"/weak/*
wait_for 20 test -e "$TMP/run/readers" || die "the readers do not open their files"
hang_weak

STEP=hung
waiting() { # N: so many threads of the readers wait in the kernel
    [ "$(cat /proc/"${PID[readers]}"/task/*/stat | sed 's/.*) //' | grep -c '^D')" -ge "$1" ]
}
touch "$TMP/go"
check reads_hang wait_for 20 waiting "$HUNG"
reads_well() { [ "$(timeout 10 cat "$TARGET/$1")" = "$2" ]; }
check another_file_is_read_from_the_cache reads_well healthy HEALTHY-OLD
check another_file_is_read_from_ceph reads_well cold COLD
check names_are_listed_and_made timeout 10 mkdir "$TARGET/made"
printf late | dd of="$TARGET/weak/.unsynced" conv=notrunc 2>/dev/null # cannot be written to Ceph
for i in $(seq 20); do echo text >"$TARGET/made/$i"; done
rm "$TARGET"/made/*
for i in $(seq "$HUNG"); do talk putter putting "/weak/$i" "TEXT"; done
sleep 1 # by then this node is asked for the leases; were it not yet, the test would only see less
before=$SECONDS
client put /healthy 0 HEALTHY-NEW
took=$((SECONDS - before))
if [ $took -le 10 ]; then pass a_writer_of_another_file_goes_on; else fail a_writer_of_another_file_goes_on "it took $took s"; fi
for how in map read; do
    talk hold $how
    same "new_bytes_of_another_file_by_$how" "$ANSWER" HEALTHY-NEW
done
check reads_still_hang waiting "$HUNG"
strays() { ceph_cmd tell mds.a perf dump mds_cache 2>>"$TMP/log/mds.log" | jq .mds_cache.num_strays; }
no_strays() { [ "$(strays)" = 0 ]; }
check removed_files_are_not_held_for_one_that_hangs wait_for 40 no_strays
check reads_hang_as_before waiting "$HUNG"
talk putter has-put
same writers_of_their_files_wait "$ANSWER" 0
sleep "${HANG:-0}" # by hand: longer than the library lets a lease wait

STEP=back
heal_weak
check hung_reads_end_well wait_for 60 grep -q "^$HUNG read well" "$TMP/log/readers.log"
all_put() { talk putter has-put && [ "$ANSWER" = "$HUNG" ]; }
check leases_went_back wait_for 60 all_put
for i in 1 "$HUNG"; do
    same "rewritten_file_is_read_new_$i" "$(timeout 20 cat "$TARGET/weak/$i")" "TEXT of $i"
done
lost=$(grep -c "session with Ceph is lost" "$TMP/log/hearthd.log")
same the_session_was_kept "$lost" 0
talk_end putter
talk_end hold
