# Sourced after cluster.sh: nodes, classes, claims and pods, as objects.
#
#   node_add NAME [ZONE]          a Node that is ready, of 8 CPUs, and its CSINode with our driver
#   nodes_add PREFIX COUNT        PREFIX1 ... of no zone, in one go
#   node_full NAME; node_empty NAME    with a pod that asks for all its CPUs, and without
#   node_remove NAME
#   class_add NAME [PARAMETERS-JSON]   of our driver, WaitForFirstConsumer; parameters beside $CLASS's
#   claim_add NAME CLASS SIZE [SPEC-JSON]     ReadWriteMany, unless SPEC says else
#   pod_add NAME CLAIM [SPEC-JSON]     a pod that uses it; SPEC is merged into its own
#   pod_node NAME [SECONDS]       waits until it is scheduled, prints where
#   pod_remove NAME; claim_remove NAME [SECONDS]
#   capacity_set NAME CLASS NODE CAPACITY [MAXIMUM]      a CSIStorageCapacity of that node, in bytes
#   field KIND NAME JSONPATH      of an object; nothing when there is none
#
# A pod has no kubelet to end it, so it is removed by force.

DRIVER=csi.hearth.dev
TOPOLOGY=topology.csi.hearth.dev

field() { k get "$1" "$2" --ignore-not-found -o "jsonpath={$3}"; }

# ---- nodes

# Stands for a kubelet: what it would write when it registers, and when a driver registers with it.
node_objects() { # reads lines of NAME [ZONE]
    jq -R --arg driver $DRIVER --arg topology $TOPOLOGY '[splits(" +") | select(. != "")] | . as [$name, $zone] |
        ({"\($topology)/tier": "nvme", "\($topology)/node": $name} +
            if $zone then {"\($topology)/zone": $zone} else {} end) as $segments |
        {cpu: "8", memory: "32Gi", pods: "110", "ephemeral-storage": "100Gi"} as $room |
        {apiVersion: "v1", kind: "Node",
         metadata: {name: $name, labels: ($segments + {"kubernetes.io/hostname": $name, "kubernetes.io/os": "linux"} +
             if $zone then {"topology.kubernetes.io/zone": $zone} else {} end)},
         status: {capacity: $room, allocatable: $room,
             conditions: [{type: "Ready", status: "True", reason: "KubeletReady", lastHeartbeatTime: (now | todate),
                 lastTransitionTime: (now | todate)}]}},
        {apiVersion: "storage.k8s.io/v1", kind: "CSINode", metadata: {name: $name},
         spec: {drivers: [{name: $driver, nodeID: $name, topologyKeys: ["\($topology)/node"]}]}}' |
        jq -s '{apiVersion: "v1", kind: "List", items: .}'
}
# A new node is tainted until the controller manager has seen that it is ready.
untainted() { ! k get nodes -o 'jsonpath={.items[*].spec.taints[*].key}' | grep .; }
nodes_ready() { within "${1:-30}" untainted || die "nodes stay tainted"; }

node_add() { # NAME [ZONE]
    node_objects <<<"$*" | k create -f - >/dev/null && nodes_ready
}
nodes_add() { # PREFIX COUNT
    seq -f "$1%.0f" "$2" | node_objects | k create -f - >/dev/null && nodes_ready 120
}
node_remove() { k delete node,csinode "$1" --ignore-not-found --wait=false >/dev/null; }

# It is bound already, so the scheduler does not choose, only count.
node_full() {
    jq -n --arg node "$1" '{apiVersion: "v1", kind: "Pod", metadata: {name: "fills-\($node)"},
        spec: {nodeName: $node, tolerations: [{operator: "Exists"}], terminationGracePeriodSeconds: 0,
            containers: [{name: "fills", image: "none", resources: {requests: {cpu: "8"}}}]}}' | k create -f - >/dev/null
}
node_empty() { pod_remove "fills-$1"; }

# ---- storage

# What the Helm chart makes once for a cluster: the driver as an object, and the user's Secret.
driver_add() {
    k create namespace hearth >/dev/null
    jq -n --arg driver $DRIVER '{apiVersion: "storage.k8s.io/v1", kind: "CSIDriver", metadata: {name: $driver},
        spec: {attachRequired: false, podInfoOnMount: true, storageCapacity: true, fsGroupPolicy: "File"}}' | k create -f - >/dev/null
    csi_json '{apiVersion: "v1", kind: "Secret", metadata: {name: "provisioner", namespace: "hearth"}, stringData: $secrets}' |
        k create -f - >/dev/null
}

class_add() { # NAME [PARAMETERS-JSON]
    jq -n --arg name "$1" --arg driver $DRIVER --argjson class "$CLASS" --argjson parameters "${2:-"{}"}" '
        {apiVersion: "storage.k8s.io/v1", kind: "StorageClass", metadata: {name: $name}, provisioner: $driver,
         volumeBindingMode: "WaitForFirstConsumer", reclaimPolicy: "Delete", allowVolumeExpansion: true,
         parameters: ($class + {
             "csi.storage.k8s.io/provisioner-secret-name": "provisioner",
             "csi.storage.k8s.io/provisioner-secret-namespace": "hearth",
             "csi.storage.k8s.io/controller-expand-secret-name": "provisioner",
             "csi.storage.k8s.io/controller-expand-secret-namespace": "hearth"} + $parameters)}' | k create -f - >/dev/null
}

claim_add() { # NAME CLASS SIZE [SPEC-JSON]
    jq -n --arg name "$1" --arg class "$2" --arg size "$3" --argjson spec "${4:-"{}"}" '
        {apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: {name: $name},
         spec: ({storageClassName: $class, accessModes: ["ReadWriteMany"], resources: {requests: {storage: $size}}} + $spec)}' |
        k create -f - >/dev/null
}
claim_remove() { # NAME [SECONDS]
    k delete persistentvolumeclaim "$1" --timeout="${2:-60}s" >/dev/null
}

# By hand, where external-provisioner does not run with --enable-capacity.
capacity_set() { # NAME CLASS NODE CAPACITY [MAXIMUM]
    jq -n --arg name "$1" --arg class "$2" --arg node "$3" --arg capacity "$4" --arg maximum "${5:-}" --arg key "$TOPOLOGY/node" '
        {apiVersion: "storage.k8s.io/v1", kind: "CSIStorageCapacity", metadata: {name: $name, namespace: "hearth"},
         storageClassName: $class, nodeTopology: {matchLabels: {($key): $node}}, capacity: $capacity} +
        if $maximum == "" then {} else {maximumVolumeSize: $maximum} end' | k apply -f - >/dev/null
}

# ---- pods

pod_add() { # NAME CLAIM [SPEC-JSON]
    jq -n --arg name "$1" --arg claim "$2" --argjson spec "${3:-"{}"}" '
        {apiVersion: "v1", kind: "Pod", metadata: {name: $name, labels: {app: $name}}, spec: ({
            terminationGracePeriodSeconds: 0,
            containers: [{name: "main", image: "none", resources: {requests: {cpu: "100m", memory: "64Mi"}},
                volumeMounts: [{name: "data", mountPath: "/data"}]}],
            volumes: [{name: "data", persistentVolumeClaim: {claimName: $claim}}]} * $spec)}' | k create -f - >/dev/null
}
pod_node() { # NAME [SECONDS]
    k wait --for='jsonpath={.spec.nodeName}' "pod/$1" --timeout="${2:-60}s" >/dev/null 2>&1
    field pod "$1" .spec.nodeName
}
pod_remove() { k delete pod "$1" --ignore-not-found --grace-period=0 --force >/dev/null 2>&1; }
