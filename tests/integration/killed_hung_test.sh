#!/bin/bash
# hearthd is killed while it takes pages from the kernel that reads have locked, and these reads hang in Ceph. A thread of
# it waits in the kernel then, where no signal reaches it. The node plugin ends the mounts, so nothing of the node hangs.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
HUNG=80 # more than hearthd takes at once: the others wait in the kernel, with their pages locked
start_ceph --conf 'mon_allow_pool_size_one = true'
start_hearth
published_volume pvc-hung-$RANDOM 1073741824
delete_volume() { :; } # it goes with the cluster, which is this test's own
second_client
client() { talk client "$@" || fail "client_$1" "$* gave $ANSWER"; }
talk_start putter "$BUILD/tools/cephfs-client" "$CEPH_CONF" admin "$CEPH_KEYRING" hearthfs "$ROOT_PATH" ||
    die "the putter does not connect"
weak_pool
client mkdir /weak
weak_layout client /weak
for i in $(seq "$HUNG"); do client write "/weak/$i" "text of $i"; done
spawn readers python3 "$TOP/tests/integration/hung_reads.py" "$TMP/run/readers" "$TMP/go" "$TARGET"/weak/*
wait_for 20 test -e "$TMP/run/readers" || die "the readers do not open their files"
hang_weak
waiting() { # N: so many threads of the readers wait in the kernel
    [ "$(cat /proc/"${PID[readers]}"/task/*/stat | sed 's/.*) //' | grep -c '^D')" -ge "$1" ]
}
touch "$TMP/go"
check reads_hang wait_for 20 waiting 20
for i in $(seq "$HUNG"); do talk putter putting "/weak/$i" "TEXT"; done
KILLED=${PID[hearthd]}
in_kernel() { grep -qs '__folio_lock\|folio_wait' /proc/"$KILLED"/task/*/stack; }
wait_for 20 in_kernel || { skip "${TEST_NAME%_test}" "no thread of hearthd waits for a page"; exit 0; }
kill -KILL "$KILLED"
is_zombie() { [ "$(sed 's/.*) //' /proc/"$KILLED"/stat | cut -c1)" = Z ] && in_kernel; }
check it_is_killed_and_cannot_end wait_for 5 is_zombie
fails() { timeout 2 stat "$TARGET" >/dev/null 2>"$TMP/said"; grep -q 'not connected' "$TMP/said"; }
check the_mount_fails wait_for 30 fails
gone() { ! in_kernel; }
check the_process_ends wait_for 10 gone
readers_ended() { ! running readers; }
check readers_do_not_hang wait_for 10 readers_ended
check the_log_says_why grep -q 'cannot end: its mounts' "$TMP/log/node.log"
heal_weak
end hearthd KILL
start_hearthd
client write /weak/.served here
unpublish && unstage && stage && publish || fail stage_it_again "$(said)"
same it_is_served_again "$(timeout 60 cat "$TARGET/weak/.served")" here
