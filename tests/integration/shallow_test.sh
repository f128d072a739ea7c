#!/bin/bash
# Volumes that are a snapshot (backingSnapshot) on a real Ceph: nothing is copied, the bytes are the
# snapshot's whatever becomes of its volume, they are cached without a lease, and the snapshot cannot
# go while one is there.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

META=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").metadata_pool')
records() { timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p "$META" -N hearth ls 2>/dev/null | grep -F "$1"; }
subvolumes() { ceph_cmd fs subvolume ls hearthfs --group_name csi --format json 2>/dev/null | jq -r '.[].name' | grep -F "$1"; }
code() { same "$1" "$CSI_CODE" "$2"; }
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_PATH=\$ROOT_PATH"; }
recall() { eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT ROOT_PATH=\$$1_PATH"; }
writable() { CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'; }
readers() { CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'; }
snapshot() { # NAME
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
        --arg id "$VOLUME_ID" --arg name "$1")" || return 1
    SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
}
unsnapshot() { csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")"; }
restore() { # NAME [PARAMETERS]
    csi controller CreateVolume "$(create_request "$1" 1073741824 "${2:-"{}"}" |
        jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c '.volume.volumeContext // {}' <<<"$REPLY_JSON")
    ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
}
# A number of the volume that hearthd serves for all claims of the dataset.
dataset_stat() { hearthctl status --json | jq -r '.volumes[] | select(.volume | startswith("dataset-")) | .'"$1"; }
sums() { (cd "$TARGET" && find . -type f ! -name late -exec md5sum {} + | sort -k 2); }

n=pvc-src-$$
create_volume $n 1073741824 || die "CreateVolume: $(said)"
remember SOURCE
stage && publish || die "stage: $(said)"
mkdir -p "$TARGET/a/b"
for i in 1 2 3 4 5; do head -c $((i * 70000)) /dev/urandom >"$TARGET/a/file$i"; done
head -c 9000000 /dev/urandom >"$TARGET/a/b/large"
ln -s ../file1 "$TARGET/a/b/link"
: >"$TARGET/a/empty"
sync -f "$TARGET"
sums >"$TMP/before"
snapshot snap-$$ || die "CreateSnapshot: $(said)"

# ---- made at once, of nothing ----
readers
restore pvc-shallow-$$
code a_snapshot_for_readers_is_a_volume OK
remember SHALLOW
same it_is_told_so "$(jq -r .backingSnapshot <<<"$VOLUME_CONTEXT")" true
case $ROOT_PATH in */.snap/csi-snap-snap-$$/*) pass its_path_is_in_the_snapshot ;; *) fail its_path_is_in_the_snapshot "$ROOT_PATH" ;; esac
same ceph_has_no_subvolume_of_it "$(subvolumes pvc-shallow-$$)" ""
same its_content_source_is_told "$(jq -r .volume.contentSource.snapshot.snapshotId <<<"$REPLY_JSON")" "$SNAPSHOT_ID"
restore pvc-shallow-$$
same again_the_same "$CSI_CODE/$VOLUME_ID" "OK/$SHALLOW_ID"
restore pvc-shallow-$$ '{"backingSnapshot": "false"}'
code a_copy_of_its_name ALREADY_EXISTS
recall SHALLOW
csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$VOLUME_ID")"
same it_is_found "$CSI_CODE/$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" OK/1073741824
validate() { csi controller ValidateVolumeCapabilities "$(csi_json "{volume_id: \$id, secrets: \$secrets,
    volume_capabilities: [$CAPABILITY]}" --arg id "$VOLUME_ID")"; }
validate
same readers_are_confirmed "$CSI_CODE/$(jq -r '.confirmed != null' <<<"$REPLY_JSON")" OK/true
writable
validate
same writers_are_not "$CSI_CODE/$(jq -r '.confirmed != null' <<<"$REPLY_JSON")" OK/false
csi controller ControllerExpandVolume "$(csi_json '{volume_id: $id, capacity_range: {required_bytes: 2147483648},
    secrets: $secrets}' --arg id "$VOLUME_ID")"
code it_cannot_grow INVALID_ARGUMENT
writable
restore pvc-rw-$$ '{"backingSnapshot": "true"}'
code a_writer_of_the_snapshot_itself INVALID_ARGUMENT
same leaves_no_record "$(records pvc-rw-$$)" ""

# ---- the snapshot's bytes ----
echo changed >"$TARGET/a/file1" && rm "$TARGET/a/file2" && echo more >"$TARGET/late" && sync -f "$TARGET"
recall SOURCE
unpublish && unstage || die "unstage: $(said)"
recall SHALLOW
stage
code for_a_writer_it_is_not_staged INVALID_ARGUMENT
readers
hearthctl evict --all >/dev/null # what the source left is the same bytes
check staged stage
check published publish
sums >"$TMP/shallow" 2>&1
check bytes_are_the_snapshots cmp "$TMP/before" "$TMP/shallow"
same a_link_is_a_link "$(readlink "$TARGET/a/b/link")" ../file1
same a_list_is_the_snapshots "$(ls "$TARGET/a" | tr '\n' ' ')" "b empty file1 file2 file3 file4 file5 "
touch "$TARGET/x" 2>"$TMP/err" && fail writes_are_refused "touch worked" || check writes_are_refused grep -q "Read-only" "$TMP/err"
mount -o remount,rw "$TARGET" 2>/dev/null
touch "$TARGET/x" 2>/dev/null && fail even_when_remounted "touch worked" || pass even_when_remounted
# A large file is fetched to its end behind its reader.
wait_for 30 settled || fail fills_settle "$(cache_stat fillsActive) are active"
same one_pass_filled_the_cache "$(cache_stat objects)" 6
unpublish && unstage

# ---- a second claim of the snapshot on this node ----
restore pvc-second-$$ || die "CreateVolume: $(said)"
remember SECOND
stage && publish || die "stage: $(said)"
drop_page_cache
bytes=$(cache_stat originBytes)
sums >"$TMP/second" 2>&1
check the_second_has_the_same_bytes cmp "$TMP/before" "$TMP/second"
same and_reads_none_from_ceph "$(($(cache_stat originBytes) - bytes))/$(dataset_stat bytesOrigin)" 0/0
same nor_through_hearthd "$(dataset_stat 'bytesFill + .bytesStore')" 0
unpublish && unstage

# ---- the snapshot stays ----
unsnapshot
code its_deletion_while_in_use FAILED_PRECONDITION
case $CSI_MESSAGE in *csi-vol-pvc-shallow-$$*) pass names_the_volumes ;; *) fail names_the_volumes "$CSI_MESSAGE" ;; esac
recall SOURCE
check the_source_may_go delete_volume
recall SECOND
stage && publish || die "stage: $(said)"
drop_page_cache
hearthctl evict --all >/dev/null
sums >"$TMP/after" 2>&1
check and_the_bytes_stay cmp "$TMP/before" "$TMP/after"
unpublish && unstage
# A volume made only now, from the snapshot of a volume that is gone.
restore pvc-third-$$
code from_a_retained_snapshot OK
remember THIRD
stage && publish || die "stage: $(said)"
sums >"$TMP/third" 2>&1
check has_its_bytes cmp "$TMP/before" "$TMP/third"
unpublish && unstage

# ---- a crash after the hold, or before it ----
recall THIRD
rados -c "$CEPH_DIR/ceph.conf" -p "$META" -N hearth rmomapkey snap.csi-snap-snap-$$ csi-vol-pvc-third-$$ 2>/dev/null
restore pvc-third-$$
code a_record_without_its_hold_is_finished OK
unsnapshot
case $CSI_CODE/$CSI_MESSAGE in FAILED_PRECONDITION/*pvc-third-$$*) pass and_holds_again ;; *) fail and_holds_again "$(said)" ;; esac
for v in SHALLOW SECOND; do recall $v && delete_volume || fail delete "$(said)"; done
unsnapshot
code still_the_third FAILED_PRECONDITION
recall THIRD
delete_volume && delete_volume
code deleted_twice OK
unsnapshot
code then_it_goes OK
restore pvc-none-$$
code from_a_snapshot_that_is_gone NOT_FOUND
same nothing_is_left "$(subvolumes $$)$(records $$)" ""
