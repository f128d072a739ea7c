#!/bin/bash
# A second client, plain libcephfs, changes what Hearth has cached: the next open through Hearth
# never shows old bytes.
. "$(dirname "$0")/lib.sh"
init
start_ceph
start_hearth
published_volume pvc-coherence-$RANDOM 1073741824
second_client

client() { talk client "$@" || fail "client_$1" "$* gave $ANSWER"; }

cached() { # FILE...: reads each until it is in the cache and served from there
    local f want
    for f in "$@"; do cat "$TARGET/$f" >/dev/null; done
    sync
    echo 3 >/proc/sys/vm/drop_caches
    want=$(volume_stat hits)
    for f in "$@"; do
        # Opening again until the open is a hit: the fill runs behind the first reader.
        wait_for 10 hit_rises "$f" || fail "cached_before_$STEP" "$f is not served from the cache"
    done
}
hit_rises() {
    local before
    before=$(volume_stat hits)
    cat "$TARGET/$1" >/dev/null
    [ "$(volume_stat hits)" -gt "$before" ]
}
reads() { # FILE: what Hearth shows
    local text
    # A read that hangs cannot be killed, only left alone.
    IFS= read -r -d '' -t 20 text < <(cat "$TARGET/$1" 2>&1)
    [ $? -le 128 ] || text="no answer in 20 s"
    printf '%s\n' "$text"
}

STEP=overwrite
client write /a "first content, rather long"
cached a
client write /a "second"
same overwritten_file_is_read_new "$(reads a)" second

STEP=same_size
client write /a AAAAAAAA
cached a
client put /a 0 BBBBBBBB
same same_size_in_the_same_second_is_read_new "$(reads a)" BBBBBBBB

STEP=touch
client mtime /a
stamp=${ANSWER%.*}
client touch /a "$stamp"
cached a
client put /a 0 CCCCCCCC
client touch /a "$stamp"
same same_size_and_mtime_is_read_new "$(reads a)" CCCCCCCC

STEP=append
cached a
client append /a ++
same appended_bytes_are_read "$(reads a)" CCCCCCCC++

STEP=truncate
cached a
client truncate /a 3
same truncated_file_is_short "$(reads a)" CCC
client truncate /a 0
same truncated_to_nothing "$(reads a)" ""

STEP=delete
client write /d "to be deleted"
cached d
client unlink /d
same deleted_file_is_gone "$(reads d)" "cat: $TARGET/d: No such file or directory"
client write /d "born again"
same recreated_file_is_read_new "$(reads d)" "born again"

STEP=rename
client write /old "moves"
client write /over "is replaced"
cached old over
client rename /old /over
same replaced_file_is_read_new "$(reads over)" moves
same renamed_file_is_gone "$(reads old)" "cat: $TARGET/old: No such file or directory"

STEP=swap
client write /x "was x"
client write /y "was y"
cached x y
client rename /x /z
client rename /y /x
client rename /z /y
same swapped_names_first "$(reads x)" "was y"
same swapped_names_second "$(reads y)" "was x"

STEP=directories
client mkdir /dir
client write /dir/f "in dir"
cached dir/f
client rename /dir /moved
same file_below_renamed_directory "$(reads moved/f)" "in dir"
same nothing_below_the_old_name "$(reads dir/f)" "cat: $TARGET/dir/f: No such file or directory"
ls "$TARGET/moved" >/dev/null
client write /moved/new "new"
same new_name_is_listed "$(ls "$TARGET/moved" | tr '\n' ' ')" "f new "
client unlink /moved/f
same removed_name_is_not_listed "$(ls "$TARGET/moved")" new

STEP=negative
same missing_name "$(reads later)" "cat: $TARGET/later: No such file or directory"
client write /later "now"
same name_once_missing_is_found "$(reads later)" now

STEP=symlink
client write /one 1
client write /two 2
client symlink one /link
same symlink_is_followed "$(reads link)" 1
client unlink /link
client symlink two /link
same replaced_symlink_is_followed "$(reads link)" 2

STEP=mode
client write /m x
cached m
client chmod /m 600
same changed_mode_is_seen "$(stat -c %a "$TARGET/m")" 600

STEP=held_open
client write /h HELD-OLD
cached h
talk_start hold "$BUILD/tools/file-hold" "$TARGET/h"
talk hold read
same held_file_before "$ANSWER" HELD-OLD
talk hold map
client put /h 0 HELD-NEW
talk hold reopen
same reopen_while_another_descriptor_is_open_is_new "$ANSWER" HELD-NEW
same another_process_reads_new "$(reads h)" HELD-NEW
held_is() { talk hold "$1" && [ "$ANSWER" = "$2" ]; }
check held_descriptor_comes_to_see_it wait_for 5 held_is read HELD-NEW
check mapping_comes_to_see_it wait_for 5 held_is map HELD-NEW
client truncate /h 4
same reopen_after_truncation "$(reads h)" HELD
client unlink /h
client write /h "another file"
same reopen_after_replacement "$(reads h)" "another file"
talk_end hold

STEP=writer_holds_open
client write /w W0
cached w
client open /w
client write-open 0 W1
client close
same bytes_of_a_closed_writer_are_read "$(reads w)" W1
client open /w
client write-open 0 W2
same bytes_of_an_open_writer_are_read "$(reads w)" W2
client close

STEP=other_direction
echo -n "from hearth" >"$TARGET/ours"
client cat /ours
same client_reads_what_hearth_wrote "$ANSWER" "from hearth"
echo -n "from hearth, again" >"$TARGET/ours"
client cat /ours
same client_reads_what_hearth_overwrote "$ANSWER" "from hearth, again"
mv "$TARGET/ours" "$TARGET/theirs"
talk client cat /ours
same client_sees_the_rename "$ANSWER" "error ENOENT"

STEP=large
client fill /big 12000000 65
same large_file_before "$(tr -d A <"$TARGET/big" | wc -c)" 0
cached big
client put /big 8388600 BBBBBBBBBBBBBBBB
same changed_in_the_middle "$(tr -d A <"$TARGET/big" | wc -c)" 16
cached big
client fill /big 9000000 67
same large_file_rewritten_shorter "$(tr -d C <"$TARGET/big" | wc -c) $(stat -c %s "$TARGET/big")" "0 9000000"

STEP=race
# A reader keeps the files hot while the client rewrites them; after each acknowledged write, a fresh
# open shows that write. Sizes stay the same, so nothing but the content can tell.
for i in 0 1 2; do client write /race$i 000000; done
(
    trap - EXIT
    while cat "$TARGET"/race? >/dev/null 2>&1; do :; done
) &
reader=$!
stale=0 last=
for round in $(seq 200); do
    number=$(printf %06d "$round")
    file=race$((round % 3))
    client put /$file 0 "$number"
    got=$(reads $file)
    [ "$got" = "$number" ] || { stale=$((stale + 1)) last="$file showed $got after $number was written"; }
    [ "$got" != "no answer in 20 s" ] || break
done
# One that hangs in the kernel is let go by the cleanup.
kill -KILL "$reader"
same no_stale_read_in_200_rewrites_under_load "$stale $last" "0 "
