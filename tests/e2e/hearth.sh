# Sourced after cluster.sh and objects.sh: Hearth's own objects in Kubernetes - what deploy/ has - and who acts
# under them.
#
#   hearth_add                    resources, rights and policies; holding when it returns. There is a node
#   plugin NODE ARGS...           kubectl as the node plugin on that node; on "nowhere", by a token of no node
#   controller ARGS...            kubectl as the controller
#   hints_start; hints_end        what keeps DatasetHints, with the controller's rights; hints_writes: what it has written
#   dataset_id SUBVOLUME SNAPSHOT the dataset's name in Kubernetes
#   dataset_claim NAME SUBVOLUME SNAPSHOT [NAMESPACE]   a static volume that shows that snapshot, and a claim bound to it;
#                                 ATTRIBUTES tells otherwise what it shows
#   uses CLAIM...                 of a pod's spec, that it uses these
#   placed_add NAME COUNT CLAIM...   a job whose pods say nothing but their claims
#   placed NAME                   where they are: "COUNT NODE ..."
#   placed_end NAME
#   nodecache_write NODE [DISK] [DATASET BYTES TOTAL]...    as the node's plugin does

hearth_add() {
    k create namespace hearth >/dev/null 2>&1
    k apply -f "$TOP/deploy/crds" >/dev/null || die "the resources are refused"
    k wait --for=condition=Established --timeout=30s -f "$TOP/deploy/crds" >/dev/null || die "the resources are not served"
    k apply -f "$TOP/deploy/rbac" -f "$TOP/deploy/policies" >/dev/null || die "rights or policies are refused"
    kubeconfig_for hearth hearth-controller "$PKI/controller.conf" && kubeconfig_for hearth hearth-node "$PKI/plugin-nowhere.conf" || die "no tokens"
    # Policies hold a moment after they were made, rights too.
    within 30 policies_hold || die "the policies do not come to hold"
}
policies_hold() {
    local node
    node=$(k get nodes -o 'jsonpath={.items[0].metadata.name}')
    denied plugin nowhere create --dry-run=server -f - <<<"$(nodecache x)" && denied controller annotate --dry-run=server node "$node" a=b
}
denied() { ! "$@" 2>"$TMP/denied" && grep -q 'denied request' "$TMP/denied"; }

controller() { "$KUBE/kubectl" --kubeconfig="$PKI/controller.conf" "$@"; }
plugin() { # NODE ARGS...
    local node=$1
    shift
    [ -e "$PKI/plugin-$node.conf" ] || kubeconfig_for hearth hearth-node "$PKI/plugin-$node.conf" "$node" || return 1
    "$KUBE/kubectl" --kubeconfig="$PKI/plugin-$node.conf" "$@"
}

# ---- hints

hints_start() {
    rm -f "$TMP/log/dataset-hints.log"
    spawn dataset-hints "$BUILD/tools/dataset-hints" "$PKI/controller.conf" $DRIVER
}
hints_end() { end dataset-hints; }
hints_writes() { sed -n 's/^requests: \([A-Z]*\) .*: \([0-9]*\)$/\1=\2/p' "$TMP/log/dataset-hints.log" | grep -v ^GET= | sort | paste -sd ' '; }

dataset_id() { # SUBVOLUME SNAPSHOT
    printf '%s\0%s\0%s\0' c1 fs1 "/volumes/csi/$1/.snap/$2" | sha256sum | cut -c 1-16
}
dataset_claim() { # NAME SUBVOLUME SNAPSHOT [NAMESPACE]
    jq -n --arg name "$1" --argjson place "${ATTRIBUTES:-"{\"rootPath\": \"/volumes/csi/$2/.snap/$3/2f0e\"}"}" --arg namespace "${4:-default}" --arg driver $DRIVER '
        {accessModes: ["ReadOnlyMany"], storageClassName: ""} as $both |
        {apiVersion: "v1", kind: "PersistentVolume", metadata: {name: "\($namespace)-\($name)"},
         spec: ($both + {capacity: {storage: "1Gi"}, persistentVolumeReclaimPolicy: "Retain",
             claimRef: {namespace: $namespace, name: $name},
             csi: {driver: $driver, volumeHandle: "\($namespace)-\($name)", readOnly: true,
                 volumeAttributes: ({clusterID: "c1", fsName: "fs1", staticVolume: "true"} + $place)}})},
        {apiVersion: "v1", kind: "PersistentVolumeClaim", metadata: {name: $name, namespace: $namespace},
         spec: ($both + {volumeName: "\($namespace)-\($name)", resources: {requests: {storage: "1Gi"}}})}' |
        k create -f - >/dev/null
    settles "claim_$1_is_bound" 30 Bound k get pvc "$1" -n "${4:-default}" -o 'jsonpath={.status.phase}'
}

# ---- pods that say nothing but their claims

uses() { jq -cn '{volumes: [$ARGS.positional[] | {name: "v-\(.)", persistentVolumeClaim: {claimName: .}}]}' --args "$@"; }
placed_add() { # NAME COUNT CLAIM...
    jq -n --arg name "$1" --argjson count "$2" --argjson volumes "$(uses "${@:3}")" '{apiVersion: "batch/v1", kind: "Job", metadata: {name: $name},
        spec: {parallelism: $count, completions: $count, template: {spec: ($volumes + {restartPolicy: "Never", terminationGracePeriodSeconds: 0,
            containers: [{name: "main", image: "none", resources: {requests: {cpu: "100m", memory: "64Mi"}}}]})}}}' | k create -f - >/dev/null
}
placed() { # NAME
    k get pods -l "job-name=$1" -o 'jsonpath={range .items[*]}{.spec.nodeName}{"\n"}{end}' | grep . | sort | uniq -c | awk '{ print $1, $2 }' | paste -sd ' '
}
placed_end() { # NAME
    k delete job "$1" --cascade=background >/dev/null
    settles "${1}_ends" 60 "" k get pods -l "job-name=$1" -o name
}

# ---- what nodes say

nodecache() { echo "{\"apiVersion\": \"csi.hearth.dev/v1alpha1\", \"kind\": \"NodeCache\", \"metadata\": {\"name\": \"$1\"}}"; }
nodecache_status() { # DISK [DATASET BYTES TOTAL]...
    jq -n '$ARGS.positional as [$disk] | [range(1; $ARGS.positional | length; 3) as $i | $ARGS.positional[$i:$i + 3] |
            {id: .[0], bytes: (.[1] | tonumber), totalBytes: (.[2] | tonumber)} |
            . + {name: "csi/\(.id)", clusterID: "c1", fsName: "fs1", percent: (100 * .bytes / .totalBytes | floor)}] |
        {status: {heartbeatTime: (now | todate), version: "0.1.0", warm: "\(map(select(.percent == 100)) | length)/\(length)",
            shown: (map("\(.name) \(.percent)%") | join(", ")), cache: {disk: $disk, bytes: (map(.bytes) | add // 0), maxBytes: 1000000, freeBytes: 500000,
                used: "110/977Ki", free: "488Ki"}, datasets: .}}' \
        --args "$@"
}
nodecache_write() { # NODE [DISK] [DATASET BYTES TOTAL]...
    local node=$1
    shift
    plugin "$node" get nodecache "$node" >/dev/null 2>&1 ||
        plugin "$node" create -f - <<<"$(nodecache "$node")" >/dev/null || return 1
    plugin "$node" patch nodecache "$node" --subresource=status --type=merge -p "$(nodecache_status "${@:-ok}")"
}
