#!/bin/bash
# The controller is killed before and after each call it makes to Ceph, and at random times between;
# then the same call is repeated, or its opposite made. Ceph must hold exactly one object or none,
# and the audit must find nothing (promise 6). build/tools/ceph-faults.so does the killing.
#
#   OPERATIONS="create restore"    some of them
#   CRASH_FULL=1    every call before and after, repeated and reverted, and many random times: make
#                   check-crash. Else a sample that differs from run to run.
. "$(dirname "$0")/lib.sh"
. "$TOP/tests/integration/types.sh"
init
start_ceph
own_user

# An image counts as in use for this long after its client was killed, instead of 30 s.
ceph_cmd config set osd osd_client_watch_timeout 2 && at_exit ceph_cmd config rm osd osd_client_watch_timeout

ceph_cmd auth get-or-create client.journal-$$ mon 'allow r, profile rbd' mgr 'allow rw' \
    osd 'allow rw namespace=hearth tag cephfs metadata=hearthfs, allow rw namespace=csi tag cephfs metadata=hearthfs, profile rbd pool=rbd' \
    >/dev/null 2>&1 || die "no user for the journal"
at_exit "ceph_cmd auth rm client.journal-$$ >/dev/null 2>&1"
JOURNAL_ID=journal-$$ JOURNAL_KEY=$(ceph_cmd auth print-key client.journal-$$ 2>/dev/null)

FAULTS=$BUILD/tools/ceph-faults.so
# What stays in the process, or only reads on.
LOCAL='^(rados_(buffer_free|conf_set|create2|create_(read|write)_op|get_instance_id|ioctx_.*|nobjects_list_(next|close)|omap_get_.*|pool_lookup|read_op_omap_.*|release_(read|write)_op|set_pool_full_try|shutdown|write_op_(assert_exists|cmpext|cmpxattr|create|omap_.*|remove|setxattr|write_full))|rbd_(.*_cleanup|aio_(create_completion|release|wait_for_complete)|get_(create_timestamp|features|id|overlap|size)|image_options_.*|snap_(get_namespace_type|list|list_end)))$'
same every_call_to_ceph_is_a_fault_point "$(comm -13 <(nm -D --defined-only "$FAULTS" | awk '{print $3}' | sort) \
    <(nm -D --undefined-only "$BUILD/hearth-csi" | awk '{print $2}' | grep -E '^(rados|rbd|ceph)_' | grep -vE "$LOCAL" | sort))" ""

request() { csi_json "$@" --arg id "$(id_of "$n")" --arg source "$SOURCE_ID" --arg name "$n" --arg snapshot "$(snapshot_id_of "$n")"; }
new_volume() { create_request "$n" 1073741824 '{}'; }
copy_of() { new_volume | jq -c --arg id "$1" ".volume_content_source = $2"; }

# What each operation does, what undoes it, and what has to be there before. A volume is $n, $source
# one that stays, with a snapshot of its name; images are also copied into another pool.
op_create() { csi controller CreateVolume "$(new_volume)"; }
op_delete() { csi controller DeleteVolume "$(request '{volume_id: $id, secrets: $secrets}')"; }
op_expand() { csi controller ControllerExpandVolume "$(request '{volume_id: $id, capacity_range: {required_bytes: 2147483648}, secrets: $secrets}')"; }
op_snapshot() { csi controller CreateSnapshot "$(request '{source_volume_id: $source, name: $name, secrets: $secrets}')"; }
op_unsnapshot() { csi controller DeleteSnapshot "$(request '{snapshot_id: $snapshot, secrets: $secrets}')"; }
op_restore() { csi controller CreateVolume "$(copy_of "$SOURCE_SNAPSHOT" '{snapshot: {snapshot_id: $id}}')"; }
op_clone() { csi controller CreateVolume "$(copy_of "$SOURCE_ID" '{volume: {volume_id: $id}}')"; }
# Of $source and $second.
op_group() { csi controller CreateVolumeGroupSnapshot "$(request '{name: $name, source_volume_ids: [$source, $second], secrets: $secrets}' --arg second "$SECOND_ID")"; }
op_ungroup() { csi controller DeleteVolumeGroupSnapshot "$(request '{group_snapshot_id: $group, secrets: $secrets}' --arg group "h1~group~$TYPE~$ID_PLACE~csi-vol-group-$n")"; }
# A volume that ceph-csi has made, with what its journal has of one; it is deleted alone.
at_journal() { timeout -k 5 30 rados -c "$CEPH_CONF" -p "$JOURNAL_POOL" -N "$JOURNAL_NS" "$@"; }
adopted() { # -> $UUID $HANDLE of $n
    UUID=$(md5sum <<<"$n" | sed -E 's/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/\1-\2-\3-\4-\5/')
    HANDLE=$(printf '0001-%04x-%s-%016x-%s' ${#CEPH_FSID} "$CEPH_FSID" "$JOURNAL_NUMBER" "$UUID")
}
op_adopt() {
    adopted
    local theirs=csi-vol-$n-$UUID # a prefix and the UUID
    if [ "$TYPE" = rbd ]; then rbd_cmd create "rbd/$theirs" --size 32M; else ceph_cmd fs subvolume create hearthfs "$theirs" --group_name csi >/dev/null 2>&1; fi &&
        at_journal create "csi.volume.$UUID" && at_journal setomapval csi.volumes.default "csi.volume.$n" "$UUID" &&
        at_journal setomapval "csi.volume.$UUID" csi.volname "$n" && at_journal setomapval "csi.volume.$UUID" csi.imagename "$theirs"
}
op_disown() {
    adopted
    csi controller DeleteVolume "$(request '{volume_id: $handle, secrets: $secrets}' --arg handle "$HANDLE")"
}
in_journal() { { at_journal ls | grep '^csi\.'; at_journal listomapkeys csi.volumes.default 2>/dev/null; } | grep -cE -- "$UUID|$n\$"; }
declare -A UNDO=([create]=delete [delete]=create [expand]=delete [snapshot]=unsnapshot
    [unsnapshot]=snapshot [restore]=delete [clone]=delete [group]=ungroup [ungroup]=group [disown]=disown)
declare -A BEFORE=([delete]=create [expand]=create [unsnapshot]=snapshot [ungroup]=group [disown]=adopt)
# The volumes and snapshots of the name that are there afterwards; records are as many, but for a group's own.
declare -A LEAVES=([create]=1 [delete]=0 [expand]=1 [snapshot]=1 [unsnapshot]=0 [restore]=1 [clone]=1 [group]=2 [ungroup]=0 [disown]=0)
declare -A RECORDS=([group]=3)

# As a sidecar repeats it: ABORTED means that a copy or the crashed call's own work goes on.
until_done() { # OPERATION
    local tries=0
    until "op_$1"; do
        is_pending || [ "$CSI_CODE" = FAILED_PRECONDITION ] || return 1
        [ $((tries += 1)) -lt 80 ] || return 1
        # Ceph may list a client that was killed for longer than it should.
        case $tries,$CSI_MESSAGE in 40,*"in use by the client"*)
            echo "     $TYPE $1: a client that died is still listed after 8 s; the OSD peers again"
            ceph_cmd osd down 0 && wait_for 60 pgs_are_clean ;;
        esac
        is_pending || sleep 0.2
    done
}

with_faults() { # before:N|after:N or nothing
    end controller KILL
    CONTROLLER_WITH=(env "LD_PRELOAD=$FAULTS" "CEPH_FAULT=$1")
    start_controller --secret-dir="$TMP/own"
    CONTROLLER_WITH=()
}
restarted() {
    end controller KILL
    start_controller --secret-dir="$TMP/own"
}

# After the crash: the operation again or its opposite; then what Ceph has, in its own words.
settle() { # OPERATION repeat|undo WHERE
    local op=$1 last=$1 got
    [ "$2" = repeat ] || last=${UNDO[$op]}
    if ! until_done "$last"; then
        bad+="$3, then $last: $(said); "
        return
    fi
    case $op in
    snapshot | unsnapshot) got=$(snapshots "$source" | grep -cxF "csi-snap-$n") ;;
    group | ungroup) got=$({ snapshots "$source"; snapshots "$second"; } | grep -cE "^csi-vol-group-$n-[0-9a-f]{8}-[01]\$") ;;
    *) got=$(objects "csi-vol-$n" | wc -l) ;;
    esac
    [ "$got" = "${LEAVES[$last]}" ] || bad+="$3, then $last: $got objects; "
    [ "$last" != expand ] || [ "$(bytes_of "$n")" = 2147483648 ] || bad+="$3, then $last: $(bytes_of "$n") bytes; "
    got=$(records "$n" | grep -vc '^copied\.') # a complete copy has that note besides
    [ "$got" = "${RECORDS[$last]:-${LEAVES[$last]}}" ] || bad+="$3, then $last: $got records; "
    [ "$last" != disown ] || [ "$(in_journal)" = 0 ] || bad+="$3, then $last: ceph-csi's journal still has it; "
    audit >/dev/null || bad+="$3, then $last: $(grep -vE '^TYPE' "$TMP/audit.json" | tail -n 3) $(tail -n 2 "$TMP/log/audit.log"); "
    # Away with it.
    case $op in snapshot | unsnapshot) until_done unsnapshot ;; group | ungroup) until_done ungroup ;; disown) : ;; *) until_done delete ;; esac ||
        bad+="$3, then $last, then away: $(said); "
}

RANDOM_TIMES=${CRASH_FULL:+20} RANDOM_TIMES=${RANDOM_TIMES:-2}
at_every_call() { # OPERATION
    local op=$1 call when after where turn pick ended= step=1
    bad=
    # A copy takes Ceph seconds.
    [ -n "${CRASH_FULL:-}" ] || case $op in restore | clone | *group | disown) step=5 ;; *) step=2 ;; esac
    for ((call = 1 + RANDOM % step; call < 90; call += step)); do
        turn=0 pick=$((RANDOM % 4))
        for when in before after; do
            for after in repeat undo; do
                # One of the four, unless all are wanted.
                [ -n "${CRASH_FULL:-}" ] || [ $((turn++)) = $pick ] || continue
                n=pvc-$op-$$-$call$when$after
                if [ -n "${BEFORE[$op]:-}" ]; then
                    restarted
                    until_done "${BEFORE[$op]}" || bad+="before: $(said); "
                    end controller KILL
                fi
                with_faults "$when:$call"
                until "op_$op" || [ "$CSI_CODE" != ABORTED ] || ! running controller; do :; done
                ended=$CSI_CODE
                where="$op, killed $when call $call"
                restarted
                settle "$op" $after "$where"
                [ "$ended" = NONE ] || break 3
            done
        done
    done 2>/dev/null # the shell's word on each kill
    [ "$ended" = OK ] || bad+="it never ended unharmed: $ended; "
    echo "     $LABEL $op: about $((call - 1)) calls to Ceph"
    same "${LABEL}_${op}_survives_a_crash_at_any_call" "$bad" ""
}

at_random_times() { # OPERATION TIMES
    local op=$1 i after caller
    bad=
    for ((i = 0; i < $2; i++)); do
        n=pvc-r$op-$$-$i
        after=$([ $((i % 2)) = 0 ] && echo repeat || echo undo)
        [ -z "${BEFORE[$op]:-}" ] || until_done "${BEFORE[$op]}" || bad+="before: $(said); "
        "op_$op" &
        caller=$!
        sleep "0.$(printf %03d $((RANDOM % 60)))"
        end controller KILL
        wait $caller
        restarted
        settle "$op" "$after" "$op, killed at a random time"
    done 2>/dev/null
    same "${LABEL}_${op}_survives_crashes_at_random_times" "$bad" ""
}

copied_across() {
    IMAGE_POOL=across-$$ LABEL=rbd_across
    ceph_cmd osd pool create "$IMAGE_POOL" 1 >/dev/null 2>&1 && ceph_cmd osd pool application enable "$IMAGE_POOL" rbd >/dev/null 2>&1 || die "no pool"
    at_exit "ceph_cmd osd pool rm $IMAGE_POOL $IMAGE_POOL --yes-i-really-really-mean-it >/dev/null 2>&1"
    use_type rbd
    for op in restore clone; do
        [[ " ${OPERATIONS:-$op} " != *" $op "* ]] || at_every_call $op
    done
    same rbd_across_nothing_is_left "$(objects "-$$")$(records "-$$")" ""
    IMAGE_POOL=rbd LABEL=rbd
    use_type rbd
}

# Of subvolumes they need Ceph 19: cephfs_group.
grouped() {
    second=pvc-second-$$ n=pvc-second-$$
    op_create || die "CreateVolume: $(said)"
    SECOND_ID=$(id_of "$second")
    for op in group ungroup; do
        [[ " ${OPERATIONS:-$op} " != *" $op "* ]] || at_every_call $op
    done
    restarted
    n=$second
    until_done delete || fail rbd_the_second_source_goes "$(said)"
}

# By a user who may write in ceph-csi's journal (migration.md, section 1).
deleted_for_ceph_csi() {
    [[ " ${OPERATIONS:-disown} " = *" disown "* ]] || return 0
    local PROVISIONER_ID=$JOURNAL_ID PROVISIONER_KEY=$JOURNAL_KEY
    case $TYPE in
    cephfs) JOURNAL_POOL=hearthfs.meta JOURNAL_NS=csi JOURNAL_NUMBER=$(ceph_cmd fs dump --format json 2>/dev/null | jq '.filesystems[] | select(.mdsmap.fs_name == "hearthfs").id') ;;
    rbd) JOURNAL_POOL=rbd JOURNAL_NS='' JOURNAL_NUMBER=$(ceph_cmd osd pool ls detail --format json 2>/dev/null | jq '.[] | select(.pool_name == "rbd").pool_id') ;;
    esac
    at_every_call disown
}

for type in $(types); do
    use_type "$type"
    LABEL=$type
    restarted
    n=pvc-source-$$ source=pvc-source-$$
    op_create || die "CreateVolume: $(said)"
    SOURCE_ID=$(id_of "$source") SOURCE_SNAPSHOT=$(snapshot_id_of "$source")
    op_snapshot || die "CreateSnapshot: $(said)"
    for op in ${OPERATIONS:-create delete expand snapshot unsnapshot restore clone}; do
        [[ $op = *group || $op = disown ]] || at_every_call $op
    done
    [ "$type" != rbd ] || copied_across
    [ "$type" != rbd ] || grouped
    deleted_for_ceph_csi
    restarted
    for op in create delete snapshot ${CRASH_FULL:+clone}; do
        at_random_times $op "$RANDOM_TIMES"
    done
    n=$source
    until_done unsnapshot && until_done delete || fail "${TYPE}_the_source_goes" "$(said)"
    same "${type}_nothing_is_left" "$(objects "-$$")$(records "-$$")" ""
done
exit 0
