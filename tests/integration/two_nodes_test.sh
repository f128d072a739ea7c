#!/bin/bash
# One volume on two nodes, each with a hearthd and a cache of its own: what is done through one is what
# the other shows, on open files too. The cases are in two_nodes.py; random ones in torture_test.sh.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
init
start_ceph
start_hearth
start_node2
published_volume pvc-nodes-$RANDOM 1073741824
publish_on_node2

both() { # CASE: in a session of its own, as one that hangs in the kernel is not to be waited for
    timeout -k 5 40 python3 "$TOP/tests/integration/two_nodes.py" "$1" "$TARGET" "$TARGET2"
}
for case in $(sed -n 's/^def \([a-z_]*\)():$/\1/p' "$TOP/tests/integration/two_nodes.py"); do
    [ "$case" = forget ] || check "$case" both "$case"
done

# What one node has written and closed the other opens with what the MDS said of it: nothing of the
# first node's (promise 2 keeps a handle there) makes the MDS go through its journal for each file.
opens() { "$ONE_NODE" perf "$CEPH_DIR" mds.a | jq '.mds_server.req_open_latency.avgcount'; }
mkdir "$TARGET/fresh"
for i in $(seq 60); do echo "$i" >"$TARGET/fresh/$i"; done
opened=$(opens)
cat "$TARGET2"/fresh/* >/dev/null
opened=$(($(opens) - opened))
[ $opened -lt 20 ] && pass fresh_files_are_opened_without_a_request || fail fresh_files_are_opened_without_a_request "$opened of 60"

# The session of the first node is ended by an administrator while a reader has a file open there.
ours() { # MDS session of a hearthd's volume: the first node has been there for longer
    ceph_cmd tell mds.0 session ls 2>/dev/null |
        jq --arg root "$ROOT_PATH" '[.[] | select(.client_metadata.root == $root) | .id] | min'
}
printf 'OLD OLD OLD' >"$TARGET/held"
hit_rises() {
    local before
    before=$(volume_stat hits)
    cat "$TARGET/held" >/dev/null
    [ "$(volume_stat hits)" -gt "$before" ]
}
check held_is_in_the_cache wait_for 10 hit_rises
drop_page_cache
talk_start hold "$BUILD/tools/file-hold" "$TARGET/held"
talk hold read
same held_before_the_eviction "$ANSWER" "OLD OLD OLD"
id=$(ours)
check evict_the_session ceph_cmd tell mds.0 client evict "id=$id"
printf 'NEW NEW NEW' >"$TARGET2/held"
again() { [ "$(timeout 10 cat "$TARGET/held")" = "NEW NEW NEW" ]; }
check the_mount_heals_after_an_eviction wait_for 60 again
# The lease of the old session guarantees nothing any more, though nobody has recalled it.
old=0
for round in 1 2 3 4 5 6; do
    drop_page_cache
    talk hold read
    [ "$ANSWER" != "OLD OLD OLD" ] || old=$((old + 1))
done
same no_old_bytes_after_an_eviction "$old" 0
talk_end hold
