# Sourced after kubelets.sh: nodes and pods with a network. A bridge on this machine joins the nodes, each in a network
# namespace of its own with a bridge of its own, to which cni attaches its pods: all of it is one Ethernet, in which
# 10.X is free on this machine:
#
#   10.X.0.1          the machine: Ceph, where `start_ceph --address="$MACHINE_ADDRESS"` puts it
#   10.X.N.1          the Nth node, and pods in its network (hostNetwork)
#   10.X.N.2-254      its pods
#   10.X.128.1        the API server, at its Service's address, so that nobody has to stand for Services
#
#   network_up        before cluster_up; put back at the end by itself, or by ./sweep
#
# There are no names (DNS), no other Services and no network policies.

NETWORK= MACHINE_ADDRESS= SERVICE_RANGE=
NAMESPACES+=(--net)

network_up() {
    local try x
    at_exit "'$TOP/tests/e2e/sweep' '$TMP'"
    for try in $(seq 50); do
        x=$((1 + RANDOM % 250))
        ip -o -4 address show | grep -qF " 10.$x." && continue
        BRIDGE=hearth-$x
        # Whoever makes it has the network.
        ip link add "$BRIDGE" address "02:00:0a:$(printf %02x $x):00:01" type bridge 2>/dev/null || continue
        put_back link "$BRIDGE"
        NETWORK=10.$x MACHINE_ADDRESS=10.$x.0.1 SERVICE_RANGE=10.$x.128.0/24 API_ADDRESS=10.$x.128.1
        ip address add "$MACHINE_ADDRESS/17" dev "$BRIDGE" && ip link set "$BRIDGE" up || die "no address for the bridge"
        ip address add "$API_ADDRESS/32" dev lo && put_back address "$API_ADDRESS/32" || die "no address for the API server"
        return 0
    done
    die "found no network that is free"
}

pod_networks_prepare() {
    cp "$TOP/tests/e2e/cni" "$TMP/nodes/cni/flat"
    ln -s flat "$TMP/nodes/cni/loopback"
}
number_of() { # NODE
    local i
    for i in "${!NODES[@]}"; do [ "${NODES[$i]}" != "$1" ] || echo $((i + 1)); done
}
pod_network() { # NODE
    mkdir -p "$(node_dir "$1")/addresses"
    jq -n --arg range "$NETWORK.$(number_of "$1")" --arg gateway "$MACHINE_ADDRESS" --arg dir "$(node_dir "$1")/addresses" '{
        cniVersion: "0.4.0", name: "flat", plugins: [{type: "flat", bridge: "pods", $range, prefix: 17, $gateway, $dir}]}'
}
node_address() { # NODE -> $NODE_ADDRESS
    local number
    number=$(number_of "$1")
    NODE_ADDRESS=$NETWORK.$number.1
    # Its end here goes with the node's namespace. A bridge takes a port's hardware address, and another when that goes,
    # unless it has one.
    ip link add "$BRIDGE-$number" type veth peer name eth0 netns "${NODE_INIT[$1]}" &&
        ip link set "$BRIDGE-$number" master "$BRIDGE" up &&
        in_node "$1" ip link set lo up &&
        in_node "$1" ip link add pods address "$(printf '02:00:0a:%02x:%02x:01' "${NETWORK#10.}" "$number")" type bridge &&
        in_node "$1" ip link set eth0 master pods up &&
        in_node "$1" ip link set pods up &&
        in_node "$1" ip address add "$NODE_ADDRESS/17" dev pods &&
        in_node "$1" ip route add default via "$MACHINE_ADDRESS" || die "no network for $1"
}
