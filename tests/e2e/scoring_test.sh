#!/bin/bash
# What the scheduler makes of capacities (layer L1): a class of a dataset of S bytes, w of which are warm
# on a node, is told there as maximum S, capacity S/(1-w). With StorageCapacityScoring on, the score is 100*w.
# The objects are written by hand, so what is tested is the mechanism that the driver builds upon.
. "$(dirname "${BASH_SOURCE[0]}")/../integration/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
. "$(dirname "${BASH_SOURCE[0]}")/objects.sh"
. "$(dirname "${BASH_SOURCE[0]}")/sidecars.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
SCHEDULER_V=10
cluster_up StorageCapacityScoring=true
driver_add
class_add dataset
provisioner_up "$CONTROLLER"
node_add n1
node_add n2
node_add n3
S=$((100 << 30))

warm() { # NODE PERCENT
    capacity_set "dataset-$1" dataset "$1" $((S * 100 / (100 - $2))) $S
}
# Scores are logged as the scheduler works, node by node.
score() { # POD NODE [PLUGIN]
    sed -n "s/.*\"Plugin scored node for pod\".* pod=\"default\/$1\" plugin=\"${3:-VolumeBinding}\" node=\"$2\" score=\([0-9]*\).*/\1/p" \
        "$TMP/log/kube-scheduler.log" | tail -n 1
}
place() { # NAME [SIZE]: a pod with a claim of its own; $PLACED is its node
    claim_add "$1" dataset "${2:-$S}"
    pod_add "$1" "$1"
    PLACED=$(pod_node "$1" 20)
}
displace() { # NAME
    pod_remove "$1"
    k delete pvc "$1" --wait=false >/dev/null
}

warm n1 0
warm n2 90
warm n3 50
landed=0
for i in $(seq 20); do
    place "p$i"
    [ "$PLACED" != n2 ] || landed=$((landed + 1))
    displace "p$i"
done
same pods_land_where_the_dataset_is_warm $landed 20
same the_score_is_the_warm_percentage "$(score p20 n1) $(score p20 n2) $(score p20 n3)" "0 90 50"
