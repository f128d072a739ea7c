#!/bin/bash
# The Ceph users of the installation (docs/install.md), as it makes them: what each of them can not do. That they
# can do all they are for, documents_test shows; the users of all other tests have no more rights.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
reader_begin
start_ceph
own_user
reader_has ceph "$ONE_NODE" ceph "$CEPH_DIR"
at_exit 'for user in provisioner node warm; do ceph_cmd auth rm client.hearth-$user >/dev/null 2>&1; done'
documented_block docs/install.md '1. The Ceph users' FSNAME=hearthfs POOL=rbd
documented docs/install.md 'ceph auth get-or-create client.hearth-warm' FSNAME=hearthfs
for user in provisioner node warm; do
    ceph_cmd auth get "client.hearth-$user" >"$TMP/$user.keyring" 2>/dev/null || die "no user $user"
done
NODE_ID=hearth-node NODE_KEY=$(<"$READER/node.key")
PROVISIONER_ID=hearth-provisioner PROVISIONER_KEY=$(<"$READER/provisioner.key")
start_hearth

as() { # USER PROGRAM ARGS...
    local user=$1 program=$2
    shift 2
    timeout -k 5 30 "$program" -c "$CEPH_CONF" --keyring "$TMP/$user.keyring" --id "hearth-$user" "$@" 2>"$TMP/as.err" >"$TMP/as.out"
}
refused() { # NAME USER PROGRAM ARGS...: by Ceph, and for its rights
    local name=$1
    shift
    if as "$@"; then
        fail "$name" "it was allowed"
    elif grep -qE 'EPERM|EACCES|not permitted|ermission denied|access denied' "$TMP/as.err"; then
        pass "$name"
    else
        fail "$name" "$(tail -n 2 "$TMP/as.err")"
    fi
}
denied() { # NAME: so was the client answered last
    case $ANSWER in *EPERM* | *EACCES*) pass "$1" ;; *) fail "$1" "$ANSWER" ;; esac
}

# ---- what is there: a volume with a snapshot, an image, and a pool that is neither's
published_volume "pvc-users-$$"
printf seen >"$TARGET/file" && sync -f "$TARGET" || die "the volume is not written"
check a_volume_is_mounted_by_the_nodes_user grep -q seen "$TARGET/file"
LIVE=$VOLUME_ID LIVE_PATH=$ROOT_PATH NAME=csi-vol-pvc-users-$$
create_image "pvc-users-image-$$" 67108864 || die "CreateVolume: $(said)"
IMAGE=csi-vol-pvc-users-image-$$ IMAGE_ID=$VOLUME_ID
at_exit 'VOLUME_ID=$IMAGE_ID; delete_volume; VOLUME_ID=$LIVE'
echo other | on_pool put "other-$$" - && POOL=rbd.ec on_pool put "other-$$" - </dev/null || die "no objects of others"
at_exit 'on_pool rm "other-$$"; POOL=rbd.ec on_pool rm "other-$$"'

# ---- the node's user makes and removes no volume
NODES=("$NODE_ID" "$NODE_KEY")
with_the_nodes_key() { PROVISIONER_ID=${NODES[0]} PROVISIONER_KEY=${NODES[1]} "$@"; }
with_the_nodes_key create_volume "pvc-not-$$"
code node_makes_no_volume PERMISSION_DENIED
VOLUME_ID=$LIVE
with_the_nodes_key delete_volume
code node_deletes_no_volume PERMISSION_DENIED
with_the_nodes_key create_image "pvc-not-$$" 67108864
code node_makes_no_image PERMISSION_DENIED
VOLUME_ID=$IMAGE_ID
with_the_nodes_key delete_volume
code node_deletes_no_image PERMISSION_DENIED
VOLUME_ID=$LIVE
refused nor_past_the_driver_a_subvolume node ceph fs subvolume rm hearthfs "$NAME" --group_name csi
refused nor_makes_a_snapshot node ceph fs subvolume snapshot create hearthfs "$NAME" s --group_name csi
refused nor_gives_rights_to_others node ceph fs subvolume authorize hearthfs "$NAME" other --group_name csi
refused nor_past_the_driver_an_image node rbd rm "rbd/$IMAGE"
refused nor_makes_one node rbd create --size 64M "rbd/not-$$"
refused nor_changes_a_record_of_an_image node rados -p rbd setomapval hearth.records "vol.$$" x
refused nor_one_of_a_volume node rados -p hearthfs.meta -N hearth put "vol.$NAME" /dev/null
refused nor_removes_one node rados -p hearthfs.meta -N hearth rm "vol.$NAME"

# ---- nor reads what is of others
refused node_reads_no_other_pool node rados -p rbd.ec get "other-$$" /dev/null
refused nor_lists_one node rados -p rbd.ec ls
refused nor_other_objects_of_its_pool node rados -p rbd get "other-$$" /dev/null
refused nor_the_directories_of_the_file_system node rados -p hearthfs.meta get 1.00000000 /dev/null
refused nor_makes_a_user node ceph auth get-or-create client.other mon 'allow r'
refused nor_reads_a_key node ceph auth get client.admin
mounts() { # USER PATH: of the file system
    timeout 20 "$BUILD/tools/cephfs-client" "$CEPH_CONF" "hearth-$1" "$TMP/$1.keyring" hearthfs "$2" </dev/null 2>"$TMP/as.err" | grep -q '^ok'
}
check node_mounts_its_group mounts node /volumes/csi
check but_not_what_is_beside_it eval '! mounts node /'
talk_start nodes-client "$BUILD/tools/cephfs-client" "$CEPH_CONF" hearth-node "$TMP/node.keyring" hearthfs "$LIVE_PATH" || die "no client: $ANSWER"
talk nodes-client mkdir .snap/mine
denied nor_makes_a_snapshot_by_its_directory
talk_end nodes-client

# ---- the provisioner's reads no volume
refused provisioner_reads_no_files provisioner rados -p hearthfs.data ls
check nor_mounts_one eval '! mounts provisioner "$LIVE_PATH"'

# ---- that of warm-ups reads, and no more
talk_start warm "$BUILD/tools/cephfs-client" "$CEPH_CONF" hearth-warm "$TMP/warm.keyring" hearthfs "$LIVE_PATH" || die "no client: $ANSWER"
talk warm cat file
same warm_user_reads "$ANSWER" seen
talk warm put file 0 other
denied but_does_not_write
talk warm mkdir directory
denied nor_makes_a_directory
talk_end warm
refused nor_past_the_mds warm rados -p hearthfs.data put "x-$$" /dev/null
refused nor_an_image warm rados -p rbd ls

# ---- a tenant with a key of its own: for the pool, as `fs authorize` gives it, and for a RADOS namespace
documented SECURITY.md 'ceph fs subvolume create … --namespace-isolated' …="hearthfs isolated-$$ --group_name csi"
at_exit 'ceph_cmd fs subvolume rm hearthfs "isolated-$$" --group_name csi'
documented SECURITY.md 'ceph fs subvolume authorize' -- hearthfs "isolated-$$" "isolated-$$" --group_name csi
documented SECURITY.md 'ceph fs authorize' -- hearthfs "client.wide-$$" "$LIVE_PATH" rw
at_exit 'for user in isolated wide; do ceph_cmd auth rm "client.$user-$$" >/dev/null 2>&1; done'
NAMESPACE=$(ceph_cmd fs subvolume info hearthfs "isolated-$$" --group_name csi --format json | jq -r .pool_namespace)
NODE_ID=isolated-$$ NODE_KEY=$(ceph_cmd auth print-key "client.isolated-$$")
CONTEXT=$VOLUME_CONTEXT HERE=("$VOLUME_ID" "$STAGE" "$TARGET")
VOLUME_ID=isolated-$$ STAGE=$TMP/mnt/stage-isolated TARGET=$TMP/mnt/pod/isolated
ROOT_PATH=$(ceph_cmd fs subvolume getpath hearthfs "isolated-$$" --group_name csi)
VOLUME_CONTEXT=$(static_context "$ROOT_PATH")
check an_isolated_tenants_volume_is_mounted eval 'stage && publish'
printf own >"$TARGET/file" && sync -f "$TARGET"
same its_files_are_in_a_namespace_of_their_own "$(timeout 30 rados -c "$CEPH_CONF" -p hearthfs.data -N "$NAMESPACE" ls | wc -l)" 1
VOLUME_CONTEXT=$(jq -c --arg p "$LIVE_PATH" '.rootPath = $p' <<<"$VOLUME_CONTEXT") VOLUME_ID=other-$$ STAGE=$TMP/mnt/stage-other stage
code it_mounts_no_others PERMISSION_DENIED
unpublish && unstage || fail the_isolated_one_is_left "$(said)"
VOLUME_ID=${HERE[0]} STAGE=${HERE[1]} TARGET=${HERE[2]} VOLUME_CONTEXT=$CONTEXT
raw() { # TENANT: the object of the volume's file, by its inode, past the MDS
    ceph_cmd auth get "client.$1-$$" >"$TMP/$1.keyring" 2>/dev/null
    timeout 30 rados -c "$CEPH_CONF" --keyring "$TMP/$1.keyring" --id "$1-$$" -p hearthfs.data get "$(printf %x.00000000 "$(stat -c %i "$TARGET/file")")" - 2>&1
}
case $(raw isolated) in *"not permitted"*) pass it_reads_no_objects_of_others ;; *) fail it_reads_no_objects_of_others "$(raw isolated)" ;; esac
# As SECURITY.md says: nothing of Hearth's stops this. Should Ceph do so one day, the document is to say it.
same one_for_the_pool_reads_them "$(raw wide)" seen

# ---- all is there
check the_image_is_there rbd_cmd info "rbd/$IMAGE"
same the_file_too "$(<"$TARGET/file")" seen
