#!/bin/bash
# What warm-aware scheduling costs a large cluster: a controller, a real API server, and the NodeCaches of
# 1,000 nodes with 50 datasets each, written every 30 s.
#   NODES=1000 DATASETS=50
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
NODES=${NODES:-1000} DATASETS=${DATASETS:-50}
init
start_ceph
cluster_up
driver_add
nodes_add n "$NODES"
hearth_add
k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
start_controller --warmth --kubeconfig="$PKI/controller.conf"

writer() { # SECONDS PERCENT
    spawn writer "$TOP/tests/e2e/nodecaches.py" "$PKI/admin.conf" "$NODES" "$DATASETS" "$1" "$2"
}
labelled() { # VALUE: nodes that have so many labels of it
    k get nodes -o json | jq --arg v "$1" '[.items[] | select([.metadata.labels | to_entries[] |
        select(.key | startswith("warm.csi.hearth.dev/")) | select(.value == $v)] | length == 32)] | length'
}
cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{print int(($14 + $15) * 1000 / hz)}' "/proc/${PID[controller]}/stat"; }
resident() { awk '/^VmRSS/ {print int($2 / 1024)}' "/proc/${PID[controller]}/status"; }
peak() { awk '/^VmHWM/ {print int($2 / 1024)}' "/proc/${PID[controller]}/status"; }
versions() { k get nodes -o json | jq '[.items[].metadata.resourceVersion | tonumber] | max'; }

writer 150 60
settles every_node_has_its_32_labels 150 "$NODES" labelled 50
sleep 20
before=$(versions) cpu=$(cpu_ms) SECONDS=0
sleep 60
cpu=$((($(cpu_ms) - cpu) / SECONDS))
echo "     $NODES nodes, $DATASETS datasets: $cpu ms of CPU a second, $(resident) MB resident, $(peak) MB at most"
[ "$cpu" -lt 200 ] && pass a_fifth_of_a_core_at_most || fail a_fifth_of_a_core_at_most "$cpu ms a second"
[ "$(peak)" -lt 100 ] && pass 100_MB_at_most || fail 100_MB_at_most "$(peak) MB"
same no_node_is_written_when_nothing_crossed "$(versions)" "$before"
wait "${PID[writer]}"
sed "s/^/     /" "$TMP/log/writer.log"

# All of them change at once.
rm "$TMP/log/writer.log"
SECONDS=0
writer 0 80
wait "${PID[writer]}"
written=$SECONDS
settles a_change_of_all_is_labelled 60 "$NODES" labelled 75
echo "     their reports took $written s, and the last label came $((SECONDS - written)) s after the last of them"
[ $((SECONDS - written)) -le 35 ] && pass within_35_s || fail within_35_s "$((SECONDS - written)) s"
