# Sourced by check: what the chart makes for each version of Kubernetes that docs/kubernetes.md has, and what it says
# where one lacks something.

VERSIONS="1.30 1.31 1.32 1.33 1.34 1.35 1.36 1.37"
MUTATING=admissionregistration.k8s.io/v1/MutatingAdmissionPolicy
ATTRIBUTES=storage.k8s.io/v1/VolumeAttributesClass
SNAPSHOT=snapshot.storage.k8s.io/v1/VolumeSnapshot
GROUP=groupsnapshot.storage.k8s.io/v1/VolumeGroupSnapshot
GROUPS_ON=provisioner.snapshotter.args.enableVolumeGroupSnapshots=true

from() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; } # FIRST VERSION
# What a cluster of that version says of itself; every cluster has v1/Pod, and `helm template` alone has no kinds.
cluster() { # VERSION [KIND...]
    printf -- '--api-versions=%s ' v1/Pod "${@:2}"
    ! from 1.34 "$1" || printf -- '--api-versions=%s ' $ATTRIBUTES
    ! from 1.36 "$1" || printf -- '--api-versions=%s ' $MUTATING
}
either() { # CONDITION NAME TEXT: there or not
    if [ "$1" = yes ]; then has "$2" "$3"; else lacks "$2" "$3"; fi
}

for version in $VERSIONS; do
    n=${version/./_} KUBE_VERSION=$version.0 recovery=no policy=no
    from 1.32 $version || recovery=yes
    ! from 1.36 $version || policy=yes
    template kubernetes $(cluster $version $SNAPSHOT) --values "$chart/examples/webhook.yaml" --set webhook.enabled=false ||
        fail "kubernetes_${n}_installs" "$(tr '\n' ' ' <"$tmp/err")"
    has "kubernetes_${n}_holds_nodes_to_their_own_objects" 'kind: ValidatingAdmissionPolicy' 'authentication.kubernetes.io/node-name'
    either $policy "kubernetes_${n}_has_a_mutating_policy_from_1_36" 'kind: MutatingAdmissionPolicy'
    either $recovery "kubernetes_${n}_recovers_no_expansion_before_1_32" RecoverVolumeExpansionFailure=false
    if from 1.34 $version; then
        template kubernetes --set "volumeAttributesClasses[0].name=slow,volumeAttributesClasses[0].parameters.warm=none"
        has "kubernetes_${n}_has_volume_attributes_classes" 'kind: VolumeAttributesClass'
    else
        refused "kubernetes_${n}_refuses_volume_attributes_classes" "this Kubernetes is v$version.0.*needs 1.34" \
            --set "volumeAttributesClasses[0].name=slow,volumeAttributesClasses[0].parameters.warm=none"
    fi
done
KUBE_VERSION=1.29.9 refused kubernetes_1_29_is_too_old '>=1.30'

# By what a cluster says, not by its version: a feature can be off, and the definitions of snapshots are not Kubernetes' own.
KUBE_VERSION=1.35.0
refused a_kind_that_is_off_is_not_used 'without storage.k8s.io/v1 VolumeAttributesClass' --api-versions=v1/Pod \
    --set "volumeAttributesClasses[0].name=slow,volumeAttributesClasses[0].parameters.warm=none"
GROUP_CLASS=(--set secret.name=ceph --set 'volumeGroupSnapshotClasses[0].name=moments' --set 'volumeGroupSnapshotClasses[0].clusterID=c1'
    --set 'volumeGroupSnapshotClasses[0].volumeGroupNamePrefix=m-' --set 'volumeGroupSnapshotClasses[0].secretNamespace=tenant')
template groups --set $GROUPS_ON "${GROUP_CLASS[@]}" $(cluster 1.35 $SNAPSHOT $GROUP)
has group_snapshots_are_on_where_their_kinds_are CSIVolumeGroupSnapshot=true volumegroupsnapshotcontents
has with_their_classes 'kind: VolumeGroupSnapshotClass' 'name: moments' 'volumeGroupNamePrefix: "m-"' 'clusterID: "c1"' \
    'csi.storage.k8s.io/group-snapshotter-secret-name: ceph' 'csi.storage.k8s.io/group-snapshotter-get-secret-namespace: tenant' \
    'name: hearth-secrets, namespace: tenant'
template groups --set $GROUPS_ON "${GROUP_CLASS[@]}" $(cluster 1.35 $SNAPSHOT)
lacks and_off_where_they_are_not CSIVolumeGroupSnapshot volumegroupsnapshotcontents 'kind: VolumeGroupSnapshotClass'
has which_leaves_single_snapshots 'name: csi-snapshotter'
refused classes_of_what_is_off 'group snapshots are off' "${GROUP_CLASS[@]}" --api-versions=v1/Pod

# ---- what the administrator is told

cp -r "$chart" "$tmp/noted"
{
    echo '{{- define "notes" }}'
    cat "$chart/templates/NOTES.txt"
    printf '{{ end }}\nnotes: {{ include "notes" . | quote }}\n'
} >"$tmp/noted/templates/noted.yaml"
notes() { # VERSION ARGS...
    KUBE_VERSION=$1.0 chart=$tmp/noted template notes --show-only templates/noted.yaml "${@:2}" || fail notes "$(<"$tmp/err")"
}
notes 1.35 --set $GROUPS_ON $(cluster 1.35 $SNAPSHOT)
has the_notes_say_that_group_snapshots_are_off 'Group snapshots are off' 'This Kubernetes has no MutatingAdmissionPolicy (1.36)'
lacks and_nothing_of_what_is_there 'has no VolumeSnapshots' ServiceAccountTokenPodNodeInfo
notes 1.31 $(cluster 1.31)
has or_that_snapshots_have_no_definitions 'This cluster has no VolumeSnapshots' ServiceAccountTokenPodNodeInfo
has or_that_there_is_no_image 'image.repository is still localhost/hearth'
notes 1.37 --set image.repository=registry.example/hearth --set $GROUPS_ON $(cluster 1.37 $SNAPSHOT $GROUP)
lacks and_nothing_where_all_is_there 'has no' localhost/hearth 'Group snapshots are off' ServiceAccountTokenPodNodeInfo
unset KUBE_VERSION

# ---- the document

for version in $VERSIONS; do
    grep -q "^| $version |" "$top/docs/kubernetes.md" || fail "the_document_has_kubernetes_${version/./_}" "docs/kubernetes.md has no row for it"
done
