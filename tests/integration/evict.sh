# Sourced after lib.sh: the MDS ends sessions of hearthd.
#
#   sessions          ids of those with the current volume
#   evict             ends them

sessions() {
    ceph_cmd tell mds.a client ls 2>/dev/null | jq -r --arg root "$ROOT_PATH" \
        '.[] | select(.client_metadata | .root == $root and (.uuid // "" | startswith("hearth"))) | .id'
}
evict() {
    local id ids
    ids=$(sessions)
    [ -n "$ids" ] || die "the MDS knows no session of hearthd"
    for id in $ids; do ceph_cmd tell mds.a client evict id="$id" >/dev/null 2>&1 || die "cannot evict $id"; done
}
evict_without_blocklist() { # from now on, until the test ends
    at_exit ceph_cmd config rm mds mds_session_blocklist_on_evict
    ceph_cmd config set mds mds_session_blocklist_on_evict false
}
