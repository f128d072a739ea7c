#!/bin/bash
# hearth-csi audit on a real Ceph: it finds what is planted on either side, changes nothing unless
# told to, fixes what is safe, and removes what may hold data only by its name.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"

n=pvc-audit-$$
meta() { timeout 30 rados -c "$CEPH_DIR/ceph.conf" -p hearthfs.meta -N hearth "$@"; }
of() { grep -F -- "-audit-$$" <<<"$1"; }
found() { audit "$@" --format json >/dev/null; of "$(jq -r '.findings[] | .problem + " " + .name' "$TMP/audit.json")" | sort; }
put() { meta get "vol.csi-vol-$n" - | jq -c "$2" | meta put "$1" -; } # NAME FILTER: a record like the volume's

create_volume $n 1073741824 || die "CreateVolume: $(said)"
csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' --arg id "$VOLUME_ID" --arg name "snap-audit-$$")" ||
    die "CreateSnapshot: $(said)"
SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
same nothing_after_calls_that_ended "$(found)" ""

# One of each; ceph-csi's and somebody's own are none of ours.
put "vol.csi-vol-gone-audit-$$" '.requestName = "gone-audit-'$$'" | .created = "2024-01-01T00:00:00Z"'
put "vol.csi-vol-young-audit-$$" '.requestName = "young-audit-'$$'"'
meta get "snap.csi-snap-snap-audit-$$" "$TMP/record"
jq -c '.requestName = "lost-audit-'$$'" | .created = "2024-01-01T00:00:00Z"' "$TMP/record" | meta put "snap.csi-snap-lost-audit-$$" -
echo '{' | meta put "vol.csi-vol-bad-audit-$$" -
for name in csi-vol-foreign-audit-$$ home-audit-$$ "csi-vol-$(</proc/sys/kernel/random/uuid)"; do
    ceph_cmd fs subvolume create hearthfs "$name" --group_name csi
done
at_exit ceph_cmd fs subvolume rm hearthfs home-audit-$$ --group_name csi
at_exit ceph_cmd fs subvolume rm hearthfs "$name" --group_name csi
for name in csi-snap-foreign-audit-$$ by-hand-audit-$$ hearth-clone-csi-vol-none-audit-$$; do
    ceph_cmd fs subvolume snapshot create hearthfs csi-vol-$n "$name" --group_name csi
done
same finds_each "$(found)" "$(sort <<END
record-without-volume hearthfs/csi/csi-vol-gone-audit-$$
record-without-volume hearthfs/csi/csi-vol-young-audit-$$
record-without-snapshot hearthfs/csi/csi-vol-$n@csi-snap-lost-audit-$$
record-damaged hearthfs/csi/csi-vol-bad-audit-$$
volume-without-record hearthfs/csi/csi-vol-foreign-audit-$$
snapshot-without-record hearthfs/csi/csi-vol-$n@csi-snap-foreign-audit-$$
copy-snapshot hearthfs/csi/csi-vol-$n@hearth-clone-csi-vol-none-audit-$$
END
)"
audit >/dev/null
same its_status_says_so $? 3
same and_looking_changed_nothing "$(found | wc -l)" 7
audit >"$TMP/table"
check a_table_by_default grep -q '^TYPE  *PROBLEM  *NAME  *AGE' "$TMP/table"
check with_ages grep -qE "csi-vol-gone-audit-$$ +[0-9]{3,}d " "$TMP/table"

same repair_does_what_is_safe_and_old "$(found --repair >/dev/null; found)" "$(sort <<END
record-without-volume hearthfs/csi/csi-vol-young-audit-$$
record-damaged hearthfs/csi/csi-vol-bad-audit-$$
volume-without-record hearthfs/csi/csi-vol-foreign-audit-$$
snapshot-without-record hearthfs/csi/csi-vol-$n@csi-snap-foreign-audit-$$
END
)"
found --repair --min-age 0 >/dev/null
check under_the_names_of_the_last_release_too jq -e \
    '.findings | length > 0 and all(.fix == .mend and .fixed == .mended)' "$TMP/audit.json"
same the_young_when_told "$(found | grep -c young)" 0
audit --remove hearthfs/csi/csi-vol-none >/dev/null
same a_name_of_nothing $? 1
audit --remove hearthfs/csi/csi-vol-foreign-audit-$$ --remove "hearthfs/csi/csi-vol-$n@csi-snap-foreign-audit-$$" >/dev/null
same data_goes_by_its_name "$(found)" "record-damaged hearthfs/csi/csi-vol-bad-audit-$$"
same and_only_it "$(ceph_cmd fs subvolume ls hearthfs --group_name csi --format json | jq -r '.[].name' | grep -F "audit-$$" | sort)" \
    "$(printf '%s\n' csi-vol-$n home-audit-$$)"
same and_snapshots_of_others_stay "$(ceph_cmd fs subvolume snapshot ls hearthfs csi-vol-$n --group_name csi --format json | jq -r '.[].name' | sort)" \
    "$(printf '%s\n' by-hand-audit-$$ csi-snap-snap-audit-$$)"
meta rm "vol.csi-vol-bad-audit-$$"
ceph_cmd fs subvolume snapshot rm hearthfs csi-vol-$n by-hand-audit-$$ --group_name csi

csi controller DeleteSnapshot "$(csi_json '{snapshot_id: $id, secrets: $secrets}' --arg id "$SNAPSHOT_ID")"
delete_volume
same nothing_is_left "$(found)" ""

# ---- what it says of what it cannot do ----
audit_with() { "$BUILD/hearth-csi" audit "$@" >"$TMP/out" 2>"$TMP/err"; }
audit_with --cluster-config "$TMP/config.json"
same without_a_user "$?/$(grep -q -- --secret-dir "$TMP/err" && echo told)" 1/told
audit_with --cluster-config "$TMP/none.json" --secret-dir "$TMP/own"
same without_a_configuration "$?/$(grep -q none.json "$TMP/err" && echo told)" 1/told
audit_with --min-age soon
same wrong_usage $? 2
jq '. + [{clusterID: "away", monitors: ["127.0.0.1:1"]}]' "$CEPH_DIR/config.json" >"$TMP/two.json"
audit_with --cluster-config "$TMP/two.json" --secret-dir "$TMP/own" --format json
same a_cluster_that_is_away_is_told_of "$?/$(jq -r '.errors[0] | test("away")' "$TMP/out")" 1/true
same and_the_other_is_looked_at "$(jq '.looked.places > 0' "$TMP/out")" true
check and_no_key_is_shown bash -c '! grep -qF "$PROVISIONER_KEY" "$0/out" "$0/err"' "$TMP"

# ---- directories ----
mkdir "$TMP/dirs"
mkdir "$TMP/dirs/csi-vol-lost"
audit_with --cluster-config "$TMP/none.json" --dir-root "$TMP/dirs" --format json
same of_type_dir_too "$?/$(jq -r '.findings[].problem' "$TMP/out")" 3/volume-without-record
exit 0
