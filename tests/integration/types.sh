# Sourced after lib.sh by tests that run for each type of volume. What differs between types is here:
#
#   types                    the types to test, TYPES="cephfs rbd" or all
#   use_type TYPE            makes it the current one: $TYPE; $CLASS and $CAPABILITY for
#                            create_volume; $MUTABLE, parameters that can be changed
#   id_of NAME; snapshot_id_of NAME   of a volume or snapshot of that request name
#   objects PATTERN          names of volumes in Ceph that contain PATTERN, half made and trashed
#                            ones too, one a line, sorted; likewise:
#   snapshots NAME           of the volume of that request name
#   records PATTERN          what the driver has written down
#   bytes_of NAME            the size of a volume in Ceph
#
# $IMAGE_POOL is where images are.
#
# Ceph is asked by its own programs, not by ours.

IMAGE_POOL=rbd
types() { echo ${TYPES:-cephfs rbd}; }

use_type() {
    TYPE=$1
    case $TYPE in
    cephfs)
        CLASS=$(jq -cn --arg fsid "$CEPH_FSID" '{clusterID: $fsid, fsName: "hearthfs"}')
        CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
        ID_PLACE="$CEPH_FSID~hearthfs" ID_GROUP=csi~
        MUTABLE='{"cacheQuota": "1Gi"}'
        ;;
    rbd)
        CLASS=$(jq -cn --arg fsid "$CEPH_FSID" '{type: "rbd", clusterID: $fsid, pool: $pool}' --arg pool "$IMAGE_POOL")
        CAPABILITY='{mount: {}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
        ID_PLACE="$CEPH_FSID~$IMAGE_POOL~" ID_GROUP=
        MUTABLE='{"readIopsPerSecond": "1000"}'
        ;;
    *) die "no such type: $TYPE" ;;
    esac
}

id_of() { echo "h1~$TYPE~$ID_PLACE~${ID_GROUP}csi-vol-$1"; }
snapshot_id_of() { echo "h1~snap~$TYPE~$ID_PLACE~csi-snap-$1"; }

cephfs_json() { ceph_cmd fs "$@" --group_name csi --format json 2>/dev/null; }
rbd_json() { timeout -k 5 60 rbd -c "$CEPH_DIR/ceph.conf" "$@" --format json 2>/dev/null; }
rados_in() { timeout -k 5 30 rados -c "$CEPH_DIR/ceph.conf" -p "$@" 2>/dev/null; }

records() {
    case $TYPE in
    cephfs) rados_in hearthfs.meta -N hearth ls ;;
    rbd) rados_in "$IMAGE_POOL" listomapkeys hearth.records ;;
    esac | grep -F -- "$1" | sort
}
objects() {
    case $TYPE in
    cephfs) cephfs_json subvolume ls hearthfs | jq -r '.[].name' ;;
    rbd)
        rbd_json ls "$IMAGE_POOL" | jq -r '.[]'
        rbd_json trash ls "$IMAGE_POOL" | jq -r '.[].name'
        ;;
    esac | grep -F -- "$1" | sort
}
snapshots() {
    case $TYPE in
    cephfs) cephfs_json subvolume snapshot ls hearthfs "csi-vol-$1" | jq -r '.[].name' ;;
    rbd) rbd_json snap ls "$IMAGE_POOL/csi-vol-$1" | jq -r '.[].name' ;;
    esac | sort
}
bytes_of() {
    case $TYPE in
    cephfs) cephfs_json subvolume info hearthfs "csi-vol-$1" | jq .bytes_quota ;;
    rbd) rbd_json info "$IMAGE_POOL/csi-vol-$1" | jq .size ;;
    esac
}
