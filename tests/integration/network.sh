# Sourced before lib.sh by tests in which a node loses its network. The script runs again in a network
# namespace of its own, where a bridge joins it with the nodes; all of it ends with their processes.
#
#   start_ceph --address "$MACHINE"      the nodes reach it there
#   node_network NODE                    a namespace for NODE's hearthd, by a link of its own
#   start_hearthd_in NODE [FLAGS]        as start_hearthd, in NODE's namespace
#   in_network NODE COMMAND...
#   link_down NODE; link_up NODE         packets are lost meanwhile, and no connection is closed

if [ "$(id -u)" = 0 ] && [ -z "${OWN_NETWORK:-}" ]; then
    export OWN_NETWORK=1
    exec unshare --net bash "$0" "$@"
fi
unset HEARTH_CEPH # it listens elsewhere

MACHINE=10.98.0.1
declare -A LINK=()

network_up() { # once, after init
    ip link set lo up && ip link add nodes type bridge && ip link set nodes up &&
        ip address add "$MACHINE/16" dev nodes || die "no bridge in the test's network namespace"
}

node_network() { # NODE
    local link=node$((${#LINK[@]} + 1)) own
    spawn "network-$1" unshare --net sleep infinity
    own=$(readlink /proc/self/ns/net)
    wait_for 10 eval "[ \"\$(readlink /proc/${PID[network-$1]}/ns/net)\" != '$own' ]" || die "no namespace for $1"
    LINK[$1]=$link
    ip link add "$link" type veth peer name eth0 netns "${PID[network-$1]}" &&
        ip link set "$link" master nodes up &&
        in_network "$1" ip link set lo up &&
        in_network "$1" ip address add "10.98.1.${#LINK[@]}/16" dev eth0 &&
        in_network "$1" ip link set eth0 up || die "no network for $1"
    wait_for 10 in_network "$1" bash -c "exec 3<>/dev/tcp/${CEPH_MON%:*}/${CEPH_MON##*:}" ||
        die "$1 does not reach $CEPH_MON"
}

in_network() { # NODE COMMAND...
    local pid=${PID[network-$1]}
    shift
    nsenter --net="/proc/$pid/ns/net" "$@"
}

start_hearthd_in() { # NODE [FLAGS]
    local HEARTHD_WITH=(nsenter --net="/proc/${PID[network-$1]}/ns/net")
    shift
    start_hearthd "$@"
}

# Ceph, with the shortest time that it waits for a silent client, the controller, and a node "one" that can
# be cut off.
start_node_one() {
    network_up
    start_ceph --address "$MACHINE"
    ceph_cmd fs set hearthfs session_timeout 30 >/dev/null 2>&1
    node_network one
    start_controller
    start_hearthd_in one
    start_node
}
now() { python3 -c 'import time; print("%.3f" % time.monotonic())'; }

link_down() { ip link set "${LINK[$1]}" down; }
link_up() { ip link set "${LINK[$1]}" up; }
