#!/bin/bash
# A StorageClass, a VolumeSnapshotClass and a Secret of ceph-csi's work with only `provisioner` changed:
# each parameter its example files name, with a value as they have, those commented out too
# (github.com/ceph/ceph-csi, examples/). A parameter works, or has no meaning here and is told of once
# in the log, or is refused where not to heed it would be wrong.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own" --domainlabels=failure-domain/region
start_hearthd
start_node

# NAME VALUE works|nothing|refused. The values of CLUSTER, and what these clusters call pools, are ours.
secrets_of() { # KIND...: csi.storage.k8s.io/KIND-secret-name and -namespace
    local kind
    for kind in "$@"; do
        echo "csi.storage.k8s.io/$kind-secret-name csi-secret works"
        echo "csi.storage.k8s.io/$kind-secret-namespace default works"
    done
}
cephfs_class() {
    secrets_of provisioner controller-expand node-stage
    cat <<'END'
fsName hearthfs works
pool hearthfs.data works
fuseMountOptions debug nothing
kernelMountOptions readdir_max_bytes=1048576,norbytes nothing
mounter kernel nothing
mounter fuse nothing
volumeNamePrefix foo-bar- works
backingSnapshot false works
encrypted false works
encrypted true refused
encryptionKMSID kms-1 nothing
END
}
rbd_class() {
    secrets_of provisioner controller-expand controller-publish node-stage controller-modify node-publish
    cat <<'END'
pool rbd works
dataPool rbd.ec works
imageFeatures layering works
imageFeatures layering,journaling,exclusive-lock,object-map,fast-diff works
mkfsOptions -m0 -Ediscard -i1024 works
tryOtherMounters false nothing
mapOptions krbd:lock_on_read,queue_depth=1024;nbd:try-netlink nothing
unmapOptions krbd:force;nbd:force nothing
csi.storage.k8s.io/fstype ext4 works
mounter rbd-nbd nothing
cephLogDir /var/log/ceph nothing
cephLogStrategy remove nothing
volumeNamePrefix foo-bar- works
encrypted false works
encrypted true refused
encryptionSectorSize 4096 nothing
encryptionCipher aes-xts-plain64 nothing
encryptionKeySize 256 nothing
integrityMode hmac-sha512 nothing
encryptionType block nothing
encryptionKMSID kms-1 nothing
topologyConstrainedPools [{"poolName":"pool0","domainSegments":[{"domainLabel":"region","value":"east"}]}] works
baseIops 3000 works
maxIops 15000 works
baseReadIops 2000 works
maxReadIops 10000 works
baseWriteIops 1000 works
maxWriteIops 5000 works
baseBps 314572800 works
maxBps 1572864000 works
baseReadBps 209715200 works
maxReadBps 1048576000 works
baseWriteBps 104857600 works
maxWriteBps 524288000 works
iopsPerGiB 30 works
readIopsPerGiB 20 works
writeIopsPerGiB 10 works
bpsPerGiB 3145728 works
readBpsPerGiB 2097152 works
writeBpsPerGiB 1048576 works
baseVolSizeBytes 21474836480 works
stripeUnit 65536 works
stripeCount 4 works
objectSize 4194304 works
END
}
# Without which a class is none; `type` is not among them.
declare -A BASE=([cephfs]=fsName [rbd]=pool)
# What does not go alone.
declare -A WITH=([stripeUnit]='{"stripeCount": "4"}' [stripeCount]='{"stripeUnit": "65536"}'
    [iopsPerGiB]='{"baseIops": "3000"}' [readIopsPerGiB]='{"baseReadIops": "2000"}' [writeIopsPerGiB]='{"maxWriteIops": "5000"}'
    [bpsPerGiB]='{"baseBps": "3000"}' [readBpsPerGiB]='{"baseReadBps": "2000"}' [writeBpsPerGiB]='{"baseWriteBps": "5000"}')

lines() { "${1}_class" | while read -r name rest; do printf '%s\t%s\t%s\n' "$name" "${rest% *}" "${rest##* }"; done; }
# The secret as the example has it: of both kinds of user, with a passphrase besides.
SECRET='{userID: env.PROVISIONER_ID, userKey: env.PROVISIONER_KEY, adminID: env.PROVISIONER_ID,
    adminKey: env.PROVISIONER_KEY, encryptionPassphrase: "test_passphrase"}'
create() { # NAME PARAMETERS [CAPABILITY]
    csi controller CreateVolume "$(csi_json "$SECRET"' as $s | {name: $name, secrets: $s,
        capacity_range: {required_bytes: 1073741824}, volume_capabilities: [$capability],
        parameters: ({clusterID: $fsid} + $parameters)}' --arg name "$1" --argjson parameters "$2" \
        --argjson capability "${3:-"$ONE"}" --arg fsid "$CEPH_FSID")" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
}
ONE='{"mount": {"fs_type": "ext4"}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
told() { grep -c "parameter $1 has no meaning" "$TMP/log/controller.log"; }

for type in cephfs rbd; do
    bad=
    base=$(lines $type | awk -F'\t' -v n="${BASE[$type]}" '$1 == n { printf "{\"%s\": \"%s\"}", $1, $2; exit }')
    i=0
    while IFS=$'\t' read -r name value wanted; do
        parameters=$(jq -cn --argjson base "$base" --argjson with "${WITH[$name]:-"{}"}" --arg name "$name" --arg value "$value" \
            '$base + $with + {($name): $value}')
        if create "pvc-class-$$-$type-$((i += 1))" "$parameters"; then
            got=works
            [ "$(jq -r .type <<<"$VOLUME_CONTEXT")" = $type ] || bad+="$name: not of type $type; "
            delete_volume || bad+="$name: $(said); "
            [ "$(told "$name")" = 0 ] || got=nothing
        else
            got=refused
            [ "$CSI_CODE" = INVALID_ARGUMENT ] && grep -qF "$name" <<<"$CSI_MESSAGE" || bad+="$name: $(said); "
        fi
        [ "$got" = "$wanted" ] || bad+="$name=$value: $got, wanted $wanted: $(said); "
    done < <(lines $type)
    same "${type}_each_parameter_of_ceph_csis" "$bad" ""

    # All that works and all that means nothing, in one class, twice: told of once.
    whole=$(lines $type | awk -F'\t' '$3 != "refused"' | jq -cRn '[inputs | split("\t") | {(.[0]): .[1]}] | add')
    CAPABILITY_OF=$ONE
    [ $type = cephfs ] && CAPABILITY_OF='{"mount": {}, "access_mode": {"mode": "MULTI_NODE_MULTI_WRITER"}}'
    create "pvc-whole-$$-$type" "$whole" "$CAPABILITY_OF" || fail "${type}_a_class_with_all_of_them" "$(said)"
    create "pvc-whole-$$-$type" "$whole" "$CAPABILITY_OF"
    same "${type}_a_class_with_all_of_them" "$CSI_CODE" OK
    same "${type}_told_of_once" "$(lines $type | awk -F'\t' '$3 == "nothing" { print $1 }' | sort -u | while read -r name; do told "$name"; done | sort -u)" 1
    same "${type}_its_prefix" "$(grep -c "foo-bar-pvc-whole-$$-$type" <<<"$VOLUME_ID")" 1

    # It is used, with the class's mountOptions.
    CAPABILITY=$CAPABILITY_OF
    [ $type = rbd ] && CAPABILITY=$(jq -c '.mount.mount_flags = ["discard"]' <<<"$ONE")
    if stage && publish; then
        echo hello >"$TARGET/file" && sync "$TARGET/file" && pass "${type}_mounts" || fail "${type}_mounts" "no writing"
    else
        fail "${type}_mounts" "$(said)"
    fi
    unpublish && unstage || fail "${type}_unmounts" "$(said)"

    # Its VolumeSnapshotClass.
    csi controller CreateSnapshot "$(csi_json "$SECRET"' as $s | {source_volume_id: $id, name: $name, secrets: $s,
        parameters: {clusterID: $fsid, snapshotNamePrefix: "foo-bar-", "csi.storage.k8s.io/snapshotter-secret-name": "csi-secret",
            "csi.storage.k8s.io/snapshotter-secret-namespace": "default"}}' --arg id "$VOLUME_ID" --arg name "snap-class-$$" --arg fsid "$CEPH_FSID")"
    same "${type}_a_snapshot_class" "$CSI_CODE/$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON" | sed 's/.*~//')" "OK/foo-bar-snap-class-$$"
    SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
    csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")"
    delete_volume || fail "${type}_away" "$(said)"
done

# Its VolumeGroupSnapshotClass, of RBD.
create "pvc-group-$$" '{"pool": "rbd"}'
csi_group() { "$BUILD/tools/csi-call" --socket "$CONTROLLER" "GroupController/$1" - <<<"$2" 2>&1; }
group=$(csi_group CreateVolumeGroupSnapshot "$(csi_json "$SECRET"' as $s | {source_volume_ids: [$id], name: $name, secrets: $s,
    parameters: {clusterID: $fsid, pool: "rbd", volumeGroupNamePrefix: "foo-bar-", "csi.storage.k8s.io/group-snapshotter-secret-name": "csi-secret",
        "csi.storage.k8s.io/group-snapshotter-secret-namespace": "default"}}' --arg id "$VOLUME_ID" --arg name "group-$$" --arg fsid "$CEPH_FSID")")
same rbd_a_group_snapshot_class "$(jq -r .groupSnapshot.groupSnapshotId <<<"$group" | sed 's/.*~//')" "foo-bar-group-$$"
csi_group DeleteVolumeGroupSnapshot "$(csi_json '{group_snapshot_id: $group.groupSnapshotId,
    snapshot_ids: [$group.snapshots[].snapshotId], secrets: $secrets}' --argjson group "$(jq -c .groupSnapshot <<<"$group")")" >/dev/null
delete_volume
same nothing_is_left "$(audit >/dev/null; echo $?)" 0
exit 0
