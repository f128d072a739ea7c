#!/bin/bash
# A pool gets full under files that are being written: what was answered and did not get to Ceph is
# told by the next sync, whoever asks for it.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth
published_volume pvc-full-$RANDOM 1073741824
POOL=$(ceph_cmd fs ls --format json | jq -r '.[0].data_pools[0]')
quota() { ceph_cmd osd pool set-quota "$POOL" max_bytes "$1"; }
is_full() { ceph_cmd osd pool ls detail --format json | jq -e --arg p "$POOL" '.[] | select(.pool_name == $p).flags_names | contains("full")'; }
is_not_full() { ! is_full; }
at_exit 'quota 0; wait_for 60 is_not_full'
# A pool is full a moment after it is too large: the monitor looks each second.
ceph_cmd config set mon mon_tick_interval 1 && at_exit ceph_cmd config rm mon mon_tick_interval

# Makes the OSD think before each step of an operation, so that writes are on their way for a while.
slow() { # SECONDS
    local asok=(--admin-daemon "$CEPH_DIR/run/osd.0.asok" config set)
    ceph_cmd "${asok[@]}" osd_debug_inject_dispatch_delay_duration "$1" &&
        ceph_cmd "${asok[@]}" osd_debug_inject_dispatch_delay_probability "$([ "$1" = 0 ] && echo 0 || echo 1)"
} >>"$TMP/log/ceph.log" 2>&1
export CEPH_DIR TMP ONE_NODE
export -f slow ceph_cmd
at_exit slow 0

writes() { dd if=/dev/urandom of="$TARGET/after" bs=64k count=1 conv=fsync; }
round() {
    python3 "$TOP/tests/integration/full_pool.py" "$TARGET" "$CEPH_CONF" "$CEPH_KEYRING" "$POOL" \
        "slow 0.1 && $ONE_NODE ceph $CEPH_DIR osd pool set-quota $POOL max_bytes 1000" >>"$TMP/said" 2>"$TMP/log/full.log" ||
        die "$(cat "$TMP/log/full.log")"
    slow 0
    quota 0 >/dev/null 2>&1
    wait_for 60 is_not_full || die "the pool stays full"
    wait_for 60 writes || die "no writes, although there is room again"
}
said() { sed -n "s/^$1 //p" "$TMP/said" | sort -u; }
# What is closed is written soon: it may not be lost in each round.
ways=(held other closed forgotten direct)
all_lost() { for way in "${ways[@]}"; do [ -n "$(said "$way")" ] || return 1; done; }
for _ in 1 2 3 4; do
    round
    ! all_lost || break
done
told() { # NAME WAY
    if [ -n "$(said "$2")" ]; then same "$1" "$(said "$2")" ENOSPC; else skip "$1" "nothing was lost so in 4 rounds"; fi
}
told fsync_of_a_descriptor_tells_what_a_full_pool_refused held
told fsync_of_another_descriptor_tells_it other
told fsync_after_close_and_open_tells_it closed
told and_when_the_kernel_has_forgotten_the_file forgotten
told fsync_of_direct_writes_tells_it direct

cat >"$TMP/full" <<END
"$ONE_NODE" ceph "$CEPH_DIR" osd pool set-quota "$POOL" max_bytes 1000
until "$ONE_NODE" ceph "$CEPH_DIR" osd pool ls detail --format json |
    jq -e '.[] | select(.pool_name == "$POOL").flags_names | contains("full")'; do sleep 0.1; done
END
python3 "$TOP/tests/integration/full_pool_beside.py" "$TARGET" "$CEPH_CONF" "$CEPH_KEYRING" "$POOL" \
    "$(daemon_pid osd.0)" "slow 0.1" "timeout 60 bash '$TMP/full'" "'$ONE_NODE' restart '$CEPH_DIR' osd.0" >"$TMP/said" 2>"$TMP/log/full.log" || die "$(cat "$TMP/log/full.log")"
case $(<"$TMP/said") in
"in Ceph") skip a_write_beside_a_sync_of_its_own_is_told_by_the_next "it was not lost" ;;
*) same a_write_beside_a_sync_of_its_own_is_told_by_the_next "$(<"$TMP/said")" ENOSPC ;;
esac
quota 0 >/dev/null 2>&1
wait_for 60 is_not_full || die "the pool stays full"
wait_for 60 writes || die "no writes, although there is room again"

for way in "${ways[@]}"; do
    dd if=/dev/zero of="$TARGET/${way}0" bs=64k count=1 conv=notrunc,fsync 2>>"$TMP/log/full.log" || echo "$way"
done >"$TMP/failing"
same no_file_goes_on_to_fail "$(cat "$TMP/failing")" ""
