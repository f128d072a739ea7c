# Sourced after lib.sh by tests in which the driver speaks to Kubernetes: a stand-in (kube_api.py) that
# keeps objects as files.
#
#   kube_api_up [LABELS-JSON]     starts it; writes $TMP/kubeconfig. There is the Node "test-node", which
#                                 start_node says it is, with these labels
#   kube_node_labels JSON         it has these from now on
#   kube_put PATH JSON            an object, as  kube_put api/v1/namespaces/a/persistentvolumeclaims/b '{...}'
#   kube_objects PATH             all below a collection, as an array
#   kube_requests                 "METHOD PATH STATUS", a line each, of all there were

KUBE_OBJECTS=
kube_put() {
    mkdir -p "$(dirname "$KUBE_OBJECTS/$1")" && printf '%s' "$2" >"$KUBE_OBJECTS/$1.json.put" &&
        mv "$KUBE_OBJECTS/$1.json.put" "$KUBE_OBJECTS/$1.json"
}
kube_node_labels() {
    kube_put api/v1/nodes/test-node "$(jq -cn --argjson l "$1" '{apiVersion: "v1", kind: "Node",
        metadata: {name: "test-node", uid: "11111111-2222-3333-4444-555555555555", labels: $l}}')"
}
kube_objects() {
    find "$KUBE_OBJECTS/$1" -maxdepth 1 -name '*.json' -exec cat {} + 2>/dev/null | jq -cs .
}
kube_requests() { cat "$TMP/kube-requests" 2>/dev/null; }

kube_api_up() {
    KUBE_OBJECTS=$TMP/kube
    mkdir -p "$KUBE_OBJECTS"
    kube_node_labels "${1:-"{}"}"
    spawn kube-api python3 "$TOP/tests/integration/kube_api.py" "$TMP/kube-port" "$KUBE_OBJECTS" "$TMP/kube-requests"
    wait_for 30 test -s "$TMP/kube-port" || die "no stand-in of the Kubernetes API"
    cat >"$TMP/kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: test
contexts: [{name: test, context: {cluster: test, user: test}}]
clusters: [{name: test, cluster: {server: "http://127.0.0.1:$(<"$TMP/kube-port")"}}]
users: [{name: test, user: {}}]
END
}
