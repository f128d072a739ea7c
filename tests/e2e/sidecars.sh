# Sourced after cluster.sh: the CSI sidecars beside our controller, as the Deployment runs them, with the
# rights they have there.
#
#   sidecars_account             namespace, ServiceAccount and rights; once
#   provisioner_up SOCKET [FLAGS]    external-provisioner at our controller's socket; it ends when that goes
#   provisioner_down
#   resizer_up SOCKET; snapshots_up SOCKET [FLAGS]      external-resizer; external-snapshotter and the snapshot controller
#   provisioner_calls METHOD     requests it has made, as one line of JSON each, from its log
#
# No sidecar elects a leader: there is one of each.

sidecars_account() {
    k get namespace hearth >/dev/null 2>&1 || k create namespace hearth >/dev/null
    k apply -f "$TOP/deploy/rbac/controller.yaml" -f "$TOP/deploy/sidecars.yaml" >/dev/null && k apply -f "$KUBE/crds" >/dev/null || die "the sidecars get no rights"
    kubeconfig_for hearth hearth-controller "$PKI/sidecars.conf" || die "no token for the sidecars"
}

provisioner_up() { # SOCKET [FLAGS]
    local socket=$1
    shift
    [ -e "$PKI/sidecars.conf" ] || sidecars_account
    rm -f "$TMP/log/csi-provisioner.log"
    spawn csi-provisioner env NAMESPACE=hearth "$KUBE/csi-provisioner" --kubeconfig="$PKI/sidecars.conf" \
        --csi-address="$socket" --strict-topology --immediate-topology=false --extra-create-metadata \
        --capacity-ownerref-level=-1 --timeout=60s --retry-interval-start=500ms --retry-interval-max=5s \
        --kube-api-qps=100 --kube-api-burst=200 --leader-election=false -v=5 "$@"
    within 30 provisioner_started || die "external-provisioner does not start"
    running csi-provisioner || die "external-provisioner ends: $(tail -n 2 "$TMP/log/csi-provisioner.log")"
}
provisioner_started() { ! running csi-provisioner || grep -q 'Started provisioner controller' "$TMP/log/csi-provisioner.log"; }
provisioner_down() { end csi-provisioner; }

# It leaves the secrets out.
provisioner_calls() { # METHOD
    sed -n 's/.*"GRPC call" method="\/csi.v1.Controller\/'"$1"'" request=\(".*"\)$/\1/p' "$TMP/log/csi-provisioner.log" | jq -c fromjson
}

# The others end by themselves when our controller does, and are cleaned up at the end as all programs are.
resizer_up() { # SOCKET
    [ -e "$PKI/sidecars.conf" ] || sidecars_account
    spawn csi-resizer "$KUBE/csi-resizer" --kubeconfig="$PKI/sidecars.conf" --csi-address="$1" --timeout=60s --leader-election=false \
        --retry-interval-start=500ms --retry-interval-max=5s --handle-volume-inuse-error=false -v=4
}
snapshots_up() { # SOCKET [FLAGS]
    local socket=$1
    shift
    [ -e "$PKI/sidecars.conf" ] || sidecars_account
    spawn snapshot-controller "$KUBE/snapshot-controller" --kubeconfig="$PKI/admin.conf" --leader-election=false \
        --kube-api-qps=100 --kube-api-burst=200 --retry-interval-start=500ms --retry-interval-max=5s -v=4 "$@"
    spawn csi-snapshotter "$KUBE/csi-snapshotter" --kubeconfig="$PKI/sidecars.conf" --csi-address="$socket" --timeout=60s \
        --leader-election=false --kube-api-qps=100 --kube-api-burst=200 --retry-interval-start=500ms --retry-interval-max=5s -v=5 "$@"
}
