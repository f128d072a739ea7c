#!/bin/bash
# Pods that say nothing of warmth, with claims that are bound long since (layer L3): the controller keeps a hint
# beside each claim of a dataset, a policy has pods of such claims prefer nodes by it, and the scheduler does. The
# labels of nodes are written by hand.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
init
SCHEDULER_V=10
cluster_up
node_add n1
node_add n2
node_add n3
node_add n4
hearth_add
k create namespace team >/dev/null
within 30 k get serviceaccount default -n team || die "the namespace gets no ServiceAccount"
L=warm.csi.hearth.dev
A=$(dataset_id train v1)
B=$(dataset_id labels v1)

# ---- hints
hint() { k get datasethint "$1" -n "${2:-default}" --ignore-not-found -o 'jsonpath={.spec.dataset} {.spec.label} {.metadata.ownerReferences[0].name}'; }
hints_start
dataset_claim data train v1
settles a_bound_claim_gets_a_hint 20 "$A $L/$A data" hint data
dataset_claim labels labels v1
dataset_claim theirs train v1 team
settles another_namespace_gets_its_own 20 "$A $L/$A theirs" hint theirs team
settles and_another_dataset_its_own 20 "$B $L/$B labels" hint labels
# A static volume may name its dataset in place of a path.
ATTRIBUTES='{"dataset": "train@v1"}' dataset_claim named none v1
settles also_one_that_names_it 20 "$A $L/$A named" hint named
hints_end
same a_hint_is_one_write "$(hints_writes)" PATCH=4
hints_start
sleep 3
hints_end
same started_again_it_writes_nothing "$(hints_writes)" ""
hints_start
k patch datasethint labels --type=merge -p "{\"spec\": {\"dataset\": \"$A\", \"label\": \"$L/$A\"}}" >/dev/null
settles what_was_changed_is_put_right 20 "$B $L/$B labels" hint labels
k delete datasethint labels >/dev/null
settles what_was_removed_comes_again 20 "$B $L/$B labels" hint labels
k delete pvc labels >/dev/null
settles the_hint_goes_with_the_claim 30 "" hint labels
sleep 6
same and_stays_away "$(hint labels)" ""
dataset_claim again labels v1
settles a_claim_that_comes_gets_one 20 "$B $L/$B again" hint again
apiserver_restart KILL
dataset_claim later labels v2
settles also_after_the_api_server_came_back 60 "$(dataset_id labels v2) $L/$(dataset_id labels v2) later" hint later
hints_end

# ---- what pods get
pod() { # SPEC-JSON [METADATA-JSON]
    jq -n --argjson spec "$1" --argjson meta "${2:-"{}"}" '{apiVersion: "v1", kind: "Pod", metadata: ({name: "p"} + $meta),
        spec: ({containers: [{name: "main", image: "none"}]} + $spec)}' | k create --dry-run=server -o json -f - |
        jq -c '.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution // [] |
            map("\(.weight):\(.preference.matchExpressions[0] | .key[-16:] + .values[0])") | sort_by(split(":") | -(.[0] | tonumber)) | join(" ")' -r
}
with() { jq -cn --argjson spec "$(uses "${@:2}")" --argjson affinity "$1" '$spec + {affinity: $affinity}'; }
terms_of() { for step in 100 75 50 25; do printf '%s' "${step}:$1$step "; done | sed 's/ $//'; }
# An API server finds the kind of hints up to 30 s after its start.
settles a_pod_of_a_dataset_prefers_it_in_four_steps 60 "$(terms_of "$A")" pod "$(uses data)"
same of_two_datasets_both "$(pod "$(uses data again)" | tr ' ' '\n' | sort)" "$( (terms_of "$A"; echo; terms_of "$B") | tr ' ' '\n' | sort)"
same a_pod_without_a_claim_gets_nothing "$(pod '{}')" ""
same nor_one_with_another_claim "$(pod "$(uses other)")" ""
same nor_one_of_another_namespace "$(pod "$(uses theirs)")" ""
same nor_one_that_speaks_of_warmth_itself "$(pod "$(with "{\"nodeAffinity\": {\"preferredDuringSchedulingIgnoredDuringExecution\": [{\"weight\": 7,
    \"preference\": {\"matchExpressions\": [{\"key\": \"$L/ffffffffffffffff\", \"operator\": \"In\", \"values\": [\"1\"]}]}}]}}" data)")" "7:ffffffffffffffff1"
same nor_one_that_requires_it "$(pod "$(with "{\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": {\"nodeSelectorTerms\": [
    {\"matchExpressions\": [{\"key\": \"$L/$A\", \"operator\": \"Exists\"}]}]}}}" data)")" ""
same it_is_added_to_other_preferences "$(pod "$(with '{"podAntiAffinity": {}, "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 7,
    "preference": {"matchExpressions": [{"key": "xxxxxxxxxxxxxxxxx/cc", "operator": "In", "values": ["1"]}]}}]}}' data)")" "$(terms_of "$A") 7:xxxxxxxxxxxxx/cc1"
required='{"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/os", "operator": "Exists"}]}]}}}'
same and_to_what_is_required "$(pod "$(with "$required" data)")" "$(terms_of "$A")"
same which_stays "$(jq -n --argjson spec "$(with "$required" data)" '{apiVersion: "v1", kind: "Pod", metadata: {name: "p"},
    spec: ({containers: [{name: "main", image: "none"}]} + $spec)}' | k create --dry-run=server -o json -f - |
    jq -c '.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key')" '"kubernetes.io/os"'

# ---- where they land
scores() { # JOB NODE...: of its first pod, by the preference
    local node first
    first=$(sed -n "s/.*\"Plugin scored node for pod\".* pod=\"default\/\($1-[a-z0-9]*\)\".*/\1/p" "$TMP/log/kube-scheduler.log" | head -n 1)
    for node in "${@:2}"; do
        sed -n "s/.*\"Plugin scored node for pod\".* pod=\"default\/$first\" plugin=\"NodeAffinity\" node=\"$node\" score=\([0-9]*\).*/\1/p" \
            "$TMP/log/kube-scheduler.log" | tail -n 1
    done | paste -sd ' '
}
warm() { controller label node "$1" --overwrite "$L/$2=$3" >/dev/null || die "no label for $1"; }
warm n1 "$A" 50
warm n2 "$A" 100
warm n3 "$A" 75
placed_add steps 20 data
settles pods_land_where_the_dataset_is_whole 60 "20 n2" placed steps
same by_these_scores "$(scores steps n1 n2 n3 n4)" "100 200 150 0"
placed_end steps
node_full n2
placed_add full 20 data
settles on_the_next_best_when_that_is_full 60 "20 n3" placed full
placed_end full
node_full n1
node_full n3
placed_add cold 20 data
settles and_on_a_cold_one_when_all_are 60 "20 n4" placed cold
placed_end cold
for node in n1 n2 n3; do node_empty $node; done

warm n1 "$B" 100
placed_add both 20 data again
settles of_two_datasets_the_sum_counts 60 "20 n1" placed both
# Of 100 in whole numbers, counted twice.
same by_their_scores "$(scores both n1 n2 n3 n4)" "200 132 100 0"
placed_end both

# ---- without
placed_add none 4 none
k get pods -l job-name=none -o json | jq -e '.items | length == 4' >/dev/null || sleep 2
same a_claim_without_a_hint_changes_nothing "$(k get pods -l job-name=none -o json | jq -c '[.items[].spec.affinity] | unique')" "[null]"
k delete job none --cascade=background >/dev/null
k delete crd datasethints.csi.hearth.dev >/dev/null
made() { pod "$(uses data)" >/dev/null; }
check pods_are_made_though_there_are_no_hints_at_all made
