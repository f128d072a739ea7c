#!/bin/bash
# The MDS ends sessions without a word and without the blocklist (mds_session_blocklist_on_evict=false). libcephfs then
# waits for ever. All calls of the mount end nevertheless, in time; reads have the right bytes, fsync reports what may
# be lost, and a volume can be unstaged.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/evict.sh"
init
start_ceph
start_hearth
# hearthd finds out after 35 s (cache/origin/reconnect/keepers.c); the rest is for a busy machine.
MOST=80
mkdir "$TMP/tried"

other() { # COMMAND...: with the variables those of the second volume
    local VOLUME_ID=$OTHER_ID VOLUME_CONTEXT=$OTHER_CONTEXT ROOT_PATH=$OTHER_ROOT STAGE=$TMP/mnt/other TARGET=$TMP/mnt/pod/other
    "$@"
}
create_volume pvc-evicted-other-$RANDOM 1073741824 || die "CreateVolume: $(said)"
OTHER_ID=$VOLUME_ID OTHER_CONTEXT=$VOLUME_CONTEXT OTHER_ROOT=$ROOT_PATH
at_exit other remove_volume
other stage || die "NodeStageVolume: $(said)"
other publish || die "NodePublishVolume: $(said)"
published_volume pvc-evicted-$RANDOM 1073741824

# ---- what is there before ----
mkdir "$TARGET/dir" "$TARGET/unseen"
head -c 3000000 /dev/urandom >"$TMP/bytes"
for name in unseen/read unseen/stat unseen/append warm dir/name open; do cp "$TMP/bytes" "$TARGET/$name"; done
sync -f "$TARGET"
echo synced >"$TMP/mnt/pod/other/file"
sync -f "$TMP/mnt/pod/other"
# Another connection, which knows no name and no byte.
unpublish && unstage && stage && publish || die "to stage again: $(said)"
cmp -s "$TMP/bytes" "$TARGET/warm" || die "the file to keep warm"
exec {OPEN}<"$TARGET/open"
talk_start one "$BUILD/tools/file-hold" "$TARGET/dir/name" rw || die "cannot hold a file"
talk one write 0 unsynced || die "$ANSWER"

# ---- sessions end ----
evict_without_blocklist
EVICTED=$EPOCHREALTIME
evict
other evict

tenths() { echo $(((${EPOCHREALTIME/./} - ${EVICTED/./}) / 100000)); } # of a second, since the sessions have ended
try() { # NAME COMMAND...: in the background
    { "${@:2}" >"$TMP/tried/$1.out" 2>&1; echo "$? $(tenths)" >"$TMP/tried/$1.part"; mv "$TMP/tried/$1".{part,ended}; } &
    TRIED+=("$1")
}
read_open() { cmp "$TMP/bytes" - <&"$OPEN"; }
TRIED=()
try stat stat "$TARGET/unseen/stat"
try read cmp "$TMP/bytes" "$TARGET/unseen/read"
try open_file read_open
try warm cmp "$TMP/bytes" "$TARGET/warm"
try listing ls "$TARGET/dir"
try statfs stat -f "$TARGET"
try creation touch "$TARGET/new"
try directory mkdir "$TARGET/new-dir"
try append bash -c 'echo more >>"$0"' "$TARGET/unseen/append"
try unpublish_and_unstage other eval 'unpublish && unstage || { said; false; }'
talk one fsync
same "fsync reports what may be lost" "$ANSWER" "error EIO"
WHEN=$(tenths)
check "in time" [ "$WHEN" -le "${MOST}0" ]

have_ended() { for name in "${TRIED[@]}"; do [ -e "$TMP/tried/$name.ended" ] || { echo "$name has not"; return 1; }; done; }
wait_for 90 have_ended || die "calls hang: $(have_ended)" # and whatever needs the same pages would, too
pass "all calls end"
LONGEST=0
for name in "${TRIED[@]}"; do
    read -r status when 2>/dev/null <"$TMP/tried/$name.ended" || continue
    [ "$when" -le $LONGEST ] || LONGEST=$when
    [ "$when" -le ${MOST}0 ] || fail "$name: in time" "after $when tenths of a second"
    case $name in
    # What changes something answers EIO, since nobody knows whether it was done.
    creation | directory | append) ;;
    *) same "$name" "$status" 0 ;;
    esac
done
echo "# the longest call: $LONGEST tenths of a second; fsync: $WHEN"

# ---- and the mount works on ----
works() { cmp "$TMP/bytes" "$TARGET/unseen/read" && echo again >"$TARGET/again" && sync "$TARGET/again" && [ "$(<"$TARGET/again")" = again ]; }
check "the mount works on" wait_for 30 works
talk one write 0 again
talk one fsync || fail "a handle works on" "$ANSWER"
talk_end one
exec {OPEN}<&-
other stage && other publish || fail "the other volume is staged again" "$(said)"
same "with what was synced" "$(cat "$TMP/mnt/pod/other/file")" synced
