#!/bin/bash
# Reads of the nearest copy ("readAffinity" of config.json), on a real Ceph of two OSDs on two hosts "a" and "b" of
# its CRUSH map. "a" has the first copy of everything; labels of the Kubernetes Node say where a node is, and each OSD counts
# what it sends.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/kube_api.sh"
init
start_ceph --osd-size 4G
kube_api_up '{"kubernetes.io/hostname": "b", "topology.kubernetes.io/zone": "z1"}'

add_osd() { # 1, beside osd.0
    local uuid dir=$CEPH_DIR/osd1 pid
    local osd=(${CEPH_ROOT:+chroot "$CEPH_ROOT"} env -C / ceph-osd -c "$CEPH_CONF" -i 1 --osd-data "$dir" --keyring "$dir/keyring")
    uuid=$(</proc/sys/kernel/random/uuid)
    mkdir -m 700 "$dir"
    # The monitor makes a key that its version knows.
    ceph_cmd auth get-or-create osd.1 mon 'allow profile osd' mgr 'allow profile osd' osd 'allow *' >"$dir/keyring" &&
        ceph_cmd osd new "$uuid" 1 && "${osd[@]}" --mkfs --osd-uuid "$uuid" || return 1
    setsid "${osd[@]}" -f </dev/null >>"$CEPH_DIR/log/osd.1.out" 2>&1 &
    pid=$!
    echo "osd.1 $pid $(start_time $pid)" >>"$CEPH_DIR/pids"
    wait_for 60 two_are_up && ceph_cmd osd crush set osd.0 1.0 root=default host=a &&
        ceph_cmd osd crush set osd.1 1.0 root=default host=b
}
two_are_up() { ceph_cmd osd stat | grep -q ' 2 up'; }
add_osd >"$TMP/log/osd.1.log" 2>&1 || die "no second OSD: $(tail -n 3 "$TMP/log/osd.1.log")"
for pool in rbd hearthfs.data; do ceph_cmd osd pool set $pool size 2 >/dev/null 2>&1 || die "no second copy in $pool"; done
ceph_cmd osd primary-affinity osd.1 0 >/dev/null 2>&1 || die "osd.1 stays first"
wait_for 120 pgs_are_clean || die "the copies are not made"
jq '.[0].readAffinity = {enabled: true, crushLocationLabels: ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]}' \
    "$CEPH_DIR/config.json" >"$TMP/config.json"
own_user
start_hearth
end node
start_node --kubeconfig="$TMP/kubeconfig"

MIB=24
sent() { "$ONE_NODE" perf "$CEPH_DIR" "osd.$1" osd.op_out_bytes; }
# An OSD sends a copy that is not the first only if it knows that the last write of its placement group is
# everywhere, which it learns with the next one.
later_writes() { # POOL
    timeout 30 rados -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin -p "$1" bench 1 write -b 4096 -t 16 --no-cleanup >/dev/null 2>&1
    timeout 30 rados -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin -p "$1" cleanup >/dev/null 2>&1
}
# All of the file is read from Ceph: how much of it osd.1 has sent, in percent of what both did.
share_of_b() {
    local a=$(sent 0) b=$(sent 1)
    drop_page_cache
    cat "$TARGET/data" >/dev/null || return 1
    a=$(($(sent 0) - a)) b=$(($(sent 1) - b))
    SHARE=$((b * 100 / (a + b + 1)))
    [ $((a + b)) -ge $((MIB << 20)) ]
}
# Of an object that was written just now a copy may leave the answer to the first one: one of six.
mostly_b() { share_of_b && [ $SHARE -ge 75 ]; }
all_of_a() { share_of_b && [ $SHARE -le 1 ]; }
read_by() { # NAME all_of_a|mostly_b
    local try
    for try in $(seq 10); do
        "$2" && pass "$1" && return
        later_writes $POOL_OF_DATA
        again # what hearthd has read it may keep in memory
    done
    fail "$1" "osd.1 has sent $SHARE percent"
}
again() { unpublish && unstage && stage && publish || die "staged again: $(said)"; }
new_labels() { # JSON: of a node plugin that starts
    kube_node_labels "$1"
    end node
    start_node --kubeconfig="$TMP/kubeconfig"
    again
}

for kind in file image; do
    if [ $kind = file ]; then
        create_volume pvc-near-f$$ 1073741824 '{"cache": "off"}' || die "CreateVolume: $(said)"
    else
        create_image pvc-near-i$$ 1073741824 '{"cache": "off"}' || die "CreateVolume: $(said)"
        CAPABILITY='{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
    fi
    stage && publish || die "$kind: $(said)"
    head -c "${MIB}M" /dev/urandom >"$TARGET/data"
    sync -f "$TARGET"
    sum=$(b2sum <"$TARGET/data")
    again
    POOL_OF_DATA=rbd
    [ $kind = image ] || POOL_OF_DATA=hearthfs.data
    later_writes $POOL_OF_DATA
    read_by ${kind}_on_b_is_read_from_b mostly_b
    same ${kind}_is_what_was_written "$(b2sum <"$TARGET/data")" "$sum"
    new_labels '{"other": "label"}'
    read_by ${kind}_of_a_node_without_the_labels_is_read_from_a all_of_a
    check ${kind}_and_the_log_says_so grep -q 'none of the labels of readAffinity' "$TMP/log/node.log"
    new_labels '{"kubernetes.io/hostname": "b"}'
    unpublish && unstage && delete_volume || fail ${kind}_goes "$(said)"
done

# ---- no answer from Kubernetes ----
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
create_volume pvc-near-n$$ 1073741824 || die "CreateVolume: $(said)"
at_exit remove_volume
end kube-api
end node
start_node --kubeconfig="$TMP/kubeconfig"
check without_kubernetes_a_volume_is_staged stage
check and_the_log_says_what_that_means grep -q 'labels cannot be read, so reads go to no nearer copy' "$TMP/log/node.log"
same the_labels_are_asked_for_once_by_each_plugin "$(kube_requests | sort | uniq -c | awk '{ print $2, $3, $4 }')" "GET /api/v1/nodes/test-node 200"
