#!/bin/bash
# What the other tests build upon: a token that names its node, policies that use it, a pod that is changed
# as it is made, an API server that comes back, and nodes by the hundred.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
init
started=$SECONDS
cluster_up
same ready_soon "$((SECONDS - started <= 30))" 1
node_add n1 a
node_add n2 a

# ---- who is who
k create namespace hearth >/dev/null
k create serviceaccount plugin -n hearth >/dev/null
k create role plugin -n hearth --verb=create --resource=configmaps >/dev/null
k create rolebinding plugin -n hearth --role=plugin --serviceaccount=hearth:plugin >/dev/null
kubeconfig_for hearth plugin "$PKI/plugin-n1.conf" n1 || die "no token for n1"
plugin() { "$KUBE/kubectl" --kubeconfig="$PKI/plugin-n1.conf" "$@"; }
same a_token_is_of_its_account "$(plugin auth whoami -o 'jsonpath={.status.userInfo.username}')" system:serviceaccount:hearth:plugin
same and_names_its_node "$(plugin auth whoami -o json | jq -r '.status.userInfo.extra["authentication.kubernetes.io/node-name"][0]')" n1
refused it_may_not_do_what_its_role_does_not_say 'nodes is forbidden' plugin get nodes

# ---- a policy by the node of the token
k apply -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: { name: own-node }
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [configmaps] }]
  matchConditions: [{ name: plugin, expression: "request.userInfo.username == 'system:serviceaccount:hearth:plugin'" }]
  validations:
    - expression: "request.userInfo.extra['authentication.kubernetes.io/node-name'] == [object.metadata.name]"
      message: not of your node
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: { name: own-node }
spec: { policyName: own-node, validationActions: [Deny] }
END
# A policy holds a moment after it was made.
holds() { ! plugin create configmap n2 -n hearth --dry-run=server; }
check a_policy_comes_to_hold within 20 holds
refused another_nodes_object_is_refused 'not of your node' plugin create configmap n2 -n hearth
check its_own_is_taken plugin create configmap n1 -n hearth

# ---- a pod that is changed as it is made
k apply -f - >/dev/null <<'END'
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: { name: prefer }
spec:
  failurePolicy: Ignore
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{ apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods] }]
  matchConditions: [{ name: none-yet, expression: "!has(object.spec.affinity)" }]
  mutations:
    # ApplyConfiguration may not set lists that are replaced as a whole, and this is one.
    - patchType: JSONPatch
      jsonPatch:
        expression: >
          [JSONPatch{op: "add", path: "/spec/affinity", value: Object.spec.affinity{nodeAffinity: Object.spec.affinity.nodeAffinity{
            preferredDuringSchedulingIgnoredDuringExecution: [
              Object.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution{weight: 100,
                preference: Object.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.preference{
                  matchExpressions: [Object.spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution.preference.matchExpressions{
                    key: "kubernetes.io/hostname", operator: "In", values: ["n2"]}]}}]}}}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: { name: prefer }
spec: { policyName: prefer }
END
affinity() { k create --dry-run=server -o 'jsonpath={.spec.affinity.nodeAffinity}' -f - <<<'{"apiVersion": "v1", "kind": "Pod",
    "metadata": {"name": "p"}, "spec": {"containers": [{"name": "main", "image": "none"}]}}' | grep -q n2; }
check a_pod_gets_a_preference within 20 affinity
for i in 1 2 3 4 5; do
    pod_add p$i '' '{"volumes": null, "containers": [{"name": "main", "image": "none"}]}'
done
same which_the_scheduler_follows "$(for i in 1 2 3 4 5; do pod_node p$i; done)" n2n2n2n2n2

# ---- an API server that goes away
apiserver_restart KILL
same objects_outlive_the_api_server "$(k get configmap n1 -n hearth -o 'jsonpath={.metadata.name}')" n1
pod_add after '' '{"volumes": null, "containers": [{"name": "main", "image": "none"}]}'
same and_pods_are_scheduled_again "$(pod_node after)" n2

# ---- nodes by the hundred
nodes_add many 100
same a_hundred_nodes "$(k get nodes -o name | grep -c many)/$(k get csinodes -o name | grep -c many)" 100/100
node_full many1
same a_full_one_is_accounted_for "$(field pod fills-many1 .spec.nodeName)" many1
node_remove many1
settles a_node_that_is_gone_is_gone 10 "" field node many1 .metadata.name
