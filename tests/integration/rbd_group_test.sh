#!/bin/bash
# Group snapshots of RBD images while another client writes to them: as of one moment, all or none,
# and without an error for the writer.
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
# The snapshot that a volume has, as the number at its start; several are an error.
number() {
    local name
    name=$(snaps "$1")
    rbd_cmd export "rbd/$1@$name" - 2>/dev/null | head -c 8 | od -An -tu8 | tr -d ' '
}

ids=() names=()
for v in a b c d; do
    create_image pvc-g$v-$$ 33554432 || die "CreateVolume: $(said)"
    ids+=("$VOLUME_ID") names+=("csi-vol-pvc-g$v-$$")
done
a=${ids[0]} b=${ids[1]} A=${names[0]} B=${names[1]}

# ---- in a group of librbd's: `rbd rm` refuses such an image, `rbd trash mv` since Ceph 19 ----
outside_again() { # NAME: the volume's image, put into a group, is not deleted; taken out of it, it is
    local image=${VOLUME_ID##*~}
    rbd_cmd group image add rbd/of-others-$$ rbd/$image || fail $1 "rbd group image add"
    delete_volume
    says $1_is_not_deleted FAILED_PRECONDITION 'take it out with `rbd group image rm`'
    same $1_is_still_there "$(info rbd/$image .name)" "$image"
    rbd_cmd group image rm rbd/of-others-$$ rbd/$image || fail $1 "rbd group image rm"
    delete_volume
    code $1_outside_of_it_is OK
}
rbd_cmd group create rbd/of-others-$$
at_exit "rbd_cmd group rm rbd/of-others-$$ 2>/dev/null"
create_image pvc-gx-$$ 33554432 || die "CreateVolume: $(said)"
outside_again a_grouped_image
create_image pvc-gy-$$ 33554432 || die "CreateVolume: $(said)"
source=$VOLUME_ID
clone pvc-gz-$$ 33554432 "$source" || die "clone: $(said)"
its_clone=$VOLUME_ID VOLUME_ID=$source
outside_again a_grouped_image_with_a_clone
VOLUME_ID=$its_clone
delete_volume
code and_its_clone_is OK
same no_group_has_an_image "$(rbd_cmd group image ls rbd/of-others-$$)" ""

# ---- with nobody writing ----
group group-$$-0 "$a" "$b"
code a_group_of_two OK
csi controller GetVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $id}' --arg id "$GROUP_ID")"
code found_without_a_secret OK
same has_two_snapshots "${#MEMBERS[@]}/$(snaps $A | wc -l)/$(snaps $B | wc -l)" 2/1/1
first=$GROUP_ID
group group-$$-0 "$a" "$b"
same again_the_same "$CSI_CODE/$GROUP_ID/$(snaps $A | wc -l)" "OK/$first/1"
restore pvc-gr-$$ 33554432 "${MEMBERS[0]}"
code its_snapshots_can_be_restored OK
delete_volume
ungroup
same deleting_it "$CSI_CODE/$(snaps $A)$(snaps $B)" OK/

# As one that an administrator has given to Kubernetes by its handle, which has no class.
group group-$$-unclassed "$a" "$b"
csi controller DeleteVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $id, snapshot_ids: $ids}' --arg id "$GROUP_ID" \
    --argjson ids "$(jq -cn '$ARGS.positional' --args "${MEMBERS[@]}")")"
same deleted_without_a_secret "$CSI_CODE/$(snaps $A)$(snaps $B)" OK/

# ---- against a writer ----
talk_start writer "$BUILD/tools/rbd-client" "$CEPH_CONF" rbd "" "${names[@]}" || die "the writer does not start"
rounds=${ROUNDS:-8} wrong=
talk writer count 0
printf 'count %d\n' 20000 >&"${TALK_IN[writer]}"
for i in $(seq "$rounds"); do
    group group-$$-$i "${ids[@]}" || { wrong+="round $i: $(said); "; continue; }
    # Four writes in a row, one in each.
    seen=$(for n in "${names[@]}"; do number $n; done | sort -n)
    [ "$seen" = "$(seq "$(head -n 1 <<<"$seen")" "$(($(head -n 1 <<<"$seen") + 3))")" ] || wrong+="round $i: ${seen//$'\n'/ }; "
    ungroup || wrong+="round $i: $(said); "
done
same as_of_one_moment "$wrong" ""
IFS= read -r -t 60 -u "${TALK_OUT[writer]}" ANSWER
read -r ok count worst <<<"$ANSWER"
[ "$ok" = ok ] && [ "$count" -gt 100 ] && pass the_writer_saw_no_error || fail the_writer_saw_no_error "$ANSWER"
[ "${worst:-99999}" -lt 5000 ] && pass and_waited_little || fail and_waited_little "$worst ms"

# ---- all or none ----
create_image pvc-gx-$$ 33554432 '{"imageFeatures": "layering"}'
rbd_cmd feature disable rbd/csi-vol-pvc-gx-$$ exclusive-lock
c=$VOLUME_ID
group group-$$-c "$a" "$c"
says an_image_without_the_lock FAILED_PRECONDITION "csi-vol-pvc-gx-$$ has no exclusive-lock"
same has_no_snapshots "$(snaps $A)$(snaps csi-vol-pvc-gx-$$)" ""
rbd_cmd feature enable rbd/csi-vol-pvc-gx-$$ exclusive-lock
group group-$$-c "$a" "$c"
code with_the_lock OK
ungroup
talk_end writer

# ---- against a pod that writes to two devices of a node ----
start_hearthd
start_node
CAPABILITY='{block: {}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
for i in 0 1; do
    VOLUME_ID=${ids[i]} VOLUME_CONTEXT=$(jq -cn --arg c "$CEPH_FSID" --arg n "${names[i]}" '{type: "rbd", clusterID: $c, pool: "rbd", imageName: $n}')
    STAGE=$TMP/mnt/stage$i TARGET=$TMP/mnt/pod/volume$i
    stage && publish || die "publish: $(said)"
done
cat >"$TMP/pod.py" <<'P'
import mmap, os, signal, struct, sys
stop = []
signal.signal(signal.SIGTERM, lambda *a: stop.append(1))
devices = [os.open(d, os.O_RDWR | os.O_DIRECT) for d in sys.argv[1:]]
sector = mmap.mmap(-1, 4096)
n = 0
print("writes", flush=True)
while not stop:
    n += 1
    sector[:8] = struct.pack("<Q", n)
    if os.pwrite(devices[n % 2], sector, 0) != 4096:
        sys.exit("short write")
print("wrote", n, flush=True)
P
spawn pod python3 "$TMP/pod.py" "$TMP/mnt/pod/volume0" "$TMP/mnt/pod/volume1"
wait_for 10 grep -q writes "$TMP/log/pod.log" || die "the pod does not write"
wrong=
for i in $(seq "$rounds"); do
    group pod-$$-$i "$a" "$b" || { wrong+="round $i: $(said); "; continue; }
    x=$(number $A) y=$(number $B)
    [ "${x:-0}" -gt 0 ] && { [ $((x - y)) -eq 1 ] || [ $((y - x)) -eq 1 ]; } || wrong+="round $i: $x and $y; "
    ungroup || wrong+="round $i: $(said); "
done
same as_of_one_moment_through_hearthd "$wrong" ""
end pod TERM 10
check the_pod_saw_no_error grep -qx 'wrote [0-9]*' "$TMP/log/pod.log"
same no_pause_is_left "$(rbd_cmd image-meta get rbd/$A hearth.paused 2>/dev/null)" ""
for i in 0 1; do
    VOLUME_ID=${ids[i]} STAGE=$TMP/mnt/stage$i TARGET=$TMP/mnt/pod/volume$i
    unpublish && unstage || fail unpublish "$(said)"
done

for VOLUME_ID in "${ids[@]}" "$c"; do
    delete_volume || fail delete "$(said)"
done
same nothing_is_left "$(left)" ""
