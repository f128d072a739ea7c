#!/bin/bash
# Daemons that die: a restarted node plugin keeps published volumes working; after a killed hearthd,
# staging and publishing again fix the mounts, and what was cached is still cached.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth
published_volume pvc-restart-$RANDOM 1073741824

data() { "$BUILD/tools/demo-read" "$@"; }
data write "$TARGET/set" "$TMP/manifest" --files 200 --large 20000000 >/dev/null || die "cannot write"
right() {
    local out
    drop_page_cache
    if out=$(timeout 120 "$BUILD/tools/demo-read" read "$TARGET/set" "$TMP/manifest" --verify 2>&1); then
        pass "$1"
    else
        fail "$1" "$out"
    fi
}
right before
is_cached() { [ "$(cache_stat objects)" -ge 201 ]; }
check everything_is_cached wait_for 20 is_cached

# The node plugin: killed, restarted, stopped and started.
end node KILL
right node_plugin_dead
start_node
right node_plugin_restarted
check stage_is_repeated_after_it stage
check publish_is_repeated_after_it publish
end node TERM
start_node
right node_plugin_stopped_and_started
check unpublish_by_the_new_one unpublish
check unstage_by_the_new_one unstage
same no_mount_is_left "$(mounts_below "$TMP/mnt")" ""
stage && publish || die "$(said)"
right staged_anew

# hearthd.
end hearthd KILL
csi node Probe '{}'
if [ "$CSI_CODE" != OK ]; then pass probe_tells_that_hearthd_is_dead; else fail probe_tells_that_hearthd_is_dead "$(said)"; fi
objects=$(find "$CACHE/objects" -type f | wc -l)
start_hearthd
probe_ok() { csi node Probe '{}'; }
check probe_is_well_again wait_for 10 probe_ok
# kubelet repeats the calls; the stale mounts are no obstacle.
check stage_over_the_stale_mount stage
check publish_over_the_stale_mount publish
right after_kill_of_hearthd
same objects_survive_the_kill "$(find "$CACHE/objects" -type f | wc -l)" "$objects"
if [ "$(cache_stat fillsCompleted)" = 0 ]; then pass nothing_was_fetched_again; else
    fail nothing_was_fetched_again "$(cache_stat fillsCompleted) fills"; fi
echo alive >"$TARGET/file"
same write_after_kill "$(cat "$TARGET/file")" alive

# A stale mount that is only taken down.
end hearthd KILL
check unpublish_of_a_stale_mount unpublish
start_hearthd
check unstage_of_a_stale_mount unstage
same no_stale_mount_is_left "$(mounts_below "$TMP/mnt")" ""
stage && publish || die "$(said)"
right after_taking_down

# Both at once.
end hearthd KILL
end node KILL
start_hearthd
start_node
check stage_after_both_died stage
check publish_after_both_died publish
right after_both_died

# Killed while it fills: no half object is ever served.
hearthctl evict --all >/dev/null 2>&1 || hearthctl evict >/dev/null
drop_page_cache
(timeout 30 "$BUILD/tools/demo-read" read "$TARGET/set" "$TMP/manifest" >/dev/null 2>&1) &
reader=$!
filling() { [ "$(cache_stat fillsCompleted)" -gt 20 ]; }
wait_for 10 filling
end hearthd KILL
wait $reader
start_hearthd
stage && publish || die "$(said)"
right after_a_kill_during_fills

# A controller that dies forgets nothing.
end controller KILL
start_controller
id=$VOLUME_ID
csi controller CreateVolume '{}'
same controller_answers_again "$CSI_CODE" INVALID_ARGUMENT
remove_volume
AT_EXIT=()
same deleted_by_the_new_controller "$CSI_CODE" OK

# A graceful stop is quick, also with a volume mounted.
VOLUME_ID=$id
published_volume pvc-stop-$RANDOM 1073741824
echo x >"$TARGET/x"
started=$SECONDS
end hearthd TERM 25
if [ $((SECONDS - started)) -lt 20 ]; then pass hearthd_stops_in_time; else fail hearthd_stops_in_time "$((SECONDS - started)) s"; fi
started=$SECONDS
end node TERM 25
if [ $((SECONDS - started)) -lt 20 ]; then pass node_plugin_stops_in_time; else fail node_plugin_stops_in_time "$((SECONDS - started)) s"; fi
start_hearthd
start_node
