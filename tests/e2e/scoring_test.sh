#!/bin/bash
# What the scheduler makes of capacities (layer L1): a class of a dataset of S bytes, w of which are warm
# on a node, is told there as maximum S, capacity S/(1-w). With StorageCapacityScoring on, the score is 100*w.
# The objects are written by hand, so what is tested is the mechanism that the driver builds upon.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/sidecars.sh"
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
place() { # NAME [SIZE [SECONDS]]: a pod with a claim of its own; $PLACED is its node
    claim_add "$1" dataset "${2:-$S}"
    pod_add "$1" "$1"
    PLACED=$(pod_node "$1" "${3:-20}")
}
displace() { # NAME
    pod_remove "$1"
    k delete pvc "$1" --wait=false >/dev/null
}

landed() { # NAME COUNT NODE: of so many pods, one after another, as many on the node
    local i on=0
    for ((i = 1; i <= $2; i++)); do
        place "$1$i"
        [ "$PLACED" != "$3" ] || on=$((on + 1))
        displace "$1$i"
    done
    echo $on
}

warm n1 0
warm n2 90
warm n3 50
same pods_land_where_the_dataset_is_warm "$(landed warm 20 n2)" 20
same the_score_is_the_warm_percentage "$(score warm20 n1) $(score warm20 n2) $(score warm20 n3)" "0 90 50"
warm n1 33
warm n2 67
warm n3 99
same and_follows_it_when_it_changes "$(landed change 3 n3)" 3
same by_the_formula "$(score change3 n1) $(score change3 n2) $(score change3 n3)" "33 67 99"
node_full n3
same the_next_best_when_that_node_is_full "$(landed full 5 n2)" 5
node_empty n3

# The two limits of the mechanism: claims ask for S, neither more nor less.
place more $((S + 1)) 5
same a_claim_for_more_than_the_dataset_waits "$PLACED" ""
displace more
place half $((S / 2))
same a_claim_for_less_sees_less_of_the_difference "$(score half n1) $(score half n2) $(score half n3)" "67 84 100"
displace half
# A claim that is bound has no score: that is what layers L2 and L3 are for.
place bound
pod_add second bound
pod_node second >/dev/null
same a_bound_claim_has_no_score "$(score second n1)$(score second n3)" 00
pod_remove second
displace bound

# ---- the gate off, as it is by default before 1.37
scheduler_restart
place off
case $PLACED in n[123]) pass without_the_gate_pods_are_scheduled ;; *) fail without_the_gate_pods_are_scheduled "$(k get pod off -o 'jsonpath={.status.conditions}')" ;; esac
same and_nothing_is_scored "$(grep -c 'scored node.*default/off.*plugin="VolumeBinding"' "$TMP/log/kube-scheduler.log")" 0
displace off

# Others use this Ceph too.
settles nothing_is_left 60 "" k get pv -o name
