#!/bin/bash
# The folder is the rule: fails on an #include the layout forbids (ARCHITECTURE.md).
#
#   common/   includes nothing of the other folders; proto/ nothing but common/
#   cache/    includes common/, proto/ and its own, and no gRPC or protobuf header
#   driver/   includes common/, proto/ and its own; driver/kube/ of driver/ only its own
#   Ceph's headers are for cache/origin/ and driver/backend/ alone
#   nobody includes cmd/ but cmd/, nor tests/ but tests/
#
# Prints "pass layout: ..." or one "fail layout: FILE:LINE ..." for each, and exits 1 on any.

set -uo pipefail
cd "${1:-$(dirname "$0")/../..}" || exit 1
failed=0

forbid() { # FILE LINE INCLUDED WHY
    echo "fail layout: $1:$2 includes $3: $4"
    failed=1
}

judge() { # FILE LINE TARGET, TARGET relative to the top, or <...> as written
    case $1,$3 in
    cache/*,driver/*) forbid "$@" "cache/ knows nothing of driver/" ;;
    driver/*,cache/*) forbid "$@" "driver/ knows nothing of cache/: what both need is in common/ or proto/" ;;
    cache/*,*csi.pb-c.h | cache/*,'<nghttp2/'* | cache/*,'<protobuf-c/'*) forbid "$@" "cache/ never sees gRPC" ;;
    common/*,common/* | proto/*,proto/* | proto/*,common/*) ;;
    common/*,driver/* | common/*,cache/* | common/*,proto/*) forbid "$@" "common/ includes nothing of the other folders" ;;
    proto/*,driver/* | proto/*,cache/*) forbid "$@" "proto/ includes nothing but common/" ;;
    driver/kube/*,driver/kube/*) ;;
    driver/kube/*,driver/*) forbid "$@" "driver/kube/ knows nothing of the rest of driver/" ;;
    esac
    case $3 in
    '<cephfs/'* | '<rados/'* | '<rbd/'*)
        case $1 in
        cache/origin/* | driver/backend/* | tests/*) ;;
        *) forbid "$@" "only cache/origin/ and driver/backend/ include Ceph's headers" ;;
        esac
        ;;
    cmd/*) [[ $1 == cmd/* || $1 == tests/unit/cmd/* ]] || forbid "$@" "nobody includes cmd/" ;;
    tests/*) [[ $1 == tests/* ]] || forbid "$@" "tests are included by tests alone" ;;
    esac
}

checked=0
while IFS=: read -r file line text; do
    file=${file#./}
    if [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*\"([^\"]+)\" ]]; then
        target=${BASH_REMATCH[1]}
        # As the compiler looks: beside the file first, then from the top.
        beside=$(realpath -m --relative-to=. "$(dirname "$file")/$target")
        [ -e "$beside" ] && target=$beside
    elif [[ $text =~ ^[[:space:]]*#[[:space:]]*include[[:space:]]*(\<[^\>]+\>) ]]; then
        target=${BASH_REMATCH[1]}
    else
        continue
    fi
    checked=$((checked + 1))
    judge "$file" "$line" "$target"
done < <(find common proto cache driver cmd tests -name '*.[ch]' -print0 | xargs -0 grep -nHE '^[[:space:]]*#[[:space:]]*include')

if [ "$checked" = 0 ]; then
    echo "fail layout: found no include at all"
    exit 1
fi
[ "$failed" = 1 ] || echo "pass layout: $checked includes, none forbidden"
exit $failed
