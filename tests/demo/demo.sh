#!/bin/bash
# The main job, end to end, on a real Ceph: provision a CephFS volume, publish it through the node's
# cache, write a data set, read it cold and warm beside ceph-fuse and the plain file system, and clean
# everything up. `make demo` runs it; the figures also go to build/demo/report.json.
#
# How the figures are taken, alike for all: the page cache is dropped before each pass; small files are
# read in random order by 4 threads, whole; the large one by 1 thread in blocks of 1 MB. Warm figures
# are the median of 3 rounds that take turns (Hearth, ceph-fuse, local). The cold pass of Hearth and
# the first of ceph-fuse compare every byte with what was written, so hashing is in Hearth's cold
# figure; the warm passes only read, and one more pass, not timed, compares every byte Hearth gives
# from its cache.

[ "$(id -u)" = 0 ] || exec sudo HEARTH_BUILD="${HEARTH_BUILD:-}" HEARTH_DEMO_DIR="${HEARTH_DEMO_DIR:-}" "$0" "$@"

TEST_NAME=demo
. "$(dirname "$0")/../integration/lib.sh"

FILES=5000 SIZE=100000 LARGE=512000000 ROUNDS=3
MARK="demo: ok"
REPORT=$BUILD/demo/report.json
T0=$EPOCHREALTIME

now() { echo $((${EPOCHREALTIME/./} - ${T0/./})); }
step() { # WHAT: begins a step; done_step ends its line with the time it took
    STEP=$1
    STEP_STARTED=$(now)
    printf '  %-64s' "$1"
}
done_step() { # [REMARK]
    local took=$(($(now) - STEP_STARTED))
    printf '%3d.%d s%s\n' $((took / 1000000)) $((took / 100000 % 10)) "${1:+   $1}"
    STEP=
}
die() {
    [ -z "${STEP:-}" ] || echo
    MARK="demo: failed: ${STEP:+$STEP: }$*"
    FAILED=1
    exit 1
}

# However the script ends: nothing may be left, and the last line tells.
demo_exit() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    [ $status != 130 ] && [ $status != 143 ] || MARK="demo: failed: interrupted"
    [ $status = 0 ] || [ "$MARK" != "demo: ok" ] || MARK="demo: failed: ${STEP:-the script ended with status $status}"
    [ "$MARK" = "demo: ok" ] || echo "Cleaning up"
    cleanup_all
    [ -z "$DISK" ] || rm -rf --one-file-system "$DISK"
    if [ -e "$TMP" ] || [ -e "${DISK:-/nonexistent}" ] || [ -n "$(mounts_below "$TMP")" ]; then
        MARK="demo: failed: something is left in $TMP ${DISK:-}"
    fi
    [ -z "${SUDO_UID:-}" ] || chown -R "$SUDO_UID:${SUDO_GID:-$SUDO_UID}" "$BUILD/demo" 2>/dev/null
    echo "$MARK"
    [ "$MARK" = "demo: ok" ]
    exit
}

# A directory on a disk: what is in memory or stacked would not be a cache's.
on_a_disk() { case $(stat -f -c %T "$1" 2>/dev/null) in tmpfs | ramfs | overlayfs) return 1 ;; esac; }
DISK=
for place in ${HEARTH_DEMO_DIR:+"$HEARTH_DEMO_DIR"} /var/tmp "$BUILD" /tmp; do
    if on_a_disk "$place"; then break; fi
done
on_a_disk "$place" || place=/var/tmp
init
trap demo_exit EXIT
mkdir -p "$BUILD/demo" || die "cannot make $BUILD/demo"
rm -f "$REPORT" "$BUILD/demo/held.json"
DISK=$(mktemp -d "$place/hearth-demo-XXXXXX") || die "cannot make a directory in $place"
CACHE=$DISK/cache
free=$(df -B1000000 --output=avail "$DISK" | tail -n 1)
[ "$free" -ge 6000 ] || die "$place has $free MB free, 6000 are needed; name another directory by HEARTH_DEMO_DIR"
[ -w /proc/sys/vm/drop_caches ] || die "cannot drop the page cache: /proc/sys/vm/drop_caches is not writable"
[ -c /dev/fuse ] || die "there is no /dev/fuse on this machine"

echo "Hearth, from provisioning to warm reads. Everything is in $DISK and removed at the end."

step "Start Ceph on loopback: mon, mgr, osd, mds"
HEARTH_CEPH=$DISK/ceph
OWN_CEPH=$HEARTH_CEPH
"$ONE_NODE" start "$HEARTH_CEPH" --osd-size 8G || die "Ceph does not start"
start_ceph
done_step

step "Start the controller plugin, hearthd and the node plugin"
start_hearth
for role in controller node; do
    csi $role Probe '{}' || die "Probe of the $role: $(said)"
done
done_step

step "CreateVolume: a CephFS subvolume of 2 GiB"
create_volume pvc-demo 2147483648 || die "$(said)"
done_step
step "NodeStageVolume, NodePublishVolume"
stage || die "$(said)"
publish || die "$(said)"
done_step

reader() { # NAME ARGS...: runs demo-read, its result in $RESULT
    local name=$1
    shift
    RESULT=$("$BUILD/tools/demo-read" "$@" 2>"$TMP/log/$name.log") || die "$(tail -n 3 "$TMP/log/$name.log")"
}

step "Write $FILES files of $((SIZE / 1000)) KB and one of $((LARGE / 1000000)) MB"
reader write write "$TARGET/data" "$TMP/manifest" --files $FILES --size $SIZE --large $LARGE --threads 4
done_step

step "Unpublish, unstage; empty the cache; stage, publish"
unpublish && unstage || die "$(said)"
hearthctl evict --all >/dev/null || die "hearthctl evict"
stage && publish || die "$(said)"
[ "$(cache_stat bytes)" = 0 ] || die "the cache is not empty before the cold pass"
done_step

# One timed pass: pass_of DIR small|large SEED [--verify]; the figure in $FIGURE.
pass_of() {
    local dir=$1 kind=$2 order=$3 threads=4 unit=files_per_s
    shift 3
    [ "$kind" = small ] || { threads=1 unit=mb_per_s; }
    drop_page_cache
    reader "read-$kind" read "$dir" "$TMP/manifest" --only "$kind/" --threads $threads --seed "$order" "$@"
    FIGURE=$(jq ".$unit" <<<"$RESULT")
}
hits() { volume_stat hits; }
opens() { hearthctl status --json | jq --arg v "$VOLUME_ID" '.volumes[] | select(.volume == $v) | .hits + .misses'; }
measure() { # Begins counting hits; measured SYSTEM adds what came since
    HITS=$(hits) OPENS=$(opens)
}
declare -A HIT SEEN FIGURES
measured() {
    HIT[$1]=$((${HIT[$1]:-0} + $(hits) - HITS))
    SEEN[$1]=$((${SEEN[$1]:-0} + $(opens) - OPENS))
}
ratio() { # of hits, in per cent with one digit; "-" when nothing was opened
    [ "${SEEN[$1]:-0}" -gt 0 ] && awk -v h="${HIT[$1]}" -v o="${SEEN[$1]}" 'BEGIN { printf "%.1f", 100 * h / o }' || echo -
}

step "Read cold, comparing every byte: the small files"
measure
pass_of "$TARGET/data" small 11 --verify
FIGURES[hearth_cold.small]=$FIGURE
done_step
step "Read cold, comparing every byte: the large file"
pass_of "$TARGET/data" large 12 --verify
FIGURES[hearth_cold.large]=$FIGURE
measured hearth_cold
[ "${HIT[hearth_cold]}" = 0 ] && [ "${SEEN[hearth_cold]}" = $((FILES + 1)) ] ||
    die "the pass was not cold: ${HIT[hearth_cold]} hits of ${SEEN[hearth_cold]} opens"
filled() { [ "$(cache_stat fillsActive)" = 0 ] && [ "$(cache_stat bytes)" -ge $((FILES * SIZE + LARGE)) ]; }
wait_for 60 filled || die "the cache holds $(cache_stat bytes) of $((FILES * SIZE + LARGE)) bytes after the cold pass"
done_step

step "Mount ceph-fuse on the same subvolume; its first read"
mkdir "$TMP/mnt/ceph-fuse"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_DIR/ceph.conf" -n "client.$NODE_ID" -k "$CEPH_DIR/users" \
    --client_mountpoint "$ROOT_PATH" "$TMP/mnt/ceph-fuse"
mounted() { mountpoint -q "$TMP/mnt/ceph-fuse"; }
wait_for 30 mounted || die "ceph-fuse does not mount: $(tail -n 3 "$TMP/log/ceph-fuse.log")"
pass_of "$TMP/mnt/ceph-fuse/data" small 13 --verify
pass_of "$TMP/mnt/ceph-fuse/data" large 14 --verify
done_step
step "Copy the same files beside the cache, on the plain file system"
cp -r "$TARGET/data" "$DISK/local" || die "cannot copy"
# Else its bytes are in the way of Ceph's own, on the same disk, for minutes.
sync -f "$DISK/local"
done_step

declare -A SAMPLES
for round in $(seq $ROUNDS); do
    step "Read warm, round $round of $ROUNDS: Hearth, ceph-fuse, local"
    for system in hearth_warm:"$TARGET/data" ceph_fuse_warm:"$TMP/mnt/ceph-fuse/data" local_warm:"$DISK/local"; do
        name=${system%%:*}
        [ "$name" != hearth_warm ] || measure
        for kind in small large; do
            pass_of "${system#*:}" $kind $((20 + round))
            SAMPLES[$name.$kind]+="$FIGURE "
        done
        [ "$name" != hearth_warm ] || measured hearth_warm
    done
    done_step
done
for key in "${!SAMPLES[@]}"; do
    FIGURES[$key]=$(printf '%s\n' ${SAMPLES[$key]} | sort -g | sed -n "$(((ROUNDS + 1) / 2))p")
done

step "Compare every byte that Hearth gives from its cache"
drop_page_cache
reader verify read "$TARGET/data" "$TMP/manifest" --threads 4 --seed 31 --verify
CHECKED=$(jq .files <<<"$RESULT")
done_step "$CHECKED files, 0 differ"

printf '\n  %-22s %16s %16s %12s\n' "" "small files" "large file" "hit ratio"
row() { # LABEL KEY
    local hit=""
    [ -z "${SEEN[$2]:-}" ] || hit="$(ratio "$2") %"
    printf '  %-22s %9.0f files/s %11.0f MB/s %12s\n' "$1" "${FIGURES[$2.small]}" "${FIGURES[$2.large]}" "$hit"
}
row "Hearth, cold" hearth_cold
row "Hearth, warm" hearth_warm
row "ceph-fuse, warm" ceph_fuse_warm
row "local disk" local_warm
times() { awk -v a="${FIGURES[$1]}" -v b="${FIGURES[$2]}" 'BEGIN { printf "%.1f", a / b }'; }
TIMES=$(times hearth_warm.small ceph_fuse_warm.small)
printf '\n  Warm small files: %s times ceph-fuse, %s of the local disk. (Page cache dropped before each pass.)\n' \
    "$TIMES" "$(awk -v a="${FIGURES[hearth_warm.small]}" -v b="${FIGURES[local_warm.small]}" 'BEGIN { printf "%.0f %%", 100 * a / b }')"

printf '\n  hearthctl status:\n'
hearthctl status | sed 's/^/    /'
echo

jq -n --argjson files $FILES --argjson size $SIZE --argjson large $LARGE --argjson checked "$CHECKED" \
    --argjson times "$TIMES" --arg kernel "$(uname -r)" --arg ceph "$(ceph-osd --version | cut -d' ' -f3)" \
    --argjson cpus "$(nproc)" --argjson status "$(hearthctl status --json)" \
    --arg cold "$(ratio hearth_cold)" --arg warm "$(ratio hearth_warm)" \
    --argjson figures "$(for key in "${!FIGURES[@]}"; do echo "$key ${FIGURES[$key]}"; done |
        jq -Rn '[inputs | split(" ") | {(.[0]): (.[1] | tonumber)}] | add')" '
    def of($kind): {hearth_cold: $figures["hearth_cold." + $kind], hearth_warm: $figures["hearth_warm." + $kind],
        ceph_fuse_warm: $figures["ceph_fuse_warm." + $kind], local_warm: $figures["local_warm." + $kind]};
    {small_files: ({unit: "files/s", files: $files, bytes_each: $size} + of("small")),
     large_file: ({unit: "MB/s", bytes: $large} + of("large")),
     hit_ratio: {hearth_cold: (try ($cold | tonumber / 100) catch null), hearth_warm: (try ($warm | tonumber / 100) catch null)},
     warm_small_files_times_ceph_fuse: $times,
     verified: {files: $checked, different: 0},
     cache: $status.cache | {bytes, objects, originBytes, disk},
     machine: {cpus: $cpus, kernel: $kernel, ceph: $ceph}}' >"$REPORT" || die "cannot write $REPORT"

# Repeated as external-provisioner does. Who holds what Ceph waits for then is kept, for once should do.
AGAIN=
deleting() {
    delete_volume && return
    AGAIN="not at the first try ($(said)): $(realpath --relative-to=. "$BUILD/demo/held.json")"
    for what in mds.a:dump_ops_in_flight mds.a:"session ls" osd.0:dump_ops_in_flight; do
        ceph_cmd tell ${what%%:*} ${what#*:} 2>/dev/null | jq --arg what "$what" '{($what): .}'
    done >"$BUILD/demo/held.json"
    return 1
}
step "Unpublish, unstage, DeleteVolume"
unpublish && unstage || die "$(said)"
end ceph-fuse
pending deleting || die "$(said)"
[ -z "$(mounts_below "$TMP")" ] || die "still mounted: $(mounts_below "$TMP")"
[ "$(ceph_cmd fs subvolume ls hearthfs --group_name csi --format json 2>/dev/null | jq length)" = 0 ] || die "the subvolume is still there"
done_step "$AGAIN"
step "Stop everything, remove everything"
end node
end controller
end hearthd
"$ONE_NODE" rm "$HEARTH_CEPH" || die "Ceph does not stop"
done_step
took=$(now)
printf '\nThe figures are in %s. It took %d s.\n' "$(realpath --relative-to=. "$REPORT")" $((took / 1000000))
exit 0
