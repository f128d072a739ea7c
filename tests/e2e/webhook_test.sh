#!/bin/bash
# Layer L3 before Kubernetes 1.36: the controller's webhook in place of the policy. The same pods get the same, land
# where the dataset is warm, and are made whatever happens to the webhook. kubelet's part, bringing the Secret, is
# played by the test.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
. "$TOP/tests/documents/documented.sh"
init
reader_begin
cluster_up
for node in n1 n2 n3 n4; do node_add $node; done
hearth_add
NAME=dataset-affinity.csi.hearth.dev
k delete mutatingadmissionpolicybinding,mutatingadmissionpolicy $NAME >/dev/null || die "the policy is not there to be removed"
k create namespace team >/dev/null
within 30 k get serviceaccount default -n team || die "the namespace gets no ServiceAccount"
k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
L=warm.csi.hearth.dev
A=$(dataset_id train v1)
B=$(dataset_id labels v1)
CERTS=$TMP/webhook-certs
free_port
PORT=$FREE_PORT

# ---- what an administrator does
reader_has kubectl "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf"
export SAN=IP:127.0.0.1
certify() { KUBECTL=$TMP/reader-bin/kubectl "$TOP/deploy/webhook/certificate.sh"; }
refused the_certificate_waits_for_the_configuration 'apply webhook.yaml first' certify
check the_webhook_is_accepted k apply -f "$TOP/deploy/webhook/webhook.yaml"
documented deploy/webhook/webhook.yaml 'deploy/webhook/certificate.sh'
secret_mount() { # as kubelet does: a directory of each version, and a link that is exchanged
    local version=$CERTS/..$RANDOM$RANDOM
    mkdir -p -m 700 "$version"
    k get secret hearth-webhook-tls -n hearth -o json | jq -r '.data["tls.crt"]' | base64 -d >"$version/tls.crt"
    k get secret hearth-webhook-tls -n hearth -o json | jq -r '.data["tls.key"]' | base64 -d >"$version/tls.key"
    ln -sfn "${version##*/}" "$CERTS/..data_tmp" && mv -T "$CERTS/..data_tmp" "$CERTS/..data"
    ln -sfn ..data/tls.crt "$CERTS/tls.crt"
    ln -sfn ..data/tls.key "$CERTS/tls.key"
}
secret_mount
same it_is_the_services "$(openssl x509 -in "$CERTS/tls.crt" -noout -checkhost hearth-webhook.hearth.svc)" "Hostname hearth-webhook.hearth.svc does match certificate"
same no_copy_of_the_key_is_in_an_annotation "$(k get secret hearth-webhook-tls -n hearth -o json | jq -c '.metadata.annotations')" null
# A Service leads nowhere without nodes.
webhook_at() { # PORT
    k patch mutatingwebhookconfiguration $NAME --type=json -p "[{\"op\": \"remove\", \"path\": \"/webhooks/0/clientConfig/service\"},
        {\"op\": \"add\", \"path\": \"/webhooks/0/clientConfig/url\", \"value\": \"https://127.0.0.1:$1/mutate--v1-pod\"}]" >/dev/null 2>&1 ||
        k patch mutatingwebhookconfiguration $NAME --type=json -p "[{\"op\": \"replace\", \"path\": \"/webhooks/0/clientConfig/url\",
            \"value\": \"https://127.0.0.1:$1/mutate--v1-pod\"}]" >/dev/null || die "the webhook cannot be pointed at the controller"
}
webhook_at "$PORT"

# ---- what cannot be served is told at once
plugin_says() { # FLAGS
    timeout 20 "$BUILD/hearth-csi" --role=controller --endpoint="unix://$TMP/other.sock" --dir-root="$TMP" --cluster-config="$TMP/none" \
        --warmth --kubeconfig="$PKI/controller.conf" "$@" 2>&1
}
refused a_directory_without_a_certificate "$TMP/none/tls.key: No such file.*kubernetes.io/tls" plugin_says --webhook-address="127.0.0.1:$PORT" --webhook-cert-dir="$TMP/none"
refused an_address_without_a_port 'give ADDRESS:PORT' plugin_says --webhook-address=127.0.0.1 --webhook-cert-dir="$CERTS"
refused the_webhook_without_warmth 'goes with --role=controller and --warmth' "$BUILD/hearth-csi" --role=controller --webhook-address=:9443

# ---- what pods get
controller_up() { start_controller --dir-root="$TMP" --warmth --kubeconfig="$PKI/controller.conf" --webhook-address="127.0.0.1:$PORT" --webhook-cert-dir="$CERTS"; }
controller_up
dataset_claim data train v1
dataset_claim twin train v1
dataset_claim labels labels v1
dataset_claim theirs train v1 team
made() { # SPEC-JSON [METADATA-JSON]: what of a pod is ours to change; of equals in one order
    jq -n --argjson spec "$1" --argjson meta "${2:-"{}"}" '{apiVersion: "v1", kind: "Pod", metadata: ({name: "p"} + $meta),
        spec: ({containers: [{name: "main", image: "none"}]} + $spec)}' | k create --dry-run=server -o json -f - |
        jq -cS '{affinity: .spec.affinity, annotations: .metadata.annotations} |
            (.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution | select(.)) |= sort_by(.preference.matchExpressions[0].key, -.weight) |
            (.annotations["csi.hearth.dev/prefers"] | select(.)) |= (split(",") | sort | join(","))'
}
NOTHING='{"affinity":null,"annotations":null}'
prefers() { # DATASET...
    jq -cnS --arg l "$L" '{affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [$ARGS.positional | sort | .[] as $d | (100, 75, 50, 25) |
        {weight: ., preference: {matchExpressions: [{key: "\($l)/\($d)", operator: "In", values: ["\(.)"]}]}}]}},
        annotations: {"csi.hearth.dev/prefers": ($ARGS.positional | sort | map("\($l)/\(.)") | join(","))}}' --args "$@"
}
settles a_pod_of_a_dataset_prefers_it 30 "$(prefers "$A")" made "$(uses data)"
settles of_two_datasets_both 30 "$(prefers "$A" "$B")" made "$(uses labels data twin)"
same a_claim_of_another_namespace_is_none "$(made "$(uses theirs)")" "$NOTHING"

# The same pods, to be given to the policy too: two lists of preferences, requirements, of all kinds.
term() { echo "{\"weight\": 7, \"preference\": {\"matchExpressions\": [{\"key\": \"$1\", \"operator\": \"In\", \"values\": [\"1\"]}]}}"; }
preferring() { echo "{\"affinity\": {\"nodeAffinity\": {\"preferredDuringSchedulingIgnoredDuringExecution\": [$1]}}}"; }
requiring() { echo "{\"affinity\": {\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": {\"nodeSelectorTerms\": [{\"matchExpressions\": [{\"key\": \"$1\", \"operator\": \"Exists\"}]}]}}}}"; }
with() { jq -cn --argjson a "$1" --argjson b "$2" '$a + $b'; }
ours="{\"annotations\": {\"csi.hearth.dev/prefers\": \"$L/$A\"}}"
zoo() { # NAME OUTPUT, a line each
    local IFS=$'\n'
    echo "none $(made '{}')"
    echo "claim $(made "$(uses data)")"
    echo "two $(made "$(uses data labels)")"
    echo "twins $(made "$(uses data twin)")"
    echo "other $(made "$(uses none)")"
    echo "ephemeral $(made '{"volumes": [{"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadOnlyMany"], "resources": {"requests": {"storage": "1Gi"}}}}}}]}')"
    echo "annotated $(made "$(uses data)" '{"annotations": {"a": "b"}}')"
    echo "prefers-zone $(made "$(with "$(uses data)" "$(preferring "$(term zone)")")")"
    echo "prefers-warm $(made "$(with "$(uses data)" "$(preferring "$(term $L/ffffffffffffffff)")")")"
    echo "prefers-it $(made "$(with "$(uses data)" "$(preferring "$(term "$L/$A")")")")"
    echo "requires-os $(made "$(with "$(uses data)" "$(requiring kubernetes.io/os)")")"
    echo "requires-warm $(made "$(with "$(uses data)" "$(requiring "$L/$B")")")"
    echo "empty-affinity $(made "$(with "$(uses data)" '{"affinity": {}}')")"
    echo "empty-node-affinity $(made "$(with "$(uses data)" '{"affinity": {"nodeAffinity": {}, "podAntiAffinity": {}}}')")"
    echo "made-before $(made "$(with "$(uses data)" "$(preferring "$(term "$L/$A")")")" "$ours")"
    echo "made-before-of-another $(made "$(with "$(uses labels)" "$(preferring "$(term "$L/$A")")")" "$ours")"
    echo "marked-and-bare $(made "$(uses data)" '{"annotations": {"csi.hearth.dev/prefers": ""}}')"
}
zoo >"$TMP/zoo.webhook"
same of_all_kinds_of_pods_these_get_something "$(grep 'prefers":"[^"]*,*'"$L" "$TMP/zoo.webhook" | grep -v '^made-before ' | cut -d ' ' -f 1 | paste -sd ' ')" \
    "claim two twins annotated prefers-zone requires-os empty-affinity empty-node-affinity made-before-of-another marked-and-bare"

# ---- where they land
# Written by hand, since no node reports.
k label node n3 "$L/$A=50" >/dev/null
k label node n2 "$L/$A=100" >/dev/null
# The controller has had no report of these nodes, and takes such labels away after 90 s.
placed_add warm 20 data
settles pods_land_where_the_dataset_is_warm 60 "20 n2" placed warm
same each_with_its_preferences "$(k get pods -l job-name=warm -o json | jq '[.items[] | select(.metadata.annotations["csi.hearth.dev/prefers"])] | length')" 20
placed_end warm

# ---- what it costs
latency() { python3 "$(dirname "$0")/pod_latency.py" "$PKI" "$API_PORT" "$@"; }
latency 200 default/data default/other default/ hearth/data >"$TMP/latency" || die "pods cannot be made: $(cat "$TMP/latency")"
sed 's/^/     a pod of NAMESPACE\/CLAIM, median and 99th percentile in ms: /' "$TMP/latency"
added=$(awk '$1 == "default/data" { with = $2 } $1 == "hearth/data" { without = $2 } END { printf "%.2f", with - without }' "$TMP/latency")
echo "     it adds $added ms to a pod of a dataset"
check it_adds_less_than_20_ms_to_a_pod awk -v ms="$added" 'BEGIN { exit !(ms < 20) }'

# ---- certificates
fingerprint() { openssl s_client -connect "127.0.0.1:$PORT" </dev/null 2>/dev/null | openssl x509 -noout -fingerprint -sha256; }
file_fingerprint() { openssl x509 -in "$CERTS/tls.crt" -noout -fingerprint -sha256; }
same the_mounted_certificate_is_shown "$(fingerprint)" "$(file_fingerprint)"
before=$(file_fingerprint)
check another_is_made certify
same pods_get_the_same_before_it_is_mounted "$(made "$(uses data)")" "$(prefers "$A")"
secret_mount
check it_is_another [ "$before" != "$(file_fingerprint)" ]
settles it_is_shown_without_a_restart 10 "$(file_fingerprint)" fingerprint
same and_pods_get_the_same "$(made "$(uses data)")" "$(prefers "$A")"
same it_is_told "$(grep -c 'from now on a certificate that is valid until' "$TMP/log/controller.log")" 1
ln -sfn ..data/nothing "$CERTS/tls.key"
sleep 1.2
same a_secret_that_is_broken_changes_nothing "$(fingerprint)" "$(file_fingerprint)"
settles but_is_told 5 1 grep -c 'the certificate there was is shown on: .*tls.key: No such file' "$TMP/log/controller.log"
ln -sfn ..data/tls.key "$CERTS/tls.key"
sleep 1.2
fingerprint >/dev/null
same no_key_is_in_a_log "$(grep -lF "$(sed -n 2p "$CERTS/tls.key")" "$TMP"/log/*)" ""

# ---- every controller serves it
free_port
OTHER_PORT=$FREE_PORT
spawn second "$BUILD/hearth-csi" --role=controller --endpoint="unix://$TMP/second.sock" --dir-root="$TMP" --cluster-config="$TMP/config.json" --warmth \
    --kubeconfig="$PKI/controller.conf" --webhook-address=":$OTHER_PORT" --webhook-cert-dir="$CERTS"
webhook_at "$OTHER_PORT"
settles one_without_the_lease_serves_too 30 "$(prefers "$A")" made "$(uses data)"
same and_acts_in_nothing_else "$(grep -c 'holds the lease' "$TMP/log/second.log")" 0

# ---- whatever happens, pods are made
took() { latency 1 default/data | awk '{ print ($2 < '"$1"' ? "under" : $2 < '"$2"' ? "within" : "over"), int($2) }'; }
kill -STOP "${PID[second]}"
read -r how ms < <(took 1500 5000)
kill -CONT "${PID[second]}"
same one_that_hangs_holds_up_a_pod_for_its_timeout "$how" within
echo "     a pod took $ms ms while the webhook hung"
webhook_at "$PORT"
end second
settles the_first_serves_again 30 "$(prefers "$A")" made "$(uses data)"
end controller
same without_a_controller_pods_are_made_as_they_are "$(made "$(uses data)")" "$NOTHING"
read -r how ms < <(took 1000 5000)
same and_at_once "$how" under
echo "     a pod took $ms ms while nobody served the webhook"
controller_up
settles and_with_it_again_they_prefer 30 "$(prefers "$A")" made "$(uses data)"

# ---- beside the policy
k apply -f "$TOP/deploy/policies/dataset-affinity.yaml" >/dev/null
end controller
# An API server finds the kind of hints up to 30 s after its start.
settles the_policy_alone_does_it_too 60 "$(prefers "$A")" made "$(uses data)"
zoo >"$TMP/zoo.policy"
while read -r name was; do
    same "${name}_gets_the_same_by_both_ways" "$was" "$(sed -n "s/^$name //p" "$TMP/zoo.policy")"
done <"$TMP/zoo.webhook"
controller_up
shows_one() { fingerprint | grep -c .; }
settles the_webhook_is_back 30 1 shows_one
zoo >"$TMP/zoo.both"
same both_together_add_nothing_twice "$(diff "$TMP/zoo.policy" "$TMP/zoo.both")" ""
