#!/bin/bash
# Users whom the MDS shows names, and whom OSDs refuse the data, are given no byte of it that another
# user has had fetched: of a dataset, of a live volume, also after their rights were taken away. Users
# with rights find it warm, and Ceph is asked for next to nothing.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

DATA=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").data_pools[0]')
RO='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
RW='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
BYTES=4000000
mount_type() { findmnt -n -o FSTYPE --mountpoint "$1" | tail -n 1; }
as() { # USER COMMAND...
    local key=KEY_$1
    local NODE_ID=$1-$$ NODE_KEY=${!key}
    shift
    "$@"
}
user() { # NAME OSD-CAPABILITY
    eval "KEY_$1=\$(ceph_cmd auth get-or-create-key client.$1-$$ mon 'allow r' mds 'allow rw fsname=hearthfs' osd '$2' 2>/dev/null)"
    at_exit "ceph_cmd auth rm client.$1-$$ >/dev/null 2>&1"
}
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT"; recall "$1"; }
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
leave() { unpublish && wait_for 20 unstage || fail "$1" "$(said)"; }
read_cold() { drop_page_cache && timeout 60 cat "$TARGET/secret"; }
refused() { # NAME: of the call just made
    if [ "$CSI_CODE" != PERMISSION_DENIED ]; then fail "$1" "$(said)"; else
        grep -q 'client.*osd capabilities' <<<"$CSI_MESSAGE" && pass "$1" || fail "$1" "the message says no fix: $(said)"
    fi
}
osd_reads() { "$ONE_NODE" perf "$CEPH_DIR" osd.0 osd.op_r; }
notes_of() { grep -l "\"$1-$$\"" "$CACHE"/manifests/place.* 2>/dev/null | wc -l; }
static() { # NAME: another handle of the live volume
    VOLUME_ID=$1-$$ VOLUME_CONTEXT=$(jq -cn --arg c "$CEPH_FSID" --arg p "$LIVE" \
        '{clusterID: $c, fsName: "hearthfs", rootPath: $p, staticVolume: "true"}')
    remember "$1"
}

# What anyone who is refused must not see.
secret() { printf 'PRIVATE-%s ' "$1"; head -c $BYTES /dev/zero | tr '\0' x; }
user owner "allow rw pool=$DATA"
user narrow "allow rw pool=$DATA namespace=mine"
user other "allow r pool=$DATA"
user inside "allow r pool=$DATA namespace=\"\""
ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create rights-$$ --group_name csi --size 1073741824
at_exit "subsnap rm rights-$$ v1 --group_name csi; sub rm rights-$$ --group_name csi"
ROOT_PATH=$(sub getpath rights-$$ --group_name csi)
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" -r "$ROOT_PATH" "$TMP/mnt/ceph"
wait_for 30 mountpoint -q "$TMP/mnt/ceph" || die "ceph-fuse does not mount"
mkdir "$TMP/mnt/ceph/d"
secret DATASET >"$TMP/mnt/ceph/secret"
sync -f "$TMP/mnt/ceph"
subsnap create rights-$$ v1 --group_name csi

# ---- the owner's, warm on this node ----
CAPABILITY=$RO
for claim in A B C; do
    create_volume "pvc$claim-$$" 1073741824 "{\"dataset\": \"rights-$$@v1\"}" || die "CreateVolume: $(said)"
    remember $claim
done
recall A
as owner stage && publish || die "the owner's stage: $(said)"
same natively "$(mount_type "$STAGE")" overlay
same the_owner_reads_the_dataset "$(head -c 15 "$TARGET/secret")" PRIVATE-DATASET
CAPABILITY=$RW
create_volume live-$$ 1073741824 || die "CreateVolume: $(said)"
LIVE=$ROOT_PATH
at_exit 'recall L; delete_volume >/dev/null'
remember L
as owner stage && publish || die "the owner's live volume: $(said)"
secret LIVE >"$TARGET/secret"
mkdir "$TARGET/many"
for ((i = 0; i < 60; i++)); do echo "file $i" >"$TARGET/many/$i"; done
sync -f "$TARGET"
drop_page_cache
MANY=$(cat "$TARGET"/many/* | sort)
same the_owner_reads_the_live_volume "$(read_cold | head -c 12)" PRIVATE-LIVE
wait_for 30 settled
leave L

# ---- without rights for the data ----
CAPABILITY=$RO
recall B
as narrow stage
refused a_dataset_is_not_staged
same nothing_is_mounted "$(mount_type "$STAGE")" ""
same and_no_key_is_noted "$(notes_of narrow)/$(notes_of owner)" 0/1
CAPABILITY=$RW
static S
as narrow stage && publish || fail a_live_volume_is_staged "$(said)"
same its_names_are_seen "$(echo "$TARGET"/*)" "$TARGET/many $TARGET/secret"
same of_many_files_neither "$(cat "$TARGET"/many/* 2>/dev/null | wc -c)" 0
read_cold >"$TMP/read" 2>"$TMP/why"
same but_no_byte_of_the_live_volume "$(wc -c <"$TMP/read")/$(grep -c 'Operation not permitted' "$TMP/why")" 0/1
same past_the_page_cache_neither "$(dd if="$TARGET/secret" iflag=direct bs=4096 count=1 2>&1 | grep -ac PRIVATE)" 0
leave S

# ---- with rights: of the pool, of the namespace that the data are in ----
for who in other inside; do
    CAPABILITY=$RO
    recall C
    before=$(osd_bytes)
    as $who stage && publish || fail "$who-stages_the_dataset" "$(said)"
    same "$who-reads_the_dataset" "$(read_cold | head -c 15)" PRIVATE-DATASET
    leave C
    CAPABILITY=$RW
    static "S$who"
    as $who stage && publish || fail "$who-stages_the_live_volume" "$(said)"
    same "$who-reads_the_live_volume" "$(read_cold | head -c 12)" PRIVATE-LIVE
    same "$who-reads_all_of_it" "$(wc -c <"$TARGET/secret")" $((BYTES + 13))
    ops=$(osd_reads)
    same "$who-reads_many_files" "$(cat "$TARGET"/many/* | sort)" "$MANY"
    eval "OPS_$who=$(($(osd_reads) - ops))"
    leave "S$who"
    sent=$(($(osd_bytes) - before))
    [ $sent -lt $((BYTES / 10)) ] && pass "$who-warm" || fail "$who-warm" "Ceph sent $sent bytes"
done

# Each file is asked for by itself only where not all of the pool may be read.
[ "$OPS_other" -lt 30 ] && pass a_pool_is_asked_for_once || fail a_pool_is_asked_for_once "$OPS_other reads for 60 warm files"
[ "$OPS_inside" -ge 60 ] && pass files_of_a_namespace_each || fail files_of_a_namespace_each "$OPS_inside reads"

# ---- rights that are taken away ----
CAPABILITY=$RO
recall B
as other stage && publish || fail staged_before "$(said)"
ceph_cmd auth caps client.other-$$ mon 'allow r' mds 'allow rw fsname=hearthfs' osd 'allow r pool=none' >/dev/null 2>&1
same what_is_mounted_goes_on "$(read_cold | head -c 15)" PRIVATE-DATASET
recall C
as other stage
refused without_rights_it_is_not_staged_again
same and_its_key_is_forgotten "$(notes_of other)/$(notes_of owner)" 0/1
for claim in A B; do
    recall $claim
    leave $claim
done
for claim in A B C; do
    recall $claim
    delete_volume || fail delete "$(said)"
done
exit $((FAILED > 0))
