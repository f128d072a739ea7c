# Sourced by partition_test.sh: the faults. Each takes its client or its seconds, or both, and has undone
# what it did when it returns. $FAULTS says what the checker has to know of them, $CLIENTS who there is.
#
#   fault NAME [CLIENT] [SECONDS]     clients: one, two (nodes), plain

uptime_us() { # CLOCK_BOOTTIME, rounded down to 10 ms
    local up
    read -r up _ </proc/uptime
    echo $((10#${up/./} * 10000))
}
noted() { echo "$1 $2 $(($(uptime_us) + ${3:-0}))" >>"$FAULTS"; } # KIND CLIENT [US]

address_of() { # CLIENT
    in_network "$1" ip -4 -o address show dev eth0 | sed 's,.* inet \([0-9.]*\)/.*,\1,'
}
hearthd_of() { if [ "$1" = one ]; then echo "${PID[hearthd]}"; else echo "${PID[hearthd2]}"; fi; }

cut_off() {
    link_down "$1"
    sleep "$2"
    link_up "$1"
}
flap() { # packets are lost, and come later
    local until=$((SECONDS + $2))
    while [ $SECONDS -lt "$until" ]; do
        link_down "$1"
        sleep "0.$((RANDOM % 5))5"
        link_up "$1"
        sleep "0.$((RANDOM % 5))5"
    done
}
slow() { # a queue of seconds in both directions, which drops what it has no room for
    local queue=(root tbf rate 1mbit burst 3000 latency 4s)
    tc qdisc add dev "${LINK[$1]}" "${queue[@]}"
    in_network "$1" tc qdisc add dev eth0 "${queue[@]}"
    sleep "$2"
    tc qdisc del dev "${LINK[$1]}" root
    in_network "$1" tc qdisc del dev eth0 root
}
evict() { # as an administrator does
    local id
    noted evict "$1"
    for id in $(ceph_cmd tell mds.a session ls 2>/dev/null |
        jq -r --arg at "$(address_of "$1")" '.[] | select(.inst | contains("\($at):")) | .id'); do
        ceph_cmd tell mds.a client evict id="$id"
    done
    noted evicted "$1" 20000
}
freeze() {
    noted freeze "$1"
    kill -STOP "$(hearthd_of "$1")"
    sleep "$2"
    kill -CONT "$(hearthd_of "$1")"
    noted thaw "$1" 20000
}
restart() { "$ONE_NODE" restart "$CEPH_DIR" "$1"; } # DAEMON
fail_mds() { ceph_cmd mds fail a; }
halted() { # DAEMON SECONDS
    kill -STOP "$(daemon_pid "$1")"
    sleep "$2"
    kill -CONT "$(daemon_pid "$1")"
    # Its placement groups have no lease to read any more.
    [ "$1" != osd.0 ] || ceph_cmd osd down 0
}
