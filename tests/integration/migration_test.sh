#!/bin/bash
# docs/migration.md, walked: a class of ceph-csi's, a volume and a snapshot that ceph-csi has made, taken
# over, used and deleted; and the way back. What kubelet and the sidecars call is called with the document's own
# parameters and attributes, only names and numbers being those of this cluster.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
start_ceph
reader_begin
reader_has ceph "$ONE_NODE" ceph "$CEPH_DIR"
MIGRATION=docs/migration.md

# ---- 1. Secrets: the user of install.md, and what the page adds to it
documented_user() {
    ceph_cmd auth get-or-create client.hearth-provisioner mon 'allow r, profile rbd' mgr 'allow rw' \
        osd 'allow rw namespace=hearth tag cephfs metadata=hearthfs, profile rbd pool=rbd' >/dev/null 2>&1
    at_exit 'ceph_cmd auth rm client.hearth-provisioner >/dev/null 2>&1'
    PROVISIONER_ID=hearth-provisioner PROVISIONER_KEY=$(ceph_cmd auth print-key client.hearth-provisioner 2>/dev/null)
}
documented_user
documented $MIGRATION 'ceph auth caps client.hearth-provisioner' FSNAME=hearthfs POOL=rbd
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

# The mapping below KEY of the yaml block of FILE that has WORDS, as JSON.
mapping() { # FILE WORDS KEY
    awk -v words="$2" -v key="$3:" '
        /^```yaml|^---|^```$/ { if (found) exit; n = 0; next }
        { line[++n] = $0; if (index($0, words)) found = 1 }
        END { for (i = 1; i <= n; i++) {
                  text = line[i]; sub(/ *#.*/, "", text); depth = match(text, /[^ ]/)
                  if (inside && depth > inside) { sub(/^ +/, "", text); print text } else inside = 0
                  if (text ~ "^ *" key "$") inside = depth } }' "$TOP/$1" |
        jq -Rn '[inputs | capture("^(?<k>[^ ]+): +\"?(?<v>[^\"]*)\"?$") | {(.k): .v}] | add'
}
uuid() { cat /proc/sys/kernel/random/uuid; }
number_of_fs=$(ceph_cmd fs dump --format json 2>/dev/null | jq '.filesystems[] | select(.mdsmap.fs_name == "hearthfs").id')
journal() { rados -c "$CEPH_CONF" -p hearthfs.meta -N csi "$@"; }
handle() { printf '0001-%04x-%s-%016x-%s' ${#CEPH_FSID} "$CEPH_FSID" "$number_of_fs" "$1"; }
here() { jq -c --arg c "$CEPH_FSID" '.clusterID = $c | .fsName = "hearthfs"'; }

# ---- 2. a class
parameters=$(mapping $MIGRATION 'kind: StorageClass' parameters)
same the_class_is_read "$(jq -r .fsName <<<"$parameters")" cephfs
create_volume pvc-new-$$ 1073741824 "$(here <<<"$parameters")"
same a_class_of_ceph_csis_makes_volumes "$CSI_CODE" OK
new=$VOLUME_ID new_context=$VOLUME_CONTEXT

# ---- 3. a volume of ceph-csi
volume_uuid=$(uuid)
name=csi-vol-$volume_uuid
ceph_cmd fs subvolume create hearthfs "$name" --group_name csi --size 1073741824 >/dev/null 2>&1
journal create "csi.volume.$volume_uuid" && journal setomapval csi.volumes.default "csi.volume.pvc-old-$$" "$volume_uuid" &&
    journal setomapval "csi.volume.$volume_uuid" csi.volname "pvc-old-$$" && journal setomapval "csi.volume.$volume_uuid" csi.imagename "$name" || die journal
VOLUME_ID=$(handle "$volume_uuid")
VOLUME_CONTEXT=$(mapping deploy/examples/migration.yaml 'name: adopted-data' volumeAttributes | here |
    jq -c --arg n "$name" --arg p "$(ceph_cmd fs subvolume getpath hearthfs "$name" --group_name csi 2>/dev/null)" '.subvolumeName = $n | .subvolumePath = $p')
old=$VOLUME_ID old_context=$VOLUME_CONTEXT
check it_is_mounted_by_its_attributes stage
check and_published publish
echo "of the old volume" >"$TARGET/file" && sync "$TARGET/file"
unpublish && unstage
expand 2147483648
same it_is_expanded "$CSI_CODE" OK

# ---- 4. a snapshot of ceph-csi
snapshot_uuid=$(uuid)
ceph_cmd fs subvolume snapshot create hearthfs "$name" "csi-snap-$snapshot_uuid" --group_name csi >/dev/null 2>&1
journal create "csi.snap.$snapshot_uuid" && journal setomapval csi.snaps.default "csi.snap.snapshot-$$" "$snapshot_uuid" &&
    journal setomapval "csi.snap.$snapshot_uuid" csi.snapname "snapshot-$$" && journal setomapval "csi.snap.$snapshot_uuid" csi.imagename "csi-snap-$snapshot_uuid" &&
    journal setomapval "csi.snap.$snapshot_uuid" csi.source "$name" || die journal
same the_handle_is_as_the_page_has_it "$(mapping $MIGRATION 'kind: VolumeSnapshotContent' source | jq -r '.snapshotHandle | sub("[0-9a-f-]{36}$"; "") | length')" \
    "$(($(handle "$snapshot_uuid" | wc -c) - 36))"
SNAPSHOT_ID=$(handle "$snapshot_uuid")
csi controller ListSnapshots "$(csi_json '{snapshot_id: $id}' --arg id "$SNAPSHOT_ID")"
same its_content_is_ready "$(jq -r '.entries[0].snapshot.readyToUse' <<<"$REPLY_JSON")" true
restored() {
    csi controller CreateVolume "$(create_request pvc-restored-$$ 2147483648 '{}' | jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
}
check it_is_restored pending restored
check the_copy_is_mounted stage
publish && same and_has_its_bytes "$(cat "$TARGET/file")" "of the old volume"
unpublish && unstage
check the_copy_is_deleted delete_volume
unsnapshot
same the_snapshot_is_deleted "$CSI_CODE/$(journal listomapkeys csi.snaps.default | grep -c "snapshot-$$")" OK/0

# ---- 5. back: what ceph-csi made is in its journal as before, by which ceph-csi finds it
same its_journal_is_as_it_was "$(journal getomapval "csi.volume.$volume_uuid" csi.imagename - 2>/dev/null | grep -ac "$name")/$(journal listomapkeys csi.volumes.default | grep -c "pvc-old-$$")" 1/1
# What Hearth made is at the path that its attributes say, for any client of CephFS.
VOLUME_ID=$new VOLUME_CONTEXT=$new_context
stage && publish || die "stage: $(said)"
echo "of the new volume" >"$TARGET/file" && sync "$TARGET/file"
unpublish && unstage
back=$(mapping $MIGRATION 'name: back-on-cephfs' volumeAttributes | here | jq -c --arg p "$(jq -r .rootPath <<<"$new_context")" '.rootPath = $p')
same the_page_has_ceph_csis_attributes_of_a_static_volume "$(jq -r 'keys | join(" ")' <<<"$back")" "clusterID fsName rootPath staticVolume"
ROOT_PATH=$(jq -r .rootPath <<<"$back")
second_client
talk client cat file
same another_client_reads_it_there "$ANSWER" "of the new volume"
talk_end client
# As an image: a plain file system under the name that the attributes have.
IMAGE_CAPABILITY='{"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
create_image pvc-image-$$ 67108864
CAPABILITY=$IMAGE_CAPABILITY
check an_image_is_used stage
publish && echo "of the image" >"$TARGET/file" && sync "$TARGET/file"
unpublish && unstage
rbd_cmd export --no-progress "rbd/$(jq -r .imageName <<<"$VOLUME_CONTEXT")" "$TMP/image" || fail export failed
same its_file_system_is_plain "$(debugfs -R 'cat /file' "$TMP/image" 2>/dev/null)" "of the image"
check the_image_is_deleted delete_volume

# ---- deletion, by Hearth, of both
VOLUME_ID=$new
check the_new_volume_is_deleted delete_volume
VOLUME_ID=$old VOLUME_CONTEXT=$old_context
check the_old_volume_is_deleted delete_volume
same with_its_part_of_the_journal "$(journal ls | grep -c "$volume_uuid")/$(journal listomapkeys csi.volumes.default | grep -c "pvc-old-$$")" 0/0
same and_its_data "$(ceph_cmd fs subvolume ls hearthfs --group_name csi 2>/dev/null | grep -c "$name")" 0
audit >/dev/null
same the_audit_finds_nothing $? 0
exit 0
