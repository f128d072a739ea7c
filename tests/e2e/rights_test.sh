#!/bin/bash
# What Kubernetes is asked to hold Hearth's parts and users to: resources that are malformed, nodes that speak for
# others, a controller that changes more of a node than its own labels.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
init
cluster_up
node_add n1
node_add n2
hearth_add
A=aaaaaaaaaaaaaaaa

# ---- resources
make() { # KIND JSON: with a name of its own
    jq -n --arg kind "$1" --argjson object "$2" '{apiVersion: "csi.hearth.dev/v1alpha1", kind: $kind, metadata: {name: "x"}} + $object' |
        k create -f - --dry-run=server
}
check a_hint_is_taken make DatasetHint "{\"spec\": {\"dataset\": \"$A\", \"label\": \"warm.csi.hearth.dev/$A\"}}"
refused a_hint_without_a_dataset 'spec.dataset: Required' make DatasetHint "{\"spec\": {\"label\": \"warm.csi.hearth.dev/$A\"}}"
refused a_hint_of_a_malformed_dataset 'spec.dataset' make DatasetHint '{"spec": {"dataset": "AAAAAAAAAAAAAAAA", "label": "warm.csi.hearth.dev/AAAAAAAAAAAAAAAA"}}'
refused a_hint_of_another_label 'label is warm.csi.hearth.dev/' make DatasetHint "{\"spec\": {\"dataset\": \"$A\", \"label\": \"node-role.kubernetes.io/x\"}}"
refused a_hint_of_nothing 'spec: Required' make DatasetHint '{}'

check a_warmup_of_a_claim_is_taken make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "nodes": 2, "rate": "200Mi", "paths": ["train/0", "labels"], "schedule": "30 2 * * mon-fri"}}'
check a_warmup_of_a_dataset_is_taken make CacheWarmup "{\"spec\": {\"dataset\": \"$A\", \"nodeSelector\": {\"gpu\": \"h100\"}, \"schedule\": \"@daily\", \"suspend\": true}}"
refused a_warmup_of_nothing 'exactly one of' make CacheWarmup '{"spec": {}}'
refused a_warmup_of_two_things 'exactly one of' make CacheWarmup "{\"spec\": {\"dataset\": \"$A\", \"persistentVolumeClaim\": \"data\"}}"
check a_warmup_of_a_datasets_name_is_taken make CacheWarmup '{"spec": {"dataset": "team/imagenet@2026-11"}}'
refused a_warmup_of_a_malformed_dataset 'spec.dataset: .*such as imagenet@2026-11' make CacheWarmup '{"spec": {"dataset": "train"}}'
refused a_warmup_on_a_count_and_a_selector 'one of nodes and nodeSelector' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "nodes": 1, "nodeSelector": {"a": "b"}}}'
refused a_warmup_on_no_nodes 'spec.nodes' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "nodes": 0}}'
refused a_rate_that_is_no_quantity 'rate is a quantity' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "rate": "fast"}}'
refused a_rate_of_nothing 'rate is a quantity' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "rate": "0"}}'
refused a_path_that_climbs 'paths have no' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "paths": ["a/../../b"]}}'
refused a_path_from_the_root 'spec.paths: .*write train, not /train' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "paths": ["/a"]}}'
refused a_schedule_of_four_fields 'spec.schedule: .*as in crontab' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "schedule": "0 3 * *"}}'
refused a_field_nobody_knows 'unknown field' make CacheWarmup '{"spec": {"persistentVolumeClaim": "data", "node": 1}}'
k create -f - >/dev/null <<<'{"apiVersion": "csi.hearth.dev/v1alpha1", "kind": "CacheWarmup", "metadata": {"name": "w"}, "spec": {"persistentVolumeClaim": "data"}}'
k patch cacheWarmup w --subresource=status --type=merge -p '{"status": {"phase": "Warming", "warmNodes": "1/2", "percent": 60, "rate": "1.2Gi/s", "eta": "3m"}}' >/dev/null
same what_people_see_of_a_warmup "$(k get cwu | awk '{ NF--; $1 = $1 } 1' | paste -sd '|')" 'NAME TARGET NODES WARM% RATE ETA STATUS|w data 1/2 60 1.2Gi/s 3m Warming'
check a_run_on_a_node_is_taken k patch cwu w --subresource=status --type=merge -p '{"status": {"run": "u.1.0", "dataset": "", "nodes": [{"name": "n1", "state": "Running", "since": "2024-01-01T00:00:00Z", "percent": 5, "bytes": 5, "totalBytes": 100, "bytesPerSecond": 1, "etaSeconds": 95}]}}'
refused a_node_in_a_state_nobody_knows 'status.nodes' k patch cwu w --subresource=status --type=merge -p '{"status": {"nodes": [{"name": "n1", "state": "Cosy"}]}}'
refused a_state_nobody_knows 'status.phase' k patch cwu w --subresource=status --type=merge -p '{"status": {"phase": "Cosy"}}'

# ---- a node plugin
check a_node_writes_its_own nodecache_write n1 ok $A 100 100 bbbbbbbbbbbbbbbb 10 100
same what_people_see_of_it "$(k get nodecache | awk '{ NF--; $1 = $1 } 1' | paste -sd '|')" 'NAME DISK USED FREE WARM DATASETS|n1 ok 110/977Ki 488Ki 1/2 csi/aaaaaaaaaaaaaaaa 100%, csi/bbbbbbbbbbbbbbbb 10%'
check another_writes_its_own nodecache_write n2 ok
mkdir "$TMP/bin"
printf '#!/bin/sh\nexec %q --kubeconfig=%q "$@"\n' "$KUBE/kubectl" "$PKI/admin.conf" >"$TMP/bin/kubectl"
chmod +x "$TMP/bin/kubectl"
same where_each_dataset_is_warm "$(PATH=$TMP/bin:$PATH "$TOP/deploy/kubectl/kubectl-hearth" datasets | awk '{ $1 = $1 } 1' | paste -sd '|')" "NAME SIZE WARM NODES PARTLY FILLING ETA|csi/$A 100 B 1/2 0 0 -|csi/bbbbbbbbbbbbbbbb 100 B 0/2 1 0 -"
refused it_makes_no_other_nodes "written by its own node, and this is n1" plugin n1 create -f - <<<"$(nodecache n3)"
refused it_writes_no_other_nodes "written by its own node, and this is n1" plugin n1 patch nodecache n2 --subresource=status --type=merge -p '{"status": {"warm": "9/9"}}'
refused nor_its_labels "written by its own node" plugin n1 label nodecache n2 a=b
refused nor_by_server_side_apply "written by its own node" plugin n1 apply --server-side --force-conflicts -f - <<<'{"apiVersion": "csi.hearth.dev/v1alpha1", "kind": "NodeCache", "metadata": {"name": "n2", "labels": {"a": "b"}}}'
refused a_token_of_no_node 'does not say which node' plugin nowhere label nodecache n1 a=b
refused too_many_datasets 'must have at most 256 items' plugin n1 patch nodecache n1 --subresource=status --type=merge -p "$(nodecache_status ok $(seq -f '%016.0f 1 1' 257))"
refused more_than_there_is 'cannot be more here' plugin n1 patch nodecache n1 --subresource=status --type=merge -p "$(nodecache_status ok $A 2 1)"
refused less_than_nothing 'greater than or equal to 0' plugin n1 patch nodecache n1 --subresource=status --type=merge -p '{"status": {"cache": {"bytes": -1}}}'
refused a_dataset_of_no_id 'datasets\[0\].id' plugin n1 patch nodecache n1 --subresource=status --type=merge -p "$(nodecache_status ok ../../secret 1 1)"
refused a_time_that_is_none 'heartbeatTime' plugin n1 patch nodecache n1 --subresource=status --type=merge -p '{"status": {"heartbeatTime": "yesterday"}}'
plugin_may() { plugin n1 auth can-i "$@" 2>/dev/null; }
same a_node_plugin_may_nothing_else "$(plugin_may list cachewarmups) $(plugin_may delete nodecaches) $(plugin_may get nodes) $(plugin_may patch nodes) \
$(plugin_may get secrets -n hearth) $(plugin_may create datasethints) $(plugin_may list pods) $(plugin_may create events)" "no no no no no no no no"
same but_see_how_it_is_registered "$(plugin_may get csinodes) $(plugin_may list csinodes)" "yes no"

# ---- the controller
L=warm.csi.hearth.dev
check its_labels_are_taken controller label node n1 $L/$A=50
check and_changed controller patch node n1 --type=merge -p "{\"metadata\": {\"labels\": {\"$L/$A\": \"100\", \"$L/bbbbbbbbbbbbbbbb\": \"25\"}}}"
check and_removed controller label node n1 $L/bbbbbbbbbbbbbbbb-
same and_are_there "$(k get node n1 -o json | jq -c '.metadata.labels | with_entries(select(.key | startswith("warm.")))')" "{\"$L/$A\":\"100\"}"
check its_tier_and_zone_too controller label node n1 --overwrite topology.csi.hearth.dev/tier=none topology.csi.hearth.dev/zone=z
refused but_no_other_topology 'no labels of a node but those' controller label node n1 --overwrite topology.csi.hearth.dev/node=n2
refused another_label 'no labels of a node but those' controller label node n1 node-role.kubernetes.io/gpu=
refused another_label_changed 'no labels of a node but those' controller label node n1 --overwrite kubernetes.io/os=plan9
refused another_label_removed 'no labels of a node but those' controller label node n1 kubernetes.io/os-
refused one_of_each 'no labels of a node but those' controller label node n1 $L/cccccccccccccccc=25 a=b
refused a_label_that_only_looks_so 'no labels of a node but those' controller label node n1 a.$L/$A=25
refused an_annotation 'no annotations' controller annotate node n1 a=b
refused a_taint 'no taints' controller taint node n1 gone=yes:NoExecute
refused a_cordon 'no taints' controller patch node n1 --type=merge -p '{"spec": {"unschedulable": true}}'
refused a_finalizer 'no finalizers' controller patch node n1 --type=merge -p '{"metadata": {"finalizers": ["a.b/c"]}}'
refused an_owner 'no finalizers' controller patch node n1 --type=merge -p '{"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n2", "uid": "1"}]}}'
controller_may() { controller auth can-i "$@" 2>/dev/null; }
same the_controller_may_nothing_else "$(controller_may update nodes) $(controller_may delete nodes) $(controller_may patch nodes --subresource=status) $(controller_may patch nodecaches --subresource=status) \
$(controller_may get secrets) $(controller_may patch cachewarmups) $(controller_may update persistentvolumes) $(controller_may update leases/another -n hearth) $(controller_may update leases/hearth-controller -n default)" \
    "no no no no no no no no no"
same of_pods_it_may_list_them "$(controller_may list pods) $(controller_may get pods) $(controller_may watch pods) $(controller_may delete pods)" "yes no no no"
same but_make_events "$(controller_may create events) $(controller_may patch events) $(controller_may delete events)" "yes no no"
same and_its_lease "$(controller_may create leases -n hearth) $(controller_may update leases/hearth-controller -n hearth)" "yes yes"

# ---- a claim whose volume gets no cache
k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
dataset_claim plain train v1
spawn hearth-controller "$BUILD/hearth-csi" --role=controller --endpoint="unix://$TMP/controller.sock" --dir-root="$TMP" \
    --cluster-config=/none --warmth --kubeconfig="$PKI/controller.conf"
uncached='{"status": {"uncached": [{"volumeHandle": "default-plain", "message": "no exclusive-lock"}, {"volumeHandle": "nobodys"}]}}'
check a_node_names_it plugin n1 patch nodecache n1 --subresource=status --type=merge -p "$uncached"
told() { k get events --field-selector involvedObject.name=plain,reason=NotCached -o 'jsonpath={range .items[*]}{.involvedObject.kind} {.type}{end}'; }
settles its_claim_gets_an_event 60 "PersistentVolumeClaim Warning" told
check which_people_see grep -q 'NotCached.*exclusive-lock' <(k describe pvc plain)
end hearth-controller
k delete pvc plain >/dev/null

# ---- others are not held to it
check others_label_nodes k label node n1 gpu=h100
check and_taint_them k taint node n2 a=b:NoSchedule
check and_remove_what_a_node_said k delete nodecache n1

# ---- people
k create namespace team >/dev/null
k create rolebinding eddy -n team --clusterrole=edit --user=eddy >/dev/null
k create rolebinding vera -n team --clusterrole=view --user=vera >/dev/null
person_may() { k auth can-i --as "$1" "${@:2}" -n team 2>/dev/null; }
settles who_edits_a_namespace_orders_warmups 20 yes person_may eddy create cachewarmups.csi.hearth.dev
same who_views_it_sees_them "$(person_may vera get cachewarmups.csi.hearth.dev) $(person_may vera create cachewarmups.csi.hearth.dev)" "yes no"
same nor_does_either_write_how_far_they_are "$(person_may eddy patch cachewarmups.csi.hearth.dev --subresource=status) $(person_may eddy patch nodecaches.csi.hearth.dev)" "no no"
same nobody_writes_hints "$(person_may eddy create datasethints.csi.hearth.dev)" no
