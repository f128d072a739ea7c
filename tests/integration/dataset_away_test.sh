#!/bin/bash
# Datasets while Ceph is away, on a real Ceph that is stopped: what this node knows is staged,
# published and read, also after a reboot of the node; what it does not know is refused; and when
# Ceph is back, its word counts: a snapshot made anew by the name of another is never taken for it.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

code() { same "$1" "$CSI_CODE" "$2"; }
said_of() { case $CSI_MESSAGE in *$2*) pass "$1" ;; *) fail "$1" "$(said)" ;; esac; }
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_PATH=\$ROOT_PATH"; }
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT ROOT_PATH=\$$1_PATH"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
sums() { (cd "$TARGET" && find . -type f -name 'warm*' -exec md5sum {} + | sort -k 2); }
# Everything of the node goes, as by a crash of it; the cache directory stays.
reboot_node() {
    end node KILL
    end hearthd KILL
    unmount_below "$TMP/mnt/pod"
    for point in "$TMP"/mnt/stage-*; do unmount_below "$point"; done
    unmount_below "$DEVICES"
    rm -rf "$DEVICES" "$TMP"/run/hearthd*
    drop_page_cache
    start_hearthd
    start_node
}

# ---- a dataset, known ----
ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create away-$$ --group_name csi --size 1073741824
at_exit "subsnap rm away-$$ v1 --group_name csi; sub rm away-$$ --group_name csi"
ROOT_PATH=$(sub getpath away-$$ --group_name csi)
second_client
talk client write warm1 first || die "no source: $ANSWER"
talk client write warm2 second || die "no source: $ANSWER"
talk client write cold cold || die "no source: $ANSWER"
subsnap create away-$$ v1 --group_name csi
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
create_volume pvc-a-$$ 1073741824 "{\"dataset\": \"away-$$@v1\"}" || die "CreateVolume: $(said)"
remember A
create_volume pvc-b-$$ 1073741824 "{\"dataset\": \"away-$$@v1\"}" || die "CreateVolume: $(said)"
remember B
U_ID=unknown~$$ U_PATH=
U_CONTEXT=$(static_context "$(dirname "$A_PATH")")
recall A
stage && publish || die "stage: $(said)"
sums >"$TMP/before"
same two_files_are_warm "$(wc -l <"$TMP/before")" 2
wait_for 30 settled
unpublish && unstage || die "unstage: $(said)"
same a_note_has_no_secret "$(grep -rlF "$NODE_KEY" "$CACHE/manifests" | wc -l)/$(ls "$CACHE/manifests" | grep -c place)" 0/1

# ---- away ----
away() { # NAME: all of it, with a claim
    local began=$SECONDS took
    recall A
    check "$1-staged" stage
    took=$((SECONDS - began))
    check "$1-published" publish
    [ $took -le 30 ] && pass "$1-in_time" || fail "$1-in_time" "$took s"
    sums >"$TMP/sums" 2>"$TMP/err"
    check "$1-warm_files_are_read" cmp "$TMP/before" "$TMP/sums"
    same "$1-names_are_there" "$(ls "$TARGET" | tr '\n' ' ')" "cold warm1 warm2 "
    began=$SECONDS
    timeout 60 cat "$TARGET/cold" >"$TMP/out" 2>"$TMP/err"
    same "$1-a_cold_one_fails" "$?/$(grep -c 'Input/output error' "$TMP/err")" 1/1
    [ $((SECONDS - began)) -le 30 ] && pass "$1-within_30_s" || fail "$1-within_30_s" "$((SECONDS - began)) s"
}
stop_ceph
away ceph_stopped
recall B
check a_second_claim_is_staged stage
check and_published publish
sums >"$TMP/sums" 2>"$TMP/err"
check and_read cmp "$TMP/before" "$TMP/sums"
same over_the_same_layers "$(mounts_below "$DEVICES" | wc -l)" 2
CSI_TIMEOUT=90
recall U
stage && fail what_is_not_known "staged" || pass what_is_not_known_is_refused
CSI_TIMEOUT=60
pid=${PID[hearthd]}
kill -TERM "$pid"
ended() { ! running hearthd; }
check hearthd_ends_without_ceph wait_for 30 ended
wait "$pid"
same in_order $? 0
reboot_node
away node_rebooted
end node KILL
start_node
recall A
check a_restarted_node_plugin_finds_it stage
continue_ceph
recall A
readable() { [ "$(cat "$TARGET/cold" 2>&1)" = cold ]; }
# An MDS that was replaced waits 45 s for the sessions of the dead hearthd.
check cold_ones_are_read_when_it_is_back wait_for 150 readable
unpublish && unstage || fail unstaged "$(said)"
same nothing_is_mounted "$(mounts_below "$DEVICES")$(ls "$DEVICES")" ""

# ---- a snapshot by the same name ----
subsnap rm away-$$ v1 --group_name csi
talk client write warm1 FIRST || die "no source: $ANSWER"
recall A
stage
code a_snapshot_that_is_gone_is_not_staged NOT_FOUND
same nothing_of_it_is_kept "$(ls "$CACHE/manifests")" ""
subsnap create away-$$ v1 --group_name csi
recall A
check made_anew_it_is_staged stage
check and_published publish
same and_read_as_it_is_now "$(cat "$TARGET/warm1")" FIRST
wait_for 30 settled
unpublish && unstage || fail unstage "$(said)"
# Once more, and this time the node learns of it only after it has mounted what it knew.
stop_ceph
recall A
check away_again_it_is_staged stage
check away_again_it_is_published publish
same it_is_what_was_known "$(cat "$TARGET/warm1")" FIRST
kill -STOP "${PID[hearthd]}"
continue_ceph
subsnap rm away-$$ v1 --group_name csi
talk client write cold COLD || die "no source: $ANSWER"
subsnap create away-$$ v1 --group_name csi
kill -CONT "${PID[hearthd]}"
noticed() { grep -q "another one in its place" "$TMP/log/hearthd.log" && [ "$(hearthctl status --json | jq '[.volumes[] | select(.attached)] | length')" = 0 ]; }
check it_is_noticed wait_for 90 noticed
timeout 60 cat "$TARGET/cold" >"$TMP/out" 2>"$TMP/err"
same of_the_old_one_nothing_new_is_read "$(cat "$TMP/out")" cold
TARGET=$TMP/mnt/pod/later
check a_new_pod_gets_the_new_one publish
same and_reads_it "$(cat "$TARGET/cold")" COLD
unpublish || fail unpublish "$(said)"
recall A
unpublish && unstage || fail unstage "$(said)"
same at_last_nothing_is_mounted "$(mounts_below "$DEVICES")$(ls "$DEVICES")" ""
for v in A B; do recall $v && delete_volume || fail delete "$(said)"; done
exit 0
