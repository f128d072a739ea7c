#!/bin/bash
# Many calls at once on one connection: same names, different names, all kinds; and with Ceph's mgr
# and MDS stopped, calls end at their deadlines while Probe and other volumes go on. Nothing is out of
# step afterwards (promise 6).
. "$(dirname "$0")/lib.sh"
. "$TOP/tests/integration/types.sh"
init
start_ceph
own_user
mkdir "$TMP/dirs"
start_controller --secret-dir="$TMP/own" --dir-root="$TMP/dirs"

load() { # IN-FLIGHT: jobs on stdin -> $TMP/answers
    "$BUILD/tools/csi-load" --responses --socket "$CONTROLLER" --in-flight "$1" >"$TMP/answers" || fail load "csi-load ended with status $?"
}
answers() { jq -rs "$@" "$TMP/answers"; }
# Requests as jq functions, for jobs built in one go.
jobs() { # PROGRAM [jq options]
    local program=$1
    shift
    csi_json "($(create_request @ 1073741824 '{}' | jq -c 'del(.secrets)') + {secrets: \$secrets}) as \$new |
        def call(\$m; \$r): {method: (\"Controller/\" + \$m), request: \$r, timeout: \$timeout};
        def create(\$n): call(\"CreateVolume\"; \$new + {name: \$n});
        def delete(\$n): call(\"DeleteVolume\"; {volume_id: (\$id + \$n), secrets: \$secrets});
        def snapshot(\$n): call(\"CreateSnapshot\"; {source_volume_id: (\$id + \$n), name: \$n, secrets: \$secrets});
        def unsnapshot(\$n): call(\"DeleteSnapshot\"; {snapshot_id: (\$snap + \$n), secrets: \$secrets});
        def expand(\$n): call(\"ControllerExpandVolume\"; {volume_id: (\$id + \$n), capacity_range: {required_bytes: 2147483648}, secrets: \$secrets});
        def validate(\$n): call(\"ValidateVolumeCapabilities\"; {volume_id: (\$id + \$n), volume_capabilities: \$new.volume_capabilities, secrets: \$secrets});
        def probes(\$n): [range(\$n) | {method: \"Identity/Probe\", timeout: 5}];
        $program" --arg id "$(id_of '')" --arg snap "$(snapshot_id_of '')" --argjson timeout "${CALL_SECONDS:-60}" "$@"
}

all_deleted() { # NAMES-JSON: until each says OK
    local tries=0
    until CALL_SECONDS=20 jobs '$names[] | {id: ., calls: [delete(.)]}' --argjson names "$1" | load 8 &&
        [ "$(answers 'map(select(.code != "OK")) | length')" = 0 ]; do
        [ $((tries += 1)) -lt 10 ] || return 1
    done
}

at_once() {
    local same="same-$$" base="base-$$"
    jobs '{id: "base", calls: [create($base)]}' --arg base "$base" | load 1
    jobs '(range(14) | {id: "same\(.)", calls: [create($same)]}),
        (range(12) | {id: "other\(.)", calls: [create("\($same)-\(.)"), validate("\($same)-\(.)"), expand("\($same)-\(.)"), delete("\($same)-\(.)")]}),
        (range(6) | {id: "snap\(.)", calls: [create("\($same)-s\(.)"), snapshot("\($same)-s\(.)"), unsnapshot("\($same)-s\(.)"), delete("\($same)-s\(.)")]}),
        (range(6) | {id: "oddsnap", calls: [snapshot($base)]}),
        (range(8) | {id: "validate", calls: [validate($base)]}),
        (range(6) | {id: "list", calls: [call("ListVolumes"; {max_entries: 3})]}),
        (range(4) | {id: "lists", calls: [call("ListSnapshots"; {secrets: $secrets})]}),
        (range(4) | {id: "get", calls: [call("ControllerGetVolume"; {volume_id: ($id + $base)})]}),
        (range(4) | {id: "probe", calls: probes(40)})' --arg same "$same" --arg base "$base" | load 64
    same "${TYPE}_64_at_once_all_answer" "$(answers 'map(.code) | unique | map(select(. != "OK" and . != "ABORTED")) | join(" ")') $(answers length)" " $((14 + 48 + 24 + 6 + 8 + 6 + 4 + 4 + 160))"
    same "${TYPE}_only_the_same_name_is_asked_to_wait" "$(answers 'map(select(.code == "ABORTED").id | sub("[0-9]+$"; "")) | unique - ["same", "oddsnap"] | join(" ")')" ""
    same "${TYPE}_one_name_is_one_volume" "$(answers 'map(select(.id | test("^same")) | select(.code == "OK").response.volume.volumeId) | unique | join(" ")')" "$(id_of "$same")"
    same "${TYPE}_and_one_snapshot" "$(answers 'map(select(.id == "oddsnap" and .code == "OK").response.snapshot | .snapshotId + .creationTime) | unique | length')" 1
    same "${TYPE}_probe_answers_within_a_second" "$(answers 'map(select(.method == "Identity/Probe" and .ms > 1000)) | length')" 0
    same "${TYPE}_ceph_has_that" "$(objects "$same"; objects "$base"; snapshots "$base")" "$(printf '%s\n' "csi-vol-$same" "csi-vol-$base" "csi-snap-$base")"
    jobs '{id: "x", calls: [unsnapshot($base), delete($base), delete($same)]}' --arg same "$same" --arg base "$base" | load 1
    same "${TYPE}_and_nothing_afterwards" "$(objects "-$$")$(records "-$$") $(audit >/dev/null; echo $?)" " 0"
}

# 48 creations that hang; meanwhile Probe, and volumes that need nothing of what is stopped.
without() { # DAEMON...
    local names label="${TYPE}_without_$(tr . _ <<<"$1")" began
    names=$(jq -cn '[range(48) | "hang-\($p)-\(.)"]' --arg p "$$-${1%.*}")
    jobs '{id: "warm", calls: [create("w"), delete("w")]}' | load 1
    halt "$@"
    began=$(date +%s%N)
    CALL_SECONDS=4 jobs '($names[] | {id: "hangs", calls: [create(.)]}),
        (range(4) | {id: "probe", calls: probes(60)}),
        (range(8) | {id: "dir", calls: [range(5) as $k | ($new + {name: "dir-\(.)-\($k)", parameters: {type: "dir"}, secrets: {}}) as $r |
            call("CreateVolume"; $r), call("DeleteVolume"; {volume_id: "h1~dir~csi-vol-dir-\(.)-\($k)"})]})' --argjson names "$names" | load 64
    same "${label}_calls_end_at_their_deadline" "$(answers 'map(select(.id == "hangs" and (.ms > 5000 or .code == "OK" or .code == "NONE"))) | map("\(.code) \(.ms)") | join(", ")')" ""
    same "${label}_probe_answers" "$(answers 'map(select(.id == "probe" and (.ms > 1000 or .code != "OK"))) | map("\(.code) \(.ms)") | join(", ")')" ""
    same "${label}_other_volumes_are_made" "$(answers 'map(select(.id == "dir" and (.ms > 2000 or .code != "OK"))) | map("\(.code) \(.ms) \(.message)") | join(", ")')" ""
    [ $((($(date +%s%N) - began) / 1000000)) -lt 9000 ] && pass "${label}_all_in_time" || fail "${label}_all_in_time" "$((($(date +%s%N) - began) / 1000000)) ms"
    continue_ceph
    all_deleted "$names" && pass "${label}_then_all_can_be_deleted" || fail "${label}_then_all_can_be_deleted" "$(answers 'map(select(.code != "OK"))[0]')"
    same "${label}_and_nothing_is_left" "$(objects "hang-$$")$(records "hang-$$") $(audit >/dev/null; echo $?)" " 0"
}

for type in $(types); do
    use_type "$type"
    at_once
    case $type in
    cephfs)
        without mgr.a
        without mds.a
        ;;
    rbd) without osd.0 ;;
    esac
done
exit 0
