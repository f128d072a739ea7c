#!/bin/bash
# A dataset of a snapshot that was taken right behind the writes, on a real Ceph: it is there at once
# and complete, although the MDS answers for a file that was just written only once its journal is on
# disk, which it writes by itself every mds_tick_interval.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_controller
start_hearthd
start_node

FILES=60
tick() { ceph_cmd tell mds.a config set mds_tick_interval "$1" >/dev/null 2>>"$TMP/log/ceph.log"; }
# That a wait which goes on until the tick is told from a slow machine.
tick 40 || die "the MDS takes no other tick"
usual_tick() { tick 1; }
at_exit usual_tick

CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
published_volume "pvc-fresh-$$" 1073741824 || die "$(said)"
live_id=$VOLUME_ID live_context=$VOLUME_CONTEXT live_stage=$STAGE live_target=$TARGET
mkdir "$TARGET/closed" "$TARGET/synced"
python3 - "$TARGET" $FILES <<'END'
import os, sys
for kind in "closed", "synced":
    for i in range(int(sys.argv[2])):
        with open(f"{sys.argv[1]}/{kind}/{i}", "wb") as f:
            f.write(b"x" * (1000 + i))
            f.flush()
            if kind == "synced":
                os.fsync(f.fileno())
END
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
    --arg id "$VOLUME_ID" --arg name "snap-fresh-$$")" || die "CreateSnapshot: $(said)"
snapshot=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
csi controller CreateVolume "$(create_request "pvc-dataset-$$" 1073741824 '{}' |
    jq -c --arg s "$snapshot" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
STAGE=$TMP/mnt/dataset-stage TARGET=$TMP/mnt/pod/dataset

began=$SECONDS
stage || die "stage: $(said)"
took=$((SECONDS - began))
publish || die "publish: $(said)"
[ $took -lt 30 ] && pass is_staged_before_the_mds_writes_its_journal || fail is_staged_before_the_mds_writes_its_journal "$took s"
sizes() { (cd "$1" && find . -type f -printf '%p %s\n' | sort); }
sizes "$live_target" >"$TMP/live"
sizes "$TARGET" >"$TMP/dataset"
same with_each_file "$(wc -l <"$TMP/dataset")" $((2 * FILES))
same of_the_right_size "$(diff "$TMP/live" "$TMP/dataset" | head -n 3)" ""
check and_content diff -r "$live_target" "$TARGET"

unpublish && unstage && delete_volume || fail clean_up "$(said)"
csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$snapshot")" || fail clean_up "$(said)"
VOLUME_ID=$live_id VOLUME_CONTEXT=$live_context STAGE=$live_stage TARGET=$live_target
exit 0
