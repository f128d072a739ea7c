#!/bin/bash
# A pod's fsGroup (VOLUME_MOUNT_GROUP) on a real Ceph: every file is usable by the group on this node,
# nothing is changed in Ceph, and two groups at once are refused, not mixed up.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

code() { same "$1" "$CSI_CODE" "$2"; }
group() { CAPABILITY="{mount: {volume_mount_group: \"$1\"}, access_mode: {mode: \"${2:-MULTI_NODE_MULTI_WRITER}\"}}"; }
no_group() { CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'; }
# Someone who is neither the owner nor anybody's group but the pod's.
# In the volume, since the way to it is root's alone.
as_member() {
    (cd "$TARGET" && PATH=/usr/bin:/bin setpriv --reuid 4001 --regid 4001 --groups "${MEMBER_OF:-4242}" --no-new-privs "$@")
}
in_ceph() { second_client; talk client owner "$1"; talk_end client; echo "$ANSWER"; }

csi node NodeGetCapabilities '{}'
same it_is_advertised "$(jq -r '.capabilities[].rpc.type' <<<"$REPLY_JSON" | grep -c VOLUME_MOUNT_GROUP)" 1
create_volume pvc-group-$$ 1073741824 || die "CreateVolume: $(said)"
second_client
talk client mkdir private
talk client write private/file secret of root
talk client chmod private/file 600
talk client chmod private 700
talk client write script text
talk client chmod script 500
talk_end client
before=$(in_ceph private/file)/$(in_ceph private)

# ---- a pod with a group ----
group 4242
check staged stage
check published publish
same shown_for_the_group "$(stat -c '%g %a' "$TARGET/private" "$TARGET/private/file" "$TARGET/script" | tr '\n' ' ')" \
    "4242 2770 4242 660 4242 760 "
same read_by_the_group "$(as_member cat "private/file")" "secret of root"
check written_by_the_group as_member bash -c "echo more >>'private/file'"
check made_by_the_group as_member bash -c "echo new >'private/new' && mkdir 'private/dir' && ln -s new 'private/link'"
check a_mapping_too as_member python3 -c "import mmap
f = open('private/file', 'r+b')
m = mmap.mmap(f.fileno(), 0); m[0:6] = b'SECRET'; m.flush()"
same is_what_is_there "$(cat "$TARGET/private/file")" "SECRET of rootmore"
MEMBER_OF=4243 as_member cat "private/file" >/dev/null 2>&1 && fail others_are_kept_out "it was read" || pass others_are_kept_out
sync -f "$TARGET"
same nothing_is_changed_in_ceph "$(in_ceph private/file)/$(in_ceph private)" "$before"
same what_is_new_is_the_groups "$(in_ceph private/new | cut -d ' ' -f 1,2)/$(in_ceph private/dir | cut -d ' ' -f 1,2)" "4001 4242/4001 4242"

# ---- a second pod ----
first=$TARGET
TARGET=$TMP/mnt/pod/second
group 5555
publish
code of_another_group FAILED_PRECONDITION
case $CSI_MESSAGE in *fsGroup*) pass names_the_fix ;; *) fail names_the_fix "$CSI_MESSAGE" ;; esac
[ -e "$TARGET" ] && fail leaves_nothing "there is $TARGET" || pass leaves_nothing
group 4242
check of_the_same_group publish
check unpublished unpublish
no_group
check of_no_group publish
check unpublished unpublish
TARGET=$first
check unpublished unpublish
# Still staged, and nobody's.
group 5555
check after_it_another_group publish
same has_its_own "$(stat -c %g "$TARGET/private/file")" 5555
same and_reads "$(MEMBER_OF=5555 as_member head -c 6 "private/file")" SECRET

# ---- hearthd and node plugin start anew ----
end node TERM 25
start_node
publish
code published_again OK
group 4242
TARGET=$TMP/mnt/pod/second publish
code the_group_is_remembered FAILED_PRECONDITION
group 5555
end hearthd KILL
start_hearthd
check published_anew publish
same for_the_group "$(stat -c %g "$TARGET/private/file")" 5555
check unpublished unpublish
check unstaged unstage

# ---- what it is not ----
group wheel
stage
code a_name_is_no_group INVALID_ARGUMENT
group 4242 MULTI_NODE_READER_ONLY
stage && publish || die "stage: $(said)"
same for_readers "$(stat -c %a "$TARGET/private/file" "$TARGET/script" | tr '\n' ' ')" "640 540 "
same read_by_the_group "$(as_member head -c 6 "private/file")" SECRET
unpublish && unstage
no_group
stage && publish || die "stage: $(said)"
same without_one_all_is_as_it_is "$(stat -c '%g %a' "$TARGET/private" | tr '\n' ' ')" "0 700 "
unpublish && unstage
delete_volume || fail delete "$(said)"

# ---- the file system of an image, which the kernel mounts by itself ----
. "$(dirname "$0")/rbd_lib.sh"
end node TERM 25
rm -f "$NODE"
spawn node "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=test-node --device-dir="$TMP/devices" \
    --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json"
wait_socket node "$NODE"
create_image pvc-group-rbd-$$ 67108864 || die "CreateVolume: $(said)"
group 4242 SINGLE_NODE_WRITER
stage && publish || die "stage: $(said)"
same an_image_is_the_groups "$(stat -c '%g %a' "$TARGET")" "4242 2775"
check written_by_the_group as_member bash -c "mkdir d && echo text >d/file && chmod 600 d/file"
TARGET=$TMP/mnt/pod/second
group 5555 SINGLE_NODE_WRITER
publish
code of_another_group FAILED_PRECONDITION
TARGET=$first
check unpublished unpublish
check after_it_another_group publish
same has_all_files "$(stat -c '%g %a' "$TARGET" "$TARGET/d" "$TARGET/d/file" | tr '\n' ' ')" "5555 2775 5555 2775 5555 660 "
same and_reads "$(MEMBER_OF=5555 as_member cat d/file)" text
unpublish && unstage
delete_volume || fail delete "$(said)"
exit 0
