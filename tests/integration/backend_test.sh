#!/bin/bash
# Provisioning on a real Ceph: repeating, crashes between the steps, what others made, refusals, and
# a Ceph that hangs (promise 6). The controller alone; nothing is mounted.
. "$(dirname "$0")/lib.sh"
init
start_ceph
bad_clusters
start_controller

GROUP=csi
subvolumes() { ceph_cmd fs subvolume ls hearthfs --group_name $GROUP --format json 2>/dev/null | jq -r '.[].name' | grep -F "$1"; }
info() { ceph_cmd fs subvolume info hearthfs "$1" --group_name $GROUP --format json; }
META=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").metadata_pool')
on_records() { timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p "$META" -N hearth "$@"; }
records() { on_records ls 2>/dev/null | grep -F "$1"; }
code() { same "$1" "$CSI_CODE" "$2"; } # NAME WANTED: of the call just made

# within NAME SECONDS CODES: of the call just made
within() {
    local took=$((SECONDS - CSI_STARTED))
    if [ $took -gt "$2" ]; then
        fail "$1" "took $took s: $(said)"
    elif ! grep -qxE "$3" <<<"$CSI_CODE"; then
        fail "$1" "wanted $3, got $(said)"
    else
        pass "$1"
    fi
}

# ---- repeating ----
n=pvc-be-$$
create_volume $n 1073741824 || die "CreateVolume: $(said)"
id=$VOLUME_ID path=$ROOT_PATH
create_volume $n 1073741824
same same_request_same_id "$VOLUME_ID" "$id"
same same_request_same_path "$ROOT_PATH" "$path"
create_volume $n 2147483648
code a_larger_size_is_another_request ALREADY_EXISTS
create_volume $n 536870912
code a_smaller_size_is_another_request ALREADY_EXISTS
create_volume $n 1073741824 '{"cache": "off"}'
code other_parameters_are_another_request ALREADY_EXISTS
same quota_is_the_size "$(info csi-vol-$n | jq .bytes_quota)" 1073741824
same pods_of_any_user_may_write "$(info csi-vol-$n | jq '.mode % 512')" 511
same ceph_has_one_subvolume "$(subvolumes $n)" "csi-vol-$n"
same ceph_has_one_record "$(records $n)" "vol.csi-vol-$n"
VOLUME_ID=$id
delete_volume
code delete OK
delete_volume
code delete_again OK
same nothing_is_left "$(subvolumes $n)$(records $n)" ""

# ---- many at once ----
n=pvc-race-$$
request=$(create_request $n 1073741824 '{}')
pids=()
for i in 1 2 3 4 5 6 7 8; do
    "$BUILD/tools/csi-call" --socket "$CONTROLLER" Controller/CreateVolume - <<<"$request" >"$TMP/race.$i" 2>&1 &
    pids+=($!)
done
wait "${pids[@]}"
other=$(jq -r 'if .volume then empty else .code end' "$TMP"/race.* | grep -vx ABORTED)
same calls_at_once_give_ok_or_aborted "$other" ""
same calls_at_once_make_one_volume "$(subvolumes $n)" "csi-vol-$n"
VOLUME_ID=$(jq -r '.volume.volumeId // empty' "$TMP"/race.* | sort -u)
same calls_at_once_give_one_id "$(wc -l <<<"$VOLUME_ID")" 1
delete_volume

# ---- a crash between record and subvolume, and between subvolume and record ----
n=pvc-between-$$
create_volume $n 1073741824
id=$VOLUME_ID
ceph_cmd fs subvolume rm hearthfs csi-vol-$n --group_name $GROUP
create_volume $n 1073741824
code a_record_without_a_volume_is_finished OK
same and_is_the_same_volume "$VOLUME_ID/$(subvolumes $n)" "$id/csi-vol-$n"
ceph_cmd fs subvolume rm hearthfs csi-vol-$n --group_name $GROUP
delete_volume
code a_half_done_delete_is_finished OK
same its_record_is_gone "$(records $n)" ""

# A mgr that died between the directory and its metadata.
n=pvc-part-$$
create_volume $n 1073741824
ceph_cmd fs subvolume rm hearthfs csi-vol-$n --group_name $GROUP
# At the end of its input it unmounts; a killed client's capabilities would hold up the mgr for a minute.
"$BUILD/tools/cephfs-client" "$CEPH_CONF" admin "$CEPH_KEYRING" hearthfs /volumes/$GROUP \
    <<<"mkdir csi-vol-$n" >/dev/null 2>&1
same the_directory_is_there "$(subvolumes $n)" "csi-vol-$n"
create_volume $n 1073741824
code a_subvolume_half_made_by_the_mgr_is_finished OK
same and_has_its_quota "$(info csi-vol-$n | jq .bytes_quota)" 1073741824
delete_volume
code and_can_be_deleted OK
same and_leaves_nothing "$(subvolumes $n)$(records $n)" ""

# ---- kill -9 at any moment ----
n=pvc-kill-$$
bad=
for i in $(seq 12); do
    request=$(create_request $n-$i 1073741824 '{}')
    "$BUILD/tools/csi-call" --socket "$CONTROLLER" Controller/CreateVolume - <<<"$request" >/dev/null 2>&1 &
    caller=$!
    sleep "0.0$((RANDOM % 8))"
    end controller KILL
    wait $caller
    start_controller
    create_volume $n-$i 1073741824 || bad+="create $i: $(said); "
    [ "$(subvolumes "$n-$i" | wc -l)/$(records "$n-$i" | wc -l)" = 1/1 ] || bad+="left after $i: $(subvolumes "$n-$i") $(records "$n-$i"); "
    request=$(csi_json '{volume_id: $id, secrets: $secrets}' --arg id "$VOLUME_ID")
    "$BUILD/tools/csi-call" --socket "$CONTROLLER" Controller/DeleteVolume - <<<"$request" >/dev/null 2>&1 &
    caller=$!
    sleep "0.0$((RANDOM % 8))"
    end controller KILL
    wait $caller
    start_controller
    delete_volume || bad+="delete $i: $(said); "
done 2>/dev/null # the shell's word on each kill
same killed_at_any_moment_every_retry_works "$bad" ""
same killed_at_any_moment_nothing_is_left "$(subvolumes $n)$(records $n)" ""

# ---- what others made ----
n=foreign-$$
ceph_cmd fs subvolume create hearthfs csi-vol-$n --group_name $GROUP
# What is known of names may be half a minute old; a new run knows nothing.
end controller KILL
start_controller
create_volume $n 1073741824
code a_foreign_subvolume_is_not_adopted ALREADY_EXISTS
same and_gets_no_record "$(records $n)" ""
VOLUME_ID="h1~cephfs~$CEPH_FSID~hearthfs~$GROUP~csi-vol-$n"
delete_volume
code a_foreign_subvolume_is_not_deleted FAILED_PRECONDITION
same and_is_there "$(subvolumes $n)" "csi-vol-$n"
ceph_cmd fs subvolume rm hearthfs csi-vol-$n --group_name $GROUP

n=pvc-snap-$$
create_volume $n 1073741824
ceph_cmd fs subvolume snapshot create hearthfs csi-vol-$n s1 --group_name $GROUP
delete_volume
code snapshots_keep_a_volume FAILED_PRECONDITION
ceph_cmd fs subvolume snapshot rm hearthfs csi-vol-$n s1 --group_name $GROUP
delete_volume
code without_them_it_goes OK

# ---- names, sizes, parameters ----
create_volume "team a/data ~ $$" 5000000
code a_name_ceph_would_refuse_is_hashed OK
same and_the_size_rounded_up "$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" 8388608
[[ $VOLUME_ID =~ ~csi-vol-[0-9a-f]{32}$ ]] && pass hashed_name || fail hashed_name "$VOLUME_ID"
delete_volume
name=$(printf 'n%.0s' {1..128})
create_volume "$name" 1073741824
code the_longest_name_of_csi OK
delete_volume
create_volume "$(printf 'n%.0s' {1..300})" 1073741824
code a_name_of_300_bytes INVALID_ARGUMENT
n=pvc-pool-$$
create_volume $n 1073741824 '{"pool": "nopool"}'
code an_unknown_pool INVALID_ARGUMENT
create_volume $n 1073741824
code does_not_take_the_name OK
delete_volume
create_volume $n -1
code a_negative_size INVALID_ARGUMENT
create_volume $n 9223372036854774784 # as large as jq can write
code a_size_beyond_counting OUT_OF_RANGE
create_volume $n 1073741824 '{"colour": "blue"}'
code an_unknown_parameter INVALID_ARGUMENT
create_volume $n 1073741824 '{"fsName": "nofs"}'
code an_unknown_file_system INVALID_ARGUMENT
case $CSI_MESSAGE in *hearthfs*) pass which_lists_those_there_are ;; *) fail which_lists_those_there_are "$CSI_MESSAGE" ;; esac

# ---- who may ----
export WRONG_KEY=AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A==
create_with() { # JQ-PROGRAM that changes a good request
    csi controller CreateVolume "$(create_request pvc-who-$$ 1073741824 '{}' | jq -c "$1")"
}
create_with '.secrets.userKey = env.WRONG_KEY'
within a_wrong_key 5 UNAUTHENTICATED
case $CSI_MESSAGE in *"$PROVISIONER_ID"*) pass a_wrong_key_names_the_user ;; *) fail a_wrong_key_names_the_user "$CSI_MESSAGE" ;; esac
create_with '.secrets.userID = "nobody-here"'
within an_unknown_user 5 UNAUTHENTICATED
create_with '.secrets.userKey = "garbage"'
within a_key_that_is_none 5 INVALID_ARGUMENT
export WEAK_KEY=$(ceph_cmd auth get-or-create-key client.weak-$$ mon 'allow r')
create_with ".secrets.userID = \"weak-$$\" | .secrets.userKey = env.WEAK_KEY"
within a_user_without_capabilities 10 PERMISSION_DENIED
ceph_cmd auth rm client.weak-$$ 2>/dev/null
create_with .
code beside_them_the_right_one_works OK
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
delete_volume

# ---- Ceph away ----
create_volume pvc-away-$$ 1073741824 '{"clusterID": "refused"}'
within nobody_listens 20 UNAVAILABLE
create_volume pvc-away-$$ 1073741824 '{"clusterID": "silent"}'
within nobody_speaks 20 UNAVAILABLE
CSI_TIMEOUT=3 create_volume pvc-away-$$ 1073741824 '{"clusterID": "silent"}'
within a_short_deadline_is_kept 5 'UNAVAILABLE|DEADLINE_EXCEEDED'

n=pvc-hang-$$
halt mgr.a
CSI_TIMEOUT=4 create_volume $n 1073741824
within a_hung_mgr_keeps_the_deadline 6 'UNAVAILABLE|DEADLINE_EXCEEDED'
CSI_TIMEOUT=4 create_volume $n-2 1073741824
within and_again_for_another_volume 6 'UNAVAILABLE|DEADLINE_EXCEEDED'
csi controller Probe '{}'
within and_the_monitors_still_answer 3 OK
continue_ceph
for v in $n $n-2; do
    create_volume $v 1073741824
    code "after_it_the_retry_works_$v" OK
    same "with_one_volume_$v" "$(subvolumes $v | grep -cx "csi-vol-$v")" 1
    delete_volume
done
halt mon.a
csi controller Probe '{}'
within a_hung_monitor_fails_the_probe 4 FAILED_PRECONDITION
CSI_TIMEOUT=4 create_volume $n 1073741824
# Connected already, a creation may need no monitor at all.
within a_hung_monitor_keeps_the_deadline 6 'OK|UNAVAILABLE|DEADLINE_EXCEEDED'
continue_ceph
healthy() { csi controller Probe '{}'; }
wait_for 20 healthy && pass the_probe_recovers || fail the_probe_recovers "$(said)"
create_volume $n 1073741824
code and_so_does_provisioning OK
delete_volume

# ---- the process ----
threads() { ls "/proc/${PID[controller]}/task" | wc -l; }
before=$(threads)
for i in 1 2 3 4 5 6 7 8; do
    create_with '.secrets.userKey = env.WRONG_KEY'
done
after=$(threads)
[ "$after" -le $((before + 4)) ] && pass refused_users_leave_no_threads || fail refused_users_leave_no_threads "$before before, $after after"
# Calls that were left behind by the hung Ceph must not keep it.
end controller TERM 25
same stops_on_sigterm "$(grep -c 'stopping on' "$TMP/log/controller.log")" 1

# ---- without Ceph ----
mkdir "$TMP/volumes"
spawn controller "$BUILD/hearth-csi" --role=controller --endpoint="unix://$CONTROLLER" \
    --cluster-config="$TMP/none.json" --dir-root="$TMP/volumes"
wait_socket controller "$CONTROLLER"
csi controller Probe '{}'
code a_directory_is_healthy OK
request=$(create_request pvc-dir 1073741824 '{}' | jq -c 'del(.secrets) | .parameters = {type: "dir"}')
csi controller CreateVolume "$request"
code a_directory_is_a_volume OK
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
same at_its_path "$(jq -r .volume.volumeContext.rootPath <<<"$REPLY_JSON")" "$TMP/volumes/csi-vol-pvc-dir"
same for_every_user "$(stat -c %a "$TMP/volumes/csi-vol-pvc-dir")" 777
csi controller CreateVolume "$request"
same again_the_same "$(jq -r .volume.volumeId <<<"$REPLY_JSON")" "$VOLUME_ID"
delete_volume
same deleted_whole "$(find "$TMP/volumes" -mindepth 1)" "$TMP/volumes/.hearth"
exit 0
