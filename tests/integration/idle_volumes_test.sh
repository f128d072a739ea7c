#!/bin/bash
# Many volumes of which few are used, on a real Ceph: those that nobody uses have no connection to Ceph, so threads and
# sessions do not grow with their number, and the next use finds everything as it is. VOLUMES=1000 stages so many.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_controller
start_hearthd
start_node

VOLUMES=${VOLUMES:-24}
HELD_FROM=8 HELD_TO=24
declare -a HELD=()
create_volume "pvc-idle-$$" || die "CreateVolume: $(said)"
PARENT_ID=$VOLUME_ID PARENT=$ROOT_PATH
at_exit 'VOLUME_ID=$PARENT_ID; delete_volume'
second_client
for ((i = 1; i <= VOLUMES; i++)); do
    talk client mkdir "d$i" && talk client write "d$i/file" "text of $i" || die "the second client: $ANSWER"
done

at() { # NUMBER: a PersistentVolume that shows one of the directories
    VOLUME_ID=idle-$$-$1 STAGE=$TMP/mnt/stage-$1 ROOT_PATH=$PARENT/d$1
    VOLUME_CONTEXT=$(static_context "$ROOT_PATH")
}
unstage_all() {
    for ((i = 1; i <= VOLUMES; i++)); do
        at $i && unstage >/dev/null || return 1
    done
}
connections() { hearthctl status --json | jq .daemon.cephfsConnections; }
threads() { ls "/proc/${PID[hearthd]}/task" | wc -l; }
sessions() { # of hearthd with the MDS
    ceph_cmd tell mds.a session ls 2>/dev/null | jq '[.[] | select(.client_metadata.root // "" | test("/d[0-9]+$"))] | length'
}
rests() { at "$1" && [ "$(volume_stat rests)" = true ]; }
all_but_one_rest() { [ "$(connections)" = 1 ]; }
read_bytes() { awk '/^rchar/ { print $2 }' "/proc/${PID[node]}/io"; }
cpu_us() { awk '{ ns += $1 } END { print int(ns / 1000) }' "/proc/${PID[$1]}"/task/*/schedstat; }
ms() { local from=${EPOCHREALTIME/./} && "$@" >/dev/null && echo $(((${EPOCHREALTIME/./} - from) / 1000)); }

# ---- many are staged ----
at 1
check the_first_is_staged stage
echo gone >"$STAGE/removed"
exec 7<"$STAGE/file" 8<"$STAGE/removed"
rm "$STAGE/removed"
# What a stage costs: milliseconds, bytes that the node plugin reads, and CPU time of it and of hearthd.
stage_and_count() {
    local bytes csi hearthd
    bytes=$(read_bytes) csi=$(cpu_us node) hearthd=$(cpu_us hearthd)
    ms stage || return
    echo "$(($(read_bytes) - bytes)) $(($(cpu_us node) - csi)) $(($(cpu_us hearthd) - hearthd))"
}
middle() { # FILE COLUMN: of ten lines
    awk -v c="$2" '{ print $c }' "$TMP/$1" | sort -n | sed -n 5p
}
costs() { # FILE
    echo "$(middle "$1" 1) ms, $(middle "$1" 2) bytes read, $(middle "$1" 3) and $(middle "$1" 4) us of hearth-csi's and hearthd's CPU"
}
bad=
most=0
for ((i = 2; i <= VOLUMES; i++)); do
    at $i
    stage_and_count | paste -sd ' ' >>"$TMP/costs"
    [ "${PIPESTATUS[0]}" = 0 ] || bad="$bad $i ($(said))"
    [ "$(cat "$STAGE/file")" = "text of $i" ] || bad="$bad $i"
    # As many as may idle for long (MANY in cache/origin/reconnect/rest.c): the others rest soon then.
    [ $i -lt $HELD_FROM ] || [ $i -ge $HELD_TO ] || exec {HELD[i]}<"$STAGE/file"
    now=$(threads)
    [ "$now" -le $most ] || most=$now
done
same all_are_staged_and_read "$bad" ""
head -n 10 "$TMP/costs" >"$TMP/first"
tail -n 10 "$TMP/costs" >"$TMP/last"
echo "# a stage of the first 10: $(costs first)"
echo "# a stage of the last 10 of $VOLUMES: $(costs last)"
# The mount table has a line more for each, and is not read (Linux 6.13).
if uname -r | grep -qE '^([0-5]\.|6\.([0-9]|1[0-2])\.)'; then
    skip the_last_one_reads_as_little_as_the_tenth "the kernel $(uname -r) does not tell of one mount alone"
else
    check the_last_one_reads_as_little_as_the_tenth [ "$(middle last 2)" -le $(($(middle first 2) * 12 / 10)) ]
fi
echo "# at most $most threads, then $(connections) connections"
only_those_in_use() { [ "$(connections)" = $((1 + ${#HELD[@]})) ]; }
check those_that_nobody_uses_rest wait_for 60 only_those_in_use
same an_open_file_keeps_its_connection "$(cat <&7)" "text of 1"
same a_removed_one_is_still_there "$(cat <&8)" gone

# ---- what rests is used again ----
talk client write d3/file "changed while it rested"
talk client write d3/new "new"
talk client mkdir d3/sub
at 3
echo "# the first read of a volume at rest: $(ms cat "$STAGE/file") ms"
same what_another_client_changed_meanwhile_is_seen "$(cat "$STAGE/file")" "changed while it rested"
same as_are_new_names "$(ls "$STAGE" | tr '\n' ' ')" "file new sub "
at 4
check a_volume_at_rest_is_written bash -c "printf written >'$STAGE/file' && mkdir '$STAGE/made' && sync '$STAGE/file'"
talk client cat d4/file
same and_it_is_in_ceph "$ANSWER" written
at 5
stat "$STAGE/file" >/dev/null # the kernel knows it
check one_of_them_rests_again wait_for 120 rests 5
talk client rename d5/file d5/other
same a_name_that_is_gone_is_not_found "$(cat "$STAGE/file" 2>&1 >/dev/null | grep -o 'No such file.*')" "No such file or directory"
same its_new_name_is "$(cat "$STAGE/other")" "text of 5"
printf "not synced" >"$STAGE/other"
check what_was_written_and_closed_rests wait_for 120 rests 5
talk client cat d5/other
same it_is_in_ceph_then "$ANSWER" "not synced"

# ---- kubelet looks at it ----
stats() { csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $stage, staging_target_path: $stage}' --arg id "$VOLUME_ID" --arg stage "$STAGE")"; }
healthy() { stats && jq -e '.volumeCondition.abnormal != true and (.usage | length) == 2' <<<"$REPLY_JSON"; }
at 6
check kubelet_is_told_its_usage healthy
check it_rests_again wait_for 120 rests 6
check kubelet_is_told_it_at_rest_too healthy
check which_does_not_wake_it rests 6

# ---- Ceph is away ----
at 7
stop_ceph
(cat "$STAGE/file" >"$TMP/late" 2>&1) &
LATE=$!
sleep 3
continue_ceph
wait $LATE
same a_use_waits_for_ceph "$(<"$TMP/late")" "text of 7"

# ---- nobody uses any ----
exec 7<&- 8<&-
for fd in "${HELD[@]}"; do exec {fd}<&-; done
all_rest() { [ "$(connections)" = 0 ]; }
check all_rest_when_nobody_uses_any wait_for 240 all_rest
few_threads() { [ "$(threads)" -lt 64 ]; }
check threads_do_not_grow_with_volumes wait_for 30 few_threads
echo "# at rest: $(threads) threads, $(awk '/VmRSS/ { print int($2 / 1024) }' "/proc/${PID[hearthd]}/status") MiB"
no_session() { [ "$(sessions)" = 0 ]; }
check nor_do_sessions_at_the_mds wait_for 60 no_session
check all_are_unstaged unstage_all

# ---- the node starts again, and kubelet stages all at once ----
end node
end hearthd
start_hearthd
start_node
stage_one() { # NUMBER, beside others
    at "$1"
    local TMP=$TMP/at-once-$1
    mkdir -p "$TMP"
    stage >/dev/null || { echo "$1 ($(said))"; return; }
    [ -s "$STAGE/file" ] || [ -s "$STAGE/other" ] || echo "$1 (its file is not there)"
}
began=$SECONDS
bad=$(for ((i = 1; i <= VOLUMES; i++)); do stage_one $i & done; wait)
same all_are_staged_at_once "$bad" ""
echo "# $VOLUMES volumes staged at once: $((SECONDS - began)) s"
check all_are_unstaged_again unstage_all
talk_end client
