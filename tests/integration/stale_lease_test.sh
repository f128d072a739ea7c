#!/bin/bash
# The MDS stops for so long that hearthd asks for a second opinion, and waits for that inside libcephfs; it goes on, leases
# are taken again, and at once the node is cut off. Whatever waits in Ceph: 12 s after the cut no old byte is shown.
. "$(dirname "$0")/network.sh"
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/two_nodes.sh"
init
start_node_one
published_volume pvc-stale-$RANDOM 1073741824
second_client
mds() { timeout 10 ceph --admin-daemon "$CEPH_DIR/run/mds.a.asok" "$@" 2>/dev/null; }
connections() { in_network one awk '$4 == "01"' /proc/net/tcp | wc -l; }
another_connects() { [ "$(connections)" -gt "$BEFORE" ]; }
read_since() { awk -v at="$1" -v what="$2" '$1 > at && $2 == what' "$TMP/log/log-read.log" | wc -l; }
reads_on() { [ "$(read_since "$WOKEN" OLD1)" -ge 20 ]; } # for 1 s
hit_rises() {
    local before
    before=$(volume_stat hits)
    cat "$TARGET/clean" >/dev/null
    [ "$(volume_stat hits)" -gt "$before" ]
}

printf OLD1 >"$TARGET/clean"
sync -f "$TARGET"
check clean_is_in_the_cache wait_for 10 hit_rises
spawn log-read python3 "$TOP/tests/integration/read_log.py" read "$TARGET/clean"
check it_is_read wait_for 10 grep -q ' OLD1$' "$TMP/log/log-read.log"
# New connections alone are slow from now on, so that what hearthd asks on one is not answered before the cut.
ceph_cmd config set mds ms_inject_delay_type client
ceph_cmd config set mds ms_inject_delay_max 10
ceph_cmd config set mds ms_inject_delay_probability 1
BEFORE=$(connections)

halt mds.a
timeout 60 cat "$TARGET/clean" >/dev/null & # an open waits, too
check hearthd_asks_on_another_connection wait_for 45 another_connects
WOKEN=$(now)
continue_ceph
check leases_are_taken_again wait_for 10 reads_on
link_down one
cut=$(now)
for id in $(mds session ls | jq -r --arg root "$ROOT_PATH" \
    '.[] | select(.client_metadata | .root == $root and (.uuid // "" | startswith("hearth"))) | .id'); do
    mds session evict "$id" >/dev/null
done
talk client write /clean NEW1 || fail client_writes "$ANSWER"
late=$(awk -v cut="$cut" 'BEGIN { printf "%.3f", cut + 13 }') # 1 s for dropping
until [ "$(now | cut -d. -f1)" -gt $((${late%.*} + 6)) ]; do sleep 0.2; done
same no_old_byte_12_s_after_the_cut "$(read_since "$late" OLD1)" 0
link_up one
ceph_cmd config set mds ms_inject_delay_probability 0
check the_new_bytes_are_read wait_for 60 grep -q ' NEW1$' "$TMP/log/log-read.log"
end log-read KILL
