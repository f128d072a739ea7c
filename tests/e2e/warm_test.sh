#!/bin/bash
# Pods go where their dataset is warm, with the real scheduler: what hearthd holds is told by the node's
# plugin (NodeCache), becomes labels of the node and capacities of the class, and so the scores.
#   ROUNDS=20     pods of each kind
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/sidecars.sh"
. "$(dirname "$0")/hearth.sh"
ROUNDS=${ROUNDS:-20}
init
start_ceph
own_user
SCHEDULER_V=10
cluster_up StorageCapacityScoring=true
driver_add
for node in n1 n2 n3; do node_add $node; done
hearth_add
k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
start_controller --secret-dir="$TMP/own" --warmth --kubeconfig="$PKI/controller.conf"
start_hearthd
plugin_up() { # of node n2, this machine
    kubeconfig_for hearth hearth-node "$TMP/node.conf" n2 || die "no token for the node"
    start_node --node-id=n2 --warmth --kubeconfig="$TMP/node.conf"
}
plugin_up

# ---- a dataset of 64 MiB, whole on n2
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
create_volume "pvc-source-$$" 1073741824 || die "CreateVolume: $(said)"
SOURCE_ID=$VOLUME_ID
at_exit 'VOLUME_ID=$SOURCE_ID delete_volume'
stage && publish || die "$(said)"
for i in $(seq 32); do head -c $((2 << 20)) /dev/urandom >"$TARGET/file$i"; done
sync -f "$TARGET"
unpublish && unstage || die "$(said)"
SUBVOLUME=csi-vol-pvc-source-$$
ceph_cmd fs subvolume snapshot create hearthfs "$SUBVOLUME" v1 --group_name csi
at_exit 'ceph_cmd fs subvolume snapshot rm hearthfs $SUBVOLUME v1 --group_name csi'
S=$((64 << 20))
ROOT_PATH=$(ceph_cmd fs subvolume getpath hearthfs "$SUBVOLUME" --group_name csi)
KEY=$(printf '%s\0%s\0/volumes/csi/%s/.snap/v1\0' "$CEPH_FSID" hearthfs "$SUBVOLUME" | sha256sum | head -c 16)
LABEL=warm.csi.hearth.dev/$KEY
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
VOLUME_ID=dataset/here~$$ ROOT_PATH=
VOLUME_CONTEXT=$(jq -cn --arg d "$SUBVOLUME@v1" --arg c "$CEPH_FSID" \
    '{staticVolume: "true", clusterID: $c, fsName: "hearthfs", dataset: $d}')
stage && publish || die "$(said)"
at_exit 'unpublish && unstage'

label() { k get node "${1:-n2}" -o json | jq -r --arg l "$LABEL" '.metadata.labels[$l] // ""'; }
all_labels() { k get nodes -o json | jq -r '[.items[].metadata.labels | keys[] | select(startswith("warm.csi.hearth.dev/"))] | length'; }
reported() { k get nodecache n2 -o json | jq -r --arg k "$KEY" '.status.datasets[] | select(.id == $k) | .percent'; }
settles the_node_reports_its_cache 20 ok field nodecache n2 .status.cache.disk
settles a_dataset_that_is_cold_is_reported_so 20 0 reported
same and_gives_no_label "$(all_labels)" 0
hearthctl warm "$VOLUME_ID" >/dev/null 2>&1 || die "cannot warm"
SECONDS=0
settles warmed_it_is_reported 35 100 reported
settles and_labelled 35 100 label
echo "     label $SECONDS s after the change"
[ $SECONDS -le 35 ] && pass within_35_s || fail within_35_s "$SECONDS s"
same no_other_node_is "$(all_labels)" 1
case $(k get nodecache n2) in *DISK*WARM*n2*ok*1/1*) pass kubectl_shows_it ;; *) fail kubectl_shows_it "$(k get nodecache)" ;; esac

# ---- claims that are not bound (L1)
class_add models "{\"dataset\": \"$SUBVOLUME@v1\"}"
provisioner_up "$CONTROLLER" --enable-capacity --capacity-poll-interval=2s
bytes() { # of "123", "4Ki"
    numfmt --from=auto <<<"$1"
}
capacity() { # NODE
    local quantity
    quantity=$(k get csistoragecapacities -n hearth -o json | jq -r --arg n "$1" '.items[] | select(.storageClassName == "models" and
        .nodeTopology.matchLabels["topology.csi.hearth.dev/node"] == $n) | .capacity')
    [ -z "$quantity" ] || bytes "$quantity"
}
settles a_cold_node_has_the_capacity_of_the_dataset 30 $S capacity n1
near() { # BYTES OF
    local got
    got=$(capacity n2)
    [ -n "$got" ] && [ $((got - $1)) -ge $((-$1 / 100)) ] && [ $((got - $1)) -le $(($1 / 100)) ] && echo near || echo "$got"
}
settles a_warm_one_a_hundred_times_that 30 near near $((S * 100))
score() { # POD NODE PLUGIN
    sed -n "s/.*\"Plugin scored node for pod\".* pod=\"default\/$1\" plugin=\"$3\" node=\"$2\" score=\([0-9]*\).*/\1/p" \
        "$TMP/log/kube-scheduler.log" | tail -n 1
}
place() { # NAME: a pod with a claim of its own; $PLACED is its node
    claim_add "$1" models $S '{"accessModes": ["ReadOnlyMany"]}'
    pod_add "$1" "$1"
    PLACED=$(pod_node "$1" 20)
}
displace() {
    pod_remove "$1"
    k delete pvc "$1" --wait=false >/dev/null
}
landed() { # NAME COUNT: where so many pods went, one after another
    local i
    for ((i = 1; i <= $2; i++)); do
        place "$1$i"
        echo "$PLACED"
        displace "$1$i"
    done | sort | uniq -c | awk '{print $2 ":" $1}' | xargs
}
same pods_land_where_the_dataset_is_warm "$(landed warm "$ROUNDS")" "n2:$ROUNDS"
same the_score_is_the_warm_percentage "$(score "warm$ROUNDS" n1 VolumeBinding) $(score "warm$ROUNDS" n2 VolumeBinding) $(score "warm$ROUNDS" n3 VolumeBinding)" "0 99 0"
node_full n2
full=$(landed full "$ROUNDS")
case $full in *n2*) fail pods_go_elsewhere_when_it_is_full "$full" ;; *) pass pods_go_elsewhere_when_it_is_full ;; esac
same all_of_them "$(tr ' ' '\n' <<<"$full" | cut -d: -f2 | paste -sd+ | bc)" "$ROUNDS"
node_empty n2

# ---- a claim that is bound: the label alone (L2)
place bound
prefer="{\"affinity\": {\"nodeAffinity\": {\"preferredDuringSchedulingIgnoredDuringExecution\": [{\"weight\": 100,
    \"preference\": {\"matchExpressions\": [{\"key\": \"$LABEL\", \"operator\": \"In\", \"values\": [\"75\", \"100\"]}]}}]}}}"
landed_bound() { # COUNT
    local i
    for ((i = 1; i <= $1; i++)); do
        pod_add "again$i" bound "$prefer"
        echo "$(pod_node "again$i" 20)"
        pod_remove "again$i"
    done | sort | uniq -c | awk '{print $2 ":" $1}' | xargs
}
same pods_of_a_bound_claim_follow_the_label "$(landed_bound "$ROUNDS")" "n2:$ROUNDS"
node_full n2
full=$(landed_bound "$ROUNDS")
case $full in *n2*) fail and_go_elsewhere_when_it_is_full "$full" ;; *) pass and_go_elsewhere_when_it_is_full ;; esac
node_empty n2
displace bound

# ---- half of it is evicted
hearthctl evict dataset-"$(hearthctl datasets --json | jq -r '.[0].dataset')" --bytes $((S / 2)) >/dev/null || fail evict "failed"
settles half_of_it_is_reported 35 50 reported
settles and_labelled_half 95 50 label
settles its_capacity_follows 30 near near $((S * 2))
place half1
same its_score_follows "$PLACED $(score half1 n2 VolumeBinding)" "n2 50"
displace half1
# Nothing is written when nothing crossed an edge.
version=$(field node n2 .metadata.resourceVersion)
hearthctl evict dataset-"$(hearthctl datasets --json | jq -r '.[0].dataset')" --bytes 1 >/dev/null
settles one_file_less_is_reported 35 46 reported
sleep 35
same a_label_stays_while_no_edge_is_crossed "$(label)" 50
same and_the_node_is_not_written "$(field node n2 .metadata.resourceVersion)" "$version"

# ---- restarts
end hearthd KILL
start_hearthd
wait_for 20 csi node Probe '{}'
end controller
start_controller --secret-dir="$TMP/own" --warmth --kubeconfig="$PKI/controller.conf"
sleep 3
same labels_outlive_restarts "$(label)" 50
apiserver_restart KILL
settles and_an_api_server\'s 40 50 label

# ---- the plugin is gone
end node
SECONDS=0
settles without_a_plugin_the_label_goes 130 "" label
echo "     gone after $SECONDS s"
[ $SECONDS -ge 60 ] && pass not_before_its_time || fail not_before_its_time "$SECONDS s"
provisioner_down
provisioner_up "$CONTROLLER" --enable-capacity --capacity-poll-interval=2s
settles and_it_attracts_nobody 30 $S capacity n2
plugin_up
settles back_it_is_warm_again 40 46 reported
settles and_has_its_label 40 25 label
k delete nodecache n2 >/dev/null
settles a_NodeCache_that_is_deleted_is_made_again 40 46 reported

# ---- uninstalled
end node
end controller
same cleanup_tells_what_it_did "$("$BUILD/hearth-csi" cleanup --kubeconfig="$PKI/admin.conf" 2>&1)" \
    "3 nodes freed of labels, 1 NodeCaches and 0 DatasetHints deleted"
same no_label_is_left "$(all_labels)" 0
same no_resource_is_left "$(k get nodecaches,datasethints -A -o name)" ""
same nothing_is_left_to_do "$("$BUILD/hearth-csi" cleanup --kubeconfig="$PKI/admin.conf" 2>&1)" \
    "0 nodes freed of labels, 0 NodeCaches and 0 DatasetHints deleted"
