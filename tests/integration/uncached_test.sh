#!/bin/bash
# An RBD image without exclusive-lock gets no cache, and everybody is told: hearthd's log, hearthctl, the node's NodeCache
# and, by the controller, an Event of the claim. On a real Ceph, with a stand-in of the Kubernetes API.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/rbd_static.sh"
. "$(dirname "$0")/kube_api.sh"
init
start_ceph
kube_api_up
own_user
start_controller --secret-dir="$TMP/own" --warmth --kubeconfig="$TMP/kubeconfig"
start_hearthd
start_node --warmth --kubeconfig="$TMP/kubeconfig"
RUN=$$
EVENTS=/api/v1/namespaces/jobs/events
bound() { # PV CLAIM: a PersistentVolume of the volume, bound
    kube_put "api/v1/persistentvolumes/$1" "$(jq -cn --arg n "$1" --arg h "$VOLUME_ID" --arg c "$2" --argjson x "$VOLUME_CONTEXT" '{apiVersion: "v1",
        kind: "PersistentVolume", metadata: {name: $n, uid: ("uid-of-" + $n)}, status: {phase: "Bound"}, spec: {csi: {driver: "csi.hearth.dev",
        volumeHandle: $h, volumeAttributes: $x}, claimRef: {namespace: "jobs", name: $c, uid: ("uid-of-" + $c)}}}')"
}
uncached() { kube_objects apis/csi.hearth.dev/v1alpha1/nodecaches | jq -r '[.[].status.uncached[]?.volumeHandle] | join(" ")'; }
is_uncached() { [ "$(uncached)" = "$1" ]; }
events() { kube_objects "${EVENTS#/}" | jq "length"; }
is_told() { [ "$(events)" = 1 ]; }
event() { kube_objects "${EVENTS#/}" | jq -r ".[0]$1"; }

capability ext4
new_image locked 256M --image-feature layering,exclusive-lock
bound pv-locked kept
up || die "$(said)"
new_image plain 256M --image-feature layering
PLAIN=$VOLUME_ID
LOCKED_TARGET=$TARGET LOCKED_STAGE=$STAGE
bound pv-plain data
STAGE=$TMP/mnt/stage-plain TARGET=$TMP/mnt/pod/plain
up || die "$(said)"
wait_for 60 is_uncached "$PLAIN"
same the_nodecache_names_the_one_without_the_lock "$(uncached)" "$PLAIN"
wait_for 60 is_told
same its_claim_gets_an_event "$(events) $(event .involvedObject.name) $(event .involvedObject.uid) $(event .reason)" "1 data uid-of-data NotCached"
check which_says_what_to_do grep -q 'PersistentVolume pv-plain has no exclusive-lock.*rbd feature enable' <(event .message)
check and_the_log_does grep -q "$PLAIN.*exclusive-lock" "$TMP/log/hearthd.log"
check and_hearthctl grep -q "$PLAIN.*exclusive-lock" <(hearthctl status)
for i in 1 2 3; do wait_for 30 down && up || die "$(said)"; done
sleep 7
same however_often_it_is_staged_there_is_one "$(events) $(kube_requests | grep -c "^POST $EVENTS ")" "1 1"
wait_for 30 down || die "$(said)"
wait_for 60 is_uncached ""
same one_that_is_not_mounted_is_not_named "$(uncached)" ""
rbd_cmd feature enable "rbd/plain-$RUN" exclusive-lock || die "rbd feature enable"
up || die "$(said)"
sleep 7
same with_the_lock_it_is_cached "$(uncached)" ""
wait_for 30 down || die "$(said)"
image "locked-$RUN"
STAGE=$LOCKED_STAGE TARGET=$LOCKED_TARGET
wait_for 30 down || die "$(said)"
same and_no_other_claim_was_told "$(events)" 1
