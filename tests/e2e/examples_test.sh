#!/bin/bash
# Each example and each YAML block of the documents before a real API server: strictly accepted, and the parameters of
# their classes are known to the driver. Nothing is run: images would have to be pulled.
#   A block without apiVersion is of the parameters of a StorageClass when it is indented or has them, else values of the chart.
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
init
cluster_up
node_add n1
hearth_add
k apply -f "$KUBE/crds" >/dev/null || die "the definitions of snapshots are refused"
k wait --for=condition=Established --timeout=30s -f "$KUBE/crds" >/dev/null || die "the definitions of snapshots are not served"
HELM=$BUILD/helm/helm

known() { sed -nE '/KIND_STATIC,/d; s|^    \{K8S "([^"]+)", KIND_.*|csi.storage.k8s.io/\1|p; s/^    \{"([^"]+)", KIND_.*/\1/p' "$TOP/driver/volume/params.c"; }
accepted() { # NAME FILE
    local out unknown # what the cluster has already was not applied by the server
    if ! out=$(k apply --server-side --force-conflicts --dry-run=server --validate=strict -o json -f "$2" 2>"$TMP/why"); then
        fail "$1" "$(<"$TMP/why")"
        return
    fi
    unknown=$(jq -r '(.items // [.])[] | select(.kind == "StorageClass") | .parameters | keys[]' <<<"$out" | sort -u | comm -23 - <(known | sort))
    same "$1" "$unknown" ""
}

for file in "$TOP"/deploy/examples/*.yaml; do
    accepted "example_$(basename "$file" .yaml)" "$file"
done
for file in "$TOP"/README.md "$TOP"/docs/*.md; do
    rm -rf "$TMP/blocks"
    mkdir "$TMP/blocks"
    awk -v dir="$TMP/blocks" '/^```yaml$/ { inside = 1; name = dir "/" FNR; next } /^```/ { inside = 0; next } inside { print >name }' "$file"
    for block in "$TMP/blocks"/*; do
        [ -e "$block" ] || continue
        name=$(basename "$file" .md)_line_$(basename "$block")
        if grep -q '^apiVersion:' "$block"; then
            accepted "$name" "$block"
        elif grep -q '^  ' <(grep -vE '^ *#' "$block" | head -n 1); then
            { printf 'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fragment}\nprovisioner: %s\nparameters:\n' $DRIVER && cat "$block"; } >"$TMP/fragment.yaml"
            accepted "$name" "$TMP/fragment.yaml"
        elif grep -q '^parameters:' "$block"; then
            { printf 'apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: fragment}\nprovisioner: %s\n' $DRIVER && cat "$block"; } >"$TMP/fragment.yaml"
            accepted "$name" "$TMP/fragment.yaml"
        elif [ -x "$HELM" ]; then
            sed -i "s/sha256:…/sha256:$(printf 'a%.0s' $(seq 64))/" "$block"
            if "$HELM" template hearth "$TOP/charts/hearth" --namespace hearth --kube-version 1.36.0 --values "$block" \
                --set metrics.podMonitor.enabled=false >"$TMP/made.yaml" 2>"$TMP/why"; then
                accepted "$name" "$TMP/made.yaml"
            else
                fail "$name" "$(<"$TMP/why")"
            fi
        else
            skip "$name" "no helm is there; make chart-check builds one"
        fi
    done
done

# What is wrong is found.
printf 'apiVersion: batch/v1\nkind: Job\nmetadata: {name: x}\nspec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b, comand: [c]}]}}}\n' >"$TMP/typo.yaml"
refused a_typo_is_refused 'not declared in schema' k apply --server-side --dry-run=server --validate=strict -f "$TMP/typo.yaml"
exit 0
