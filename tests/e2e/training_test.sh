#!/bin/bash
# The main job, by real kubelets: a dataset is written in a pod and snapshotted, a training job reads it cold through
# Hearth on a real Ceph, the next ones are scheduled to where it is warm, by a claim of their own or by one that is
# bound, and fetch nothing. What pods used is gone with them, also when they are killed; plugin, kubelets and the API
# server restart while a pod reads.
#   ROUNDS=3     datasets, cold on each node in turn
. "$(dirname "$0")/../integration/lib.sh"
for part in cluster objects hearth sidecars kubelets pods; do . "$(dirname "$0")/$part.sh"; done
ROUNDS=${ROUNDS:-3}
init
hearth_up n1 n2
snapshots_up "$CONTROLLER"
snapshot_class_add
echo "     a cluster of two kubelets with Hearth in $SECONDS s"
for node in n1 n2; do
    same "the_plugin_registers_itself_on_$node" "$(field csinode $node '.spec.drivers[*].topologyKeys') $(field node $node '.metadata.labels.topology\.csi\.hearth\.dev/node')" "[\"topology.csi.hearth.dev/node\"] $node"
    settles "its_tier_is_a_label_on_$node" 60 nvme field node $node '.metadata.labels.topology\.csi\.hearth\.dev/tier'
done
# What kubelet refuses ends, and is registered when it begins anew.
end plugin-n2
settles a_plugin_that_ends_is_forgotten 30 "" field csinode n2 '.spec.drivers[*].name'
plugin_start n2 --kubelet-registration-path=$CSI_DIR/other.sock
wait_for 30 eval '! running plugin-n2' && pass refused_it_ends || fail refused_it_ends "it runs on"
grep -q "kubelet does not register.*other.sock: connect: no such file.*--kubelet-registration-path" "$TMP/log/plugin-n2.log" &&
    pass and_says_why || fail and_says_why "$(tail -n 1 "$TMP/log/plugin-n2.log")"
plugin_start n2
settles begun_anew_it_is_registered 30 $DRIVER field csinode n2 '.spec.drivers[*].name'
class_add files "$STAGE_SECRET"
claim_add source files 1Gi
USED_BEFORE=$(used_all)

# What Ceph has, by its own client.
ceph_mount() {
    mkdir -p "$TMP/mnt/ceph"
    ceph-fuse -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin --client_fs hearthfs "$TMP/mnt/ceph" >"$TMP/log/ceph-fuse.log" 2>&1 || die "ceph-fuse: $(tail -n 2 "$TMP/log/ceph-fuse.log")"
    at_exit "umount -l '$TMP/mnt/ceph'"
}
sums_of() { (out=; eval "$IN_SCRIPTS" && sums "$1"); }
ceph_mount

other() { [ "$1" = n1 ] && echo n2 || echo n1; }
label_of() { k get node "$1" -o json | jq -r --arg l "warm.csi.hearth.dev/$KEY" '.metadata.labels[$l] // ""'; }
capacity_of() { # CLASS NODE
    local quantity
    quantity=$(k get csistoragecapacities -n hearth -o json | jq -r --arg c "$1" --arg n "$2" '[.items[] | select(.storageClassName == $c and
        .nodeTopology.matchLabels["topology.csi.hearth.dev/node"] == $n) | .capacity] | first // empty')
    [ -z "$quantity" ] || numfmt --from=auto <<<"$quantity"
}
warm_capacity() { [ "$(capacity_of "$1" "$2")" -gt $((50 * S)) ]; }

# ---- rounds
WRITE='mkdir -p /data/train && cd /data/train && rm -rf * && for i in $(seq 16); do dd if=/dev/urandom of=part$i bs=1M count=2 2>/dev/null || exit 1; done
for i in $(seq 200); do dd if=/dev/urandom of=small$i bs=20k count=1 2>/dev/null || exit 1; done; cd / && sync && sums >$out'
READ='sums >$out'
S=$((16 * (2 << 20) + 200 * 20480))
for ((round = 1; round <= ROUNDS; round++)); do
    node=n$((1 + round % 2))
    # Elsewhere, for what is written and read on a node is kept there, and is the same in a snapshot.
    job_add "write$round" source "$WRITE" "$(on "$(other $node)")"
    job_done "write$round" && pass "a_pod_writes_dataset_$round" || fail "a_pod_writes_dataset_$round" "$SAID"
    wrote=$SAID
    job_remove "write$round"
    snapshot_add "v$round" source
    subvolume=csi-vol-$(field pvc source .spec.volumeName) snapshot=csi-snap-snapshot-$(field volumesnapshot "v$round" .metadata.uid)
    path=$(echo "$TMP/mnt/ceph/volumes/csi/$subvolume/.snap/$snapshot"/*)
    same "what_it_wrote_is_in_ceph_$round" "$(sums_of "$path")" "$wrote"
    KEY=$(printf '%s\0%s\0/volumes/csi/%s/.snap/%s\0' "$CEPH_FSID" hearthfs "$subvolume" "$snapshot" | sha256sum | head -c 16)
    class_add "models$round" "$(jq -c --arg d "$subvolume@$snapshot" '. + {dataset: $d}' <<<"$STAGE_SECRET")"

    # Cold, on the node whose turn it is.
    claim_add "cold$round" "models$round" $S '{"accessModes": ["ReadOnlyMany"]}'
    before=$(stat_of $node originBytes)
    job_add "cold$round" "cold$round" "$READ" "$(on $node)"
    job_done "cold$round" || fail "a_job_reads_it_cold_$round" "$SAID"
    same "cold_it_reads_what_ceph_has_$round" "$SAID" "$wrote"
    fetched=$(($(stat_of $node originBytes) - before))
    echo "     $fetched bytes of $S fetched on $node"
    [ $fetched -ge $S ] && pass "which_was_fetched_$round" || fail "which_was_fetched_$round" "$fetched bytes of $S"
    job_remove "cold$round"
    unused "nothing_is_left_of_it_$round"
    settles "the_node_is_labelled_$round" 60 100 label_of $node
    within 30 warm_capacity "models$round" $node || fail "its_capacity_says_warm_$round" "$(capacity_of "models$round" $node) of $S"

    # Warm, wherever the scheduler wants it.
    before=$(stat_of n1 originBytes)/$(stat_of n2 originBytes)
    claim_add "warm$round" "models$round" $S '{"accessModes": ["ReadOnlyMany"]}'
    job_add "warm$round" "warm$round" "$READ"
    job_done "warm$round" || fail "the_next_job_reads_it_$round" "$SAID"
    same "a_job_with_a_claim_of_its_own_runs_where_it_is_warm_$round" "$RAN_ON" $node
    same "and_reads_the_same_$round" "$SAID" "$wrote"
    # The claim of before is bound: a hint, and nothing in the pod, leads it there.
    settles "a_bound_claim_has_a_hint_$round" 30 "warm.csi.hearth.dev/$KEY" field datasethint "cold$round" .spec.label
    job_add "bound$round" "cold$round" "$READ"
    job_done "bound$round" || fail "the_last_job_reads_it_$round" "$SAID"
    same "a_job_with_a_bound_claim_too_$round" "$RAN_ON" $node
    same "and_it_reads_the_same_$round" "$SAID" "$wrote"
    same "nothing_was_fetched_for_either_$round" "$(stat_of n1 originBytes)/$(stat_of n2 originBytes)" "$before"
    job_remove "warm$round"
    job_remove "bound$round"
    unused "nothing_is_left_of_them_$round"
done

# By a PersistentVolume that an administrator wrote, it is the same dataset.
jq -n --arg driver $DRIVER --arg fsid "$CEPH_FSID" --arg d "$subvolume@$snapshot" --arg s $S '
    {accessModes: ["ReadOnlyMany"], storageClassName: ""} as $both |
    {apiVersion: "v1", kind: "PersistentVolume", metadata: {name: "static"}, spec: ($both + {capacity: {storage: $s},
        persistentVolumeReclaimPolicy: "Retain", claimRef: {namespace: "default", name: "static"},
        csi: {driver: $driver, volumeHandle: "static", readOnly: true, nodeStageSecretRef: {name: "node", namespace: "hearth"},
            volumeAttributes: {staticVolume: "true", clusterID: $fsid, fsName: "hearthfs", dataset: $d}}})},
    {apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: {name: "static"},
        spec: ($both + {volumeName: "static", resources: {requests: {storage: $s}}})}' | k create -f - >/dev/null
settles a_static_claim_has_a_hint 30 "warm.csi.hearth.dev/$KEY" field datasethint static .spec.label
before=$(stat_of n1 originBytes)/$(stat_of n2 originBytes)
job_add static static "$READ"
job_done static || fail a_job_with_a_static_claim "$SAID"
same a_job_with_a_static_claim_runs_there_too "$RAN_ON" $node
same and_reads_the_same "$SAID" "$wrote"
same without_fetching "$(stat_of n1 originBytes)/$(stat_of n2 originBytes)" "$before"
job_remove static
k delete pvc,pv static --timeout=60s >/dev/null
unused nothing_is_left_of_the_static_one

# ---- while a pod reads
claim=cold$ROUNDS
AGAIN='until=$(($(date +%s) + 40)) rounds=0
while [ $(date +%s) -lt $until ]; do [ "$(sums)" = WANTED ] || { echo "other bytes" >$out; exit 1; }; rounds=$((rounds + 1)); done; echo $rounds rounds >$out'
job_add reader "$claim" "${AGAIN/WANTED/$wrote}" "$(on $node)"
within 30 job_runs reader >/dev/null || fail reader "it does not run"
sleep 2
end "plugin-$node" KILL
plugin_start $node
settles killed_the_plugin_registers_again 30 "$DRIVER $node" k get csinode $node -o 'jsonpath={.spec.drivers[*].name} {.spec.drivers[*].nodeID}'
end "plugin-$node"
same ended_it_takes_its_socket_along "$(ls "$(node_dir $node)/kubelet/plugins_registry")" ""
settles and_kubelet_forgets_it 30 "" field csinode $node '.spec.drivers[*].name'
plugin_start $node
settles begun_again_it_is_registered 30 "$DRIVER" field csinode $node '.spec.drivers[*].name'
kubelet_restart $node KILL
apiserver_restart KILL
settles a_kubelet_that_was_killed_finds_it 30 ready eval "kubelet_ready $node >/dev/null && registered $node && echo ready"
kubelet_restart $node
settles one_that_was_restarted_too 30 ready eval "kubelet_ready $node >/dev/null && registered $node && echo ready"
job_done reader 120 && pass "a_pod_reads_on_meanwhile" || fail a_pod_reads_on_meanwhile "$SAID"
echo "     read $SAID"
job_remove reader
unused nothing_is_left_after_restarts

# ---- killed while it reads what is cold
ctl $node evict --all >/dev/null
for how in "--grace-period=0 --force" "--grace-period=1"; do
    job_add killed "$claim" 'while :; do sums; done' "$(on $node)"
    within 30 job_runs killed >/dev/null || fail killed "it does not run"
    k delete pods -l job-name=killed $how >/dev/null 2>&1
    k delete job killed --cascade=foreground --timeout=60s >/dev/null
    unused "nothing_is_left_of_a_pod_killed${how//[^a-z]/_}"
    ctl $node evict --all >/dev/null
done
kubelet_restart $node KILL
sleep 3
unused nor_does_a_restarted_kubelet_make_any

# ---- gone
for ((round = 1; round <= ROUNDS; round++)); do
    k delete pvc "cold$round" "warm$round" --timeout=60s >/dev/null
    snapshot_remove "v$round"
done
claim_remove source
settles volumes_are_gone_with_their_claims 60 "" k get pv -o name
same nothing_is_left_in_ceph "$(ceph_cmd fs subvolume ls hearthfs --group_name csi --format json | jq -r '.[].name')" ""
