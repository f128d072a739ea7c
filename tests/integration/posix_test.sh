#!/bin/bash
# What programs expect of a file system, on a published volume; then quota, and the same bytes after
# a restage, through the cache.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth
published_volume pvc-posix-$RANDOM 4294967296

for part in names content attributes; do
    mkdir "$TARGET/$part"
    chmod 755 "$TARGET/$part"
    while read -r result name why; do
        case $result in
        pass) pass "$name" ;;
        skip) skip "$name" "$why" ;;
        fail) fail "$name" "$why" ;;
        esac
    done < <("$BUILD/tools/posix-$part" "$TARGET/$part" 2>&1)
done

same statfs_shows_the_quota "$(df -B1 --output=size "$TARGET" | tail -n 1 | tr -d ' ')" 4294967296
check remove_everything rm -r "$TARGET"/{names,content,attributes}

# The same tree through tar, over a restage.
mkdir "$TARGET/tree"
tar -C /usr/include -cf "$TMP/include.tar" linux
check unpack tar -C "$TARGET/tree" -xf "$TMP/include.tar"
unpublish && unstage && stage && publish || die "$(said)"
check compare_after_restage diff -r /usr/include/linux "$TARGET/tree/linux"
drop_page_cache
check compare_from_the_cache diff -r /usr/include/linux "$TARGET/tree/linux"
remove_volume
AT_EXIT=()

create_volume pvc-quota-$RANDOM 67108864 || die "$(said)"
at_exit remove_volume
stage && publish || die "$(said)"
why=$(dd if=/dev/zero of="$TARGET/big" bs=1M count=200 conv=fsync 2>&1)
case $why in
*"Disk quota exceeded"*) pass beyond_the_quota_is_EDQUOT ;;
*) fail beyond_the_quota_is_EDQUOT "$why" ;;
esac
rm -f "$TARGET/big"
used() { [ "$(df -B1 --output=used "$TARGET" | tail -n 1)" -lt 10000000 ]; }
check removing_gives_room_again wait_for 20 used
check write_after_quota cp /bin/bash "$TARGET/small"
