#!/bin/bash
# What documents tell their reader to do with Ceph and on a node, done as it stands there: the Ceph users of the
# installation, who then make and mount all kinds of volumes; the programs as they are started by hand; hearthctl.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
reader_begin
# One of its own: the audit is to find nothing in all of it.
HEARTH_CEPH= start_ceph
reader_at_a_place
reader_has ceph "$ONE_NODE" ceph "$CEPH_DIR"
reader_has rbd rbd -c "$CEPH_CONF"
INSTALL=docs/install.md

documented $INSTALL 'man deploy/man/hearth-csi.8'
check its_section_is_there grep -q '^SECRETS' "$DOCUMENTED_OUT"

# ---- the Ceph users of the installation
at_exit 'ceph_cmd auth rm client.hearth-provisioner; ceph_cmd auth rm client.hearth-node'
documented_block $INSTALL '1. The Ceph users' FSNAME=hearthfs POOL=rbd
check the_keys_are_there test -s "$READER/provisioner.key" -a -s "$READER/node.key"
documented docs/troubleshooting.md 'ceph auth get client.…' client.…=client.hearth-node
documented docs/troubleshooting.md 'ceph mon dump'
documented docs/operations.md 'ceph status'

# As Secrets of them are mounted; one makes everything below, the other mounts it.
PROVISIONER_ID=hearth-provisioner PROVISIONER_KEY=$(<"$READER/provisioner.key")
NODE_ID=hearth-node NODE_KEY=$(<"$READER/node.key")
own_user

# ---- the programs, by hand
cp "$TMP/config.json" "$PLACE/etc/ceph-csi-config/config.json"
by_hand() { # NAME COMMAND
    spawn "$1" "${READER_IN[@]}" env PATH="$BUILD:$PATH" bash -c "exec $2"
}
command_of docs/development.md 'hearth-csi --role=controller'
by_hand other-controller "$COMMAND"
wait_socket other-controller "$PLACE/csi/csi.sock"
CONTROLLER=$PLACE/csi/csi.sock csi controller Probe '{}'
same the_controller_starts_as_it_stands_there "$(said)" 'OK: '
end other-controller
command_of docs/development.md 'hearthd --cache-dir'
HEARTHD=$PLACE/run/hearth/hearthd.sock
by_hand hearthd "$COMMAND"
wait_socket hearthd "$HEARTHD"
command_of docs/development.md 'hearth-csi --role=node'
NODE=$PLACE/csi/csi.sock
by_hand node "$COMMAND"
wait_socket node "$NODE"
csi node Probe '{}'
same so_do_hearthd_and_the_node_plugin "$(said)" 'OK: '
check and_it_is_there_for_kubelet test -S "$PLACE/registration/csi.hearth.dev-reg.sock"
csi node NodeGetInfo '{}'
same under_the_nodes_name "$(jq -r .nodeId <<<"$REPLY_JSON")" "$(hostname)"
start_controller --secret-dir="$TMP/own"

# ---- what they may
TARGET=/var/lib/kubelet/pods/0a1b/volumes/kubernetes.io~csi/pv/mount STAGE=/var/lib/kubelet/plugins/kubernetes.io/csi/csi.hearth.dev/0a1b/globalmount
DATA=$PLACE$TARGET
mounted() {
    mkdir -p "$PLACE$STAGE" "$(dirname "$DATA")"
    csi node NodeStageVolume "$(stage_request)" && csi node NodePublishVolume "$(publish_request)"
}
unmounted() { unpublish && unstage; }
SHARED=$CAPABILITY READ='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
source_of() { jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}'; }

create_volume "pvc-doc-$$" 1073741824 || die "CreateVolume: $(said)"
LIVE=$VOLUME_ID LIVE_CONTEXT=$VOLUME_CONTEXT
at_exit 'VOLUME_ID=$LIVE delete_volume'
check a_live_volume_is_mounted mounted
at_exit unmounted
mkdir -p "$DATA"/train/{shard-000,shard-001}
for i in $(seq 8); do head -c 300000 /dev/urandom | tee "$DATA/train/shard-000/$i.tar" >"$DATA/train/shard-001/$i.tar"; done
sync -f "$DATA"
check it_grows csi controller ControllerExpandVolume "$(csi_json '{volume_id: $id, secrets: $secrets, capacity_range: {required_bytes: 2147483648}}' --arg id "$LIVE")"
check a_snapshot_is_taken snapshot "snap-doc-$$"
check a_volume_is_copied_from_it pending csi controller CreateVolume "$(create_request "pvc-copy-$$" 2147483648 "{}" | source_of)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
check and_deleted delete_volume
VOLUME_ID=$LIVE
unmounted || fail the_live_volume_is_left "$(said)"
CAPABILITY=$READ
csi controller CreateVolume "$(create_request "pvc-set-$$" 2147483648 "{}" | source_of)" || die "CreateVolume: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
check a_dataset_is_mounted pending mounted
check and_read cmp "$DATA/train/shard-000/1.tar" "$DATA/train/shard-001/1.tar"
HELD=$(hearthctl status --json | jq -r '.volumes[].volume | select(startswith("dataset-"))')
SET=$VOLUME_ID

# ---- hearthctl, of it
mkdir -p "$PLACE"/mnt/{train,imagenet}
"${READER_IN[@]}" mount --bind "$TARGET" /mnt/train
"${READER_IN[@]}" mount --bind "$TARGET" /mnt/imagenet
printf 'train/shard-000/%s.tar\n' 1 2 3 >"$READER/epoch-1.txt"
AT=0a1b/volumes/kubernetes.io~csi/pv
documented docs/warmup.md 'hearthctl warm /var/lib/kubelet/pods/…/mount' …=$AT
documented docs/warmup.md 'hearthctl warm imagenet@2026-…' imagenet@2026-…="$HELD"
documented docs/operations.md 'hearthctl verify imagenet@2026-…' imagenet@2026-…="$HELD"
documented docs/operations.md 'hearthctl status'
documented docs/operations.md 'hearthctl datasets'
documented docs/operations.md 'hearthctl top --sort ceph'
documented docs/operations.md 'hearthctl jobs'
documented docs/operations.md 'hearthctl doctor'
documented docs/operations.md 'hearthctl bench /mnt/train'
documented docs/troubleshooting.md 'hearthctl warm /mnt/train --rate'
documented docs/operations.md 'hearthctl pin' -- "$HELD"
documented docs/operations.md 'hearthctl pin' -- "$HELD" --off
documented docs/operations.md 'hearthctl evict --all'
PAGE=deploy/man/hearthctl.1
documented $PAGE 'hearthctl warm VOLUME' VOLUME="$HELD"
held() { [ "$(hearthctl datasets --json | jq '[.[].bytesCached] | add // 0')" = "$1" ]; }
check of_that_part_alone wait_for 10 held 2400000
documented $PAGE 'find /mnt/imagenet/train'
check the_rest_too wait_for 10 held 4800000
documented $PAGE 'hearthctl evict VOLUME' VOLUME="$HELD"
check all_of_it_goes wait_for 10 held 0
documented $PAGE 'hearthctl warm /mnt/imagenet'
documented $PAGE 'hearthctl bench'
documented $PAGE 'hearthctl status --json |'

# ---- and images
"${READER_IN[@]}" umount /mnt/train /mnt/imagenet
unmounted || fail the_dataset_is_left "$(said)"
check the_dataset_is_deleted delete_volume
check its_snapshot_too unsnapshot
CAPABILITY='{mount: {}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
create_image "pvc-image-$$" 268435456 || die "CreateVolume: $(said)"
IMAGE=$VOLUME_ID
check an_image_is_mounted mounted
check and_written dd if=/dev/zero of="$DATA/a" bs=1M count=8 conv=fsync
documented docs/troubleshooting.md 'rbd status' -- "rbd/csi-vol-pvc-image-$$"
check its_snapshot_is_taken snapshot "snap-image-$$"
check an_image_is_restored_from_it restore "pvc-image-copy-$$" 268435456
check and_deleted_again delete_volume
check the_snapshot_too unsnapshot
VOLUME_ID=$IMAGE
check a_group_of_images csi controller CreateVolumeGroupSnapshot "$(csi_json '{name: $name, secrets: $secrets, source_volume_ids: [$id]}' --arg name "group-doc-$$" --arg id "$IMAGE")"
csi controller DeleteVolumeGroupSnapshot "$(jq -c '.groupSnapshot | {id: .groupSnapshotId, ids: [.snapshots[].snapshotId]}' <<<"$REPLY_JSON" |
    jq -c '{group_snapshot_id: .id, snapshot_ids: .ids, secrets: {userID: env.PROVISIONER_ID, userKey: env.PROVISIONER_KEY}}')" || fail a_group_goes "$(said)"
check it_grows_too expand 536870912
unmounted || fail the_image_is_left "$(said)"
check the_image_is_deleted delete_volume
VOLUME_ID=$LIVE CAPABILITY=$SHARED

# ---- looking after Ceph
check capacity_is_told csi controller GetCapacity "$(csi_json '{parameters: $class}' --argjson class "$CLASS")"
check volumes_are_listed csi controller ListVolumes '{}'
documented docs/operations.md 'hearth-csi audit' -- --secret-dir="$TMP/own"
check nothing_is_out_of_step grep -q '1 volumes .* 0 out of step' "$DOCUMENTED_OUT"
documented docs/storageclass.md 'ceph fs subvolume pin' -- hearthfs "csi-vol-pvc-doc-$$" distributed 1 --group_name csi
documented docs/operations.md 'ceph tell mds.0 client ls'
documented docs/operations.md 'ceph tell mds.0 client evict' ID=999999999
truncate -s 16M "$TMP/cache.img"
documented docs/operations.md 'mkfs.ext4 -i' -- 8192 -q "$TMP/cache.img"
