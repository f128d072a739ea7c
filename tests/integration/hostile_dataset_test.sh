#!/bin/bash
# A tenant that has keys of its own for its own subvolume and may write to the data pool: what it writes
# there, and what it puts into its own snapshot, gives it no byte of another tenant's dataset that the
# node holds, and no file system of its making is mounted.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

DATA=$(ceph_cmd fs ls --format json | jq -r '.[] | select(.name == "hearthfs").data_pools[0]')
mount_type() { findmnt -n -o FSTYPE --mountpoint "$1" | tail -n 1; }
objects() { find "$CACHE/objects" -type f -printf '%f\n' | sort; }
read_pages() { drop_page_cache && drop_page_cache && cat "$@"; }
leave() { unpublish && wait_for 20 unstage || fail "$1" "$(said)"; }
remember() { eval "$1_ID=\$VOLUME_ID $1_CONTEXT=\$VOLUME_CONTEXT"; }
recall() {
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}

ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
mkdir "$TMP/mnt/ceph"
spawn ceph-fuse ceph-fuse -f -c "$CEPH_CONF" -n client.admin -k "$CEPH_KEYRING" "$TMP/mnt/ceph"
wait_for 30 mountpoint -q "$TMP/mnt/ceph" || die "ceph-fuse does not mount"
dataset() { # NAME: a subvolume; its path is $ROOT
    sub create "$1-$$" --group_name csi --size 1073741824
    at_exit "subsnap rm $1-$$ v1 --group_name csi; sub rm $1-$$ --group_name csi"
    ROOT=$TMP/mnt/ceph$(sub getpath "$1-$$" --group_name csi)
}
dataset victim
printf 'VICTIM-PRIVATE-KEY %4000s' x >"$ROOT/secret"
sync -f "$ROOT"
subsnap create victim-$$ v1 --group_name csi
dataset own
OWN=${ROOT#"$TMP/mnt/ceph"}
printf 'mine %4014s' x >"$ROOT/own"
cp "$ROOT/own" "$ROOT/marked"
sync -f "$ROOT"
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
create_volume pvc-victim-$$ 1073741824 "{\"dataset\": \"victim-$$@v1\"}" || die "CreateVolume: $(said)"
remember VICTIM
recall VICTIM
stage && publish || die "stage: $(said)"
same the_victim_reads_its_own "$(head -c 18 "$TARGET/secret")" VICTIM-PRIVATE-KEY
wait_for 60 settled
VICTIM=$(objects)
same the_node_holds_it "$(wc -l <<<"$VICTIM")" 1

# ---- what the tenant writes to the pool ----
ceph_cmd auth get-or-create client.tenant-$$ mon 'allow r' mds "allow rw fsname=hearthfs path=$OWN" \
    osd "allow rw pool=$DATA" >"$TMP/tenant" 2>/dev/null
at_exit "ceph_cmd auth rm client.tenant-$$ >/dev/null 2>&1"
at_exit 'for object in "$TMP"/forged/*; do tenant rm "$(basename "$object")"; done'
tenant() { timeout 30 rados -c "$CEPH_CONF" -n "client.tenant-$$" -k "$TMP/tenant" -p "$DATA" -N hearth "$@"; }
# Its own attributes are as overlayfs's, and lead to the victim's object.
setfattr -n trusted.overlay.metacopy "$ROOT/marked"
setfattr -n trusted.overlay.redirect -v "/${VICTIM:0:2}/$VICTIM" "$ROOT/marked"
setfattr -n user.overlay.redirect -v "/${VICTIM:0:2}/$VICTIM" "$ROOT/marked"
setfattr -n trusted.overlay.opaque -v y "$ROOT"
setfattr -n user.note -v kept "$ROOT/marked"
ln -s /etc/shadow "$ROOT/link"
cp /bin/true "$ROOT/suid" && chmod 6755 "$ROOT/suid"
mknod "$ROOT/device" b 7 0
sync -f "$ROOT"
subsnap create own-$$ v1 --group_name csi
create_volume pvc-own-$$ 1073741824 "{\"dataset\": \"own-$$@v1\"}" || die "CreateVolume: $(said)"
remember OWN
recall OWN
stage && publish || die "stage: $(said)"
same natively "$(mount_type "$STAGE")" overlay
check what_it_marked_is_its_own cmp <(read_pages "$TARGET/marked") "$ROOT/own"
wait_for 60 settled
check also_when_warm cmp <(read_pages "$TARGET/marked") "$ROOT/own"
names="$(getfattr -h -d -m - "$TARGET/marked" "$TARGET" 2>/dev/null)"
same its_other_attributes_are_shown "$(grep -c 'user.note="kept"' <<<"$names")" 1
same overlayfs_own_are_not "$(grep overlay <<<"$names")" ""
same a_link_is_a_link "$(readlink "$TARGET/link")" /etc/shadow
options=$(findmnt -n -o OPTIONS --mountpoint "$TARGET" | tail -n 1)
same no_setuid_and_no_devices "$(tr , '\n' <<<"$options" | grep -cx 'nosuid\|nodev')" 2
MANIFEST=$(grep -l "/${VICTIM:0:2}/$VICTIM" -L "$CACHE"/manifests/????????????????????????????????)
same its_manifest_leads_to_no_other "$(wc -l <<<"$MANIFEST")" 1
leave own
# Its objects, of which the tenant knows the names: it may have a node of its own.
cp "$MANIFEST" "$TMP/$(basename "$MANIFEST")"
MINE=$(comm -13 <(echo "$VICTIM") <(objects) | while read -r id; do cmp -s "$CACHE/objects/${id:0:2}/$id" "$ROOT/own" && echo "$id"; done | head -n 1)

forged() { # NAME WHAT...: as the tenant's objects, when a node that has no manifest of it stages its dataset
    local name=$1 object
    shift
    rm -rf "$MANIFEST" && mkdir -p "$TMP/forged"
    "$BUILD/tools/forge-manifest" "$@" "$TMP/forged" || die "nothing is forged"
    for object in "$TMP"/forged/*; do tenant put "$(basename "$object")" "$object" || fail "$name-is_written" "rados"; done
    end hearthd
    start_hearthd
    check "$name-staged" stage
    check "$name-published" publish
    same "$name-natively" "$(mount_type "$STAGE")" overlay
    read_pages "$TARGET/own" "$TARGET/marked" >"$TMP/read" 2>&1
    same "$name-nothing_of_the_victim" "$(grep -ac VICTIM "$TMP/read")" 0
    check "$name-its_own_bytes" cmp "$TMP/read" <(cat "$ROOT/own" "$ROOT/own")
    same "$name-its_manifest_was_built_here" "$(find "$CACHE/manifests" -size +16M; grep -l "$VICTIM" "$MANIFEST")" ""
    leave "$name"
}
recall VICTIM
leave victim
recall OWN
for id in $MINE; do forged a_redirect redirect "$TMP/$(basename "$MANIFEST")" "$id" "$VICTIM"; done
[ -n "$MINE" ] || fail setup "the tenant's own object is not found"
forged garbage garbage "$TMP/$(basename "$MANIFEST")"
forged a_huge_one huge "$TMP/$(basename "$MANIFEST")"
for VOLUME_ID in "$OWN_ID" "$VICTIM_ID"; do delete_volume || fail delete "$(said)"; done
exit $((FAILED > 0))
