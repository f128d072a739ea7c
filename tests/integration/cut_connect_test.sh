#!/bin/bash
# A node that loses its network, or its session, in the midst of a mount: libcephfs has the directory then and not its
# parents, and aborts its process when it gives up or is refused. hearthd lives on, answers in time, and uses what the
# mount comes to when Ceph is back.
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
init
network_up
start_ceph --address "$MACHINE"
node_network one
start_controller
start_hearthd_in one
start_node
create_volume pvc-connect-$RANDOM 1073741824 || die "CreateVolume: $(said)"
at_exit remove_volume

sessions() { # [JQ]: of hearthd's for the volume, as the MDS has them
    timeout 5 ceph --admin-daemon "$CEPH_DIR/run/mds.a.asok" session ls 2>/dev/null |
        jq -e --arg root "$ROOT_PATH" "[.[] | select(.client_metadata.root == \$root)] | ${1:-.}"
}
# Each request of a client waits for up to 4 s in the MDS, so that a mount takes long enough to be met half way.
mds_delays() {
    ceph_cmd config set mds ms_inject_delay_type client
    ceph_cmd config set mds ms_inject_delay_max 4
    ceph_cmd config set mds ms_inject_delay_probability "$1"
}
half_mounted() { # staging goes on, in the background
    local until=$((SECONDS + 20))
    : >"$TMP/staged"
    (if stage; then echo OK; else said; fi) >"$TMP/staged" 2>&1 &
    STAGING=$!
    until SESSION=$(sessions '.[] | select(.num_caps > 0) | .id'); do
        [ $SECONDS -lt $until ] || die "no half of a mount: $(cat "$TMP/staged"), sessions $(sessions)"
    done
    [ ! -s "$TMP/staged" ] || die "the mount was too quick: $(cat "$TMP/staged")"
}
hearthd_is_the_same() { running hearthd; }
asserts() { grep -c 'inode_map.empty' "$TMP/log/hearthd.log"; }
clients() { sessions '[.[].id] | length'; }
none_is_left() { [ "$(clients)" = 0 ]; }

STEP=cut
mds_delays 1
half_mounted
link_down one
began=$SECONDS
wait $STAGING
check staging_fails_in_time grep -q 'no answer' "$TMP/staged"
[ $((SECONDS - began)) -lt 30 ] || fail staging_fails_in_time "it took $((SECONDS - began)) s"
# Longer than libcephfs waits for a request of a mount (client_mount_timeout, 20 s here).
until [ $((SECONDS - began)) -ge 24 ]; do sleep 0.2; done
check the_mds_still_has_the_session sessions ".[] | select(.id == $SESSION)"
link_up one
mds_delays 0
check staged_when_the_network_is_back stage
same with_the_mount_that_had_begun "$(sessions '.[].id')" "$SESSION"
check hearthd_lives_after_a_cut hearthd_is_the_same
same libcephfs_gave_nothing_up "$(asserts)" 0
unstage || fail unstage "$(said)"

STEP=evicted
# The session of the step before ends behind its unstage. It is not the one to be evicted.
wait_for 60 none_is_left || die "sessions $(sessions)"
mds_delays 1
half_mounted
timeout 10 ceph --admin-daemon "$CEPH_DIR/run/mds.a.asok" session evict "$SESSION" >/dev/null 2>&1
wait $STAGING
mds_delays 0
check staging_fails test "$(cat "$TMP/staged")" != OK
check hearthd_lives_after_an_eviction hearthd_is_the_same
check libcephfs_has_aborted test "$(asserts)" -ge 1
check staged_after_an_eviction stage
publish || fail publish "$(said)"
printf text >"$TARGET/file"
same the_volume_works "$(timeout 10 cat "$TARGET/file")" text
