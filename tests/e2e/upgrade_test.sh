#!/bin/bash
# helm upgrade on two real kubelets while pods write, read and commit: node plugins, hearthds and controllers are all
# replaced at once, and no pod sees an error or a wrong byte, only a pause. So it is when hearthd and node plugin of a node
# are deleted together. A hearthd that cannot start replaces none.
. "$(dirname "$0")/../integration/lib.sh"
for part in cluster objects kubelets network pods images; do . "$(dirname "$0")/$part.sh"; done
init
needs_resend
helm_needed
[ -e "$BUILD/image/hearth.tar" ] || {
    skip all "there is no image; make image makes one"
    exit 0
}
LONGEST_MS=10000

# ---- a cluster with Hearth in pods
network_up
start_ceph --address "$MACHINE_ADDRESS" --fs cephfs
cluster_up
kubelet_up n1
kubelet_up n2
sidecar_images
example_images
image_on_nodes hearth "$BUILD/image/hearth.tar"
ceph_cmd fs subvolumegroup create cephfs csi >/dev/null 2>&1
ceph_cmd fs subvolume create cephfs set --group_name csi || die "no subvolume"
mkdir -p "$TMP/mnt/ceph"
ceph-fuse -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin --client_fs cephfs "$TMP/mnt/ceph" >"$TMP/log/ceph-fuse.log" 2>&1 || die "ceph-fuse: $(tail -n 2 "$TMP/log/ceph-fuse.log")"
at_exit "umount -l '$TMP/mnt/ceph' 2>/dev/null"
set=$TMP/mnt/ceph$(ceph_cmd fs subvolume getpath cephfs set --group_name csi)
for i in $(seq 60); do head -c 200000 /dev/urandom >"$set/f$i"; done
for i in $(seq 4); do head -c $((4 << 20)) /dev/urandom >"$set/large$i"; done
sync -f "$set"
(cd "$set" && sha256sum -- *) | jq -Rn '[inputs | capture("(?<sum>\\S+)  (?<name>.*)") | {(.name): .sum}] | add' >"$TMP/sums"
umount "$TMP/mnt/ceph"
ceph_cmd fs subvolume snapshot create cephfs set v1 --group_name csi || die "no snapshot"

k create namespace hearth >/dev/null
csi_json '{apiVersion: "v1", kind: "List", items: [
    {apiVersion: "v1", kind: "Secret", metadata: {name: "csi-ceph-secret", namespace: "hearth"}, stringData: $secrets},
    {apiVersion: "v1", kind: "Secret", metadata: {name: "csi-ceph-node-secret", namespace: "hearth"}, stringData: $node_secrets}]}' |
    k create -f - >/dev/null || die "no Secrets"
jq -n --slurpfile clusters "$TMP/config.json" --arg c "$CEPH_FSID" '{csiConfig: $clusters[0], provisioner: {snapshotter: {enabled: false}},
    nodePools: [{name: "", cache: {enabled: true, dir: "/var/lib/hearth", size: "2Gi"}}], metrics: {enabled: true},
    storageClasses: [{name: "files", clusterID: $c, fsName: "cephfs"}, {name: "set", clusterID: $c, fsName: "cephfs", dataset: "set@v1"},
        {name: "images", clusterID: $c, pool: "rbd"}]}' >"$TMP/values.json"
helm() { "$BUILD/helm/helm" --kubeconfig="$PKI/admin.conf" --namespace hearth "$@"; }
helm install hearth "$TOP/charts/hearth" --values "$TMP/values.json" >"$TMP/out" 2>&1 || die "helm install: $(tail -n 3 "$TMP/out")"
pods_of() { # COMPONENT: the name of each that is not ending, whether it is ready, and how often it was restarted
    k get pods -n hearth -l "app.kubernetes.io/component=$1" -o json | jq -r '.items[] | select(.metadata.deletionTimestamp == null) |
        "\(.metadata.name) \(.status.containerStatuses // [] | all(.ready) and length > 0) \(.status.containerStatuses // [] | map(.restartCount) | add // 0)"' | sort
}
ready() { pods_of "$1" | grep -c ' true '; }
for component in controller node hearthd keeper; do settles "each_${component}_is_ready" 180 2 ready $component; done
for node in n1 n2; do settles "the_driver_is_registered_on_$node" 30 $DRIVER field csinode $node '.spec.drivers[*].name'; done
echo "     a cluster of two kubelets with Hearth in $SECONDS s"

# ---- jobs that never stop; each tells its steps and its longest pause
BEGIN='import hashlib, json, os, sqlite3, time
steps, longest = 0, 0
def told(text):
    with open("/dev/termination-log", "w") as f:
        f.write(text)
def run(step):
    global steps, longest
    try:
        while not os.path.exists("/tmp/stop"):
            began = time.monotonic()
            step(steps)
            longest = max(longest, time.monotonic() - began)
            steps += 1
    except BaseException as e:
        told(f"{type(e).__name__} {e} at step {steps}")
        raise
'
END='told(json.dumps({"steps": steps, "longest": round(longest * 1000)}))'
WRITES='fd, log = os.open("/data/file", os.O_RDWR | os.O_CREAT), os.open("/data/log", os.O_RDWR | os.O_CREAT | os.O_APPEND)
def step(n):
    data = os.urandom(65536)
    os.pwrite(fd, data, n % 16 * 65536)
    os.fsync(fd)
    os.write(log, b"%09d\n" % n)
    os.fsync(log)
    assert os.pread(fd, 65536, n % 16 * 65536) == data, "other bytes"
run(step)
with open("/data/log", "rb") as f:
    assert f.read() == b"".join(b"%09d\n" % i for i in range(steps)), "another log"
'
READS='sums = json.loads(os.environ["SUMS"])
names = sorted(sums)
def step(n):
    with open("/data/" + names[n % len(names)], "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        assert hashlib.sha256(f.read()).hexdigest() == sums[names[n % len(names)]], "other bytes"
run(step)
'
COMMITS='db = sqlite3.connect("/data/db", isolation_level=None)
assert db.execute("pragma journal_mode = wal").fetchone() == ("wal",)
db.execute("pragma synchronous = full")
db.execute("create table t (n integer primary key, data blob, sum text)")
def step(n):
    data = os.urandom(5000)
    db.execute("insert into t values (?, ?, ?)", (n, data, hashlib.sha256(data).hexdigest()))
run(step)
db.close()
db = sqlite3.connect("/data/db")
assert db.execute("pragma integrity_check").fetchone() == ("ok",), "not whole"
rows = db.execute("select n, data, sum from t order by n").fetchall()
assert [r[0] for r in rows] == list(range(steps)), "other rows"
assert all(hashlib.sha256(r[1]).hexdigest() == r[2] for r in rows), "other bytes"
'
goes_on() { # NAME CLAIM NODE SCRIPT
    job_add "$1" "$2" "" "$(jq -n --arg node "$3" --arg script "$BEGIN$4$END" --rawfile sums "$TMP/sums" '{nodeSelector: {"kubernetes.io/hostname": $node},
        container: {image: "docker.io/library/python:3.13-slim", args: ["-c", $script], env: [{name: "SUMS", value: $sums}]}}')"
}
claim_add files1 files 1Gi
claim_add files2 files 1Gi
claim_add set set 1Gi '{"accessModes": ["ReadOnlyMany"]}'
claim_add image images 1Gi '{"accessModes": ["ReadWriteOnce"]}'
JOBS_ON="writes reads commits writes-n2"
goes_on writes files1 n1 "$WRITES"
goes_on reads set n1 "$READS"
goes_on commits image n1 "$COMMITS"
goes_on writes-n2 files2 n2 "$WRITES"
for job in $JOBS_ON; do within 90 job_runs $job >/dev/null || die "$job does not run: $(k get events | tail -n 5)"; done
pods_of_jobs() { k get pods -o json | jq -c '[.items[] | [.metadata.uid, .status.phase, .status.containerStatuses[0].restartCount]] | sort'; }
jobs_before=$(pods_of_jobs)
# What is warm is read without hearthd.
evicts() {
    while :; do
        ctl n1 evict --all
        sleep 1
    done
}
evicts >/dev/null 2>&1 &
evicting=$!
at_exit "kill $evicting 2>/dev/null"
sleep 5

# ---- all that has a logLevel changes
for component in controller node hearthd keeper; do pods_of $component | cut -d ' ' -f 1 >"$TMP/$component.before"; done
began=$SECONDS
helm upgrade hearth "$TOP/charts/hearth" --values "$TMP/values.json" --set logLevel=debug >"$TMP/out" 2>&1 || die "helm upgrade: $(tail -n 3 "$TMP/out")"
for of in daemonset/hearthd daemonset/hearth-node deployment/hearth-controller; do
    check "${of#*/}_is_replaced" env "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf" -n hearth rollout status "$of" --timeout=240s
done
echo "     rolled in $((SECONDS - began)) s"
same the_pods_of_the_jobs_are_as_before "$(pods_of_jobs)" "$jobs_before"
for component in controller node hearthd; do
    settles "two_of_${component}_are_ready" 60 2 ready $component
    same "none_of_${component}_is_as_before" "$(pods_of $component | cut -d ' ' -f 1 | comm -12 - "$TMP/$component.before")" ""
    same "none_of_${component}_was_restarted" "$(pods_of $component | awk '$3 != 0')" ""
done
same and_each_keeper_is "$(pods_of keeper | cut -d ' ' -f 1)" "$(<"$TMP/keeper.before")"
for pod in $(pods_of hearthd | cut -d ' ' -f 1); do
    check "the_new_hearthd_has_waited_for_the_old_one" grep -q "another hearthd serves" <(k logs -n hearth "$pod")
done
sleep 5

# ---- hearthd and node plugin of a node together, whose descriptors the keeper has
on_n1() { k get pods -n hearth -l "app.kubernetes.io/component=$1" --field-selector spec.nodeName=n1 -o name; }
for first in node hearthd; do
    other=hearthd
    [ $first = node ] || other=node
    before=$(on_n1 node && on_n1 hearthd)
    k delete -n hearth --wait=false "$(on_n1 $first)" >/dev/null
    k delete -n hearth --wait=false "$(on_n1 $other)" >/dev/null
    replaced() { ! { on_n1 node && on_n1 hearthd; } | grep -qxF "$before" && [ "$(ready node) $(ready hearthd)" = "2 2" ]; }
    within 120 replaced >/dev/null && pass "both_are_deleted_${first}_first" || fail "both_are_deleted_${first}_first" "$(k get pods -n hearth)"
    same "and_the_pods_of_the_jobs_go_on_${first}" "$(pods_of_jobs)" "$jobs_before"
    sleep 5
done

# ---- a hearthd that cannot start
pods_of hearthd | cut -d ' ' -f 1 >"$TMP/hearthd.before"
helm upgrade hearth "$TOP/charts/hearth" --values "$TMP/values.json" --set 'logLevel=debug,hearthd.extraArgs={--fill-threads=1000}' >"$TMP/out" 2>&1 || die "helm upgrade: $(tail -n 3 "$TMP/out")"
fails() { pods_of hearthd | awk '$2 == "false" && $3 > 0' | grep -c .; }
settles a_new_hearthd_that_cannot_start_fails 60 1 fails
sleep 10
same the_old_ones_serve_on "$(pods_of hearthd | grep ' true ' | cut -d ' ' -f 1)" "$(<"$TMP/hearthd.before")"
helm upgrade hearth "$TOP/charts/hearth" --values "$TMP/values.json" --set logLevel=debug >"$TMP/out" 2>&1 || die "helm upgrade: $(tail -n 3 "$TMP/out")"
check and_a_correction_is_taken env "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf" -n hearth rollout status daemonset/hearthd --timeout=120s

# ---- what the jobs have seen
kill $evicting
same the_pods_of_the_jobs_are_still_as_before "$(pods_of_jobs)" "$jobs_before"
for job in $JOBS_ON; do
    k exec "job/$job" -- sh -c ': >/tmp/stop' || fail "$job" "it cannot be told to stop"
done
for job in $JOBS_ON; do
    job_done $job 90 && pass "${job}_saw_no_error" || fail "${job}_saw_no_error" "$SAID"
    echo "     $job: $SAID"
    check "${job}_did_much" test "$(jq .steps <<<"$SAID")" -gt 100
    check "${job}_never_waited_for_long" test "$(jq .longest <<<"$SAID")" -lt $LONGEST_MS
    job_remove $job
done
for claim in files1 files2 set image; do claim_remove $claim; done
helm uninstall hearth --timeout 240s >/dev/null || fail it_uninstalls "it does not"
