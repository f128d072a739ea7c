#!/bin/bash
# Volumes at rest, which have no connection to Ceph, while something fails: the network of their node is cut, Ceph is away
# when they are used and unstaged, a placement group hangs, hearthd is frozen, and the MDS evicts every session.
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
network_up
start_ceph --address "$MACHINE" --conf 'mon_allow_pool_size_one = true'
node_network one
start_controller
start_hearthd_in one
start_node
weak_pool
VOLUMES=20 # more than may idle for long
create_volume "pvc-rest-$$" || die "CreateVolume: $(said)"
PARENT=$ROOT_PATH
delete_volume() { :; } # it goes with the cluster, which is this test's own
second_client
for ((i = 1; i <= VOLUMES; i++)); do
    talk client mkdir "d$i" && talk client write "d$i/file" "text of $i" || die "the second client: $ANSWER"
done
talk client mkdir d4/weak
weak_layout client /d4/weak
talk client write d4/weak/file hung || die "$ANSWER"

at() { # NUMBER: a PersistentVolume that shows one of the directories
    VOLUME_ID=rest-$$-$1 STAGE=$TMP/mnt/stage-$1 ROOT_PATH=$PARENT/d$1
    VOLUME_CONTEXT=$(static_context "$ROOT_PATH")
}
connections() { hearthctl status --json | jq .daemon.cephfsConnections; }
all_rest() { [ "$(connections)" = 0 ]; }
rests() { at "$1" && [ "$(volume_stat rests)" = true ]; }
reads() { # NUMBER FILE TEXT SECONDS
    at "$1"
    [ "$(timeout "$4" cat "$STAGE/$2")" = "$3" ]
}
for ((i = 1; i <= VOLUMES; i++)); do
    at $i
    stage && reads $i file "text of $i" 20 || die "volume $i: $(said)"
done
check all_rest wait_for 120 all_rest

# ---- the node's network is cut ----
link_down one
at 1
(cat "$STAGE/file" >"$TMP/cut.1" 2>&1) &
used=$!
sleep 5 # the use has begun, or it only sees less
talk client write d1/file "changed behind the cut" || fail cut "$ANSWER"
talk client write d2/file "changed behind the cut" || fail cut "$ANSWER"
link_up one
wait $used
same a_use_that_began_while_cut_off_reads_what_is_true "$(<"$TMP/cut.1")" "changed behind the cut"
check as_does_one_that_begins_later reads 2 file "changed behind the cut" 30

# ---- hearthd is frozen ----
check three_rests rests 3
kill -STOP "${PID[hearthd]}"
talk client write d3/file "changed meanwhile" || fail frozen "$ANSWER"
kill -CONT "${PID[hearthd]}"
check what_was_written_while_hearthd_was_frozen_is_read reads 3 file "changed meanwhile" 30

# ---- a placement group hangs ----
check four_rests rests 4
hang_weak
at 4
(cat "$STAGE/weak/file" >"$TMP/hung" 2>&1) &
used=$!
reads_soon() { reads "$1" file "text of $1" 10; }
sleep 2
check a_file_of_the_same_volume_is_read_meanwhile reads_soon 4
check volumes_at_rest_wake_while_another_hangs reads_soon 5
check the_reader_waits kill -0 $used
heal_weak
wait $used
same and_ends_well "$(<"$TMP/hung")" hung

# ---- every session is evicted, and clients with it ----
at 6
exec 7<"$STAGE/file"
evicted=0
for id in $(ceph_cmd tell mds.a client ls 2>/dev/null | jq -r '.[] | select(.client_metadata.uuid // "" | startswith("hearth")) | .id'); do
    ceph_cmd tell mds.a client evict id="$id" >/dev/null 2>&1 || fail evict "cannot evict $id"
    evicted=$((evicted + 1))
done
check sessions_were_evicted [ $evicted -gt 0 ]
check seven_rests rests 7
check volumes_at_rest_do_not_notice_an_eviction reads_soon 7
check nor_do_those_that_follow reads_soon 8
exec 7<&-
check one_that_was_evicted_works_on wait_for 60 reads_soon 6

# ---- Ceph is away, and the volume goes ----
check nine_rests rests 9
check ten_rests rests 10
stop_ceph
at 9
(cat "$STAGE/file" >"$TMP/away" 2>&1) &
used=$!
sleep 2
at 10
began=$SECONDS
CSI_TIMEOUT=100 unstage
check a_volume_at_rest_is_unstaged_without_ceph [ "$CSI_CODE" = OK ]
at 9
kill -KILL $used 2>/dev/null
CSI_TIMEOUT=100 unstage
echo "# unstaged while Ceph is away: $CSI_CODE, both within $((SECONDS - began)) s"
check unstaging_one_that_wakes_ends_in_time [ $((SECONDS - began)) -lt 100 ]
check hearthd_answers_meanwhile timeout 10 "$BUILD/hearthctl" --socket "$HEARTHD" status
continue_ceph
goes() { at 9 && unstage; }
check it_is_unstaged_when_ceph_is_back wait_for 60 goes
check others_are_read_then reads 11 file "text of 11" 60
talk_end client
