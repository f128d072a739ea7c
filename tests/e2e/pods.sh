# Sourced after kubelets.sh, objects.sh, hearth.sh and sidecars.sh: Hearth as a cluster has it - controller and sidecars,
# hearthd and a node plugin that registers itself on each node, in their default places - and jobs whose pods run.
#
#   hearth_up NODE...             all of it, and a kubelet for each NODE; ready when it returns
#   hearthd_start NODE; plugin_start NODE [FLAGS]     again, after `end hearthd-NODE`, `end plugin-NODE`
#   stat_of NODE FIELD            of hearthd's cache there, as in hearthctl status --json
#   job_add NAME CLAIM SCRIPT [SPEC-JSON]    a pod that runs SCRIPT with the claim at /data; SPEC is merged into its own;
#                                 what SCRIPT writes to $out is in the pod's status
#   job_done NAME [SECONDS]       TRUE when its pod succeeded; -> $SAID, $RAN_ON (also when it failed)
#   job_remove NAME
#   job NAME CLAIM SCRIPT [SPEC-JSON]   pass when it succeeds; removes it. NAME is the check's
#   on NODE                       SPEC-JSON of a pod for that node alone
#   used NODE                     what pods leave on a node while they run: mounts, directories, loop devices
#   snapshot_add NAME CLAIM; snapshot_remove NAME      a VolumeSnapshot, ready to use
#
# In scripts: sums, one checksum over all files and names of /data.

JOBS=0
CSI_DIR=/var/lib/kubelet/plugins/csi.hearth.dev
IN_SCRIPTS='out=/dev/termination-log
sums() { (cd "${1:-/data}" && find . -type f ! -name ".*" | sort | xargs sha256sum | sha256sum | cut -c 1-64); }'

# ---- Hearth

hearthd_start() { # NODE
    spawn_in "$1" "hearthd-$1" "$BUILD/hearthd" --cache-dir=/var/lib/hearth
    wait_socket "hearthd-$1" "$(node_dir "$1")/run/hearthd.sock"
}
plugin_start() { # NODE [FLAGS]
    local name=$1
    shift
    mkdir -p "$(node_dir "$name")/kubelet/plugins/csi.hearth.dev"
    kubeconfig_for hearth hearth-node "$PKI/plugin-$name.conf" "$name" || die "no token for the plugin on $name"
    spawn_in "$name" "plugin-$name" "$BUILD/hearth-csi" --role=node --node-id="$name" --endpoint=unix://$CSI_DIR/csi.sock \
        --cluster-config="$TMP/config.json" --kubelet-registration-path=$CSI_DIR/csi.sock \
        --plugin-registration-path=/var/lib/kubelet/plugins_registry --warmth --kubeconfig="$PKI/plugin-$name.conf" "$@"
}
registered() { # NODE
    [ "$(k get csinode "$1" -o 'jsonpath={.spec.drivers[*].name} {.spec.drivers[*].nodeID}')" = "$DRIVER $1" ]
}

hearth_up() { # NODE...
    local name
    start_ceph
    own_user
    cluster_up StorageCapacityScoring=true
    driver_add
    csi_json '{apiVersion: "v1", kind: "Secret", metadata: {name: "node", namespace: "hearth"}, stringData: $node_secrets}' |
        k create -f - >/dev/null
    STAGE_SECRET='{"csi.storage.k8s.io/node-stage-secret-name": "node", "csi.storage.k8s.io/node-stage-secret-namespace": "hearth"}'
    for name in "$@"; do kubelet_up "$name"; done
    hearth_add
    sidecars_account
    k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
    start_controller --secret-dir="$TMP/own" --warmth --kubeconfig="$PKI/controller.conf"
    provisioner_up "$CONTROLLER" --enable-capacity --capacity-poll-interval=2s --kube-api-capacity-qps=20
    for name in "$@"; do
        hearthd_start "$name"
        plugin_start "$name"
    done
    for name in "$@"; do within 30 registered "$name" || die "kubelet of $name does not register the driver: $(tail -n 2 "$TMP/log/plugin-$name.log")"; done
}

ctl() { # NODE ARGS...
    local name=$1
    shift
    "$BUILD/hearthctl" --socket "$(node_dir "$name")/run/hearthd.sock" "$@"
}
stat_of() { ctl "$1" status --json | jq -r ".cache.$2"; }

# ---- jobs

on() { echo "{\"nodeSelector\": {\"kubernetes.io/hostname\": \"$1\"}}"; }

job_add() { # NAME CLAIM SCRIPT [SPEC-JSON]
    jq -n --arg name "$1" --arg claim "$2" --arg script "$IN_SCRIPTS"$'\n'"$3" --arg image "$TOOLS" --argjson spec "${4:-"{}"}" '
        {apiVersion: "batch/v1", kind: "Job", metadata: {name: $name}, spec: {backoffLimit: 0, template: {spec: ({
            restartPolicy: "Never", dnsPolicy: "Default", terminationGracePeriodSeconds: 5,
            volumes: [{name: "data", persistentVolumeClaim: {claimName: $claim}}]} * ($spec | del(.container)) + {
            containers: [{name: "main", image: $image, args: ["-c", $script], imagePullPolicy: "Never",
                resources: {requests: {cpu: "50m", memory: "32Mi"}},
                volumeMounts: [{name: "data", mountPath: "/data"}]} + ($spec.container // {})]})}}}' | k create -f - >/dev/null ||
        die "the job $1 is refused"
}
pod_of() { k get pods -l "job-name=$1" -o json | jq -c '.items[0] // {}'; }
job_ended() { k get job "$1" -o json | jq -e '.status | (.succeeded // 0) + (.failed // 0) > 0'; }
job_done() { # NAME [SECONDS]
    local pod
    within "${2:-90}" job_ended "$1" >/dev/null
    pod=$(pod_of "$1")
    RAN_ON=$(jq -r '.spec.nodeName // ""' <<<"$pod")
    SAID=$(jq -r '.status.containerStatuses[0].state.terminated.message // ""' <<<"$pod")
    [ "$(jq -r .status.phase <<<"$pod")" = Succeeded ] || {
        SAID="$(jq -r .status.phase <<<"$pod") on \"$RAN_ON\": $SAID $(k get events -o json | jq -r --arg p "$1" '[.items[] | select(.involvedObject.name | startswith($p)) | select(.type == "Warning") | .message] | last // ""')"
        return 1
    }
}
job_runs() { # NAME: its pod does
    k get pods -l "job-name=$1" -o json | jq -e '.items[0].status.phase == "Running"'
}
job_remove() { k delete job "$1" --cascade=foreground --timeout=60s >/dev/null; }
job() { # NAME CLAIM SCRIPT [SPEC-JSON]
    local name=job$((JOBS += 1))
    job_add $name "${@:2}"
    if job_done $name; then pass "$1"; else fail "$1" "$SAID"; fi
    job_remove $name
}

# ---- what is left

used() { # NODE
    mounts_of "$1"
    # But for kubelet's own directories of drivers, which stay.
    (cd "$(node_dir "$1")/kubelet" && find pods plugins -xdev -mindepth 1 2>/dev/null | grep -vxE 'plugins/kubernetes.io(/csi(/csi.hearth.dev|/volumeDevices(/publish|/staging)?)?)?' | sort)
    cat /sys/block/loop*/loop/backing_file 2>/dev/null | grep /var/lib/kubelet
    return 0
}
unused() { # NAME [SECONDS]: nodes are as they were when $USED_BEFORE was taken
    settles "$1" "${2:-60}" "$USED_BEFORE" used_all
}
used_all() {
    local name
    for name in "${NODES[@]}"; do
        echo "$name:"
        used "$name"
    done
}

# ---- snapshots

snapshot_class_add() {
    jq -n --arg driver $DRIVER '{apiVersion: "snapshot.storage.k8s.io/v1", kind: "VolumeSnapshotClass", metadata: {name: "hearth"},
        driver: $driver, deletionPolicy: "Delete", parameters: {"csi.storage.k8s.io/snapshotter-secret-name": "provisioner",
            "csi.storage.k8s.io/snapshotter-secret-namespace": "hearth"}}' | k create -f - >/dev/null
}
snapshot_add() { # NAME CLAIM
    jq -n --arg name "$1" --arg claim "$2" '{apiVersion: "snapshot.storage.k8s.io/v1", kind: "VolumeSnapshot", metadata: {name: $name},
        spec: {volumeSnapshotClassName: "hearth", source: {persistentVolumeClaimName: $claim}}}' | k create -f - >/dev/null
    settles "${1}_is_ready_to_use" 60 true field volumesnapshot "$1" .status.readyToUse
}
snapshot_remove() { k delete volumesnapshot "$1" --timeout=60s >/dev/null; }
