#!/bin/bash
# Classes with a dataset, on a real Ceph: any number of volumes show one snapshot, anyone's; nothing
# of it changes when they come and go; on a node all of them, and those made from a VolumeSnapshot or
# by hand, are one cache, one manifest and one mount of each layer.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

DATA=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").data_pools[0]')
manifests() { timeout 30 rados -c "$CEPH_CONF" -p "$DATA" -N hearth ls 2>/dev/null | sort; }
META=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").metadata_pool')
records() { timeout 30 rados -c "$CEPH_CONF" -p "$META" -N hearth ls 2>/dev/null | grep -F "$1"; }
holders() { timeout 30 rados -c "$CEPH_CONF" -p "$META" -N hearth listomapkeys "$1" 2>/dev/null | wc -l; }
code() { same "$1" "$CSI_CODE" "$2"; }
said_of() { case $CSI_MESSAGE in *$2*) pass "$1" ;; *) fail "$1" "$(said)" ;; esac; }
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_PATH=\$ROOT_PATH"; }
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT ROOT_PATH=\$$1_PATH"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
READERS='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
WRITERS='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
of_class() { # NAME PARAMETERS
    create_volume "$1" 1073741824 "$2"
}
sub() { # VERB... NAME...
    if [ "$1" = snapshot ]; then
        ceph_cmd fs subvolume snapshot "$2" hearthfs "${@:3}" 2>/dev/null
    else
        ceph_cmd fs subvolume "$1" hearthfs "${@:2}" 2>/dev/null
    fi
}
# Of a subvolume and its snapshots, all that Ceph tells.
state() { # NAME GROUP
    # What is used is counted late.
    sub info "$1" --group_name "$2" --format json | jq -S 'del(.atime, .bytes_used, .bytes_pcent)'
    sub snapshot ls "$1" --group_name "$2" --format json
    sub ls --group_name "$2" --format json | jq -c 'map(.name) | sort'
}

# ---- an administrator's dataset, in a group of its own ----
ceph_cmd fs subvolumegroup create hearthfs team >/dev/null 2>&1
sub create corpus-$$ --group_name team --size 3221225472
at_exit "sub rm corpus-$$ --group_name team"
ROOT_PATH=$(sub getpath corpus-$$ --group_name team)
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
wait_for 30 mountpoint -q "$TMP/mnt/ceph" || die "ceph-fuse does not mount"
mkdir "$TMP/mnt/ceph$ROOT_PATH/a"
for i in 1 2 3 4 5 6; do head -c $((i * 50000)) /dev/urandom >"$TMP/mnt/ceph$ROOT_PATH/a/file$i"; done
sync -f "$TMP/mnt/ceph$ROOT_PATH"
sums() { (cd "$1" && find . -type f -exec md5sum {} + | sort -k 2); }
sums "$TMP/mnt/ceph$ROOT_PATH" >"$TMP/before"
sub snapshot create corpus-$$ v1 --group_name team
at_exit "sub snapshot rm corpus-$$ v1 --group_name team"
echo later >"$TMP/mnt/ceph$ROOT_PATH/a/file1"
sync -f "$TMP/mnt/ceph$ROOT_PATH"
wait_for 10 test -n "$(sub info corpus-$$ --group_name team)"
THEIRS="{\"dataset\": \"team/corpus-$$@v1\"}"
state corpus-$$ team >"$TMP/state"

# ---- what is asked for wrongly ----
CAPABILITY=$WRITERS
of_class pvc-w-$$ "$THEIRS"
code a_writer_is_refused INVALID_ARGUMENT
said_of and_told_what_to_ask_for ReadOnlyMany
CAPABILITY=$READERS
of_class pvc-x-$$ '{"dataset": "team/corpus"}'
code no_snapshot_is_named INVALID_ARGUMENT
said_of the_form_is_told SUBVOLUME@SNAPSHOT
of_class pvc-x-$$ "{\"dataset\": \"team/none-$$@v1\"}"
code a_missing_subvolume NOT_FOUND
said_of is_named_with_the_fix "subvolume none-$$ in group team; \`ceph fs subvolume ls hearthfs"
of_class pvc-x-$$ "{\"dataset\": \"corpus-$$@v1\"}"
code in_the_cluster\'s_group_it_is_not NOT_FOUND
of_class pvc-x-$$ "{\"dataset\": \"team/corpus-$$@v9\"}"
code a_missing_snapshot NOT_FOUND
said_of is_named_too "no snapshot v9; \`ceph fs subvolume snapshot ls"
of_class pvc-x-$$ "{\"dataset\": \"team/corpus-$$@v1\", \"pool\": \"p\"}"
code a_pool_has_no_meaning INVALID_ARGUMENT
same none_left_a_record "$(records "$$")" ""

# ---- claims ----
of_class pvc-a-$$ "$THEIRS"
code a_claim_of_it OK
remember A
case $ROOT_PATH in /volumes/team/corpus-$$/.snap/v1/*) pass its_path_is_the_snapshots ;; *) fail its_path_is_the_snapshots "$ROOT_PATH" ;; esac
same the_size_asked_is_answered "$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" 1073741824
same it_is_put_nowhere "$(jq -c '.volume.accessibleTopology // []' <<<"$REPLY_JSON")" "[]"
of_class pvc-a-$$ "$THEIRS"
same again_the_same "$CSI_CODE/$VOLUME_ID" "OK/$A_ID"
of_class pvc-a-$$ "{\"dataset\": \"team/corpus-$$@v2\"}"
code by_another_dataset_it_is_taken ALREADY_EXISTS
csi controller CreateVolume "$(create_request pvc-big-$$ 1 "$THEIRS" | jq -c 'del(.capacity_range)')"
same without_a_size_it_has_the_subvolumes "$CSI_CODE/$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" OK/3221225472
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
check and_goes delete_volume
of_class pvc-b-$$ "$(jq -c '. + {warm: "none", volumeNamePrefix: "other-"}' <<<"$THEIRS")"
code of_another_class OK
remember B
# The same snapshot by hand, by its name and by its path.
C_ID=corpus/by-name~$$
C_CONTEXT=$(jq -cn --arg d "team/corpus-$$@v1" --arg c "$CEPH_FSID" \
    '{staticVolume: "true", clusterID: $c, fsName: "hearthfs", dataset: $d}')
D_ID=corpus/by-path~$$
D_CONTEXT=$(static_context "$A_PATH")
C_PATH= D_PATH=
check nothing_of_it_changed cmp "$TMP/state" <(state corpus-$$ team)
list=$(csi controller ListVolumes '{}' && jq -r '[.entries[].volume.volumeId] | join(" ")' <<<"$REPLY_JSON")
case $list in *pvc-a-$$*pvc-b-$$*) pass both_are_listed ;; *) fail both_are_listed "$list" ;; esac

for v in A B C D; do
    recall $v
    stage && publish || fail "$v-is_staged" "$(said)"
    sums "$TARGET" >"$TMP/sums-$v" 2>&1
    check "$v-is_the_snapshot" cmp "$TMP/before" "$TMP/sums-$v"
done
same one_EROFS_mount_for_four "$(findmnt -rn -o TARGET -t erofs | grep -c "^$DEVICES/")" 1
same one_fill_mount "$(findmnt -rn -o TARGET -t fuse.hearth | grep -c "^$DEVICES/")" 1
same one_manifest "$(find "$CACHE/manifests" -maxdepth 1 -name '????????????????????????????????' | wc -l)" 1
same each_file_is_fetched_once "$(cache_stat objects)" 6
for v in A B C D; do
    recall $v
    same "$v-has_an_overlay_of_its_own" "$(findmnt -n -o SOURCE --mountpoint "$STAGE")" "hearth:$VOLUME_ID"
done
# What this node has of it, whoever has it open.
whole='[6,1050000,1050000,"/volumes/team/corpus-'$$'/.snap/v1"]'
known() { hearthctl datasets --json | jq -c '.[] | [.filesCached, .bytesCached, .bytesTotal,
    (.places[0].rootPath | sub("/[^/]*$"; ""))]'; }
known_is() { [ "$(known)" = "$1" ]; }
check hearthctl_lists_it_as_whole wait_for 15 known_is "$whole"
# Its snapshot's owner may remove it by hand; here nobody may through us, for it is none of ours.
for v in D C B A; do
    recall $v
    unpublish && unstage || fail "$v-unstaged" "$(said)"
done
same nothing_is_mounted "$(mounts_below "$DEVICES")" ""
same unmounted_it_is_listed "$(known)" "$whole"
end hearthd && start_hearthd
same after_a_restart_it_is_listed "$(known)" "$whole"
case $(hearthctl datasets) in *"corpus-$$/.snap/v1/"*) pass and_printed ;; *) fail and_printed "$(hearthctl datasets)" ;; esac
hearthctl evict --all >/dev/null || fail evict "failed"
check evicted_it_is_cold wait_for 15 known_is "[0,0${whole#*,1050000}"
csi controller ValidateVolumeCapabilities "$(csi_json "{volume_id: \$id, secrets: \$secrets, volume_context: \$context,
    volume_capabilities: [$READERS]}" --arg id "$C_ID" --argjson context "$C_CONTEXT")"
same by_name_it_is_confirmed "$CSI_CODE/$(jq -r '.confirmed != null' <<<"$REPLY_JSON")" OK/true
recall C
VOLUME_CONTEXT=$(jq -c ".dataset = \"team/corpus-$$@v7\"" <<<"$C_CONTEXT")
stage
code by_a_name_that_is_not_there NOT_FOUND
said_of the_path_is_named "/volumes/team/corpus-$$/.snap/v7"
CAPABILITY=$WRITERS
VOLUME_CONTEXT=$C_CONTEXT
stage
code nor_for_a_writer INVALID_ARGUMENT
CAPABILITY=$READERS
audit >/dev/null
same it_is_fine "$(grep -c "corpus-$$\|manifest" "$TMP/audit.json")" 0
for v in A B; do recall $v && delete_volume || fail delete "$(said)"; done
check still_nothing_of_it_changed cmp "$TMP/state" <(state corpus-$$ team)
same no_record_is_left "$(records "$$")" ""
# Its owner deletes it.
sub snapshot rm corpus-$$ v1 --group_name team
# What nodes of earlier versions left there.
for name in manifest.$(printf '%032x' $$){,.0123456789abcdef.00000000} "manifest-of./volumes/team/corpus-$$/.snap/v1"; do
    rados -c "$CEPH_CONF" -p "$DATA" -N hearth put "$name" /etc/hostname
done
audit --format json --repair --min-age 0 >/dev/null
same old_manifests_are_fixed "$(jq -r '.findings[] | select(.problem == "leftover") | "\(.name) \(.fixed)"' "$TMP/audit.json")" \
    "hearthfs/csi/manifest* true"
same and_nothing_is_left_of_them "$(manifests)" ""

# ---- a dataset that is a volume and a snapshot of ours ----
CAPABILITY=$WRITERS
create_volume pvc-src-$$ || die "CreateVolume: $(said)"
remember SOURCE
echo ours >"$TMP/mnt/ceph$ROOT_PATH/file"
sync -f "$TMP/mnt/ceph$ROOT_PATH"
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
    --arg id "$VOLUME_ID" --arg name "snap-$$")" || die "CreateSnapshot: $(said)"
SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
unsnapshot() { csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")"; }
CAPABILITY=$READERS
OURS="{\"dataset\": \"csi-vol-pvc-src-$$@csi-snap-snap-$$\"}"
of_class pvc-e-$$ "$OURS" || die "CreateVolume: $(said)"
remember E
of_class pvc-f-$$ "$(jq -c '. + {volumeNamePrefix: "other-"}' <<<"$OURS")" || die "CreateVolume: $(said)"
remember F
csi controller CreateVolume "$(create_request pvc-g-$$ 2147483648 "{}" |
    jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
remember G
csi controller CreateVolume "$(create_request pvc-h-$$ 2147483648 "$OURS" |
    jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')"
code a_source_beside_a_dataset INVALID_ARGUMENT
same the_three_hold_it "$(holders "snap.csi-snap-snap-$$")" 3
S_ID=corpus/ours~$$ S_PATH=
S_CONTEXT=$(jq -cn --arg d "csi-vol-pvc-src-$$@csi-snap-snap-$$" --arg c "$CEPH_FSID" \
    '{staticVolume: "true", clusterID: $c, fsName: "hearthfs", dataset: $d}')
for v in E F G S; do
    recall $v
    stage && publish || fail "$v-is_staged" "$(said)"
    same "$v-is_ours" "$(cat "$TARGET/file")" ours
done
same two_layers_for_two_classes_a_VolumeSnapshot_and_one_by_hand "$(mounts_below "$DEVICES" | wc -l)" 2
for v in E F G S; do recall $v && unpublish && unstage || fail "$v-unstaged" "$(said)"; done
unsnapshot
code while_they_are_there_it_stays FAILED_PRECONDITION
said_of and_they_are_named "pvc-e-$$"
recall SOURCE
check the_volume_may_go delete_volume
of_class pvc-late-$$ "$OURS"
code and_claims_still_come OK
check late_goes delete_volume
for v in E F G; do recall $v && delete_volume || fail delete "$(said)"; done
unsnapshot
code then_it_goes OK
same nothing_was_put_into_the_data_pool "$(manifests)" ""
same nothing_is_left "$(records "$$")" ""
audit >/dev/null
same and_the_audit_finds_nothing "$(grep -c "$$" "$TMP/audit.json")" 0
exit 0
