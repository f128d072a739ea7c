#!/bin/bash
# kubectl hearth: which pod it executes hearthctl in, with which arguments, and what it says when it cannot. kubectl is a
# script that answers from files (fake_kubectl); tests/e2e/why_test.sh runs it on a real cluster. The shell is sh, and dash.
. "$(dirname "$0")/lib.sh"
init
export FAKE=$TMP/fake
mkdir -p "$FAKE" "$TMP/bin"
cp "$(dirname "$0")/fake_kubectl" "$TMP/bin/kubectl"
cp "$TOP"/deploy/kubectl/* "$TMP/bin/"
PATH=$TMP/bin:$PATH
printf '%s\n' 'hearth hearth-node-a n1 Running' 'hearth hearth-node-b n2 Running' >"$FAKE/plugins"
printf '%s\n' 'train train-0 uid-0 Running n1 imagenet scratch' 'train eval-0 uid-1 Running n2 imagenet' \
    'train late uid-2 Pending none imagenet' 'train done uid-3 Succeeded n1 imagenet' 'other x uid-4 Running n2 weights' >"$FAKE/pods"
printf '%s\n' 'train imagenet pvc-1' 'train scratch pvc-2' 'other weights pvc-3' 'train unused pvc-4' >"$FAKE/claims"
printf '%s\n' n1 n2 n3 >"$FAKE/nodes"

hearth() { # ARGS... -> $CODE $SAID, and what was executed in $RAN
    : >"$FAKE/executed"
    SAID=$("${SHELL_OF_IT:-sh}" "$TMP/bin/kubectl-hearth" "$@" 2>&1 </dev/null)
    CODE=$?
    RAN=$(<"$FAKE/executed")
}
ran() { # CHECK WANTED ARGS...
    local name=$1 wanted=$2
    shift 2
    hearth "$@"
    same "$name" "$CODE $RAN" "0 $wanted"
}
says() { # CHECK CODE PATTERN ARGS...
    local name=$1 code=$2 pattern=$3
    shift 3
    hearth "$@"
    if [ "$CODE" = "$code" ] && [ -z "$RAN" ] && grep -qE -e "$pattern" <<<"$SAID"; then pass "$name"; else fail "$name" "$CODE: $SAID; ran: $RAN"; fi
}

# ---- what is executed where
A='hearth/hearth-node-a|hearthctl' B='hearth/hearth-node-b|hearthctl'
# What hearthctl says is to be typed here.
ON_A='--as|kubectl hearth node n1|' ON_B='--as|kubectl hearth node n2|'
# Only here the names of pods are known, for mounts that are lost.
HEAL_A='--heal|uid-0=kubectl -n train delete pod train-0|--heal|uid-3=kubectl -n train delete pod done|'
HEAL_B='--heal|uid-1=kubectl -n train delete pod eval-0|--heal|uid-4=kubectl -n other delete pod x|'
for SHELL_OF_IT in sh $(type -P dash >/dev/null && echo dash); do
    ran "status_of_a_node_$SHELL_OF_IT" "$B|status|${ON_B}$HEAL_B" status n2
    ran "why_a_pod_waits_$SHELL_OF_IT" "$A|why|--as|kubectl hearth|--pod|uid-0|--name|train-0|--heal|kubectl -n train delete pod train-0|--seconds|30|--claim|pvc-1=train/imagenet|--claim|pvc-2=train/scratch|" why train-0 --seconds 30
done
ran in_another_namespace "$B|why|--as|kubectl hearth|--pod|uid-4|--name|x|--heal|kubectl -n other delete pod x|--claim|pvc-3=other/weights|" -n other why x
ran or_before_the_name "$B|why|--as|kubectl hearth|--pod|uid-4|--name|x|--heal|kubectl -n other delete pod x|--json|--claim|pvc-3=other/weights|" why other/x --json
ran top_of_the_node_of_a_pod "$A|top|${ON_A}--sort|ceph|" top --pod train-0 --sort ceph
ran warm_where_the_claim_is_used "$A|warm|${ON_A}train/scratch|--rate|100M|" warm scratch --rate 100M
ran a_claim_of_another_namespace "$B|pin|${ON_B}other/weights|" pin other/weights
ran warm_on_a_node_that_is_named "$B|warm|${ON_B}train/unused|" warm unused --node n2
ran jobs_of_a_node "$A|jobs|${ON_A}" jobs n1
ran any_command "$A|verify|${ON_A}a b'c|--help|" node n1 verify "a b'c" --help
hearth warm imagenet --all
same warm_on_all_that_use_it "$CODE $(tr '\n' ' ' <<<"$RAN")" "0 $A|warm|${ON_A}train/imagenet| $B|warm|${ON_B}train/imagenet| "
hearth doctor --all
same doctor_of_all_nodes "$CODE $(tr '\n' ' ' <<<"$RAN")$(tr '\n' ' ' <<<"$SAID")" "0 $A|doctor|${ON_A}$HEAL_A $B|doctor|${ON_B}$HEAL_B == n1 == n2 "
echo 1 >"$FAKE/code"
hearth doctor --all
same one_that_is_bad_is_told "$CODE $(grep -c . "$FAKE/executed")" "1 2"
rm "$FAKE/code"
says without_nodecaches 1 'cannot read NodeCaches .*warmth.enabled' datasets
: >"$FAKE/nodecaches"
hearth datasets
same without_datasets "$CODE $SAID" "0 No node reports a dataset yet."
NOW=$(date -u +%Y-%m-%dT%H:%M:%SZ)
printf '%s\n' "node n1 $NOW" 'has aaaaaaaaaaaaaaaa n1 171798691840 171798691840 imagenet@2026-11' 'has bbbbbbbbbbbbbbbb n1 10 1000 team/laion@v3' \
    "node n2 $NOW" 'has aaaaaaaaaaaaaaaa n2 97000000000 171798691840 imagenet@2026-11' 'has cccccccccccccccc n2 0 0 <no value>' "node n3 $NOW" >"$FAKE/nodecaches"
hearth datasets
same datasets_of_the_cluster "$SAID" "NAME                    SIZE  WARM NODES  PARTLY  FILLING  ETA
imagenet@2026-11   160.0 GiB         1/3       1        ?  -
team/laion@v3         1000 B         0/3       1        ?  -
cccccccccccccccc         0 B         0/3       0        ?  -"
printf '%s\n' 'fills aaaaaaaaaaaaaaaa n2 155' 'fills aaaaaaaaaaaaaaaa n3 4000' >"$FAKE/warmups"
hearth datasets
same and_what_is_being_filled "$(sed -n 2p <<<"$SAID")" "imagenet@2026-11   160.0 GiB         1/3       1        2  1h6m"
printf '%s\n' "node n4 $(date -u -d '92 seconds ago' +%Y-%m-%dT%H:%M:%SZ)" 'has aaaaaaaaaaaaaaaa n4 171798691840 171798691840 imagenet@2026-11' \
    "node n5 $(date -u -d '85 seconds ago' +%Y-%m-%dT%H:%M:%SZ)" "has dddddddddddddddd n5 1 1 a name"$'\e[2J'" of words@v1" >>"$FAKE/nodecaches"
hearth datasets
same a_node_that_is_silent_does_not_count "$(head -n 3 <<<"$SAID" | tr -s ' ')" "1 of 5 nodes did not report for 90 s: what they have is not counted.
NAME SIZE WARM NODES PARTLY FILLING ETA
imagenet@2026-11 160.0 GiB 1/5 1 2 1h6m"
same a_name_may_have_blanks_and_commands_no_terminal "$(tail -n 1 <<<"$SAID" | tr -s ' ')" "a name[2J of words@v1 1 B 1/5 0 0 -"
ran datasets_of_a_node "$A|datasets|${ON_A}" datasets n1

# ---- what is hearthctl's alone, other forms, another cluster
ran options_behind_a_node_are_hearthctls "$A|evict|${ON_A}--all|--node|x|-n|3|" node n1 evict --all --node x -n 3
ran also_behind_a_dash "$A|why|--pod|uid-0|" node n1 -- why --pod uid-0
for form in -nother -n=other --namespace=other; do
    ran "a_namespace_may_be_$form" "$B|why|--as|kubectl hearth|--pod|uid-4|--name|x|--heal|kubectl -n other delete pod x|--claim|pvc-3=other/weights|" "$form" why x
done
ran kinds_may_be_told "$A|warm|${ON_A}train/scratch|" warm pvc/scratch
ran of_a_node_too "$A|jobs|${ON_A}" jobs node/n1
ran and_of_a_pod "$B|why|--as|kubectl hearth|--pod|uid-1|--name|eval-0|--heal|kubectl -n train delete pod eval-0|--claim|pvc-1=train/imagenet|" why pod/eval-0
ran why_also_by_the_flag "$B|why|--as|kubectl hearth|--pod|uid-1|--name|eval-0|--heal|kubectl -n train delete pod eval-0|--claim|pvc-1=train/imagenet|" why --pod eval-0
ran what_is_to_be_typed_names_the_cluster "$B|why|--as|kubectl hearth --context=prod '--user=a b'|--pod|uid-4|--name|x|--heal|kubectl --context=prod '--user=a b' -n other delete pod x|--claim|pvc-3=other/weights|" --context=prod --user 'a b' why other/x
same also_for_lost_mounts "$(hearth --context prod status n2; grep -c 'heal|uid-4=kubectl --context=prod -n other delete pod x|' <<<"$RAN")" 1
export NO_COLOR=1
ran colours_are_left_out "$A|jobs|--no-color|${ON_A}" jobs n1
ran but_not_from_help "$A|help|why|" node n1 help why
unset NO_COLOR
printf '%s\n' 'hearth hearth-node-a n1 Failed' 'hearth hearth-node-b n2 Running' 'hearth hearth-node-c  Pending' >"$FAKE/plugins"
hearth doctor --all
same a_node_without_its_plugin_is_told "$CODE $(grep -c . "$FAKE/executed") $(grep -c "node plugin on n1 is Failed: kubectl -n hearth describe pod hearth-node-a" <<<"$SAID") $(grep -c "is Pending: .*hearth-node-c" <<<"$SAID")" "1 1 1 1"
hearth warm imagenet --all
same others_are_warmed_all_the_same "$CODE $(grep -c "$B|warm" "$FAKE/executed")" "1 1"
printf '%s\n' 'hearth hearth-node-a n1 Running' 'hearth hearth-node-b n2 Running' >"$FAKE/plugins"

# ---- what it says when it cannot
says did_you_mean 2 "unknown command 'wram'; did you mean warm\?" wram scratch
says a_name_goes_first 2 'why: name the POD before the options of why: kubectl hearth why POD --seconds' why --seconds 30 train-0
says why_is_for_one_pod 2 'it is for one POD, without --all and --node' why train-0 --all
says without_a_command 2 'name a command; see kubectl hearth --help'
says an_unknown_command 2 "unknown command 'nonsense'; see" nonsense n1
says without_a_node 2 'status: name a NODE, --pod POD or --all' status
says without_a_pod 2 'why: name a POD' why
says without_a_claim 2 'warm: name a CLAIM' warm
says a_flag_without_a_value 2 '--node needs a value' warm imagenet --node
says there_is_no_such_pod 1 'pod "gone" not found' why gone
says a_pod_that_is_on_no_node 1 'train/late is on no node yet: kubectl -n train describe pod late' why late
says a_pod_that_has_ended 1 'train/done has ended \(Succeeded\)' why done
says there_is_no_such_node 1 'there is no node n9' status n9
says a_node_without_hearth 1 "Hearth's node plugin does not run on n3" status n3
says there_is_no_such_claim 1 'pvc "none" not found' warm none
says a_claim_that_nobody_uses 1 'no pod that runs uses claim train/unused: name a node \(--node\), or use a CacheWarmup' warm unused
says a_claim_on_several_nodes 1 'pods on several nodes use claim train/imagenet: name one with --node, or --all: n1 n2' warm imagenet
touch "$FAKE/denied"
says nothing_may_be_executed 1 'you may not execute commands in namespace hearth' status n1
rm "$FAKE/denied"
touch "$FAKE/forbidden"
says pods_may_not_be_listed 1 'give --hearth-namespace' status n1
ran but_in_its_namespace "$A|status|${ON_A}" status n1 --hearth-namespace hearth
rm "$FAKE/forbidden"
hearth --help
same help_is_help "$CODE $(head -n 1 <<<"$SAID")" "0 Usage: kubectl hearth [-n NAMESPACE] COMMAND [ARGUMENTS] [OPTIONS]"
same no_line_of_it_is_wide "$(awk 'length > 80' <<<"$SAID")" ""

# ---- completion, as kubectl asks for it
complete() { sh "$TMP/bin/kubectl_complete-hearth" "$@" | tr '\n' ' '; }
same commands_are_completed "$(complete st)" "status :4 "
same flags_are_completed "$(complete status --no)" "--node :4 "
same the_page_has_each_command "$(for c in $("$TMP/bin/kubectl-hearth" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do grep -qE "(BI|BR|^).*$c" "$TOP/deploy/man/kubectl-hearth.1" || echo "$c"; done)" ""
exit $((FAILED > 0))
