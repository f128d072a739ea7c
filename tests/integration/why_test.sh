#!/bin/bash
# hearthctl why names the true cause, on a real Ceph with real mounts: a dataset that is cold, a Ceph that is slow, a cache
# that evicts what is read, a job that computes, a mount that nobody serves. Each job is in a cgroup and on a path as kubelet
# makes them for a pod.

# A mount namespace of its own: doctor and why of a test beside this one are not to see the mount that is lost here. Those that
# others have lost when it is made may be in it, too.
[ -n "${OWN_MOUNTS:-}" ] || [ "$(id -u)" != 0 ] || OWN_MOUNTS=1 exec unshare --mount --propagation slave bash "$0"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
reader_begin
reader_has hearthctl "$BUILD/hearthctl" --socket "$HEARTHD"
UID_OF_POD=$(cat /proc/sys/kernel/random/uuid)
PODS=$TMP/mnt/kubelet/pods/$UID_OF_POD/volumes/kubernetes.io~csi
CGROUPS=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
[ -n "$CGROUPS" ] || { skip all "needs a cgroup2 file system"; exit 0; }
CGROUP=$CGROUPS/hearth-why-pod$UID_OF_POD
mkdir "$CGROUP" || die "no cgroup $CGROUP"
at_exit 'rmdir "$CGROUP"'
start_ceph --conf 'mon_allow_pool_size_one = true'
start_controller
start_hearthd --cache-size=96Mi
METRICS=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
start_node --metrics-address="127.0.0.1:$METRICS"
lost_metric() { python3 -c 'import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:$METRICS/metrics" | sed -n 's/^hearth_csi_lost_mounts //p'; }

job() { # MODE DIR [PAUSE]: in the pod's cgroup
    end job
    : >"$TMP/log/job.log"
    spawn job bash -c 'echo $$ >"$0/cgroup.procs" && exec python3 "$@"' "$CGROUP" "$TOP/tests/integration/why_job.py" "$@"
    wait_for 60 grep -q started "$TMP/log/job.log" || die "the job does not start: $(tail -n 2 "$TMP/log/job.log")"
}
why() { # [FLAGS]: -> $CAUSE, and the whole answer in $TMP/why.json
    hearthctl why --pod "$UID_OF_POD" --name train-0 --seconds "${SECONDS_OF_WHY:-4}" --json "$@" >"$TMP/why.json" 2>"$TMP/err"
    CAUSE=$(jq -r .cause "$TMP/why.json")
}
told() { jq -r ".$1" "$TMP/why.json"; }
named() { # CHECK CAUSE
    if [ "$CAUSE" = "$2" ]; then pass "$1"; else fail "$1" "$(jq -c . "$TMP/why.json") $(cat "$TMP/err")"; fi
}
at_least() { # CHECK FIELD N
    if [ "$(jq ".$2 >= $3" "$TMP/why.json")" = true ]; then pass "$1"; else fail "$1" "$2 is $(told "$2"), wanted $3"; fi
}
less() { # CHECK FIELD N
    if [ "$(jq ".$2 < $3" "$TMP/why.json")" = true ]; then pass "$1"; else fail "$1" "$2 is $(told "$2"), wanted less than $3"; fi
}
files() { # DIR FIRST LAST: of 256 KiB, by a plain client, so that this node has nothing of them
    local i
    mkdir -p "$TMP/plain/$1"
    for ((i = $2; i <= $3; i++)); do head -c 262144 /dev/urandom >"$TMP/plain/$1/$(printf %04d "$i")"; done
}
pod_volume() { # NAME
    create_volume "$1" 2147483648 || die "CreateVolume: $(said)"
    STAGE=$TMP/mnt/kubelet/stage-$1 TARGET=$PODS/$1/mount
    mkdir -p "$PODS/$1"
    at_exit remove_volume
    stage || die "NodeStageVolume: $(said)"
    publish || die "NodePublishVolume: $(said)"
}
plain() { # DIR: the volume by ceph-fuse at $TMP/plain
    mkdir -p "$TMP/plain"
    ceph-fuse -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin --client_fs hearthfs -r "$ROOT_PATH" "$TMP/plain" \
        >"$TMP/log/ceph-fuse.log" 2>&1 || die "ceph-fuse: $(tail -n 2 "$TMP/log/ceph-fuse.log")"
}

# ---- wrong words ----
pod_volume pvc-why-$$
hearthctl why 2>"$TMP/err"
same without_a_job "$? $(cat "$TMP/err")" "2 hearthctl: why: name one job: a VOLUME, --pod=UID or --pid=PID; see hearthctl why --help"
hearthctl why --pid 99999999 2>"$TMP/err"
same without_a_process "$? $(cat "$TMP/err")" "1 hearthctl: there is no process 99999999 here, or it is not to be seen: run this as root on its node"
hearthctl why --pod 0 --seconds 0 2>"$TMP/err"
same without_time "$? $(cat "$TMP/err")" "2 hearthctl: --seconds: must be 0.5 to 3600"
hearthctl why --pod none --seconds 0.5 >"$TMP/out"
same a_pod_without_volumes "$(cat "$TMP/out")" "pod none has no volume of Hearth on this node"

same its_pod_is_counted "$(hearthctl status | awk '$1 ~ /^CLAIM/ { for (i = 1; i <= NF; i++) if ($i == "PODS") at = i - 2 } /pvc-why/ { print $(at + 1) }')" 1
lost() { hearthctl status --json | jq -r --arg here "$TMP/" '.lostMounts[] | select(.path | startswith($here)) | "\(.pod) \(.path)"'; }
same no_mount_is_lost "$(lost)" ""

# ---- cold ----
plain
files cold 1 300
files warm 1 20
files large 1 800
umount "$TMP/plain"
drop_page_cache
job read "$TARGET/cold" 0.02
why
named a_cold_volume_is_named cold
at_least and_the_job_waits waitPercent 20
hearthctl why --pod "$UID_OF_POD" --name train-0 --seconds 1 >"$TMP/out"
grep -qE '^train-0 waits for storage [0-9]+% of the time: ' "$TMP/out" && pass it_says_so_in_a_sentence || fail it_says_so_in_a_sentence "$(cat "$TMP/out")"
documented docs/troubleshooting.md 'hearthctl why' VOLUME="$VOLUME_ID"
end job

# ---- cold, mounted natively ----
snapshot() { # NAME
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' --arg id "$VOLUME_ID" --arg name "$1")" &&
        SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
}
LIVE_ID=$VOLUME_ID LIVE_CONTEXT=$VOLUME_CONTEXT LIVE_ROOT=$ROOT_PATH LIVE_STAGE=$STAGE LIVE_TARGET=$TARGET
LIVE_CAPABILITY=$CAPABILITY
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
pending snapshot snap-why-$$ || die "CreateSnapshot: $(said)"
csi controller CreateVolume "$(create_request pvc-why-set-$$ 2147483648 "{}" |
    jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "from the snapshot: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
STAGE=$TMP/mnt/kubelet/stage-set TARGET=$PODS/pvc-set/mount
mkdir -p "$PODS/pvc-set"
pending stage || die "NodeStageVolume: $(said)"
publish || die "NodePublishVolume: $(said)"
hearthctl evict --all >/dev/null
drop_all
job read "$TARGET/cold" 0.02
why
named a_cold_snapshot_is_named cold
same and_it_is_the_one "$(told volume | cut -c 1-8)" dataset-
at_least and_its_job_waits waitPercent 20
end job
check the_snapshot_goes unpublish
check the_snapshot_is_unstaged unstage
check its_volume_is_deleted delete_volume
csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")" || fail delete_snapshot "$(said)"
VOLUME_ID=$LIVE_ID VOLUME_CONTEXT=$LIVE_CONTEXT ROOT_PATH=$LIVE_ROOT STAGE=$LIVE_STAGE TARGET=$LIVE_TARGET CAPABILITY=$LIVE_CAPABILITY

# ---- it computes ----
job compute "$TARGET/warm"
wait_for 60 grep -q computes "$TMP/log/job.log"
why
named a_job_that_computes_is_named cpu
less and_it_hardly_waits waitPercent 10
at_least and_uses_a_cpu cpus 0.4
hearthctl why --pid "${PID[job]}" --seconds 2 --json >"$TMP/why.json"
CAUSE=$(told cause)
named also_by_its_process cpu
end job

# ---- the cache is full ----
drop_page_cache
job read "$TARGET/large" 0.002
again() { [ "$(cache_stat refetchedObjects)" -gt 100 ]; }
wait_for 120 again && pass files_come_again || fail files_come_again "$(cache_stat refetchedObjects)"
why
named a_full_cache_is_named full-cache
end job

# ---- Ceph is slow ----
slow() { ceph_cmd tell osd.0 config set osd_debug_inject_dispatch_delay_probability "$1" >/dev/null 2>&1; }
hearthctl evict --all >/dev/null
ceph_cmd tell osd.0 config set osd_debug_inject_dispatch_delay_duration 0.2 >/dev/null 2>&1 && slow 1 || die "the OSD cannot be slowed down"
at_exit slow 0
drop_page_cache
job read "$TARGET/cold"
why
named a_slow_ceph_is_named slow-ceph
at_least and_how_slow cephReadMs 100
end job
slow 0

# ---- another client writes what is read: warming would not help ----
plain
spawn writer python3 -c 'import os, sys, time
file = os.open(sys.argv[1], os.O_RDWR)
while True:
    os.pwrite(file, os.urandom(4096), 0)
    time.sleep(0.01)' "$TMP/plain/warm/0001"
mkdir -p "$TMP/plain/one" && ln -f "$TMP/plain/warm/0001" "$TMP/plain/one/0001"
sleep 1
job read "$TARGET/one"
why
named what_is_being_written_is_named shared-writes
end job
end writer
umount "$TMP/plain"

# ---- a job that ends, one that is asleep, one that is not to be seen ----
(cd "$TARGET/warm" && exec sleep 1) &
hearthctl why --pid $! --seconds 3 >"$TMP/out"
grep -q 'it ended while it was watched' "$TMP/out" && pass a_process_that_ends_is_told || fail a_process_that_ends_is_told "$(cat "$TMP/out")"
why
named of_a_pod_that_reads_nothing_no_cause_is_told nothing-read

# ---- nobody serves the mount ----
IMAGE_POD=$(cat /proc/sys/kernel/random/uuid)
image() { # of its own pod
    LIVE_ID=$VOLUME_ID LIVE_CONTEXT=$VOLUME_CONTEXT LIVE_CLASS=$CLASS
    CLASS=$(jq -cn --arg c "$CEPH_FSID" '{type: "rbd", clusterID: $c, pool: "rbd"}')
    CAPABILITY='{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
    STAGE=$TMP/mnt/kubelet/stage-image TARGET=$TMP/mnt/kubelet/pods/$IMAGE_POD/volumes/kubernetes.io~csi/pvc-image/mount
    mkdir -p "$(dirname "$TARGET")"
    create_volume pvc-why-image-$$ 67108864 && stage && publish || die "the image is not mounted: $(said)"
    IMAGE_ID=$VOLUME_ID IMAGE_TARGET=$TARGET IMAGE_STAGE=$STAGE
    VOLUME_ID=$LIVE_ID VOLUME_CONTEXT=$LIVE_CONTEXT CLASS=$LIVE_CLASS STAGE=$LIVE_STAGE TARGET=$LIVE_TARGET CAPABILITY=$LIVE_CAPABILITY
}
leave_image() {
    umount -l "$IMAGE_TARGET" "$IMAGE_STAGE" 2>/dev/null
    VOLUME_ID=$IMAGE_ID STAGE=$IMAGE_STAGE TARGET=$IMAGE_TARGET
    unpublish && unstage
    pending delete_volume || echo "DeleteVolume: $(said)" >&2
    VOLUME_ID=$LIVE_ID STAGE=$LIVE_STAGE TARGET=$LIVE_TARGET
}
image
at_exit leave_image
job read "$TARGET/warm"
end hearthd KILL
start_hearthd
wait_for 30 eval '! ls "$TARGET"'
SECONDS_OF_WHY=1 why --heal 'kubectl -n train delete pod train-0' --claim "pvc-why-$$=train/eval"
named a_dead_mount_is_named mount-lost
same and_which_claim_it_was "$(told name)" train/eval
same and_what_heals_it "$(told fix)" "kubectl -n train delete pod train-0"
end job
hearthctl why --pod "$IMAGE_POD" --seconds 0.5 --json >"$TMP/why.json"
same of_an_image_too "$(told cause) $(told name)" "mount-lost pvc-image"
hearthctl why pvc-image --seconds 0.5 --json >"$TMP/why.json"
same also_by_its_persistent_volume "$(told cause)" mount-lost
hearthctl why train/eval 2>"$TMP/err"
same a_claim_that_may_be_lost_is_told "$? $(grep -cE '[0-9]+ mounts? of this node (is|are) not served since hearthd was restarted' "$TMP/err")" "1 1"
same status_names_it "$(lost | sort)" "$(printf '%s\n' "$UID_OF_POD $TARGET" "$IMAGE_POD $IMAGE_TARGET" | sort)"
check a_metric_counts_it [ "$(lost_metric)" -ge 1 ]
hearthctl doctor >"$TMP/out"
grep -q "[0-9] not served any more, because hearthd was restarted: .*$TARGET" <(tr -s ' \n' ' ' <"$TMP/out") && pass and_doctor || fail and_doctor "$(grep -A3 mounts "$TMP/out")"
