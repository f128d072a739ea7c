#!/bin/bash
# A process holds more files of a volume open than hearthd may have descriptors. They are read nevertheless, and hearthd
# still hears its control socket and connects to Ceph: another volume is staged and used meanwhile.
. "$(dirname "$0")/lib.sh"
init
start_ceph
LIMIT=800 FILES=1200
HEARTHD_WITH=(bash -c 'ulimit -n "$0" && exec "$@"' $LIMIT)
start_hearth
published_volume "pvc-many-$$"
FIRST=${PID[hearthd]}
cat >"$TMP/hold.py" <<'P'
import os, sys, time
top, files, said, go = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
def text(i): return b"text %d" % i
for i in range(files):
    with open(f"{top}/{i}", "wb") as f:
        f.write(text(i))
fds = [os.open(f"{top}/{i}", os.O_RDONLY) for i in range(files)]
for way in ("at once", "once more"):
    wrong = [i for i, fd in enumerate(fds) if os.pread(fd, 100, 0) != text(i)]
    with open(said + "~", "a") as f:
        f.write(f"{way} {files - len(wrong)}\n")
os.rename(said + "~", said)
while not os.path.exists(go):
    time.sleep(0.2)
P
spawn holder python3 "$TMP/hold.py" "$TARGET" $FILES "$TMP/said" "$TMP/go"
wait_for 120 test -e "$TMP/said"
same all_are_read "$(cat "$TMP/said")" "at once $FILES
once more $FILES"
echo "# $(ls "/proc/${PID[hearthd]}/fd" | wc -l) of $LIMIT descriptors, $(cache_stat objects) objects"
check hearthd_hears timeout 20 "$BUILD/hearthctl" --socket "$HEARTHD" status
other() { # COMMAND...: with the variables those of the second volume
    local VOLUME_ID=${OTHER_ID:-} VOLUME_CONTEXT=${OTHER_CONTEXT:-} STAGE=$TMP/mnt/other TARGET=$TMP/mnt/pod/other
    "$@"
}
create_other() { create_volume "pvc-other-$$" && OTHER_ID=$VOLUME_ID OTHER_CONTEXT=$VOLUME_CONTEXT; }
MANY_ID=$VOLUME_ID MANY_CONTEXT=$VOLUME_CONTEXT
create_other || die "CreateVolume: $(said)"
VOLUME_ID=$MANY_ID VOLUME_CONTEXT=$MANY_CONTEXT
at_exit other remove_volume
check another_volume_is_staged other stage
check and_published other publish
used() { timeout 20 bash -c 'echo text >"$0" && sync "$0" && [ "$(cat "$0")" = text ]' "$TMP/mnt/pod/other/file"; }
check it_is_used used
same hearthd_is_the_same "${PID[hearthd]} $(running hearthd && echo runs)" "$FIRST runs"
touch "$TMP/go"
wait "${PID[holder]}"
fewer() { [ "$(ls "/proc/${PID[hearthd]}/fd" | wc -l)" -lt $((LIMIT / 2)) ]; }
check descriptors_are_given_back wait_for 30 fewer
