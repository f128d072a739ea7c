#!/bin/bash
# Volumes this driver has not made, on a real Ceph: an admin's (static PersistentVolumes) and those of
# ceph-csi, taken over by their handle and attributes.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

code() { same "$1" "$CSI_CODE" "$2"; }
said_of() { case $CSI_MESSAGE in *$2*) pass "$1" ;; *) fail "$1" "$(said)" ;; esac; }
quota() { ceph_cmd fs subvolume info hearthfs "$1" --group_name csi --format json | jq .bytes_quota; }
expand() { csi controller ControllerExpandVolume "$(csi_json '{volume_id: $id, secrets: $secrets,
    capacity_range: {required_bytes: $bytes}}' --arg id "$VOLUME_ID" --argjson bytes "$1")"; }
get() { csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$VOLUME_ID")"; }
validate() { csi controller ValidateVolumeCapabilities "$(csi_json "{volume_id: \$id, secrets: \$secrets,
    volume_context: \$context, volume_capabilities: [$CAPABILITY]}" --arg id "$VOLUME_ID" --argjson context "$VOLUME_CONTEXT")"; }
confirmed() { jq -r '.confirmed != null' <<<"$REPLY_JSON"; }
make_subvolume() { # NAME: its path in $ROOT_PATH
    ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
    ceph_cmd fs subvolume create hearthfs "$1" --group_name csi --size 1073741824 >/dev/null 2>&1
    at_exit "ceph_cmd fs subvolume rm hearthfs $1 --group_name csi >/dev/null 2>&1"
    ROOT_PATH=$(ceph_cmd fs subvolume getpath hearthfs "$1" --group_name csi 2>/dev/null)
    [ -n "$ROOT_PATH" ] || die "no subvolume $1"
}
round_trip() { # NAME: mounts, writes, reads by another client, unmounts
    check "$1_staged" stage
    check "$1_published" publish
    echo "text of $1" >"$TARGET/file" && sync "$TARGET/file"
    second_client
    talk client cat file
    same "$1_is_the_subvolume" "$ANSWER" "text of $1"
    talk_end client
    same "$1_has_its_quota" "$(df -B1 --output=size "$TARGET" | tail -n 1 | tr -d ' ')" 1073741824
    check "$1_unpublished" unpublish
    check "$1_unstaged" unstage
}

# ---- an admin's ----
make_subvolume admins-$$
VOLUME_ID=team/data~of-$$
VOLUME_CONTEXT=$(static_context "$ROOT_PATH")
round_trip static
validate
same static_is_confirmed "$CSI_CODE/$(confirmed)" OK/true
good=$VOLUME_CONTEXT
wrong() { VOLUME_CONTEXT=$(jq -c "$1" <<<"$good"); }
wrong '.fsName = "nofs"'
validate
same of_no_file_system_is_not "$CSI_CODE/$(confirmed)" OK/false
stage && fail of_no_file_system "staged" || said_of of_no_file_system nofs
wrong '.clusterID = "nocluster"'
stage
code of_no_cluster INVALID_ARGUMENT
said_of names_the_clusters "$CEPH_FSID"
wrong '.rootPath = "/volumes/none"'
stage
code of_no_path NOT_FOUND
said_of names_the_path /volumes/none
wrong '.rootPath = "../x"'
stage
code of_a_relative_path INVALID_ARGUMENT
wrong 'del(.rootPath)'
stage
code without_a_path INVALID_ARGUMENT
said_of says_where_it_goes volumeAttributes
wrong '.staticVolume = "maybe"'
stage
code with_another_word INVALID_ARGUMENT
VOLUME_CONTEXT=$good
expand 2147483648
code it_is_not_expanded NOT_FOUND
get
code nor_found_by_the_controller NOT_FOUND
delete_volume
code deleting_it_is_fine OK
same and_deletes_nothing "$(quota admins-$$)" 1073741824

# A snapshot of the admin's, by its path.
ceph_cmd fs subvolume snapshot create hearthfs admins-$$ kept --group_name csi >/dev/null 2>&1
at_exit "ceph_cmd fs subvolume snapshot rm hearthfs admins-$$ kept --group_name csi >/dev/null 2>&1"
wrong ".rootPath = \"$(dirname "$ROOT_PATH")/.snap/kept/$(basename "$ROOT_PATH")\""
stage
code a_snapshot_for_a_writer INVALID_ARGUMENT
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
check a_snapshot_for_readers stage
check is_published publish
same and_read "$(cat "$TARGET/file")" "text of static"
unpublish && unstage
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'

# ---- ceph-csi's, but for its journal (ceph_csi_journal_test) ----
fs_id=$(ceph_cmd fs dump --format json 2>/dev/null | jq '.filesystems[] | select(.mdsmap.fs_name == "hearthfs").id')
handle() { printf '0001-%04x-%s-%016x-%s' ${#CEPH_FSID} "$CEPH_FSID" "$fs_id" "$1"; }
adopted() { # PREFIX UUID
    make_subvolume "$1$2"
    VOLUME_ID=$(handle "$2")
    VOLUME_CONTEXT=$(jq -cn --arg p "$ROOT_PATH" --arg c "$CEPH_FSID" --arg n "$1$2" \
        '{clusterID: $c, fsName: "hearthfs", subvolumeName: $n, subvolumePath: $p, mounter: "kernel",
          "storage.kubernetes.io/csiProvisionerIdentity": "1-2-cephfs.csi.ceph.com"}')
}
uuid=$(cat /proc/sys/kernel/random/uuid)
adopted csi-vol- "$uuid"
round_trip adopted
get
same adopted_is_found "$CSI_CODE/$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" OK/1073741824
same under_its_handle "$(jq -r .volume.volumeId <<<"$REPLY_JSON")" "$VOLUME_ID"
validate
same adopted_is_confirmed "$CSI_CODE/$(confirmed)" OK/true
expand 2147483648
same adopted_is_expanded "$CSI_CODE/$(quota "csi-vol-$uuid")" OK/2147483648
delete_volume
code adopted_is_not_deleted FAILED_PRECONDITION
said_of and_says_why journal
same and_is_there "$(quota "csi-vol-$uuid")" 2147483648
ceph_cmd fs subvolume rm hearthfs "csi-vol-$uuid" --group_name csi >/dev/null 2>&1
delete_volume
code what_is_gone_is_deleted OK
get
code and_not_found NOT_FOUND

uuid=$(cat /proc/sys/kernel/random/uuid)
adopted other-prefix- "$uuid"
get
code of_a_class_with_a_prefix OK
delete_volume
code is_not_deleted_either FAILED_PRECONDITION
fs_id=4000
VOLUME_ID=$(handle "$uuid")
get
code of_no_file_system_number NOT_FOUND

# ---- ceph-csi's images ----
adopted_image() { # PREFIX UUID
    rbd_cmd create "rbd/$1$2" --size 64M || die "rbd create"
    at_exit "rbd_cmd rm --no-progress rbd/$1$2 2>/dev/null"
    fs_id=$(ceph_cmd osd pool ls detail --format json 2>/dev/null | jq '.[] | select(.pool_name == "rbd").pool_id')
    VOLUME_ID=$(handle "$2")
    VOLUME_CONTEXT=$(jq -cn --arg c "$CEPH_FSID" --arg n "$1$2" '{clusterID: $c, pool: "rbd", journalPool: "rbd",
        imageName: $n, imageFeatures: "layering", "storage.kubernetes.io/csiProvisionerIdentity": "1-2-rbd.csi.ceph.com"}')
}
image_bytes() { rbd_cmd info "rbd/$1" --format json | jq .size; }
CAPABILITY='{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
uuid=$(cat /proc/sys/kernel/random/uuid)
adopted_image csi-vol- "$uuid"
check adopted_image_is_staged stage
check adopted_image_is_published publish
echo bytes >"$TARGET/file"
sync "$TARGET/file"
unpublish && unstage
stage && publish
same adopted_image_keeps_its_bytes "$(cat "$TARGET/file")" bytes
unpublish && unstage
get
same adopted_image_is_found "$CSI_CODE/$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" OK/67108864
expand 134217728
same adopted_image_is_expanded "$CSI_CODE/$(image_bytes "csi-vol-$uuid")" OK/134217728
delete_volume
code adopted_image_is_not_deleted FAILED_PRECONDITION
said_of and_says_why_too journal
same image_is_there "$(image_bytes "csi-vol-$uuid")" 134217728
rbd_cmd rm --no-progress "rbd/csi-vol-$uuid"
delete_volume
code image_that_is_gone_is_deleted OK
uuid=$(cat /proc/sys/kernel/random/uuid)
adopted_image other-prefix- "$uuid"
delete_volume
code image_of_a_class_with_a_prefix_is_not_deleted FAILED_PRECONDITION
exit 0
