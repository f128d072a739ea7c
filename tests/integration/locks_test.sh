#!/bin/bash
# File locks of a ReadWriteMany volume on two nodes: fcntl's and flock's exclude the processes of both, and go with their
# holder. The cases are in locks.py.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
init
start_ceph
start_hearth
start_node2
published_volume pvc-locks-$RANDOM 1073741824
publish_on_node2
both() { timeout -k 5 70 python3 "$TOP/tests/integration/locks.py" "$1" "$TARGET" "${2:-$TARGET2}"; }
case_names() { sed -n 's/^def \([a-z_]*\)():$/\1/p' "$TOP/tests/integration/locks.py"; }
later='hold|counter|sqlite_adder|outlives_the_mds|holds_in_a_snapshot|goes_with_the_session|needs_no_osd|excludes_ceph_fuse'
for case in $(case_names | grep -vxE "$later"); do
    check "$case" both "$case"
done

echo text >"$TARGET/snapped"
sync -f "$TARGET"
subvolume=$(basename "$(dirname "$ROOT_PATH")")
subsnap create "$subvolume" of-locks --group_name csi || die "no snapshot"
at_exit subsnap rm "$subvolume" of-locks --group_name csi
check holds_in_a_snapshot both holds_in_a_snapshot

# An administrator ends the session of the first node, which has been there for longer.
export EVICT="id=\$('$ONE_NODE' ceph '$CEPH_DIR' tell mds.0 session ls 2>/dev/null |
    jq '[.[] | select(.client_metadata.root == \"$ROOT_PATH\" and (.client_metadata.uuid // \"\" | startswith(\"hearth\"))) | .id] | min') &&
    '$ONE_NODE' ceph '$CEPH_DIR' tell mds.0 client evict id=\$id"
check goes_with_the_session both goes_with_the_session

export FAIL_MDS="kill -KILL $(daemon_pid mds.a); '$ONE_NODE' start '$CEPH_DIR'"
check outlives_the_mds both outlives_the_mds

export HALT="kill -STOP $(daemon_pid osd.0)"
STOPPED=(osd.0)
at_exit continue_ceph
check needs_no_osd both needs_no_osd
continue_ceph

mkdir "$TMP/mnt/ceph-fuse"
if command -v ceph-fuse >/dev/null; then
    spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" --id admin --keyring "$CEPH_KEYRING" --client_fs hearthfs -r "$ROOT_PATH" "$TMP/mnt/ceph-fuse"
    check ceph_fuse_mounts wait_for 60 test -e "$TMP/mnt/ceph-fuse/snapped"
    check excludes_ceph_fuse both excludes_ceph_fuse "$TMP/mnt/ceph-fuse"
    umount "$TMP/mnt/ceph-fuse"
else
    skip excludes_ceph_fuse "there is no ceph-fuse"
fi
