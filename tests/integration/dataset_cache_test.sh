#!/bin/bash
# hearthd's side of a dataset on a real Ceph, without the node plugin: the manifest of a snapshot is
# built by each node and found again; the tree over it is the snapshot's, also of files that
# were deleted since and after the MDS has forgotten everything; warming asks the MDS for directories
# alone; what is evicted is free on the cache's own file system; pins and quotas hold; warm jobs of lists, at a rate, and begun again; damage on the
# disk is found and fixed.
. "$(dirname "$0")/lib.sh"
init
truncate -s 512M "$TMP/disk"
mkdir "$TMP/nvme"
mkfs.ext4 -q -E lazy_itable_init=0 "$TMP/disk" && mount -o loop "$TMP/disk" "$TMP/nvme" || die "no file system for the cache"
CACHE=$TMP/nvme/cache
start_ceph
start_controller

spec() { # VOLUME ROOT
    jq -cn --arg volume "$1" --arg root "$2" --arg monitors "$CEPH_MON" --argjson quota "${QUOTA:-0}" --argjson warm "${WARM:-false}" '{volume: $volume, readOnly: true, cacheQuota: $quota, warm: $warm,
        origin: {type: "cephfs", clusterID: "c", monitors: [$monitors], fsName: "hearthfs",
                 rootPath: $root, userID: env.NODE_ID, userKey: env.NODE_KEY}}'
}
# Serves the snapshot's tree at $TMP/mnt/tree, as the node plugin does.
mount_tree() {
    local reply
    mkdir -p "$TMP"/mnt/{fill,erofs,tree}
    reply=$(spec v "$SNAPSHOT" | "$BUILD/tools/dataset-mount" "$HEARTHD" "$TMP/mnt/fill") || return 1
    MANIFEST=$(jq -r .path <<<"$reply")
    mount -t erofs -o ro "$MANIFEST" "$TMP/mnt/erofs" &&
        mount -t overlay -o "ro,metacopy=on,redirect_dir=on,lowerdir=$TMP/mnt/erofs::$(jq -r .objects <<<"$reply")::$TMP/mnt/fill" \
            hearth-test "$TMP/mnt/tree"
}
stop_all() {
    umount "$TMP/mnt/tree" "$TMP/mnt/erofs" "$TMP/mnt/fill"
    end hearthd
}
# Names, kinds, attributes, bytes. Times of directories are not compared by the second client.
digest() { # DIR
    (cd "$1" && find . -printf '%p %y %m %U %G %l %n\n' | sort | grep -av ' d .* [0-9]*$' | sha256sum
     find . -type d -printf '%p %m\n' | sort | sha256sum
     find . -type f -printf '%p %s %T@\n' | sort | sha256sum
     find . -type f -print0 | sort -z | xargs -0 sha256sum | sha256sum
     getfattr -R -m user. -d . 2>/dev/null | sort | sha256sum)
}
free_kib() { sync -f "$TMP/nvme" && df --output=avail "$TMP/nvme" | tail -n 1; }

create_volume datasets || die "CreateVolume: $(said)"
at_exit delete_volume
mkdir -p "$TMP/mnt/ceph"
ceph-fuse -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph" >"$TMP/log/ceph-fuse.log" 2>&1 ||
    die "ceph-fuse does not mount"
at_exit "umount -l $TMP/mnt/ceph 2>/dev/null"
LIVE=$TMP/mnt/ceph$ROOT_PATH
mkdir -p "$LIVE"/{many,deep/er/est,gone/sub}
python3 - "$LIVE" <<'PY'
import os, sys
root = sys.argv[1]
for i in range(1500):
    with open(f"{root}/many/{i:04}", "wb") as f:
        f.write(os.urandom(i % 700))
with open(f"{root}/deep/er/est/large", "wb") as f:
    f.write(os.urandom(9 << 20))
for name in ("x", "y"):
    with open(f"{root}/gone/sub/{name}", "w") as f:
        f.write("of " + name)
os.link(f"{root}/many/0700", f"{root}/deep/link")
os.symlink("../many/0001", f"{root}/deep/symlink")
os.setxattr(f"{root}/many/0002", "user.k", b"value")
os.setxattr(f"{root}/deep", "user.of-directory", b"1")
os.mkfifo(f"{root}/deep/fifo")
with open(os.path.join(os.fsencode(root), b"caf\xe9 \n"), "wb") as f:
    f.write(b"odd")
with open(f"{root}/many/sparse", "wb") as f:
    f.truncate(3 << 20)
PY
"$ONE_NODE" ceph "$CEPH_DIR" fs subvolume snapshot create hearthfs "$(basename "$(dirname "$ROOT_PATH")")" s1 \
    "$(basename "$(dirname "$(dirname "$ROOT_PATH")")")" >/dev/null || die "no snapshot"
at_exit "'$ONE_NODE' ceph '$CEPH_DIR' fs subvolume snapshot rm hearthfs '$(basename "$(dirname "$ROOT_PATH")")' s1 '$(basename "$(dirname "$(dirname "$ROOT_PATH")")")' >/dev/null"
SNAPSHOT=$(dirname "$ROOT_PATH")/.snap/s1/$(basename "$ROOT_PATH")
WANTED=$(digest "$TMP/mnt/ceph$SNAPSHOT")
# The live tree goes on without them.
rm -rf "$LIVE/gone" "$LIVE/many/0003"
echo changed >"$LIVE/many/0004"
umount "$TMP/mnt/ceph"

start_hearthd
check "manifest is built and the stack mounts" mount_tree
same "cold tree is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
same "dataset's total is told" "$(hearthctl status --json | jq -r '.volumes[0].filesTotal')" 1506
wait_for 20 eval '[ "$(hearthctl status --json | jq -r ".volumes[0] | .bytesCached == .bytesTotal")" = true ]' &&
    pass "all of it is told as cached" || fail "all of it is told as cached" "$(hearthctl status --json | jq -c '.volumes[0]')"
stop_all

# As another node, and with an MDS that remembers nothing.
rm -rf "$CACHE"
ceph_cmd mds fail a >/dev/null 2>&1
wait_for 60 eval 'ceph_cmd fs status hearthfs 2>/dev/null | grep -q active' || die "the MDS does not come back"
start_hearthd
check "another node builds its own" mount_tree
same "by a walk" "$(grep -c '"msg":"dataset .* built' "$TMP/log/hearthd.log")" 2
same "nothing of it is in Ceph" "$(rados -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" -p hearthfs.data -N hearth ls | grep -c manifest)" 0
BEFORE=$(mds_asked)
check "warming" hearthctl warm v
COST=$(($(mds_asked) - BEFORE))
if [ "$COST" -lt 60 ]; then
    pass "warming 1500 files asks the MDS for directories alone"
else
    fail "warming 1500 files asks the MDS for directories alone" "$COST lookups, opens and listings"
fi
BEFORE=$(mds_asked)
same "warm tree is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
same "reading it asks the MDS for nothing" "$(($(mds_asked) - BEFORE))" 0
cat "$TMP"/mnt/tree/many/0* >/dev/null
BEFORE=$(free_kib)
hearthctl evict v >/dev/null
drop_all
is_free() { [ "$(free_kib)" -ge $((BEFORE + 9 * 1024)) ]; }
wait_for 10 is_free && pass "what is evicted is free" || fail "what is evicted is free" "$BEFORE KiB before, $(free_kib) after"
stop_ceph
BEFORE=$SECONDS
timeout 60 sha256sum "$TMP/mnt/tree/many/0777" >"$TMP/out" 2>&1
same "without Ceph a cold file cannot be read" "$(grep -c 'Input/output error' "$TMP/out")" 1
check "and fails in 25 s" [ $((SECONDS - BEFORE)) -le 25 ]
continue_ceph
BEFORE=$SECONDS
readable() { sha256sum "$TMP/mnt/tree/many/0777" >"$TMP/out" 2>&1; }
until readable || [ $((SECONDS - BEFORE)) -gt 100 ]; do sleep 0.5; done
check "it is read when Ceph is back ($((SECONDS - BEFORE)) s)" readable
same "evicted tree is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
stop_all

# ---- warm jobs ----
start_hearthd
check "it is mounted again" mount_tree
hearthctl evict v >/dev/null
hearthctl warm v --path many --check >"$TMP/out"
same "a check of what is not here fails" "$? $(grep -c ': 0%$' "$TMP/out")" "1 1"
objects() { find "$CACHE/objects" -type f | wc -l; }
printf '%s\n' many/0010 ./many//0011 deep/er/est/large many/0000 deep/fifo/none |
    hearthctl warm v --files-from - >"$TMP/out" 2>&1
same "a list names what is warmed, and what is not there is told" "$? $(objects) $(grep -c 'deep/fifo/none' "$TMP/out")" "1 3 1"
hearthctl evict v >/dev/null
BEFORE=$(date +%s%3N)
check "warming at a rate" hearthctl warm v --path deep --rate 4M
TOOK=$(($(date +%s%3N) - BEFORE))
# 9 MiB in chunks of 4 MiB, the first at once.
[ "$TOOK" -ge 1900 ] && [ "$TOOK" -lt 10000 ] && pass "it takes its time" || fail "it takes its time" "$TOOK ms"
hearthctl warm v --path many --rate 100K --no-wait >/dev/null
wait_for 10 eval '[ "$(objects)" -gt 20 ]'
end hearthd KILL
umount "$TMP/mnt/tree" "$TMP/mnt/erofs" "$TMP/mnt/fill"
start_hearthd
check "and after hearthd was killed" mount_tree
hearthctl warm v >"$TMP/out" 2>&1
check "warming goes on with what is held" grep -q 'held before: 9' "$TMP/out"
BEFORE=$(cache_stat originBytes)
check "warming again" hearthctl warm v
same "fetches nothing" "$(cache_stat originBytes)" "$BEFORE"
same "a check finds all of it" "$(hearthctl warm v --check --json | jq -c '[.check, .state, .filesDone == .filesTotal, .bytesDone == .bytesTotal]')" '[true,"done",true,true]'
check "and succeeds" hearthctl warm v --check
same "warmed tree is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
stop_all
rm -rf "$CACHE"
WARM=true
start_hearthd --warm-rate=100K
check "mounting it with warm: onStage" mount_tree
hearthctl job 1 >"$TMP/out"
grep -q 'files,' "$TMP/out" && pass "warms it at hearthd's rate" || fail "warms it at hearthd's rate" "$(cat "$TMP/out")"
hearthctl job 1 --cancel >/dev/null
unset WARM
stop_all

# ---- damage ----
damage() { # the object of a file: the bytes alone, as a disk does
    local object
    object=$(find "$CACHE/objects" -type f -size +8M)
    touch -r "$object" "$TMP/times"
    printf 'damage' | dd of="$object" bs=1 seek=5000000 conv=notrunc status=none
    touch -r "$TMP/times" "$object"
}
start_hearthd --scrub-rate=0
check "mounting it to be damaged" mount_tree
check "warming it" hearthctl warm v
hearthctl verify v >"$TMP/out" && pass "what is good verifies" || fail "what is good verifies" "$(cat "$TMP/out")"
damage
hearthctl verify v >"$TMP/out"
same "damage is found and named" "$? $(grep -c 'bad: deep/er/est/large, object' "$TMP/out")" "1 1"
drop_all
same "and fixed" "$(digest "$TMP/mnt/tree")" "$WANTED"
wait_for 20 eval '[ "$(cache_stat fillsActive)" = 0 ]'
check "for good" hearthctl verify
damage
stop_all
start_hearthd --scrub-rate=200M
wait_for 30 eval '[ "$(cache_stat scrub.endedMs)" != 0 ]'
same "the scrubber finds damage" "$(cache_stat badObjects)" 1
check "mounting it after the scrub" mount_tree
same "tree after the scrub is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
stop_all

# ---- quota and pin ----
QUOTA=$((4 << 20))
start_hearthd --verity=auto
case $(cache_stat verity) in on | unavailable) pass "whether there is fs-verity is told" ;; *) fail "whether there is fs-verity is told" "$(cache_stat verity)" ;; esac
check "it is mounted with a quota" mount_tree
same "tree under a quota is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
within() { [ "$(cache_stat bytes)" -le "$QUOTA" ]; }
wait_for 30 within && pass "what is cached keeps within its quota" || fail "what is cached keeps within its quota" "$(du -s "$CACHE/objects")"
stop_all
unset QUOTA
start_hearthd
check "and without" mount_tree
check "warming all" hearthctl warm v
check "it is pinned" hearthctl pin v
same "and said to be" "$(hearthctl status --json | jq '.volumes[0].pinned')" true
FILES=$(find "$CACHE/objects" -type f | wc -l)
hearthctl evict --all >"$TMP/out"
same "evicting all passes it over" "$(find "$CACHE/objects" -type f | wc -l) $(grep -c 'were skipped' "$TMP/out")" "$FILES 1"
hearthctl evict v >"$TMP/out" 2>&1 && fail "evicting it is refused" || pass "evicting it is refused"
stop_all
# Smaller than what is pinned.
start_hearthd --cache-size=8M
check "mounting it with a full cache" mount_tree
same "it is still pinned" "$(hearthctl status --json | jq -c '[.volumes[0].pinned, .cache.pins[0].objects]')" "[true,$FILES]"
sleep 6 # a round of eviction
same "none of it was evicted" "$(find "$CACHE/objects" -type f | wc -l)" "$FILES"
find "$CACHE/objects" -type f -size +8M -delete
drop_all
same "what does not fit is read past the cache" "$(digest "$TMP/mnt/tree")" "$WANTED"
check "from Ceph" [ "$(hearthctl status --json | jq '.volumes[0].bytesOrigin')" -ge $((9 << 20)) ]
check "its pin is taken off" hearthctl pin v --off
wait_for 20 eval '[ "$(find "$CACHE/objects" -type f | wc -l)" -lt "$FILES" ]' && pass "then it is evicted" || fail "then it is evicted" "$(cache_stat objects)"
stop_all

# A damaged one is never used.
printf 'x' | dd of="$MANIFEST" bs=1 seek=9000 conv=notrunc status=none
start_hearthd
check "damaged manifest is replaced" mount_tree
same "and says so" "$(grep -c 'is removed and built again' "$TMP/log/hearthd.log")" 1
same "tree after damage is the snapshot's" "$(digest "$TMP/mnt/tree")" "$WANTED"
stop_all
exit $((FAILED > 0))
