#!/bin/bash
# The layout test finds what it is for: each forbidden include, planted in a tree of its own.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

planted() { # NAME FILE INCLUDE WANTED
    rm -rf "${tree:?}"/*
    mkdir -p "$tree"/{common,proto,cache/store,cache/origin,driver/backend,driver/rpc,driver/kube,cmd/hearthd,tests}
    touch "$tree"/{common/error.h,proto/wire.h,cache/store/store.h,driver/rpc/call.h,cmd/hearthd/options.h}
    echo "#include $3" >"$tree/$2"
    "$here/includes.sh" "$tree" >"$tree/out"
    if [ $? = "$4" ]; then
        echo "pass layout: $1"
    else
        echo "fail layout: $1: $(<"$tree/out")"
        failed=1
    fi
}

planted cache_includes_driver cache/store/a.c '"driver/rpc/call.h"' 1
planted cache_includes_driver_by_relative_path cache/store/a.c '"../../driver/rpc/call.h"' 1
planted cache_includes_common cache/store/a.c '"common/error.h"' 0
planted cache_includes_grpc cache/store/a.h '<nghttp2/nghttp2.h>' 1
planted driver_includes_store driver/rpc/a.c '"cache/store/store.h"' 1
planted driver_includes_wire driver/rpc/a.c '"proto/wire.h"' 0
planted common_includes_driver common/a.c '"driver/rpc/call.h"' 1
planted common_includes_wire common/a.c '"proto/wire.h"' 1
planted wire_includes_common proto/a.c '"common/error.h"' 0
planted wire_includes_cache proto/a.c '"cache/store/store.h"' 1
planted store_includes_ceph cache/store/a.c '  <cephfs/libcephfs.h>' 1
planted rpc_includes_rados driver/rpc/a.c '<rados/librados.h>' 1
planted origin_includes_ceph cache/origin/a.c '<cephfs/libcephfs.h>' 0
planted backend_includes_ceph driver/backend/a.c '<rados/librados.h>' 0
planted kube_includes_driver driver/kube/a.c '"driver/rpc/call.h"' 1
planted kube_includes_kube driver/kube/a.c '"driver/kube/a.c"' 0
planted cache_includes_cmd cache/store/a.c '"cmd/hearthd/options.h"' 1
planted cmd_includes_driver cmd/hearthd/a.c '"driver/rpc/call.h"' 0
exit $failed
