# Sourced after cluster.sh: machines that run pods. A node is a set of namespaces on this machine - mounts,
# processes, host name - with a containerd and a kubelet of its own in it, in the places where a machine has them
# (/var/lib/kubelet; ./node). Everything is under $TMP/nodes/NAME and ends with the node's first process; what else is
# changed here - control groups, addresses on lo, the sysctls that kubelet sets - is listed in $TMP/put-back, and put back
# by kubelets_down, or by ./sweep if a test was killed.
#
#   kubelet_up NAME               when it returns, the node is ready
#   kubelets_down                 at the end it is called by itself
#   kubelet_restart NAME [SIGNAL] kubelet alone; its pods run on
#   in_node NAME COMMAND...       in the node's namespaces
#   spawn_in NAME PROCESS COMMAND...    as spawn, there
#   node_dir NAME                 what is the node's on this machine: kubelet/ (/var/lib/kubelet), run/ (/run/hearth), ...
#   mounts_of NAME                what is mounted below its kubelet directory
#
# Pods may use the image $TOOLS: /bin/sh and all of busybox. They have a network of their own in which there is nothing, and
# a node has this machine's, with an address on lo, unless network.sh is sourced, too.

TOOLS=e2e.hearth.dev/tools:1
PAUSE_IMAGE=e2e.hearth.dev/pause:1
declare -A NODE_INIT
NODES=()
NAMESPACES=(--mount --pid --uts)

node_dir() { echo "$TMP/nodes/$1"; }
in_node() { # NAME COMMAND...
    local name=$1
    shift
    nsenter --target "${NODE_INIT[$name]}" "${NAMESPACES[@]}" -- "$@"
}
child_of() { # PID
    local child=
    read -r child _ <"/proc/$1/task/$1/children" # which has no end of line
    [ -n "$child" ] && echo "$child"
}
spawn_in() { # NAME PROCESS COMMAND...
    local name=$1 process=$2 child
    shift 2
    spawn "$process" nsenter --target "${NODE_INIT[$name]}" "${NAMESPACES[@]}" -- "$@"
    # Signals are for the program, not for who waits for it.
    within 10 child_of "${PID[$process]}" >/dev/null || die "$process does not start on $name"
    child=$(child_of "${PID[$process]}")
    disown "${PID[$process]}" # bash would tell of its end
    PID[$process]=$child
    PIDSTART[$process]=$(start_time "$child")
}
put_back() { echo "$*" >>"$TMP/put-back"; }

# ---- what there is of once

kubelets_prepare() {
    local name
    [ -z "${KUBELETS_READY:-}" ] || return 0
    for name in containerd containerd-shim-runc-v2 runc ctr busybox; do
        type -P $name >/dev/null || die "there is no $name; tests/tools/install-deps e2e installs it"
    done
    [ -x "$BUILD/tools/pause" ] || die "there is no pause; make tools builds it"
    at_exit kubelets_down
    sysctls_are_put_back
    mkdir -p "$TMP"/nodes/{cni,images}
    "$TOP/tests/e2e/image" $PAUSE_IMAGE "$BUILD/tools/pause=/pause" -- /pause >"$TMP/nodes/images/pause.tar" &&
        "$TOP/tests/e2e/image" $TOOLS "$(type -P busybox)=/bin/sh" -- /bin/sh >"$TMP/nodes/images/tools.tar" || die "no images"
    pod_networks_prepare
    KUBELETS_READY=1
}

# kubelet sets these for the machine as a whole. While another run's kubelets are at work, what they were is in its record.
sysctls_are_put_back() {
    local record=/run/hearth-e2e-sysctls name value
    if [ ! -s $record ] || [ -z "$(find /sys/fs/cgroup -maxdepth 2 -name 'hearth-e2e-*' -print -quit)" ]; then
        for name in vm.overcommit_memory vm.panic_on_oom kernel.panic kernel.panic_on_oops kernel.keys.root_maxkeys kernel.keys.root_maxbytes; do
            echo "$name $(<"/proc/sys/${name//.//}")"
        done >$record
    fi
    while read -r name value; do put_back sysctl "$name" "$value"; done <$record
}

# These three are network.sh's other way.
pod_networks_prepare() { # a CNI plugin: a pod has its own network, and nothing is in it
    printf '%s\n' '#!/bin/sh' "case \$CNI_COMMAND in" \
        "VERSION) echo '{\"cniVersion\": \"0.4.0\", \"supportedVersions\": [\"0.3.1\", \"0.4.0\"]}' ;;" \
        "ADD) echo '{\"cniVersion\": \"0.4.0\", \"interfaces\": [{\"name\": \"'\$CNI_IFNAME'\", \"sandbox\": \"'\$CNI_NETNS'\"}]," \
        "\"ips\": [{\"version\": \"4\", \"interface\": 0, \"address\": \"10.98.0.2/32\"}]}' ;;" esac >"$TMP/nodes/cni/nothing"
    chmod +x "$TMP/nodes/cni/nothing"
    ln -s nothing "$TMP/nodes/cni/loopback"
}
pod_network() { echo '{"cniVersion": "0.4.0", "name": "nothing", "plugins": [{"type": "nothing"}]}'; } # NAME
node_address() { # NAME -> $NODE_ADDRESS
    local try
    for try in $(seq 100); do
        NODE_ADDRESS=10.99.$((RANDOM % 250)).$((1 + RANDOM % 250))
        ip -o address show | grep -qF "$NODE_ADDRESS/" && continue
        ip address add "$NODE_ADDRESS/32" dev lo 2>/dev/null && put_back address "$NODE_ADDRESS/32" && return 0
    done
    die "no address for a node"
}

# ---- one node

make_cgroups() { # PATH, below the root of each hierarchy
    local root from
    put_back cgroup "$1"
    if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
        echo +cpu +cpuset +memory +pids +io >/sys/fs/cgroup/cgroup.subtree_control 2>/dev/null
        mkdir -p "/sys/fs/cgroup/$1"
        return
    fi
    for root in $(awk '$3 == "cgroup" { print $2 }' /proc/mounts); do
        mkdir -p "$root/$1"
        # Without CPUs and memory no process can be in one.
        for from in cpuset.cpus cpuset.mems; do
            [ ! -e "$root/$from" ] || cat "$root/$from" >"$root/$1/$from"
        done
    done
}

# Root may lack CAP_SYS_RESOURCE here, which no container can be given then: runc is called with what there is.
runc_without() { # FILE
    cat >"$1" <<'END'
#!/bin/bash
for ((i = 1; i <= $#; i++)); do
    next=$((i + 1))
    case ${!i} in
    --bundle) file=${!next}/config.json ;;
    --process) file=${!next} ;;
    esac
done
if [ -n "${file:-}" ] && [ -e "$file" ]; then
    jq 'walk(if type == "object" and has("capabilities") then .capabilities |= map_values(. - ["CAP_SYS_RESOURCE"]) else . end)' \
        "$file" >"$file.without" && cat "$file.without" >"$file" && rm "$file.without"
fi
exec runc "$@"
END
    chmod +x "$1"
}
has_sys_resource() { [ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 24 & 1)) = 1 ]; }

containerd_start() { # NAME
    local dir
    dir=$(node_dir "$1")
    runc_without "$dir/runc-without"
    # Nor can a process's score be lowered without it.
    cat >"$dir/containerd.toml" <<END
version = 2
root = "$dir/containerd/root"
state = "/run/containerd/state"
disabled_plugins = ["io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
    "io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.aufs", "io.containerd.tracing.processor.v1.otlp"]
[grpc]
address = "/run/containerd/containerd.sock"
[plugins."io.containerd.internal.v1.opt"]
path = "$dir/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "$PAUSE_IMAGE"
restrict_oom_score_adj = true
stream_server_address = "127.0.0.1"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "$(has_sys_resource && echo runc || echo "$dir/runc-without")"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$TMP/nodes/cni"
conf_dir = "$dir/cni"
END
    mkdir -p "$dir/cni"
    pod_network "$1" >"$dir/cni/pods.conflist"
    spawn_in "$1" "containerd-$1" containerd --config "$dir/containerd.toml"
    within 30 in_node "$1" ctr version >/dev/null || die "containerd does not start: $(tail -n 2 "$TMP/log/containerd-$1.log")"
    for image in pause tools; do
        in_node "$1" ctr -n k8s.io images import "$TMP/nodes/images/$image.tar" >>"$TMP/log/ctr.log" 2>&1 || die "no image: $(tail -n 2 "$TMP/log/ctr.log")"
    done
}

kubelet_start() { # NAME
    spawn_in "$1" "kubelet-$1" "$KUBE/kubelet" --config="$(node_dir "$1")/kubelet.json" --kubeconfig="$PKI/node-$1.conf" \
        --hostname-override="$1" --node-ip="$(<"$(node_dir "$1")/address")" --cert-dir="$(node_dir "$1")/pki" -v="${KUBELET_V:-2}"
}
kubelet_restart() { # NAME [SIGNAL]
    end "kubelet-$1" "${2:-TERM}"
    kubelet_start "$1"
}

kubelet_up() { # NAME
    local name=$1 dir
    kubelets_prepare
    dir=$(node_dir "$name")
    mkdir -p "$dir"/{kubelet,run,pods,hearth,pki}
    make_cgroups "hearth-e2e-$$-$name"
    spawn "node-$name" unshare "${NAMESPACES[@]}" --fork --kill-child --mount-proc --propagation private \
        "$TOP/tests/e2e/node" "$dir" "$name" "$BUILD/tools/pause"
    within 10 child_of "${PID[node-$name]}" >/dev/null || die "no namespaces for $name"
    NODE_INIT[$name]=$(child_of "${PID[node-$name]}")
    disown "${PID[node-$name]}"
    NODES+=("$name")
    within 10 node_made "$name" || die "no mounts for $name: $(tail -n 2 "$TMP/log/node-$name.log")"
    node_address "$name"
    echo "$NODE_ADDRESS" >"$dir/address"
    containerd_start "$name"
    component_config "node-$name" "/O=system:nodes/CN=system:node:$name"
    free_port
    jq -n --arg ca "$PKI/ca.crt" --arg address "$NODE_ADDRESS" --argjson port "$FREE_PORT" --arg group "/hearth-e2e-$$-$name" --arg dir "$dir" '{
        apiVersion: "kubelet.config.k8s.io/v1beta1", kind: "KubeletConfiguration",
        authentication: {anonymous: {enabled: false}, webhook: {enabled: false}, x509: {clientCAFile: $ca}},
        authorization: {mode: "AlwaysAllow"}, address: $address, port: $port, readOnlyPort: 0, healthzPort: 0,
        containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
        cgroupDriver: "cgroupfs", cgroupRoot: $group, failCgroupV1: false, enforceNodeAllocatable: [], failSwapOn: false,
        oomScoreAdj: 0, makeIPTablesUtilChains: false, resolvConf: "", registerNode: true,
        volumePluginDir: ($dir + "/plugins"), imageGCHighThresholdPercent: 100, imageGCLowThresholdPercent: 99,
        evictionHard: {"nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%"},
        nodeStatusUpdateFrequency: "5s", volumeStatsAggPeriod: "10s", syncFrequency: "10s"}' >"$dir/kubelet.json"
    kubelet_start "$name"
    within 60 kubelet_ready "$name" || die "kubelet does not get ready: $(grep -E '^[EF]' "$TMP/log/kubelet-$name.log" | tail -n 3)"
}
# It becomes pause when its mounts are there.
node_made() { in_node "$1" test "$(readlink "/proc/${NODE_INIT[$1]}/exe")" = "$(realpath "$BUILD/tools/pause")"; }
kubelet_ready() {
    running "kubelet-$1" || return 0
    k get node "$1" -o json | jq -e '(.status.conditions | any(.type == "Ready" and .status == "True")) and (.spec.taints // [] == [])'
}

mounts_of() { # NAME: what is mounted below kubelet's directory
    in_node "$1" awk '$5 ~ "^/var/lib/kubelet/" { print $5 }' /proc/self/mountinfo | sort
}

# ---- the end

kubelets_down() {
    local name
    for name in "${NODES[@]}"; do
        # Whoever waits for a file system that is not served any more cannot be killed.
        [ -z "$(start_time "${NODE_INIT[$name]}")" ] || kill -KILL "${NODE_INIT[$name]}"
        wait_for 10 eval "! running node-$name"
        end "node-$name" KILL
        unset "NODE_INIT[$name]"
    done
    NODES=()
    "$TOP/tests/e2e/sweep" "$TMP"
}
