#!/bin/bash
# hearthd, or it and the node plugin, killed in the midst of I/O on images, again and again: what a
# flush acknowledged is there, what was read after a kill stays, and what is served is what Ceph has,
# also when others wrote the image meanwhile, or the cache is small or was taken away. What a sector
# may hold tests/tools/image-writer.c knows, what a file may, tests/tools/image-records.c.
#
# For longer: ROUNDS=200. A failure names SEED and the round; they decide what is done, not when.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
ROUNDS=${ROUNDS:-6} SEED=${SEED:-$RANDOM}
start_ceph
start_hearth
WRITER=$BUILD/tools/image-writer RECORDS=$BUILD/tools/image-records STATE=$TMP/state
declare -A ID CONTEXT DID=([kill]=0 [stack]=0 [compared]=0 [foreign]=0 [records]=0 [fsck]=0 [mounts]=0)

how= round=0
did() { DID[$1]=$((${DID[$1]} + ${2:-1})); }
bad() { fail "$1" "SEED=$SEED, round $round ($how): $2$(running hearthd || echo " (hearthd does not run)")"; }
give_up() { # NAME REASON: the next step needs what has failed
    bad "$@"
    exit 1
}
try() { # NAME COMMAND...
    wait_for 60 "${@:2}" || give_up "$1" "${*:2} gave: $(said)"
}

# ---- a device, and two file systems of which a round has one ----

use() { # device|ext4|xfs
    VOLUME_ID=${ID[$1]} VOLUME_CONTEXT=${CONTEXT[$1]} STAGE=$TMP/mnt/stage/$1 TARGET=$TMP/mnt/pod/$1
    IMAGE=$(at)/${VOLUME_ID##*~}
    CAPABILITY=$(capability "$1")
}
capability() {
    local kind="mount: {fs_type: \"$1\"}"
    [ "$1" != device ] || kind='block: {}'
    echo "{$kind, access_mode: {mode: \"SINGLE_NODE_WRITER\"}}"
}
up() { use "$1" && stage && publish; }
down() { use "$1" && unpublish && unstage; }
away() {
    local name
    end writer KILL
    end records KILL
    for name in "${!ID[@]}"; do
        down "$name"
        pending delete_volume || echo "DeleteVolume: $(said)" >&2
    done
    STAGE=$TMP/mnt/stage
}
at_exit away
for name in device ext4 xfs; do
    IMAGE_CAPABILITY=$(jq -nc "$(capability $name)")
    create_image "pvc-crash-$name-$$" $([ $name = device ] && echo 268435456 || echo 536870912) ||
        die "CreateVolume: $(said)"
    ID[$name]=$VOLUME_ID CONTEXT[$name]=$VOLUME_CONTEXT
done

# ---- what is checked ----

device() { # NAME VERB: the whole device
    use device
    timeout -k 5 300 "$WRITER" "$2" "$STATE" "$TARGET" >"$TMP/judged" 2>&1 ||
        bad "$1" "$(head -n 4 "$TMP/judged" | tr '\n' ';')"
}
equals_ceph() {
    use device
    rbd_cmd export --no-progress "$IMAGE" - 2>>"$TMP/log/rbd.log" |
        timeout -k 5 300 "$WRITER" check "$STATE" - >"$TMP/judged" 2>&1 ||
        bad what_is_served_is_what_ceph_has "$(head -n 4 "$TMP/judged" | tr '\n' ';')"
    did compared
}
records() {
    use "$FS"
    if timeout -k 5 60 "$RECORDS" check "$TMP/$FS.journal" "$TARGET" >"$TMP/judged" 2>&1; then
        did records "$(cat "$TMP/judged")"
    else
        bad acknowledged_records_are_there "$FS: $(head -n 4 "$TMP/judged" | tr '\n' ';')"
    fi
}
kernel_says() { # of the file system, since its device was attached
    local said
    use "$FS"
    said=$(findmnt -no SOURCE "$TARGET")
    said=$(dmesg 2>&1 | awk -v d="${said#/dev/}" '
        index($0, d ": detected capacity change from 0 to") { text = ""; seen = 1; next }
        $0 ~ "[( ]" d "[),: ]" && tolower($0) ~ /error|corrupt|fail|warning|shut|i\/o/ { text = text $0 ";" }
        END { if (seen) print text }')
    [ -z "$said" ] || bad no_errors_in_the_kernels_log "$FS: $(cut -c 1-500 <<<"$said")"
    [ "$(findmnt -no OPTIONS "$TARGET" | cut -d, -f1)" = rw ] || bad file_systems_are_writable "$FS"
    did mounts
}
fs_equals_ceph() { # the file system of now, which is taken down
    local fsck='e2fsck -fn'
    [ "$FS" = ext4 ] || fsck='xfs_repair -n'
    try unstaged down "$FS"
    CAPABILITY=$(capability device)
    stage && publish || give_up staged_as_a_device "$(said)"
    $fsck "$TARGET" >"$TMP/judged" 2>&1 || bad file_systems_are_clean "$(tail -n 5 "$TMP/judged" | tr '\n' ';')"
    rbd_cmd export --no-progress "$IMAGE" - 2>>"$TMP/log/rbd.log" |
        cmp - <(dd if="$TARGET" bs=1M iflag=direct 2>/dev/null) >"$TMP/judged" 2>&1 ||
        bad what_is_served_is_what_ceph_has "$FS: $(cat "$TMP/judged")"
    unpublish && unstage || give_up unstaged_as_a_device "$(said)"
    did compared
    did fsck
}

# ---- what is done ----

ready_for_term() { # NAME: before its handler is there, a TERM ends it as an error would
    local caught
    running "$1" || return 0
    [[ $(readlink "/proc/${PID[$1]}/exe") == */tools/image-* ]] || return 1
    caught=$(awk '/^SigCgt:/ { print $2 }' "/proc/${PID[$1]}/status")
    ((0x${caught:-0} >> 14 & 1)) # SIGTERM is 15
}
write_on() {
    use device
    : >"$TMP/log/writer.log"
    spawn writer "$WRITER" write "$STATE" $((SEED + round * 7)) "$TARGET"
    try a_writer_begins ready_for_term writer
}
write_off() { # an error ends it, or TERM
    local status
    [ "${1:-}" != TERM ] || kill -TERM "${PID[writer]}"
    wait_for 60 eval '! running writer' || give_up a_writer_ends "it waits since 60 s"
    wait "${PID[writer]}"
    status=$?
    if [ "$status" != 0 ]; then
        bad what_is_read_is_what_was_written "exit status $status; $(head -n 4 "$TMP/log/writer.log" | tr '\n' ';')"
    elif [ "${1:-}" = TERM ] && [ -s "$TMP/log/writer.log" ]; then
        bad io_goes_on_without_a_kill "$(head -n 4 "$TMP/log/writer.log" | tr '\n' ';')"
    fi
}
append_on() {
    use "$FS"
    : >"$TMP/log/records.log"
    spawn records "$RECORDS" append "$TMP/$FS.journal" $((SEED + round)) "$TARGET"
    try records_begin ready_for_term records
}
pause() { sleep "$((RANDOM % 2)).$(printf %03d $((50 + RANDOM % 900)))"; }
start_hearthd_anew() { start_hearthd $([ $((RANDOM % 3)) = 0 ] && echo --cache-size=64Mi); }
kill_it() { # hearthd|stack
    if [ "$1" = stack ]; then
        kill -KILL "${PID[hearthd]}" "${PID[node]}"
        wait "${PID[node]}"
        did stack
    else
        kill -KILL "${PID[hearthd]}"
    fi
    wait "${PID[hearthd]}"
    did kill
} 2>/dev/null
revive() { # VOLUME...: staged anew over what is dead, or after that was taken down
    local name over=$((RANDOM % 2)) lost=$((RANDOM % 5))
    if [ "$over" = 0 ] && running node; then
        for name in "$@"; do
            use "$name"
            try unpublished_without_hearthd unpublish
        done
    fi
    if [ "$lost" = 0 ]; then
        how="$how, the cache was removed"
        rm -rf "${CACHE:?}"/*
    fi
    start_hearthd_anew
    running node || start_node
    [ "$over" = 1 ] || how="$how, taken down first"
    for name in "$@"; do
        [ "$over" = 1 ] || try unstaged_after_a_kill down "$name"
        try staged_after_a_kill up "$name"
    done
}

between() { # WHAT: while the device is in use by nobody
    case $1 in
    reattached) # after writes that no kill has ended
        write_on
        pause
        write_off TERM
        try unstaged down device
        equals_ceph
        try staged up device
        ;;
    foreign) # what was read through the device, and may be cached, is not the newest
        try unstaged down device
        timeout -k 5 120 "$WRITER" foreign "$STATE" $((SEED + round)) "$CEPH_CONF" "$POOL" "${IMAGE##*/}" 2>"$TMP/judged" ||
            give_up foreign "$(cat "$TMP/judged")"
        try staged up device
        did foreign
        ;;
    back) # the newest is older than what may be cached
        try unstaged down device
        rbd_cmd snap create --no-progress "$IMAGE@then" 2>>"$TMP/log/rbd.log" || give_up back "rbd snap create"
        cp "$STATE" "$STATE.then"
        try staged up device
        write_on
        pause
        write_off TERM
        device what_is_read_is_what_was_written check
        try unstaged down device
        rbd_cmd snap rollback --no-progress "$IMAGE@then" 2>>"$TMP/log/rbd.log" || give_up back "rbd snap rollback"
        rbd_cmd snap rm --no-progress "$IMAGE@then" 2>>"$TMP/log/rbd.log"
        "$WRITER" back "$STATE" "$STATE.then"
        try staged up device
        did foreign
        ;;
    idle) # nothing is under way
        kill_it hearthd
        revive device "$FS"
        records
        kernel_says
        ;;
    trimmed)
        use "$FS"
        fstrim "$TARGET" || bad fstrim "failed"
        kernel_says
        return
        ;;
    *) return ;;
    esac
    device "what_is_read_after_it_was_$1" check
    equals_ceph
}

BETWEEN=(reattached foreign idle trimmed back again)
FS=ext4
play() { # in the midst of I/O
    local what=${BETWEEN[(SEED + round) % 6]} whom=hearthd other
    RANDOM=$((SEED * 1009 + round))
    [ $(((SEED + round + round / 6) % 2)) = 0 ] || whom=stack
    how="$whom killed, then $what"
    other=$([ $((round / 2 % 2)) = 0 ] && echo ext4 || echo xfs)
    if [ $other != "$FS" ]; then
        fs_equals_ceph
        FS=$other
    fi
    up device && up "$FS" || give_up staged "$(said)"
    write_on
    append_on
    pause
    running writer && running records ||
        give_up io_goes_on_until_the_kill "$(cat "$TMP/log/writer.log" "$TMP/log/records.log")"
    kill_it $whom
    write_off
    wait_for 60 eval '! running records' || give_up a_writer_ends "image-records waits since 60 s"
    revive device "$FS"
    if [ "$what" = again ]; then
        # What it has read by then is not to change any more.
        use device
        spawn writer "$WRITER" after-crash "$STATE" "$TARGET"
        sleep "0.$(printf %03d $((50 + RANDOM % 400)))"
        kill_it $whom
        wait_for 60 eval '! running writer' || give_up a_reader_ends "it waits since 60 s"
        revive device "$FS"
    fi
    device flushed_writes_are_there after-crash
    equals_ceph
    records
    kernel_says
    [ "$FAILED" != 0 ] || between "$what"
}

while [ "$round" -lt "$ROUNDS" ] && [ "$FAILED" = 0 ]; do
    round=$((round + 1))
    play
done
[ "$FAILED" != 0 ] || fs_equals_ceph

# ---- the sum ----

count() { jq -r ".$1" "$TMP/counts"; }
"$WRITER" count "$STATE" >"$TMP/counts"
if [ "$FAILED" = 0 ]; then
    echo "     SEED=$SEED, $round rounds in $SECONDS s, ${DID[kill]} kills, ${DID[stack]} of hearthd and the node plugin;" \
        "$(count writes) writes, $(count zeroings) of zeros, $(count flushes) flushes;" \
        "$(count unflushed_lost) sectors lost what was acknowledged and not flushed"
    pass "flushed_writes_are_there ($(count bounds_checked) sectors judged)"
    pass "what_is_read_is_what_was_written ($(count reads) reads of $(count sectors_read) sectors among writes)"
    pass "what_was_read_stays ($(count pinned_checked) sectors read again)"
    pass "what_is_served_is_what_ceph_has (${DID[compared]} times, $(count sectors_compared) sectors)"
    pass "what_others_write_is_read (${DID[foreign]} times, $(count foreign) sectors)"
    pass "acknowledged_records_are_there (${DID[records]} read)"
    pass "file_systems_are_clean (${DID[fsck]} times)"
    if dmesg >/dev/null 2>&1; then pass "no_errors_in_the_kernels_log (${DID[mounts]} mounts)"; else
        skip no_errors_in_the_kernels_log "dmesg cannot be read here"; fi
fi
for name in device "$FS"; do
    check "${name}_is_unstaged" down "$name"
done
same nothing_is_left "$(mounts_below "$TMP/mnt") $(loops_below "$TMP") $(ls "$DEVICES" 2>/dev/null)$(ls "$TMP/mnt/pod")" "  "
