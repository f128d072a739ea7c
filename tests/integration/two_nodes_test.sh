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

# The session of the first node is ended by an administrator while a reader has a file open there.
ours() { # MDS session of a hearthd's volume: the first node has been there for longer
    ceph_cmd tell mds.0 session ls 2>/dev/null |
        jq --arg root "$ROOT_PATH" '[.[] | select(.client_metadata.root == $root) | .id] | min'
}
printf 'OLD OLD OLD' >"$TARGET/held"
cat "$TARGET/held" >/dev/null
talk_start hold "$BUILD/tools/file-hold" "$TARGET/held"
talk hold read
same held_before_the_eviction "$ANSWER" "OLD OLD OLD"
id=$(ours)
check evict_the_session ceph_cmd tell mds.0 client evict "id=$id"
printf 'NEW NEW NEW' >"$TARGET2/held"
# New bytes or an error; a reader does not go on with the old ones.
not_old() { talk hold read; [ "$ANSWER" != "OLD OLD OLD" ]; }
check no_old_bytes_after_an_eviction wait_for 30 not_old
again() { [ "$(timeout 10 cat "$TARGET/held")" = "NEW NEW NEW" ]; }
check the_mount_heals_after_an_eviction wait_for 60 again
talk_end hold
