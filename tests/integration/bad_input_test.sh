#!/bin/bash
# Bad input: each gets the CSI spec's code, a message that names the value and the fix, within 30 s,
# and leaves nothing half-made. (A NUL in a string cannot be said in JSON to csi-call; the unit tests of rpc/
# send one.)
. "$(dirname "$0")/lib.sh"
init
start_ceph
bad_clusters
start_hearth

left() { # what Ceph holds of volumes, and what is mounted here
    ceph_cmd fs subvolume ls hearthfs --group_name csi --format json 2>/dev/null | jq -r '.[].name'
    local pool
    for pool in hearthfs.meta hearthfs.data; do
        timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p "$pool" -N hearth ls 2>/dev/null
    done
    mounts_below "$TMP/mnt"
}

# refused NAME CODES TEXT: judges the call just made. CODES: those allowed, a|b; TEXT: a pattern the
# message must hold.
refused() {
    local took=$((SECONDS - CSI_STARTED))
    case "|$2|" in
    *"|$CSI_CODE|"*) ;;
    *)
        fail "$1" "wanted $2, got $(said)"
        return
        ;;
    esac
    if ! grep -qiE -- "$3" <<<"$CSI_MESSAGE"; then
        fail "$1" "the message does not name $3: $(said)"
    elif grep -qF -e "$PROVISIONER_KEY" -e "$NODE_KEY" -e "$WRONG_KEY" <<<"$CSI_MESSAGE"; then
        fail "$1" "the message holds a key"
    elif [ $took -gt 30 ]; then
        fail "$1" "took $took s"
    else
        pass "$1"
    fi
}

# Any valid key that is nobody's.
export WRONG_KEY=AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A==
before=$(left)

create() { # NAME JQ-PROGRAM that changes a good request
    csi controller CreateVolume "$(create_request "$1" 1073741824 '{}' | jq -c "$2")"
}
n=0
bad_create() { # NAME CODES TEXT JQ-PROGRAM
    n=$((n + 1))
    create "pvc-bad-$$-$n" "$4"
    refused "$1" "$2" "$3"
}

bad_create unknown_parameter INVALID_ARGUMENT 'colour.*(clusterID|fsName)' '.parameters.colour = "blue"'
bad_create unknown_cluster 'INVALID_ARGUMENT|NOT_FOUND' 'no-such-cluster' '.parameters.clusterID = "no-such-cluster"'
bad_create missing_cluster INVALID_ARGUMENT 'clusterID' 'del(.parameters.clusterID)'
bad_create unknown_file_system 'INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION' 'nofs' '.parameters.fsName = "nofs"'
bad_create unknown_type INVALID_ARGUMENT 'tape' '.parameters.type = "tape"'
bad_create bad_cache_value INVALID_ARGUMENT 'perhaps' '.parameters.cache = "perhaps"'
bad_create unknown_pool 'INVALID_ARGUMENT|NOT_FOUND|FAILED_PRECONDITION' 'nopool' '.parameters.pool = "nopool"'
bad_create no_secrets 'INVALID_ARGUMENT|UNAUTHENTICATED' 'userID|userKey|adminID|adminKey|secret' 'del(.secrets)'
bad_create missing_key 'INVALID_ARGUMENT|UNAUTHENTICATED' 'userKey|adminKey' 'del(.secrets.userKey)'
bad_create missing_user 'INVALID_ARGUMENT|UNAUTHENTICATED' 'userID|adminID' 'del(.secrets.userID)'
bad_create wrong_key 'UNAUTHENTICATED|PERMISSION_DENIED' "$PROVISIONER_ID" '.secrets.userKey = env.WRONG_KEY'
bad_create garbage_key 'UNAUTHENTICATED|PERMISSION_DENIED|INVALID_ARGUMENT' 'userKey|key|'"$PROVISIONER_ID" '.secrets.userKey = "not base64!"'
bad_create unknown_user 'UNAUTHENTICATED|PERMISSION_DENIED' 'nobody-here' '.secrets.userID = "nobody-here"'
bad_create refused_monitor 'UNAVAILABLE|DEADLINE_EXCEEDED' '127\.0\.0\.1:1' '.parameters.clusterID = "refused"'
bad_create silent_monitor 'UNAVAILABLE|DEADLINE_EXCEEDED' '127\.0\.0\.1' '.parameters.clusterID = "silent"'
bad_create no_name INVALID_ARGUMENT 'name' '.name = ""'
bad_create name_of_300_bytes INVALID_ARGUMENT 'name' ".name = (\"n\" * 300)"
bad_create limit_below_required 'INVALID_ARGUMENT|OUT_OF_RANGE' 'limit' '.capacity_range.limit_bytes = 1000'
bad_create negative_capacity 'INVALID_ARGUMENT|OUT_OF_RANGE' 'required|-5' '.capacity_range.required_bytes = -5'
bad_create capacity_zero 'INVALID_ARGUMENT|OUT_OF_RANGE' 'capacity|required|bytes' '.capacity_range = {required_bytes: 0, limit_bytes: 0}'
bad_create no_capability INVALID_ARGUMENT 'capabilit' 'del(.volume_capabilities)'
bad_create block_access INVALID_ARGUMENT 'block' '.volume_capabilities = [{block: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}]'
bad_create no_access_type INVALID_ARGUMENT 'access' '.volume_capabilities = [{access_mode: {mode: "SINGLE_NODE_WRITER"}}]'
same refused_calls_leave_nothing_in_ceph "$(left)" "$before"

# A name that is a path makes nothing outside the group; it is refused or spelled otherwise.
name=../../escape-$$
if create "$name" .; then
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    root=$(jq -r .volume.volumeContext.rootPath <<<"$REPLY_JSON")
    case $root in
    /volumes/csi/*..*) fail name_with_dot_dot "the volume is at $root" ;;
    /volumes/csi/*) pass name_with_dot_dot ;;
    *) fail name_with_dot_dot "the volume is at $root" ;;
    esac
    delete_volume || fail name_with_dot_dot_deleted "$(said)"
else
    refused name_with_dot_dot INVALID_ARGUMENT name
fi

for id in "" garbage "../../etc" "$(printf 'x%.0s' {1..300})" ; do
    VOLUME_ID=$id
    delete_volume
    case "$id,$CSI_CODE" in
    ,INVALID_ARGUMENT | ?*,OK | ?*,INVALID_ARGUMENT) pass "delete_of_id_${id:0:8}" ;;
    *) fail "delete_of_id_${id:0:8}" "$(said)" ;;
    esac
done

# ---- the node ----
create_volume pvc-bad-node-$$ 1073741824 || die "CreateVolume: $(said)"
at_exit remove_volume
good_id=$VOLUME_ID

bad_stage() { # NAME CODES TEXT JQ-PROGRAM
    mkdir -p "$STAGE"
    csi node NodeStageVolume "$(stage_request | jq -c "$4")"
    refused "$1" "$2" "$3"
    same "${1}_mounts_nothing" "$(mounts_below "$TMP/mnt")" ""
}
bad_stage stage_without_id INVALID_ARGUMENT 'volume_id' '.volume_id = ""'
bad_stage stage_without_path INVALID_ARGUMENT 'staging_target_path' '.staging_target_path = ""'
bad_stage stage_relative_path INVALID_ARGUMENT 'some/where' '.staging_target_path = "some/where"'
bad_stage stage_path_with_dot_dot INVALID_ARGUMENT '\.\.' ".staging_target_path = \"$TMP/mnt/../mnt/stage\""
bad_stage stage_without_capability INVALID_ARGUMENT 'capabilit' 'del(.volume_capability)'
bad_stage stage_block INVALID_ARGUMENT 'block' '.volume_capability = {block: {}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
bad_stage stage_without_secrets 'INVALID_ARGUMENT|UNAUTHENTICATED' 'userID|userKey|secret' 'del(.secrets)'
bad_stage stage_wrong_key 'UNAUTHENTICATED|PERMISSION_DENIED' "$NODE_ID" '.secrets.userKey = env.WRONG_KEY'
bad_stage stage_unknown_user 'UNAUTHENTICATED|PERMISSION_DENIED' 'nobody-here' '.secrets.userID = "nobody-here"'
bad_stage stage_root_path_with_dot_dot 'INVALID_ARGUMENT' '\.\.' '.volume_context.rootPath = "/volumes/csi/../../"'
bad_stage stage_missing_root 'NOT_FOUND|FAILED_PRECONDITION|INVALID_ARGUMENT' 'nothing-here' '.volume_context.rootPath = "/volumes/nothing-here"'
bad_stage stage_silent_monitor 'UNAVAILABLE|DEADLINE_EXCEEDED|INVALID_ARGUMENT' '127\.0\.0\.1|silent' '.volume_context.clusterID = "silent"'
bad_stage stage_refused_monitor 'UNAVAILABLE|DEADLINE_EXCEEDED|INVALID_ARGUMENT' '127\.0\.0\.1:1|refused' '.volume_context.clusterID = "refused"'

bad_stage stage_name_of_a_dataset INVALID_ARGUMENT 'volumeHandle' '.volume_id = "dataset-00112233445566778899aabbccddeeff"'
bad_stage stage_name_of_a_warmup INVALID_ARGUMENT 'volumeHandle' '.volume_id = "warmup-1-2-3"'
bad_stage stage_a_directory_of_the_node FAILED_PRECONDITION '\-\-dir-root' '.volume_id = "some-dir" | .volume_context = {type: "dir", rootPath: "/etc"}'

# A staging path that is something else.
rmdir "$STAGE" && echo occupied >"$STAGE"
csi node NodeStageVolume "$(stage_request)"
refused stage_on_a_file 'FAILED_PRECONDITION|INVALID_ARGUMENT|ALREADY_EXISTS|INTERNAL' "$STAGE"
same the_file_is_untouched "$(cat "$STAGE")" occupied
rm "$STAGE" && mkdir "$STAGE" && mount -t tmpfs none "$STAGE" && echo other >"$STAGE/file"
csi node NodeStageVolume "$(stage_request)"
refused stage_on_another_mount 'FAILED_PRECONDITION|ALREADY_EXISTS' "$STAGE"
same the_other_mount_is_untouched "$(cat "$STAGE/file")" other
umount "$STAGE"
rmdir "$STAGE" && ln -s "$TMP/elsewhere" "$STAGE"
csi node NodeStageVolume "$(stage_request)"
refused stage_on_a_dangling_symlink 'FAILED_PRECONDITION|INVALID_ARGUMENT|NOT_FOUND|ALREADY_EXISTS|INTERNAL' "$STAGE|$TMP/elsewhere"
rm "$STAGE"

publish
refused publish_before_stage FAILED_PRECONDITION "$STAGE|stage"
stage || fail stage_after_all_that "$(said)"

csi node NodePublishVolume "$(publish_request | jq -c '.target_path = ""')"
refused publish_without_target INVALID_ARGUMENT 'target_path'
csi node NodePublishVolume "$(publish_request | jq -c '.target_path = "rel"')"
refused publish_relative_target INVALID_ARGUMENT 'rel'
csi node NodePublishVolume "$(publish_request | jq -c ".target_path = \"$TMP/mnt/pod/../../x\"")"
refused publish_target_with_dot_dot INVALID_ARGUMENT '\.\.'
csi node NodePublishVolume "$(publish_request | jq -c ".target_path = \"$TMP/mnt/no/parent/here\"")"
# Whether the parents are made or asked for, nothing may be mounted elsewhere.
[ "$CSI_CODE" != OK ] || TARGET=$TMP/mnt/no/parent/here unpublish
mkdir -p "$TARGET" && mount -t tmpfs none "$TARGET"
publish
refused publish_on_another_mount 'FAILED_PRECONDITION|ALREADY_EXISTS' "$TARGET"
umount "$TARGET"
publish || fail publish_after_all_that "$(said)"
echo works >"$TARGET/file"
same volume_works_after_all_that "$(cat "$TARGET/file")" works
READONLY=true publish
refused publish_again_otherwise ALREADY_EXISTS "$TARGET"

VOLUME_ID=no-such-volume
csi node NodeGetVolumeStats "$(csi_json '{volume_id: "no-such-volume", volume_path: $p}' --arg p "$TMP/mnt")"
refused stats_of_no_volume 'NOT_FOUND|INVALID_ARGUMENT' "no-such-volume|$TMP/mnt"
csi node NodeExpandVolume '{"volume_id":"x","volume_path":"/x"}'
refused expand_of_no_volume NOT_FOUND 'x'
csi controller ControllerPublishVolume '{"volume_id":"x","node_id":"x"}'
refused unimplemented UNIMPLEMENTED '.'
VOLUME_ID=$good_id

# What calls itself gRPC and is not.
head -c 4096 /dev/urandom | timeout 5 python3 -c '
import socket, sys
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(sys.stdin.buffer.read())
s.settimeout(3)
try: s.recv(100)
except OSError: pass' "$NODE"
csi node Probe '{}'
same alive_after_garbage "$CSI_CODE" OK

remove_volume
AT_EXIT=()
same nothing_is_left "$(left)" "$before"
