# A data pool "weak" of one placement group, which hangs at will. The test has a Ceph of its own, started with
# --conf 'mon_allow_pool_size_one = true'. lib.sh is sourced before.
weak_set() { # NAME VALUE...
    ceph_cmd osd pool set weak "$@" >>"$TMP/log/pool.log" 2>&1 || fail "${STEP}_pool" "$(tail -n 1 "$TMP/log/pool.log")"
}
weak_pool_of_its_own() { # CephFS has no part of it
    ceph_cmd osd pool create weak 1 1 --autoscale-mode=off >/dev/null 2>&1
    weak_set size 1 --yes-i-really-mean-it
}
weak_pool() {
    weak_pool_of_its_own
    ceph_cmd fs add_data_pool hearthfs weak >/dev/null 2>&1
}
# Files that are made in DIR from now on are in the pool. NAME is a cephfs-client that talks.
weak_layout() { # NAME DIR
    wait_for 20 talk "$1" set-xattr "$2" ceph.dir.layout.pool weak || die "no layout: $ANSWER"
}
weak_is() { ceph_cmd pg ls-by-pool weak --format json | jq -e --arg s "$1" '[.pg_stats[].state | contains($s)] | all'; }
hang_weak() {
    weak_set size 2
    weak_set min_size 2
    wait_for 30 weak_is undersized || die "the placement group stays active"
}
heal_weak() {
    weak_set min_size 1
    weak_set size 1 --yes-i-really-mean-it
}
