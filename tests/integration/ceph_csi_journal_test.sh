#!/bin/bash
# Volumes and snapshots of ceph-csi, with its journal as it lays it down (internal/journal/voljournal.go):
# deleted, with what the journal has of them and nothing else; snapshotted, cloned, restored.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
# The provisioner of ceph-csi's documents (docs/capabilities.md), and one without rights on the journal.
ceph_cmd auth get-or-create client.ceph-csi-$$ mon 'allow r, profile rbd' mgr 'allow rw' mds 'allow *' \
    osd 'allow rw tag cephfs metadata=*, allow rw tag cephfs data=*, profile rbd' >/dev/null 2>&1
ceph_cmd auth get-or-create client.narrow-$$ mon 'allow r' mgr 'allow rw' osd 'allow rw namespace=hearth tag cephfs metadata=hearthfs' >/dev/null 2>&1
at_exit "ceph_cmd auth rm client.ceph-csi-$$ >/dev/null 2>&1; ceph_cmd auth rm client.narrow-$$ >/dev/null 2>&1"
NARROW_ID=narrow-$$ NARROW_KEY=$(ceph_cmd auth print-key client.narrow-$$ 2>/dev/null)
PROVISIONER_ID=ceph-csi-$$ PROVISIONER_KEY=$(ceph_cmd auth print-key client.ceph-csi-$$ 2>/dev/null)
own_user
start_controller --secret-dir="$TMP/own"
ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1

# ---- ceph-csi's side
uuid() { cat /proc/sys/kernel/random/uuid; }
FS_NUMBER=$(ceph_cmd fs dump --format json 2>/dev/null | jq '.filesystems[] | select(.mdsmap.fs_name == "hearthfs").id')
pool_number() { ceph_cmd osd pool ls detail --format json 2>/dev/null | jq ".[] | select(.pool_name == \"$1\").pool_id"; }
RBD_NUMBER=$(pool_number rbd)
handle() { printf '0001-%04x-%s-%016x-%s' ${#CEPH_FSID} "$CEPH_FSID" "$NUMBER" "$1"; }
at_journal() { timeout -k 5 30 rados -c "$CEPH_CONF" -p "${IN_POOL:-$JOURNAL_POOL}" -N "$JOURNAL_NS" "$@"; }
journal_of() { # KIND UUID NAME REQUEST [KEY VALUE]...
    local object=csi.$1.$2 name_key=csi.volname directory=csi.volumes.default kind=$1 uuid=$2 name=$3 request=$4
    [ "$kind" = snap ] && name_key=csi.snapname directory=csi.snaps.default
    shift 4
    at_journal create "$object" && at_journal setomapval $directory "csi.$kind.$request" "$uuid" &&
        at_journal setomapval "$object" $name_key "$request" && at_journal setomapval "$object" csi.imagename "$name" || die "journal"
    while [ $# -gt 1 ]; do
        at_journal setomapval "$object" "$1" "$2" || die "journal"
        shift 2
    done
}
# What the journal has: objects and keys with this test's mark or UUID.
journal_has() { # WORDS...
    {
        at_journal ls | grep '^csi\.'
        at_journal listomapkeys csi.volumes.default 2>/dev/null
        at_journal listomapkeys csi.snaps.default 2>/dev/null
    } | grep -cE -- "$(tr ' ' '|' <<<"$*")"
}
cephfs() { TYPE=cephfs NUMBER=$FS_NUMBER JOURNAL_POOL=hearthfs.meta JOURNAL_NS=csi; }
images_() { TYPE=rbd NUMBER=$RBD_NUMBER JOURNAL_POOL=rbd JOURNAL_NS=''; }
make_data() { # NAME: a volume with text in it
    if [ $TYPE = rbd ]; then
        rbd_cmd create "rbd/$1" --size 32M && fill "$1" "text-of-$1" || die "rbd create"
    else
        ceph_cmd fs subvolume create hearthfs "$1" --group_name csi --size 1073741824 >/dev/null 2>&1
        ROOT_PATH=$(ceph_cmd fs subvolume getpath hearthfs "$1" --group_name csi 2>/dev/null)
        second_client
        talk client fill file 1000 7
        talk_end client
    fi
}
there() { # NAME
    if [ $TYPE = rbd ]; then images "$1"; else ceph_cmd fs subvolume getpath hearthfs "$1" --group_name csi 2>/dev/null; fi
}
snapshots_of() { if [ $TYPE = rbd ]; then snaps "$1"; else ceph_cmd fs subvolume snapshot ls hearthfs "$1" --group_name csi 2>/dev/null; fi; }
has_text() { # NAME OF: a volume of Hearth's has the text of another
    if [ $TYPE = rbd ]; then
        rbd_cmd export --no-progress "rbd/$1" - 2>/dev/null | head -c 60 | grep -acF "text-of-$2"
    else
        ROOT_PATH=$(ceph_cmd fs subvolume getpath hearthfs "$1" --group_name csi 2>/dev/null)
        second_client
        talk client size file
        talk_end client
        grep -c 1000 <<<"$ANSWER"
    fi
}
volume() { # [KEY VALUE]...: of ceph-csi -> $UUID $NAME $VOLUME_ID
    UUID=$(uuid)
    NAME=csi-vol-$UUID
    make_data "$NAME"
    journal_of volume "$UUID" "$NAME" "pvc-$UUID" csi.volume.owner team "$@"
    VOLUME_ID=$(handle "$UUID")
}
ceph_csi_snapshot() { # -> $SNAP_UUID $SNAPSHOT_ID, of $NAME
    SNAP_UUID=$(uuid)
    local name=csi-snap-$SNAP_UUID
    if [ $TYPE = rbd ]; then
        rbd_cmd snap create --no-progress "rbd/$NAME@$name" && rbd_cmd clone --rbd-default-clone-format 2 "rbd/$NAME@$name" "rbd/$name" &&
            rbd_cmd snap rm --no-progress "rbd/$NAME@$name" && rbd_cmd snap create --no-progress "rbd/$name@$name" || die "a snapshot of ceph-csi"
    else
        ceph_cmd fs subvolume snapshot create hearthfs "$NAME" "$name" --group_name csi >/dev/null 2>&1 || die "a snapshot of ceph-csi"
    fi
    journal_of snap "$SNAP_UUID" "$name" "snapshot-$SNAP_UUID" csi.source "$NAME" "$@"
    SNAPSHOT_ID=$(handle "$SNAP_UUID")
}

# ---- Hearth's
create_from() { # NAME SOURCE-JSON -> $COPY
    if [ $TYPE = rbd ]; then
        COPY_REQUEST=$(image_request "$1" 33554432 '{}' "{\"volume_content_source\": $2}")
    else
        COPY_REQUEST=$(create_request "$1" 1073741824 '{}' | jq -c --argjson s "$2" '.volume_content_source = $s')
    fi
    pending csi controller CreateVolume "$COPY_REQUEST" || return 1
    COPY=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
}
delete() { pending csi controller DeleteVolume "$(csi_json '{volume_id: $id, secrets: $secrets}' --arg id "$1")"; }
drop() { delete "$1" || fail "${TYPE}_drop" "$(said)"; }
of_volume() { echo "{\"volume\": {\"volume_id\": \"$1\"}}"; }
of_snapshot() { echo "{\"snapshot\": {\"snapshot_id\": \"$1\"}}"; }
source_said() { jq -r '.volume.contentSource | .snapshot.snapshotId // .volume.volumeId' <<<"$REPLY_JSON"; }

for set_type in cephfs images_; do
    $set_type
    n=csi-vol-pvc
    # Its neighbour stays as it is all along.
    volume
    NEIGHBOUR=$NAME NEIGHBOUR_UUID=$UUID

    # ---- deleted
    volume
    delete "$VOLUME_ID"
    code ${TYPE}_is_deleted OK
    same ${TYPE}_its_data_is_gone "$(there "$NAME")" ""
    same ${TYPE}_and_what_the_journal_had "$(journal_has "$UUID")" 0
    delete "$VOLUME_ID"
    code ${TYPE}_deleting_it_again_is_fine OK
    same ${TYPE}_its_neighbour_is_there "$(there "$NEIGHBOUR" | wc -l)/$(journal_has "$NEIGHBOUR_UUID")" 1/2
    # Cut short behind the data.
    volume
    if [ $TYPE = rbd ]; then rbd_cmd rm --no-progress "rbd/$NAME"; else ceph_cmd fs subvolume rm hearthfs "$NAME" --group_name csi >/dev/null 2>&1; fi
    delete "$VOLUME_ID"
    same ${TYPE}_a_deletion_that_was_cut_goes_on "$CSI_CODE/$(journal_has "$UUID")" OK/0
    # Its request's name belongs to a later volume.
    volume
    at_journal setomapval csi.volumes.default "csi.volume.pvc-$UUID" "$NEIGHBOUR_UUID"
    delete "$VOLUME_ID"
    same ${TYPE}_a_name_that_another_has_stays "$CSI_CODE/$(at_journal getomapval csi.volumes.default "csi.volume.pvc-$UUID" - 2>/dev/null | grep -ac "$NEIGHBOUR_UUID")" OK/1
    at_journal rmomapkey csi.volumes.default "csi.volume.pvc-$UUID"
    # Not ceph-csi's, and what only ceph-csi can delete.
    volume
    at_journal rm "csi.volume.$UUID"
    delete "$VOLUME_ID"
    says ${TYPE}_what_the_journal_does_not_name_is_not_deleted FAILED_PRECONDITION "not in ceph-csi's journal"
    at_journal create "csi.volume.$UUID" && at_journal setomapval "csi.volume.$UUID" csi.imagename "$NAME"
    at_journal setomapval "csi.volume.$UUID" csi.volname "pvc-$UUID"
    at_journal setomapval "csi.volume.$UUID" csi.volume.encryptKMS kms
    delete "$VOLUME_ID"
    says ${TYPE}_an_encrypted_one_is_not FAILED_PRECONDITION "encrypted"
    same ${TYPE}_and_is_there "$(there "$NAME" | wc -l)/$(journal_has "$UUID")" 1/2
    at_journal rmomapkey "csi.volume.$UUID" csi.volume.encryptKMS
    drop "$VOLUME_ID"

    # A tenant that may write to the journal has it lead to other data.
    for name in "$NEIGHBOUR" "csi-vol-pvc-1" rbd_directory; do
        volume
        at_journal setomapval "csi.volume.$UUID" csi.imagename "$name"
        delete "$VOLUME_ID"
        says "${TYPE}_a_journal_that_leads_to_${name%%-[0-9a-f]*}_deletes_nothing" FAILED_PRECONDITION "which is not its name"
        at_journal setomapval "csi.volume.$UUID" csi.imagename "$NAME"
        drop "$VOLUME_ID"
    done
    same ${TYPE}_the_neighbour_is_there_still "$(there "$NEIGHBOUR" | wc -l)/$(journal_has "$NEIGHBOUR_UUID")" 1/2

    # ---- snapshotted and cloned by Hearth
    volume
    csi controller CreateSnapshot "$(csi_json '{source_volume_id: $id, name: $name, secrets: $secrets}' --arg id "$VOLUME_ID" --arg name "snap-$TYPE-$$")"
    same ${TYPE}_a_snapshot_of_it "$CSI_CODE/$(jq -r .snapshot.sourceVolumeId <<<"$REPLY_JSON")" "OK/$VOLUME_ID"
    SNAPSHOT_ID=$(jq -r .snapshot.snapshotId <<<"$REPLY_JSON")
    csi controller ListSnapshots "$(csi_json '{source_volume_id: $id}' --arg id "$VOLUME_ID")"
    same ${TYPE}_is_listed_by_its_handle "$(jq -r '.entries[].snapshot.snapshotId' <<<"$REPLY_JSON")" "$SNAPSHOT_ID"
    create_from pvc-clone-$TYPE-$$ "$(of_volume "$VOLUME_ID")"
    same ${TYPE}_a_clone_of_it "$CSI_CODE/$(source_said)/$(has_text $n-clone-$TYPE-$$ "$NAME")" "OK/$VOLUME_ID/1"
    csi controller CreateVolume "$COPY_REQUEST"
    code ${TYPE}_cloning_again_is_fine OK
    same ${TYPE}_and_what_it_was_cloned_through_is_gone "$(snapshots_of "$NAME" | grep -c hearth-clone)" 0
    drop "$COPY"
    create_from pvc-restore-$TYPE-$$ "$(of_snapshot "$SNAPSHOT_ID")"
    same ${TYPE}_restored "$CSI_CODE/$(has_text $n-restore-$TYPE-$$ "$NAME")" OK/1
    drop "$COPY"
    delete "$VOLUME_ID"
    same ${TYPE}_deleted_with_a_snapshot "$CSI_CODE/$(journal_has "$UUID")" OK/0
    create_from pvc-later-$TYPE-$$ "$(of_snapshot "$SNAPSHOT_ID")"
    same ${TYPE}_which_outlives_it "$CSI_CODE/$(has_text $n-later-$TYPE-$$ "$NAME")" OK/1
    drop "$COPY"
    unsnapshot
    same ${TYPE}_and_goes "$CSI_CODE/$(there "$NAME")" OK/

    # ---- ceph-csi's snapshots
    volume
    ceph_csi_snapshot
    csi controller ListSnapshots "$(csi_json '{snapshot_id: $id}' --arg id "$SNAPSHOT_ID")"
    same ${TYPE}_ceph_csis_snapshot_is_found "$(jq -r '.entries[].snapshot | "\(.snapshotId) \(.sourceVolumeId) \(.readyToUse)"' <<<"$REPLY_JSON")" "$SNAPSHOT_ID $VOLUME_ID true"
    create_from pvc-theirs-$TYPE-$$ "$(of_snapshot "$SNAPSHOT_ID")"
    same ${TYPE}_restored_from_it "$CSI_CODE/$(source_said)/$(has_text $n-theirs-$TYPE-$$ "$NAME")" "OK/$SNAPSHOT_ID/1"
    csi controller CreateVolume "$COPY_REQUEST"
    same ${TYPE}_restoring_again_is_fine "$CSI_CODE" OK
    if [ $TYPE = cephfs ]; then
        at_journal create "rt-backingsnapshot-$SNAPSHOT_ID"
        unsnapshot
        says ${TYPE}_one_that_volumes_show_stays FAILED_PRECONDITION "shown by volumes"
        at_journal rm "rt-backingsnapshot-$SNAPSHOT_ID"
    fi
    at_journal setomapval "csi.snap.$SNAP_UUID" csi.imagename "$NAME"
    unsnapshot
    says ${TYPE}_a_snapshot_that_leads_to_a_volume_deletes_nothing FAILED_PRECONDITION "which is not its name"
    same ${TYPE}_and_the_volume_is_there "$(there "$NAME" | wc -l)" 1
    at_journal setomapval "csi.snap.$SNAP_UUID" csi.imagename "csi-snap-$SNAP_UUID"
    # The volume goes first, as Kubernetes may do it.
    delete "$VOLUME_ID"
    same ${TYPE}_its_volume_goes_before_it "$CSI_CODE/$(journal_has "$UUID")" OK/0
    unsnapshot
    same ${TYPE}_ceph_csis_snapshot_is_deleted "$CSI_CODE/$(journal_has "$SNAP_UUID")" OK/0
    unsnapshot
    code ${TYPE}_and_again OK
    same ${TYPE}_what_was_restored_has_its_text "$(has_text $n-theirs-$TYPE-$$ "$NAME")" 1
    drop "$COPY"
    same ${TYPE}_nothing_of_either_is_left "$(there "$NAME")$(there "csi-snap-$SNAP_UUID")" ""
    drop "$(handle "$NEIGHBOUR_UUID")"
done

# ---- what only images have: the name of the request in another pool, a temporary image of a clone
ceph_cmd osd pool create journal-$$ 1 >/dev/null 2>&1 && ceph_cmd osd pool application enable journal-$$ rbd >/dev/null 2>&1 || die "no pool"
at_exit "ceph_cmd osd pool rm journal-$$ journal-$$ --yes-i-really-really-mean-it >/dev/null 2>&1"
volume csi.journalpool "$(printf '%016x' "$(pool_number journal-$$)")"
rbd_cmd create "rbd/$NAME-temp" --size 4M
at_journal rmomapkey csi.volumes.default "csi.volume.pvc-$UUID"
IN_POOL=journal-$$ at_journal setomapval csi.volumes.default "csi.volume.pvc-$UUID" "$(printf '%016x' "$RBD_NUMBER")/$UUID"
delete "$VOLUME_ID"
same a_name_in_another_pool_goes "$CSI_CODE/$(IN_POOL=journal-$$ journal_has "pvc-$UUID")" OK/0
same a_temporary_image_goes_too "$(images "$UUID")" ""

# ---- rights
cephfs
volume
csi controller DeleteVolume "$(PROVISIONER_ID=$NARROW_ID PROVISIONER_KEY=$NARROW_KEY csi_json '{volume_id: $id, secrets: $secrets}' --arg id "$VOLUME_ID")"
says a_user_without_rights_on_the_journal_is_told PERMISSION_DENIED "ceph-csi's journal"
same and_nothing_is_gone "$(there "$NAME" | wc -l)/$(journal_has "$UUID")" 1/2
drop "$VOLUME_ID"
same nothing_is_left "$(left)" ""
audit >/dev/null
same the_audit_finds_nothing $? 0
exit 0
