#!/bin/bash
# A controller that is frozen in the middle of a call, as a leader whose lease ends, and that goes on after another has ended the
# same call and somebody has used the volume: nothing of what was acknowledged goes (promise 6).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
own_user
HOLD=$TMP/hold FAULTS=$BUILD/tools/ceph-faults.so
frozen=$TMP/run/frozen.sock

start_frozen() { # FUNCTION:N, before which it is frozen
    rm -rf "$HOLD"
    mkdir "$HOLD"
    rm -f "$frozen"
    spawn frozen env LD_PRELOAD="$FAULTS" CEPH_HOLD="$1" CEPH_HOLD_DIR="$HOLD" "$BUILD/hearth-csi" --role=controller \
        --endpoint="unix://$frozen" --cluster-config="$TMP/config.json" --secret-dir="$TMP/own"
    wait_socket frozen "$frozen"
}
frozen_call() { # METHOD REQUEST: ends with goes_on or killed_there
    (
        CONTROLLER=$frozen
        csi controller "$1" "$2"
        echo "$CSI_CODE $CSI_MESSAGE" >"$TMP/frozen.said"
    ) &
    CALL=$!
    wait_for 30 test -e "$HOLD/held" || die "it does not come to the call at which it is to be frozen: $(cat "$TMP/frozen.said" 2>&1)"
}
goes_on() {
    touch "$HOLD/go"
    wait $CALL
    end frozen
}
killed_there() {
    end frozen KILL
    wait $CALL
}
copy_request() { image_request "$1" 33554432 '{}' "{\"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"$SNAPSHOT_ID\"}}}"; }
text_of() { rbd_cmd export --no-progress "rbd/$1" - 2>/dev/null | head -c 40 | tr -d '\0'; }
made_meanwhile() { # PVC: by the other controller, and used, before the frozen one goes on
    pending csi controller CreateVolume "$(copy_request "$1")" || die "$(said)"
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    fill "csi-vol-$1" precious
    goes_on
}
whole() { # NAME PVC: the volume and what was written to it
    same "$1_its_data_is_there" "$(text_of "csi-vol-$2")" precious
    csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$VOLUME_ID")"
    same "$1_and_it_is_a_volume" "$CSI_CODE" OK
    audit --repair --min-age=0 >/dev/null
    same "$1_after_a_repair_too" "$(text_of "csi-vol-$2")" precious
    pending csi controller CreateVolume "$(copy_request "$2")"
    same "$1_and_when_it_is_asked_for_again" "$CSI_CODE $(text_of "csi-vol-$2")" "OK precious"
}

start_controller --secret-dir="$TMP/own"
create_image pvc-source-$$ 33554432 || die "$(said)"
SOURCE=$VOLUME_ID
fill csi-vol-pvc-source-$$ old-text
snapshot snap-$$ || die "$(said)"

# ---- before its note that a copy begins
start_frozen rados_write_op_operate:2
frozen_call CreateVolume "$(copy_request pvc-note-$$)"
made_meanwhile pvc-note-$$
whole a_late_note pvc-note-$$
delete_volume || fail delete "$(said)"

# ---- before it removes half a copy, which an attempt that was killed has left
start_frozen rados_write_op_operate:3
frozen_call CreateVolume "$(copy_request pvc-half-$$)"
killed_there
start_frozen rbd_trash_move:1
frozen_call CreateVolume "$(copy_request pvc-half-$$)"
made_meanwhile pvc-half-$$
whole a_late_removal pvc-half-$$
delete_volume || fail delete "$(said)"

# ---- before it removes keys of the source from its copy: what hearthd has noted of the volume stays
holder() { rbd_cmd image-meta "$1" "rbd/csi-vol-$2" hearth.holder "${@:3}" 2>/dev/null; }
holder set pvc-source-$$ of-the-source >/dev/null
start_frozen rbd_open:1
frozen_call CreateVolume "$(copy_request pvc-keys-$$)"
pending csi controller CreateVolume "$(copy_request pvc-keys-$$)" || die "$(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
same a_copy_has_no_notes_of_its_source "$(holder get pvc-keys-$$)" ""
holder set pvc-keys-$$ its-own >/dev/null
goes_on
same a_late_removal_of_keys_leaves_its_own "$(holder get pvc-keys-$$)" its-own
delete_volume || fail delete "$(said)"
holder remove pvc-source-$$

# ---- group snapshots: before each change of Ceph that it makes, when an attempt that was killed has left all snapshots
group() { # NAME: the request
    csi_json '{name: $name, secrets: $secrets, source_volume_ids: [$a, $b]}' --arg name "$1" --arg a "$SOURCE" --arg b "$BESIDE"
}
create_image pvc-beside-$$ 33554432 || die "$(said)"
BESIDE=$VOLUME_ID
fill csi-vol-pvc-beside-$$ old-text
late_group() { # NAME FUNCTION:N
    start_frozen rados_write_op_operate:4
    frozen_call CreateVolumeGroupSnapshot "$(group "$1-$$")"
    killed_there
    same "$1_is_not_a_group_yet" "$(snaps csi-vol-pvc-beside-$$ | wc -l)" 1
    start_frozen "$2"
    frozen_call CreateVolumeGroupSnapshot "$(group "$1-$$")"
    csi controller CreateVolumeGroupSnapshot "$(group "$1-$$")"
    same "$1_is_taken_by_the_other" "$CSI_CODE" OK
    group_id=$(jq -r .groupSnapshot.groupSnapshotId <<<"$REPLY_JSON")
    members=$(jq -c '[.groupSnapshot.snapshots[].snapshotId]' <<<"$REPLY_JSON")
    fill csi-vol-pvc-beside-$$ new-text
    goes_on
    csi controller GetVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $id, snapshot_ids: $m, secrets: $secrets}' --arg id "$group_id" --argjson m "$members")"
    same "$1_stays" "$CSI_CODE" OK
    same "$1_is_of_its_moment" "$(text_of "csi-vol-pvc-beside-$$@$(jq -r '.[] | split("~") | last | select(endswith("-0"))' <<<"$members")")" old-text
    same "$1_has_no_other_snapshots" "$(snaps csi-vol-pvc-beside-$$ | wc -l)" 1
    csi controller DeleteVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $id, snapshot_ids: $m, secrets: $secrets}' --arg id "$group_id" --argjson m "$members")"
    same "$1_is_deleted" "$CSI_CODE/$(snaps csi-vol-pvc-beside-$$)" OK/
    fill csi-vol-pvc-beside-$$ old-text
}
late_group a_group_before_its_claim rados_write_op_operate:1
late_group a_group_before_it_removes_what_is_left rbd_snap_remove:1
late_group a_group_before_its_note rados_write_op_operate:4

# ---- CephFS: before it removes a copy that was given up; Ceph removes whatever has the name by then
GROUP=csi
META=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").metadata_pool')
subvolumes() { ceph_cmd fs subvolume ls hearthfs --group_name $GROUP --format json 2>/dev/null | jq -r '.[].name' | grep -F "$1"; }
records() { timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p "$META" -N hearth ls 2>/dev/null | grep -F "$1"; }
delay() { ceph_cmd config set mgr mgr/volumes/snapshot_clone_delay "$1"; } # before each copy begins
subvolume_request() { create_request "$1" 1073741824 '{}' | jq -c --arg id "$FROM" '.volume_content_source = {volume: {volume_id: $id}}'; }
create_volume pvc-files-$$ 1073741824 || die "$(said)"
FROM=$VOLUME_ID
start_hearthd
start_node
at_exit delay 0
asked() { csi controller CreateVolume "$(subvolume_request "$PVC")"; }
late_copy() { # NAME FUNCTION:N CODE, which the other controller says first
    PVC=pvc-$1-$$
    delay 10
    CSI_TIMEOUT=4 asked
    under_way "$1_is_under_way"
    ceph_cmd fs clone cancel hearthfs "csi-vol-$PVC" --group_name "$GROUP" || fail cancel "ceph fs clone cancel"
    delay 0
    start_frozen "$2"
    frozen_call CreateVolume "$(subvolume_request "$PVC")"
    asked
    same "$1_is_told_by_the_other" "$CSI_CODE" "$3"
    pending asked || die "$(said)"
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
    local made=$VOLUME_ID
    stage && publish && echo precious >"$TARGET/file" && unpublish && unstage || fail use_it "$(said)"
    goes_on
    audit --repair --min-age=0 >/dev/null
    pending asked
    same "$1_is_given_again" "$CSI_CODE $(jq -r .volume.volumeId <<<"$REPLY_JSON")" "OK $made"
    same "$1_has_what_was_written" "$(stage && publish && cat "$TARGET/file")" precious
    unpublish && unstage
    pending delete_volume || fail delete "$(said)"
}
late_copy a_copy_before_its_name_is_given_up rados_write_op_operate:1 INTERNAL
late_copy a_copy_before_its_removal rados_mgr_command:3 OK
VOLUME_ID=$FROM
delete_volume || fail delete "$(said)"
same and_of_the_copies_nothing_is_left "$(records copy_)$(subvolumes copy_)" ""

same nothing_is_left "$(images note-$$)$(images half-$$)$(rbd_cmd trash ls rbd 2>/dev/null)" ""
unsnapshot || fail unsnapshot "$(said)"
for VOLUME_ID in "$SOURCE" "$BESIDE"; do
    delete_volume || fail delete "$(said)"
done
