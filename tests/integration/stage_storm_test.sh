#!/bin/bash
# A node starts again, and kubelet stages all its volumes at once, on a real Ceph. Some of them fail: one has a wrong key,
# one is not in Ceph any more, and the images of two are in a placement group that hangs. The others do not wait for them.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/rbd_static.sh"
. "$(dirname "$0")/weak_pool.sh"
RUN=$$
init
start_ceph --conf 'mon_allow_pool_size_one = true'
start_controller
start_hearthd
start_node

VOLUMES=${VOLUMES:-96}
FAILING="wrong-key absent hung-1 hung-2"
export WRONG_KEY=AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A== # valid, and nobody's
create_volume "pvc-storm-$$" || die "CreateVolume: $(said)"
PARENT=$ROOT_PATH
delete_volume() { :; } # it goes with the cluster, which is this test's own
second_client
for ((i = 1; i <= VOLUMES; i++)); do
    talk client mkdir "d$i" && talk client write "d$i/file" "text of $i" || die "the second client: $ANSWER"
done
talk client mkdir wrong-key || die "$ANSWER"
weak_pool_of_its_own
for i in 1 2; do rbd_cmd create "weak/hung-$i" --size 16 || die "rbd create"; done
IMAGER_KEY=$(ceph_cmd auth get-or-create-key client.imager mon 'profile rbd' osd 'profile rbd' 2>/dev/null)
export IMAGER_KEY

at() { # NAME
    VOLUME_ID=storm-$$-$1 STAGE=$TMP/mnt/stage-$1 ROOT_PATH=$PARENT/d$1
    case $1 in
    wrong-key) ROOT_PATH=$PARENT/$1 NODE_KEY=$WRONG_KEY ;;
    hung-*) NODE_ID=imager NODE_KEY=$IMAGER_KEY ;;
    esac
    VOLUME_CONTEXT=$(static_context "$ROOT_PATH")
    [[ $1 != hung-* ]] || { block_capability && image "$1" '{"pool": "weak"}' && VOLUME_ID=storm-$$-$1; }
}
stage_one() { # NAME, beside others: $TMP/NAME/said has what it comes to, and when
    local at=$TMP/at-once-$1
    mkdir -p "$at"
    at "$1"
    (TMP=$at && if stage; then echo OK; else said; fi) >"$at/answer"
    mv "$at/answer" "$at/said"
}
said_of() { cat "$TMP/at-once-$1/said"; }
good_ones() { seq "$VOLUMES"; }
staged() { grep -lx OK "$TMP"/at-once-*/said 2>/dev/null | wc -l; }
all_are_staged() { [ "$(staged)" = "$VOLUMES" ]; }
waits() { [ ! -e "$TMP/at-once-$1/said" ]; }
unstage_all() {
    local i
    for i in $(good_ones); do (at "$i" && unstage >/dev/null) || return 1; done
}

end node
end hearthd
start_hearthd
start_node
FIRST=${PID[hearthd]}
hang_weak
began=$SECONDS
STORM=()
for i in $FAILING $(good_ones); do
    stage_one "$i" &
    STORM+=($!)
done
check all_others_are_staged wait_for 60 all_are_staged
echo "# $(staged) volumes staged in $((SECONDS - began)) s"
check while_one_hangs waits hung-1
check and_another waits hung-2
bad=
for i in $(good_ones); do
    [ "$(cat "$TMP/mnt/stage-$i/file")" = "text of $i" ] || bad="$bad $i ($(said_of "$i"))"
done
same they_are_read "$bad" ""
wait "${STORM[@]}"
echo "# all have an answer after $((SECONDS - began)) s: $(for i in $FAILING; do said_of "$i"; done | cut -c1-150 | paste -sd '|')"
check a_wrong_key_is_refused grep -qE '^(UNAUTHENTICATED|PERMISSION_DENIED): ' "$TMP/at-once-wrong-key/said"
check what_is_not_in_ceph_is_not_found grep -q '^NOT_FOUND: ' "$TMP/at-once-absent/said"
for i in 1 2; do check "hung_one_${i}_ends_in_time" grep -qE '^(DEADLINE_EXCEEDED|UNAVAILABLE): ' "$TMP/at-once-hung-$i/said"; done
same hearthd_is_the_same "${PID[hearthd]} $(running hearthd && echo runs)" "$FIRST runs"

# ---- kubelet asks again ----
heal_weak
again() { # NAME
    local id=$NODE_ID key=$NODE_KEY capability=$CAPABILITY
    at "$1"
    check "${1/-/_}_is_staged_again" pending stage
    check "${1/-/_}_is_unstaged" unstage
    NODE_ID=$id NODE_KEY=$key CAPABILITY=$capability
}
again hung-1
again hung-2
check all_are_unstaged unstage_all

# ---- with fewer threads than that takes ----
if [ -d /sys/fs/cgroup/pids ]; then GROUP=/sys/fs/cgroup/pids/hearth-storm-$$; else GROUP=/sys/fs/cgroup/hearth-storm-$$; fi
has_group() { mkdir "$GROUP" && [ -e "$GROUP/pids.max" ] || { echo +pids >/sys/fs/cgroup/cgroup.subtree_control; [ -e "$GROUP/pids.max" ]; }; } 2>/dev/null
at_exit 'rmdir "$GROUP" 2>/dev/null'
has_group || { skip with_few_threads "no cgroup with pids.max can be made"; exit 0; }
end node
end hearthd
HEARTHD_WITH=(bash -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$GROUP")
start_hearthd
start_node
FIRST=${PID[hearthd]}
echo 400 >"$GROUP/pids.max"
rm -rf "$TMP"/at-once-*
began=$SECONDS rounds=0 blamed=
# kubelet asks again for each that fails.
until all_are_staged || [ $((SECONDS - began)) -gt 240 ]; do
    STORM=()
    for i in $(good_ones); do
        [ "$(said_of "$i" 2>/dev/null)" = OK ] && continue
        stage_one "$i" &
        STORM+=($!)
    done
    wait "${STORM[@]}"
    [ $((rounds += 1)) -gt 1 ] || blamed=$(cat "$TMP"/at-once-*/said | grep 'no answer from the monitors' | head -n 1)
done
echo "# $(staged) staged with 400 threads at most, after $rounds times and $((SECONDS - began)) s"
check all_are_staged_with_few_threads all_are_staged
same the_reason_that_is_told_is_not_ceph "$blamed" ""
same hearthd_is_the_same_with_few_threads "${PID[hearthd]} $(running hearthd && echo runs)" "$FIRST runs"
check all_are_unstaged_with_few_threads unstage_all
talk_end client
