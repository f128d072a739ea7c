#!/bin/bash
# hearthd and the node plugin end at the same time, in every order. hearth-keeper has the mounts
# meanwhile, and no application sees an error.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_static.sh"
. "$(dirname "$0")/live_users.sh"
init
ROUNDS=${ROUNDS:-6} # ends under load
needs_resend
start_ceph
# Descriptors of mounts that it holds.
held() { find "/proc/${PID[keeper]}/fd" -lname '/dev/fuse*' 2>/dev/null | wc -l; }
holds() { [ "$(held)" = "$1" ]; }
start_keeper
start_hearth

# A live volume, a dataset and an image: $TARGET is below $TMP/mnt/pod for each.
at() { STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1; }
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT $1_CAPABILITY=\$CAPABILITY"; }
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT CAPABILITY=\$$1_CAPABILITY"
    at "$1"
}
again() { stage && publish; }
# Ceph may take a client that was killed for one that lives for a while.
staged_again() { if wait_for 90 again; then pass "$1"; else fail "$1" "$(said)"; fi; }

at live
create_volume pvc-keeper-$$ 4294967296 || die "CreateVolume: $(said)"
again || die "$(said)"
remember live
mkdir "$TARGET/set"
python3 - "$TARGET/set" <<'P'
import random, sys
for i in range(200):
    with open(f"{sys.argv[1]}/{i}", "wb") as f:
        f.write(random.Random(i).randbytes(40000))
P
SUBVOLUME=csi-vol-pvc-keeper-$$
subsnap create "$SUBVOLUME" v1 --group_name csi || die "no snapshot"
at set
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
create_volume pvc-set-$$ 1073741824 "{\"dataset\": \"$SUBVOLUME@v1\"}" || die "CreateVolume: $(said)"
pending stage && publish || die "$(said)"
remember set
at image
RUN=$RANDOM
new_image keeper 1G
at_exit 'rbd_cmd rm --no-progress "rbd/$NAME"'
capability ext4 "$WRITER"
again || die "$(said)"
remember image
check it_holds_each_mount wait_for 60 holds 3

is_gone() { [[ $(timeout 5 stat "$1" 2>&1 >/dev/null) = *'not connected'* ]]; }
readers() { # of the dataset, each file once more after the page cache was dropped
    python3 -u - "$TMP/mnt/pod/set/set" "$TMP/stop" <<'P'
import os, random, sys
n = 0
while not os.path.exists(sys.argv[2]):
    i = random.randrange(200)
    fd = os.open(f"{sys.argv[1]}/{i}", os.O_RDONLY)
    got = os.read(fd, 50000)
    assert got == random.Random(i).randbytes(40000), i
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(fd)
    n += 1
print(n)
P
}
database() {
    python3 -u - "$TMP/mnt/pod/image/db" "$TMP/stop" <<'P'
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("pragma journal_mode = wal")
db.execute("create table if not exists t (n integer primary key)")
n = db.execute("select count(*) from t").fetchone()[0]
while not os.path.exists(sys.argv[2]):
    with db:
        db.executemany("insert into t values (?)", [(n + i,) for i in range(20)])
    n += 20
assert db.execute("select count(*), sum(n) from t").fetchone() == (n, n * (n - 1) // 2)
print(n)
P
}

STEP=both
users_begin "$TMP/mnt/pod/live/users"
readers >"$TMP/readers" 2>&1 &
readers=$!
database >"$TMP/database" 2>&1 &
database=$!
sleep 2
for ((i = 0; i < ROUNDS; i++)); do
    case $((i % 3)) in
    0) # Both at once; hearthd is back first.
        kill -KILL "${PID[node]}"
        end hearthd TERM 25
        end node KILL
        start_hearthd
        start_node
        ;;
    1) # The node plugin is back while hearthd leaves its mounts.
        end node KILL
        kill -TERM "${PID[hearthd]}"
        start_node
        end hearthd TERM 25
        start_hearthd
        ;;
    2) # hearthd ends after the node plugin, which is back first.
        end node TERM 25
        end hearthd TERM 25
        start_node
        start_hearthd
        ;;
    esac
    sleep "2.$((RANDOM % 9))"
done
touch "$TMP/stop"
users_end
echo "# $ROUNDS ends: $SEEN"
users_are_content
wait $readers
same readers_of_a_dataset_see_no_error "$?:$(grep -c Error "$TMP/readers")" 0:0
wait $database
same nor_does_a_database_on_an_image "$?:$(grep -c Error "$TMP/database")" 0:0
echo "# $(tail -n 1 "$TMP/readers") files read, $(tail -n 1 "$TMP/database") rows"
same no_mount_ended "$(grep -c 'answer with errors' "$TMP/log/node.log")" 0
check it_holds_the_same_mounts wait_for 60 holds 3

STEP=killed
# Nothing is left of a live volume when hearthd is killed: it fails, and does not hang.
recall live
end node KILL
end hearthd KILL
start_node
check its_mount_ends_when_no_state_was_left wait_for 60 is_gone "$TARGET"
check only_the_dataset_is_held wait_for 60 holds 1
start_hearthd
recall set
check a_dataset_goes_on timeout 60 cmp "$TARGET/set/7" <(python3 -c 'import random, sys; sys.stdout.buffer.write(random.Random(7).randbytes(40000))')
recall image
check a_dead_image_is_unstaged down
staged_again an_image_is_staged_again
recall live
check a_live_volume_is_staged_again again
check and_all_is_held_again wait_for 60 holds 3

STEP=frozen
# hearth-keeper cannot keep what its node plugin has given up.
kill -STOP "${PID[keeper]}"
end hearthd KILL
recall live
check a_live_volume_ends_with_a_hearthd_that_was_killed wait_for 60 is_gone "$TARGET"
start_hearthd
check it_is_staged_again again
spawn next "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE"
sleep 1
end hearthd KILL
check also_when_the_next_one_waits wait_for 60 is_gone "$TARGET"
end next TERM 25
start_hearthd
kill -CONT "${PID[keeper]}"
check and_once_more again
recall image
check its_image_is_unstaged down
staged_again its_image_is_staged
check all_is_held wait_for 60 holds 3

STEP=keeper
end keeper KILL
start_keeper
check a_new_keeper_gets_all_mounts wait_for 60 holds 3
echo "# $(awk '/^VmRSS/ {print $2}' "/proc/${PID[keeper]}/status") kB of memory"
check it_is_small test "$(awk '/^VmRSS/ {print $2}' "/proc/${PID[keeper]}/status")" -le 1024
kill -STOP "${PID[keeper]}"
recall live
check a_volume_is_unstaged_beside_a_frozen_keeper down
check and_staged again
kill -CONT "${PID[keeper]}"
check it_holds_the_new_mount wait_for 60 holds 3
echo text >"$TARGET/file"
end node KILL
end hearthd TERM 25
start_hearthd
start_node
same which_goes_on_after_both_ended "$(timeout 60 cat "$TARGET/file")" text

STEP=linger
# A node plugin whose thread waits for a mount cannot end, so it gives the mount away first.
recall live
asks() {
    local request
    request=$(csi_json '{volume_id: $id, volume_path: $path}' --arg id "$VOLUME_ID" --arg path "$TARGET")
    until [ -e "$TMP/asked" ]; do
        "$BUILD/tools/csi-call" --timeout 30 --socket "$NODE" Node/NodeGetVolumeStats - <<<"$request" >/dev/null 2>&1
    done
}
rm -f "$TMP/asked"
askers=()
for i in 1 2 3 4; do
    asks &
    askers+=($!)
done
sleep 1
end hearthd TERM 25
sleep 3 # the next calls wait
kill -TERM "${PID[node]}"
touch "$TMP/asked"
sleep 3
check a_node_plugin_with_a_waiting_thread_goes_on running node
start_hearthd
has_ended() { ! running node; }
check and_ends_when_the_mount_is_served wait_for 60 has_ended
wait "${askers[@]}"
start_node
same the_mount_is_the_same "$(timeout 60 cat "$TARGET/file")" text

STEP=forged
python3 - "$TMP/run/keeper.sock" >"$TMP/out" 2>&1 <<'P'
import array, os, socket, struct, sys
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(sys.argv[1])
    s.settimeout(5)
    return s
def call(s, what, name=b"", fds=()):
    s.sendmsg([struct.pack("i", what) + name],
              [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
    data, anc, _, _ = s.recvmsg(600, 200)
    got = [fd for _, _, b in anc for fd in array.array("i", b)]
    for fd in got:
        os.close(fd)
    return struct.unpack("i", data[:4])[0], data[4:], len(got)
s = connect()
null = os.open("/dev/null", os.O_RDONLY)
print(call(s, 99), call(s, -1, b"x" * 511), call(s, 1, b"x" * 512), call(s, 3, b"a\0b"), call(s, 3, b"zzz"))
s.send(b"abc")
print(struct.unpack("i", s.recv(600)[:4])[0])
print(call(s, 1, b"~many", [null] * 3), call(s, 3, b"~many"), call(s, 1, b"~more", [null] * 4), call(s, 3, b"~"), call(s, 2, b"~many"), call(s, 2, b"~many"))
full = 0
for i in range(16384):
    full = call(s, 1, b"~%d" % i)[0]
    if full:
        break
print(full, i > 16000)
for i in range(16384):
    call(s, 2, b"~%d" % i)
others = [connect() for _ in range(20)]
print(call(s, 3, b"~"))
P
same messages_that_are_wrong_are_refused "$(cat "$TMP/out")" "(38, b'', 0) (38, b'', 0) (74, b'', 0) (74, b'', 0) (2, b'', 0)
74
(0, b'', 0) (2, b'', 0) (24, b'', 0) (0, b'~many', 3) (0, b'', 0) (0, b'', 0)
28 True
(2, b'', 0)"
check it_still_holds_what_it_held holds 3

STEP=unstaged
recall live
unpublish && unstage || fail unstage "$(said)"
check it_holds_no_mount_that_is_gone wait_for 60 holds 2
# One that goes while no node plugin runs, as at the drain of a node by hand.
recall set
kill -STOP "${PID[keeper]}"
unpublish
unstage
end node KILL
kill -CONT "${PID[keeper]}"
start_node
check also_if_the_node_plugin_could_not_say_so wait_for 60 holds 1
recall image
check an_image_is_unstaged down
check at_last_it_holds_nothing wait_for 60 holds 0
recall set
delete_volume
recall live
subsnap rm "$SUBVOLUME" v1 --group_name csi
delete_volume
