# Sourced after lib.sh by the tests of RBD: images as rbd(8) sees them, and CSI calls about them.
# $POOL and $NS are where a test is at.

POOL=rbd NS=

rbd_cmd() { timeout -k 5 60 rbd -c "$CEPH_CONF" "$@"; }
on_pool() { timeout -k 5 30 rados -c "$CEPH_CONF" -p "$POOL" -N "$NS" "$@"; }
at() { echo "$POOL${NS:+/$NS}"; }
info() { rbd_cmd info "$1" --format json 2>/dev/null | jq -r "${2:-.}"; }
images() { rbd_cmd ls "$(at)" 2>/dev/null | grep -F -- "${1:-}"; }
trash() { rbd_cmd trash ls "$(at)" 2>/dev/null | grep -F -- "${1:-}"; }
snaps() { rbd_cmd snap ls "$(at)/$1" --format json 2>/dev/null | jq -r '.[].name'; }
parent() { info "$(at)/$1" '.parent // empty | "\(.image)@\(.snapshot)"'; }
records() { on_pool listomapkeys hearth.records 2>/dev/null | grep -vF @elsewhere | grep -F -- "${1:-}"; }
# What this script has left at the place.
left() {
    images "-$$"
    trash "-$$"
    records "-$$"
}
fill() { # IMAGE TEXT: at its start
    "$BUILD/tools/rbd-client" "$CEPH_CONF" "$POOL" "$NS" "$1" <<<"write $2" >/dev/null
}

code() { same "$1" "$CSI_CODE" "$2"; } # NAME WANTED: of the call just made
says() { # NAME CODE WORDS: its message holds the words
    if [ "$CSI_CODE" = "$2" ] && grep -qF -- "$3" <<<"$CSI_MESSAGE"; then pass "$1"; else fail "$1" "wanted $2 with \"$3\", got $(said)"; fi
}

IMAGE_CAPABILITY='{"mount": {}, "access_mode": {"mode": "SINGLE_NODE_WRITER"}}'
image_request() { # NAME BYTES PARAMETERS [MORE]
    csi_json '{name: $name, capacity_range: {required_bytes: $bytes}, volume_capabilities: [$capability],
        secrets: $secrets, parameters: ({type: "rbd", clusterID: $fsid, pool: $pool} + $parameters)} + $more' \
        --arg name "$1" --argjson bytes "$2" --argjson parameters "${3:-"{}"}" --argjson more "${4:-"{}"}" \
        --argjson capability "$IMAGE_CAPABILITY" --arg fsid "${CLUSTER:-$CEPH_FSID}" --arg pool "$POOL"
}
create_image() { # NAME BYTES [PARAMETERS [MORE]]
    csi controller CreateVolume "$(image_request "$@")" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c '.volume.volumeContext // {}' <<<"$REPLY_JSON")
}
expand() { # BYTES [CAPABILITY]: of the volume
    csi controller ControllerExpandVolume "$(csi_json '{volume_id: $id, secrets: $secrets,
        capacity_range: {required_bytes: $bytes}, volume_capability: $capability}' \
        --arg id "$VOLUME_ID" --argjson bytes "$1" --argjson capability "${2:-$IMAGE_CAPABILITY}")"
}
snapshot() { # NAME [PARAMETERS]: of the volume
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets,
        parameters: $parameters}' --arg id "$VOLUME_ID" --arg name "$1" --argjson parameters "${2:-"{}"}")" || return 1
    SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
}
unsnapshot() { csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "${1:-$SNAPSHOT_ID}")"; }
restore() { # NAME BYTES [SNAPSHOT-ID [PARAMETERS]]
    create_image "$1" "$2" "${4:-"{}"}" "{\"volume_content_source\": {\"snapshot\": {\"snapshot_id\": \"${3:-$SNAPSHOT_ID}\"}}}"
}
clone() { # NAME BYTES SOURCE-ID
    create_image "$1" "$2" '{}' "{\"volume_content_source\": {\"volume\": {\"volume_id\": \"$3\"}}}"
}
