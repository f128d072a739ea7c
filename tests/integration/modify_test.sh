#!/bin/bash
# Mutable parameters on a real Ceph: kept with the volume, read by the node that stages it, refused
# where nothing would enforce them.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

code() { same "$1" "$CSI_CODE" "$2"; }
modify() { csi controller ControllerModifyVolume "$(csi_json '{volume_id: $id, secrets: $secrets,
    mutable_parameters: $p}' --arg id "$VOLUME_ID" --argjson p "$1")"; }
validate() { csi controller ValidateVolumeCapabilities "$(csi_json "{volume_id: \$id, secrets: \$secrets,
    mutable_parameters: \$p, volume_capabilities: [$CAPABILITY]}" --arg id "$VOLUME_ID" --argjson p "$1")" &&
    [ "$(jq -r '.confirmed.mutableParameters == $p' --argjson p "$1" <<<"$REPLY_JSON")" = true ]; }
create_mutable() { # NAME MUTABLE
    csi controller CreateVolume "$(create_request "$1" 1073741824 '{}' | jq -c --argjson m "$2" '.mutable_parameters = $m')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c '.volume.volumeContext // {}' <<<"$REPLY_JSON")
    ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
}
has_objects() { [ "$(volume_stat objects)" = "$1" ]; }
within() { [ "$(volume_stat bytesCached)" -le "$1" ]; }
logged() { grep -qF "$1" "$TMP/log/$2.log"; }

# ---- at creation ----
create_mutable pvc-mut-$$ '{"warm": "onStage"}'
code created_with_some OK
create_mutable pvc-mut-$$ '{"warm": "onStage"}'
code again OK
create_mutable pvc-mut-$$ '{"warm": "none"}'
code with_others ALREADY_EXISTS
create_mutable pvc-bad-$$ '{"readIopsPerSecond": "100"}'
code limits_nobody_enforces INVALID_ARGUMENT
create_mutable pvc-bad-$$ '{"colour": "blue"}'
code unknown_ones INVALID_ARGUMENT
check validated validate '{"warm": "onStage"}'
validate '{"warm": "none"}' && fail not_with_others confirmed || pass not_with_others

# ---- warm when it is staged ----
second_client
for i in 1 2 3 4 5 6 7 8; do talk client fill file$i 1000000 $i; done
talk_end client
stage && publish || die "stage: $(said)"
check it_is_warmed_without_a_reader wait_for 20 has_objects 8
same nobody_has_opened_any "$(volume_stat opens)" 0
check all_is_there cmp "$TARGET/file3" <(head -c 1000000 /dev/zero | tr '\0' '\3')
bytes=$(cache_stat originBytes)
cat "$TARGET"/file* >/dev/null
same read_from_the_cache "$(($(cache_stat originBytes) - bytes))" 0

# ---- changed while staged ----
modify '{"cacheQuota": "3Mi"}'
code changed OK
check it_counts_and_the_rest_stays validate '{"cacheQuota": "3Mi", "warm": "onStage"}'
modify '{"cacheQuota": "lots"}'
code a_wrong_one INVALID_ARGUMENT
modify '{"writeBytesPerSecond": "1Mi"}'
code a_limit INVALID_ARGUMENT
modify '{}'
code none INVALID_ARGUMENT
check nothing_has_changed_by_those validate '{"cacheQuota": "3Mi", "warm": "onStage"}'
check staging_again_is_fine stage
check and_brings_the_quota wait_for 20 within 3145728
modify '{"cacheQuota": "0", "warm": "none"}'
check unpublished unpublish
check unstaged unstage
hearthctl evict --all >/dev/null
stage && publish || die "stage: $(said)"
cat "$TARGET"/file* >/dev/null
check the_next_staging_has_no_quota wait_for 20 has_objects 8
sleep 6 # the upkeep's interval: it would have evicted by now
check and_keeps_all has_objects 8
unpublish && unstage

# A controller that has started anew knows it all.
end controller TERM 25
start_controller --secret-dir="$TMP/own"
check kept_in_ceph validate '{"cacheQuota": "0", "warm": "none"}'

# ---- a class's own ----
id=$VOLUME_ID context=$VOLUME_CONTEXT root=$ROOT_PATH
create_volume pvc-warm-$$ 1073741824 '{"warm": "onStage"}'
same a_class_may_warm "$CSI_CODE/$(jq -r .warm <<<"$VOLUME_CONTEXT")" OK/onStage
second_client
talk client fill file 1000 1
talk_end client
stage && publish || die "stage: $(said)"
check and_it_does wait_for 20 has_objects 1
unpublish && unstage
modify '{"warm": "none"}'
hearthctl evict --all >/dev/null
stage && publish || die "stage: $(said)"
sleep 1 # a job would have ended long ago
same what_is_changed_wins "$(volume_stat objects)" 0
unpublish && unstage
delete_volume || fail delete "$(said)"

# ---- a node that may not read records ----
ceph_cmd auth get-or-create client.narrow-$$ mon 'allow r' mds 'allow rw' osd 'allow rw tag cephfs data=hearthfs' >/dev/null 2>&1
at_exit "ceph_cmd auth rm client.narrow-$$ >/dev/null 2>&1"
VOLUME_ID=$id VOLUME_CONTEXT=$context ROOT_PATH=$root
export NODE_ID=narrow-$$ NODE_KEY
NODE_KEY=$(ceph_cmd auth print-key client.narrow-$$ 2>/dev/null)
check it_is_staged_all_the_same stage
check and_the_log_says_what_is_missing logged "its mutable parameters are not known here" node
check unstaged unstage
delete_volume
code deleted OK
modify '{"warm": "none"}'
code what_is_not_there NOT_FOUND

# ---- limits of an image: librbd's own ----
. "$(dirname "$0")/rbd_lib.sh"
limits() { rbd_cmd config image ls "$(at)/$(jq -r .imageName <<<"$VOLUME_CONTEXT")" --format json 2>/dev/null |
    jq -r '[.[] | select(.source == "image") | "\(.name | ltrimstr("rbd_qos_"))=\(.value)"] | sort | join(" ")'; }
create_image pvc-limit-$$ 33554432 '{}' '{"mutable_parameters": {"readIopsPerSecond": "100", "writeBytesPerSecond": "1Mi"}}'
code an_image_with_limits OK
same librbd_has_them "$(limits)" "read_iops_limit=100 write_bps_limit=1048576"
modify '{"readIopsPerSecond": "0", "writeIopsPerSecond": "50"}'
code changed_limits OK
same librbd_has_those "$(limits)" "write_bps_limit=1048576 write_iops_limit=50"
modify '{"cacheQuota": "1Gi"}'
code what_an_image_has_not INVALID_ARGUMENT
delete_volume || fail delete "$(said)"
exit 0
