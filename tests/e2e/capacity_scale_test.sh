#!/bin/bash
# What CSIStorageCapacity costs a large cluster: 1,000 nodes and 4 classes, the real external-provisioner, a real API
# server and a real Ceph that is written to meanwhile. Counted are questions to Ceph and writes to the API server.
#   NODES=1000
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
. "$(dirname "$0")/sidecars.sh"
NODES=${NODES:-1000}
init
start_ceph
own_user
cluster_up
driver_add
nodes_add n "$NODES"
free_port
start_controller --secret-dir="$TMP/own" --metrics-address="127.0.0.1:$FREE_PORT"
for n in 1 2; do
    class_add "files$n"
    CLASS=$(jq -c 'del(.fsName)' <<<"$CLASS") class_add "images$n" '{"type": "rbd", "pool": "rbd"}'
done

asked() { # OPERATION
    curl -s "http://127.0.0.1:$FREE_PORT/metrics" | awk -v o="operation=\"$1\"" \
        '/^hearth_ceph_call_seconds_count/ && index($0, o) {n += $2} END {print n + 0}'
}
polls() { curl -s "http://127.0.0.1:$FREE_PORT/metrics" | awk '/_count/ && /GetCapacity/ {n += $2} END {print n + 0}'; }
objects() { k get csistoragecapacities -n hearth -o json | jq '.items | length'; }
# Each write makes a version of its object that is larger than all before.
written_since() { # VERSION
    k get csistoragecapacities -n hearth -o json | jq --argjson v "$1" '[.items[] | select((.metadata.resourceVersion | tonumber) > $v)] | length'
}
newest() { k get csistoragecapacities -n hearth -o json | jq '[.items[].metadata.resourceVersion | tonumber] | max'; }

K_TIMEOUT=120
provisioner_up "$CONTROLLER" --enable-capacity --capacity-poll-interval=20s --kube-api-capacity-qps=500 --kube-api-capacity-burst=1000
settles an_object_for_each_class_and_node 300 $((NODES * 4)) objects
before=$(newest) df=$(asked df) polled=$(polls) SECONDS=0
for i in $(seq 6); do
    head -c 4194304 /dev/urandom | rados -c "$CEPH_CONF" -p rbd put "noise-$i" -
    sleep 10
done
df=$(($(asked df) - df)) polled=$(($(polls) - polled)) writes=$(written_since "$before")
echo "     $NODES nodes, 4 classes, $SECONDS s: $polled questions of external-provisioner, $df to Ceph, $writes objects written"
[ "$polled" -ge "$NODES" ] && pass it_is_asked_for_each_node || fail it_is_asked_for_each_node "$polled"
[ "$df" -le 8 ] && pass ceph_is_asked_once_for_all || fail ceph_is_asked_once_for_all "$df times"
[ "$writes" -le $((NODES * 4)) ] && pass and_each_object_written_once_at_most || fail and_each_object_written_once_at_most "$writes"
