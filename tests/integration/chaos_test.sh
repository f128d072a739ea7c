#!/bin/bash
# Chaos: hearthd, node plugin, hearth-keeper and Ceph's daemons end in a random order under a live
# volume, an image and a dataset that are in use. What the promises cover fails no application.
#
#   ROUNDS=1000 SEED=7    make chaos; the default is a short form
#
# Three phases, each with a third of the rounds: only our processes end, asked to or (node plugin and
# keeper) killed; Ceph's daemons restart as well (not in the short form); hearthd is killed, which only
# datasets outlive. What was seen is in $BUILD/chaos/report.json.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_static.sh"
init
ROUNDS=${ROUNDS:-18} SEED=${SEED:-$((RANDOM + 1))}
needs_resend
echo "# SEED=$SEED"
RANDOM=$SEED
start_ceph
start_keeper
start_hearth

# ---- what is in use

again() { down && up; }
at() { STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1; }
at live
create_volume pvc-chaos-$$ 4294967296 || die "CreateVolume: $(said)"
up || die "$(said)"
LIVE_ID=$VOLUME_ID LIVE_CONTEXT=$VOLUME_CONTEXT LIVE_CAPABILITY=$CAPABILITY
mkdir "$TARGET/set"
for i in $(seq 120); do head -c 60000 /dev/urandom >"$TARGET/set/$i"; done
SUBVOLUME=csi-vol-pvc-chaos-$$
subsnap create "$SUBVOLUME" v1 --group_name csi || die "no snapshot"
at set
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
create_volume pvc-chaos-set-$$ 1073741824 "{\"dataset\": \"$SUBVOLUME@v1\"}" || die "CreateVolume: $(said)"
pending stage && publish || die "$(said)"
at image
RUN=$RANDOM
new_image chaos 1G
at_exit 'rbd_cmd rm --no-progress "rbd/$NAME"'
capability ext4 "$WRITER"
up || die "$(said)"
LIVE=$TMP/mnt/pod/live SET=$TMP/mnt/pod/set/set IMAGE_DIR=$TMP/mnt/pod/image

declare -A USER
user() { # NAME SCRIPT DIRECTORY
    python3 "$TOP/tests/integration/$2" "$3" 36000 >"$TMP/$1.json" 2>&1 &
    USER[$1]=$!
}
live_users() { # NAME DIRECTORY
    mkdir "$2"
    user "$1" live_users.py "$2"
    wait_for 60 grep -q began "$TMP/$1.json" || die "$1 does not begin: $(cat "$TMP/$1.json")"
}
at_exit 'kill -KILL ${USER[@]} 2>/dev/null'
stop_users() {
    kill -TERM "${USER[@]}"
    wait "${USER[@]}"
    USER=()
}

# ---- what happens to it

pause() { sleep "$((RANDOM % ${1:-2})).$((RANDOM % 9))"; }
hearthd_ends() { forget && end hearthd TERM 25 && start_hearthd; }
next_hearthd_waits() {
    local old=${PID[hearthd]} started=${PIDSTART[hearthd]}
    unset 'PID[hearthd]'
    spawn hearthd "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE"
    sleep 0.5
    kill -TERM "$old"
    has_gone() { [ "$(start_time "$old")" != "$started" ]; }
    wait_for 25 has_gone && wait_socket hearthd "$HEARTHD"
}
plugin_ends() { end node "$1" 25 && start_node; }
keeper_is_killed() { end keeper KILL && start_keeper; }
both_end() {
    kill -KILL "${PID[node]}"
    end hearthd TERM 25
    end node KILL
    if [ $((RANDOM % 2)) = 0 ]; then start_hearthd && start_node; else start_node && start_hearthd; fi
}
plugin_first() { end node TERM 25 && end hearthd TERM 25 && start_node && pause && start_hearthd; }
# While the mounts wait for the next hearthd, only keeper and plugin hold them.
all_are_served() { [ "$(hearthctl status --json | jq '[.volumes[] | select(.attached)] | length')" = 3 ]; }
keeper_and_plugin() {
    wait_for 60 all_are_served || return
    kill -KILL "${PID[node]}" "${PID[keeper]}"
    end node KILL
    end keeper KILL
    start_keeper
    start_node
}
# A hearthd that is asked to end while Ceph does not answer cannot leave its mounts. Ceph's own words
# may be of before.
is_active() { ceph_cmd mds stat 2>/dev/null | grep -q up:active && pgs_are_clean >/dev/null; }
is_written() { dd if=/dev/zero of="$1/written" bs=4k count=1 conv=fsync 2>/dev/null; }
ceph_restarts() {
    "$ONE_NODE" restart "$CEPH_DIR" "$1" >/dev/null 2>&1
    sleep 1
    wait_for 180 is_active && is_written "$LIVE" && is_written "$IMAGE_DIR"
}
forget() { hearthctl evict --all >/dev/null; } # so that datasets are read through hearthd
hearthd_is_killed() { forget && end hearthd KILL && pause && start_hearthd; }
all_but_the_keeper_are_killed() {
    forget
    kill -KILL "${PID[node]}"
    end hearthd KILL
    end node KILL
    start_hearthd
    start_node
}

OURS=('hearthd_ends' 'hearthd_ends' 'next_hearthd_waits' 'plugin_ends TERM' 'plugin_ends KILL' 'keeper_is_killed'
    'both_end' 'plugin_first' 'keeper_and_plugin')
CEPH=('ceph_restarts osd.0' 'ceph_restarts mds.a' 'ceph_restarts mon.a')
KILLS=('hearthd_is_killed' 'hearthd_is_killed' 'all_but_the_keeper_are_killed')

rounds() { # PHASE NUMBER EVENT...
    local i event
    STEP=$1
    for ((i = 0; i < $2; i++)); do
        event=${*:3 + RANDOM % ($# - 2):1}
        echo "# $STEP $i: $event" >>"$TMP/log/events.log"
        $event || { fail "every_event_can_happen" "$event, round $i"; return; }
        pause 3
    done 2>/dev/null # the shell's word on each kill
}

# What the users of a phase have seen: checked, and a line of the report.
saw() { # PHASE ROUNDS LOST USER...
    local phase=$1 rounds=$2 lost=$3 name line all=
    shift 3
    for name in "$@"; do
        line=$(tail -n 1 "$TMP/$name.json" | jq -c '.wrong |= if type == "array" then length else . end') ||
            die "$name: $(tail -n 3 "$TMP/$name.json")"
        same "no_error_of_$name" "$(jq -c .errors <<<"$line")" "[]"
        same "no_wrong_byte_of_$name" "$(jq .wrong <<<"$line")" 0
        all+=$line
    done
    jq -cs --arg phase "$phase" --argjson rounds "$rounds" --argjson lost "$lost" '{
        phase: $phase, rounds: $rounds, steps: map(.steps // .reads) | add, errors: map(.errors | length) | add,
        wrong_bytes: map(.wrong) | add, lost_writes: $lost,
        pause_p99_ms: map(.pause_p99_ms) | max, pause_max_ms: map(.pause_max_ms) | max}' <<<"$all" >"$TMP/phase"
    cat "$TMP/phase" >>"$TMP/phases"
    echo "# $(cat "$TMP/phase")"
}

# How many lines are missing that an fsync has acknowledged, once Ceph alone knows them.
lost_lines() { # NAME FILE
    python3 - "$2" "$(tail -n 1 "$TMP/$1.json" | jq .synced)" <<'P'
import sys
lines = open(sys.argv[1]).read().splitlines()
right = 0
while right < len(lines) and lines[right] == "%09d" % right:
    right += 1
print(max(0, int(sys.argv[2]) - right))
P
}

N=$((ROUNDS / 3))
phases=(ours)
[ "$ROUNDS" -lt 30 ] || phases+=(ceph)
for phase in "${phases[@]}"; do
    live_users live "$LIVE/$phase"
    live_users image "$IMAGE_DIR/$phase"
    user set resume_readers.py "$SET"
    sleep 1
    if [ $phase = ours ]; then rounds ours $N "${OURS[@]}"; else rounds ceph $N "${OURS[@]}" "${CEPH[@]}" "${CEPH[@]}"; fi
    sleep 2
    stop_users
    # Pages and caches go with the mounts.
    image "$NAME"
    capability ext4 "$WRITER"
    at image
    check the_image_is_staged_again again
    VOLUME_ID=$LIVE_ID VOLUME_CONTEXT=$LIVE_CONTEXT CAPABILITY=$LIVE_CAPABILITY
    at live
    check the_live_volume_is_staged_again again
    lost=$(($(lost_lines live "$LIVE/$phase/appender") + $(lost_lines image "$IMAGE_DIR/$phase/appender")))
    saw $phase $N "$lost" live image set
    same nothing_is_lost "$lost" 0
done

user set resume_readers.py "$SET"
sleep 1
rounds killed $N "${KILLS[@]}"
sleep 2
stop_users
saw killed $N 0 set

STEP=report
mkdir -p "$BUILD/chaos"
jq -s --argjson seed "$SEED" '{seed: $seed, rounds: map(.rounds) | add, errors: map(.errors) | add,
    wrong_bytes: map(.wrong_bytes) | add, lost_writes: map(.lost_writes) | add,
    pause_p99_ms: map(select(.phase != "ceph").pause_p99_ms) | max,
    pause_max_ms: map(select(.phase != "ceph").pause_max_ms) | max, phases: .}' "$TMP/phases" >"$BUILD/chaos/report.json"
check it_is_written jq -e .rounds "$BUILD/chaos/report.json"
