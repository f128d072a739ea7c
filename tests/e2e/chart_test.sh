#!/bin/bash
# The Helm chart and deploy/ before a real API server: all they make is accepted, an install works with the rights it
# brings - the controller and the CSI sidecars run here with the arguments and as the account of the Deployment, on a
# real Ceph - an upgrade ends no hearthd before the next one is ready, and after the end nothing is left.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$TOP/tests/documents/documented.sh"
init
reader_begin
helm_needed
start_ceph
own_user
cluster_up
CHART=$TOP/charts/hearth NOTES=charts/hearth/templates/NOTES.txt
INSTALL=docs/install.md TROUBLE=docs/troubleshooting.md
reader_has kubectl "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf"
reader_has helm "$BUILD/helm/helm" --kubeconfig="$PKI/admin.conf"
reader_has ceph "$ONE_NODE" ceph "$CEPH_DIR"
helm() { "$BUILD/helm/helm" --kubeconfig="$PKI/admin.conf" --namespace hearth "$@"; }

k apply -f "$KUBE/crds" >/dev/null || die "the definitions of snapshots are refused"
k wait --for=condition=Established --timeout=30s -f "$KUBE/crds" >/dev/null || die "the definitions of snapshots are not served"

# ---- an example, where no node is on which a pod could stay
documented charts/hearth/examples/ceph.yaml 'helm install'
same it_has_its_classes "$(k get storageclasses -l app.kubernetes.io/name=hearth -o 'jsonpath={.items[*].metadata.name}')" "hearth-cephfs hearth-rbd imagenet"
check and_goes helm uninstall hearth --no-hooks --timeout 60s
documented $INSTALL 'kubectl delete namespace hearth'
node_add n1
node_add n2

# ---- what it makes is accepted
documented $INSTALL 'kubectl create namespace hearth'
accepted() { k apply --dry-run=server --validate=strict -f "$TMP/made.yaml"; }
# Monitors and rules are of kinds that are not here.
for values in '' "$CHART"/examples/*.yaml "$TOP"/tests/chart/values/*.yaml; do
    name=$(basename "${values:-own}" .yaml) more=()
    [ "$name" != small ] || more=(--set 'csiConfig[0].monitors={m},secret.userKey=k,nodeSecret.userKey=n')
    helm template hearth "$CHART" --kube-version 1.36.0 --api-versions admissionregistration.k8s.io/v1/MutatingAdmissionPolicy \
        ${values:+--values "$values"} "${more[@]}" --set metrics.podMonitor.enabled=false,metrics.prometheusRule.enabled=false >"$TMP/made.yaml" || die "$name: nothing is made"
    check "${name}_values_are_accepted" accepted
done
mkdir "$TMP/tree"
cp -r "$TOP"/{Makefile,charts,deploy,tests} "$TMP/tree/"
documented $INSTALL 'make deploy' -- -s -C "$TMP/tree" HELM="$BUILD/helm/helm"
check it_writes_what_is_there diff -r "$TOP/deploy" "$TMP/tree/deploy"
k kustomize "$TOP/deploy" >"$TMP/made.yaml" || die "deploy is no kustomization"
check deploy_is_accepted accepted
k kustomize "$TOP/overlays/example" >"$TMP/made.yaml" || die "the example of an overlay is no kustomization"
documented $INSTALL 'kubectl apply -k overlays/example' -- --dry-run=server
for text in 'image: registry.example/hearth:0.1.0' '"clusterID": "c1"' 'name: csi-ceph-node-secret' 'name: hearth-cephfs' 'kind: MutatingAdmissionPolicyBinding'; do
    check "it_has_$text" grep -qF -- "$text" "$TMP/made.yaml"
done
cp -r "$TOP/overlays" "$TMP/tree/" && sed -i -E '/^# patches:/,$ s/^# //' "$TMP/tree/overlays/example/kustomization.yaml"
k kustomize "$TMP/tree/overlays/example" >"$TMP/made.yaml" || die "without the policy it is no kustomization"
check before_1_36_without_the_policy eval '! grep -q "kind: Mutating" "$TMP/made.yaml" && grep -q "kind: ValidatingAdmissionPolicy" "$TMP/made.yaml"'

# ---- an install
jq -n --slurpfile clusters "$TMP/config.json" --arg c "$CEPH_FSID" '{csiConfig: $clusters[0], cleanup: {enabled: true},
    storageClasses: [{name: "cephfs", clusterID: $c, fsName: "hearthfs"}, {name: "set", clusterID: $c, fsName: "hearthfs", dataset: "a@b"}],
    volumeSnapshotClasses: [{name: "snaps"}], volumeAttributesClasses: [{name: "quota", parameters: {cacheQuota: "1Gi"}}]}' >"$READER/values.yaml"
at_exit 'ceph_cmd auth rm client.hearth-provisioner; ceph_cmd auth rm client.hearth-node'
documented_block $INSTALL '1. The Ceph users' FSNAME=hearthfs POOL=rbd
documented $NOTES 'ceph auth print-key client.hearth-provisioner' '{{ .Release.Namespace }}=hearth' '{{ .Values.secret.name }}=csi-ceph-secret'
documented $NOTES 'ceph auth print-key client.hearth-node' '{{ .Release.Namespace }}=hearth' '{{ .Values.nodeSecret.name }}=csi-ceph-node-secret'
secrets() { k get secrets csi-ceph-secret csi-ceph-node-secret -n hearth -o json | jq -c '[.items[].data]'; }
by_its_notes=$(secrets)
k delete secrets csi-ceph-secret csi-ceph-node-secret -n hearth >/dev/null
documented $INSTALL 'kubectl -n hearth create secret generic csi-ceph-secret'
documented $INSTALL 'kubectl -n hearth create secret generic csi-ceph-node-secret'
same by_its_notes_too "$by_its_notes" "$(secrets)"
documented $INSTALL 'helm install'
documented $NOTES 'kubectl -n {{ .Release.Namespace }} get pods' '{{ .Release.Namespace }}=hearth'
documented $NOTES 'kubectl get csinodes'
check shows_where_it_is grep -q '^n1  *csi.hearth.dev' "$DOCUMENTED_OUT"
documented $NOTES 'kubectl get nodecache'
documented $NOTES 'kubectl apply -f -' '{{ (first .).name }}=cephfs' '{{ (first .).dataset | empty | ternary "ReadWriteOnce" "ReadOnlyMany" }}=ReadWriteOnce'
same the_claim_of_its_notes_waits "$(field pvc data .status.phase)" Pending
k delete pvc data --timeout=60s >/dev/null
helm get notes hearth >"$TMP/notes"
for words in 'kubectl -n hearth get pods' 'helm test hearth -n hearth' 'storageClassName: cephfs' 'exec ds/hearth-node -- hearthctl status'; do
    check "its_notes_say ${words}" grep -qF -- "$words" "$TMP/notes"
done
same with_the_policy_that_this_kubernetes_has "$(field mutatingadmissionpolicy dataset-affinity.csi.hearth.dev .metadata.name)" dataset-affinity.csi.hearth.dev
same and_clusters_as_given "$(k get configmap ceph-csi-config -n hearth -o json | jq -cS '.data["config.json"] | fromjson')" "$(jq -cS . "$TMP/config.json")"
pods_of() { k get pods -n hearth -l "app.kubernetes.io/component=$1" -o json; }
pods() { pods_of "$1" | jq '[.items[] | select(.metadata.deletionTimestamp == null and .spec.nodeName != null)] | length'; }
settles two_controllers 30 2 pods controller
settles a_node_plugin_each 30 2 pods node
settles a_hearthd_each 30 2 pods hearthd
settles a_keeper_each 30 2 pods keeper
same controllers_are_apart "$(pods_of controller | jq '[.items[].spec.nodeName] | unique | length')" 2

# ---- its controller, with the Deployment's own arguments and rights
k get deployment hearth-controller -n hearth -o json >"$TMP/deployment.json"
arguments() { jq -r --arg c "$1" '.spec.template.spec.containers[] | select(.name == $c).args[]' "$TMP/deployment.json"; }
account=$(jq -r .spec.template.spec.serviceAccountName "$TMP/deployment.json")
kubeconfig_for hearth "$account" "$TMP/account.conf" || die "no token"
k --kubeconfig="$TMP/account.conf" config set-context --current --namespace=hearth >/dev/null
mapfile -t args < <(arguments hearth-csi | grep -vE '^--(role|endpoint)=' | sed "s|=/etc/hearth/secret|=$TMP/own|")
start_controller "${args[@]}" --kubeconfig="$TMP/account.conf"
pod=$(pods_of controller | jq -r '.items[0].metadata.name')
sidecar() { # NAME [ARGS]
    local name=$1 args
    shift
    mapfile -t args < <(arguments "$name" | sed "s|/csi/csi.sock|$CONTROLLER|")
    spawn "$name" env NAMESPACE=hearth POD_NAME="$pod" "$KUBE/$name" "${args[@]}" --kubeconfig="$TMP/account.conf" --leader-election-namespace=hearth --v=4 "$@"
}
sidecar csi-provisioner --capacity-poll-interval=5s
sidecar csi-resizer
sidecar csi-snapshotter
spawn snapshot-controller "$KUBE/snapshot-controller" --kubeconfig="$PKI/admin.conf" --leader-election=false
check its_probe_says_alive "$BUILD/hearth-csi" probe --endpoint="unix://$CONTROLLER"
check and_ready "$BUILD/hearth-csi" probe --ready --endpoint="unix://$CONTROLLER"
leases() { k get leases -n hearth -o 'jsonpath={range .items[*]}{.metadata.name} {end}' | wc -w; }
settles each_has_its_lease 60 4 leases
room() { k get csistoragecapacities -n hearth -o 'jsonpath={range .items[?(@.storageClassName=="cephfs")]}{.metadata.ownerReferences[0].kind}/{.metadata.ownerReferences[0].name} {end}' | tr ' ' '\n' | sort -u | paste -sd ' ' | xargs; }
settles room_is_told_and_goes_with_the_deployment 60 Deployment/hearth-controller room
claim_add data cephfs 1Gi
pod_add reader data
settles a_claim_of_its_class_is_bound 60 Bound field pvc data .status.phase
volume=$(field pvc data .spec.volumeName)
documented $TROUBLE 'kubectl describe pod POD' POD=reader
documented $TROUBLE 'kubectl describe pvc' CLAIM=data
documented $TROUBLE 'kubectl -n hearth get pods,leases'
documented $TROUBLE 'kubectl get csistoragecapacities -A'
check shows_room_of_the_class grep -qE '^cephfs +[0-9]' "$DOCUMENTED_OUT"
documented docs/migration.md 'kubectl patch pv OLD' OLD="$volume"
documented docs/migration.md 'kubectl get pv OLD' OLD="$volume"
check it_is_kept_and_written_down grep -q 'persistentVolumeReclaimPolicy: Retain' "$READER/old.yaml"
k patch pv "$volume" -p '{"spec": {"persistentVolumeReclaimPolicy": "Delete"}}' >/dev/null
k patch pvc data --type=merge -p '{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}' >/dev/null
settles it_grows 60 2Gi field pv "$volume" .spec.capacity.storage
documented docs/storageclass.md 'kubectl patch pvc' CLAIM=data CLASS=quota
settles it_changes 60 quota field pvc data .status.currentVolumeAttributesClassName
k create -f - >/dev/null <<<'{"apiVersion": "snapshot.storage.k8s.io/v1", "kind": "VolumeSnapshot", "metadata": {"name": "s"},
    "spec": {"volumeSnapshotClassName": "snaps", "source": {"persistentVolumeClaimName": "data"}}}'
settles its_snapshot_is_ready 60 true field volumesnapshot s .status.readyToUse
k delete volumesnapshot s --timeout=60s >/dev/null
pod_remove reader
claim_remove data
settles and_is_deleted_with_its_claim 60 "" field pv "$volume" .metadata.name
denials=$(grep -hE 'is forbidden' "$TMP"/log/csi-*.log "$TMP/log/controller.log" | head -n 1)
same nothing_was_forbidden_to_them "$denials" ""

# ---- an upgrade
# No kubelet says that they are ready.
for pod in $(pods_of hearthd | jq -r '.items[].metadata.name'); do
    k patch pod "$pod" -n hearth --subresource=status --type=merge -p '{"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2024-01-01T00:00:00Z"}]}}' >/dev/null
done
going() { pods_of "$1" | jq '[.items[] | select(.metadata.deletionTimestamp != null)] | length'; }
jq '. + {logLevel: "debug", image: {tag: "9.9.9"}}' "$READER/values.yaml" >"$TMP/values" && mv "$TMP/values" "$READER/values.yaml"
documented_block docs/operations.md "Upgrade" 1
seen() { k get daemonset "$1" -n hearth -o 'jsonpath={.metadata.generation} {.status.observedGeneration} {.status.updatedNumberScheduled}'; }
settles hearthd_is_to_change 30 "2 2 " seen hearthd
# None is ever ready here, so both may go at once; and they stay until a kubelet has ended them.
settles node_plugins_are_replaced 60 2 going node
settles the_next_hearthd_is_beside_the_old_ones 30 3 pods hearthd
same which_stay_until_it_is_ready "$(going hearthd) $(going keeper)" "0 0"
k delete pod -n hearth -l app.kubernetes.io/component=hearthd --force --grace-period=0 >/dev/null 2>&1
images() { pods_of hearthd | jq -r '[.items[].spec.containers[0].image] | unique | join(" ")'; }
settles deleted_it_comes_back_new 60 localhost/hearth:9.9.9 images
upgrade() { helm upgrade hearth "$CHART" --values "$READER/values.yaml" "$@"; }
k patch node n1 --subresource=status --type=merge -p '{"status": {"nodeInfo": {"kernelVersion": "6.8.0-1"}}}' >/dev/null
refused where_hearthd_cannot_leave_its_mounts_it_does_not_roll 'n1 has Linux 6.8.0-1' upgrade
k patch node n1 --subresource=status --type=merge -p '{"status": {"nodeInfo": {"kernelVersion": "6.9.1"}}}' >/dev/null
k delete daemonset hearth-keeper -n hearth >/dev/null
refused nor_where_it_is_of_a_release_before 'the hearthd that runs is of 0.1.0' upgrade
check unless_somebody_replaces_it upgrade --set hearthd.updateStrategy.type=OnDelete
check and_afterwards_it_rolls upgrade

# ---- the end
k label node n1 warm.csi.hearth.dev/aaaaaaaaaaaaaaaa=100 >/dev/null
k create -f - >/dev/null <<<'{"apiVersion": "csi.hearth.dev/v1alpha1", "kind": "NodeCache", "metadata": {"name": "n1"}}'
for name in csi-provisioner csi-resizer csi-snapshotter controller; do end $name; done
# Its hook is a Job, which nobody runs here.
helm get hooks hearth >"$TMP/hooks.yaml"
check it_uninstalls helm uninstall hearth --no-hooks --timeout 60s
left() { # by what only we have made
    k get clusterroles,clusterrolebindings,crds,validatingadmissionpolicies,validatingadmissionpolicybindings,mutatingadmissionpolicies,mutatingadmissionpolicybindings,csidrivers,storageclasses,volumesnapshotclasses,volumeattributesclasses \
        -l app.kubernetes.io/name=hearth -o name
    k get deployments,daemonsets,configmaps,serviceaccounts,roles,rolebindings,poddisruptionbudgets,networkpolicies -n hearth -l app.kubernetes.io/name=hearth -o name
}
settles and_leaves_nothing_of_its_own 60 "" left
rights_of_the_hook() { awk -v RS='---\n' '/kind: (ServiceAccount|ClusterRole|ClusterRoleBinding)\n/ && /name: hearth-cleanup/ { print "---\n" $0 }' "$TMP/hooks.yaml"; }
rights_of_the_hook | k apply -f - >/dev/null || die "the hook's rights are refused"
kubeconfig_for hearth hearth-cleanup "$TMP/cleanup.conf" || die "no token for the cleanup"
check its_hook_cleans_up "$BUILD/hearth-csi" cleanup --kubeconfig="$TMP/cleanup.conf"
same no_label_is_left "$(k get node n1 -o json | jq -c '[.metadata.labels | keys[] | select(contains("csi.hearth.dev"))]')" "[]"
