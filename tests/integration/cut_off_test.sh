#!/bin/bash
# A node that loses its network, and one whose hearthd is frozen, for longer than the MDS waits: others go on with
# its files. What it had written and not synced is reported lost, nothing of it arrives late, it shows no old byte once
# others have written, and it works on by itself when it is back.
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
init
start_node_one
ceph_cmd config set mds mds_reconnect_timeout 8
start_node2
published_volume pvc-cut-$RANDOM 1073741824
publish_on_node2
second_client
client() { talk client "$@" || fail "${STEP}_client_$1" "$* gave $ANSWER"; }
holds() { talk_start "$1" "$BUILD/tools/file-hold" "${@:2}" || die "cannot hold $2"; }
says() { # NAME HOLDER WORDS... : what it answers, or the error
    talk "${@:2}" || true
    same "$1" "$ANSWER" "$WANTED"
}
hit_rises() {
    local before
    before=$(volume_stat hits)
    cat "$TARGET/clean" >/dev/null
    [ "$(volume_stat hits)" -gt "$before" ]
}
unsynced() { printf 'x%.0s' $(seq 4000); }
rados_first() { # FILE: its first 4 bytes in RADOS
    local object
    object=$(printf '%x.00000000' "$(stat -c %i "$TARGET2/$1")")
    timeout 30 rados -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin -p "$POOL" get "$object" - | head -c 4
}
POOL=$(ceph_cmd fs ls --format json | jq -r '.[0].data_pools[0]')

printf OLD1 >"$TARGET/clean"
printf OLD2 >"$TARGET2/frozen-clean"
for f in dirty frozen-dirty; do printf OLD3 >"$TARGET/$f"; done
sync -f "$TARGET"
check clean_is_in_the_cache wait_for 10 hit_rises
for how in read drop map; do
    spawn "log-$how" python3 "$TOP/tests/integration/read_log.py" "$how" "$TARGET/clean"
done
holds one "$TARGET/dirty" rw
holds other "$TARGET/dirty" rw
holds frozen "$TARGET2/frozen-dirty" rw
holds frozen-clean "$TARGET2/frozen-clean"
talk frozen-clean read
for h in one frozen; do talk $h write 0 "$(unsynced)" || fail setup "write: $ANSWER"; done

STEP=cut
link_down one
kill -STOP "${PID[hearthd2]}"
client write /clean NEW1
acknowledged=$(now)
client write /frozen-clean NEW2
client write /dirty N
client write /frozen-dirty N
sleep 2 # reads that begin now are later than the write
for how in read drop map; do
    grep -q ' OLD1$' "$TMP/log/log-$how.log" || fail "before_${how}" "nothing was read before the cut"
    old=$(awk -v at="$acknowledged" '$1 > at && $2 == "OLD1"' "$TMP/log/log-$how.log" | wc -l)
    same "no_old_byte_while_cut_off_by_$how" "$old" 0
done

link_up one
kill -CONT "${PID[hearthd2]}"
STEP=healed
WANTED="error EIO" says fsync_reports_the_loss one fsync
WANTED= says once_for_each_handle one fsync
WANTED="error EIO" says close_of_another_handle_reports_it other close
WANTED="error EIO" says fsync_after_a_freeze_reports_the_loss frozen fsync
reads() { [ "$(timeout 10 cat "$1")" = "$2" ]; }
check the_mount_heals wait_for 60 reads "$TARGET/dirty" N
check the_frozen_mount_heals wait_for 60 reads "$TARGET2/frozen-dirty" N
same nothing_arrives_late "$(rados_first dirty)" N
same nothing_arrives_late_after_a_freeze "$(rados_first frozen-dirty)" N
WANTED=NEW2 says a_clean_handle_works_on frozen-clean read
for how in read drop map; do
    check "new_bytes_by_$how" wait_for 30 grep -q ' NEW1$' "$TMP/log/log-$how.log"
    end "log-$how" KILL
done
talk one write 0 "again" || fail writes_again "$ANSWER"
WANTED= says a_handle_works_on_after_the_loss one fsync
client cat /dirty
same what_is_synced_then_is_in_ceph "$ANSWER" again

# The MDS dies while the node is away, and does not wait for it for ever when it is back.
STEP=failover
talk one write 0 "lost again" || fail write "$ANSWER"
link_down one
kill -KILL "$(daemon_pid mds.a)"
wait_for 10 eval '! kill -0 "$(daemon_pid mds.a)" 2>/dev/null'
"$ONE_NODE" start "$CEPH_DIR" >/dev/null 2>&1
client write /dirty "after the failover"
link_up one
WANTED="error EIO" says fsync_reports_a_loss_with_the_mds one fsync
check the_mount_heals_after_the_failover wait_for 60 reads "$TARGET/dirty" "after the failover"
for h in one other frozen frozen-clean; do talk_end $h; done
