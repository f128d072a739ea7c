#!/bin/bash
# CacheWarmups with a real API server, hearthd and Ceph: the controller chooses nodes, n2 - this machine - warms,
# the status tells how far it is. n1 and n3 have no cache.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/sidecars.sh"
. "$(dirname "$0")/hearth.sh"
. "$TOP/tests/documents/documented.sh"
init
reader_begin
start_ceph
own_user
# Nodes warm with a user that may read the datasets, as install.md has one made.
mkdir -m 700 "$TMP/warm"
printf '%s' "$NODE_ID" >"$TMP/warm/userID"
printf '%s' "$NODE_KEY" >"$TMP/warm/userKey"
cluster_up
driver_add
for node in n1 n2 n3; do node_add $node; done
hearth_add
k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
hearth_up() { start_controller --secret-dir="$TMP/own" --warmth --kubeconfig="$PKI/controller.conf"; }
node_up() { # [FLAGS]
    kubeconfig_for hearth hearth-node "$TMP/node.conf" n2 || die "no token for the node"
    start_node --node-id=n2 --warmth --kubeconfig="$TMP/node.conf" "$@"
}
hearth_up
start_hearthd
node_up --secret-dir="$TMP/warm"

# ---- a dataset of 48 MiB, half of it in b/
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
create_volume "pvc-source-$$" 1073741824 || die "CreateVolume: $(said)"
SOURCE_ID=$VOLUME_ID
at_exit 'VOLUME_ID=$SOURCE_ID delete_volume'
stage && publish || die "$(said)"
mkdir "$TARGET/a" "$TARGET/b"
for i in $(seq 12); do
    head -c $((2 << 20)) /dev/urandom >"$TARGET/a/$i"
    head -c $((2 << 20)) /dev/urandom >"$TARGET/b/$i"
done
sync -f "$TARGET"
unpublish && unstage || die "$(said)"
SUBVOLUME=csi-vol-pvc-source-$$
ceph_cmd fs subvolume snapshot create hearthfs "$SUBVOLUME" v1 --group_name csi
at_exit 'ceph_cmd fs subvolume snapshot rm hearthfs $SUBVOLUME v1 --group_name csi'
S=$((48 << 20))
KEY=$(printf '%s\0%s\0/volumes/csi/%s/.snap/v1\0' "$CEPH_FSID" hearthfs "$SUBVOLUME" | sha256sum | head -c 16)
ATTRIBUTES="{\"clusterID\": \"$CEPH_FSID\", \"fsName\": \"hearthfs\", \"dataset\": \"$SUBVOLUME@v1\"}" dataset_claim data none none

warmup() { # NAME SPEC
    k create -f - >/dev/null <<<"{\"apiVersion\": \"csi.hearth.dev/v1alpha1\", \"kind\": \"CacheWarmup\", \"metadata\": {\"name\": \"$1\"}, \"spec\": $2}"
}
phase() { field cachewarmup "$1" .status.phase; }
said_of() { k get cachewarmup "$1" -o 'jsonpath={.status.conditions[?(@.type=="Complete")].message}'; }
says() { said_of "$1" | grep -o "$2"; }
states() { k get cachewarmup "$1" -o json | jq -r '[.status.nodes[] | .name + " " + .state] | join(", ")'; }
cached() { hearthctl datasets --json | jq '[.[].bytesCached] | add // 0'; }
chill() { hearthctl evict --all >/dev/null; }
orders() { k get nodecache n2 -o 'jsonpath={.spec.warmups}' | grep -v '^\[\]$'; }
settles the_node_reports_its_cache 20 ok field nodecache n2 .status.cache.disk

# ---- once
warmup one '{"persistentVolumeClaim": "data", "nodes": 1}'
settles a_claim_is_warmed 40 Warm phase one
same all_of_it "$(cached)" $S
same on_the_node_with_a_cache "$(states one)" "n2 Succeeded"
same people_see_so "$(k get cachewarmup one | awk '{ NF--; $1 = $1 } 1' | paste -sd '|')" 'NAME TARGET NODES WARM% RATE ETA STATUS|one data 1/1 100 Warm'
settles the_node_is_done_with_it 20 "" orders
settles and_says_no_more_of_it 40 '[]' field nodecache n2 .status.warmups
same it_is_closed "$(hearthctl status --json | jq '.volumes | length')" 0
same it_names_the_dataset "$(field cwu one .status.dataset)" "$KEY"
events_of() { k get events --field-selector "involvedObject.kind=CacheWarmup,involvedObject.name=$1" -o 'jsonpath={range .items[*]}{.reason}{"\n"}{end}' | sort -u | paste -sd ' '; }
settles it_has_its_events 20 "Completed NodeWarm Started" events_of one

# ---- as documents have it
TROUBLE=docs/troubleshooting.md
reader_has kubectl "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf"
ATTRIBUTES="{\"clusterID\": \"$CEPH_FSID\", \"fsName\": \"hearthfs\", \"dataset\": \"$SUBVOLUME@v1\"}" dataset_claim imagenet none none
k apply -f "$TOP/deploy/examples/warm-before-job.yaml" >/dev/null || die "the example is refused"
documented docs/warmup.md 'kubectl wait'
documented docs/install.md 'kubectl get cachewarmup'
check shows_it grep -q '^imagenet  *imagenet .*Warm' "$DOCUMENTED_OUT"
documented $TROUBLE 'kubectl describe cachewarmup' NAME=imagenet
check with_the_reason_of_its_condition grep -q '1 of the 2 nodes asked for' "$DOCUMENTED_OUT"
EXAMPLE=deploy/examples/warm-before-job.yaml
documented $EXAMPLE 'kubectl wait'
same its_job_waits "$(field job warm-train .spec.suspend)" true
documented $EXAMPLE 'kubectl patch job'
settles and_is_let_go 30 1 field job warm-train .status.active
k delete -f "$TOP/deploy/examples/warm-before-job.yaml" --wait=false >/dev/null
k delete pods --all --force --grace-period=0 >/dev/null 2>&1
documented $TROUBLE 'kubectl get nodecache -o yaml'
check has_the_datasets_digits grep -q "$KEY" "$DOCUMENTED_OUT"
documented $TROUBLE 'kubectl get nodecache'
documented $TROUBLE 'kubectl get datasethints'
check shows_the_claims grep -q '^imagenet ' "$DOCUMENTED_OUT"

chill
same it_is_cold "$(cached)" 0
warmup named "{\"dataset\": \"$KEY\", \"paths\": [\"b/\", \"a/3\"], \"nodes\": 2}"
settles a_dataset_is_warmed_by_its_name 40 Warm phase named
same what_was_asked_for_of_it "$(cached)" $((26 << 20))
case $(said_of named) in *"1 of the 2 nodes asked for"*"no cache that reports: n1, n3"*) pass it_says_which_nodes_could_not ;; *) fail it_says_which_nodes_could_not "$(said_of named)" ;; esac
warmup again "{\"dataset\": \"$SUBVOLUME@v1\", \"nodeSelector\": {\"kubernetes.io/hostname\": \"n2\"}}"
settles a_node_is_chosen_by_its_labels 40 Warm phase again
same the_rest_too "$(cached)" $S

# ---- what cannot be done says why
warmup lost '{"persistentVolumeClaim": "nowhere"}'
settles a_claim_that_is_not_there 20 "there is no claim nowhere in namespace default" said_of lost
same it_waits_for_it "$(phase lost)" Pending
k create -f - >/dev/null <<<'{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "nowhere"}, "spec": {"storageClassName": "", "accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}}'
settles one_that_is_not_bound 30 "claim nowhere has no volume yet" said_of lost
warmup nobody '{"dataset": "0123456789abcdef"}'
settles a_dataset_that_nobody_shows 20 "no claim of namespace default shows dataset 0123456789abcdef; make one, or have the annotation csi.hearth.dev/warmup-namespaces of a StorageClass that shows it name the namespace" said_of nobody
warmup nodeless "{\"dataset\": \"$KEY\", \"nodeSelector\": {\"gpu\": \"h100\"}}"
settles no_node_of_that_label 20 "no node has the labels of spec.nodeSelector" said_of nodeless
warmup pathless "{\"dataset\": \"$KEY\", \"paths\": [\"c\"]}"
settles a_path_that_is_not_there 40 Failed phase pathless
k get cwu pathless -o 'jsonpath={.status.conditions[?(@.type=="Failed")].message}' | grep -q "n2 Failed.*path 'c'" && pass it_names_node_and_path ||
    fail it_names_node_and_path "$(k get cwu pathless -o yaml)"
warmup unreal "{\"dataset\": \"$KEY\", \"schedule\": \"61 * * * *\"}"
settles a_minute_that_is_none 20 Failed phase unreal
k delete cwu --all >/dev/null

# ---- a claim that is not bound yet, of a class with a dataset
class_add models "{\"dataset\": \"$SUBVOLUME@v1\"}"
claim_add early models $S '{"accessModes": ["ReadOnlyMany"]}'
chill
warmup early '{"persistentVolumeClaim": "early", "nodes": 1}'
settles a_claim_is_warmed_before_its_job 40 Warm phase early
same with_all_of_its_class "$(cached)" $S

# ---- slow ones
slow() { # NAME: takes a minute
    chill
    warmup "$1" "{\"persistentVolumeClaim\": \"data\", \"nodes\": 1, \"rate\": \"${2:-800Ki}\"}"
    settles "${1}_is_under_way" 30 Warming phase "$1"
    within 30 running_on_the_node "$1" || fail "${1}_runs_on_the_node" "$(states "$1")"
}
running_on_the_node() { [ "$(states "$1")" = "n2 Running" ] && [ "$(field cwu "$1" .status.percent)" -gt 0 ]; }
nothing_open() { [ "$(hearthctl status --json | jq '.volumes | length')" = 0 ]; }
slow deleted
case $(field cwu deleted .status.rate) in [0-9]*i/s) pass its_rate_is_told ;; *) fail its_rate_is_told "$(k get cwu deleted)" ;; esac
k delete cwu deleted >/dev/null
SECONDS=0
within 15 nothing_open && pass deleting_it_cancels || fail deleting_it_cancels "$(hearthctl status)"
echo "     cancelled within $SECONDS s"
[ "$(cached)" -lt $S ] && pass before_its_end || fail before_its_end "$(cached)"

slow suspended
k patch cwu suspended --type=merge -p '{"spec": {"suspend": true}}' >/dev/null
settles suspending_cancels 15 Suspended phase suspended
same as_its_node_says "$(states suspended)" "n2 Cancelled"
within 15 nothing_open && pass and_ends_it || fail and_ends_it "$(hearthctl status)"
k patch cwu suspended --type=merge -p '{"spec": {"suspend": false, "rate": null}}' >/dev/null
settles and_it_goes_on_when_it_may 40 Warm phase suspended

slow changed
k patch cwu changed --type=merge -p '{"spec": {"rate": "1Gi"}}' >/dev/null
settles another_rate_takes_its_place 40 Warm phase changed
k delete cwu --all >/dev/null

# ---- restarts in the midst of it
slow hit 1200Ki
end hearthd KILL
sleep 2
start_hearthd
settles hearthd_killed 120 Warm phase hit
slow left 1200Ki
end controller KILL
sleep 1
hearth_up
settles the_controller_killed 120 Warm phase left
slow gone 1200Ki
end node KILL
node_up --secret-dir="$TMP/warm"
settles the_plugin_killed 120 Warm phase gone
slow deaf 1200Ki
apiserver_restart KILL
settles the_API_server_killed 120 Warm phase deaf
same all_of_it_is_there "$(cached)" $S
k delete cwu --all >/dev/null

# ---- by the clock
chill
warmup clock "{\"dataset\": \"$KEY\", \"schedule\": \"* * * * *\", \"nodes\": 1}"
settles it_waits_for_its_time 20 Pending phase clock
case $(said_of clock) in "next at 2"*:00Z) pass and_tells_it ;; *) fail and_tells_it "$(said_of clock)" ;; esac
settles then_it_warms 90 Warm phase clock
same all_that_there_is "$(cached)" $S
chill
again() { [ "$(cached)" = $S ]; }
within 90 again && pass and_at_the_next_time_again || fail and_at_the_next_time_again "$(k get cwu clock -o yaml)"
k delete cwu clock >/dev/null

# ---- a node without a Ceph user
end node
node_up
warmup userless "{\"dataset\": \"$KEY\", \"nodes\": 1}"
settles a_node_without_a_user 60 Failed phase userless
k get cwu userless -o yaml | grep -q 'secret-dir' && pass it_says_what_is_missing || fail it_says_what_is_missing "$(k get cwu userless -o yaml)"
