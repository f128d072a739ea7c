#!/bin/bash
# Two nodes and a plain client read and write the same files while their links are cut, lose and delay
# packets, their sessions are evicted, hearthd is stopped, and MDS and OSD are killed, failed over or
# stopped. No read is older than what was acknowledged, by more than the bounds of partition_check.py, and
# what fsync acknowledged is in Ceph: read through the nodes, a plain client, a new client after each
# round, and the objects in RADOS. What the clients do is in tests/tools/partition-load.c.
#
# For longer: ROUNDS=200. A failure names SEED, which decides what is done to whom, not when. PARTITION_LOGS
# is a directory that keeps the logs, FAULTS_ONCE one round of faults, such as "0 cut_off one 34".
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
. "$(dirname "$0")/partition_faults.sh"
init
SEED=${SEED:-7} LOGS=${PARTITION_LOGS:-$TMP/logs}
FAULTS=$LOGS/faults
mkdir -p "$LOGS" "$TMP/locks" "$TMP/forged"

# ---- the checker sees what it is for ----

forged() { # NAME WANTED LINES: of "CLIENT LINE"
    local name=$1 wanted=$2 client line
    rm -f "$TMP/forged"/*
    while read -r client line; do
        [ "$client" = faults ] || client+=.log
        echo "$line" >>"$TMP/forged/$client"
    done
    printf 'check\n' | python3 "$TOP/tests/integration/partition_check.py" "$TMP/forged" >"$TMP/forged.out"
    same "$name" "$(cut -d: -f1 "$TMP/forged/violations" | sort | uniq -c | awk '{ $1 = $1; print }')" "$wanted"
}
# Two writes of f0, 10 and then 20, both synced.
WROTE='one B 0 10 1000000
one W 0 10 1000000 1000100 1000200 synced
two B 0 20 2000000
two W 0 20 2000000 2000100 2000200 synced'
forged a_right_log_has_no_violation "" <<<"$WROTE
one R 0 open 2000150 2000160 10
one R 0 open 2000300 2000400 20"
forged a_stale_read_is_seen "1 old" <<<"$WROTE
one R 0 open 2000201 2000300 20,10"
forged a_held_descriptor_may_lag_by_its_bound "1 old" <<<"$WROTE
one R 0 held 2200199 2200300 10
one R 0 held 2200201 2200300 10"
forged a_lost_fsync_is_seen "1 lost or late" <<<"$WROTE
rados R 0 rados 2000201 2000300 10"
forged a_late_write_that_failed_is_seen "1 lost or late" <<<"one B 0 9 900000
one W 0 9 900000 900100 0 sync
$WROTE
ceph R 0 ceph 9000000 9000100 9"
forged a_write_without_a_sync_may_be_there_or_not "" <<<"$WROTE
one B 0 30 3000000
one W 0 30 3000000 3000100 0 sync
two R 0 open 3000200 3000300 30
two R 0 open 4000200 4000300 20"
forged a_size_that_is_lost_is_seen "1 old" <<<"one B 0 0 800000
one W 0 0 800000 800100 0 truncated
$WROTE
one R 0 open 2000300 2000400 0"
forged bytes_of_no_write_are_seen "1 never written
1 wrong bytes" <<<"$WROTE
one R 0 open 2000300 2000400 18446744073709551615
two R 0 open 2000300 2000400 7"
forged a_frozen_node_shows_what_was_so_when_it_froze "2 old" <<<"$WROTE
faults freeze one 1500000
faults thaw one 60000000
one R 0 held 50000000 50000100 10
one R 0 open 50000000 50000100 10
one R 0 map 61000001 61000100 10"
forged a_write_that_waits_keeps_its_pages_until_it_is_answered "2 old" <<<"$WROTE
one B 0 30 1500000
one R 0 map 13000000 13000100 10
one R 0 map 14000000 14000100 10
one R 0 open 14000000 14000100 10
one W 0 30 1500000 20000000 0 write"
forged an_end_moves_when_the_write_that_moves_it_is_answered "4 old" <<<"one B 0 0 800000
one W 0 0 800000 800100 0 truncated
one B 0 30 900000
$WROTE
one R 0 open 3000000 3000100 0
one R 0 direct 3000000 3000100 0
one R 0 open 3000000 3000100 10
two R 0 open 3000000 3000100 0
one W 0 30 900000 4000000 0 write
one R 0 open 4000100 4000200 0
one R 0 held 4200300 4200400 0"
[ "$FAILED" = 0 ] || exit 1

# ---- the nodes, the plain client and the files ----

network_up
start_ceph --address "$MACHINE"
ceph_cmd fs set hearthfs session_timeout 30 >/dev/null 2>&1
ceph_cmd config set mds mds_reconnect_timeout 15 # more than what a lease counts; 45 by default
for client in one two plain; do node_network $client; done
start_controller
start_hearthd_in one
start_node
HEARTHD_WITH=(nsenter --net="/proc/${PID[network-two]}/ns/net")
start_node2
HEARTHD_WITH=()
published_volume pvc-partition-$RANDOM 1073741824
on_node2 pending stage # on a busy machine the first may take too long
publish_on_node2
healed() { # at the end, whatever a fault was doing
    local name
    [ -z "${faults_pid:-}" ] || kill "$faults_pid" 2>/dev/null
    for name in hearthd hearthd2; do kill -CONT "${PID[$name]:-}"; done
    for name in mds.a osd.0; do kill -CONT "$(daemon_pid $name)"; done
    for name in "${!LINK[@]}"; do link_up "$name"; done
} 2>/dev/null

LOAD=$BUILD/tools/partition-load
POOL=$(ceph_cmd fs ls --format json | jq -r '.[0].data_pools[0]')
as_admin=("$CEPH_CONF" admin "$CEPH_KEYRING")
"$LOAD" make "$LOGS/make.log" "$TARGET" || die "the files are not made"
spawn load-one "$LOAD" node 1 "$LOGS/one.log" "$SEED" "$TMP/locks" 023467 023467 "$TARGET"
spawn load-two "$LOAD" node 2 "$LOGS/two.log" "$SEED" "$TMP/locks" 13457 123567 "$TARGET2"
stop_loads() {
    touch "$TMP/stop"
    end load-plain
    for name in load-one load-two load-rados; do end $name KILL; done
} 2>/dev/null
at_exit 'healed; stop_loads'
# A client that has lost its session is followed by another.
plain='trap "kill -KILL \$client; exit" TERM; until [ -e "$0/stop" ]; do "$@" & client=$!; wait $client; sleep 0.2; done'
spawn load-plain nsenter --net="/proc/${PID[network-plain]}/ns/net" bash -c "$plain" "$TMP" \
    "$LOAD" plain 3 "$LOGS/plain.log" "$SEED" "$TMP/locks" 2567 2367 "${as_admin[@]}" hearthfs "$ROOT_PATH"
spawn load-rados "$LOAD" rados "$LOGS/rados.log" "${as_admin[@]}" "$POOL" "$TARGET"
talk_start checker python3 "$TOP/tests/integration/partition_check.py" "$LOGS" || die "no checker"

# ---- rounds ----

one_of() { echo "${@:RANDOM % $# + 1:1}"; }
between() { echo $(($1 + RANDOM % ($2 - $1 + 1))); }
chosen() { # ROUND: lines of "AFTER FAULT ARGUMENTS", AFTER in seconds
    local client other
    RANDOM=$((SEED * 10000 + $1)) # a shell within the shell begins with numbers of its own
    client=$(one_of one two) other=$(one_of one two plain plain)
    case $((RANDOM % 20)) in
    0 | 1) echo "0 cut_off $client $(between 33 45)" ;;
    2 | 3) echo "0 cut_off $client $(between 9 25)" ;;
    4 | 5 | 6 | 7) echo "0 cut_off $client $(between 1 8)" ;;
    8 | 9 | 10) echo "0 flap $client $(between 3 8)" ;;
    11 | 12) echo "0 slow $client $(between 4 10)" ;;
    13 | 14) echo "0 freeze $client $(between 1 12)" ;;
    15) echo "0 freeze $client $(between 33 40)" ;;
    *) echo "0 evict $client" ;;
    esac
    case $((RANDOM % 16)) in
    0 | 1) echo "$(between 0 4) restart mds.a" ;;
    2) echo "$(between 0 4) fail_mds" ;;
    3) echo "$(between 0 4) halted mds.a $(between 2 10)" ;;
    4 | 5) echo "$(between 0 4) restart osd.0" ;;
    6) echo "$(between 0 4) halted osd.0 $(between 2 8)" ;;
    7) [ "$other" = "$client" ] || echo "$(between 0 3) cut_off $other $(between 2 38)" ;;
    8) [ "$other" = "$client" ] || echo "$(between 0 3) flap $other $(between 3 8)" ;;
    9 | 10) echo "$(between 0 6) evict $other" ;;
    esac
}
faults() { # of such lines, all under way at once; returns when all are undone
    local after fault
    while read -r after fault; do
        (
            trap - EXIT
            sleep "$after"
            $fault
        ) &
    done <<<"$1"
    wait
}
checked() { # what was logged meanwhile
    local reads syncs errors violations
    talk checker check || die "the checker: $ANSWER"
    read -r reads syncs errors violations <<<"$ANSWER"
    R=$((R + reads)) S=$((S + syncs)) E=$((E + errors)) V=$((V + violations))
}
everyone_goes_on() { # SINCE
    local until=$((SECONDS + 90))
    until checked && talk checker since "$1"; do
        [ $SECONDS -lt $until ] || return 1
        sleep 0.5
    done
}
# Ceph 16's daemons crash now and then when they are started under load; elsewhere systemd starts them again.
revive() {
    local daemon
    for daemon in mds.a osd.0; do
        kill -0 "$(daemon_pid $daemon)" 2>/dev/null || { echo "     $daemon has crashed, and is started again"; restart $daemon; }
    done
}
# BlueStore of Ceph 16 may find its own data broken after a kill (bad crc of an object of the MDS's journal): what
# follows says nothing of Hearth.
ceph_is_whole() { # WORDS of what was seen
    local health
    health=$(ceph_cmd health detail --format json 2>/dev/null | jq -r '.checks | keys[] | select(test("PG_DAMAGED|UNFOUND"))')
    [ -z "$health" ] || die "Ceph has lost data of its own, and no more rounds are made: ${health//$'\n'/, }; $*"
}
round() { # NAME FAULTS
    local began=$SECONDS since broken=
    R=0 S=0 E=0 V=0
    faults "$2" >>"$TMP/log/faults.log" 2>&1 &
    faults_pid=$!
    wait "$faults_pid"
    faults_pid=
    revive
    since=$(uptime_us)
    if ! timeout 100 "$LOAD" fresh "$LOGS/ceph.log" "${as_admin[@]}" hearthfs "$ROOT_PATH" 2>>"$TMP/log/fresh.log"; then
        broken="a new client does not read the files"
    elif ! everyone_goes_on "$since"; then
        broken="after 90 s nothing of ${ANSWER#error }"
    elif [ "$V" != 0 ]; then
        broken="$V violations: $(tail -n "$((V < 50 ? V : 50))" "$LOGS/violations" | head -n 5)"
    fi
    running hearthd && running hearthd2 || broken="hearthd died; $broken"
    local what="${2//$'\n'/, }"
    [ -z "$broken" ] || ceph_is_whole "$1, SEED=$SEED, $what: $broken"
    if [ -z "$broken" ]; then pass "$1"; else fail "$1" "SEED=$SEED, $what: $broken"; fi
    echo "     $1: $what; $((SECONDS - began)) s, $R reads, $S syncs, $E errors"
}

R=0 S=0 E=0 V=0
everyone_goes_on $(($(uptime_us) + 2000000)) || die "nothing of ${ANSWER#error }"

# Each kind of fault that matters most, in as little time as it takes.
if [ -n "${FAULTS_ONCE:-}" ]; then
    round these "$FAULTS_ONCE"
elif [ -z "${ROUNDS:-}" ]; then
    round cut_off_and_frozen $'0 cut_off one 34\n0 freeze two 34\n3 evict plain'
    round evicted_and_failed_over $'0 evict one\n0 flap two 3\n2 restart mds.a'
else
    for ((i = 1; i <= ROUNDS; i++)); do
        round "round_$i" "$(chosen $i)"
    done
fi

# ---- the end: everyone stops, and everything is as it was acknowledged last ----
stop_loads
talk checker check
same nothing_more_is_found "${ANSWER##* }" 0
talk_end checker
