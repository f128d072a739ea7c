#!/bin/bash
# Volumes in pods that real kubelets run: CephFS for several nodes, images with a file system and as devices, groups,
# expansion, snapshots and restored ones; what pods used is gone with them.
. "$(dirname "$0")/../integration/lib.sh"
for part in cluster objects hearth sidecars kubelets pods; do . "$(dirname "$0")/$part.sh"; done
init
hearth_up n1 n2
snapshots_up "$CONTROLLER"
resizer_up "$CONTROLLER"
snapshot_class_add
class_add files "$STAGE_SECRET"
image_class() { # NAME PARAMETERS
    CLASS=$(jq -c 'del(.fsName)' <<<"$CLASS") class_add "$1" "$(jq -c --argjson more "$2" '. + {type: "rbd", pool: "rbd"} + $more' <<<"$STAGE_SECRET")"
}
image_class images '{"csi.storage.k8s.io/fstype": "ext4"}'
image_class xfs '{"csi.storage.k8s.io/fstype": "xfs"}'
USED_BEFORE=$(used_all)

WRITE='dd if=/dev/urandom of=/data/file bs=1M count=16 2>/dev/null && sync && sums >$out'
CHECK='[ "$(sums)" = WANTED ] || { echo "other bytes" >$out; exit 1; }'
both() { jq -c -s '.[0] * .[1]' <<<"$1 $2"; }
GROUP='{"securityContext": {"runAsUser": 1000, "runAsGroup": 1000, "fsGroup": 2000}}'
# As that user, by the group alone.
GROUPED='[ "$(stat -c %g /data)" = 2000 ] || { stat -c "%u %g %a" /data >$out; exit 1; }'
wait_running() { within 60 job_runs "$1" >/dev/null || fail "$1" "its pod does not run: $(k get pods -l "job-name=$1" -o json | jq -c '.items[0].status.containerStatuses')"; }

# ---- one volume, two nodes, at the same time
claim_add shared files 1Gi
job_add holder shared "$WRITE"'; until [ -e /data/.done ]; do sleep 0.2; done' "$(on n1)"
wait_running holder
job a_pod_elsewhere_writes_beside_it shared 'until [ -e /data/file ]; do sleep 0.2; done; echo here >/data/other; sync; touch /data/.done; sums >$out' "$(on n2)"
job_done holder && pass and_the_first_sees_it || fail and_the_first_sees_it "$SAID"
job_remove holder
job both_are_there_later shared '[ "$(cat /data/other)" = here ] && [ "$(stat -c %s /data/file)" = $((16 << 20)) ]' "$(on n1)"
job a_group_may_write_without_owning shared "$GROUPED"' && touch /data/mine && [ "$(stat -c %g /data/mine)" = 2000 ]' "$GROUP"
unused nothing_is_left_of_shared_volumes

# ---- an image, from one node to the other
for class in images xfs; do
    claim_add "$class" $class 1Gi '{"accessModes": ["ReadWriteOnce"]}'
    job_add "${class}1" $class "$GROUPED && $WRITE" "$(both "$(on n1)" "$GROUP")"
    job_done "${class}1" && pass "a_pod_writes_an_image_of_$class" || fail "a_pod_writes_an_image_of_$class" "$SAID"
    wrote=$SAID
    job_remove "${class}1"
    unused "nothing_is_left_of_it_$class"
    job "${class}_on_another_node_reads_it" $class "${CHECK/WANTED/$wrote}" "$(on n2)"
done
unused nothing_is_left_of_images

# ---- a device
claim_add device images 256Mi '{"accessModes": ["ReadWriteOnce"], "volumeMode": "Block"}'
DEVICE='{"container": {"volumeMounts": [], "volumeDevices": [{"name": "data", "devicePath": "/dev/volume"}]}}'
job_add device1 device 'dd if=/dev/urandom of=/dev/volume bs=1M count=32 conv=fsync 2>/dev/null && blockdev --getsize64 /dev/volume >$out &&
    dd if=/dev/volume bs=1M count=32 2>/dev/null | sha256sum | cut -c 1-64 >>$out' "$(both "$(on n1)" "$DEVICE")"
job_done device1 && pass a_pod_writes_a_device || fail a_pod_writes_a_device "$SAID"
job_remove device1
same of_the_size_asked_for "$(head -n 1 <<<"$SAID")" $((256 << 20))
job another_node_reads_the_device device "[ \$(dd if=/dev/volume bs=1M count=32 2>/dev/null | sha256sum | cut -c 1-64) = $(tail -n 1 <<<"$SAID") ]" "$(both "$(on n2)" "$DEVICE")"
unused nothing_is_left_of_devices

# ---- larger, while a pod has it
sleeper() { # CLAIM [SPEC]: its pod says how large it is, once /data/ or the device has grown
    job_add "grows-$1" "$1" "$2" "${3:-"{}"}"
    wait_running "grows-$1"
    k patch pvc "$1" --type=merge -p '{"spec": {"resources": {"requests": {"storage": "2Gi"}}}}' >/dev/null
    settles "claim_of_${1}_grows" 90 2Gi field pvc "$1" .status.capacity.storage
    job_done "grows-$1" 60 && pass "a_running_pod_sees_it_grow_$1" || fail "a_running_pod_sees_it_grow_$1" "$SAID"
    job_remove "grows-$1"
}
blocks='until [ "$(df -kP /data | awk "END { print (\$2 > 1500000) }")" = 1 ]; do [ $((i += 1)) -lt 300 ] || exit 1; sleep 0.2; done'
sleeper shared "$blocks"
sleeper xfs "$blocks"
sleeper device 'until [ "$(blockdev --getsize64 /dev/volume)" = $((2 << 30)) ]; do [ $((i += 1)) -lt 300 ] || exit 1; sleep 0.2; done' "$DEVICE"
# A mounted ext4 grows only for who has CAP_SYS_RESOURCE; without, at the next stage.
if grep -q '^CapEff:.*' /proc/self/status && [ $((0x$(awk '/^CapEff/ { print $2 }' /proc/self/status) >> 24 & 1)) = 1 ]; then
    sleeper images "$blocks"
else
    skip a_running_pod_sees_ext4_grow "root lacks CAP_SYS_RESOURCE here, which the kernel wants for a mounted ext4"
fi
unused nothing_is_left_of_larger_ones

# ---- snapshots, and volumes of them
for claim in shared xfs; do
    modes='{"accessModes": ["ReadWriteOnce"]}'
    [ $claim != shared ] || modes='{"accessModes": ["ReadWriteMany"]}'
    job_add "before-$claim" $claim 'sums >$out'
    job_done "before-$claim" || fail "before-$claim" "$SAID"
    wrote=$SAID
    job_remove "before-$claim"
    snapshot_add "snap-$claim" $claim
    job "a_pod_changes_${claim}_after_its_snapshot" $claim 'echo changed >/data/file; rm -f /data/other; sync'
    claim_add "restored-$claim" "$([ $claim = shared ] && echo files || echo xfs)" 2Gi "$(jq -c --arg s "snap-$claim" '. + {dataSource: {apiGroup: "snapshot.storage.k8s.io",
        kind: "VolumeSnapshot", name: $s}}' <<<"$modes")"
    job "a_pod_of_the_restored_${claim}_reads_what_was" "restored-$claim" "${CHECK/WANTED/$wrote}; echo more >/data/more && sync"
done
unused nothing_is_left_of_restored_ones

# ---- for one pod: after its restart kubelet publishes again
publishes() { grep -c NodePublishVolume "$TMP/log/plugin-n1.log"; }
failed_mounts() {
    k get events -o json | jq -c '[.items[] | select(.reason == "FailedMount" or .reason == "FailedMapVolume") |
        select(.involvedObject.name | startswith("one-")) | .message]'
}
one_pod() { # NAME CLASS SPEC [CLAIM-JSON]
    claim_add "one-$1" "$2" 256Mi "$(both '{"accessModes": ["ReadWriteOncePod"]}' "${4:-"{}"}")"
    job_add "one-$1" "one-$1" 'sleep 40' "$(both "$(on n1)" "$3")"
}
SUBPATH='{"container": {"volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": "sub"}]}}'
ONE="files files-sub image image-sub device"
one_pod files files '{}'
one_pod files-sub files "$SUBPATH"
one_pod image images '{}'
one_pod image-sub images "$SUBPATH"
one_pod device images "$DEVICE" '{"volumeMode": "Block"}'
for name in $ONE; do wait_running "one-$name"; done
before=$(publishes)
kubelet_restart n1
all_again() { [ "$(publishes)" -ge $((before + 5)) ]; }
check kubelet_publishes_all_five_again within 30 all_again
for name in $ONE; do job_done "one-$name" && pass "pod_goes_on_one_$name" || fail "pod_goes_on_one_$name" "$SAID"; done
same nothing_is_refused_to_the_one_pod "$(failed_mounts)" "[]"
for name in $ONE; do job_remove "one-$name"; done
unused nothing_is_left_of_one_pods

# ---- while plugin and kubelet restart
COUNT='until=$(($(date +%s) + 25)) n=0
while [ $(date +%s) -lt $until ]; do
    n=$((n + 1))
    echo $n | dd of=/data/count conv=fsync 2>/dev/null && [ "$(cat /data/count)" = $n ] || { echo "fails at $n" >$out; exit 1; }
done
echo $n writes >$out'
for claim in shared xfs; do job_add "busy-$claim" $claim "$COUNT" "$(on n1)"; done
for claim in shared xfs; do wait_running "busy-$claim"; done
end plugin-n1 KILL
plugin_start n1
kubelet_restart n1 KILL
within 30 registered n1 >/dev/null || fail registered_again "the plugin on n1 is not"
end plugin-n1
plugin_start n1
kubelet_restart n1
for claim in shared xfs; do
    job_done "busy-$claim" && pass "a_pod_works_on_meanwhile_$claim" || fail "a_pod_works_on_meanwhile_$claim" "$SAID"
    echo "     $SAID on $claim"
    job_remove "busy-$claim"
done
within 30 registered n1 >/dev/null || fail registered_at_last "the plugin on n1 is not"
unused nothing_is_left_after_restarts

# ---- killed while it writes
for claim in shared xfs; do
    job_add writer $claim 'while :; do dd if=/dev/zero of=/data/big bs=1M count=64 2>/dev/null; done' "$(on n1)"
    wait_running writer
    sleep 1
    k delete pods -l job-name=writer --grace-period=0 --force >/dev/null 2>&1
    job_remove writer
    unused "nothing_is_left_of_a_writer_killed_on_$claim"
    job "its_${claim}_volume_is_good_on_the_other_node" $claim '[ "$(cat /data/file)" = changed ] && rm -f /data/big && sync' "$(on n2)"
done

# ---- gone
k delete pvc --all --timeout=90s >/dev/null
snapshot_remove snap-shared
snapshot_remove snap-xfs
settles volumes_are_gone_with_their_claims 90 "" k get pv -o name
same no_subvolume_is_left "$(ceph_cmd fs subvolume ls hearthfs --group_name csi --format json | jq -r '.[].name')" ""
same no_image_is_left "$(rbd_cmd ls rbd; rbd_cmd trash ls rbd)" ""
unused nothing_is_left_at_all
