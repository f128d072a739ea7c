#!/bin/bash
# Random operations on two nodes, each byte read compared with a model (tests/tools/file-torture.c), while the
# cache is too small for the files, is emptied and warmed, and the page cache is dropped.
#
# For longer: TORTURE_SECONDS of each, TORTURE_SEEDS="1 2 3" for other seeds than the one of every run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
init
start_ceph
# 10 files of up to 3 MiB: eviction never stops.
start_hearth --cache-size=12Mi
start_node2 --cache-size=12Mi
published_volume pvc-torture-$RANDOM 4294967296
publish_on_node2
SECONDS_EACH=${TORTURE_SECONDS:-8}

tortured() { # NAME SEED DIR...
    local name=$1 seed=$2 out
    shift 2
    rm -rf "${TARGET:?}"/f*
    # One that hangs in the kernel is to be told of.
    if out=$(timeout -k 5 $((SECONDS_EACH + 60)) "$BUILD/tools/file-torture" "$seed" "$SECONDS_EACH" "$@" 2>&1); then
        pass "$name"
        [ -z "${TORTURE_SECONDS:-}" ] || echo "     seed $seed: $out"
    else
        [ $? != 124 ] || out="waits for ever; $out"
        fail "$name" "seed $seed: $(head -n 6 <<<"$out")"
        printf '%s\n' "$out" >"${TORTURE_LOG:-/dev/null}"
    fi
}
disturbed() {
    trap - EXIT
    while :; do
        hearthctl evict --all
        on_node2 hearthctl evict --all
        sleep 0.3
        hearthctl warm "$TARGET"
        on_node2 hearthctl warm "$TARGET2"
        sleep 0.3
        echo 1 >/proc/sys/vm/drop_caches
    done >"$TMP/log/disturb.log" 2>&1
}

for seed in ${TORTURE_SEEDS:-7}; do
    HELD=no tortured one_node "$seed" "$TARGET"
    tortured one_node_with_held_descriptors "$seed" "$TARGET"
    HELD=no tortured two_nodes_close_to_open "$seed" "$TARGET" "$TARGET2"
    tortured two_nodes_with_held_descriptors "$seed" "$TARGET" "$TARGET2"
    disturbed &
    disturber=$!
    tortured two_nodes_evicted_warmed_and_dropped "$seed" "$TARGET" "$TARGET2"
    kill "$disturber"
    wait "$disturber" 2>/dev/null || true
done
