#!/bin/bash
# No secret is written to disk or to a log, none is on a command line, and no unprivileged process
# reaches a socket (promise 8). Debug logs on; good keys and wrong ones.
. "$(dirname "$0")/lib.sh"
. "$TOP/tests/integration/types.sh"
init
start_ceph
own_user

# In the environment like the others, but no key of a user.
export WRONG_KEY=AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A==
# Ceph's libraries would print these, as they cannot decode them.
export NEAR_KEY=AQBSdFhcGrNBEhAA----QBJ7hL1c0dZ4yYQdVvWw0A== SHORT_KEY=AQAAAAAAAAAAAAgAMDEyMzQ1Njc=
WRONG_KEYS=('.secrets.userKey = env.WRONG_KEY' '.secrets.userKey = env.WRONG_KEY + "x"' '.secrets["" + env.WRONG_KEY] = "v"'
    '.secrets.userKey = env.NEAR_KEY' '.secrets.userKey = env.SHORT_KEY')
keys() { printf '%s\n' "$PROVISIONER_KEY" "$NODE_KEY" "$ADMIN_KEY" "$WRONG_KEY" "$NEAR_KEY" "$SHORT_KEY"; }
start_controller
end controller
spawn controller "$BUILD/hearth-csi" --role=controller --endpoint="unix://$CONTROLLER" \
    --cluster-config="$TMP/config.json" --secret-dir="$TMP/own" --log-level=debug
wait_socket controller "$CONTROLLER"
start_hearthd --log-level=debug
spawn node "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=test-node \
    --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json" --log-level=debug
wait_socket node "$NODE"

published_volume pvc-secret-$RANDOM 1073741824
LIVE=$TARGET
echo hello >"$TARGET/file"
for change in "${WRONG_KEYS[@]}"; do
    csi controller CreateVolume "$(create_request pvc-wrong-$RANDOM 1073741824 '{}' | jq -c "$change")" && delete_volume
    csi node NodeStageVolume "$(stage_request | jq -c "$change | .staging_target_path += \"2\"")"
    grep -qFf <(keys) <<<"$CSI_MESSAGE" && fail message_without_secret "$change"
done

# Every call that has secrets, of each type: with the right ones, and with wrong ones.
declare -A NAMES
every_call() { # FILTER: of the request
    local method
    for method in "${!CALLS[@]}"; do
        "$BUILD/tools/csi-call" --timeout 15 --socket "$CONTROLLER" "$method" - < <(jq -c "$1" <<<"${CALLS[$method]}") >>"$TMP/log/replies" 2>&1
    done
}
for type in $(types); do
    use_type $type
    name=pvc-secret-$type-$RANDOM
    create_volume $name 1073741824 || fail "${type}_volume" "$(said)"
    declare -A CALLS=()
    call() { CALLS[$1]=$(csi_json "$2" --arg id "$(id_of $name)" --arg snap "$(snapshot_id_of $name)" --arg name "$name" \
        --arg group "h1~group~$TYPE~$ID_PLACE~csi-vol-group-$name" --argjson parameters "$CLASS" --argjson mutable "$MUTABLE" --argjson capability "$(jq -cn "$CAPABILITY")"); }
    call Controller/CreateSnapshot '{source_volume_id: $id, name: $name, secrets: $secrets}'
    call Controller/DeleteSnapshot '{snapshot_id: $snap, secrets: $secrets}'
    call Controller/ListSnapshots '{secrets: $secrets}'
    call Controller/GetSnapshot '{snapshot_id: $snap, secrets: $secrets}'
    call Controller/ControllerExpandVolume '{volume_id: $id, capacity_range: {required_bytes: 2147483648}, secrets: $secrets}'
    call Controller/ControllerModifyVolume '{volume_id: $id, mutable_parameters: $mutable, secrets: $secrets}'
    call Controller/ValidateVolumeCapabilities '{volume_id: $id, volume_capabilities: [$capability], secrets: $secrets}'
    call GroupController/CreateVolumeGroupSnapshot '{source_volume_ids: [$id], name: $name, secrets: $secrets}'
    call GroupController/GetVolumeGroupSnapshot '{group_snapshot_id: $group, secrets: $secrets}'
    call GroupController/DeleteVolumeGroupSnapshot '{group_snapshot_id: $group, secrets: $secrets}'
    call Controller/ListVolumes '{}'
    call Controller/ControllerGetVolume '{volume_id: $id}'
    call Controller/GetCapacity '{parameters: $parameters}'
    for change in . "${WRONG_KEYS[@]}"; do
        every_call "$change"
    done
    same "${type}_calls_were_made" "$(grep -c '"OK"\|^{' "$TMP/log/replies" | awk '{ print ($1 > 20) }')" 1
    for method in GroupController/DeleteVolumeGroupSnapshot Controller/DeleteSnapshot; do
        "$BUILD/tools/csi-call" --socket "$CONTROLLER" $method - <<<"${CALLS[$method]}" >/dev/null || [ $TYPE = cephfs ] || fail "${type}_$method" refused
    done
    NAMES[$type]=$name
    STAGE=$TMP/mnt/stage-$type TARGET=$TMP/mnt/pod-$type/volume
    mkdir -p "$TMP/mnt/pod-$type"
    stage && publish || fail "${type}_mounts" "$(said)"
done
# And under faults: daemons of Ceph away, sessions ended, daemons that are stopped and killed. Not the OSD: writers of an
# image would wait for it beyond any signal.
fault() { # NAME: staging again, with the right key and a wrong one, reading, writing and deleting, whatever comes of it
    local change
    # It may wait for what is away.
    { dd if=/dev/urandom of="$LIVE/$1" bs=64k count=4 conv=fsync; cat "$LIVE"/*; } >/dev/null 2>&1 &
    WAITING+=($!)
    for change in . '.secrets.userKey = env.WRONG_KEY'; do
        CSI_TIMEOUT=4 csi node NodeStageVolume "$(stage_request | jq -c "$change")"
        CSI_TIMEOUT=4 csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $snap, secrets: $secrets}' --arg snap "$(snapshot_id_of none)" | jq -c "$change")"
    done
    FAULTS+=" $1"
}
FAULTS= WAITING=()
for daemon in mon.a mds.a; do
    halt $daemon
    fault without_$daemon
    continue_ceph
done
for id in $(ceph_cmd tell mds.a client ls --format json 2>/dev/null | jq -r '.[].id'); do ceph_cmd tell mds.a client evict id="$id" >/dev/null 2>&1; done
fault evicted
kill -STOP "${PID[node]}"
fault stopped_plugin
kill -CONT "${PID[node]}"
kill -STOP "${PID[hearthd]}"
fault stopped_hearthd
kill -CONT "${PID[hearthd]}"
wait "${WAITING[@]}"
WAITING=()
end hearthd KILL
start_hearthd --log-level=debug
wait_for 20 eval 'csi node Probe "{}"'
fault killed_hearthd
wait "${WAITING[@]}"
same there_were_faults "$(wc -w <<<"$FAULTS")" 6
wait_for 60 eval 'stage && publish' || fail "after_all_of_it_it_is_mounted" "$(said)"
audit >/dev/null
audit --format json --repair >/dev/null
"$BUILD/hearth-csi" audit --cluster-config="$TMP/config.json" --secret-dir="$TMP" >>"$TMP/log/audit.log" 2>&1
hearthctl status --json >"$TMP/log/status.json"
hearthctl status >>"$TMP/log/status.json"

# What the audit and the own user read is a Secret on a tmpfs elsewhere.
rm -rf "$TMP/own"
found_in_files() { grep -rlFf <(keys) "$TMP" --exclude-dir=mnt; }
found_in_cmdlines() {
    local p
    for p in /proc/[0-9]*; do
        tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -qFf <(keys) && echo "$p"
    done
}
found_in_environments() {
    local name
    for name in controller hearthd node; do
        tr '\0' '\n' <"/proc/${PID[$name]}/environ" | grep -qFf <(keys) && echo "$name"
    done
}
# The search itself works.
keys >"$TMP/planted"
same the_search_finds_a_key "$(found_in_files)" "$TMP/planted"
rm "$TMP/planted"

same no_key_in_any_file "$(found_in_files)" ""
same no_key_on_a_command_line "$(found_in_cmdlines)" ""
same no_key_in_an_environment "$(found_in_environments)" ""
# Directories of tests and of their clusters are searched by those tests, or hold Ceph's own keyrings.
for file in /tmp /var/tmp /run /etc/ceph /var/log/ceph; do
    [ -d "$file" ] && found=$(find "$file" -xdev -maxdepth 3 -path '*/hearth-*' -prune -o -newer "$TMP/config.json" \
        -type f -size -10M -print0 2>/dev/null | xargs -0 -r grep -slFf <(keys))
    [ -z "${found:-}" ] || fail no_key_elsewhere "$found"
done
pass no_key_elsewhere

for socket in "$CONTROLLER" "$NODE" "$HEARTHD"; do
    same "mode_of_$(basename "$socket")" "$(stat -c '%a %u' "$socket")" "600 0"
done
chmod 711 "$TMP" "$TMP/run"
for socket in "$CONTROLLER" "$NODE" "$HEARTHD"; do
    if setpriv --reuid 65534 --regid 65534 --clear-groups python3 -c '
import socket, sys
kind = socket.SOCK_SEQPACKET if "hearthd" in sys.argv[1] else socket.SOCK_STREAM
socket.socket(socket.AF_UNIX, kind).connect(sys.argv[1])' "$socket" 2>/dev/null; then
        fail "nobody_reaches_$(basename "$socket")" "uid 65534 connected"
    else
        pass "nobody_reaches_$(basename "$socket")"
    fi
done
same cache_directory_is_private "$(stat -c %a "$CACHE")" 700
for type in "${!NAMES[@]}"; do
    use_type $type
    VOLUME_ID=$(id_of "${NAMES[$type]}") STAGE=$TMP/mnt/stage-$type TARGET=$TMP/mnt/pod-$type/volume
    unpublish && unstage && delete_volume || fail "${type}_away" "$(said)"
done
