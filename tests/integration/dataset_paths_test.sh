#!/bin/bash
# One dataset of many files of every kind, read through every path there is, and all of it compared
# with the source: names, kinds, attributes, times, links, bytes. DATASET_FILES (6000) files; the
# full size is DATASET_FILES=100000, with TEST_SECONDS=1800. DATASET_PATHS ("native cold loop fuse") may
# name some of the paths.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

TREE="python3 $(dirname "$0")/tree.py"
FILES=${DATASET_FILES:-6000}
MANY=$((FILES >= 60000 ? 20000 : FILES / 3))
CSI_TIMEOUT=110
PATHS=${DATASET_PATHS:-native cold loop fuse}
path() { case " $PATHS " in *" $1 "*) true ;; *) false ;; esac; }
mount_type() { findmnt -n -o FSTYPE --mountpoint "$1" | tail -n 1; }
fuse_bytes() { hearthctl status --json | jq '[.volumes[] | .bytesStore + .bytesFill + .bytesOrigin] | add // 0'; }
used() { echo "# $1: $((SECONDS - BEGAN)) s"; }
is_source() { # NAME: what is at the target
    BEGAN=$SECONDS
    $TREE list "$TARGET/tree" >"$TMP/list" 2>"$TMP/err"
    if cmp -s "$TMP/source" "$TMP/list"; then
        pass "$1"
    else
        fail "$1" "$(diff "$TMP/source" "$TMP/list" | head -n 3 | cut -c 1-300) $(tail -n 1 "$TMP/err")"
    fi
    used "$1"
}
use() { stage && publish; }
leave() { unpublish && unstage || fail "$1-leaves" "$(said)"; }

# ---- the source ----
create_volume pvc-src-$$ 8589934592 || die "CreateVolume: $(said)"
SOURCE_ID=$VOLUME_ID
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
wait_for 30 mountpoint -q "$TMP/mnt/ceph" || die "ceph-fuse does not mount: $(tail -n 3 "$TMP/log/ceph-fuse.log")"
BEGAN=$SECONDS
mkdir "$TMP/mnt/ceph$ROOT_PATH/tree"
$TREE make "$TMP/mnt/ceph$ROOT_PATH/tree" "$MANY" $((FILES - MANY)) || die "cannot make the tree"
sync -f "$TMP/mnt/ceph$ROOT_PATH"
used making
# The same once more in memory, to compare with: of this many files ceph-fuse is very slow.
mkdir "$TMP/mnt/same"
mount -t tmpfs -o size=3G tmpfs "$TMP/mnt/same" || die "no tmpfs"
mkdir "$TMP/mnt/same/tree"
$TREE make "$TMP/mnt/same/tree" "$MANY" $((FILES - MANY)) || die "cannot make the tree again"
$TREE list "$TMP/mnt/same/tree" >"$TMP/source" || die "cannot list the source"
umount "$TMP/mnt/same"
check it_has_so_many_files [ "$(wc -l <"$TMP/source")" -ge "$FILES" ]
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
    --arg id "$VOLUME_ID" --arg name "snap-$$")" || die "CreateSnapshot: $(said)"
SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
csi controller CreateVolume "$(create_request pvc-a-$$ 8589934592 "{}" |
    jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")

# ---- native, after it was warmed ----
if path native; then
    BEGAN=$SECONDS
    use || die "stage: $(said)"
    used staging
    same it_is_an_overlay "$(mount_type "$STAGE")" overlay
    DATASET=$(hearthctl status --json | jq -r '.volumes[].volume | select(startswith("dataset-"))')
    BEGAN=$SECONDS
    check warmed hearthctl warm "$DATASET"
    used warming
    wait_for 120 settled || fail fills_settle "$(cache_stat fillsActive) are active"
    drop_all # of what the mounting looked at, before it was here
    bytes=$(fuse_bytes)
    is_source native
    same of_it_nothing_came_through_hearthd "$(fuse_bytes)" "$bytes"

    # ---- half of it is evicted beneath ----
    hearthctl evict --all --bytes $(($(cache_stat bytes) / 2)) >/dev/null
    drop_all
    is_source half_evicted
    check of_it_some_came_through_hearthd [ "$(fuse_bytes)" -gt "$bytes" ]
    wait_for 120 settled
    leave native
fi

# ---- filled as it is read ----
if path cold; then
    hearthctl evict --all >/dev/null
    drop_all
    use || die "stage: $(said)"
    same nothing_is_there "$(cache_stat objects)" 0
    is_source cold
    wait_for 120 settled
    leave cold
fi

# ---- EROFS through a loop device; none of it ----
for how in loop fuse; do
    path $how || continue
    end node
    start_node --dataset-mount=$how
    hearthctl evict --all >/dev/null
    drop_all
    use || die "$how: $(said)"
    case $how in loop) type=overlay ;; fuse) type=fuse.hearth ;; esac
    same "$how-is_mounted_so" "$(mount_type "$STAGE")" $type
    is_source "$how-cold"
    wait_for 120 settled
    drop_all
    is_source "$how-warm"
    leave "$how"
done
same nothing_is_left "$(mounts_below "$DEVICES")$(ls "$DEVICES")" ""
delete_volume || fail delete "$(said)"
csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")" || fail delete "$(said)"
VOLUME_ID=$SOURCE_ID
delete_volume || fail delete "$(said)"
