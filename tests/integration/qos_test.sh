#!/bin/bash
# Limits of images under ceph-csi's names, in a StorageClass and in a VolumeAttributesClass: librbd has
# what the rules say for the image's size, also when it has grown.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
start_controller

GIB=1073741824
limits() { rbd_cmd config image ls "rbd/$(jq -r .imageName <<<"$VOLUME_CONTEXT")" --format json 2>/dev/null |
    jq -r '[.[] | select(.source == "image") | "\(.name | ltrimstr("rbd_qos_"))=\(.value)"] | sort | join(" ")'; }
modify() { csi controller ControllerModifyVolume "$(csi_json '{volume_id: $id, secrets: $secrets,
    mutable_parameters: $p}' --arg id "$VOLUME_ID" --argjson p "$1")"; }
CLASS='{"baseIops": "3000", "maxIops": "3100", "iopsPerGiB": "30", "baseReadBps": "209715200", "maxWriteBps": "1Mi",
    "baseVolSizeBytes": "1073741824"}'

create_image pvc-qos-$$ $GIB "$CLASS"
code a_class_with_rules OK
id=$VOLUME_ID context=$VOLUME_CONTEXT
same the_base_is_the_limit "$(limits)" "iops_limit=3000 read_bps_limit=209715200 write_bps_limit=1048576"
create_image pvc-qos-$$ $GIB "$CLASS"
code again OK
create_image pvc-qos-$$ $GIB "${CLASS/3000/3001}"
code with_another_rule ALREADY_EXISTS
expand $((3 * GIB))
code grown OK
same the_limit_grows_with_it "$(limits)" "iops_limit=3060 read_bps_limit=209715200 write_bps_limit=1048576"
expand $((9 * GIB))
same up_to_its_maximum "$(limits)" "iops_limit=3100 read_bps_limit=209715200 write_bps_limit=1048576"
# What a crash between size and limit leaves.
rbd_cmd config image set "rbd/$(jq -r .imageName <<<"$VOLUME_CONTEXT")" rbd_qos_iops_limit 3000
expand $((9 * GIB))
same a_repeated_expansion_sets_it "$(limits)" "iops_limit=3100 read_bps_limit=209715200 write_bps_limit=1048576"
snapshot snap-qos-$$
restore pvc-plain-$$ $((9 * GIB))
same a_copy_has_its_own_class "$CSI_CODE/$(limits)" OK/
delete_volume || fail delete "$(said)"
VOLUME_ID=$id VOLUME_CONTEXT=$context
unsnapshot

modify '{"baseIops": "1800", "iopsPerGiB": "12", "baseReadIops": "100", "maxReadBps": "5"}'
code a_class_of_attributes OK
same takes_the_place_of_the_first "$(limits)" "iops_limit=1896 read_bps_limit=5 read_iops_limit=100 write_bps_limit=1048576"
modify '{"maxIops": "70", "readIopsPerSecond": "0"}'
same the_next_takes_its_place "$(limits)" "iops_limit=70 read_bps_limit=5 write_bps_limit=1048576"
modify '{"maxIops": "many"}'
says and_words_are_refused INVALID_ARGUMENT maxIops
modify '{"iopsPerGiB": "12"}'
says nor_what_limits_nothing INVALID_ARGUMENT "it adds to baseIops"
create_image pvc-bad-$$ $GIB '{"writeBpsPerGiB": "12", "baseVolSizeBytes": "1Gi"}'
says nor_in_a_class INVALID_ARGUMENT "it adds to baseWriteBps"
create_image pvc-bad-$$ $GIB '{"baseIops": "-5"}'
says in_a_class_too INVALID_ARGUMENT baseIops
create_volume pvc-bad-$$ $GIB '{"baseIops": "5"}'
code where_nothing_enforces_them INVALID_ARGUMENT
create_image pvc-qos2-$$ $((2 * GIB)) '{}' '{"mutable_parameters": {"baseWriteIops": "10", "writeIopsPerGiB": "5", "baseVolSizeBytes": "1Gi"}}'
same a_claim_with_attributes_from_the_start "$CSI_CODE/$(limits)" OK/write_iops_limit=15
delete_volume || fail delete "$(said)"
VOLUME_ID=$id
delete_volume || fail delete "$(said)"
same nothing_is_left "$(left)" ""
exit 0
