#!/bin/bash
# Kubernetes' own tests of storage drivers (test/e2e/storage/external of k8s.io/kubernetes), of which everything has to pass
# that a type of volume claims in suite/TYPE.json. What the suite skips has its reason in suite/skips, what is not run, in
# suite/not-run, and how many pass of each of its parts is in suite/counts: less is a failure.
#
#   make e2e T=external TYPES="cephfs rbd" FOCUS=REGEX PARTS="most early alone" PROCS=4
#
# FOCUS and PARTS run some tests, by their names or by what they need; nothing is counted then. KEEP_LOGS=DIR keeps ginkgo's logs.
. "$(dirname "$0")/../integration/lib.sh"
for part in cluster objects hearth sidecars kubelets images pods; do . "$(dirname "$0")/$part.sh"; done
init
SUITE=$BUILD/e2e/suite
reason=$("$TOP/tests/e2e/suite/build" "$BUILD/e2e")
case $? in
0) ;;
77)
    skip all "$reason"
    exit 0
    ;;
*) die "the suite cannot be built" ;;
esac

# ---- the cluster
hearth_up n1 n2
sed -n '/hearth.groupSnapshots/,/end/{/^  - /p}' "$TOP/charts/hearth/templates/sidecars.yaml" | cat <(printf '%s\n' \
    'apiVersion: rbac.authorization.k8s.io/v1' 'kind: ClusterRole' 'metadata: { name: hearth-groups }' 'rules:') - | k apply -f - >/dev/null &&
    k create clusterrolebinding hearth-groups --clusterrole=hearth-groups --serviceaccount=hearth:hearth-controller >/dev/null || die "no rights for groups"
snapshots_up "$CONTROLLER" --feature-gates=CSIVolumeGroupSnapshot=true
resizer_up "$CONTROLLER"
suite_images

class_add suite-cephfs "$STAGE_SECRET"
CLASS=$(jq -c 'del(.fsName)' <<<"$CLASS") class_add suite-rbd "$(jq -c '. + {type: "rbd", pool: "rbd"}' <<<"$STAGE_SECRET")"
for class in suite-cephfs suite-rbd; do
    k get storageclass $class -o json | jq '.metadata = {name: (.metadata.name + "-early")} | .volumeBindingMode = "Immediate"' | k create -f - >/dev/null || die "no class"
done
snapshot_class_add
k get volumesnapshotclass hearth -o json | jq '.kind = "VolumeGroupSnapshotClass" | .apiVersion = "groupsnapshot.storage.k8s.io/v1" |
    .metadata = {name} | .metadata.name = "hearth" | .parameters |= with_entries(.key |= sub("snapshotter"; "group-snapshotter"))' | k create -f - >/dev/null || die "no class of groups"
attributes_add() { # NAME PARAMETERS
    jq -n --arg name "$1" --argjson p "$2" --arg driver $DRIVER '{apiVersion: "storage.k8s.io/v1", kind: "VolumeAttributesClass",
        metadata: {name: $name}, driverName: $driver, parameters: $p}' | k create -f - >/dev/null || die "no VolumeAttributesClass"
}
attributes_add suite-cephfs '{"cacheQuota": "64Mi"}'
attributes_add suite-rbd '{"iopsPerSecond": "2000"}'

# ---- who logs in to a node can stop and start its kubelet
openssl ecparam -genkey -name prime256v1 -noout -out "$PKI/ssh.key" || die "no key for SSH"
mkdir "$TMP/nodes/bin"
for name in systemctl sudo; do ln -s "$TOP/tests/e2e/suite/systemctl" "$TMP/nodes/bin/$name"; done
for name in n1 n2; do
    spawn_in $name ssh-$name env PATH="$TMP/nodes/bin:$PATH" "$SUITE/ssh" "$(<"$(node_dir $name)/address"):22" "$PKI/ssh.key"
done
export KUBE_SSH_KEY_PATH=$PKI/ssh.key KUBE_SSH_USER=root

# ---- its tests
SUITE_FILES=$TOP/tests/e2e/suite
# What this machine has not, by the names in not-run.
LACKS=
[ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 24 & 1)) = 1 ] || LACKS=CAP_SYS_RESOURCE
export LACKS
not_run() { # TYPE: names of tests
    awk -F '\t' -v type="$1" -v lacks="$LACKS" '!/^#/ && index("," $1 ",", "," type ",") && ($2 == "-" || $2 == lacks) { print $3 }' "$SUITE_FILES/not-run" | paste -sd '|'
}
suite() { # TYPE NAME PROCS FOCUS [SKIP]: into $TMP/TYPE-NAME.json
    local name=$1-$2
    "$SUITE/ginkgo" run --procs="$3" --no-color --timeout=4h --poll-progress-after=300s --output-dir="$TMP" --json-report="$name.json" \
        --focus="External.Storage.*$4" --skip="$(not_run "$1")${5:+|$5}" \
        "$SUITE/storage.test" -- --kubeconfig="$PKI/admin.conf" --kubectl-path="$KUBE/kubectl" --provider=skeleton \
        --storage.testdriver="${DEFINITION:-$SUITE_FILES/$1.json}" >"$TMP/log/suite-$name.log" 2>&1
    [ -s "$TMP/$name.json" ] || fail "suite_runs_$name" "$(grep -vE '^ *$' "$TMP/log/suite-$name.log" | tail -n 3)"
    [ -z "${KEEP_LOGS:-}" ] || cp "$TMP/log/suite-$name.log" "$TMP/$name.json" "$KEEP_LOGS/"
}
ALONE='\[Disruptive\]|\[Serial\]' # those that stop a kubelet
# These want claims that are bound before there is a pod.
EARLY='volume-modify-stress|pvc-deletion-performance|volume-lifecycle-performance'
for type in ${TYPES:-cephfs rbd}; do
    jq '.StorageClass.FromExistingClassName += "-early"' "$SUITE_FILES/$type.json" >"$TMP/early-$type.json"
    for part in ${PARTS:-most early alone}; do
        case $part in
        most) suite "$type" most "${PROCS:-4}" "${FOCUS:-}" "$ALONE|$EARLY" ;;
        early) DEFINITION=$TMP/early-$type.json suite "$type" early 1 "($EARLY).*${FOCUS:-}" ;;
        alone) suite "$type" alone 1 "($ALONE).*${FOCUS:-}" "$EARLY" ;;
        esac
    done
    while IFS=$'\t' read -r state name why; do
        case $state in
        pass) pass "$name" ;;
        fail) fail "$name" "$why" ;;
        skip) skip "$name" "$why" ;;
        esac
    done < <("$SUITE_FILES/report" "$type" ${FOCUS:+--some} ${PARTS:+--some} "$TMP/$type"-*.json)
done
