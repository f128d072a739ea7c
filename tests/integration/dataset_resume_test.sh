#!/bin/bash
# Datasets outlive hearthd: it is killed, ends, crashes or does not come back while files that the
# node does not hold are being read. What the next hearthd can serve fails no reader.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/weak_pool.sh"
init
ROUNDS=${ROUNDS:-12} # kills under readers
start_ceph --conf 'mon_allow_pool_size_one = true'
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

needs_resend

STEP=setup
ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create resume-$$ --group_name csi --size 2147483648
ROOT_PATH=$(sub getpath resume-$$ --group_name csi)
weak_pool
second_client
client() { talk client "$@" || die "the source: $* gave $ANSWER"; }
client mkdir /hung
weak_layout client /hung
for i in $(seq 5); do client write "/hung/$i" "text of $i"; done
mkdir "$TMP/source"
python3 - "$TMP/source" <<'P' || die "no source"
import os, random, sys
r = random.Random(1)
for i in range(240):
    with open(f"{sys.argv[1]}/f{i}", "wb") as f:
        f.write(r.randbytes(r.choice((100, 5000, 70000, 400000))))
for i in range(3):
    with open(f"{sys.argv[1]}/large{i}", "wb") as f:
        f.write(r.randbytes(12 << 20))
os.mkdir(f"{sys.argv[1]}/apart")
for i in range(20):
    with open(f"{sys.argv[1]}/apart/{i}", "wb") as f:
        f.write(r.randbytes(3 << 20))
P
mkdir -p "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
mounted() { mountpoint -q "$TMP/mnt/ceph"; }
wait_for 30 mounted || die "ceph-fuse does not mount: $(tail -n 3 "$TMP/log/ceph-fuse.log")"
cp -r "$TMP/source" "$TMP/mnt/ceph$ROOT_PATH/tree" && mv "$TMP/mnt/ceph$ROOT_PATH/tree/apart" "$TMP/mnt/ceph$ROOT_PATH/" || die "cannot copy"
umount "$TMP/mnt/ceph"
end ceph-fuse
subsnap create resume-$$ v1 --group_name csi
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
delete_volume() { :; }
create_volume pvc-resume-$$ 2147483648 "{\"dataset\": \"resume-$$@v1\"}" || die "CreateVolume: $(said)"
stage && publish || die "stage: $(said)"
same it_is_mounted_natively "$(findmnt -n -o FSTYPE --mountpoint "$TARGET")" overlay

is_source() { # FILE, of tree/; or apart/NUMBER, which nobody has read
    case $1 in
    apart/*) cmp "$TMP/source/$1" "$TARGET/$1" ;;
    *) cmp "$TMP/source/$1" "$TARGET/tree/$1" ;;
    esac
}
again() { stage && publish; } # as kubelet does for a new pod
layers() { (cd "$DEVICES" && ls -d -- *.fill 2>/dev/null | tr '\n' ' '); }
first_layers=$(layers)
evict_all() { hearthctl evict --all >/dev/null; }

STEP=killed
end hearthd KILL
cmp "$TMP/source/f1" "$TARGET/tree/f1" >"$TMP/out" 2>&1 &
reader=$!
sleep 0.5
check a_read_waits_for_the_next_hearthd kill -0 $reader
began=$(date +%s%N)
start_hearthd
wait $reader
same and_gets_its_bytes "$?:$(cat "$TMP/out")" "0:"
echo "# $((($(date +%s%N) - began) / 1000000)) ms from the start of hearthd to its end"
check files_that_were_never_read_are_read is_source f2
same by_the_same_layer "$(layers)" "$first_layers"

STEP=readers
evict_all
spawn readers python3 "$(dirname "$0")/resume_readers.py" "$TARGET/tree" 600 8
readers_say() { tail -n 1 "$TMP/log/readers.log"; }
for i in $(seq "$ROUNDS"); do
    sleep "0.$((RANDOM % 9))"
    signal=KILL
    [ $((i % 4)) -ne 0 ] || signal=TERM
    end hearthd $signal
    start_hearthd
    evict_all
done
kill -TERM "${PID[readers]}"
wait "${PID[readers]}"
rc=$?
echo "# $ROUNDS ends of hearthd: $(readers_say)"
same no_reader_saw_an_error "$rc:$(readers_say | jq -r '.errors | length'):$(readers_say | jq .wrong)" 0:0:0
check and_they_did_read [ "$(readers_say | jq .reads)" -gt "$ROUNDS" ]
check every_pause_was_short [ "$(readers_say | jq .pause_max_ms)" -lt 20000 ]
same by_the_same_layer "$(layers)" "$first_layers"
for f in $(cd "$TMP/source" && echo f* large*); do is_source "$f" >/dev/null || fail all_files_are_right "$f"; done
pass all_files_are_right

# ---- reads that Ceph does not answer while hearthd ends ----
STEP=unanswered
hang_weak
begin_read() { # NUMBER, of a file whose placement group hangs; its PID is in READER
    cat "$TARGET/hung/$1" >"$TMP/hung.$1" 2>"$TMP/err.$1" &
    READER=$!
    sleep 1
}
waits() { kill -0 "$1" 2>/dev/null && [[ $(awk '/^State/ {print $2}' "/proc/$1/status" 2>/dev/null) != Z ]]; }
begin_read 1
first=$READER
end hearthd KILL
check a_read_waits_after_KILL waits $first
start_hearthd
began=$(date +%s%N)
check other_files_are_read is_source apart/0
echo "# $((($(date +%s%N) - began) / 1000000)) ms until another file was read"
check and_the_read_waits_on waits $first
begin_read 2
second=$READER
end hearthd TERM
check both_wait_after_TERM eval "waits $first && waits $second"
start_hearthd
check other_files_are_read is_source apart/1
begin_read 3
end hearthd KILL
kill -KILL $READER
check a_waiting_reader_can_be_killed wait_for 5 eval "! waits $READER"
start_hearthd
check other_files_are_read is_source apart/2
heal_weak
wait $first
same the_first_read_has_its_bytes "$?:$(cat "$TMP/hung.1")" "0:text of 1"
wait $second
same and_the_second_one "$?:$(cat "$TMP/hung.2")" "0:text of 2"

# ---- one request that crashes each hearthd: after a read ahead the kernel would ask once more ----
STEP=crashes
hang_weak
dd if="$TARGET/hung/4" iflag=direct bs=64k status=none >/dev/null 2>"$TMP/err.4" &
READER=$!
sleep 1
for i in 1 2 3; do
    end hearthd SEGV
    check a_read_waits_after_crash_$i waits $READER
    start_hearthd
    check others_are_served_after_crash_$i is_source apart/1$i
done
wait $READER
same the_read_under_way_then_fails "$?:$(grep -c "Input/output error" "$TMP/err.4")" 1:1
heal_weak
check and_the_next_one_does_not wait_for 30 cat "$TARGET/hung/4"

# ---- a node plugin that was restarted, and both in turn ----
STEP=node_plugin
end node KILL
start_node
kept() { ls -l "/proc/${PID[node]}/fd" | grep -q /dev/fuse; }
check the_next_node_plugin_has_the_descriptor wait_for 10 kept
evict_all
end hearthd KILL
start_hearthd
check and_the_next_hearthd_serves_it is_source apart/4
end node KILL
end hearthd KILL
start_hearthd
start_node
drop_all
cat "$TARGET/apart/5" >"$TMP/out" 2>"$TMP/err"
check both_at_once_are_an_error grep -q "not connected\|abort" "$TMP/err"
TARGET=$TMP/mnt/pod/anew
check and_the_next_pod_has_a_new_mount again
check which_is_right is_source apart/5
second_layers=$(layers)

# ---- calls in between ----
STEP=calls
end hearthd KILL
csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $path, staging_target_path: $stage}' \
    --arg id "$VOLUME_ID" --arg path "$TARGET" --arg stage "$STAGE")"
check the_condition_says_that_reads_wait grep -q "reads wait" <<<"$REPLY_JSON"
start_hearthd
FIRST=$TARGET TARGET=$TMP/mnt/pod/second
check a_pod_at_once_after_the_start publish
check shares_the_mount is_source apart/6
TARGET=$FIRST
check with_the_first_one is_source apart/7
same by_one_layer "$(layers)" "$second_layers"

# ---- a manifest that was lost ----
STEP=manifest
end hearthd KILL
rm "$CACHE"/manifests/*
start_hearthd
evict_all
check a_manifest_is_built_again is_source apart/8
same for_the_same_layer "$(layers)" "$second_layers"

# ---- an hearthd that does not come back ----
STEP=gone
end node KILL
start_node --hearthd-wait=3
check the_descriptor_is_kept wait_for 10 kept
evict_all
drop_all
end hearthd KILL
began=$SECONDS
cat "$TARGET/apart/9" >"$TMP/out" 2>"$TMP/err"
check a_read_fails_after_hearthd_wait grep -q "not connected\|abort" "$TMP/err"
check and_not_before [ $((SECONDS - began)) -ge 2 ]
start_hearthd
TARGET=$TMP/mnt/pod/third
check the_next_pod_has_a_new_mount again
check which_is_right is_source apart/9
check of_another_layer [ "$(layers)" != "$second_layers" ]

# ---- what is left ----
STEP=end
end hearthd KILL
for TARGET in "$TMP"/mnt/pod/*; do check unpublished_without_hearthd unpublish; done
start_hearthd
check unstaged unstage
same no_mount_is_left "$(mounts_below "$TMP/mnt")" ""
same no_layer_is_left "$(layers)" ""
same hearthd_serves_nothing "$(hearthctl status --json | jq '.volumes | length')" 0
