#!/bin/bash
# Bounds of hearthd over all volumes of a node. Threads: more volumes are used than its cgroup's pids.max has threads
# for; those too many get an error that names the limit, the others go on, and idle ones make room. Memory: caches of
# Ceph's clients share one budget.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/rbd_static.sh"
RUN=$$
init
start_ceph

VOLUMES=${VOLUMES:-18} MOST=320
if [ -d /sys/fs/cgroup/pids ]; then GROUP=/sys/fs/cgroup/pids/hearth-bounds-$$; else GROUP=/sys/fs/cgroup/hearth-bounds-$$; fi
has_group() { mkdir "$GROUP" && [ -e "$GROUP/pids.max" ] || { echo +pids >/sys/fs/cgroup/cgroup.subtree_control; [ -e "$GROUP/pids.max" ]; }; } 2>/dev/null
at_exit 'rmdir "$GROUP" 2>/dev/null'
has_group || { skip "${TEST_NAME%_test}" "no cgroup with pids.max can be made"; exit 0; }
limited() { HEARTHD_WITH=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP"); }

start_controller
limited
start_hearthd
start_node
create_volume "pvc-bounds-$$" || die "CreateVolume: $(said)"
PARENT_ID=$VOLUME_ID PARENT=$ROOT_PATH FIRST=${PID[hearthd]}
at_exit 'VOLUME_ID=$PARENT_ID; delete_volume'
at() { # NUMBER: a PersistentVolume of the same directory
    VOLUME_ID=bounds-$$-$1 STAGE=$TMP/mnt/stage-$1 ROOT_PATH=$PARENT
    VOLUME_CONTEXT=$(static_context "$ROOT_PATH" | jq -c "${CONTEXT:-.}")
}
lives() { running hearthd && [ "${PID[hearthd]}" = $FIRST ]; }
daemon() { hearthctl status --json | jq ".daemon$1"; }
declare -A HELD=() STAGED=()
hold() { exec {HELD[$1]}<"$STAGE/file"; }
release() { for i in "${!HELD[@]}"; do exec {HELD[$i]}<&-; done; HELD=(); }
unstage_all() {
    for i in "${!STAGED[@]}"; do at "$i" && unstage >/dev/null || return 1; done
    STAGED=()
}

# ---- more are in use than there are threads for ----
at 1
stage || die "$(said)"
STAGED[1]=1
echo text >"$STAGE/file"
hold 1
echo $MOST >"$GROUP/pids.max"
refused= message=
for ((i = 2; i <= VOLUMES; i++)); do
    at $i
    if stage; then
        STAGED[$i]=1
        hold $i
        continue
    fi
    refused=$i message=$(said)
    break
done
echo "# $((i - 1)) volumes in use with $MOST threads; then: $message"
case $message in
*RESOURCE_EXHAUSTED*"pids.max is $MOST"*podPidsLimit*) pass one_too_many_gets_an_error_that_names_the_limit ;;
*) fail one_too_many_gets_an_error_that_names_the_limit "$message" ;;
esac
check hearthd_lives lives
wrong=
for i in "${!HELD[@]}"; do
    at "$i"
    echo "written by $i" >"$STAGE/own-$i" && sync "$STAGE/own-$i" && [ "$(cat "$STAGE/own-$i")" = "written by $i" ] || wrong="$wrong $i"
done
same those_in_use_go_on "$wrong" ""
check threads_are_told [ "$(daemon .threads)" -le "$(daemon .maxThreads)" ]
check and_their_bound [ "$(daemon .maxThreads)" -le $MOST ]
block_capability
new_image bounds 16
at_exit 'rbd_cmd rm --no-progress "rbd/bounds-$RUN" 2>/dev/null'
STAGE=$TMP/mnt/stage-image TARGET=$TMP/mnt/pod/image
stage
case $(said) in
*RESOURCE_EXHAUSTED*pids.max*) pass an_image_is_refused_alike ;;
*) fail an_image_is_refused_alike "$(said)" ;;
esac
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'

# ---- idle ones make room at once ----
exec {HELD[2]}<&-
unset "HELD[2]"
at "$refused"
began=$SECONDS
check an_idle_one_makes_room stage
echo "# after $((SECONDS - began)) s"
STAGED[$refused]=1
hold "$refused"
at 2
same and_is_at_rest "$(volume_stat rests)" true
timeout -k 1 100 cat "$STAGE/file" >"$TMP/text" 2>"$TMP/err"
same a_use_without_room_fails_alone "$(grep -c . "$TMP/text") $(grep -c . "$TMP/err")" "0 1"
check hearthd_lives_still lives
release
same with_room_it_is_used_again "$(cat "$STAGE/file")" text

# ---- all of them, used in turn and at once ----
bad=
for ((i = 1; i <= VOLUMES; i++)); do
    at $i
    stage >/dev/null && STAGED[$i]=1 && [ "$(cat "$STAGE/file")" = text ] || bad="$bad $i ($(said))"
done
same all_are_used_in_turn "$bad" ""
for ((i = 1; i <= VOLUMES; i++)); do
    at $i
    cat "$STAGE/file" >"$TMP/at-once-$i" 2>&1 &
    readers[i]=$!
done
wait "${readers[@]}"
same all_are_read_at_once "$(cat "$TMP"/at-once-* | sort | uniq -c | awk '{ print $1, $2 }')" "$VOLUMES text"
check hearthd_lives_at_the_end lives
check all_are_unstaged unstage_all

# ---- one budget of memory ----
end node
end hearthd
HEARTHD_WITH=()
IN_USE=12
start_hearthd --memory=600Mi
start_node
CONTEXT='. + {cache: "off"}'
at 1
stage || die "$(said)"
STAGED[1]=1
head -c 40M /dev/urandom >"$STAGE/large"
mkdir "$STAGE/many" && (cd "$STAGE/many" && seq 3000 | xargs touch)
wrong=
for ((i = 1; i <= IN_USE; i++)); do
    at $i
    [ $i = 1 ] || stage || die "$(said)"
    STAGED[$i]=1
    hold $i
    cmp -s "$STAGE/large" "$TMP/mnt/stage-1/large" || wrong="$wrong $i"
    [ "$(ls -l "$STAGE/many" | wc -l)" = 3001 ] || wrong="$wrong $i (its names)"
    head -c 8M /dev/zero >"$STAGE/written-$i" && sync "$STAGE/written-$i" || wrong="$wrong $i (not written)"
done
same all_work_within_the_budget "$wrong" ""
kind() { daemon ".memory.kinds[] | select(.kind == \"$1\").$2"; }
for k in clientData clientNames; do
    check "${k}_is_within_its_bound" [ "$(kind $k bytes)" -le "$(kind $k maxBytes)" ]
done
check bounds_are_within_the_budget [ "$(daemon '.memory.kinds | map(.maxBytes) | add')" -le $((600 << 20)) ]
resident=$(($(daemon .memory.residentBytes) >> 20))
echo "# $IN_USE volumes in use: $resident MiB resident"
# What the budget gives to these parts, 20 MiB for each connection in use (docs/operations.md), and hearthd itself.
parts=$(daemon '.memory.kinds | map(select(.kind == "liveInodes" or .kind == "writtenBlocks" or .kind == "clientData" or .kind == "clientNames").maxBytes) | add')
check memory_is_within_it [ "$resident" -lt $(((parts >> 20) + IN_USE * 20 + 40)) ]
release
check the_last_are_unstaged unstage_all
