#!/bin/bash
# hearthd bounds how many inodes of live volumes it remembers: the kernel forgets some that are not in use. Open files and
# the working directory of a process stay as they are.
. "$(dirname "$0")/lib.sh"
init
start_ceph
MOST=500 FILES=1500
start_hearth --live-inodes=$MOST
published_volume "pvc-inodes-$$"

held() { hearthctl status --json | jq .daemon.liveInodes; }
within() { [ "$(held)" -le $MOST ]; }
mkdir -p "$TARGET/many" "$TARGET/deep/in/here"
(cd "$TARGET/many" && seq "$FILES" | xargs touch)
for i in 1 2 3; do echo "text $i" >"$TARGET/deep/in/here/$i"; done
echo covered >"$TARGET/many/mounted"
echo cover >"$TMP/cover"
mount --bind "$TMP/cover" "$TARGET/many/mounted"
at_exit 'umount "$TARGET/many/mounted" 2>/dev/null'
exec 7<"$TARGET/deep/in/here/1"
bash -c 'cd "$1" || exit 1; while [ ! -e "$2" ]; do sleep 0.2; done; pwd; cat 2; cat <&7' - "$TARGET/deep/in/here" "$TMP/go" >"$TMP/inside" &
INSIDE=$!
same all_are_listed "$(ls -l "$TARGET/many" | grep -c '^-')" "$((FILES + 1))"
check the_kernel_forgets_them wait_for 30 within
same they_are_there_nevertheless "$(ls -l "$TARGET/many" | grep -c '^-')" "$((FILES + 1))"
check and_are_forgotten_again wait_for 30 within
wrong=
for i in 1 $((FILES / 2)) "$FILES"; do echo "$i" >"$TARGET/many/$i" && [ "$(<"$TARGET/many/$i")" = "$i" ] || wrong="$wrong $i"; done
same they_are_written "$wrong" ""
touch "$TMP/go"
wait $INSIDE
same who_was_in_a_directory_is_still_there "$(<"$TMP/inside")" "$TARGET/deep/in/here
text 2
text 1"
same what_a_pod_has_mounted_on_a_file_is_still_mounted "$(<"$TARGET/many/mounted")" cover
umount "$TARGET/many/mounted"
same the_file_is_beneath_it "$(<"$TARGET/many/mounted")" covered
exec 7<&-
same the_bound_is_told "$(hearthctl status --json | jq .daemon.maxLiveInodes)" "$MOST"
remove_volume
none() { [ "$(held)" = 0 ]; }
check a_volume_that_is_left_has_none wait_for 10 none
