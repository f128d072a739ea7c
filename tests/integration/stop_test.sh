#!/bin/bash
# hearthd is asked to end (SIGTERM) while Ceph does not answer for one volume, then for none: it ends within 10 s, and what
# other volumes had written and not synced is in Ceph.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
LIMIT=12 # 10 s, and the time in which a busy machine ends a process
start_ceph --conf 'mon_allow_pool_size_one = true'
start_hearth
published_volume "pvc-stop-well-$$" 1073741824
second_client
WELL=$TARGET WELL_STAGE=$STAGE WELL_ID=$VOLUME_ID WELL_CONTEXT=$VOLUME_CONTEXT
STAGE=$TMP/mnt/stage-hung TARGET=$TMP/mnt/pod/hung
published_volume "pvc-stop-hung-$$" 1073741824
HUNG=$TARGET HUNG_STAGE=$STAGE HUNG_ID=$VOLUME_ID HUNG_CONTEXT=$VOLUME_CONTEXT
delete_volume() { :; } # they go with the cluster, which is this test's own
hung() { STAGE=$HUNG_STAGE TARGET=$HUNG VOLUME_ID=$HUNG_ID VOLUME_CONTEXT=$HUNG_CONTEXT; }
well() { STAGE=$WELL_STAGE TARGET=$WELL VOLUME_ID=$WELL_ID VOLUME_CONTEXT=$WELL_CONTEXT; }
remove_well() { well && remove_volume; }
at_exit remove_well
at_exit hung

STEP=setup
weak_pool
mkdir "$HUNG/weak"
talk_start weak "$BUILD/tools/cephfs-client" "$CEPH_CONF" admin "$CEPH_KEYRING" hearthfs "$ROOT_PATH" || die "no client of the hung volume"
weak_layout weak /weak
talk weak write /weak/cold COLD
talk_end weak

in_time() { # NAME
    local before=$SECONDS took
    end hearthd TERM 60
    took=$((SECONDS - before))
    if [ $took -le $LIMIT ]; then pass "$1"; else fail "$1" "it took $took s"; fi
}
said_at_the_end() { tac "$TMP/log/hearthd.log" | sed '/"msg":"stopping/q' | grep -qF "$1"; }
in_ceph() { # FILE TEXT
    talk client cat "/$1" || true
    same "what_was_not_synced_is_in_ceph_$1" "$ANSWER" "$2"
}
again() {
    start_hearthd
    for volume in hung well; do
        $volume
        wait_for 60 stage && publish || die "after $STEP: $(said)"
    done
}

STEP=all_well
printf one >"$WELL/one"
in_time it_ends
check and_says_so said_at_the_end '"stopped"'
in_ceph one one
again

STEP=one_hangs
echo early >"$HUNG/weak/unsynced" && sync -f "$HUNG" # a client asks an OSD of the pool once whether it may write
hang_weak
printf late | timeout 60 dd of="$HUNG/weak/unsynced" conv=notrunc status=none
cat "$HUNG/weak/cold" >/dev/null 2>&1 &
READER=$!
hung_read() { grep -q 'fuse\|folio' "/proc/$READER/stack"; }
check a_read_hangs wait_for 20 hung_read
printf two >"$WELL/two"
in_time it_ends_although_one_volume_hangs
check it_names_the_volume_that_hangs said_at_the_end "$HUNG_ID"
check and_no_other eval '! said_at_the_end "$WELL_ID"'
in_ceph two two
heal_weak
again
same its_files_are_there "$(cat "$HUNG/weak/cold")" COLD

STEP=all_hang
printf three >"$WELL/three"
stop_ceph
in_time it_ends_although_all_of_ceph_is_silent
continue_ceph
again
