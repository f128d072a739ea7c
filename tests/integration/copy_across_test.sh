#!/bin/bash
# Restore and clone into another class of the same cluster: images into another pool, namespace, data
# pool and with other features; subvolumes into another group and data pool. What outlives what, and
# that nothing is left at either place; what cannot be says why.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
start_ceph
own_user
reader_begin
reader_has rbd rbd -c "$CEPH_CONF"
FAST=fast-$$ GONE=gone-$$
for pool in "$FAST" "$GONE"; do
    ceph_cmd osd pool create "$pool" 1 >/dev/null 2>&1 && ceph_cmd osd pool application enable "$pool" rbd >/dev/null 2>&1 || die "no pool $pool"
    at_exit "ceph_cmd osd pool rm $pool $pool --yes-i-really-really-mean-it >/dev/null 2>&1"
done
# The same cluster by another name, as classes of another namespace and group have it.
jq '. + [.[0] + {clusterID: "tenant", rbd: {radosNamespace: "tenant"}, cephFS: {subvolumeGroup: "team"}}]' "$TMP/config.json" >"$TMP/config.new" && mv "$TMP/config.new" "$TMP/config.json"
user() { # NAME OSD-CAPABILITIES -> a user of one pool
    ceph_cmd auth get-or-create "client.$1-$$" mon 'profile rbd' mgr 'allow rw' osd "$2" >/dev/null 2>&1 || die "user $1"
    at_exit "ceph_cmd auth rm client.$1-$$ >/dev/null 2>&1"
}
as() { # USER COMMAND...
    PROVISIONER_ID=$1-$$ PROVISIONER_KEY=$(ceph_cmd auth print-key "client.$1-$$" 2>/dev/null) "${@:2}"
}
start_controller --secret-dir="$TMP/own" --rbd-max-clone-depth=2

in_fast() { POOL=$FAST "$@"; }
in_tenant() { NS=tenant CLUSTER=tenant "$@"; }
starts() { # IMAGE[@SNAPSHOT] BYTES
    rbd_cmd export --no-progress "$(at)/$1" - 2>/dev/null | head -c "$2"
}
whose() { info "$(at)/$1" '.parent // empty | "\(.pool)/\(if .pool_namespace == "" then "" else .pool_namespace + "/" end)\(.image)@\(.snapshot)"'; }
# What this script has left, at all places.
left_anywhere() {
    left
    in_fast left
    in_tenant left
}
delete_id() { VOLUME_ID=$1 delete_volume; }
audit_finds() { audit --format json >/dev/null; jq -r '.findings[] | "\(.problem) \(.name)"' "$TMP/audit.json"; }

# ---- restored ----
create_image pvc-src-$$ 33554432 || die "CreateVolume: $(said)"
source=$VOLUME_ID S=csi-vol-pvc-src-$$
fill $S moved
snapshot snap-$$
snap=$SNAPSHOT_ID
in_fast restore pvc-r-$$ 67108864 "$snap" '{"dataPool": "rbd.ec", "imageFeatures": "layering,exclusive-lock"}'
code a_snapshot_is_restored_into_another_pool OK
restored=$VOLUME_ID
same its_id_and_context "$restored $(jq -r .pool <<<"$VOLUME_CONTEXT")" "h1~rbd~$CEPH_FSID~$FAST~~csi-vol-pvc-r-$$ $FAST"
same with_its_bytes "$(in_fast starts csi-vol-pvc-r-$$ 5)" moved
same a_clone_of_the_other_pools "$(in_fast whose csi-vol-pvc-r-$$)" "rbd/$S@csi-snap-snap-$$"
same of_the_class_it_is_in "$(in_fast info "$FAST/csi-vol-pvc-r-$$" '"\(.size) \(.data_pool) \(.features - ["operations"] | sort | join(","))"')" \
    "67108864 rbd.ec data-pool,exclusive-lock,layering"
in_fast restore pvc-r-$$ 67108864 "$snap" '{"dataPool": "rbd.ec", "imageFeatures": "layering,exclusive-lock"}'
same again_the_same "$CSI_CODE/$VOLUME_ID" "OK/$restored"
restore pvc-r-$$ 67108864 "$snap"
same the_name_is_free_in_the_first_pool "$CSI_CODE/$VOLUME_ID" "OK/h1~rbd~$CEPH_FSID~rbd~~csi-vol-pvc-r-$$"
delete_volume
same the_record_is_in_the_pool_of_the_volume "$(in_fast records vol.)/$(records vol.csi-vol-pvc-r-)" "vol.csi-vol-pvc-r-$$/"
csi controller ListVolumes '{}'
same it_is_listed "$(jq -r '.entries[].volume.volumeId' <<<"$REPLY_JSON" | grep -cxF "$restored")" 1

# ---- cloned ----
in_fast clone pvc-c-$$ 33554432 "$source"
code a_volume_is_cloned_into_another_pool OK
cloned=$VOLUME_ID
same with_the_bytes "$(in_fast starts csi-vol-pvc-c-$$ 5)" moved
same and_no_snapshot_is_left_of_it "$(snaps $S)" csi-snap-snap-$$
in_tenant clone pvc-t-$$ 33554432 "$source"
code a_volume_is_cloned_into_another_namespace OK
tenants=$VOLUME_ID
same whose_it_is "$tenants $(in_tenant whose csi-vol-pvc-t-$$ | cut -d@ -f1)" "h1~rbd~tenant~rbd~tenant~csi-vol-pvc-t-$$ rbd/$S"
in_fast clone pvc-t2-$$ 33554432 "$tenants"
same and_from_there_into_a_pool "$CSI_CODE/$(in_fast starts csi-vol-pvc-t2-$$ 5)" OK/moved
second=$VOLUME_ID

# ---- the deletion of what others depend on ----
delete_id "$source"
code the_source_is_deleted OK
unsnapshot "$snap"
same with_its_snapshot "$CSI_CODE/$(snaps $S)" OK/
same it_is_in_the_trash_for_its_clones "$(trash $S | wc -l)/$(records trash. | wc -l)" 1/1
same which_are_whole "$(in_fast starts csi-vol-pvc-r-$$ 5)$(in_fast starts csi-vol-pvc-c-$$ 5)" movedmoved
same the_audit_finds_nothing "$(audit_finds)" ""
delete_id "$restored"
delete_id "$cloned"
delete_id "$tenants"
same until_the_last_of_them "$CSI_CODE/$(trash $S | wc -l)/$(in_tenant trash csi-vol-pvc-t- | wc -l)" OK/1/1
delete_id "$second"
same takes_along_what_is_elsewhere "$CSI_CODE/$(left_anywhere)" OK/

# ---- depth is counted across pools ----
deep=1
ldd "$(command -v ceph-mgr)" | grep -qE 'libpython3\.1[2-9]' && deep=
create_image pvc-d0-$$ 33554432 && fill csi-vol-pvc-d0-$$ deep0
ids=($VOLUME_ID)
for i in 1 2 ${deep:+3}; do
    if [ $((i % 2)) = 1 ]; then pending in_fast clone pvc-d$i-$$ 33554432 "${ids[-1]}"; else pending clone pvc-d$i-$$ 33554432 "${ids[-1]}"; fi
    code link_$i OK
    ids+=($VOLUME_ID)
done
same two_deep_share "$(in_fast parent csi-vol-pvc-d1-$$ | wc -l)$(parent csi-vol-pvc-d2-$$ | wc -l)" 11
if [ -n "$deep" ]; then
    same the_third_stands_alone "$(in_fast parent csi-vol-pvc-d3-$$ | wc -l)$(in_fast starts csi-vol-pvc-d3-$$ 5)" 0deep0
else
    skip the_third_stands_alone "this mgr crashes when it flattens"
fi
for id in "${ids[@]}"; do
    pending delete_id "$id" || fail deleting_a_link "$(said)"
done
same no_link_is_left "$(left_anywhere)" ""

# ---- half a copy, and a source that goes meanwhile ----
create_image pvc-h-$$ 33554432 && fill csi-vol-pvc-h-$$ halfs
h=$VOLUME_ID H=csi-vol-pvc-h-$$
in_fast clone pvc-hc-$$ 33554432 "$h"
hc=$VOLUME_ID THROUGH=hearth-clone-h1~rbd~$CEPH_FSID~$FAST~~csi-vol-pvc-hc-$$
rbd_cmd snap create --no-progress "rbd/$H@$THROUGH" # as if the call had ended before it was removed
same the_audit_finds_what_it_was_made_through "$(audit_finds)" "copy-snapshot rbd/$H@$THROUGH"
audit --repair --min-age 0 >/dev/null
same and_repair_removes_it "$(snaps $H)" ""
rbd_cmd snap create --no-progress "rbd/$H@$THROUGH"
in_fast on_pool rmomapkey hearth.records "copied.csi-vol-pvc-hc-$$"
in_fast on_pool setomapval hearth.records "clone.csi-vol-pvc-hc-$$" begun # and before librbd was done
same while_it_is_made_it_stays "$(audit_finds)" "volume-incomplete $FAST/csi-vol-pvc-hc-$$"
delete_id "$h"
same the_source_goes_meanwhile "$CSI_CODE/$(snaps $H)" "OK/$THROUGH"
delete_id "$hc"
same with_the_copy_goes_what_it_left "$CSI_CODE/$(left_anywhere)" OK/
# Of a target that is gone.
create_image pvc-h-$$ 33554432
h=$VOLUME_ID
for pool in $FAST $GONE; do
    rbd_cmd snap create --no-progress "rbd/$H@hearth-clone-h1~rbd~$CEPH_FSID~$pool~~csi-vol-pvc-none-$$"
done
ceph_cmd osd pool rm $GONE $GONE --yes-i-really-really-mean-it >/dev/null 2>&1
delete_id "$h"
same what_nobody_wants_goes_with_its_volume "$CSI_CODE/$(left_anywhere)" OK/

# ---- rights ----
create_image pvc-s-$$ 33554432
s=$VOLUME_ID
user of-fast "profile rbd pool=$FAST"
user of-rbd "profile rbd pool=rbd"
user of-both "profile rbd pool=$FAST, profile rbd pool=rbd"
in_fast as of-fast clone pvc-no-$$ 33554432 "$s"
says a_user_without_rights_on_the_source_is_told PERMISSION_DENIED "rbd/vol.csi-vol-pvc-s-$$"
in_fast as of-rbd clone pvc-no-$$ 33554432 "$s"
says nor_on_the_target PERMISSION_DENIED "$FAST"
same neither_leaves_an_image "$(in_fast images pvc-no-)$(snaps csi-vol-pvc-s-$$)" ""
in_fast as of-both clone pvc-no-$$ 33554432 "$s"
code with_rights_on_both_it_is_made OK
no=$VOLUME_ID
documented docs/storageclass.md 'rbd flatten' POOL="$FAST" IMAGE="csi-vol-pvc-no-$$"
as of-fast delete_id "$no"
code flattened_it_needs_the_sources_no_more OK

# ---- ceph-csi's volume as the source ----
UUID=$(</proc/sys/kernel/random/uuid)
rbd_cmd create "rbd/csi-vol-$UUID" --size 32M && fill "csi-vol-$UUID" theirs || die "rbd create"
at_exit "rbd_cmd rm --no-progress rbd/csi-vol-$UUID 2>/dev/null"
on_pool create "csi.volume.$UUID" && on_pool setomapval "csi.volume.$UUID" csi.volname "pvc-$UUID" &&
    on_pool setomapval "csi.volume.$UUID" csi.imagename "csi-vol-$UUID" && on_pool setomapval csi.volumes.default "csi.volume.pvc-$UUID" "$UUID"
theirs=$(printf '0001-%04x-%s-%016x-%s' ${#CEPH_FSID} "$CEPH_FSID" \
    "$(ceph_cmd osd pool ls detail --format json 2>/dev/null | jq '.[] | select(.pool_name == "rbd").pool_id')" "$UUID")
in_fast clone pvc-v-$$ 33554432 "$theirs"
same a_volume_of_ceph_csis_is_cloned_into_another_pool "$CSI_CODE/$(in_fast starts csi-vol-pvc-v-$$ 6)/$(snaps "csi-vol-$UUID")" OK/theirs/
v=$VOLUME_ID
delete_id "$theirs"
same and_deleted_before_its_clone "$CSI_CODE/$(images "$UUID")/$(in_fast starts csi-vol-pvc-v-$$ 6)" OK//theirs
delete_id "$v"
same which_takes_it_along "$CSI_CODE/$(trash "$UUID")$(left_anywhere | grep -v pvc-s-)" OK/

# ---- what cannot be ----
cp "$TMP/config.json" "$TMP/one.json"
jq '. + [{clusterID: "far", monitors: ["127.0.0.1:1"]}]' "$TMP/one.json" >"$TMP/config.json"
POOL=rbd CLUSTER=far clone pvc-no-$$ 33554432 "$s"
code another_cluster_is_asked_first UNAVAILABLE
cp "$TMP/one.json" "$TMP/config.json"
with_source() { # NAME PARAMETERS SOURCE-ID: of CephFS
    csi controller CreateVolume "$(create_request "$1" 1073741824 "$2" | jq -c --arg id "$3" '.volume_content_source = {volume: {volume_id: $id}}')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
}
with_source pvc-no-$$ '{}' "$s"
says an_image_is_no_subvolume INVALID_ARGUMENT "its source's type"
delete_id "$s"
same nothing_is_left_of_images "$(left_anywhere)" ""

# ---- subvolumes ----
ceph_cmd osd pool create "files-$$" 1 >/dev/null 2>&1 && ceph_cmd fs add_data_pool hearthfs "files-$$" >/dev/null 2>&1 || die "no data pool"
at_exit "ceph_cmd fs rm_data_pool hearthfs files-$$ >/dev/null 2>&1; ceph_cmd osd pool rm files-$$ files-$$ --yes-i-really-really-mean-it >/dev/null 2>&1"
data_pool() { ceph_cmd fs subvolume info hearthfs "$1" --group_name "$2" --format json 2>/dev/null | jq -r .data_pool; }
create_volume pvc-f-$$ 1073741824 || die "CreateVolume: $(said)"
f=$VOLUME_ID
second_client
talk client fill file 1000 7
talk_end client
TEAM='{"clusterID": "tenant"}'
pending with_source pvc-g-$$ "$TEAM" "$f"
code a_subvolume_is_cloned_into_another_group OK
g=$VOLUME_ID
same its_id "$g" "h1~cephfs~tenant~hearthfs~team~csi-vol-pvc-g-$$"
same where_it_is "$(ceph_cmd fs subvolume ls hearthfs --group_name team 2>/dev/null | jq -r '.[].name')" csi-vol-pvc-g-$$
ROOT_PATH=$(ceph_cmd fs subvolume getpath hearthfs csi-vol-pvc-g-$$ --group_name team 2>/dev/null)
second_client
talk client size file
talk_end client
same with_its_files "$ANSWER" 1000
pending with_source pvc-p-$$ "{\"pool\": \"files-$$\"}" "$f"
same and_into_another_data_pool "$CSI_CODE/$(data_pool csi-vol-pvc-p-$$ csi)" "OK/files-$$"
p=$VOLUME_ID
pending with_source pvc-q-$$ '{}' "$p"
same without_a_pool_it_stays_in_its_sources "$CSI_CODE/$(data_pool csi-vol-pvc-q-$$ csi)" "OK/files-$$"
q=$VOLUME_ID
pending with_source pvc-no-$$ "{\"pool\": \"none-$$\"}" "$f"
says a_data_pool_that_is_not_there INVALID_ARGUMENT "none-$$"
with_source pvc-no-$$ '{"fsName": "other"}' "$f"
says another_file_system INVALID_ARGUMENT "use a class with fsName hearthfs"
same neither_leaves_anything "$(ceph_cmd fs subvolume ls hearthfs --group_name csi 2>/dev/null | grep -c pvc-no-)$(ceph_cmd fs subvolume snapshot ls hearthfs csi-vol-pvc-f-$$ --group_name csi 2>/dev/null | jq -r '.[].name')" 0
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' --arg id "$f" --arg name "snap-f-$$")"
SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
pending csi controller CreateVolume "$(create_request "pvc-t-$$" 1073741824 "$TEAM" | jq -c --arg id "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $id}}')"
same a_snapshot_is_restored_into_another_group "$CSI_CODE/$(jq -r .volume.volumeId <<<"$REPLY_JSON")" "OK/h1~cephfs~tenant~hearthfs~team~csi-vol-pvc-t-$$"
t=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
csi controller CreateVolume "$(create_request "pvc-o-$$" 1073741824 "$TEAM" | jq -c --arg id "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $id}}
    | .volume_capabilities[0].access_mode.mode = "MULTI_NODE_READER_ONLY"')"
o=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
same or_shown_there "$CSI_CODE/$(jq -r .volume.volumeContext.rootPath <<<"$REPLY_JSON" | grep -c "/volumes/csi/csi-vol-pvc-f-$$/.snap/")" OK/1
unsnapshot
says while_it_is_shown_it_stays FAILED_PRECONDITION "csi-vol-pvc-o-$$"
same the_audit_finds_nothing_of_files "$(audit_finds)" ""
for id in "$o" "$t" "$g" "$p" "$q"; do
    pending delete_id "$id" || fail delete "$(said)"
done
unsnapshot
code then_it_goes OK
delete_id "$f"
same nothing_is_left_of_files "$(rados -c "$CEPH_CONF" -p hearthfs.meta -N hearth ls 2>/dev/null | grep -e "-$$")$(ceph_cmd fs subvolume ls hearthfs --group_name team 2>/dev/null | jq -r '.[].name')" ""
exit 0
