# Sourced after lib.sh: a second node, with a hearthd, a node plugin and a cache of its own, and the same
# volume published on both: $TARGET and $TARGET2.
#
#   start_node2 [FLAGS of hearthd]     after start_hearth
#   publish_on_node2                   the current volume; unpublished by its removal
#   on_node2 COMMAND...                with the variables of lib.sh those of the second node

on_node2() {
    local HEARTHD=$TMP/run/hearthd2.sock NODE=$TMP/run/node2.sock CACHE=${CACHE2:-$TMP/cache2}
    local STAGE=$TMP/mnt2/stage TARGET=$TMP/mnt2/pod/volume
    "$@"
}

start_node2() { # [FLAGS]
    TARGET2=$TMP/mnt2/pod/volume
    mkdir -p "$TMP/mnt2/pod"
    on_node2 spawn_node2 "$@"
}
spawn_node2() {
    spawn hearthd2 "${HEARTHD_WITH[@]}" "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE" "$@"
    wait_socket hearthd2 "$HEARTHD"
    spawn node2 "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=test-node-2 \
        --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json"
    wait_socket node2 "$NODE"
}
publish_on_node2() {
    on_node2 stage || die "NodeStageVolume on node 2: $(said)"
    at_exit unpublish_on_node2
    on_node2 publish || die "NodePublishVolume on node 2: $(said)"
}
unpublish_on_node2() { on_node2 unpublish && on_node2 unstage; }
