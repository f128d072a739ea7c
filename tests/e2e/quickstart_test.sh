#!/bin/bash
# docs/quickstart.md, command by command, on one of the tests' own kubelets instead of k3s: to the figure of the second epoch,
# which fetches nothing, and away again. From the image on it has ten minutes.
. "$(dirname "$0")/../integration/lib.sh"
for part in cluster objects kubelets network pods images; do . "$(dirname "$0")/$part.sh"; done
. "$TOP/tests/documents/documented.sh"
init
helm_needed
[ -e "$BUILD/image/hearth.tar" ] || {
    skip all "there is no image; make image makes one"
    exit 0
}
PAGE=docs/quickstart.md

# ---- what k3s would be
network_up
cluster_up
kubelet_up n1
reader_begin
ln -s "$TOP/tests" "$READER/tests"
mkdir -p "$READER/build" && ln -s "$BUILD/image" "$READER/build/image"
reader_has kubectl "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf"
reader_has helm "$BUILD/helm/helm" --kubeconfig="$PKI/admin.conf"
cat >"$TMP/k3s" <<END
#!/bin/bash
[ "\$1" = ctr ] && shift && exec nsenter --target ${NODE_INIT[n1]} ${NAMESPACES[@]} -- ctr -n k8s.io "\${@/#build/$READER/build}"
END
chmod +x "$TMP/k3s"
reader_has k3s "$TMP/k3s"
sidecar_images
example_images
DOCUMENTED_SECONDS=300
began=$SECONDS

# ---- the page
documented_block docs/quickstart.md "1. Kubernetes and the image" 2
OWN_CEPH=$(mktemp -d "${HEARTH_TEST_DIR:-/var/tmp}/hearth-ceph-XXXXXX")
documented_block docs/quickstart.md "2. Ceph" DIR="$OWN_CEPH" ADDRESS="$MACHINE_ADDRESS" || die "no Ceph"
documented_block docs/quickstart.md "3. Hearth" DIR="$OWN_CEPH" || die "$(k get pods -A; k get events -A | tail -n 10)"
running_pods() { k get pods -n hearth -o json | jq -r '[.items[] | select(.status.conditions // [] | any(.type == "Ready" and .status == "True"))] | length'; }
same the_three_pods_of_the_page_are_ready "$(running_pods)" 3
same its_table_is_as_here "$(awk '/^```text$/ { inside = 1; next } /^```/ { inside = 0 } inside && /^(NAME|hearth)/' "$TOP/$PAGE" | sed -n 1,4p | awk '{ print $1, $2 }' | sed -E 's/-[a-z0-9]{9,10}-[a-z0-9]{5} / /; s/-[a-z0-9]{5} / /' | sort)" \
    "$(awk '{ print $1, $2 }' "$DOCUMENTED_OUT" | sed -E 's/-[a-z0-9]{8,10}-[a-z0-9]{5} / /; s/-[a-z0-9]{5} / /' | sort)"
documented_block docs/quickstart.md "4. Data" 1 || die "$(k get pods,pvc; k describe pvc photos | tail -n 5)"
check the_claim_is_bound grep -qE '^photos +Bound +pvc-[0-9a-f-]{36} +1Gi +RWX +hearth ' "$DOCUMENTED_OUT"
documented docs/faq.md 'kubectl get pvc CLAIM' CLAIM=photos
same the_faq_finds_its_subvolume "$(<"$DOCUMENTED_OUT")" "csi-vol-$(k get pvc photos -o 'jsonpath={.spec.volumeName}')"
documented_block docs/quickstart.md "4. Data" 2 DIR="$OWN_CEPH"
documented_block docs/quickstart.md "4. Data" 3
before=$(stat_of n1 originBytes)
documented_block docs/quickstart.md "5. Two epochs" 1 || die "$(k get pods,pvc; k describe pod -l job-name=epochs | tail -n 5)"
sed 's/^/     /' "$DOCUMENTED_OUT"
figure() { sed -nE "s|^epoch $1: ([0-9,]+) MB/s$|\1|p" "$DOCUMENTED_OUT" | tr -d ,; }
cold=$(figure 0) warm=$(figure 1)
[ "${warm:-0}" -gt "${cold:-0}" ] && pass the_second_epoch_is_faster || fail the_second_epoch_is_faster "$(<"$DOCUMENTED_OUT")"
S=$((2000 * 100000)) fetched=$(($(stat_of n1 originBytes) - before))
[ $fetched -ge $S ] && [ $fetched -lt $((S + S / 10)) ] && pass and_fetched_nothing || fail and_fetched_nothing "$fetched bytes of $S"
took=$((SECONDS - began))
[ $took -lt 600 ] && pass in_less_than_ten_minutes || fail in_less_than_ten_minutes "$took s"
echo "     from the image to the second epoch in $took s"
settles the_node_says_it_is_warm 60 1/1 field nodecache n1 .status.warm
documented_block docs/quickstart.md "5. Two epochs" 2

# ---- away
documented_block docs/quickstart.md "6. Remove it" DIR="$OWN_CEPH"
same nothing_is_left "$(k get pv,pods,storageclass -A -o name)" ""
