#!/bin/bash
# make demo: the main job, end to end, on a real Ceph of one node.
#
# Provisions a CephFS volume, publishes it through the node's cache, writes a dataset, reads it cold
# and warm in random order with 4 threads, beside ceph-fuse on the same subvolume and the plain local
# file system, and takes everything down again. The page cache is dropped before every pass of every
# system; passes only read, alike for all; the bytes are compared with what was written in passes of
# their own, once of what the cold pass had put into the cache and once of what ceph-fuse shows.
# The figures go to build/demo/report.json; the last line is "demo: ok".

TEST_NAME=demo QUIET=1
. "$(dirname "$0")/../integration/lib.sh"

if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || { echo "demo: failed: it mounts file systems: run it as root"; exit 1; }
    exec sudo -- "$0" "$@"
fi

REPORT=$BUILD/demo/report.json
FILES=5000 FILE_SIZE=100000 LARGE_SIZE=512000000 THREADS=4 ROUNDS=3
STEP_STARTED=$SECONDS
seed=1

step() { # the next step's text; the last one's time is printed
    [ -z "${STEP:-}" ] || printf '%4d s\n' $((SECONDS - STEP_STARTED))
    STEP=$1 STEP_STARTED=$SECONDS
    [ -z "$1" ] || printf '%-68s' "$1"
}

die() {
    local log
    FAILED=1
    echo
    for log in "$TMP"/log/{controller,hearthd,node}.log; do
        [ -s "$log" ] && { echo "--- the end of $(basename "$log")"; tail -n 5 "$log"; }
    done
    echo "demo: failed: ${STEP:-setup}: $*"
    exit 1
}

dataset() { "$BUILD/tools/demo-read" "$@"; }

pass_of() { # DIR small|large: one timed pass, page cache dropped; files/s or MB/s in $RATE
    local out threads=$THREADS field=files_per_s
    [ "$2" = large ] && threads=1 field=mb_per_s
    seed=$((seed + 1))
    drop_page_cache
    out=$(dataset read "$1" "$TMP/manifest" --only "$2" --threads $threads --seed $seed) || die "$1: $out"
    RATE=$(jq ".$field" <<<"$out")
}

median() { printf '%s\n' "$@" | sort -g | sed -n "$((($# + 1) / 2))p"; }

verify() { # DIR: every byte against the manifest
    local out
    out=$(dataset read "$1" "$TMP/manifest" --threads $THREADS --verify) || die "bytes differ in $1: $out"
}

republish() {
    unpublish || die "$(said)"
    unstage || die "$(said)"
    stage || die "$(said)"
    publish || die "$(said)"
}

mount_ceph_fuse() {
    mkdir -p "$TMP/ceph-fuse"
    # In the foreground, so that it ends with the demo. The key is in a file of the cluster's own.
    spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" \
        --client_mountpoint="$ROOT_PATH" "$TMP/ceph-fuse"
    wait_for 20 mountpoint -q "$TMP/ceph-fuse" || die "ceph-fuse does not mount"
}

init
step "Starting a Ceph of one node on loopback"
CEPH_TEMP=$(mktemp -d /var/tmp/hearth-demo-ceph-XXXXXX)
OWN_CEPH=$CEPH_TEMP
"$ONE_NODE" start "$CEPH_TEMP" --osd-size 10G >"$TMP/log/ceph.log" 2>&1 || die "$(tail -n 3 "$TMP/log/ceph.log")"
HEARTH_CEPH=$CEPH_TEMP
start_ceph
step "Starting hearth-csi (controller, node) and hearthd"
start_hearth --cache-size=4G
csi controller Probe '{}' || die "$(said)"
csi node Probe '{}' || die "$(said)"

step "CreateVolume: a CephFS subvolume of 2 GiB"
create_volume "pvc-demo-$$" 2147483648 || die "$(said)"
step "NodeStageVolume, NodePublishVolume"
stage || die "$(said)"
publish || die "$(said)"
step "Writing $FILES files of 100 KB and one of 512 MB"
written=$(dataset write "$TARGET/set" "$TMP/manifest" --files $FILES --size $FILE_SIZE \
    --large $LARGE_SIZE --threads $THREADS) || die "$written"
sync -f "$TARGET"
step "Unstaging and staging again, the cache empty"
republish
[ "$(cache_stat bytes)" = 0 ] || die "the cache is not empty"

step "Reading cold: from Ceph, into the cache"
pass_of "$TARGET/set" small
small_cold=$RATE
pass_of "$TARGET/set" large
large_cold=$RATE
opens=$(volume_stat opens) hits=$(volume_stat hits) misses=$(volume_stat misses)
[ "$hits" = 0 ] && [ "$misses" = $((FILES + 1)) ] || die "cold pass: $opens opens, $hits hits, $misses misses"
step "Comparing every byte, cold-filled, with what was written"
verify "$TARGET/set"
step "Mounting ceph-fuse beside it and comparing there too"
mount_ceph_fuse
verify "$TMP/ceph-fuse/set"
step "Copying the dataset to the local file system"
cp -r "$TMP/ceph-fuse/set" "$TMP/local"

step "Reading warm: $ROUNDS rounds of local, Hearth, ceph-fuse in turn"
hits=$(volume_stat hits) misses=$(volume_stat misses)
for ((round = 0; round < ROUNDS; round++)); do
    for system in local hearth fuse; do
        declare -n small=small_$system large=large_$system
        case $system in
        local) dir=$TMP/local ;;
        hearth) dir=$TARGET/set ;;
        fuse) dir=$TMP/ceph-fuse/set ;;
        esac
        pass_of "$dir" small
        small+=("$RATE")
        pass_of "$dir" large
        large+=("$RATE")
    done
done
hits=$(($(volume_stat hits) - hits)) misses=$(($(volume_stat misses) - misses))
step ""

mkdir -p "$(dirname "$REPORT")"
jq -n --argjson small "[$small_cold, $(median "${small_hearth[@]}"), $(median "${small_fuse[@]}"), $(median "${small_local[@]}")]" \
    --argjson large "[$large_cold, $(median "${large_hearth[@]}"), $(median "${large_fuse[@]}"), $(median "${large_local[@]}")]" \
    --argjson hits "$hits" --argjson misses "$misses" \
    --argjson files $FILES --argjson size $FILE_SIZE --argjson large_size $LARGE_SIZE --argjson rounds $ROUNDS '
    def row(r): {hearth_cold: r[0], hearth_warm: r[1], ceph_fuse_warm: r[2], local_warm: r[3],
                 hearth_to_ceph_fuse: (r[1] / r[2]), hearth_to_local: (r[1] / r[3])};
    {small_files: (row($small) + {unit: "files/s", files: $files, bytes_each: $size}),
     large_file: (row($large) + {unit: "MB/s", bytes: $large_size}),
     hit_ratio: ($hits / ($hits + $misses)), rounds: $rounds, bytes_verified: true}' >"$REPORT" ||
    die "cannot write $REPORT"

echo
jq -r 'def n: . * 10 | round / 10 | tostring | if length < 10 then " " * (10 - length) + . else . end;
    def line(name; k): "  \(name)\(.small_files[k] | n)  \(.large_file[k] | n)";
    "  page cache dropped        files/s        MB/s",
    "                       \(.small_files.files) x 100 KB  1 x 512 MB",
    line("Hearth, cold      "; "hearth_cold"),
    line("Hearth, warm      "; "hearth_warm"),
    line("ceph-fuse, warm   "; "ceph_fuse_warm"),
    line("local file system "; "local_warm"),
    "",
    "  Hearth warm is \(.small_files.hearth_to_ceph_fuse | n | ltrimstr(" ") | gsub(" "; "")) times ceph-fuse and \(.small_files.hearth_to_local * 100 | round)% of local (files/s); hit ratio \(.hit_ratio * 100 | round)%.",
    "  Medians of \(.rounds) rounds. All bytes compared with what was written: none differs."' "$REPORT"
echo
hearthctl status || die "hearthctl status"
echo

step "NodeUnpublishVolume, NodeUnstageVolume, DeleteVolume"
unpublish || die "$(said)"
unstage || die "$(said)"
delete_volume || die "$(said)"
[ -z "$(ceph_cmd fs subvolume ls hearthfs csi -f json | jq -r '.[].name')" ] || die "the subvolume is still there"
step "Stopping everything"
umount "$TMP/ceph-fuse"
step_end() { # after lib.sh's cleanup: what must be gone
    printf '%4d s\n' $((SECONDS - STEP_STARTED))
    if [ -e "$TMP" ] || [ -e "$CEPH_TEMP" ] || grep -q "$TMP" /proc/self/mountinfo; then
        echo "demo: failed: something is left in $TMP or $CEPH_TEMP"
        exit 1
    fi
    echo "Figures: ${REPORT#"$TOP"/}"
    echo "demo: ok"
}
(exit 0)
trap - EXIT
(cleanup) && step_end
