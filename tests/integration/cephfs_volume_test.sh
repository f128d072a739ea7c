#!/bin/bash
# The main job, once through: a volume's whole life, every call made twice, and nothing left.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth

left() { # what Ceph holds of volumes: subvolumes and name records
    ceph_cmd fs subvolume ls hearthfs --group_name csi --format json 2>/dev/null | jq -r '.[].name'
    local pool
    for pool in hearthfs.meta hearthfs.data; do
        timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p "$pool" -N hearth ls 2>/dev/null
    done
}

name=pvc-life-$RANDOM
before=$(left)

check plugin_info csi controller GetPluginInfo '{}'
same plugin_name "$(jq -r .name <<<"$REPLY_JSON")" csi.hearth.dev
for role in controller node; do
    csi $role Probe '{}'
    same "probe_of_$role" "$CSI_CODE$CSI_MESSAGE" OK
done

create_volume $name 1073741824 || die "CreateVolume: $(said)"
pass create
at_exit delete_volume '>/dev/null'
same capacity_is_told "$(jq -r .volume.capacityBytes <<<"$REPLY_JSON")" 1073741824
first=$VOLUME_ID
create_volume $name 1073741824
same create_again_gives_the_same_volume "$VOLUME_ID" "$first"
csi controller CreateVolume "$(create_request $name 2147483648 '{}')"
same create_again_with_another_size_is_refused "$CSI_CODE" ALREADY_EXISTS
case $(left) in *"$name"*) pass subvolume_bears_the_name ;; *) fail subvolume_bears_the_name "Ceph lists $(left)" ;; esac

stage || die "NodeStageVolume: $(said)"
pass stage
check stage_again stage
publish || die "NodePublishVolume: $(said)"
pass publish
check publish_again publish

same quota_is_the_size_of_the_file_system "$(df -B1 --output=size "$TARGET" | tail -n 1 | tr -d ' ')" 1073741824
check write cp /bin/bash "$TARGET/program"
check read_back cmp /bin/bash "$TARGET/program"
second_client
talk client size /program
same ceph_has_the_bytes "$ANSWER" "$(stat -c %s /bin/bash)"
drop_page_cache
check read_from_ceph cmp /bin/bash "$TARGET/program"
drop_page_cache
check read_from_cache cmp /bin/bash "$TARGET/program"

# Written and closed without a sync, so hearthd keeps an eye on what becomes of its writes.
in_ceph() { # FILE'S NUMBER: has objects there
    timeout 30 rados -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin -p hearthfs.data --all ls 2>/dev/null | grep -q "\b$(printf %x "$1")\."
}
not_in_ceph() { ! in_ceph "$1"; }
cp /bin/bash "$TARGET/removed"
number=$(stat -c %i "$TARGET/removed")
wait_for 60 in_ceph "$number" || fail what_was_in_a_removed_file_leaves_ceph "it was never there"
rm "$TARGET/removed"
check what_was_in_a_removed_file_leaves_ceph wait_for 100 not_in_ceph "$number"

csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $path}' --arg id "$VOLUME_ID" --arg path "$TARGET")"
same stats_total "$(jq -r '.usage[] | select(.unit == "BYTES") | .total' <<<"$REPLY_JSON")" 1073741824
same stats_are_not_negative "$(jq "[.usage[] | (.available, .used, .total) // 0 | select(. < 0)] | length" <<<"$REPLY_JSON")" 0
same status_knows_the_volume "$(volume_stat attached)" true

READONLY=true TARGET=$TMP/mnt/pod/readonly publish || fail publish_read_only "$(said)"
if touch "$TMP/mnt/pod/readonly/x" 2>/dev/null; then
    fail read_only_publish_cannot_be_written "touch succeeded"
else
    pass read_only_publish_cannot_be_written
fi
TARGET=$TMP/mnt/pod/readonly unpublish || fail unpublish_read_only "$(said)"
check other_target_is_untouched cmp /bin/bash "$TARGET/program"

check unpublish unpublish
check unpublish_again unpublish
same target_is_gone "$(ls -d "$TARGET" 2>/dev/null)" ""
check unstage unstage
check unstage_again unstage
same no_mount_is_left "$(mounts_below "$TMP")" ""

stage && publish || fail stage_after_unstage "$(said)"
check bytes_survive_unstaging cmp /bin/bash "$TARGET/program"
unpublish && unstage || fail unstage_again_after_restaging "$(said)"

check delete delete_volume
check delete_again delete_volume
same nothing_is_left_in_ceph "$(left)" "$before"
same hearthd_has_forgotten_the_volume "$(hearthctl status --json | jq '.volumes | length')" 0
