#!/bin/bash
# Whether a volume works (VOLUME_CONDITION) and how full it is, on a real Ceph of its own: hearthd gone,
# Ceph gone, the subvolume gone.
. "$(dirname "$0")/lib.sh"
unset HEARTH_CEPH # daemons are stopped
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

code() { same "$1" "$CSI_CODE" "$2"; }
stats() { csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $p}' --arg id "$VOLUME_ID" --arg p "${1:-$TARGET}")"; }
abnormal() { jq -r '.volumeCondition.abnormal // false' <<<"$REPLY_JSON"; }
usage() { jq -r --arg u "$1" "first(.usage[] | select(.unit == \$u)).$2 // 0" <<<"$REPLY_JSON"; }
tells() { # NAME TEXT: an abnormal condition whose message has it
    case $(abnormal)/$(jq -r .volumeCondition.message <<<"$REPLY_JSON") in
    true/*$2*) pass "$1" ;;
    *) fail "$1" "$(said) $REPLY_JSON" ;;
    esac
}
get() { csi controller ControllerGetVolume "$(csi_json '{volume_id: $id}' --arg id "$VOLUME_ID")"; }
full() { stats && [ "$(usage BYTES "$1")" -ge "$2" ]; }

csi node NodeGetCapabilities '{}'
same the_node_tells_conditions "$(jq -r '.capabilities[].rpc.type' <<<"$REPLY_JSON" | grep -c VOLUME_CONDITION)" 1
create_volume pvc-health-$$ 1073741824 || die "CreateVolume: $(said)"
stage && publish || die "stage: $(said)"

# ---- well ----
stats
same a_healthy_one "$CSI_CODE/$(abnormal)" OK/false
same says_so "$(jq -r '.volumeCondition.message != ""' <<<"$REPLY_JSON")" true
same its_size_is_its_quota "$(usage BYTES total)" 1073741824
same nothing_is_used "$(usage BYTES used)" 0
for i in 1 2 3 4 5 6 7 8 9 10; do head -c 4194304 /dev/zero >"$TARGET/f$i"; done
sync -f "$TARGET"
check what_is_written_is_used wait_for 30 full used 41943040
same and_not_available "$(usage BYTES available)" $((1073741824 - $(usage BYTES used)))
same files_are_counted "$(($(usage INODES used) >= 10 && $(usage INODES used) <= 12))" 1
csi controller ControllerExpandVolume "$(csi_json '{volume_id: $id, secrets: $secrets,
    capacity_range: {required_bytes: 2147483648}}' --arg id "$VOLUME_ID")"
code expanded OK
stats
same the_new_size_shows_at_once "$(usage BYTES total)" 2147483648
stats "$TMP/mnt/pod/none"
code where_it_is_not NOT_FOUND
get
same the_controller_finds_it_well "$(jq -r '.status.volumeCondition.abnormal // false' <<<"$REPLY_JSON")/$CSI_CODE" false/OK
csi controller ListVolumes '{}'
same and_in_the_list "$(jq -r '.entries[0].status.volumeCondition.message != null' <<<"$REPLY_JSON")" true

# ---- hearthd gone ----
end hearthd KILL
stats
same an_answer_all_the_same "$CSI_CODE" OK
tells hearthd_is_gone "hearthd is not running"
start_hearthd
stats
tells and_came_back_without_it "no longer serves"
publish || die "publish: $(said)"
stats
same published_anew_it_is_well "$(abnormal)" false

# ---- Ceph gone ----
"$ONE_NODE" stop "$CEPH_DIR" >/dev/null 2>&1
CSI_TIMEOUT=30
stats
same without_ceph_an_answer_in_time "$CSI_CODE/$((SECONDS - CSI_STARTED <= 15))" OK/1
tells ceph_does_not_answer "ceph status"
"$ONE_NODE" start "$CEPH_DIR" >/dev/null 2>&1 || die "Ceph does not start again"
well_again() { stats && [ "$(abnormal)" = false ]; }
check with_it_all_is_well_again wait_for 120 well_again

# ---- the subvolume gone ----
ceph_cmd fs subvolume rm hearthfs csi-vol-pvc-health-$$ --group_name csi --force >/dev/null 2>&1
root_gone() { stats && [ "$(abnormal)" = true ]; }
check a_removed_one_shows wait_for 60 root_gone
tells on_the_node "root"
get
same and_at_the_controller "$CSI_CODE/$(jq -r .status.volumeCondition.abnormal <<<"$REPLY_JSON")" OK/true
unpublish && unstage
check it_can_be_deleted delete_volume
get
code and_is_not_found_then NOT_FOUND
exit 0
