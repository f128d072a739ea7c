#!/bin/bash
# The node plugin and real mounts, over local directories instead of Ceph: what is at a path already,
# repetitions, order, access modes, and daemons that hang or die at a bad moment.
. "$(dirname "$0")/lib.sh"
init
echo '[]' >"$TMP/config.json"
start_hearthd --dir-root="$TMP/src"
start_node
mkdir -p "$TMP"/src/{one,two} "$TMP/mnt/far"
echo first >"$TMP/src/one/file"
echo second >"$TMP/src/two/file"
printf '#!/bin/sh\necho ran\n' >"$TMP/src/one/script"
chmod 755 "$TMP/src/one/script"
SECOND=$TMP/mnt/pod/second

MODE=MULTI_NODE_MULTI_WRITER FLAGS='[]'
capability() { jq -cn --arg mode "$MODE" --argjson flags "$FLAGS" '{mount: {mount_flags: $flags}, access_mode: {mode: $mode}}'; }
# dir_stage [VOLUME [PATH]]: VOLUME one or two, or the name of any directory in src
dir_stage() {
    csi node NodeStageVolume "$(jq -cn --arg v "${1:-one}" --arg stage "${2:-$STAGE}" --arg src "$TMP/src" \
        --argjson capability "$(capability)" '{volume_id: "h1~dir~\($v)", staging_target_path: $stage,
            volume_capability: $capability, volume_context: {type: "dir", rootPath: "\($src)/\($v)"}}')"
}
dir_publish() { # [TARGET [READONLY [VOLUME [STAGE]]]]
    csi node NodePublishVolume "$(jq -cn --arg v "${3:-one}" --arg stage "${4:-$STAGE}" --arg target "${1:-$TARGET}" \
        --argjson ro "${2:-false}" --argjson capability "$(capability)" '{volume_id: "h1~dir~\($v)",
            staging_target_path: $stage, target_path: $target, volume_capability: $capability, readonly: $ro}')"
}
dir_unpublish() { # [TARGET [VOLUME]]
    csi node NodeUnpublishVolume "$(jq -cn --arg v "${2:-one}" --arg target "${1:-$TARGET}" \
        '{volume_id: "h1~dir~\($v)", target_path: $target}')"
}
dir_unstage() { # [VOLUME [PATH]]
    csi node NodeUnstageVolume "$(jq -cn --arg v "${1:-one}" --arg stage "${2:-$STAGE}" \
        '{volume_id: "h1~dir~\($v)", staging_target_path: $stage}')"
}
dir_stats() { # PATH
    csi node NodeGetVolumeStats "$(jq -cn --arg path "$1" '{volume_id: "h1~dir~one", volume_path: $path}')"
}
served() { hearthctl status --json | jq -r '.volumes | length'; }
now() { # CALL...: it must succeed
    "$@" || die "$*: $(said)"
}
refused() { # NAME CODE TEXT CALL...
    local name=$1 code=$2 text=$3
    shift 3
    if "$@"; then
        fail "$name" "it succeeded"
    elif [ "$CSI_CODE" != "$code" ]; then
        fail "$name" "wanted $code, got $(said)"
    elif ! grep -qF -- "$text" <<<"$CSI_MESSAGE"; then
        fail "$name" "the message does not name $text: $(said)"
    else
        pass "$name"
    fi
}
nothing_left() { # NAME
    same "$1" "$(mounts_below "$TMP/mnt")$(served)" 0
}

# ---- a life ----
now dir_stage
now dir_publish
same reads "$(cat "$TARGET/file")" first
echo written >"$TARGET/new"
same writes "$(cat "$TMP/src/one/new")" written
same is_named_in_the_mount_table "$(findmnt -no FSTYPE,SOURCE "$TARGET")" "fuse.hearth hearth:h1~dir~one"
check stage_again dir_stage
check publish_again dir_publish
same one_mount_each "$(mounts_below "$TMP/mnt" | wc -l)" 2
check stats dir_stats "$TARGET"
same stats_of_bytes "$(jq -r '.usage[0] | (.total > 0) and (.available >= 0) and .unit == "BYTES"' <<<"$REPLY_JSON")" true
refused stats_of_another_path NOT_FOUND "$TMP/mnt/pod" dir_stats "$TMP/mnt/pod"
check unpublish dir_unpublish
check target_is_removed test ! -e "$TARGET"
check unpublish_again dir_unpublish
check unstage dir_unstage
check unstage_again dir_unstage
nothing_left nothing_is_left

# ---- what is there already ----
rm -rf "$STAGE"
echo data >"$STAGE"
refused stage_on_a_file FAILED_PRECONDITION "$STAGE" dir_stage
rm "$STAGE"
mkdir "$STAGE"
echo data >"$STAGE/precious"
refused stage_on_a_full_directory FAILED_PRECONDITION precious dir_stage
same it_is_untouched "$(cat "$STAGE/precious")" data
rm -r "$STAGE"
ln -s "$TMP/mnt/far" "$STAGE"
refused stage_on_a_symlink FAILED_PRECONDITION "$STAGE" dir_stage
rm "$STAGE"
mkdir "$STAGE"
mount -t tmpfs -o size=1m somebody "$STAGE"
refused stage_on_a_foreign_mount FAILED_PRECONDITION somebody dir_stage
refused unstage_of_a_foreign_mount FAILED_PRECONDITION somebody dir_unstage
same it_is_still_mounted "$(findmnt -no FSTYPE "$STAGE")" tmpfs
umount "$STAGE"
now dir_stage two
refused stage_on_another_volume FAILED_PRECONDITION 'h1~dir~two' dir_stage one
refused unstage_of_another_volume FAILED_PRECONDITION 'h1~dir~two' dir_unstage one
refused publish_of_another_volume FAILED_PRECONDITION 'h1~dir~two' dir_publish
now dir_unstage two
refused stage_without_a_root NOT_FOUND "$TMP/src/none" dir_stage none
refused publish_without_a_stage FAILED_PRECONDITION "$STAGE" dir_publish
nothing_left refusals_leave_nothing
check refusals_leave_no_target test ! -e "$TARGET"

# ---- paths ----
ln -s "$TMP/mnt" "$TMP/link"
now dir_stage one "$TMP/link/stage"
check stage_by_another_name dir_stage one "$STAGE"
now dir_publish "$TMP/link/pod/with blank"
same a_path_with_a_blank "$(cat "$TMP/mnt/pod/with blank/file")" first
check publish_there_again dir_publish "$TMP/mnt/pod/with blank"
now dir_unpublish "$TMP/link/pod/with blank"
now dir_unstage one "$TMP/link/stage"
nothing_left nothing_is_left_by_links

# ---- access ----
now dir_stage
now dir_publish "$TARGET" true
check_ro() { ! touch "$1/x" 2>/dev/null; }
check readonly_refuses_writes check_ro "$TARGET"
check readonly_again dir_publish "$TARGET" true
refused readonly_is_no_writable ALREADY_EXISTS "$TARGET" dir_publish "$TARGET" false
now dir_publish "$SECOND"
check the_second_target_writes touch "$SECOND/x"
now dir_unpublish
now dir_unpublish "$SECOND"
FLAGS='["noexec"]'
now dir_publish
if "$TARGET/script" >/dev/null 2>&1; then fail noexec "a script ran"; else pass noexec; fi
now dir_unpublish
FLAGS='["suid"]'
refused flags_that_are_not_allowed INVALID_ARGUMENT suid dir_publish
FLAGS='[]' MODE=SINGLE_NODE_SINGLE_WRITER
now dir_publish
refused a_second_single_writer FAILED_PRECONDITION "$TARGET" dir_publish "$SECOND"
check no_second_target test ! -e "$SECOND"
now dir_unpublish
# kubelet publishes again after its restart, beside its binds of subPaths.
pods=$TMP/mnt/pod/pods in_pod=volumes/kubernetes.io~csi/pv/mount
mkdir -p "$pods/one/volume-subpaths/pv/main/0" "$(dirname "$pods/one/$in_pod")" "$(dirname "$pods/two/$in_pod")" "$TMP/src/one/sub"
now dir_publish "$pods/one/$in_pod"
mount --bind "$pods/one/$in_pod/sub" "$pods/one/volume-subpaths/pv/main/0"
check single_writer_is_published_again dir_publish "$pods/one/$in_pod"
refused a_second_pod FAILED_PRECONDITION "$pods/one" dir_publish "$pods/two/$in_pod"
umount "$pods/one/volume-subpaths/pv/main/0"
now dir_unpublish "$pods/one/$in_pod"
rm -r "$pods"
now dir_unstage
MODE=MULTI_NODE_READER_ONLY
now dir_stage
check a_reader_stages_read_only check_ro "$STAGE"
now dir_unstage
MODE=MULTI_NODE_MULTI_WRITER

# ---- in use, and out of order ----
now dir_stage
now dir_publish
exec 7<"$TARGET/file"
refused unpublish_in_use FAILED_PRECONDITION "$TARGET" dir_unpublish
same it_still_reads "$(cat <&7)" first
exec 7<&-
now dir_unstage
same a_target_outlives_its_stage "$(cat "$TARGET/file")" first
now dir_stage
same staged_again_beside_it "$(cat "$STAGE/file")" first
now dir_unstage
now dir_unpublish
nothing_left nothing_is_left_out_of_order

# ---- hearthd hangs ----
now dir_stage
kill -STOP "${PID[hearthd]}"
started=$SECONDS
CSI_TIMEOUT=2
abnormal() { dir_stats "$STAGE" && [ "$(jq -r .volumeCondition.abnormal <<<"$REPLY_JSON")" = true ]; }
check stats_of_a_hung_volume_are_its_condition abnormal
check stats_again abnormal
CSI_TIMEOUT=60
if [ $((SECONDS - started)) -lt 8 ]; then pass hung_in_bounded_time; else fail hung_in_bounded_time "$((SECONDS - started)) s"; fi
kill -CONT "${PID[hearthd]}"
stats_ok() { dir_stats "$STAGE" && [ "$(jq -r '.volumeCondition.abnormal // false' <<<"$REPLY_JSON")" = false ]; }
check stats_afterwards wait_for 10 stats_ok
now dir_unstage

# A second call meanwhile; then the node plugin is killed in the middle of staging.
kill -STOP "${PID[hearthd]}"
(dir_stage >/dev/null 2>&1) &
caller=$!
meanwhile() { dir_stage; [ "$CSI_CODE" = ABORTED ]; }
CSI_TIMEOUT=1
check a_second_call_is_aborted wait_for 10 meanwhile
CSI_TIMEOUT=60
end node KILL
wait $caller
kill -CONT "${PID[hearthd]}"
none() { [ "$(served)" = 0 ]; }
check hearthd_forgets_a_half_staged_volume wait_for 10 none
start_node
nothing_left nothing_is_left_half_staged
now dir_stage
now dir_publish
same staged_after_it "$(cat "$TARGET/file")" first

# ---- hearthd dies ----
exec 7<"$TARGET/file"
end hearthd KILL
dead() { timeout 5 cat "$TARGET/file" >/dev/null 2>&1; [ $? = 1 ]; }
check reads_fail_and_do_not_hang wait_for 5 dead
refused stage_without_hearthd UNAVAILABLE "$HEARTHD" dir_stage
refused publish_without_hearthd UNAVAILABLE "$HEARTHD" dir_publish "$SECOND"
start_hearthd --dir-root="$TMP/src"
check a_new_target_fixes_the_stage dir_publish "$SECOND"
same the_new_target_reads "$(cat "$SECOND/file")" first
check the_old_target_is_published_again dir_publish
same the_old_target_reads "$(cat "$TARGET/file")" first
exec 7<&-
end hearthd KILL
now dir_unpublish
now dir_unpublish "$SECOND"
now dir_unstage
start_hearthd --dir-root="$TMP/src"
nothing_left nothing_is_left_of_the_dead

# ---- for a long time ----
fds() { find "/proc/${PID[$1]}/fd" -mindepth 1 2>/dev/null | wc -l; }
cycle() { dir_stage && dir_publish && dir_unpublish && dir_unstage; }
cycle || die "$(said)"
node_fds=$(fds node) hearthd_fds=$(fds hearthd)
[ "$node_fds" -gt 3 ] && [ "$hearthd_fds" -gt 3 ] || die "the descriptors cannot be counted"
for _ in $(seq 100); do
    cycle || die "$(said)"
done
# Some come and go, as the node plugin's own connection to hearthd; a leak would be a hundred.
settled() { [ "$(fds node)" -le $((node_fds + 10)) ] && [ "$(fds hearthd)" -le $((hearthd_fds + 10)) ]; }
if wait_for 5 settled; then
    pass no_descriptor_leaks
else
    fail no_descriptor_leaks "node $node_fds -> $(fds node), hearthd $hearthd_fds -> $(fds hearthd)"
fi
nothing_left nothing_is_left_at_the_end
