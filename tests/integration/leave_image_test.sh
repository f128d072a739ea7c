#!/bin/bash
# A hearthd that is asked to end leaves its images to the next one: their file systems see no error.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_static.sh"
init
ROUNDS=${ROUNDS:-4} # ends under load
needs_resend
start_ceph
start_hearthd
start_node
RUN=$RANDOM
new_image leave 1G
at_exit 'rbd_cmd rm --no-progress "rbd/$NAME"'
capability ext4 "$WRITER"
stage && publish || die "$(said)"

# A database that commits, is compared with what was committed, and says how often it did.
python3 - "$TARGET/db" "$TMP/stop" >"$TMP/committed" 2>&1 <<'P' &
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("pragma journal_mode = wal")
db.execute("create table t (n integer primary key, s text)")
n = 0
print("began", flush=True)
while not os.path.exists(sys.argv[2]):
    with db:
        db.executemany("insert into t values (?, ?)", [(n + i, str(n + i) * 50) for i in range(20)])
    n += 20
    if n % 400 == 0:
        got = db.execute("select count(*), sum(n) from t").fetchone()
        assert got == (n, n * (n - 1) // 2), got
        os.posix_fadvise(os.open(sys.argv[1], os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)
print(n)
P
database=$!
has_begun() { grep -q began "$TMP/committed"; }
wait_for 60 has_begun || die "no database: $(cat "$TMP/committed")"
for ((i = 0; i < ROUNDS; i++)); do
    sleep "1.$((RANDOM % 9))"
    end hearthd TERM 25
    [ $i != 1 ] || sleep 3
    start_hearthd
done
sleep 2
touch "$TMP/stop"
wait $database
same the_database_saw_no_error "$?:$(grep -c Error "$TMP/committed")" "0:0"
echo "# $ROUNDS ends, $(tail -n 1 "$TMP/committed") rows"
check it_did_much test "$(tail -n 1 "$TMP/committed")" -gt 200
same the_log_says_so "$(grep -c 'its mount ends with this hearthd' "$TMP/log/hearthd.log")" 0
rows=$(python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("select count(*) from t").fetchone()[0])' "$TARGET/db")
same every_row_is_there "$rows" "$(tail -n 1 "$TMP/committed")"
unpublish && unstage || die "$(said)"
same nothing_is_left "$(mounts_below "$TMP/mnt") $(loops_below "$TMP")" " "

# From Ceph, without Hearth.
rbd_cmd export "rbd/$NAME" "$TMP/export.img" >/dev/null
e2fsck -fn "$TMP/export.img" >"$TMP/out" 2>&1
same the_file_system_is_whole "$?" 0
rm -f "$TMP/export.img"
