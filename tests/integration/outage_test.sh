#!/bin/bash
# One daemon of Ceph at a time is away, or the node plugin is stopped: what is mounted goes on, at once where that daemon
# has no part in it, else when it is back; what fsync acknowledged is in Ceph. And a controller that Ceph has shut out
# (blocklisted) works on.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
HEARTH_CEPH= start_ceph
start_hearth
published_volume "pvc-outage-$$"
second_client
LIVE_ID=$VOLUME_ID LIVE_STAGE=$STAGE LIVE=$TARGET
create_image "pvc-outage-image-$$" 268435456 || die "CreateVolume: $(said)"
CAPABILITY=$IMAGE_CAPABILITY STAGE=$TMP/mnt/stage-image TARGET=$TMP/mnt/pod/image
stage && publish || die "the image: $(said)"
at_exit 'VOLUME_ID=$LIVE_ID STAGE=$LIVE_STAGE TARGET=$LIVE CAPABILITY="{mount: {}, access_mode: {mode: \"MULTI_NODE_MULTI_WRITER\"}}"'
at_exit remove_volume
IMAGE=$TARGET

put() { printf '%s' "$2" | dd of="$1" conv=fsync status=none; } # FILE TEXT
goes_on() { # NAME: reading what is cached and what is not, writing, renaming, listing
    local dir
    for dir in "$LIVE" "$IMAGE"; do
        timeout 120 cat "$dir/held" >/dev/null || { fail "$1" "what is held is not read in $dir"; return; }
        timeout 120 dd if="$dir/cold" of=/dev/null bs=64k count=1 skip=$((COLD += 2)) iflag=direct status=none || { fail "$1" "what is cold is not read in $dir"; return; }
        put "$dir/$1.new" "$1" && mv "$dir/$1.new" "$dir/$1" && ls "$dir" | grep -qx "$1" || { fail "$1" "not written in $dir"; return; }
        [ "$(cat "$dir/$1")" = "$1" ] || { fail "$1" "other bytes in $dir"; return; }
    done
    pass "$1"
}
is_in_ceph() { # NAME: what goes_on has written, read past Hearth
    talk client cat "/$1" || true
    same "what_was_synced_${1}_is_in_ceph" "$ANSWER" "$1"
}
COLD=0
export -f put
for dir in "$LIVE" "$IMAGE"; do
    echo held >"$dir/held"
    head -c 8388608 /dev/urandom >"$dir/cold"
    sync -f "$dir"
    cat "$dir/held" >/dev/null
done
goes_on with_all_there

# ---- who has no part in reading and writing
halt mon.a
goes_on without_a_monitor
continue_ceph
is_in_ceph without_a_monitor
halt mgr.a
goes_on without_the_mgr
continue_ceph
is_in_ceph without_the_mgr
kill -STOP "${PID[node]}"
goes_on with_the_node_plugin_stopped
TARGET=$TMP/mnt/pod/second
CSI_TIMEOUT=2 publish && fail a_plugin_that_is_stopped_answers "$(said)"
kill -CONT "${PID[node]}"
is_in_ceph with_the_node_plugin_stopped
check a_call_that_had_no_answer_is_repeated pending publish
same and_is_done_once "$(mounts_below "$TMP/mnt/pod" | grep -cx "$TARGET")" 1
check and_taken_back unpublish
TARGET=$IMAGE

# ---- who has: it waits, and fails nothing
waits() { # NAME: begun while the daemon is away, ended when it is back
    local name=$1
    (goes_on "$name") >"$TMP/waits" 2>&1 &
    WAITING=$!
}
ended() { # NAME
    wait $WAITING
    cat "$TMP/waits"
    grep -q '^pass' "$TMP/waits" || FAILED=$((FAILED + 1))
    is_in_ceph "$1"
}
halt osd.0
waits while_the_osd_is_away
sleep 3
same it_waits_for_the_osd "$(cat "$TMP/waits")" ""
continue_ceph
ended while_the_osd_is_away

put "$LIVE/before" synced
kill -KILL "$(daemon_pid mds.a)"
wait_for 10 eval '! kill -0 "$(daemon_pid mds.a)" 2>/dev/null'
waits while_the_mds_is_away
sleep 1
"$ONE_NODE" start "$CEPH_DIR" >/dev/null 2>&1
ended while_the_mds_is_away
talk client cat /before || true
same what_was_synced_before_is_there "$ANSWER" synced

# ---- the controller is shut out by Ceph
created() { pending csi controller CreateVolume "$(create_request "pvc-shut-$1-$$" 1073741824 '{}')" && VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON"); }
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
KEEP=$VOLUME_ID
check a_volume_is_made created one
check and_deleted pending delete_volume
addresses() { ceph_cmd tell osd.0 dump_watchers >/dev/null 2>&1; ceph_cmd --admin-daemon "$CEPH_DIR/run/mon.a.asok" sessions | jq -r --arg u "client.$PROVISIONER_ID" '.[] | select(.entity_name == $u) | .addrs.addrvec[0] | "\(.addr)/\(.nonce)"'; }
shut=0
for address in $(addresses); do
    ceph_cmd osd blocklist add "$address" 600 >/dev/null 2>&1 && shut=$((shut + 1))
done
[ $shut -gt 0 ] && pass its_connections_are_known || fail its_connections_are_known "none of client.$PROVISIONER_ID"
again() { created two || created two; }
check a_controller_that_is_shut_out_makes_one again
check and_deletes_it pending delete_volume
VOLUME_ID=$KEEP CAPABILITY=$IMAGE_CAPABILITY
