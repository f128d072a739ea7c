#!/bin/bash
# Snapshots, restore and clones on a real Ceph: content, sizes, what outlives what, crashes, and that
# nothing is left (promise 6).
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

GROUP=csi
subvolumes() { ceph_cmd fs subvolume ls hearthfs --group_name $GROUP --format json 2>/dev/null | jq -r '.[].name' | grep -F "$1"; }
info() { ceph_cmd fs subvolume info hearthfs "$1" --group_name $GROUP --format json; }
snaps() { ceph_cmd fs subvolume snapshot ls hearthfs "csi-vol-$1" --group_name $GROUP --format json | jq -r '.[].name'; }
META=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").metadata_pool')
records() { timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p "$META" -N hearth ls 2>/dev/null | grep -F "$1"; }
code() { same "$1" "$CSI_CODE" "$2"; } # NAME WANTED: of the call just made
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_PATH=\$ROOT_PATH"; }
recall() { eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT ROOT_PATH=\$$1_PATH"; }
snapshot() { # NAME [PARAMETERS]: of the volume
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets,
        parameters: $parameters}' --arg id "$VOLUME_ID" --arg name "$1" --argjson parameters "${2:-"{}"}")" || return 1
    SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
}
unsnapshot() { csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "${1:-$SNAPSHOT_ID}")"; }
from() { # NAME BYTES SOURCE-JSON
    csi controller CreateVolume "$(create_request "$1" "$2" '{}' | jq -c --argjson s "$3" '.volume_content_source = $s')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c '.volume.volumeContext // {}' <<<"$REPLY_JSON")
    ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
}
restore() { from "$1" "$2" "{\"snapshot\": {\"snapshot_id\": \"${3:-$SNAPSHOT_ID}\"}}"; }
clone() { from "$1" "$2" "{\"volume\": {\"volume_id\": \"$3\"}}"; }
# Through a second client, so that no cache of ours is in between.
on_volume() { second_client; talk client "$@"; local r=$?; talk_end client; return $r; }
content() { # of a file, through a mount of ours
    stage && publish && cat "$TARGET/$1"
    unpublish && unstage
}

# ---- taking ----
n=pvc-src-$$
create_volume $n 1073741824 || die "CreateVolume: $(said)"
remember SOURCE
stage && publish || die "stage: $(said)"
echo first >"$TARGET/file" && sync "$TARGET/file"
snapshot snap-$$-1
code snapshot OK
first=$SNAPSHOT_ID
same ready_at_once "$(jq -r .snapshot.readyToUse <<<"$REPLY_JSON")" true
same with_the_size_of_its_volume "$(jq -r .snapshot.sizeBytes <<<"$REPLY_JSON")" 1073741824
same and_its_volume "$(jq -r .snapshot.sourceVolumeId <<<"$REPLY_JSON")" "$VOLUME_ID"
taken=$(jq -r .snapshot.creationTime <<<"$REPLY_JSON")
age=$(($(date +%s) - $(date -d "$taken" +%s)))
[ $age -ge 0 ] && [ $age -le 20 ] && pass and_the_time || fail and_the_time "$taken"
[ ${#first} -le 128 ] && pass its_id_fits_csi || fail its_id_fits_csi "$first"
echo second >"$TARGET/file" && sync "$TARGET/file"
snapshot snap-$$-1
same again_the_same "$CSI_CODE/$SNAPSHOT_ID/$(jq -r .snapshot.creationTime <<<"$REPLY_JSON")" "OK/$first/$taken"
same ceph_has_one "$(snaps $n)" "csi-snap-snap-$$-1"
create_volume pvc-other-$$ 1073741824
remember OTHER
snapshot snap-$$-1
code of_another_volume ALREADY_EXISTS
VOLUME_ID="${SOURCE_ID}x"
snapshot snap-$$-none
code of_no_volume NOT_FOUND
same leaves_no_record "$(records snap-$$-none)" ""
recall SOURCE
snapshot snap-$$-bad '{"clusterID": "other"}'
code of_another_cluster INVALID_ARGUMENT
snapshot snap-$$-bad '{"colour": "blue"}'
code an_unknown_parameter INVALID_ARGUMENT
snapshot "" && fail no_name "$REPLY_JSON" || code no_name INVALID_ARGUMENT
ceph_cmd fs subvolume snapshot create hearthfs csi-vol-$n csi-snap-foreign-$$ --group_name $GROUP
snapshot foreign-$$
code someone_elses_is_not_adopted ALREADY_EXISTS
ceph_cmd fs subvolume snapshot rm hearthfs csi-vol-$n csi-snap-foreign-$$ --group_name $GROUP
unpublish && unstage

# ---- lists ----
recall OTHER
snapshot snap-$$-2 '{"snapshotNamePrefix": "mine-"}'
same a_prefix_of_the_class "$(snaps pvc-other-$$)" "mine-snap-$$-2"
second=$SNAPSHOT_ID
snapshot snap-$$-3
third=$SNAPSHOT_ID
list() { csi controller ListSnapshots "$(csi_json "{secrets: \$secrets} + ($1)" --arg first "$first" --arg source "$OTHER_ID" --arg token "${2:-}")"; }
ids() { jq -r '.entries[]?.snapshot.snapshotId' <<<"$REPLY_JSON" | sort; }
list '{snapshot_id: $first}'
same by_id "$(ids)" "$first"
list '{source_volume_id: $source}'
same by_source "$(ids)" "$(printf '%s\n' "$second" "$third" | sort)"
list '{snapshot_id: $first, source_volume_id: $source}'
same by_both "$(ids)" ""
list '{snapshot_id: "none"}'
same by_no_id "$CSI_CODE/$(ids)" OK/
all= token=
while list '{max_entries: 1, starting_token: $token}' "$token"; do
    all+=$(ids)$'\n' token=$(jq -r '.nextToken // empty' <<<"$REPLY_JSON")
    [ -n "$token" ] || break
done
same in_pages "$(grep -F "snap-$$-" <<<"$all" | sort)" "$(printf '%s\n' "$first" "$second" "$third" | sort)"
list '{starting_token: "nonsense"}'
code a_token_that_is_none ABORTED
csi controller ListSnapshots '{}'
same without_secrets_by_the_own_user "$CSI_CODE/$(ids | grep -c "snap-$$-")" OK/3
csi controller GetSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$first")"
same one "$(jq -r .snapshot.sourceVolumeId <<<"$REPLY_JSON")" "$SOURCE_ID"
unsnapshot "$second"
csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id}' --arg id "$third")"
code deleted_without_a_secret OK
recall OTHER
delete_volume
code after_its_snapshots_a_volume_goes OK
csi controller GetSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$second")"
code one_that_is_gone NOT_FOUND

# ---- restoring ----
SNAPSHOT_ID=$first
restore pvc-small-$$ 536870912
code smaller_than_the_snapshot OUT_OF_RANGE
restore pvc-none-$$ 1073741824 "${first}x"
code of_a_snapshot_that_is_not_there NOT_FOUND
same leaves_nothing "$(records pvc-none-$$)$(subvolumes pvc-none-$$)" ""
pending restore pvc-r-$$ 2147483648
code restore OK
remember RESTORED
same names_its_source "$(jq -r .volume.contentSource.snapshot.snapshotId <<<"$REPLY_JSON")" "$first"
same has_the_size_asked_for "$(info csi-vol-pvc-r-$$ | jq .bytes_quota)" 2147483648
same has_what_the_snapshot_had "$(content file)" first
restore pvc-r-$$ 2147483648
same again_the_same_volume "$CSI_CODE/$VOLUME_ID" "OK/$RESTORED_ID"
create_volume pvc-r-$$ 2147483648
code without_a_source_is_another_request ALREADY_EXISTS

# ---- cloning a volume ----
clone pvc-none-$$ 1073741824 "${SOURCE_ID}x"
code of_a_volume_that_is_not_there NOT_FOUND
pending clone pvc-c-$$ 1073741824 "$SOURCE_ID"
code clone OK
remember CLONED
same names_its_source_too "$(jq -r .volume.contentSource.volume.volumeId <<<"$REPLY_JSON")" "$SOURCE_ID"
same has_what_the_volume_had "$(content file)" second
same leaves_no_snapshot "$(snaps $n)" "csi-snap-snap-$$-1"
clone pvc-c-$$ 1073741824 "$SOURCE_ID"
same again_the_same_clone "$CSI_CODE/$VOLUME_ID" "OK/$CLONED_ID"
recall CLONED
delete_volume
code a_clone_is_a_volume_like_others OK

# ---- a snapshot outlives its volume ----
recall SOURCE
delete_volume
code a_volume_with_snapshots_goes OK
delete_volume
code and_goes_again OK
same its_record_is_gone "$(records "vol.csi-vol-$n")" ""
csi controller ControllerGetVolume "$(jq -cn --arg id "$SOURCE_ID" '{volume_id: $id}')"
code it_is_not_there NOT_FOUND
csi controller GetSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$first")"
code its_snapshot_is OK
pending restore pvc-late-$$ 1073741824
code and_can_be_restored OK
same with_its_content "$(content file)" first
delete_volume
recall RESTORED
delete_volume
unsnapshot "$first"
code delete_a_snapshot OK
unsnapshot "$first"
code delete_it_again OK
unsnapshot none
code delete_one_of_no_one OK
gone() { [ -z "$(subvolumes $n)" ]; }
wait_for 20 gone && pass with_the_last_snapshot_all_is_gone || fail with_the_last_snapshot_all_is_gone "$(subvolumes $n)"

# ---- a copy that takes its time ----
n=pvc-big-$$
create_volume $n 1073741824
remember SOURCE
stage && publish || die "stage: $(said)"
mkdir "$TARGET/d" && for i in $(seq 200); do echo $i >"$TARGET/d/$i"; done
sync -f "$TARGET/d"
unpublish && unstage
snapshot snap-big-$$
delay() { ceph_cmd config set mgr mgr/volumes/snapshot_clone_delay "$1"; } # before each clone begins
delay 7 && at_exit delay 0
CSI_TIMEOUT=4 restore pvc-bigr-$$ 1073741824
under_way a_copy_under_way
unsnapshot
code its_snapshot_stays FAILED_PRECONDITION
VOLUME_ID="h1~cephfs~$CEPH_FSID~hearthfs~$GROUP~csi-vol-pvc-bigr-$$"
csi controller ControllerGetVolume "$(jq -cn --arg id "$VOLUME_ID" '{volume_id: $id}')"
code what_is_half_copied_is_no_volume NOT_FOUND
pending delete_volume
code half_a_copy_can_be_deleted OK
same and_leaves_nothing_of_it "$(records pvc-bigr-$$)$(subvolumes pvc-bigr-$$)" ""
CSI_TIMEOUT=4 clone pvc-bigc-$$ 1073741824 "$SOURCE_ID"
under_way a_clone_under_way
recall SOURCE
delete_volume
code its_source_may_go OK
pending clone pvc-bigc-$$ 1073741824 "$SOURCE_ID"
code and_the_clone_is_finished OK
same whole "$(stage && publish && ls "$TARGET/d" | wc -l)" 200
unpublish && unstage
delete_volume
unsnapshot
delay 0
wait_for 20 gone && pass and_nothing_is_left || fail and_nothing_is_left "$(subvolumes $n)$(snaps $n)"

# ---- kill -9 at any moment ----
n=pvc-kill-$$
create_volume $n 1073741824
remember SOURCE
bad=
for i in $(seq 4); do
    for request in "CreateSnapshot $(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' --arg id "$SOURCE_ID" --arg name "ks-$$-$i")" \
        "CreateVolume $(create_request "pvc-kc-$$-$i" 1073741824 '{}' | jq -c --arg id "$SOURCE_ID" '.volume_content_source = {volume: {volume_id: $id}}')"; do
        "$BUILD/tools/csi-call" --socket "$CONTROLLER" "Controller/${request%% *}" - <<<"${request#* }" >/dev/null 2>&1 &
        caller=$!
        sleep "0.$(printf %02d $((RANDOM % 25)))"
        end controller KILL
        wait $caller
        start_controller --secret-dir="$TMP/own"
    done
    VOLUME_ID=$SOURCE_ID
    snapshot "ks-$$-$i" || bad+="snapshot $i: $(said); "
    unsnapshot || bad+="delete snapshot $i: $(said); "
    if [ $((i % 2)) = 0 ]; then
        pending clone "pvc-kc-$$-$i" 1073741824 "$SOURCE_ID" || bad+="clone $i: $(said); "
    else
        VOLUME_ID="h1~cephfs~$CEPH_FSID~hearthfs~$GROUP~csi-vol-pvc-kc-$$-$i"
    fi
    pending delete_volume || bad+="delete clone $i: $(said); "
done 2>/dev/null # the shell's word on each kill
same killed_at_any_moment_every_retry_works "$bad" ""
same and_leaves_no_snapshot "$(snaps $n)" ""
recall SOURCE
delete_volume
same and_nothing_else "$(records "$$")$(subvolumes "kc-$$")" ""
exit 0
