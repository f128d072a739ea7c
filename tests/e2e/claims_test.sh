#!/bin/bash
# A claim's way through Kubernetes: the scheduler chooses a node by what external-provisioner was told of
# capacities, the provisioner has our controller make the volume, and deleting the claim deletes it.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/sidecars.sh"
. "$(dirname "$0")/../integration/types.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
cluster_up
driver_add

use_type cephfs
class_add files
node_add n1 a
node_add n2 b
node_add n3 b
provisioner_up "$CONTROLLER" --enable-capacity --capacity-poll-interval=5s

# ---- capacities
capacities() { k get csistoragecapacities -n hearth -o json | jq -r '[.items[] | select(.storageClassName == "files") |
    .nodeTopology.matchLabels["topology.csi.hearth.dev/node"]] | sort | join(" ")'; }
settles a_capacity_for_each_node 30 "n1 n2 n3" capacities
same of_what_the_pool_can_take "$(k get csistoragecapacities -n hearth -o json |
    jq '[.items[].capacity | rtrimstr("Ki") | rtrimstr("Mi") | rtrimstr("Gi") | tonumber > 0] | all')" true

# ---- a claim that waits for its pod
claim_add data files 1Gi
sleep 1
same a_claim_without_a_pod_waits "$(field pvc data .status.phase)/$(provisioner_calls CreateVolume)" Pending/
pod_add reader data
node=$(pod_node reader)
case $node in n[123]) pass its_pod_is_scheduled ;; *) fail its_pod_is_scheduled "$(k get pod reader -o 'jsonpath={.status.conditions}')" ;; esac
settles and_the_claim_is_bound 30 Bound field pvc data .status.phase
volume=$(field pvc data .spec.volumeName)
same by_a_volume_in_ceph "$(objects "$volume")" "csi-vol-$volume"
same of_the_size_asked_for "$(bytes_of "$volume")" 1073741824
same the_driver_is_told_the_node_chosen "$(provisioner_calls CreateVolume | jq -c '.accessibility_requirements |
    [.requisite, .preferred] | map(map(.segments["topology.csi.hearth.dev/node"]))')" "[[\"$node\"],[\"$node\"]]"
same it_is_not_tied_to_a_node "$(field pv "$volume" .spec.nodeAffinity)" ""
same nor_does_it_carry_the_secret "$(k get pv "$volume" -o json | grep -cF -- "$PROVISIONER_KEY")" 0

# ---- a node that is full
node_full n1
node_full n2
for i in 1 2 3; do
    pod_add more-$i data
    same "a_full_node_is_avoided_$i" "$(pod_node more-$i)" n3
    pod_remove more-$i
done
node_empty n1
node_empty n2

# ---- the API server goes and comes back
apiserver_restart KILL
claim_add later files 1Gi
pod_add later later
case $(pod_node later) in n[123]) pass scheduled_after_the_api_server_came_back ;; *) fail scheduled_after_the_api_server_came_back ;; esac
settles and_bound 60 Bound field pvc later .status.phase
later=$(field pvc later .spec.volumeName)

# ---- the end of a claim
pod_remove reader
pod_remove later
claim_remove data
claim_remove later
left() { objects "$volume"; records "$volume"; objects "$later"; records "$later"; }
settles deleting_the_claim_deletes_volume_and_record 60 "" left
settles and_the_object 30 "" k get pv -o name
