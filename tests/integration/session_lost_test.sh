#!/bin/bash
# The MDS ends the session of a node that it can reach, as an administrator or a rule of the cluster has it do, with the
# client on the blocklist and without. What was written and not synced is reported lost, what others write stays, and the
# mount works on by itself.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/evict.sh"
init
start_ceph
start_hearthd
start_controller
start_node
published_volume pvc-session-$RANDOM 1073741824
second_client
client() { talk client "$@" || fail "${STEP}_client_$1" "$* gave $ANSWER"; }
holds() { talk_start "$1" "$BUILD/tools/file-hold" "${@:2}" || die "cannot hold $2"; }
says() { # NAME HOLDER WORDS... : what it answers, or the error
    talk "${@:2}" || true
    same "$STEP: $1" "$ANSWER" "$WANTED"
}
reads() { [ "$(timeout 10 cat "$1")" = "$2" ]; }

lose() { # with unsynced bytes in $STEP; held: one, other, and another file by clean
    for f in "$STEP" "$STEP-clean"; do printf OLD >"$TARGET/$f"; done
    sync -f "$TARGET"
    holds one "$TARGET/$STEP" rw
    holds other "$TARGET/$STEP" rw
    holds clean "$TARGET/$STEP-clean"
    talk clean read
    mkdir "$TARGET/$STEP-dir"
    holds dir "$TARGET/$STEP-dir"
    mkdir "$TARGET/$STEP-dir/new"
    printf NEVER >"$TARGET/$STEP-forgotten" # closed, not synced
    echo 2 >/proc/sys/vm/drop_caches
    printf OLD >"$TARGET/$STEP-attribute"
    sync -f "$TARGET"
    holds attribute "$TARGET/$STEP-attribute"
    setfattr -n user.of -v test "$TARGET/$STEP-attribute"
    talk one write 0 unsynced || fail "$STEP: setup" "$ANSWER"
    evict
}
shows() { talk clean read && [ "$ANSWER" = "$1" ]; }
check_loss() {
    WANTED="error EIO" says "fsync reports the loss" one fsync
    WANTED="error EIO" says "close of another handle reports it" other close
    WANTED="error EIO" says "fsync reports it still: a copy may have been closed by a child" other fsync
    WANTED= says "and a close reports it no more" other close
    WANTED="error EIO" says "fsync of a directory reports names that may be lost" dir fsync
    WANTED= says "that is said once" dir fsync
    WANTED="error EIO" says "fsync reports an extended attribute that may be lost" attribute fsync
    holds forgotten "$TARGET/$STEP-forgotten"
    WANTED="error EIO" says "fsync reports what was closed before, and forgotten by the kernel" forgotten fsync
    client write "/$STEP-clean" NEW
    check "$STEP: a clean handle shows what others write" wait_for 30 shows NEW
    talk one write 0 again || fail "$STEP: write again" "$ANSWER"
    WANTED= says "a handle works on" one fsync
    client cat "/$STEP"
    same "$STEP: what is synced then is in Ceph" "${ANSWER:0:5}" again
    for h in one other clean dir forgotten attribute; do talk_end $h; done
}

STEP=blocklisted
printf 'x%.0s' {1..64} >"$TARGET/$STEP-mapped"
sync -f "$TARGET"
holds mapped "$TARGET/$STEP-mapped" rw
talk mapped map
talk mapped mapstore 0 MAPPED || fail "$STEP: setup" "$ANSWER"
lose
client write "/$STEP" NEW
client put "/$STEP-mapped" 32 NEW
check "$STEP: the mount heals" wait_for 60 reads "$TARGET/$STEP" NEW
client cat "/$STEP"
same "$STEP: what others wrote stays" "$ANSWER" NEW
WANTED="error EIO" says "msync reports what a mapping had changed" mapped msync
client cat "/$STEP-mapped"
same "$STEP: what others wrote beside what a mapping had changed stays" "${ANSWER:32:3}" NEW
talk mapped mapwrite 0 AGAIN || fail "$STEP: a mapping works on" "$ANSWER"
client cat "/$STEP-mapped"
talk_end mapped
same "$STEP: what a mapping changes then is in Ceph, beside what others wrote" "${ANSWER:0:5} ${ANSWER:32:3}" "AGAIN NEW"
check_loss

# Without the blocklist the node's library is not told, and hangs; the OSDs go on taking its writes, so others had better
# not write the same file. That is Ceph's to say, and no promise of ours.
STEP=evicted
evict_without_blocklist
lose
check_loss
