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
rbd_cmd rm rbd/plain-$$ --no-progress
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
same and_its_block_device "$CSI_CODE/$(jq -r '.nodeExpansionRequired // false' <<<"$REPLY_JSON")" OK/true
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

# ---- what the class asks for ----
create_image pvc-sample-$$ 67108864 '{"imageFeatures": "layering"}'
same ceph_csis_sample_class_gets_the_lock "$CSI_CODE/$(info rbd/csi-vol-pvc-sample-$$ '.features | sort | join(",")')" OK/exclusive-lock,layering
id_of_sample=$VOLUME_ID
create_image pvc-sample-$$ 67108864 '{"imageFeatures": "layering"}'
same and_is_found_again "$CSI_CODE/$VOLUME_ID" "OK/$id_of_sample"
delete_volume
create_image pvc-opt-$$ 67108864 '{"imageFeatures": "layering,exclusive-lock", "objectSize": "8388608", "stripeUnit": "65536", "stripeCount": "4"}'
code options OK
same features "$(info rbd/csi-vol-pvc-opt-$$ '.features | sort | join(",")')" exclusive-lock,layering,striping
same layout "$(info rbd/csi-vol-pvc-opt-$$ '"\(.object_size) \(.stripe_unit) \(.stripe_count)"')" "8388608 65536 4"
delete_volume
create_image pvc-ec-$$ 67108864 '{"dataPool": "rbd.ec"}'
code data_pool OK
same its_data_is_there "$(info rbd/csi-vol-pvc-ec-$$ .data_pool)" rbd.ec
fill csi-vol-pvc-ec-$$ hello
delete_volume
code deleted_from_there OK
same with_its_data "$(timeout 20 rados -c "$CEPH_CONF" -p rbd.ec ls | grep rbd_data)" ""
csi controller GetCapacity "$(csi_json '{parameters: {type: "rbd", clusterID: $fsid, pool: "rbd", dataPool: "rbd.ec"}}' --arg fsid "$CEPH_FSID")"
# It is told in steps of 3 %, and moves by some kilobytes between the two questions.
room=$(ceph_cmd df --format json | jq '.pools[] | select(.name == "rbd.ec").stats.max_avail')
same capacity_is_the_data_pools "$CSI_CODE/$(jq --argjson room "$room" '.availableCapacity | tonumber |
    . > $room * 0.95 and . < $room * 1.02' <<<"$REPLY_JSON")" OK/true

# ---- refusals, which leave nothing ----
refused() { # NAME CODE WORDS PARAMETERS [BYTES]
    create_image pvc-bad-$$ "${5:-67108864}" "$4"
    says "$1" "$2" "$3"
    same "$1_leaves_nothing" "$(images pvc-bad)$(records pvc-bad)" ""
}
refused no_such_pool INVALID_ARGUMENT 'pool "nopool"' '{"pool": "nopool"}'
refused no_such_data_pool INVALID_ARGUMENT 'dataPool "nopool"' '{"dataPool": "nopool"}'
refused an_erasure_coded_pool INVALID_ARGUMENT dataPool '{"pool": "rbd.ec"}'
refused an_object_size_that_is_none INVALID_ARGUMENT objectSize '{"objectSize": "1000"}'
refused more_than_an_object_map_holds INVALID_ARGUMENT "the size" '{"imageFeatures": "exclusive-lock,object-map,layering"}' 4611686018427387904
ceph_cmd auth get-or-create client.weak-$$ mon 'allow r' osd 'allow r pool=rbd' >"$TMP/weak" 2>/dev/null
(
    PROVISIONER_ID=weak-$$ PROVISIONER_KEY=$(sed -n 's/.*key = //p' "$TMP/weak")
    export PROVISIONER_ID PROVISIONER_KEY
    refused a_user_without_the_right PERMISSION_DENIED "profile rbd" '{}'
    exit $FAILED
) || FAILED=$((FAILED + $?))
ceph_cmd auth rm client.weak-$$ 2>/dev/null
ceph_cmd osd pool set-quota rbd max_objects 1 >/dev/null 2>&1
full() { ceph_cmd osd pool ls detail --format json | jq -e '.[] | select(.pool_name == "rbd").flags_names | test("full")' >/dev/null; }
if wait_for 20 full; then
    create_image pvc-full-$$ 67108864
    says a_full_pool RESOURCE_EXHAUSTED quota
else
    skip a_full_pool "the monitor does not count the objects soon enough"
fi
ceph_cmd osd pool set-quota rbd max_objects 0 >/dev/null 2>&1
wait_for 20 eval '! full'
create_image pvc-full-$$ 67108864
code again_with_room OK
delete_volume

# ---- someone else's ----
rbd_cmd create rbd/csi-vol-pvc-foreign-$$ --size 1
create_image pvc-foreign-$$ 67108864
code someone_elses_image_is_not_adopted ALREADY_EXISTS
VOLUME_ID="h1~rbd~$CEPH_FSID~rbd~~csi-vol-pvc-foreign-$$"
delete_volume
code nor_deleted FAILED_PRECONDITION
same and_has_no_record "$(records pvc-foreign)" ""
rbd_cmd rm rbd/csi-vol-pvc-foreign-$$ --no-progress

# ---- in use ----
create_image pvc-used-$$ 67108864
talk_start user "$BUILD/tools/rbd-client" "$CEPH_CONF" rbd "" csi-vol-pvc-used-$$ || die "no second client"
talk user write here
delete_volume
says in_use FAILED_PRECONDITION "in use by the client at"
snapshot used-$$
code a_snapshot_while_in_use OK
delete_volume
says in_use_with_snapshots FAILED_PRECONDITION "in use by the client at"
same it_stays_whole "$(talk user read 4; echo "$ANSWER")/$(info rbd/csi-vol-pvc-used-$$ .size)" here/67108864
expand 134217728
same grown_while_in_use "$CSI_CODE/$(info rbd/csi-vol-pvc-used-$$ .size)" OK/134217728
talk_end user
unsnapshot
delete_volume
code deleted_when_free OK

# ---- crashes at librbd's own steps: what they leave, and the next call ----
halves=()
half() { # NAME STEPS: what is left of an image when only those were done
    local name=$1
    rbd_cmd create "rbd/$name" --size 64
    ID=$(info "rbd/$name" .id)
    halves+=(-e "_header.$ID" -e "_object_map.$ID")
    case $2 in
    directory) on_pool rm "rbd_id.$name"; on_pool rm "rbd_header.$ID"; on_pool rm "rbd_object_map.$ID" ;;
    id) on_pool rm "rbd_header.$ID"; on_pool rm "rbd_object_map.$ID" ;;
    header) on_pool rm "rbd_object_map.$ID" ;;
    esac
}
record_of() { # NAME: and no image
    create_image "$1" 67108864
    rbd_cmd rm "rbd/csi-vol-$1" --no-progress
}
for step in directory id header; do
    n=pvc-half-$step-$$
    record_of $n
    half csi-vol-$n $step
    create_image $n 67108864
    code create_over_$step OK
    same create_over_${step}_is_whole "$(info rbd/csi-vol-$n .size)" 67108864
    fill csi-vol-$n text || fail writing_after_$step "cannot be written"
    delete_volume
    same delete_after_$step "$CSI_CODE/$(images $n)" OK/
    record_of $n
    half csi-vol-$n $step
    delete_volume
    same delete_over_$step "$CSI_CODE/$(images $n)$(records $n)" OK/
done
same no_object_is_left "$(on_pool ls | grep -F -e "-$$" "${halves[@]}")" ""

# ---- a namespace of the pool, for a user confined to it ----
ceph_cmd auth get-or-create client.tenant-$$ mon 'profile rbd' mgr 'profile rbd pool=rbd namespace=tenant' \
    osd 'profile rbd pool=rbd namespace=tenant' >"$TMP/tenant" 2>/dev/null
jq '. + [.[0] + {clusterID: "tenant", rbd: {radosNamespace: "tenant"}}, .[0] + {clusterID: "nowhere", rbd: {radosNamespace: "nowhere"}}]' \
    "$CEPH_DIR/config.json" >"$TMP/config.json"
(
    PROVISIONER_ID=tenant-$$ PROVISIONER_KEY=$(sed -n 's/.*key = //p' "$TMP/tenant") CLUSTER=tenant NS=tenant
    export PROVISIONER_ID PROVISIONER_KEY
    create_image pvc-ns-$$ 67108864
    code namespace OK
    same its_id_has_the_namespace "$VOLUME_ID" "h1~rbd~tenant~rbd~tenant~csi-vol-pvc-ns-$$"
    same its_image_is_there "$(images pvc-ns)" "csi-vol-pvc-ns-$$"
    same its_record_too "$(records pvc-ns)" "vol.csi-vol-pvc-ns-$$"
    id=$VOLUME_ID
    snapshot ns-$$
    restore pvc-ns2-$$ 67108864
    code restored_there OK
    delete_volume
    VOLUME_ID=$id
    delete_volume
    unsnapshot
    same all_deleted_there "$CSI_CODE/$(left)" OK/
    exit $FAILED
) || FAILED=$((FAILED + $?))
ceph_cmd auth rm client.tenant-$$ 2>/dev/null
CLUSTER=nowhere
create_image pvc-nowhere-$$ 67108864
says an_unknown_namespace INVALID_ARGUMENT 'pool rbd has no such namespace'
CLUSTER=

# ---- many at once ----
pids=()
for i in $(seq 12); do
    (
        TMP=$(mktemp -d -p "$TMP") # where csi puts what it is told
        create_image pvc-many-$((i % 6))-$$ 67108864
        # The second of two for one name gets ABORTED or the same answer.
        [ "$CSI_CODE" = OK ] || [ "$CSI_CODE" = ABORTED ]
    ) &
    pids+=($!)
done
bad=0
for p in "${pids[@]}"; do
    wait "$p" || bad=$((bad + 1))
done
same many_at_once "$bad/$(images pvc-many | wc -l)/$(records pvc-many | wc -l)" 0/6/6
csi controller ListVolumes '{"max_entries": 4}'
token=$(jq -r .nextToken <<<"$REPLY_JSON")
first=$(jq -r '.entries[].volume.volumeId' <<<"$REPLY_JSON")
csi controller ListVolumes "$(jq -cn --arg t "$token" '{starting_token: $t}')"
same listed_in_pages "$(printf '%s\n' "$first" "$(jq -r '.entries[].volume.volumeId' <<<"$REPLY_JSON")" | grep -c "pvc-many-.*-$$")" 6
# A user for RBD alone may not ask for file systems, so there are none for it.
ceph_cmd auth get-or-create client.only-$$ mon 'profile rbd' mgr 'profile rbd' osd 'profile rbd' >"$TMP/only" 2>/dev/null
printf '%s' "only-$$" >"$TMP/own/userID"
sed -n 's/.*key = //p' "$TMP/only" | tr -d '\n' >"$TMP/own/userKey"
csi controller ListVolumes '{}'
same listed_by_a_user_for_rbd_alone "$CSI_CODE/$(jq -r '.entries[].volume.volumeId' <<<"$REPLY_JSON" | grep -c "pvc-many-.*-$$")" OK/6
csi controller GetCapacity '{}'
same all_the_room_there_is "$CSI_CODE/$(jq '.availableCapacity | tonumber > 0' <<<"$REPLY_JSON")" OK/true
ceph_cmd auth rm client.only-$$ 2>/dev/null
own_user
for i in 0 1 2 3 4 5; do
    VOLUME_ID="h1~rbd~$CEPH_FSID~rbd~~csi-vol-pvc-many-$i-$$"
    delete_volume || fail delete_one_of_many "$(said)"
done
same nothing_at_all_is_left "$(left)" ""
