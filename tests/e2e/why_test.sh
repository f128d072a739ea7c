#!/bin/bash
# kubectl hearth on a real cluster with a real kubelet: a pod reads a cold volume, and `kubectl hearth why POD` finds its node,
# its processes and its claim, and names the cause and the command that warms it; that command does. The other causes are in
# tests/integration/why_test.sh. Hearth runs beside the kubelet here, so that a pod stands for the node plugin's: it has its
# labels and namespaces, and its hearthctl is the node's.
. "$(dirname "$0")/../integration/lib.sh"
. "$TOP/tests/documents/documented.sh"
for part in cluster objects hearth sidecars kubelets pods; do . "$(dirname "$0")/$part.sh"; done
init
hearth_up n1
mkdir -p "$TMP/bin"
cp "$TOP"/deploy/kubectl/* "$TMP/bin/"
printf '#!/bin/sh\nKUBECONFIG=%q exec %q "$@"\n' "$PKI/admin.conf" "$KUBE/kubectl" >"$TMP/bin/kubectl"
printf '#!/bin/sh\nexec chroot /host %q --socket /run/hearth/hearthd.sock "$@"\n' "$BUILD/hearthctl" >"$TMP/hearthctl"
chmod +x "$TMP/bin/kubectl" "$TMP/hearthctl"
reader_begin
reader_has kubectl env PATH="$TMP/bin:$PATH" kubectl
kubectl_hearth() { PATH=$TMP/bin:$PATH kubectl hearth "$@" >"$TMP/out" 2>"$TMP/err" </dev/null; }

jq -n --arg image "$TOOLS" --arg ctl "$TMP/hearthctl" '{apiVersion: "v1", kind: "Pod",
    metadata: {name: "hearth-node-x", namespace: "hearth", labels: {"app.kubernetes.io/name": "hearth", "app.kubernetes.io/component": "node"}},
    spec: {nodeName: "n1", hostPID: true, hostNetwork: true, terminationGracePeriodSeconds: 1,
        volumes: [{name: "host", hostPath: {path: "/"}}, {name: "ctl", hostPath: {path: $ctl, type: "File"}}],
        containers: [{name: "hearth-csi", image: $image, imagePullPolicy: "Never", args: ["-c", "while :; do sleep 1; done"],
            securityContext: {privileged: true},
            volumeMounts: [{name: "host", mountPath: "/host", mountPropagation: "HostToContainer"}, {name: "ctl", mountPath: "/bin/hearthctl"}]}]}}' |
    k create -f - >/dev/null || die "no pod for the node plugin"
stands() { k get pod -n hearth hearth-node-x -o 'jsonpath={.status.phase}'; }
settles a_pod_stands_for_the_node_plugins 60 Running stands
kubectl_hearth status n1
same status_of_a_node "$? $(grep -c '^hearthd ' "$TMP/out")" "0 1"
kubectl_hearth status nowhere
grep -q 'there is no node nowhere' "$TMP/err" && pass a_node_that_is_none || fail a_node_that_is_none "$(cat "$TMP/err")"
kubectl_hearth why nobody
same a_pod_that_is_none "$? $(grep -c '"nobody" not found' "$TMP/err")" "1 1"

# ---- a cold volume
class_add files "$STAGE_SECRET"
claim_add data files 1Gi
job its_files_are_written data 'for i in $(seq 1200); do dd if=/dev/urandom of=/data/$i bs=64k count=1 2>/dev/null || exit 1; done; sync'
ctl n1 evict --all >/dev/null
job_add reader data 'cd /data && while :; do cat *; done >/dev/null'
within 60 job_runs reader >/dev/null || die "the reader does not run"
POD=$(pod_of reader | jq -r .metadata.name)
ctl n1 evict --all >/dev/null
kubectl_hearth why "$POD" --seconds 2 --json
same its_cause "$(jq -r .cause "$TMP/out")" cold
[ "$(jq '.waitPercent > 20' "$TMP/out")" = true ] && pass its_processes_are_seen || fail its_processes_are_seen "$(jq -c . "$TMP/out") $(cat "$TMP/err")"
ctl n1 evict --all >/dev/null
kubectl_hearth why "$POD" --seconds 2
grep -qE "^$POD waits for storage [0-9]+% of the time: default/data is [0-9]+% warm" "$TMP/out" && pass why_says_it_in_a_sentence || fail why_says_it_in_a_sentence "$(cat "$TMP/out" "$TMP/err")"
command=$(sed -n 's/^-> `\(kubectl hearth warm default\/data\)`.*/\1/p' "$TMP/out")
same and_names_the_command "$command" "kubectl hearth warm default/data"
check which_warms_it kubectl_hearth ${command#kubectl hearth }
warm_percent() { ctl n1 status --json | jq '[.volumes[] | select(.bytesTotal > 0) | 100 * .bytesCached / .bytesTotal | floor] | max'; }
settles it_is_warm 30 100 warm_percent
documented docs/troubleshooting.md 'kubectl hearth why' POD="$POD"
documented_block docs/operations.md "From kubectl" POD="$POD" NODE=n1 CLAIM=data
kubectl_hearth top --pod "$POD" --json
same top_of_its_node "$? $(jq -r '.volumes[0].served' "$TMP/out")" "0 true"
kubectl_hearth doctor --all
grep -q '^== n1$' "$TMP/out" && pass doctor_of_all_nodes || fail doctor_of_all_nodes "$(cat "$TMP/out" "$TMP/err")"
# ---- hearthd is restarted: each access of the pod fails, and an Event at it says what heals it
end hearthd-n1 KILL
hearthd_start n1
event() { k get events --field-selector "reason=MountLost,involvedObject.kind=Pod,involvedObject.name=$POD" -o 'jsonpath={.items[*].message}'; }
says_so() { event | grep -q "kubectl -n default delete pod $POD"; }
within 60 says_so && pass an_event_at_the_pod_says_what_heals_it || fail an_event_at_the_pod_says_what_heals_it "$(event) $(k get nodecache n1 -o 'jsonpath={.status.lost}')"
same describe_shows_it "$(k describe pod "$POD" | grep -c ' MountLost ')" 1
kubectl_hearth why "$POD" --seconds 1
grep -q "the mount of default/data is not served any more" "$TMP/out" && grep -q "^-> kubectl -n default delete pod $POD" "$TMP/out" && pass why_says_so_too || fail why_says_so_too "$(cat "$TMP/out" "$TMP/err")"
k delete pod "$POD" --timeout=60s >/dev/null
not_lost() { [ "$(k get nodecache n1 -o 'jsonpath={.status.lost}')" = "[]" ]; }
within 60 not_lost && pass then_it_is_lost_no_more || fail then_it_is_lost_no_more "$(k get nodecache n1 -o 'jsonpath={.status.lost}')"
job_remove reader
