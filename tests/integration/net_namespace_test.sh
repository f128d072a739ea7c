#!/bin/bash
# A node that reaches Ceph in a network of its own alone ("netNamespaceFilePath" of config.json): hearthd and the node plugin
# run where Ceph is not, and connect from the namespace that the file names.
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
network_up
start_ceph --address "$MACHINE"
own_user
start_controller --secret-dir="$TMP/own"
node_network inside
INSIDE=10.98.1.1
spawn network-outside unshare --net sleep infinity
wait_for 10 eval '[ "$(readlink "/proc/${PID[network-outside]}/ns/net")" != "$(readlink /proc/self/ns/net)" ]' || die "no namespace"
in_network outside ip link set lo up
OUTSIDE=(nsenter "--net=/proc/${PID[network-outside]}/ns/net")
HEARTHD_WITH=("${OUTSIDE[@]}") NODE_WITH=("${OUTSIDE[@]}")
start_hearthd
start_node
# As Multus's holders and `ip netns` have it: a file that the namespace is mounted on.
FILE=$TMP/net
: >"$FILE" && mount --bind "/proc/${PID[network-inside]}/ns/net" "$FILE" || die "no file of the namespace"
at_exit 'umount "$FILE"'
namespace() { # PATH or "": of both kinds of volumes
    jq --arg p "$1" '.[0].cephFS.netNamespaceFilePath = $p | .[0].rbd.netNamespaceFilePath = $p' "$CEPH_DIR/config.json" >"$TMP/config.new" && mv "$TMP/config.new" "$TMP/config.json"
}
clients() { # addresses that the MDS has sessions with, of the node's user
    ceph_cmd tell mds.a client ls --format json 2>/dev/null | jq -r --arg u "$NODE_ID" '.[] | select(.client_metadata.entity_id == $u) | .entity.addr.addr' | sed 's/:[0-9]*$//' | sort -u | paste -sd ' '
}
watchers() { rbd_cmd status "rbd/$1" --format json | jq -r '.watchers[].address' | sed 's/:.*//' | sort -u; }
use() { stage && publish && echo x >"$TARGET/x" && sync -f "$TARGET"; }
unuse() { unpublish && unstage; }

# ---- files ----
create_volume pvc-net-f$$ 1073741824 || die "CreateVolume: $(said)"
at_exit delete_volume
CSI_TIMEOUT=40
stage && fail ceph_is_out_of_reach "staged" || pass ceph_is_out_of_reach
namespace "$FILE"
check in_the_namespace_files_are_used use
same they_connect_from_there "$(clients)" "$INSIDE"
check the_node_plugin_reads_the_record_from_there eval '! grep -q "mutable parameters are not known" <(tail -n 3 "$TMP/log/node.log")'

# ---- again after a lost session ----
for id in $(ceph_cmd tell mds.a client ls --format json 2>/dev/null | jq -r --arg u "$NODE_ID" '.[] | select(.client_metadata.entity_id == $u) | .id'); do
    ceph_cmd tell mds.a client evict id="$id" >/dev/null 2>&1
done
readable() { [ "$(cat "$TARGET/x")" = x ] && ls "$TARGET" && [ -n "$(clients)" ]; }
check a_lost_session_is_made_again wait_for 60 readable
same from_there "$(clients)" "$INSIDE"
check it_goes unuse

# ---- images ----
FILES_ID=$VOLUME_ID
create_image pvc-net-i$$ 67108864 || die "CreateVolume: $(said)"
CAPABILITY='{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
check in_the_namespace_an_image_is_used use
same it_connects_from_there "$(watchers csi-vol-pvc-net-i$$)" "$INSIDE"
check the_image_goes unuse

# ---- a file that is none ----
namespace "$TMP/nowhere"
stage && fail a_missing_file_is_named "staged" || { [[ $CSI_MESSAGE == *"$TMP/nowhere"* ]] && pass a_missing_file_is_named || fail a_missing_file_is_named "$(said)"; }
delete_volume
same the_controller_needs_no_such_file "$CSI_CODE" OK
VOLUME_ID=$FILES_ID
