#!/bin/bash
# A hearthd that is asked to end leaves its live volumes to the next one: what is open stays open,
# and no application sees an error.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/live_users.sh"
init
ROUNDS=${ROUNDS:-6} # ends under load
needs_resend
start_ceph
start_hearth
published_volume pvc-leave-$RANDOM 4294967296

# Opens a file and appends a word to it for each line that it reads.
holder() {
    python3 -u -c '
import os, sys
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_APPEND)
print("ok")
for line in sys.stdin:
    os.write(fd, line.encode())
    os.fsync(fd)
    print("ok", os.pread(fd, 1000, 0).decode().replace("\n", " "))' "$1"
}

STEP=quiet
talk_start held holder "$TARGET/held"
talk held first || die "$ANSWER"
end hearthd TERM 25
cat "$TARGET/held" >"$TMP/out" 2>&1 &
reader=$!
sleep 0.5
check a_call_waits_for_the_next_hearthd kill -0 $reader
began=$(date +%s%N)
start_hearthd
wait $reader
same and_is_answered "$?:$(cat "$TMP/out")" "0:first"
echo "# $((($(date +%s%N) - began) / 1000000)) ms from the start of hearthd to its end"
talk held second
same what_was_open_is_written "$ANSWER" "first second "
talk_end held
same staged_again_is_the_same_mount "$(stat -c %d "$TARGET")" "$(stage && publish && stat -c %d "$TARGET")"

STEP=users
users_begin "$TARGET/users"
sleep 3
for ((i = 0; i < ROUNDS; i++)); do
    end hearthd TERM 25
    start_hearthd
    sleep "$((RANDOM % 3)).$((RANDOM % 9))"
done
sleep 2
users_end
echo "# $ROUNDS ends: $SEEN"
users_are_content
same the_log_says_so "$(grep -c 'its mount ends with this hearthd' "$TMP/log/hearthd.log")" 0
