#!/bin/bash
# hearthctl top, doctor and bench on a real Ceph: what they tell is what happened. top's numbers are those of the reads
# made meanwhile, bench's those of the tree, and doctor finds each fault that is made; completion knows what there is.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
. "$(dirname "$0")/kube_api.sh"
init
reader_begin

truncate -s 256M "$TMP/disk"
mkdir "$TMP/nvme"
mkfs.ext4 -q -E lazy_itable_init=0 "$TMP/disk" && mount -o loop "$TMP/disk" "$TMP/nvme" || die "no file system for the cache"
CACHE=$TMP/nvme/cache
start_ceph
start_hearth

doctor() { hearthctl doctor --json --cluster-config "$TMP/config.json" "$@" >"$TMP/doctor" 2>"$TMP/err"; }
level() { jq -r --arg n "$1" '[.findings[] | select(.name | startswith($n)) | .level] | join(" ")' "$TMP/doctor"; }
found() { jq -r --arg n "$1" '[.findings[] | select(.name | startswith($n)) | .found + " " + .fix] | join(" ")' "$TMP/doctor"; }
finds() { # NAME CHECK LEVEL WORDS
    local said
    said=$(found "$2")
    case "$(level "$2") $said" in
    "$3 "*$4*) pass "$1" ;;
    *) fail "$1" "$(level "$2"): $said" ;;
    esac
}
field() { awk -v row="$1" -v n="$2" '$1 == row { print $n }' "$TMP/top"; } # ROW COLUMN
above() { awk -v a="$2" -v b="$3" 'BEGIN { exit !(a > b) }' && pass "$1" || fail "$1" "$2 is not above $3"; }
pass_of() { jq -r --arg s "$1" --arg o "$2" ".passes[] | select(.state == \$s and .order == \$o) | .$3" "$TMP/bench"; }
drop_all() { drop_page_cache && drop_page_cache; }

# ---- doctor: a node that is well ----
doctor
same a_node_that_is_well_has_nothing_bad "$? $(jq -c '[.findings[] | select(.level == "bad")]' "$TMP/doctor")" "0 []"
finds it_tells_the_version hearthd ok 'version 0.'
finds it_tells_the_cache_is_used 'cache state' ok 'in use'
finds it_tells_the_file_system 'cache file system' ok 'ext4'
finds it_tells_the_watermarks 'cache space' ok 'evicts above 90%, down to 80%'
finds it_tries_fuse FUSE ok 'passthrough: '
finds monitors_answer_with_their_protocol 'Ceph ' ok 'msgr'
case $(found limits) in "hearthd's: open files "*) pass hearthds_own_limits_are_looked_at ;; *) fail hearthds_own_limits_are_looked_at "$(found limits)" ;; esac
may_flush=$([ $((0x$(awk '/^CapEff/ { print $2 }' "/proc/${PID[hearthd]}/status") >> 24 & 1)) = 1 ] && echo true || echo false)
same status_tells_whether_its_threads_are_flushers "$(hearthctl status --json | jq .daemon.ioFlusher)" "$may_flush"
if [ "$may_flush" = true ]; then
    finds flushers_are_told 'memory for images' ok PR_SET_IO_FLUSHER
else
    finds missing_right_is_told 'memory for images' warn CAP_SYS_RESOURCE
    same missing_right_is_in_the_log "$(grep -c PR_SET_IO_FLUSHER "$TMP/log/hearthd.log")" 1
fi
finds libraries_are_named 'Ceph libraries' ok libcephfs
same the_trial_leaves_nothing "$(ls -d /var/tmp/hearthctl-doctor* /dev/shm/hearthctl-doctor* 2>/dev/null)" ""
hearthctl doctor >"$TMP/out"
same without_a_file_of_clusters_none_is_asked "$? $(grep -c '^unknown  Ceph monitors' "$TMP/out")" "0 1"

# ---- doctor: what kubelet has ----
same beside_no_kubernetes_nothing_is_said_of_it "$(found registration)" ""
kube_api_up '{"topology.csi.hearth.dev/tier": "nvme", "topology.csi.hearth.dev/zone": "a"}'
registered() { # KEYS-JSON: kubelet has the plugin with these
    kube_put apis/storage.k8s.io/v1/csinodes/test-node "$(jq -cn --argjson k "$1" '{metadata: {name: "test-node"}, spec: {drivers: [
        {name: "other.example.com", nodeID: "x", topologyKeys: null}, {name: "csi.hearth.dev", nodeID: "test-node", topologyKeys: $k}]}}')"
    hearthctl doctor --json --kubeconfig "$TMP/kubeconfig" --node test-node >"$TMP/doctor" 2>"$TMP/err"
}
says() { # TIER ZONE: its plugin does
    kube_put apis/csi.hearth.dev/v1alpha1/nodecaches/test-node "$(jq -cn --arg t "$1" --arg z "$2" '{metadata: {name: "test-node"}, status: {tier: $t, zone: $z}}')"
}
TOPOLOGY='"topology.csi.hearth.dev/node"' OLD_KEYS='"topology.csi.hearth.dev/tier", "topology.csi.hearth.dev/zone"'
says none b
registered "[$TOPOLOGY]"
finds a_node_that_may_change_is_well registration ok 'csi.hearth.dev, as node test-node'
registered "[$OLD_KEYS]"
finds a_changed_tier_that_collides_is_found registration bad 'topology.csi.hearth.dev/tier is nvme and cannot change, but the plugin reports none'
case $(found registration) in *"/zone is a and cannot change, but the plugin reports b"*) pass and_the_zone ;; *) fail and_the_zone "$(found registration)" ;; esac
says nvme a
registered "[$TOPOLOGY, $OLD_KEYS]"
finds keys_of_an_earlier_release_are_found registration warn 'tier and topology.csi.hearth.dev/zone as topology'
registered 'null'
finds a_plugin_that_is_not_registered_is_found registration bad 'kubelet has not registered the node plugin of test-node'
hearthctl doctor --json --kubeconfig "$TMP/kubeconfig" --node nobody >"$TMP/doctor" 2>"$TMP/err"
finds a_node_that_is_not_there_is_told registration unknown 'csinodes/nobody'
NODE_ID= hearthctl doctor --json --kubeconfig "$TMP/kubeconfig" >"$TMP/doctor" 2>"$TMP/err"
finds which_node_has_to_be_told registration unknown 'give --node'
doctor

# ---- doctor: each fault is found ----
jq -c '[{clusterID: "gone", monitors: ["127.0.0.1:1"]}]' -n >"$TMP/wrong.json"
doctor --cluster-config "$TMP/wrong.json"
same a_wrong_monitor_is_bad $? 1
finds it_is_named 'Ceph gone' bad '127.0.0.1 port 1: Connection refused'
jq --arg m "$CEPH_MON" -nc '[{clusterID: "half", monitors: [$m, "127.0.0.1:1"]}]' >"$TMP/wrong.json"
doctor --cluster-config "$TMP/wrong.json"
same one_monitor_of_two_is_enough $? 0
finds but_the_other_is_told 'Ceph half' warn '1 of 2 monitors answer'
echo '{' >"$TMP/wrong.json"
doctor --cluster-config "$TMP/wrong.json"
same a_file_that_is_none_is_bad "$? $(level 'Ceph monitors')" "1 bad"

dd if=/dev/zero of="$TMP/nvme/other" bs=1M status=none 2>/dev/null
doctor
same a_full_disk_is_bad "$? $(level 'cache space')" "1 bad"
finds with_its_fix 'cache space' bad 'something else fills the disk'
rm "$TMP/nvme/other"
mkdir "$TMP/mnt/ro"
mount --bind "$TMP/nvme" "$TMP/mnt/ro" && mount -o remount,bind,ro "$TMP/mnt/ro" || die "no read-only mount"
doctor --cache-dir "$TMP/mnt/ro"
same a_disk_that_is_read_only_is_bad "$? $(level 'cache file system')" "1 bad"
umount "$TMP/mnt/ro"

SOCKET=$HEARTHD
HEARTHD=$TMP/run/nobody.sock
doctor
same without_hearthd_it_says_so "$? $(level hearthd)" "1 bad"
finds and_looks_at_the_rest 'Ceph ' ok msgr
doctor --cache-dir "$TMP/nvme"
finds also_at_a_cache_that_is_named 'cache space' ok "$TMP/nvme"
# A hearthd of another version.
HEARTHD=$TMP/run/stale.sock
spawn stale python3 -c 'import json, os, socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(sys.argv[1])
s.listen(4)
while True:
    c, _ = s.accept()
    while m := c.recv(1 << 17):
        op = json.loads(m)["op"]
        cache = {"dir": "", "disk": "bypass", "diskErrors": 3, "badObjects": 0, "fillsFailed": 2}
        c.send(json.dumps({"ok": True, "version": "0.0.9", "pid": 1, "cache": cache, "daemon": {"version": "0.0.9",
            "pid": 1, "uptimeSec": 5}, "volumes": [], "datasets": [], "more": False}).encode())' "$HEARTHD"
wait_socket stale "$HEARTHD"
doctor
finds a_stale_version_is_told hearthd warn 'version 0.0.9 is not'
finds a_disk_in_bypass_is_bad 'cache state' bad 'reads go to Ceph'
finds errors_are_told errors 'warn warn' '3 errors of the cache'
end stale
HEARTHD=$SOCKET
# By a descriptor: the way to the program may be closed to others than root.
python3 -c 'import os, pwd, sys
nobody, program = pwd.getpwnam("nobody"), os.open(sys.argv[1], os.O_RDONLY)
os.setgroups([])
os.setgid(nobody.pw_gid)
os.setuid(nobody.pw_uid)
os.execve(program, sys.argv[1:], os.environ)' "$BUILD/hearthctl" doctor --json >"$TMP/doctor" 2>"$TMP/err" </dev/null
same without_root_it_says_what_it_could_not_see "$(level 'native datasets')" unknown

# ---- bench ----
VOLUMES_BEFORE=$(hearthctl status --json | jq '.volumes | length')
published_volume "pvc-ctl-$$"
mkdir -p "$TARGET/tree/sub"
for i in $(seq 60); do head -c $((i * 1500)) /dev/urandom >"$TARGET/tree/sub/f$i"; done
head -c 6000000 /dev/urandom >"$TARGET/tree/large"
: >"$TARGET/tree/empty"
ln -s large "$TARGET/tree/link"
sync -f "$TARGET/tree"
BYTES=$(find "$TARGET/tree" -type f -printf '%s\n' | awk '{ s += $1 } END { print s }')
FILES=$(find "$TARGET/tree" -type f | wc -l)
(cd "$TARGET/tree" && find . ! -type d -printf '%p %y %s %T@\n' | sort) >"$TMP/before"
hearthctl bench "$TARGET/tree" --threads 4 --seconds 20 --json >"$TMP/bench" 2>"$TMP/err"
same bench_reads_the_tree "$? $(jq -r '"\(.files) \(.bytes)"' "$TMP/bench")" "0 $FILES $BYTES"
same each_pass_reads_all_of_it "$(jq -c '[.passes[] | [.files, .bytes, .failed, .complete]] | unique' "$TMP/bench")" "[[$FILES,$BYTES,0,true]]"
same without_evict_nothing_is_cold "$(jq -c '[.passes[] | "\(.state) \(.order) \(.threads)"]' "$TMP/bench")" \
    '["warm sequential 1","warm random 4","memory sequential 1","memory random 4"]'
same what_is_warm_does_not_come_from_ceph "$(jq -c '[.passes[].cephBytes] | unique' "$TMP/bench")" '[0]'
same its_volume_is_told "$(jq -r .volume "$TMP/bench")" "$VOLUME_ID"
same rates_are_bytes_by_seconds "$(jq '[.passes[] | (.bytes / .seconds / .bytesPerSec) | . > 0.99 and . < 1.01] | all' "$TMP/bench")" true
same percentiles_are_in_order "$(jq '[.passes[] | .p50Us <= .p99Us and .p99Us <= .seconds * 1e6] | all' "$TMP/bench")" true
(cd "$TARGET/tree" && find . ! -type d -printf '%p %y %s %T@\n' | sort) >"$TMP/after"
check it_changes_nothing cmp "$TMP/before" "$TMP/after"
hearthctl bench "$TARGET/tree" --seconds 20 --evict --need 1 >"$TMP/out" 2>"$TMP/err"
same with_evict_it_is_measured_cold_too "$? $(grep -c '^cold' "$TMP/out")" "0 2"
grep -q "evicting all of volume $VOLUME_ID" "$TMP/err" && pass evicting_is_announced || fail evicting_is_announced "$(head -n 3 "$TMP/err")"
grep -q 'not cold' "$TMP/out" && fail what_is_cold_is_not_called_warm "$(cat "$TMP/out")" || pass what_is_cold_is_not_called_warm
grep -q 'would be: cold, not storage-bound.*warm, not storage-bound.*memory, not' "$TMP/out" && pass one_line_tells_of_the_job ||
    fail one_line_tells_of_the_job "$(tail -n 3 "$TMP/out")"
hearthctl bench "$TARGET/tree" --seconds 20 --evict --need 900G --json >"$TMP/bench" 2>"$TMP/err"
same cold_comes_from_ceph "$(pass_of cold sequential cephBytes) $(pass_of cold random cephBytes)" "$BYTES $BYTES"
same and_then_no_more "$(pass_of warm random cephBytes) $(pass_of memory random cephBytes)" "0 0"
case $(jq -r .verdict "$TMP/bench") in *'warm, storage-bound'*) pass a_job_that_wants_more_is_bound ;; *) fail a_job_that_wants_more_is_bound "$(jq -r .verdict "$TMP/bench")" ;; esac
hearthctl bench "$TARGET/tree" --files 10 --seconds 20 --json 2>/dev/null >"$TMP/bench"
same files_are_limited "$(jq -c '[.files, .moreFiles]' "$TMP/bench")" '[10,true]'
mkdir "$TMP/plain"
head -c 100000 /dev/urandom >"$TMP/plain/one"
stat -c '%s %x %y %z' "$TMP/plain/one" >"$TMP/before"
hearthctl bench "$TMP/plain" --json 2>/dev/null >"$TMP/bench"
same any_directory_will_do "$? $(jq -c '[.bytes, .volume, .passes[0].cephBytes]' "$TMP/bench")" '0 [100000,"",null]'
check of_which_not_even_a_time_changes cmp "$TMP/before" <(stat -c '%s %x %y %z' "$TMP/plain/one")
hearthctl bench "$TMP/plain" --evict >"$TMP/out" 2>"$TMP/err"
same but_there_is_nothing_to_evict $? 1
hearthctl bench "$TARGET/none" >/dev/null 2>"$TMP/err"
same what_is_not_there_is_told "$? $(grep -c 'No such file' "$TMP/err")" "1 1"

# ---- top ----
hearthctl evict "$VOLUME_ID" >/dev/null
drop_all
top_while() { # COMMAND...: top's one table of what the command did
    hearthctl top --interval 3 >"$TMP/top" 2>"$TMP/err" &
    local top=$!
    sleep 0.7
    "$@" >/dev/null 2>&1
    wait $top
}
read_all() { cat "$TARGET"/tree/sub/* "$TARGET/tree/large"; }
BEFORE=$(volume_stat misses)
top_while read_all
same tops_misses_rise_by_what_was_read_cold "$(field "$VOLUME_ID" 4)" $((BEFORE + FILES - 1))
case $(grep '^from Ceph' "$TMP/top") in *'from Ceph 0/s'* | *'from Ceph -'*) fail cold_reads_come_from_ceph "$(cat "$TMP/top")" ;; *) pass cold_reads_come_from_ceph ;; esac
above opens_are_counted "$(field "$VOLUME_ID" 5)" 5
wait_for 30 settled
drop_all
BEFORE=$(volume_stat hits)
top_while read_all
same tops_hits_rise_by_what_was_read_warm "$(field "$VOLUME_ID" 3)" $((BEFORE + FILES - 1))
grep -q '^from Ceph 0/s' "$TMP/top" && pass warm_reads_do_not || fail warm_reads_do_not "$(grep '^from Ceph' "$TMP/top")"
# In 3 s and a little: BYTES of it.
RATE=$(awk -v id="$VOLUME_ID" '$1 == id { f["KiB"] = 1024; f["MiB"] = 1048576; print $6 * f[$7] }' "$TMP/top")
above its_bytes_come_from_the_cache "${RATE:-0}" $((BYTES / 4))
above and_are_no_more_than_were_read $((BYTES / 2)) "${RATE:-0}"
grep -q "^cache .*disk ok" "$TMP/top" && pass its_head_tells_of_the_disk || fail its_head_tells_of_the_disk "$(head -n 2 "$TMP/top")"
hearthctl top --batch -n 3 -i 0.2 --sort ceph >"$TMP/top"
same it_prints_as_many_tables "$? $(grep -c '^VOLUME' "$TMP/top")" "0 3"
hearthctl top --sort size >/dev/null 2>"$TMP/err"
same a_column_that_is_none_is_wrong_usage $? 2

# On a terminal: drawn, resized, sorted, ended by q; and the terminal is as it was.
cat >"$TMP/terminal.py" <<'PY'
import fcntl, os, pty, select, signal, struct, sys, termios, time
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
# TIOCGPTN; the parent holds the terminal too, to look at it when the program has gone
number = struct.unpack("I", fcntl.ioctl(fd, 0x80045430, bytes(4)))[0]
terminal = os.open(f"/dev/pts/{number}", os.O_RDWR | os.O_NOCTTY)
def size(rows, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
def until(what, seconds=10):
    seen, end = b"", time.time() + seconds
    while what not in seen:
        if not select.select([fd], [], [], max(0, end - time.time()))[0]:
            sys.exit(f"no {what} in {seen[-300:]}")
        seen += os.read(fd, 65536)
    return seen
before = termios.tcgetattr(terminal)
size(30, 150)
until(b"WARM%")
assert termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON) == 0, "lines are read"
size(4, 40)
os.write(fd, b">")
seen = until(b"by warm")
seen += until(b"\033[J")
last = seen.split(b"\033[H")[-1].replace(b"\033[K", b"").replace(b"\033[J", b"").replace(b"\r\r", b"\r")
lines = last.split(b"\r\n")
assert len(lines) <= 4 and all(len(l.decode()) <= 40 for l in lines), lines
os.write(fd, b"q" if os.environ["END"] == "q" else b"\x03")
until(b"\033[?1049l")
status = os.waitpid(pid, 0)[1]
assert status == 0, status
assert termios.tcgetattr(terminal) == before, "it is another"
PY
for END in q interrupt; do
    export END
    check "a_terminal_is_drawn_on_until_$END" timeout 60 python3 "$TMP/terminal.py" "$BUILD/hearthctl" --socket "$HEARTHD" top -i 0.5
done

# ---- a dataset ----
LIVE_ID=$VOLUME_ID LIVE_CONTEXT=$VOLUME_CONTEXT LIVE_TARGET=$TARGET LIVE_STAGE=$STAGE LIVE_CAPABILITY=$CAPABILITY
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' \
    --arg id "$VOLUME_ID" --arg name "snap-ctl-$$")" || die "CreateSnapshot: $(said)"
SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
K8S=csi.storage.k8s.io
csi controller CreateVolume "$(create_request "pvc-ctl-d-$$" 2147483648 "{\"$K8S/pv/name\": \"pv-$$\", \"$K8S/pvc/name\": \"photos\", \"$K8S/pvc/namespace\": \"team\"}" |
    jq -c --arg s "$SNAPSHOT_ID" '.volume_content_source = {snapshot: {snapshot_id: $s}}')" || die "CreateVolume: $(said)"
VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
STAGE=$TMP/mnt/stage-d TARGET=$TMP/mnt/pod/d
CSI_TIMEOUT=110
leave_dataset() {
    unpublish && unstage
    delete_volume || echo "DeleteVolume: $(said)" >&2
    csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")" ||
        echo "DeleteSnapshot: $(said)" >&2
    VOLUME_ID=$LIVE_ID VOLUME_CONTEXT=$LIVE_CONTEXT TARGET=$LIVE_TARGET STAGE=$LIVE_STAGE CAPABILITY=$LIVE_CAPABILITY
}
at_exit leave_dataset
stage && publish || die "the dataset is not mounted: $(said)"
DATASET=$(hearthctl status --json | jq -r '.volumes[].volume | select(startswith("dataset-"))')
TITLE=$(hearthctl status --json | jq -r '.volumes[] | select(.volume | startswith("dataset-")).name')
same a_dataset_is_shown_by_its_name "$TITLE" "csi-vol-pvc-ctl-$$@csi-snap-snap-ctl-$$"
LABEL=$(hearthctl datasets --json | jq -r '.[0].label')
# Last by the claim, which hearthd has served only while it was mounted.
N=0
for word in "$TITLE" "csi/$TITLE" "${TITLE%-*}" "$LABEL" "${LABEL:0:9}" "$VOLUME_ID" "pv-$$" team/photos; do
    N=$((N + 1))
    hearthctl pin "$word" >/dev/null && [ "$(hearthctl status --json | jq -r '.cache.pins[].volume')" = "$DATASET" ] && hearthctl unpin "$word" >/dev/null &&
        pass "it_is_found_by_its_name_$N" || fail "it_is_found_by_its_name_$N" "$word: $(hearthctl status --json | jq -c .cache.pins)"
done
hearthctl pin h1 2>"$TMP/err"
same what_may_be_two_is_refused "$? $(grep -c 'may be one of 2 volumes: ' "$TMP/err")" "1 1"
hearthctl pin nowhere 2>"$TMP/err"
same what_is_unknown_lists_the_others "$? $(grep -c "there are: .*$TITLE" "$TMP/err")" "1 1"
hearthctl bench "$TARGET/tree" --seconds 20 --evict >"$TMP/out" 2>"$TMP/err"
same what_another_volume_holds_is_not_called_cold "$? $(grep -c 'not cold: only 0 B of ' "$TMP/out")" "0 1"
hearthctl evict "$LIVE_ID" >/dev/null
hearthctl bench "$TARGET/tree" --seconds 20 --evict --json >"$TMP/bench" 2>"$TMP/err"
same bench_finds_the_dataset "$? $(jq -c '[.volume, .files, .bytes]' "$TMP/bench")" "0 [\"$DATASET\",$FILES,$BYTES]"
same cold_it_comes_from_ceph "$(pass_of cold sequential cephBytes) $(pass_of cold random cephBytes)" "$BYTES $BYTES"
same warm_it_does_not "$(pass_of warm random cephBytes) $(pass_of memory sequential cephBytes)" "0 0"
hearthctl top -i 0.2 >"$TMP/top"
same top_tells_how_warm_it_is "$(field "$TITLE" 2)" 100%
lines() { grep '^{' "$TMP/log/hearthd.log" | jq -r --arg b "$1" 'select(.msg | startswith($b)) | "\(.level) \(.name) \(.volume) \(.pid > 0) \(.uid)"'; }
hearthctl warm "$TITLE" >/dev/null || fail warming_it_again "failed"
same a_mount_is_in_the_log "$(lines "volume $TITLE is mounted")" "info $TITLE $DATASET true 0"
same a_pin_too "$(lines "volume $TITLE is pinned, asked by pid " | sort | uniq -c | xargs)" "8 info $TITLE $DATASET true 0"
same and_a_warm_job_with_what_it_did "$(lines "warm job " | tail -n 1) $(grep -c "warm job .* of volume $TITLE done: .* held before, " "$TMP/log/hearthd.log")" \
    "info $TITLE $DATASET true 0 1"
same a_failure_is_a_warning "$(hearthctl warm "$TITLE" --path nowhere 2>/dev/null; lines "cannot warm $TITLE: ")" "warning $TITLE $DATASET true 0"
unpublish && unstage || fail the_dataset_is_left "$(said)"
is_told() { hearthctl top -i 0.2 >"$TMP/top" && [ "$(field "$TITLE" 2) $(field "$TITLE" 5)" = "100% -" ]; }
same and_the_unmount "$(lines "volume $TITLE is unmounted")" "info $TITLE $DATASET true 0"
wait_for 20 is_told && pass also_when_nobody_uses_it || fail also_when_nobody_uses_it "$(cat "$TMP/top")"
hearthctl pin "${DATASET:0:20}" >/dev/null && [ "$(hearthctl status | grep -c "^pinned, not open: $TITLE, ")" = 1 ] && hearthctl unpin "${DATASET:0:20}" >/dev/null &&
    pass what_is_pinned_and_not_open_has_its_name || fail what_is_pinned_and_not_open_has_its_name "$(hearthctl status)"
leave_dataset
AT_EXIT=("${AT_EXIT[@]:1}")

# ---- completion ----
complete_line() { # WORDS...: what is offered for the last one
    bash -c '. "$0"; PATH=$1:$PATH; shift; COMP_WORDS=(hearthctl "$@"); COMP_CWORD=$#; _hearthctl; printf "%s\n" "${COMPREPLY[@]}"' \
        "$TOP/deploy/completion/hearthctl" "$BUILD" "$@" 2>/dev/null
}
same completion_knows_the_commands "$(complete_line do)" doctor
same all_of_them "$(complete_line '' | sort | tr '\n' ' ')" "$({ echo help; "$BUILD/hearthctl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'; } | sort | tr '\n' ' ')"
same and_the_flags_of_each "$(complete_line bench --e) $(complete_line top --ba) $(complete_line --soc)" "--evict --batch --socket"
same volumes_are_those_that_are_served "$(complete_line --socket "$HEARTHD" warm "${VOLUME_ID:0:3}")" "$VOLUME_ID"
same also_with_an_equals_sign "$(complete_line --socket = "$HEARTHD" pin "${VOLUME_ID:0:3}")" "$VOLUME_ID"
same columns_to_sort_by "$(complete_line top --sort ce)" ceph
NUMBER=$(hearthctl warm "$VOLUME_ID" --no-wait)
same jobs_are_listed "$(hearthctl jobs | awk -v n="$NUMBER" 'NR > 1 && $1 == n { print (NF > 6) }') $(hearthctl jobs --json | jq "any(.[]; .job == $NUMBER)")" "1 true"
same job_numbers_are_completed "$(complete_line --socket "$HEARTHD" job "$NUMBER" | head -n 1)" "$NUMBER"
same paths_where_paths_go "$(complete_line bench "$TARGET/tr")" "$TARGET/tree"
same without_hearthd_no_volume "$(complete_line --socket "$TMP/run/nobody.sock" warm zz)" ""
# ---- what is installed ----
documented docs/development.md 'make help' -- -s -C "$TOP"
check it_names_the_targets grep -q '^check-unit ' "$DOCUMENTED_OUT"
if documented docs/development.md 'make install' -- -s -C "$TOP" O="$BUILD" DESTDIR="$TMP/root" PREFIX=/usr; then
    same the_completion_is_installed "$(cat "$TMP/root/usr/share/bash-completion/completions/hearthctl" | cksum)" "$(cksum <"$TOP/deploy/completion/hearthctl")"
    check also_those_of_zsh_and_fish test -s "$TMP/root/usr/share/zsh/site-functions/_hearthctl" -a -s "$TMP/root/usr/share/fish/vendor_completions.d/hearthctl.fish"
    check the_plugin_of_kubectl_is_installed test -x "$TMP/root/usr/bin/kubectl-hearth" -a -x "$TMP/root/usr/bin/kubectl_complete-hearth" -a -s "$TMP/root/usr/share/man/man1/kubectl-hearth.1"
    sed 's/\\-/-/g' "$TOP/deploy/man/hearthctl.1" >"$TMP/page"
    check the_page_is_installed test -s "$TMP/root/usr/share/man/man1/hearthctl.1"
    for name in $("$BUILD/hearthctl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
        grep -q "hearthctl $name" "$TOP/deploy/man/hearthctl.1" || fail "the_page_has_$name" "it has not"
        for flag in $("$BUILD/hearthctl" "$name" --help | sed -nE 's/^  (-[a-z], )?(--[a-z-]+).*/\2/p'); do
            case $flag in --help | --socket) continue ;; esac
            grep -q -e "$flag" "$TMP/page" || fail "the_page_has_$name$flag" "it has not"
        done
    done
fi
exit $((FAILED > 0))
