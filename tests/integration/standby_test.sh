#!/bin/bash
# A second hearthd of a socket waits for the end of the first and takes over its mounts, so that an
# upgrade starts the new one before it ends the old one. While it waits it disturbs nothing. The node
# plugin may be asked to end meanwhile.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/live_users.sh"
init
ROUNDS=${ROUNDS:-5} # ends under load
needs_resend
start_ceph
start_keeper
start_hearth

# The standby's lines "another hearthd serves" are counted.
WAITED=0
start_standby() { # [FLAGS of hearthd]
    spawn standby "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE" "$@"
    wait_for 10 waits $((WAITED += 1)) || die "no standby: $(tail -n 3 "$TMP/log/standby.log")"
}
waits() { [ "$(grep -c "another hearthd serves $HEARTHD; this one starts when it ends" "$TMP/log/standby.log")" = "$1" ]; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }
take_over() { # SIGNAL [COMMAND...]: for the first one; MS from it until the standby listens
    local began
    began=$(now_ms)
    kill "-$1" "${PID[hearthd]}"
    "${@:2}"
    wait_for 25 listens "${PID[standby]}" || die "the standby does not take over: $(tail -n 3 "$TMP/log/standby.log")"
    MS=$(($(now_ms) - began))
    end hearthd KILL
    PID[hearthd]=${PID[standby]} PIDSTART[hearthd]=${PIDSTART[standby]}
    unset "PID[standby]" "PIDSTART[standby]"
}
status_is() { # of the standby, SIGNAL that ends it, STATUS
    local pid=${PID[standby]}
    kill "-$1" "$pid"
    wait "$pid"
    local status=$?
    unset "PID[standby]" "PIDSTART[standby]"
    [ $status = "$2" ] || { echo "$status" && false; }
}
serves() { listens "${PID[hearthd]}" && hearthctl status --json | jq -e --arg v "$VOLUME_ID" 'any(.volumes[]; .volume == $v)'; }

STEP=setup
published_volume pvc-src-$RANDOM
python3 - "$TARGET" <<'P' || die "no source"
import os, random, sys
r = random.Random(1)
for i in range(200):
    with open(f"{sys.argv[1]}/f{i}", "wb") as f:
        f.write(r.randbytes(r.choice((100, 70000, 2000000))))
P
sync -f "$TARGET"
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: "snap-standby", secrets: $secrets}' --arg id "$VOLUME_ID")" ||
    die "CreateSnapshot: $(said)"
snapshot=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
remove_source() {
    VOLUME_ID=$SOURCE
    csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$snapshot")"
    delete_volume
}
SOURCE=$VOLUME_ID
unpublish && unstage || die "$(said)"
AT_EXIT=(remove_source)
dataset() {
    CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
    STAGE=$TMP/mnt/stage-set TARGET=$TMP/mnt/pod/set VOLUME_ID=$SET_ID VOLUME_CONTEXT=$SET_CONTEXT
}
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
csi controller CreateVolume "$(create_request pvc-set-$RANDOM 2147483648 "{}" |
    jq -c --arg s "$snapshot" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
SET_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") SET_CONTEXT=$(jq -c '.volume.volumeContext' <<<"$REPLY_JSON")
remove_dataset() { dataset && remove_volume; }
at_exit remove_dataset
(dataset && stage && publish) || die "no dataset"
SET=$TMP/mnt/pod/set
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
published_volume pvc-standby-$RANDOM 4294967296

STEP=waits
start_standby
check the_first_one_serves serves
sleep 1
check and_the_second_one_says_so_once waits 1
began=$(now_ms)
check a_signal_ends_it status_is TERM 0
check at_once [ $(($(now_ms) - began)) -lt 500 ]
start_standby
check as_does_an_interrupt status_is INT 0
check and_the_first_one_serves_on serves

STEP=fails
timeout 20 "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE" --fill-threads=1000 >"$TMP/out" 2>&1
same a_wrong_option_is_told_at_once "$? $(grep -c -- --fill-threads=1000 "$TMP/out")" "2 1"
check and_the_first_one_serves_on serves
printf xx >"$HEARTHD.crashes"
start_standby
check one_that_crashes_while_it_waits status_is SEGV 139
start_standby
check or_ends status_is TERM 0
same is_no_crash_of_a_hearthd_that_serves "$(cat "$HEARTHD.crashes")" xx
rm "$HEARTHD.crashes"

STEP=users
spawn readers python3 "$TOP/tests/integration/resume_readers.py" "$SET" 600 4
users_begin "$TARGET/users"
sleep 2
times=
for ((i = 0; i < ROUNDS; i++)); do
    hearthctl evict --all >/dev/null # so that readers need hearthd
    start_standby
    take_over TERM
    times="$times $MS"
    sleep "$((1 + RANDOM % 2)).$((RANDOM % 9))"
done
end_plugin() { # while hearthd leaves its mounts
    sleep 0.$((RANDOM % 5))
    end node TERM 25
}
for ((i = 0; i < 3; i++)); do
    start_standby
    take_over TERM end_plugin
    start_node
    sleep 2
done
sleep 2
kill -TERM "${PID[readers]}"
users_end
wait "${PID[readers]}"
read=$(tail -n 1 "$TMP/log/readers.log")
echo "# ms from SIGTERM until the next one listens:$times"
echo "# live volume: $SEEN"
echo "# dataset: $(jq -c 'del(.known)' <<<"$read")"
users_are_content
same nor_in_the_dataset "$(jq -c .errors <<<"$read") $(jq -c .wrong <<<"$read")" "[] 0"
check which_was_read_much test "$(jq .reads <<<"$read")" -gt 50
check no_pause_was_long test "$(jq .pause_max_ms <<<"$SEEN")" -lt 5000 -a "$(jq .pause_max_ms <<<"$read")" -lt 5000

STEP=killed
start_standby
take_over KILL
echo "# $MS ms from SIGKILL until the next one listens"
check it_is_followed_at_once [ "$MS" -lt 1000 ]
stage && publish || die "$(said)"
check which_serves serves

# A hearthd of 0.1.0 holds no lock.
STEP=no_lock
rm "$HEARTHD.lock"
start_standby
sleep 0.5
check it_is_waited_for_as_well serves
take_over TERM
check and_followed wait_for 5 serves
