#!/bin/bash
# From the documents alone: who reads docs/install.md and types what it says has Hearth on two real kubelets and a
# real Ceph, installed by Helm, in its image and with its sidecars, everything in pods; a training job reads a dataset
# cold, the next one is led to where it is warm and fetches nothing. By operations.md the release is upgraded while one pod
# reads and another writes, then hearthd of one by hand; in the end it is uninstalled, and nothing is left.
#   What is not here: a registry (docker's build and push give the nodes the image of `make image`), network policies.
. "$(dirname "$0")/../integration/lib.sh"
for part in cluster objects kubelets network pods images; do . "$(dirname "$0")/$part.sh"; done
. "$TOP/tests/documents/documented.sh"
init
helm_needed
[ -e "$BUILD/image/hearth.tar" ] || {
    skip all "there is no image; make image makes one"
    exit 0
}

# ---- what somebody has who wants Hearth: a Ceph, a cluster with snapshots, and the programs to speak to them
network_up
start_ceph --address "$MACHINE_ADDRESS" --fs cephfs
cluster_up
kubelet_up n1
kubelet_up n2
k apply -f "$KUBE/crds" >/dev/null || die "the definitions of snapshots are refused"
spawn snapshot-controller "$KUBE/snapshot-controller" --kubeconfig="$PKI/admin.conf" --leader-election=false
sidecar_images
example_images
reader_begin
rm "$READER/deploy" && cp -r "$TOP/deploy" "$READER/deploy" # examples are changed
reader_has kubectl "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf"
reader_has helm "$BUILD/helm/helm" --kubeconfig="$PKI/admin.conf"
reader_has ceph "$(type -P ceph)" -c "$CEPH_CONF"
cat >"$TMP/docker" <<END
#!/bin/bash
# What is pushed is what was built.
case \$1 in
build) [ "\$2 \$4" = "-t ." ] && echo "\$3" >>"$TMP/built" ;;
push) grep -qxF "\$2" "$TMP/built" && echo "\$2" >>"$TMP/pushed" ;;
*) false ;;
esac
END
chmod +x "$TMP/docker"
reader_has rados "$(type -P rados)" -c "$CEPH_CONF"
reader_has docker "$TMP/docker"
reader() { (cd "$READER" && PATH=$TMP/reader-bin:$PATH exec "$@"); }
DOCUMENTED_SECONDS=300
echo "     a cluster of two kubelets in $SECONDS s"

# ---- install
on_nodes() {
    local node
    used_all
    for node in n1 n2; do in_node $node find /var/lib/hearth /run/hearth /var/lib/kubelet/plugins_registry -mindepth 1; done
}
NODES_AT_FIRST=$(on_nodes)
documented_block docs/install.md "1. The Ceph users" FSNAME=cephfs POOL=rbd
check keys_are_there test -s "$READER/provisioner.key" -a -s "$READER/node.key"
documented_block docs/install.md "2. The image" REGISTRY=registry.example
pushed() { # the last
    image_named "$(tail -n 1 "$TMP/pushed")" "$BUILD/image/hearth.tar" >"$TMP/hearth.tar" && image_on_nodes hearth "$TMP/hearth.tar"
}
pushed
changed() { # FILE FROM TO: what the document tells to change is there
    grep -qE -- "$2" "$1" || fail "there_is_$2_to_change" "not in $1"
    sed -i -E "s|$2|$3|" "$1"
}
awk '/^```yaml$/ { inside = 1; next } /^```/ { inside = 0 } inside' "$TOP/docs/install.md" >"$READER/values.yaml"
changed "$READER/values.yaml" 'monitors: .*' "monitors: [\"$CEPH_MON\"]"
changed "$READER/values.yaml" 'REGISTRY' registry.example
changed "$READER/values.yaml" 'size: 500Gi' 'size: 2Gi'
# As operations.md has it.
printf '%s\n' 'metrics: { enabled: true, dashboard: { enabled: true } }' >>"$READER/values.yaml"
documented_block docs/install.md "3. Hearth"

# ---- it runs
ready() { # of all but tests' and hooks'
    k get pods -n hearth -l 'app.kubernetes.io/component in (controller, node, hearthd, keeper)' -o json |
        jq -r '[.items[] | select(.metadata.deletionTimestamp == null)] |
            "\(map(select(.status.conditions // [] | any(.type == "Ready" and .status == "True"))) | length)/\(length)"'
}
settles all_pods_are_ready 120 8/8 ready
for node in n1 n2; do settles "the_driver_is_registered_on_$node" 30 $DRIVER field csinode $node '.spec.drivers[*].name'; done
same a_claim_of_its_class_was_tried "$(reader helm status hearth -n hearth -o json | jq -r '[.hooks[] | select(.events | index("test")) | .last_run.phase] | unique | join(" ")')" Succeeded

# ---- a Prometheus, which takes what the chart's PodMonitor does: the pods' ports of its name, and that of hearthd, which
# declares none
targets() {
    k get pods -n hearth -o json | jq '[.items[] | . as $pod | select(.status.podIP and .metadata.deletionTimestamp == null) |
        .spec.containers[] | . as $container | if .name == "hearthd" then {containerPort: 9810} else .ports[]? | select(.name == "metrics") end |
        {targets: ["\($pod.status.podIP):\(.containerPort)"], labels: {job: "hearth/hearth", namespace: "hearth", pod: $pod.metadata.name,
            container: $container.name, node: $pod.spec.nodeName}}]' >"$TMP/targets.new" && mv "$TMP/targets.new" "$TMP/targets.json"
}
prometheus() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "$PROMETHEUS$1"; }
up() { prometheus /api/v1/targets | jq -r '[.data.activeTargets[].health] | "\(map(select(. == "up")) | length)/\(length)"'; }
free_port
PROMETHEUS=http://127.0.0.1:$FREE_PORT
jq -n --arg files "$TOP/charts/hearth/files/alerts.yaml" --arg targets "$TMP/targets.json" '{
    global: {scrape_interval: "1s", evaluation_interval: "1s"}, rule_files: [$files],
    scrape_configs: [{job_name: "hearth", file_sd_configs: [{files: [$targets], refresh_interval: "5s"}]}]}' >"$TMP/prometheus.yml"
targets
spawn prometheus prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/tsdb" \
    --web.listen-address="127.0.0.1:$FREE_PORT" --log.level=warn
settles prometheus_takes_all_six 60 6/6 up
began=$SECONDS

# ---- a dataset that is in Ceph already
ceph_cmd fs subvolume create cephfs imagenet --group_name csi || die "no subvolume"
mkdir -p "$TMP/mnt/ceph"
ceph-fuse -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin --client_fs cephfs "$TMP/mnt/ceph" >"$TMP/log/ceph-fuse.log" 2>&1 || die "ceph-fuse: $(tail -n 2 "$TMP/log/ceph-fuse.log")"
at_exit "umount -l '$TMP/mnt/ceph' 2>/dev/null"
imagenet=$TMP/mnt/ceph$(ceph_cmd fs subvolume getpath cephfs imagenet --group_name csi)
mkdir "$imagenet"/{train,val}
for i in $(seq 200); do head -c 20480 /dev/urandom >"$imagenet/val/$i"; done
for i in $(seq 16); do head -c $((2 << 20)) /dev/urandom >"$imagenet/train/part$i"; done
sync -f "$imagenet"
sums_of() { (out=; eval "$IN_SCRIPTS" && sums "$1"); }
FILES=216 S=$((200 * 20480 + 16 * (2 << 20)))
wanted=$(sums_of "$imagenet")
umount "$TMP/mnt/ceph"
documented_block docs/install.md "4. A dataset" 1
changed "$READER/deploy/examples/dataset-job.yaml" 'storage: 150Gi' "storage: $S"
fetched() { echo $(($(stat_of n1 originBytes) + $(stat_of n2 originBytes))); }
train() { # NAME: what the job of the example says of both its epochs
    same "$1" "$(grep -cE "^epoch [01]: $FILES files, [0-9]+ MB/s$" "$DOCUMENTED_OUT")" 2
    sed 's/^/     /' "$DOCUMENTED_OUT"
    WARM=$(k get pods -l job-name=train -o 'jsonpath={.items[0].spec.nodeName}')
}
before=$(fetched)
documented_block docs/install.md "4. A dataset" 2
train both_epochs_read_all
cold=$(($(fetched) - before))
echo "     $cold bytes of $S fetched on $WARM"
[ $cold -ge $S ] && [ $cold -lt $((S + S / 10)) ] && pass the_first_fetches_it_once || fail the_first_fetches_it_once "$cold bytes of $S"

# ---- it is warm
plugin_on() { k get pods -n hearth -l app.kubernetes.io/component=node --field-selector "spec.nodeName=$1" -o 'jsonpath={.items[0].metadata.name}'; }
warm_labels() { k get node "$1" -o json | jq -r '[.metadata.labels | to_entries[] | select(.key | startswith("warm.csi.hearth.dev/")) | .value] | join(" ")'; }
settles the_node_says_so 35 1/1 field nodecache "$WARM" .status.warm
settles its_label_says_so 35 100 warm_labels "$WARM"
documented_block docs/install.md "5. See it warm" 1 NODE="$WARM" POD="$(plugin_on "$WARM")"
grep -qE '^(dataset-[0-9a-f]{32}|[^ ]+@[^ ]+) +100% ' "$DOCUMENTED_OUT" && pass hearthctl_top_says_so || fail hearthctl_top_says_so "$(<"$DOCUMENTED_OUT")"
settles its_claim_has_a_hint 35 "$(k get node "$WARM" -o json | jq -r '.metadata.labels | keys[] | select(startswith("warm."))')" field datasethint imagenet .spec.label

# ---- what else its reader is told to look at
NOTES=charts/hearth/templates/NOTES.txt TROUBLE=docs/troubleshooting.md
documented $NOTES 'helm test' '{{ .Release.Name }}=hearth' '{{ .Release.Namespace }}=hearth'
documented $NOTES 'kubectl -n {{ .Release.Namespace }} exec' '{{ .Release.Namespace }}=hearth' '{{ with (first .Values.nodePools).name }}-{{ . }}{{ end }}='
documented $TROUBLE 'kubectl -n hearth get pods -o wide'
documented $TROUBLE 'kubectl -n hearth logs HEARTH-NODE-POD' HEARTH-NODE-POD="$(plugin_on "$WARM")"
check a_line_a_call grep -q '"method":"/csi.v1.Node/NodeStageVolume","code":"OK"' "$DOCUMENTED_OUT"
documented $TROUBLE 'kubectl -n hearth exec HEARTH-NODE-POD -- hearthctl doctor' HEARTH-NODE-POD="$(plugin_on "$WARM")"
documented $TROUBLE 'kubectl -n hearth exec HEARTH-NODE-POD -- hearthctl status' HEARTH-NODE-POD="$(plugin_on "$WARM")"

other() { [ "$1" = n1 ] && echo n2 || echo n1; }
again() { # NAME: the job once more, where it is warm
    local was=$WARM
    documented_block docs/install.md "5. See it warm" 2
    within 90 job_ended train >/dev/null || fail "$1" "it does not end"
    k logs job/train >"$DOCUMENTED_OUT" 2>&1
    train "$1_reads_all"
    same "$1_runs_where_it_is_warm" "$WARM" "$was"
    same "$1_fetches_nothing" "$(($(fetched) - before))" 0
}
before=$(fetched)
again the_job_again

# ---- an upgrade while one pod reads and another writes
claim_add work hearth-cephfs 1Gi
job_add reads imagenet "rounds=0; until [ -e /tmp/stop ]; do
    [ \"\$(sums)\" = $wanted ] || { echo other bytes in round \$rounds >\$out; exit 1; }
    rounds=\$((rounds + 1)); done; echo \$rounds rounds >\$out" "$(on "$WARM")"
job_add writes work 'i=0; cd /data; until [ -e /tmp/stop ]; do
    n=$((i % 16)); dd if=/dev/urandom of=file$n bs=64k count=16 conv=fsync 2>/dev/null && sha256sum file$n >sum$n || { echo write $i >$out; exit 1; }
    sha256sum -c sum* >/dev/null 2>&1 || { echo other bytes at write $i >$out; exit 1; }
    i=$((i + 1)); done; echo $i writes >$out' "$(on "$(other "$WARM")")"
for job in reads writes; do within 60 job_runs $job >/dev/null || fail "$job" "it does not run"; done
pods_of() { # COMPONENT: who they are, and of which image
    k get pods -n hearth -l "app.kubernetes.io/component=$1" -o json |
        jq -r '[.items[] | select(.metadata.deletionTimestamp == null) | "\(.metadata.uid) \(.spec.containers[0].image | split(":")[1])"] | sort | .[]'
}
hearthds=$(pods_of hearthd)
plugins=$(pods_of node)
keepers=$(pods_of keeper)
controllers=$(pods_of controller)
{ reader docker build -t registry.example/hearth:0.1.1 . && reader docker push registry.example/hearth:0.1.1; } || die "no second image"
pushed
changed "$READER/values.yaml" 'repository: registry.example/hearth' 'repository: registry.example/hearth, tag: 0.1.1'
documented_block docs/operations.md "Upgrade" 1
versions() { pods_of "$1" | cut -d ' ' -f 2 | sort | uniq -c | xargs; }
settles the_controllers_are_replaced 180 "2 0.1.1" versions controller
settles the_node_plugins_are_replaced 180 "2 0.1.1" versions node
settles the_hearthds_are_replaced 180 "2 0.1.1" versions hearthd
documented_block docs/operations.md "Upgrade" 2
settles and_all_are_ready_again 120 8/8 ready
same no_hearthd_is_as_before "$(comm -12 <(echo "$hearthds") <(pods_of hearthd))" ""
same but_the_keepers_are "$(pods_of keeper)" "$keepers"
same no_node_plugin_is_as_before "$(comm -12 <(echo "$plugins") <(pods_of node))" ""
same no_controller_either "$(comm -12 <(echo "$controllers") <(pods_of controller))" ""
# What is cold, too, is read.
before=$(stat_of "$WARM" originBytes)
ctl "$WARM" evict --all >/dev/null
settles what_is_evicted_is_read_anew 60 yes eval '[ $(($(stat_of "$WARM" originBytes) - before)) -lt $S ] || echo yes'
for job in reads writes; do
    within 10 job_runs $job >/dev/null && pass "the_pod_that_${job}_runs_on" || fail "the_pod_that_${job}_runs_on" "$(k get pods -l job-name=$job)"
    k exec "job/$job" -- sh -c 'touch /tmp/stop' || fail "$job" "it cannot be told to stop"
    job_done $job 60 && pass "the_pod_that_${job}_saw_no_error" || fail "the_pod_that_${job}_saw_no_error" "$SAID"
    echo "     $job: $SAID"
    job_remove $job
done

settles what_was_evicted_is_warm_again 100 100 warm_labels "$WARM"
before=$(fetched)
again after_the_upgrade_the_job

# ---- hearthd, by hand
hearthds=$(pods_of hearthd)
documented_block docs/operations.md "Upgrade" 3 NODE=n1
settles after_n1_all_are_ready 120 8/8 ready
same its_hearthd_alone_is_replaced "$(comm -12 <(echo "$hearthds") <(pods_of hearthd) | wc -l)" 1
settles what_was_warm_is_warm 35 1/1 field nodecache "$WARM" .status.warm
settles its_label_stays 35 100 warm_labels "$WARM"
before=$(fetched)
again with_a_new_hearthd_the_job

documented_block docs/operations.md "Looking after Ceph"

# ---- who leads is gone
settles all_are_there 120 8/8 ready
leads() { # who has the provisioner's lease and is there, which may take a while after a drain
    leader=$(k get lease csi-hearth-dev -n hearth -o 'jsonpath={.spec.holderIdentity}') && k get pod "$leader" -n hearth
}
within 60 leads >/dev/null || fail somebody_leads "$leader"
leads >/dev/null
k delete pod "$leader" -n hearth --grace-period=0 --force >/dev/null 2>&1 || fail "the_leader_is_killed" "$leader"
killed=$leader
claim_add after hearth-cephfs 1Gi
job_add after after 'echo there >/data/f && cat /data/f >$out'
job_done after 120 && same a_claim_is_bound_by_another "$SAID" there || fail a_claim_is_bound_by_another "$SAID"
leads >/dev/null && [ "$leader" != "$killed" ] && pass which_leads_now || fail which_leads_now "$leader"
job_remove after

# ---- why a hearthd ended
ended=$(k get pods -n hearth -l app.kubernetes.io/component=hearthd --field-selector spec.nodeName=n1 -o 'jsonpath={.items[0].metadata.name}')
k exec -n hearth "$ended" -- sh -c 'kill 1' || fail a_hearthd_ends "$ended"
begun_again() { k get pod "$ended" -n hearth -o json | jq -r '.status.containerStatuses[0] | "\(.restartCount) \(.ready)"'; }
settles it_is_started_again 120 "1 true" begun_again
documented $TROUBLE 'kubectl -n hearth logs POD' POD="$ended"
check its_log_tells_why grep -q 'stopping: Terminated' "$DOCUMENTED_OUT"

# ---- warm before the job comes
documented_block docs/install.md "6. Warm before a job comes" 1 FSNAME=cephfs
settles with_a_user_for_it_all_are_ready 120 8/8 ready
documented_block docs/install.md "6. Warm before a job comes" 2
for node in n1 n2; do settles "${node}_has_it_whole" 35 1/1 field nodecache $node .status.warm; done
within 120 job_ended warm-train >/dev/null || fail the_job_is_let_go "$(k get jobs; k get pods)"
same the_job_is_let_go_and_reads_all "$(k logs job/warm-train)" "$S"
settles who_released_it_is_done 30 1 field job release .status.succeeded

# ---- the dashboard, of all this
targets
settles prometheus_takes_all_again 60 6/6 up
"$TOP/tests/e2e/dashboard.py" "$PROMETHEUS" "$TOP/charts/hearth/files/dashboard.json" $((SECONDS - began)) ${PICTURE:+"$PICTURE"} >"$TMP/queries" || fail the_dashboard_is_asked "it cannot be"
same every_query_has_an_answer "$(grep -v ^ok "$TMP/queries")" ""
[ "$(grep -c ^ok "$TMP/queries")" -ge 25 ] && pass and_there_are_many || fail and_there_are_many "only $(grep -c ^ok "$TMP/queries")"
firing() { prometheus /api/v1/alerts | jq -r '[.data.alerts[] | select(.state == "firing") | "\(.labels.alertname) \(.labels.instance // "")"] | join(", ")'; }
settles no_alert_fires 30 "" firing

# ---- the end
for claim in work after; do claim_remove $claim; done
documented_block docs/install.md "Uninstall" 1
settles volumes_are_gone_with_their_claims 60 "" k get pv -o name
documented_block docs/install.md "Uninstall" 2
left() {
    local kind
    for kind in $(k api-resources --verbs=list -o name); do k get "$kind" -A -l app.kubernetes.io/name=hearth -o name --ignore-not-found 2>/dev/null; done
    k get crds,ns -o name | grep -E 'csi.hearth.dev|/hearth$'
    k get pods,csistoragecapacities -A -o name
    k get csinodes -o 'jsonpath={.items[*].spec.drivers[*].name}'
    k get nodes -o json | jq -r '.items[].metadata | .labels, .annotations | keys[] | select(contains("csi.hearth.dev"))'
}
settles nothing_is_left_in_kubernetes 90 "" left
command_of docs/install.md 'rm -rf /var/lib/hearth/*'
for node in n1 n2; do in_node $node bash -c "$COMMAND"; done
settles the_nodes_are_as_they_were 30 "$NODES_AT_FIRST" on_nodes
documented_block docs/install.md "Uninstall" 4
same nothing_is_left_in_ceph "$(for pool in $(ceph_cmd osd pool ls); do timeout 30 rados -c "$CEPH_CONF" -p "$pool" -N hearth ls; done)" ""
same but_the_dataset "$(ceph_cmd fs subvolume ls cephfs --group_name csi --format json | jq -r '.[].name')" imagenet
same and_no_user_of_it "$(ceph_cmd auth ls --format json | jq -r '.auth_dump[].entity | select(startswith("client.hearth"))')" ""
