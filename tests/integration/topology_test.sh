#!/bin/bash
# topologyConstrainedPools and --domainlabels, as ceph-csi has them: a node tells the domains that its
# labels say, a volume goes to the pool of the place it is asked for, and says which places reach it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
own_user
LABELS=failure-domain.example/region,topology.kubernetes.io/zone
start_controller --secret-dir="$TMP/own" --domainlabels=$LABELS

EAST=east-$$ WEST=west-$$
for pool in "$EAST" "$WEST"; do
    ceph_cmd osd pool create "$pool" 1 >/dev/null 2>&1 && ceph_cmd osd pool application enable "$pool" rbd >/dev/null 2>&1 || die "no pool $pool"
    at_exit "ceph_cmd osd pool rm $pool $pool --yes-i-really-really-mean-it >/dev/null 2>&1"
done

# ---- the node
cat >"$TMP/api.py" <<'END'
import http.server, json, sys
LABELS = {"failure-domain.example/region": "east", "topology.kubernetes.io/zone": "z1", "other": "x"}
class Api(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = self.path == "/api/v1/nodes/test-node"
        body = json.dumps({"kind": "Node", "metadata": {"name": "test-node", "labels": LABELS}} if found else {"kind": "Status", "code": 404, "reason": "NotFound"}).encode()
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
server = http.server.HTTPServer(("127.0.0.1", 0), Api)
print(server.server_port, flush=True)
server.serve_forever()
END
spawn api python3 "$TMP/api.py"
wait_for 20 test -s "$TMP/log/api.log" || die "no API"
cat >"$TMP/kubeconfig" <<END
{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:$(head -n 1 "$TMP/log/api.log")"}}],
 "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}], "users": [{"name": "u", "user": {}}]}
END
start_node --kubeconfig="$TMP/kubeconfig" --domainlabels=$LABELS
csi node NodeGetInfo '{}'
same a_node_tells_its_domains "$(jq -c '.accessibleTopology.segments | del(.["topology.csi.hearth.dev/node"])' <<<"$REPLY_JSON" | jq -cS .)" \
    '{"topology.csi.hearth.dev/region":"east","topology.csi.hearth.dev/zone":"z1"}'
end node
refused() { timeout 60 "$BUILD/hearth-csi" --role=node --node-id=test-node --endpoint="unix://$TMP/run/none.sock" --device-dir="$TMP/none" \
    --cluster-config="$TMP/config.json" --kubeconfig="$TMP/kubeconfig" "$@" 2>&1; }
said_at_start=$(refused --domainlabels=example/rack)
same a_label_that_the_node_lacks_is_named "$?/$(grep -c 'node test-node has no label example/rack' <<<"$said_at_start")" 1/1
said_at_start=$(refused --domainlabels=a/zone,b/zone)
same two_of_one_name_are_refused "$?/$(grep -c 'has the name of another' <<<"$said_at_start")" 2/1
said_at_start=$(refused --domainlabels=$LABELS --zone=z2)
same another_zone_is_refused "$?/$(grep -c 'zone=z2' <<<"$said_at_start")" 1/1

# ---- the controller
POOLS='[{"poolName": "'$EAST'",
  "domainSegments": [{"domainLabel": "region", "value": "east"}]},
 {"poolName": "'$WEST'", "dataPool": "rbd.ec",
  "domainSegments": [{"domainLabel": "region", "value": "west"}, {"domainLabel": "zone", "value": "w1"}]}]'
place() { echo "{\"segments\": {\"topology.csi.hearth.dev/region\": \"$1\", \"topology.csi.hearth.dev/zone\": \"$2\", \"topology.csi.hearth.dev/node\": \"n\"}}"; }
constrained() { # NAME REQUIREMENT [MORE [POOL]]
    local parameters
    parameters=$(jq -cn --arg p "$POOLS" '{topologyConstrainedPools: $p}')
    [ -n "${4:-}" ] || parameters=$(jq -c '.pool = null' <<<"$parameters")
    csi controller CreateVolume "$(image_request "$1" 33554432 "$parameters" "$(jq -cn --argjson r "$2" --argjson m "${3:-"{}"}" '{accessibility_requirements: $r} + $m')" |
        jq -c 'if .parameters.pool == null then del(.parameters.pool) else . end')" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON") VOLUME_CONTEXT=$(jq -c .volume.volumeContext <<<"$REPLY_JSON")
}
answer() { jq -r '"\(.volume.volumeContext.pool) \(.volume.accessibleTopology | map(.segments) | tojson)"' <<<"$REPLY_JSON"; }
east_of() { echo "$EAST [{\"topology.csi.hearth.dev/region\":\"east\"}]"; }
ask_east="{\"requisite\": [$(place east z9)], \"preferred\": [$(place east z9)]}"
ask_west="{\"requisite\": [$(place west w1)], \"preferred\": [$(place west w1)]}"

constrained pvc-east-$$ "$ask_east"
same a_volume_goes_to_the_pool_of_its_place "$CSI_CODE $(answer)" "OK $(east_of)"
east=$VOLUME_ID
same its_image_is_there "$(rbd_cmd ls "$EAST" 2>/dev/null)" csi-vol-pvc-east-$$
constrained pvc-east-$$ "{\"requisite\": [$(place west w1), $(place east z1)], \"preferred\": [$(place west w1)]}"
same it_stays_where_it_was_begun "$CSI_CODE $(answer)" "OK $(east_of)"
constrained pvc-east-$$ "$ask_west"
says where_it_is_not_reached_the_scheduler_is_asked RESOURCE_EXHAUSTED "has been begun in pool $EAST"
same and_no_second_one_is_made "$(rbd_cmd ls "$WEST" 2>/dev/null)" ""
constrained pvc-west-$$ "{\"requisite\": [$(place east z1), $(place west w1)], \"preferred\": [$(place west w2), $(place west w1)]}"
same what_is_preferred_comes_first "$CSI_CODE $(answer | cut -d' ' -f1)" "OK $WEST"
west=$VOLUME_ID
same with_the_pools_data_pool "$(rbd_cmd info "$WEST/csi-vol-pvc-west-$$" --format json 2>/dev/null | jq -r .data_pool)" rbd.ec
constrained pvc-fall-$$ "{\"requisite\": [$(place north n1), $(place east z1)], \"preferred\": [$(place north n1)]}"
same then_what_is_requisite "$CSI_CODE $(answer | cut -d' ' -f1)" "OK $EAST"
delete_volume || fail delete "$(said)"
constrained pvc-none-$$ "{\"requisite\": [$(place west w2)], \"preferred\": []}"
says all_of_a_pools_segments_count RESOURCE_EXHAUSTED "no pool"
# A copy is where its source is.
VOLUME_ID=$east
snapshot snap-$$
constrained pvc-copy-$$ "$ask_west" "{\"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"$SNAPSHOT_ID\"}}}"
says a_copy_is_not_made_elsewhere RESOURCE_EXHAUSTED "copied from pool $EAST"
constrained pvc-copy-$$ "$ask_east" "{\"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"$SNAPSHOT_ID\"}}}"
same but_at_its_source "$CSI_CODE $(answer)" "OK $(east_of)"
delete_volume || fail delete "$(said)"
unsnapshot
# Unless that is in none of the pools.
create_image pvc-out-$$ 33554432 && fill csi-vol-pvc-out-$$ outer || die "CreateVolume: $(said)"
out=$VOLUME_ID
if ldd "$(command -v ceph-mgr)" | grep -qE 'libpython3\.1[2-9]'; then
    skip a_copy_from_outside "this mgr crashes when it flattens"
else
    pending constrained pvc-in-$$ "$ask_west" "{\"volume_content_source\": {\"volume\": {\"volume_id\": \"$out\"}}}"
    same a_copy_from_outside_is_where_it_is_asked_for "$CSI_CODE $(answer | cut -d' ' -f1)" "OK $WEST"
    same and_depends_on_no_other_pool "$(rbd_cmd info "$WEST/csi-vol-pvc-in-$$" --format json 2>/dev/null | jq -r '.parent // "none"')" none
    same with_its_bytes "$(rbd_cmd export --no-progress "$WEST/csi-vol-pvc-in-$$" - 2>/dev/null | head -c 5)" outer
    pending delete_volume || fail delete "$(said)"
fi
VOLUME_ID=$out
delete_volume || fail delete "$(said)"
# Without a place.
constrained pvc-where-$$ '{}'
says without_a_place_and_a_pool_it_says_what_to_do INVALID_ARGUMENT WaitForFirstConsumer
constrained pvc-where-$$ null '{}' pool
same without_a_place_the_pool_counts "$CSI_CODE $(jq -r '.volume | "\(.volumeContext.pool) \(.accessibleTopology // [] | length)"' <<<"$REPLY_JSON")" "OK rbd 0"
delete_volume || fail delete "$(said)"
# Room, by which the scheduler chooses.
room() { csi controller GetCapacity "$(jq -cn --arg c "$CEPH_FSID" --arg p "$POOLS" --argjson t "$1" '{parameters: {clusterID: $c, topologyConstrainedPools: $p}, accessible_topology: $t}')" &&
    jq -r '(.availableCapacity // 0 | tonumber) > 0' <<<"$REPLY_JSON"; }
same room_is_of_the_places_pool "$(room "$(place east z1)")/$(room "$(place north n1)")" true/false
# Faults of a class.
POOLS='[{"poolName": "a", "domainSegments": [{"domainLabel": "rack", "value": "1"}]}]'
constrained pvc-bad-$$ "$ask_east"
says a_label_nobody_reports_is_named INVALID_ARGUMENT '"rack" of pool a'
POOLS='[{"poolName": "a"}]'
constrained pvc-bad-$$ "$ask_east"
says a_pool_without_segments_is_refused INVALID_ARGUMENT "entry 0 has no domainSegments"
POOLS='east'
constrained pvc-bad-$$ "$ask_east"
says and_what_is_no_json INVALID_ARGUMENT "no JSON array"
for VOLUME_ID in "$east" "$west"; do delete_volume || fail delete "$(said)"; done
end controller
start_controller
POOLS='[{"poolName": "rbd", "domainSegments": [{"domainLabel": "region", "value": "east"}]}]'
constrained pvc-off-$$ "$ask_east"
says without_the_labels_it_is_refused INVALID_ARGUMENT --domainlabels
POOL=$EAST
same nothing_is_left "$(left)" ""
POOL=$WEST
same nowhere "$(left)" ""
exit 0
