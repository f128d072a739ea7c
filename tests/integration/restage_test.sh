#!/bin/bash
# A volume that is staged again right behind its unstaging, on a real Ceph: the session before may still
# be ending then, and an MDS refuses a second one of the same name. How long it takes for a volume and
# for a dataset that the node knows.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_controller
start_hearthd
start_node

ROUNDS=7
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_PATH=\$ROOT_PATH"; }
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT ROOT_PATH=\$$1_PATH"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}

CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
published_volume "pvc-live-$$" 1073741824 || die "$(said)"
remember LIVE
mkdir -p "$TARGET/deep/deeper"
for i in {1..50}; do echo "$i" >"$TARGET/deep/deeper/$i"; done
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
    --arg id "$VOLUME_ID" --arg name "snap-$$")" || die "CreateSnapshot: $(said)"
SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
unpublish && unstage || die "unstage: $(said)"
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
csi controller CreateVolume "$(create_request "pvc-dataset-$$" 1073741824 '{}' |
    jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
remember DATASET

# Milliseconds that the node plugin took for the calls of a method since a line of its log, sorted.
times() { # LINE METHOD VOLUME_ID
    tail -n +"$1" "$TMP/log/node.log" | jq -r --arg m "/csi.v1.Node/$2" --arg v "$3" \
        'select(.method == $m and .volume == $v and .code == "OK") | .ms' | sort -n
}
median() { times "$@" | sed -n "$(((ROUNDS + 1) / 2))p" | cut -d. -f1; }
shortest() { times "$@" | head -n 1 | cut -d. -f1; }
longest() { times "$@" | tail -n 1 | cut -d. -f1; }
again() { # LIVE|DATASET
    recall "$1"
    case $1 in
    LIVE) CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}' ;;
    DATASET) CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}' ;;
    esac
    stage && publish && [ "$(cat "$TARGET/deep/deeper/50")" = 50 ] && unpublish && unstage
}
refusals() { grep -cE 'refuses (user|the key)' "$TMP/log/hearthd.log"; }

again LIVE && again DATASET || die "stage: $(said)"
line=$(($(wc -l <"$TMP/log/node.log") + 1))
wrong=0
for ((i = 0; i < ROUNDS; i++)); do
    again LIVE || { wrong=$((wrong + 1)) && echo "# $(said)"; }
    again DATASET || { wrong=$((wrong + 1)) && echo "# $(said)"; }
done
same a_volume_is_staged_again_at_once "$wrong failed, $(refusals) refusals" "0 failed, 0 refusals"
took() { echo "$(shortest "$line" "$@"), $(median "$line" "$@"), $(longest "$line" "$@") ms"; }
echo "# shortest, median and longest of $ROUNDS: NodeStageVolume again: live $(took NodeStageVolume "$LIVE_ID");" \
    "dataset $(took NodeStageVolume "$DATASET_ID"); NodeUnstageVolume: live $(took NodeUnstageVolume "$LIVE_ID");" \
    "dataset $(took NodeUnstageVolume "$DATASET_ID")"
# The end of a session takes a second more, by a tick of libcephfs: a call that waits for it does so each time. A busy
# machine takes longer now and then, so the shortest of all is what is compared.
least=$(shortest "$line" NodeStageVolume "$LIVE_ID")
waits_not() { [ "$(shortest "$line" "$1" "$2")" -lt $((3 * least + 500)) ]; }
check a_known_dataset_waits_for_no_session_to_end waits_not NodeStageVolume "$DATASET_ID"
check nor_does_unstaging waits_not NodeUnstageVolume "$LIVE_ID"

# A claim's own session ends behind its staging.
recall DATASET
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
wrong=0
for ((i = 0; i < ROUNDS; i++)); do
    stage && unstage || { wrong=$((wrong + 1)) && echo "# $(said)"; }
done
same nor_does_a_dataset_meet_its_claims_session "$wrong failed, $(refusals) refusals" "0 failed, 0 refusals"

# Sessions cannot end while the MDS hangs; then all of them are there still.
recall LIVE
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
wrong=0
for ((i = 0; i < 3; i++)); do
    stage && publish && echo "$i" >"$TARGET/round" && sync "$TARGET/round" && unpublish && unstage ||
        { wrong=$((wrong + 1)) && echo "# $(said)"; }
    halt mds.a
    (sleep 2; kill -CONT "$(daemon_pid mds.a)") &
    stage || { wrong=$((wrong + 1)) && echo "# $(said)"; }
    wait $!
    continue_ceph
    publish && [ "$(cat "$TARGET/round")" = "$i" ] && unpublish && unstage || { wrong=$((wrong + 1)) && echo "# $(said)"; }
done
same nor_behind_an_mds_that_hung_meanwhile "$wrong failed, $(refusals) refusals" "0 failed, 0 refusals"

# An MDS whose journal hangs ends no session. Then it is not known whether it refuses the user or only the name, and
# the key is right.
recall LIVE
stage && publish && echo x >"$TARGET/round" && sync "$TARGET/round" || die "$(said)"
halt osd.0
unpublish
unstage
for id in $(ceph_cmd tell mds.a client ls --format json 2>/dev/null | jq -r '.[] | select(.client_metadata.hostname != null) | .id'); do
    timeout 5 "$ONE_NODE" ceph "$CEPH_DIR" tell mds.a client evict "id=$id" >/dev/null 2>&1
done
stage
check nor_does_a_silent_mds_refuse_a_key [ "$(refusals)" = 0 ]
check and_the_answer_says_so [ "$(grep -c 'check userID and userKey' <<<"$(said)")" = 0 ]
continue_ceph
staged() { stage && publish && [ "$(cat "$TARGET/round")" = x ]; }
check it_is_staged_when_ceph_answers wait_for 100 staged
