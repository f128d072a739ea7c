#!/bin/bash
# Snapshots, restore and clones of RBD images on a real Ceph: content, sizes, depth, what outlives
# what, and that nothing is left (promise 6). The controller alone; nothing is mounted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own" --rbd-max-clone-depth=2

starts() { # IMAGE[@SNAPSHOT] BYTES
    rbd_cmd export "$(at)/$1" - 2>/dev/null | head -c "$2"
}

# ---- taking ----
n=pvc-rsrc-$$
create_image $n 67108864 || die "CreateVolume: $(said)"
source_id=$VOLUME_ID
fill csi-vol-$n first
snapshot snap-$$-1
code snapshot OK
first=$SNAPSHOT_ID
same ready_at_once "$(jq -r .snapshot.readyToUse <<<"$REPLY_JSON")" true
same its_id "$first" "h1~snap~rbd~$CEPH_FSID~rbd~~csi-snap-snap-$$-1"
fill csi-vol-$n other
snapshot snap-$$-1
same again_the_same "$CSI_CODE/$SNAPSHOT_ID" "OK/$first"
same rbd_shows_it "$(snaps csi-vol-$n)" "csi-snap-snap-$$-1"
same it_has_the_old_bytes "$(starts csi-vol-$n@csi-snap-snap-$$-1 5)" first
rbd_cmd snap create rbd/csi-vol-$n@csi-snap-foreign-$$ --no-progress
snapshot foreign-$$
code someone_elses_is_not_adopted ALREADY_EXISTS
VOLUME_ID=$source_id
delete_volume
says and_keeps_the_volume FAILED_PRECONDITION csi-snap-foreign-$$
rbd_cmd snap rm rbd/csi-vol-$n@csi-snap-foreign-$$ --no-progress

# ---- restoring ----
restore pvc-r1-$$ 134217728 "$first"
code restore OK
r1=$VOLUME_ID
same with_the_old_bytes "$(starts csi-vol-pvc-r1-$$ 5)" first
same larger_as_asked "$(info rbd/csi-vol-pvc-r1-$$ .size)" 134217728
same it_shares_its_data "$(parent csi-vol-pvc-r1-$$)" "csi-vol-$n@csi-snap-snap-$$-1"
restore pvc-r1-$$ 134217728 "$first"
same restore_again_the_same "$CSI_CODE/$VOLUME_ID" "OK/$r1"
restore pvc-small-$$ 33554432 "$first"
code smaller_than_its_source OUT_OF_RANGE
restore pvc-none-$$ 67108864 "${first}x"
code of_no_snapshot NOT_FOUND
same leaves_nothing "$(images pvc-none-$$)$(records pvc-none-$$)" ""
create_image pvc-mib-$$ 1048576
same one_mib_is_one_mib "$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" 1048576
mib_id=$VOLUME_ID
snapshot snap-mib-$$
same so_is_its_snapshot "$(jq -r .snapshot.sizeBytes <<<"$REPLY_JSON")" 1048576
restore pvc-mib2-$$ 1048576
same and_what_is_restored_of_it "$CSI_CODE/$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" OK/1048576
delete_volume
unsnapshot
VOLUME_ID=$mib_id
delete_volume
clone pvc-c1-$$ 67108864 "$source_id"
code clone OK
c1=$VOLUME_ID
same with_the_bytes_of_now "$(starts csi-vol-pvc-c1-$$ 5)" other
same its_snapshot_is_gone "$(snaps csi-vol-$n)" "csi-snap-snap-$$-1"

# ---- what outlives what ----
VOLUME_ID=$source_id
delete_volume
code a_volume_with_snapshots_is_deleted OK
same its_image_is_an_empty_shell "$(info rbd/csi-vol-$n .size)" 0
csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$source_id")"
code and_no_volume NOT_FOUND
same without_a_record "$(records vol.csi-vol-$n)" ""
delete_volume
code deleting_it_again OK
restore pvc-r2-$$ 67108864 "$first"
same its_snapshot_can_still_be_restored "$CSI_CODE/$(starts csi-vol-pvc-r2-$$ 5)" OK/first
r2=$VOLUME_ID
restore $n 67108864 "$first"
says but_not_to_its_own_name INVALID_ARGUMENT "kept for the snapshots"
same the_refused_leaves_no_record "$(records vol.csi-vol-$n)$(records clone.csi-vol-$n)" ""
create_image $n 33554432
same a_new_volume_of_the_name_takes_the_shell "$CSI_CODE/$(info rbd/csi-vol-$n .size)" OK/33554432
same empty "$(starts csi-vol-$n 5 | tr -d '\0')" ""
delete_volume
code deleted_too OK
unsnapshot "$first"
code a_snapshot_with_clones_is_deleted OK
same the_shell_left_with_it "$(images csi-vol-$n)$(records shell.)" ""
same but_is_in_the_trash_for_its_clones "$(trash csi-vol-$n | wc -l)/$(records trash. | wc -l)" 1/1
same which_are_whole "$(starts csi-vol-pvc-r1-$$ 5)$(starts csi-vol-pvc-r2-$$ 5)$(starts csi-vol-pvc-c1-$$ 5)" firstfirstother
unsnapshot "$first"
code deleting_the_snapshot_again OK
for VOLUME_ID in $r1 $r2; do
    delete_volume
done
same until_the_last_of_them "$(trash csi-vol-$n | wc -l)" 1
VOLUME_ID=$c1
delete_volume
same takes_it_along "$CSI_CODE/$(left)" OK/

# ---- a chain ----
links=4
create_image pvc-d0-$$ 33554432
fill csi-vol-pvc-d0-$$ deep0
ids=($VOLUME_ID)
for i in $(seq $links); do
    pending clone pvc-d$i-$$ 33554432 "${ids[-1]}"
    code clone_of_depth_$i OK
    ids+=($VOLUME_ID)
done
same two_deep_share "$(for i in $(seq 0 $links); do parent csi-vol-pvc-d$i-$$ | grep -q . && printf 1 || printf 0; done)" 01101
same and_all_have_the_bytes "$(for i in $(seq $links); do starts csi-vol-pvc-d$i-$$ 5; done)" "$(for i in $(seq $links); do printf deep0; done)"
for VOLUME_ID in "${ids[@]}"; do
    pending delete_volume || fail deleting_a_link "$(said)"
done
same nothing_is_left_of_it "$(left)" ""

# ---- a crash between a note and what it says, and in the middle of a move to the trash ----
create_image pvc-m-$$ 33554432
m=$VOLUME_ID image=csi-vol-pvc-m-$$
fill $image whole
clone pvc-mc-$$ 33554432 "$m"
mc=$VOLUME_ID
ID=$(info rbd/$image .id)
on_pool setomapval hearth.records "trash.$ID" "$image" # the note, and the object that leads to the ID is gone
on_pool rm "rbd_id.$image"
csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$m")"
code half_an_image_is_no_volume NOT_FOUND
VOLUME_ID=$m
delete_volume
same ended_by_the_next_delete "$CSI_CODE/$(images pvc-m-)/$(trash pvc-m-$$ | wc -l)" OK//1
same and_its_copy_is_whole "$(starts csi-vol-pvc-mc-$$ 5)" whole
create_image pvc-m-$$ 33554432
same the_name_is_free "$CSI_CODE/$(starts $image 5 | tr -d '\0')" OK/
delete_volume
same for_a_volume_of_its_own "$CSI_CODE/$(images pvc-m-)/$(trash pvc-m-$$ | wc -l)" OK//1
audit >/dev/null
code_of_audit=$?
same the_audit_finds_nothing "$code_of_audit" 0
rbd_cmd flatten rbd/csi-vol-pvc-mc-$$ --no-progress
audit --format json >/dev/null
same but_what_a_flatten_made_free "$(jq -r '.findings[] | "\(.problem) \(.name)"' "$TMP/audit.json")" "leftover rbd/$ID"
audit --repair >/dev/null
same which_repair_removes "$(trash)$(records trash.)" ""
VOLUME_ID=$mc
delete_volume

# ---- a crash in the middle of librbd's own removal: its entry in the trash, as librbd would leave it ----
cut() { # STATE: 0 moved, 1 in the move; of image csi-vol-pvc-x-$$, being removed
    local id
    id=$(info rbd/csi-vol-pvc-x-$$ .id)
    rbd_cmd trash mv rbd/csi-vol-pvc-x-$$ && on_pool getomapval rbd_trash "id_$id" "$TMP/entry" >/dev/null || return 1
    python3 -c 'import sys; e = bytearray(open(sys.argv[1], "rb").read()); e[6] = 3; e[-1] = int(sys.argv[2]); open(sys.argv[1], "wb").write(e)' "$TMP/entry" "$1"
    on_pool setomapval rbd_trash "id_$id" --input-file "$TMP/entry"
}
create_image pvc-x-$$ 33554432
ID=$(info rbd/csi-vol-pvc-x-$$ .id)
create_image pvc-y-$$ 33554432
y=$VOLUME_ID
rbd_cmd trash mv rbd/csi-vol-pvc-y-$$ && on_pool getomapval rbd_trash "id_$(rbd_cmd trash ls rbd | awk -v n=csi-vol-pvc-y-$$ '$2 == n { print $1 }')" "$TMP/entry" >/dev/null
python3 -c 'import sys; e = bytearray(open(sys.argv[1], "rb").read()); e[6] = 3; e[-1] = 1; open(sys.argv[1], "wb").write(e.replace(b"pvc-y-", b"pvc-x-"))' "$TMP/entry"
on_pool setomapval rbd_trash "id_$ID" --input-file "$TMP/entry"
same cut_before_the_name_went "$(images pvc-x-$$ | wc -l)" 2
create_image pvc-x-$$ 33554432
same it_is_whole_and_out_of_the_trash "$CSI_CODE/$(images pvc-x-$$ | wc -l)/$(info rbd/csi-vol-pvc-x-$$ .id)" "OK/1/$ID"
delete_volume
rbd_cmd trash restore "$(rbd_cmd trash ls rbd | awk -v n=csi-vol-pvc-y-$$ '$2 == n { print $1 }')"
VOLUME_ID=$y
delete_volume
for state in 0 1; do
    create_image pvc-x-$$ 33554432
    cut $state || die "no removal could be cut"
    same a_removal_cut_short_$state "$(images pvc-x-$$ | wc -l)" 1
    create_image pvc-x-$$ 33554432
    same is_ended_by_the_next_creation_$state "$CSI_CODE/$(images pvc-x-$$ | wc -l)" OK/1
    cut $state
    delete_volume
    same and_by_the_next_delete_$state "$CSI_CODE/$(left | grep -F pvc-x-)" OK/
done

create_image pvc-h-$$ 33554432
h=$VOLUME_ID
for key in hearth.formatting conf_rbd_qos_read_iops_limit owner; do
    rbd_cmd image-meta set rbd/csi-vol-pvc-h-$$ $key 7
done
snapshot half-$$
restore pvc-hr-$$ 33554432
hr=$VOLUME_ID
same what_is_of_one_image_is_not_copied "$(rbd_cmd image-meta ls rbd/csi-vol-pvc-hr-$$ --format json | jq -r 'keys | join(" ")')" owner
half() { # as if librbd had not tied it to its source yet
    on_pool rmomapkey hearth.records "copied.csi-vol-pvc-hr-$$"
    on_pool setomapval hearth.records "clone.csi-vol-pvc-hr-$$" begun
}
half
csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$hr")"
code half_a_copy_is_no_volume NOT_FOUND
old=$(info rbd/csi-vol-pvc-hr-$$ .id)
restore pvc-hr-$$ 33554432
same it_is_made_again "$CSI_CODE/$(records clone.)/$([ "$(info rbd/csi-vol-pvc-hr-$$ .id)" = "$old" ] || echo new)" OK//new
half
delete_volume
same or_deleted_with_its_note "$CSI_CODE/$(images pvc-hr)$(records pvc-hr)" OK/
VOLUME_ID=$h
on_pool setomapval hearth.records "shell.csi-vol-pvc-h-$$" "$(info rbd/csi-vol-pvc-h-$$ .id)" # and not emptied yet
delete_volume
same half_a_shell_is_finished "$CSI_CODE/$(info rbd/csi-vol-pvc-h-$$ .size)" OK/0
unsnapshot
same and_goes "$CSI_CODE/$(left)" OK/
