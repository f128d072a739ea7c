#!/bin/bash
# A pool that is full: volumes, snapshots and what copies depend on are deleted there, and what librbd cannot remove is not
# said to be gone (promise 6).
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
quota() { ceph_cmd osd pool set-quota rbd max_bytes "$1" >/dev/null 2>&1; }
is_full() { ceph_cmd osd pool ls detail --format json | jq -e '.[] | select(.pool_name == "rbd").flags_names | contains("full")' >/dev/null; }
is_not_full() { ! is_full; }
full() {
    quota 1
    wait_for 60 is_full || die "the pool does not get full"
}
emptied() {
    quota 0
    wait_for 60 is_not_full || die "the pool stays full"
}
at_exit 'quota 0; wait_for 60 is_not_full'
with_data() { # PVC
    create_image "$1" 33554432 || die "$(said)"
    fill "csi-vol-$1" some-text
}
deleted() { # NAME ID
    VOLUME_ID=$2
    delete_volume
    code "$1" OK
}

# ---- before the first removal in the pool
with_data pvc-first-$$
rados -c "$CEPH_CONF" -p rbd rm rbd_trash 2>/dev/null
full
delete_volume
code what_cannot_be_removed RESOURCE_EXHAUSTED
same is_there_with_its_record "$(images pvc-first-$$) $(records pvc-first-$$)" "csi-vol-pvc-first-$$ vol.csi-vol-pvc-first-$$"
emptied
deleted and_goes_later "$VOLUME_ID"

# ---- after it
with_data pvc-plain-$$
plain=$VOLUME_ID
with_data pvc-kept-$$
kept=$VOLUME_ID
snapshot snap-$$ || die "$(said)"
with_data pvc-parent-$$
parent=$VOLUME_ID
clone pvc-child-$$ 33554432 "$parent" || die "$(said)"
child=$VOLUME_ID
full
create_image pvc-new-$$ 33554432
code a_new_volume_has_no_room RESOURCE_EXHAUSTED
deleted a_volume "$plain"
deleted one_with_a_snapshot "$kept"
unsnapshot
code the_snapshot OK
deleted one_with_a_copy "$parent"
deleted the_copy "$child"
deleted what_was_not_made "$(sed s/pvc-plain/pvc-new/ <<<"$plain")"
emptied
same nothing_is_left "$(left)" ""
exit 0
