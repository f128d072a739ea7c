#!/bin/bash
# RBD on a real Ceph, by CSI calls and seen through the rbd CLI: repeating, crashes at librbd's own
# steps, what others made, refusals (promise 6). The controller alone; nothing is mounted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"

# ---- making, repeating, growing, deleting ----
n=pvc-rbd-$$
image=csi-vol-$n
create_image $n 1073741824
code create OK
id=$VOLUME_ID
same its_id "$id" "h1~rbd~$CEPH_FSID~rbd~~$image"
same its_context "$(jq -r '[.type, .pool, .imageName, .radosNamespace] | join(" ")' <<<"$VOLUME_CONTEXT")" "rbd rbd $image "
same its_size "$(info rbd/$image .size)" 1073741824
same librbds_own_features "$(info rbd/$image '.features | join(",")')" "$(rbd_cmd create rbd/plain-$$ --size 1 && info rbd/plain-$$ '.features | join(",")')"
rbd_cmd rm rbd/plain-$$
create_image $n 1073741824
same again_the_same "$CSI_CODE/$VOLUME_ID" "OK/$id"
create_image $n 2147483648
code a_larger_size_is_another_request ALREADY_EXISTS
create_image $n 1073741824 '{"imageFeatures": "layering"}'
code other_features_are_another_request ALREADY_EXISTS
same one_record "$(records $n)" "vol.$image"
VOLUME_ID=$id
expand 3221225472
same expand "$CSI_CODE/$(jq -r .capacityBytes <<<"$REPLY_JSON")" OK/3221225472
same the_image_has_grown "$(info rbd/$image .size)" 3221225472
same the_node_must_grow_the_file_system "$(jq -r .nodeExpansionRequired <<<"$REPLY_JSON")" true
expand 3221225472 '{"block": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
same but_no_block_device "$CSI_CODE/$(jq -r '.nodeExpansionRequired // false' <<<"$REPLY_JSON")" OK/false
expand 1073741824
same it_never_shrinks "$CSI_CODE/$(info rbd/$image .size)" OK/3221225472
csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$id")"
same seen_by_itself "$CSI_CODE/$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" OK/3221225472
delete_volume
code delete OK
delete_volume
code delete_again OK
same nothing_is_left "$(images $n)$(records $n)" ""
expand 1073741824
code expanding_what_is_gone NOT_FOUND
