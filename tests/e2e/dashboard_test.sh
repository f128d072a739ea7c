#!/bin/bash
# Every query of the Grafana dashboard has an answer, from a real Prometheus that scrapes Hearth at work on a real
# Kubernetes control plane and Ceph; rules of alerts are well-formed and silent where all is well.
#   PICTURE=FILE.svg     draws the dashboard with what came, of four epochs over 90 files, of which the first is cold: 5 minutes
. "$(dirname "$0")/../integration/lib.sh"
. "$(dirname "$0")/cluster.sh"
. "$(dirname "$0")/objects.sh"
. "$(dirname "$0")/hearth.sh"
init
for program in prometheus promtool; do
    type -P $program >/dev/null || die "there is no $program; tests/tools/install-deps e2e installs it"
done
FILES=$TOP/charts/hearth/files
check rules_are_well_formed promtool check rules "$FILES/alerts.yaml"
start_ceph
own_user
cluster_up
driver_add
node_add n2
hearth_add
k --kubeconfig="$PKI/controller.conf" config set-context --current --namespace=hearth >/dev/null
kubeconfig_for hearth hearth-node "$TMP/node.conf" n2 || die "no token for the node"
declare -A PORT
for program in controller node hearthd prometheus; do
    free_port
    PORT[$program]=$FREE_PORT
done
start_controller --secret-dir="$TMP/own" --warmth --kubeconfig="$PKI/controller.conf" --metrics-address=127.0.0.1:${PORT[controller]}
start_hearthd --cache-size=1Gi --metrics-address=127.0.0.1:${PORT[hearthd]}
# For CacheWarmups: a user that reads, which the provisioner's cannot.
mkdir -m 700 "$TMP/reads" && printf '%s' "$NODE_ID" >"$TMP/reads/userID" && printf '%s' "$NODE_KEY" >"$TMP/reads/userKey"
start_node --node-id=n2 --warmth --kubeconfig="$TMP/node.conf" --secret-dir="$TMP/reads" --metrics-address=127.0.0.1:${PORT[node]}

jq -n --arg rules "$FILES/alerts.yaml" --argjson ports "$(for p in controller node hearthd; do jq -n --arg p $p --arg n "${PORT[$p]}" '{($p): $n}'; done | jq -s add)" '{
    global: {scrape_interval: "1s", evaluation_interval: "1s"}, rule_files: [$rules],
    scrape_configs: [$ports | to_entries[] | {job_name: ("hearth-" + .key), static_configs: [{targets: ["127.0.0.1:" + .value], labels: {node: "n2"}}]}]}' >"$TMP/prometheus.yml"
spawn prometheus prometheus --config.file="$TMP/prometheus.yml" --storage.tsdb.path="$TMP/tsdb" \
    --web.listen-address="127.0.0.1:${PORT[prometheus]}" --log.level=warn
PROMETHEUS=http://127.0.0.1:${PORT[prometheus]}
prometheus() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())' "$PROMETHEUS$1"; }
targets_up() { [ "$(prometheus /api/v1/targets | jq '[.data.activeTargets[] | select(.health == "up")] | length')" = 3 ]; }
within 30 targets_up || die "$(prometheus /api/v1/targets | jq -c '[.data.activeTargets[] | {scrapeUrl, health, lastError}]')"
pass prometheus_takes_all_three

# ---- work: a dataset of 16 MiB read cold and warm through each layer, evicted now and then
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
create_volume "pvc-dash-$$" 1073741824 || die "CreateVolume: $(said)"
SOURCE_ID=$VOLUME_ID SOURCE_CONTEXT=$VOLUME_CONTEXT SOURCE_ROOT=$ROOT_PATH
at_exit 'VOLUME_ID=$SOURCE_ID delete_volume'
stage && publish || die "$(said)"
for i in $(seq 16); do head -c $((1 << 20)) /dev/urandom >"$TARGET/f$i"; done
sync -f "$TARGET"
SUBVOLUME=csi-vol-pvc-dash-$$
ceph_cmd fs subvolume snapshot create hearthfs "$SUBVOLUME" v1 --group_name csi
at_exit 'ceph_cmd fs subvolume snapshot rm hearthfs $SUBVOLUME v1 --group_name csi'
LIVE=$TARGET
at_exit 'VOLUME_ID=$SOURCE_ID TARGET=$LIVE unpublish; VOLUME_ID=$SOURCE_ID unstage'
ATTRIBUTES="{\"clusterID\": \"$CEPH_FSID\", \"fsName\": \"hearthfs\", \"dataset\": \"$SUBVOLUME@v1\"}" dataset_claim data none none
k create -f - >/dev/null <<<'{"apiVersion": "csi.hearth.dev/v1alpha1", "kind": "CacheWarmup", "metadata": {"name": "dash"}, "spec": {"persistentVolumeClaim": "data"}}'
settles the_dataset_is_warmed 60 Warm field cachewarmup dash .status.phase
for round in $(seq "${ROUNDS:-12}"); do
    cat "$LIVE"/f* >/dev/null
    drop_page_cache
    create_volume "pvc-$round-$$" 1048576 && delete_volume || fail volumes_come_and_go "$(said)"
    [ $((round % 4)) != 0 ] || hearthctl evict --all >/dev/null
    sleep 1
done

LASTS=60
if [ -n "${PICTURE:-}" ]; then
    for i in $(seq 90); do head -c $((4 << 20)) /dev/urandom >"$LIVE/epoch$i"; done
    sync -f "$LIVE"
    hearthctl evict --all >/dev/null
    began=$SECONDS
    for epoch in 0 1 2 3; do
        [ $epoch != 1 ] || k create -f - >/dev/null <<<'{"apiVersion": "csi.hearth.dev/v1alpha1", "kind": "CacheWarmup", "metadata": {"name": "again"}, "spec": {"persistentVolumeClaim": "data", "rate": "512Ki"}}'
        drop_page_cache
        for i in $(seq 90); do
            cat "$LIVE/epoch$i" >/dev/null || fail "epoch_${epoch}_is_read" "$LIVE/epoch$i cannot be read"
            sleep 0.5
        done
        create_volume "pvc-epoch$epoch-$$" 1048576 && delete_volume
    done
    LASTS=$((SECONDS - began + 5))
fi

"$TOP/tests/e2e/dashboard.py" "$PROMETHEUS" "$FILES/dashboard.json" $LASTS ${PICTURE:+"$PICTURE"} >"$TMP/queries" || fail the_dashboard_is_asked "it cannot be"
while read -r line; do
    case $line in
    ok*) ;;
    *) fail every_query_has_an_answer "$line" ;;
    esac
done <"$TMP/queries"
[ "$(grep -c ^ok "$TMP/queries")" -ge 25 ] && pass every_query_has_an_answer || fail every_query_has_an_answer "only $(grep -c ^ok "$TMP/queries")"
same no_alert_fires "$(prometheus /api/v1/alerts | jq -c '[.data.alerts[] | select(.state == "firing") | .labels.alertname]')" '[]'
end hearthd
fires() { prometheus /api/v1/alerts | jq -e '[.data.alerts[].labels.alertname] | index("HearthdDown")' >/dev/null; }
within 30 fires && pass one_that_is_down_is_noticed || fail one_that_is_down_is_noticed "$(prometheus /api/v1/alerts)"
start_hearthd --metrics-address=127.0.0.1:${PORT[hearthd]}
