# What the parts about datasets share: a tree on a live volume and its copy on the cache's own file
# system, a dataset of it, ceph-fuse beside, and samples of all.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
READ="$BUILD/tools/demo-read"

# A volume at ${AT[live]} of BYTES, to be written to.
live_volume() { # BYTES
    published_volume "pvc-bench-$$" "$1" || die "$(said)"
    AT[live]=$TARGET
    live_id=$VOLUME_ID live_context=$VOLUME_CONTEXT live_stage=$STAGE
}

# A snapshot of it as a dataset at ${AT[dataset]}, mounted natively, and ceph-fuse of the same
# snapshot at ${AT[ceph-fuse]}.
dataset_volume() { # BYTES
    sync -f "${AT[live]}"
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
        --arg id "$VOLUME_ID" --arg name "snap-bench-$$")" || die "CreateSnapshot: $(said)"
    snapshot=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
    remove_snapshot() { csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$snapshot")"; }
    at_exit remove_snapshot
    CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
    csi controller CreateVolume "$(create_request "pvc-dataset-$$" "$1" '{}' |
        jq -c --arg s "$snapshot" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
    ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
    STAGE=$TMP/mnt/dataset-stage TARGET=$TMP/mnt/pod/dataset
    dataset_id=$VOLUME_ID dataset_context=$VOLUME_CONTEXT dataset_stage=$STAGE
    remove_dataset() {
        VOLUME_ID=$dataset_id STAGE=$dataset_stage TARGET=${AT[dataset]}
        unpublish && unstage && delete_volume
        VOLUME_ID=$live_id VOLUME_CONTEXT=$live_context STAGE=$live_stage TARGET=${AT[live]}
    }
    stage && publish || die "the dataset: $(said)"
    AT[dataset]=$TARGET
    at_exit remove_dataset
    [ "$(findmnt -n -o FSTYPE --mountpoint "$TARGET" | tail -n 1)" = overlay ] ||
        die "the dataset is not mounted natively: $(tail -n 3 "$TMP/log/node.log")"
}
mount_ceph_fuse() {
    mkdir -p "$TMP/mnt/ceph-fuse"
    spawn ceph-fuse "${HEARTHD_WITH[@]}" ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph-fuse"
    wait_for 30 mountpoint -q "$TMP/mnt/ceph-fuse" || die "ceph-fuse does not mount"
    AT[ceph-fuse]=$TMP/mnt/ceph-fuse$ROOT_PATH
}
# From the page cache, whose bytes are the ones that were written.
local_copy() {
    mkdir "$TMP/local" && cp -r "${AT[live]}/." "$TMP/local/" || die "cannot copy"
    AT[local]=$TMP/local
}

# All of it in the cache, or it is not the cache that is measured.
warm_all() {
    hearthctl warm "$dataset_id" >"$TMP/warm" 2>&1 || die "cannot warm: $(tail -n 1 "$TMP/warm")"
    settle
    warm_bytes=$(cache_stat originBytes)
}
was_warm() { [ "$(cache_stat originBytes)" = "$warm_bytes" ] || die "the cache did not hold all of it"; }

sample() { # SYSTEM STATE FLAGS of demo-read read; $FIGURE of what it prints
    local system=$1 state=$2
    shift 2
    "$READ" read "${AT[$system]}" "$TMP/list" "$@" >"$TMP/pass" || die "$system: $(cat "$TMP/pass")"
    record "$system" "$state" "$(jq ".${FIGURE:-per_s}" "$TMP/pass")"
}
