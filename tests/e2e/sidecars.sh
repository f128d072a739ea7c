# Sourced after cluster.sh: the CSI sidecars beside our controller, as the Deployment runs them, with the
# rights of a ServiceAccount of their own (sidecars.yaml).
#
#   sidecars_account             namespace, ServiceAccount and rights; once
#   provisioner_up SOCKET [FLAGS]    external-provisioner at our controller's socket; it ends when that goes
#   provisioner_down
#   provisioner_calls METHOD     requests it has made, as one line of JSON each, from its log
#
# No sidecar elects a leader: there is one of each.

sidecars_account() {
    k get namespace hearth >/dev/null 2>&1 || k create namespace hearth >/dev/null
    k apply -f "$TOP/tests/e2e/sidecars.yaml" >/dev/null && k apply -f "$KUBE/crds" >/dev/null || die "the sidecars get no rights"
    kubeconfig_for hearth hearth-controller "$PKI/sidecars.conf" || die "no token for the sidecars"
}

provisioner_up() { # SOCKET [FLAGS]
    local socket=$1
    shift
    [ -e "$PKI/sidecars.conf" ] || sidecars_account
    spawn csi-provisioner env NAMESPACE=hearth "$KUBE/csi-provisioner" --kubeconfig="$PKI/sidecars.conf" \
        --csi-address="$socket" --strict-topology --immediate-topology=false --extra-create-metadata \
        --capacity-ownerref-level=-1 --timeout=60s --retry-interval-start=500ms --retry-interval-max=5s \
        --kube-api-qps=100 --kube-api-burst=200 --leader-election=false -v=5 "$@"
    wait_for 30 grep -q 'Started provisioner controller' "$TMP/log/csi-provisioner.log" ||
        die "external-provisioner does not start: $(tail -n 2 "$TMP/log/csi-provisioner.log")"
}
provisioner_down() { end csi-provisioner; }

# It logs each request with its secrets left out.
provisioner_calls() { # METHOD
    grep -A1 "GRPC call.*method=\"/csi.v1.Controller/$1\"" "$TMP/log/csi-provisioner.log"
}
