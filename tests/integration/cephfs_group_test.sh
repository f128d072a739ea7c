#!/bin/bash
# Group snapshots of subvolumes, of Ceph 19 and later: as of one moment though pods write, all or none,
# and nobody is kept from writing when the controller is killed. An older Ceph is refused by its version.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"

group() { # NAME ID...
    local name=$1
    shift
    csi controller CreateVolumeGroupSnapshot "$(csi_json '{name: $name, secrets: $secrets, source_volume_ids: $ids}' \
        --arg name "$name" --argjson ids "$(jq -cn '$ARGS.positional' --args "$@")")" || return 1
    GROUP_ID=$(jq -r .groupSnapshot.groupSnapshotId <<<"$REPLY_JSON")
    MEMBERS=($(jq -r '.groupSnapshot.snapshots[].snapshotId' <<<"$REPLY_JSON"))
}
ungroup() {
    csi controller DeleteVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $id, secrets: $secrets, snapshot_ids: $ids}' \
        --arg id "$GROUP_ID" --argjson ids "$(jq -cn '$ARGS.positional' --args "${MEMBERS[@]}")")"
}
snapshots_of() { ceph_cmd fs subvolume snapshot ls hearthfs "$1" --group_name csi --format json 2>/dev/null | jq -r '.[].name'; }
fs_records() { timeout -k 5 30 rados -c "$CEPH_CONF" -p hearthfs.meta -N hearth ls 2>/dev/null | grep -F -- "${1:--$$}" | sort; }
audit_finds() { audit --format json >/dev/null; jq -r '.findings[] | "\(.problem) \(.name)"' "$TMP/audit.json"; }

ids=() names=() contexts=()
for v in a b; do
    create_volume pvc-g$v-$$ 1073741824 || die "CreateVolume: $(said)"
    ids+=("$VOLUME_ID") names+=("csi-vol-pvc-g$v-$$") contexts+=("$VOLUME_CONTEXT")
done
a=${ids[0]} b=${ids[1]} A=${names[0]} B=${names[1]}
remove_volumes() {
    for VOLUME_ID in "${ids[@]}"; do
        delete_volume || fail delete "$(said)"
    done
    same nothing_is_left "$(fs_records)" ""
}
at_exit 'for name in "${names[@]}"; do ceph_cmd fs subvolume rm hearthfs $name --group_name csi --force >/dev/null 2>&1; done'

# ---- which Ceph it is ----
RELEASE=$(ceph_cmd version 2>/dev/null | sed -n 's/^ceph version \([0-9.]*\).*/\1/p')
if [ "${RELEASE%%.*}" -lt 19 ]; then
    group group-$$ "$a" "$b"
    says an_older_ceph_is_refused_by_its_version FAILED_PRECONDITION "need Ceph 19"
    says and_named FAILED_PRECONDITION "runs $RELEASE"
    same which_leaves_nothing "$(snapshots_of $A)$(snapshots_of $B)$(fs_records group)$(fs_records snap.)" ""
    remove_volumes
    exit 0
fi

# ---- with nobody writing ----
group group-$$-0 "$a" "$b"
code a_group_of_two OK
same its_ids "$GROUP_ID ${MEMBERS[0]}" "h1~group~cephfs~$CEPH_FSID~hearthfs~csi-vol-group-group-$$-0 h1~snap~cephfs~$CEPH_FSID~hearthfs~${MEMBERS[0]##*~}"
first=$GROUP_ID
same has_two_snapshots "${#MEMBERS[@]}/$(snapshots_of $A)/$(snapshots_of $B)" "2/${MEMBERS[0]##*~}/${MEMBERS[1]##*~}"
group group-$$-0 "$a" "$b"
same again_the_same "$CSI_CODE/$GROUP_ID/$(snapshots_of $A | wc -l)" "OK/$first/1"
csi controller GetVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $id}' --arg id "$GROUP_ID")"
code found_without_a_secret OK
csi controller ListSnapshots "$(csi_json '{source_volume_id: $id}' --arg id "$a")"
same a_member_is_listed_with_its_group "$(jq -r '.entries[].snapshot.groupSnapshotId' <<<"$REPLY_JSON")" "$GROUP_ID"
csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "${MEMBERS[0]}")"
code a_member_goes_only_with_it INVALID_ARGUMENT
same nobody_is_kept_from_writing "$(ceph_cmd fs quiesce hearthfs --query --all --format json 2>/dev/null | jq -r '[.sets[] | select(.state.name == "QUIESCED" or .state.name == "QUIESCING" or .state.name == "RELEASING")] | length')" 0
same the_audit_finds_nothing "$(audit_finds)" ""
from_member() { # NAME MODE
    csi controller CreateVolume "$(create_request "$1" 1073741824 '{}' | jq -c --arg id "${MEMBERS[0]}" --arg mode "$2" \
        '.volume_content_source = {snapshot: {snapshot_id: $id}} | .volume_capabilities[0].access_mode.mode = $mode')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
}
pending from_member pvc-gr-$$ MULTI_NODE_MULTI_WRITER
code a_member_is_restored OK
delete_volume || fail delete "$(said)"
from_member pvc-gs-$$ MULTI_NODE_READER_ONLY
code or_shown OK
ungroup
says and_then_keeps_the_group FAILED_PRECONDITION "csi-vol-pvc-gs-$$"
same as_a_whole "$(snapshots_of $A | wc -l)$(snapshots_of $B | wc -l)" 11
delete_volume || fail delete "$(said)"
ungroup
same deleting_it "$CSI_CODE/$(snapshots_of $A)$(snapshots_of $B)" OK/
ungroup
code and_again OK
same leaves_no_record "$(fs_records group)$(fs_records snap.)" ""
group group-$$-1 "$a" "h1~cephfs~$CEPH_FSID~hearthfs~csi~csi-vol-none-$$"
code of_a_volume_that_is_not_there NOT_FOUND
same there_is_none "$(snapshots_of $A)$(fs_records group)" ""

# ---- against a pod that writes to both, through hearthd ----
start_hearthd
start_node
paths=()
for i in 0 1; do
    VOLUME_ID=${ids[i]} VOLUME_CONTEXT=${contexts[i]} STAGE=$TMP/mnt/stage$i TARGET=$TMP/mnt/pod/volume$i
    stage && publish || die "publish: $(said)"
    paths+=("$TARGET")
done
cat >"$TMP/pod.py" <<'P'
import os, signal, sys, time
stop = []
signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
files = [os.open(d + "/number", os.O_RDWR | os.O_CREAT) for d in sys.argv[1:]]
n, worst = 0, 0
print("writes", flush=True)
while not stop:
    n += 1
    started = time.monotonic()
    if os.pwrite(files[n % 2], b"%015d\n" % n, 0) != 16:
        sys.exit("short write")
    os.fsync(files[n % 2])
    worst = max(worst, time.monotonic() - started)
print("wrote", n, int(worst * 1000), flush=True)
P
number() { # VOLUME SNAPSHOT: what the file had then
    local path
    path=$(ceph_cmd fs subvolume getpath hearthfs "$1" --group_name csi 2>/dev/null)
    ROOT_PATH=$(dirname "$path") # an MDS knows no name for .snap to mount
    second_client
    talk client cat ".snap/$2/$(basename "$path")/number"
    talk_end client
    [[ $ANSWER =~ ^0*([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}
start_pod() {
    spawn pod python3 "$TMP/pod.py" "${paths[@]}"
    wait_for 10 grep -q writes "$TMP/log/pod.log" || die "the pod does not write"
}
start_pod
wrong= numbers=
for i in $(seq "${ROUNDS:-5}"); do
    pending group pod-$$-$i "$a" "$b" || { wrong+="round $i: $(said); "; continue; }
    x=$(number $A "${MEMBERS[0]##*~}") y=$(number $B "${MEMBERS[1]##*~}")
    numbers+="$x/$y "
    [ "${x:-0}" -gt 0 ] && { [ $((x - y)) -eq 1 ] || [ $((y - x)) -eq 1 ]; } || wrong+="round $i: $x and $y; "
    ungroup || wrong+="round $i: $(said); "
done
same as_of_one_moment "$wrong" ""
echo "     the two files at each moment: $numbers"

# ---- the controller killed while they pause ----
for call in $(seq 9 14); do
    end controller KILL
    CONTROLLER_WITH=(env "LD_PRELOAD=$BUILD/tools/ceph-faults.so" "CEPH_FAULT=after:$call")
    start_controller --secret-dir="$TMP/own"
    CONTROLLER_WITH=()
    group killed-$$-$call "$a" "$b"
    end controller KILL
    start_controller --secret-dir="$TMP/own"
    before=$(tail -c 16 "${paths[0]}/number")
    check "writers_go_on_after_a_kill_at_call_$call" wait_for 25 eval '[ "$(tail -c 16 "${paths[0]}/number")" != "$before" ]'
    pending group killed-$$-$call "$a" "$b"
    x=$(number $A "${MEMBERS[0]##*~}") y=$(number $B "${MEMBERS[1]##*~}")
    same "repeated_it_is_of_one_moment_$call" "$CSI_CODE/$(((x - y) * (x - y)))" OK/1
    ungroup || fail ungroup "$(said)"
done
end pod TERM 20
check the_pod_saw_no_error grep -q '^wrote' "$TMP/log/pod.log"
grep '^wrote' "$TMP/log/pod.log" | sed 's/^/     the pod: writes, and the longest in ms: /'
same no_half_of_a_group_is_left "$(snapshots_of $A)$(snapshots_of $B)$(fs_records group)$(fs_records snap.)/$(audit_finds)" /

for i in 0 1; do
    VOLUME_ID=${ids[i]} STAGE=$TMP/mnt/stage$i TARGET=$TMP/mnt/pod/volume$i
    unpublish && unstage || fail unpublish "$(said)"
done
remove_volumes
exit 0
