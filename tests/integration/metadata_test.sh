#!/bin/bash
# Whom a volume is for is kept with it in Ceph, under ceph-csi's keys: images, subvolumes and their
# snapshots, as --setmetadata and --clustername say. A Ceph that cannot loses nothing else.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
# The mgr of this cluster does not know one of the two commands once `hidden` is there, as before Ceph 16.2.11.
MGR=$TMP/mgr
mkdir -p "$MGR"
OWN=${CEPH_ROOT:-}/usr/share/ceph/mgr
for module in "$OWN"/*; do ln -s "/usr/share/ceph/mgr/${module##*/}" "$MGR/"; done
rm "$MGR/volumes" && cp -r "$OWN/volumes" "$MGR/volumes"
start_ceph --conf "mgr_module_path = $MGR"
start_controller --clustername=arn:aws:eks/team-1

K8S=csi.storage.k8s.io
claim() { echo "{\"$K8S/pv/name\": \"pvc-$1\", \"$K8S/pvc/name\": \"data\", \"$K8S/pvc/namespace\": \"team\"}"; }
CLAIM=$(claim 1)
WANTED="csi.ceph.com/cluster/name=arn:aws:eks/team-1 $K8S/pv/name=pvc-1 $K8S/pvc/name=data $K8S/pvc/namespace=team"
words() { jq -r 'to_entries | map("\(.key)=\(.value)") | sort | join(" ")'; }
of_image() { rbd_cmd image-meta ls "rbd/$1" --format json 2>/dev/null | words; }
of_subvolume() { ceph_cmd fs subvolume metadata ls hearthfs "$1" --group_name csi --format json 2>/dev/null | words; }
of_snapshot() { ceph_cmd fs subvolume snapshot metadata ls hearthfs "$1" "$2" --group_name csi --format json 2>/dev/null | words; }
name_of() { jq -r '.volume.volumeContext | .imageName // .subvolumeName' <<<"$REPLY_JSON"; }
SNAPPED="{\"$K8S/volumesnapshot/name\": \"snap\", \"$K8S/volumesnapshot/namespace\": \"team\", \"$K8S/volumesnapshotcontent/name\": \"content-1\"}"
delete() { VOLUME_ID=$1 delete_volume || fail delete "$(said)"; }
warnings() { grep -c "could not be stored as its metadata" "$TMP/log/controller.log"; }

# ---- images ----
create_image pvc-image-$$ 33554432 "$CLAIM"
code an_image OK
image=$VOLUME_ID
same an_image_has_its_claim "$(of_image "$(name_of)")" "$WANTED"
snapshot snap-image-$$ "$SNAPPED"
code a_snapshot_of_an_image OK
restore pvc-copy-$$ 33554432 "$SNAPSHOT_ID" "$(claim 2)"
same a_copy_has_its_own "$CSI_CODE/$(of_image "$(name_of)")" "OK/${WANTED/pvc-1/pvc-2}"
delete "$VOLUME_ID"
restore pvc-bare-$$ 33554432
same a_copy_for_nobody_has_not_its_sources "$CSI_CODE/$(of_image "$(name_of)")" "OK/csi.ceph.com/cluster/name=arn:aws:eks/team-1"
delete "$VOLUME_ID"
unsnapshot
delete "$image"

# ---- subvolumes ----
create_volume pvc-fs-$$ 1073741824 "$CLAIM"
fs=$VOLUME_ID name=csi-vol-pvc-fs-$$
same a_subvolume_has_its_claim "$CSI_CODE/$(of_subvolume $name)" "OK/$WANTED"
snapshot snap-fs-$$ "$SNAPPED"
same a_snapshot_has_its_objects "$CSI_CODE/$(of_snapshot $name csi-snap-snap-fs-$$)" \
    "OK/csi.ceph.com/cluster/name=arn:aws:eks/team-1 $K8S/volumesnapshot/name=snap $K8S/volumesnapshot/namespace=team $K8S/volumesnapshotcontent/name=content-1"
unsnapshot
same nothing_to_warn_of "$(warnings)" 0

# ---- an older Ceph ----
sed -i "s/'fs subvolume metadata set /'fs subvolume forgotten set /" "$MGR/volumes/module.py"
"$ONE_NODE" restart "$CEPH_DIR" mgr.a || die "no mgr"
knows() { ceph_cmd fs subvolume ls hearthfs --group_name csi; }
wait_for 120 knows || die "the mgr does not come back"
ceph_cmd fs subvolume metadata set hearthfs $name key value --group_name csi >/dev/null 2>&1 && die "the mgr knows it still"
made() { create_volume "$1" 1073741824 "$(claim 3)"; }
check a_volume_is_made_all_the_same pending made pvc-old-$$
old=$VOLUME_ID
same and_told_of "$(warnings)" 1
check the_next_too made pvc-old2-$$
same and_the_mgr_is_not_asked_again "$(warnings)" 1
delete "$VOLUME_ID"
VOLUME_ID=$fs
snapshot snap-fs2-$$ "$SNAPPED"
same what_it_knows_is_set "$CSI_CODE/$(of_snapshot $name csi-snap-snap-fs2-$$ | grep -c content-1)" OK/1
unsnapshot
delete "$old"
delete "$fs"

# ---- switched ----
end controller TERM 25
start_controller --setmetadata=false --clustername=team-1
create_image pvc-off-$$ 33554432 "$CLAIM"
same switched_off_nothing_is_set "$CSI_CODE/$(of_image "$(name_of)")" OK/
delete "$VOLUME_ID"
refused() { "$BUILD/hearth-csi" --role=controller --endpoint="unix://$TMP/run/none.sock" "$@" 2>&1; }
said_at_start=$(refused --clustername='50%')
same a_name_that_ceph_cannot_keep_is_refused_at_start "$?/$(grep -c 'clustername="50%".*letters' <<<"$said_at_start")" 2/1
refused --clustername='a
b' >/dev/null
same as_is_one_of_two_lines $? 2
refused --setmetadata=perhaps >/dev/null
same and_another_word $? 2
same nothing_is_left "$(left)" ""
exit 0
