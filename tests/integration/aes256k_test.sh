#!/bin/bash
# Keys of type aes256k, which Ceph makes from 19.2.6, 20.2.4 and 21 on: volumes of each type live their whole life with users of
# such keys. Libraries of Ceph that are too old for one say so, and which are not.
. "$(dirname "$0")/lib.sh"
. "$TOP/tests/integration/types.sh"
init
start_ceph

# As Ceph writes one: type 2, no time, 32 bytes. Nobody's.
export STRANGE_KEY
STRANGE_KEY=$(python3 -c 'import base64, os, struct; print(base64.b64encode(struct.pack("<HIIH", 2, 0, 0, 32) + os.urandom(32)).decode())')
key_type() { base64 -d <<<"$1" | od -An -N1 -tu1 | tr -d ' '; }
knows_keys() { [[ $("$@" ceph-authtool --help 2>&1) == *--key-type* ]]; }
of_server() { env ${CEPH_ROOT:+chroot "$CEPH_ROOT"} "$@"; }
with_strange_key() { # COMMAND...
    PROVISIONER_KEY=$STRANGE_KEY NODE_KEY=$STRANGE_KEY "$@"
}
names_versions() { # NAME: the call just made
    local have
    have=$(dpkg-query -W -f '${Version}' libcephfs2 2>/dev/null | sed 's/[+~-].*//')
    case $CSI_CODE:$CSI_MESSAGE in
    FAILED_PRECONDITION:*"$STRANGE_KEY"*) fail "$1" "the message has the key" ;;
    FAILED_PRECONDITION:*aes256k*"$have"*19.2.6*20.2.4*) pass "$1" ;;
    *) fail "$1" "wanted FAILED_PRECONDITION that names $have and those that know such keys, got $(said)" ;;
    esac
}

if ! knows_keys env; then
    start_controller
    start_hearthd
    start_node
    with_strange_key create_volume pvc-aes256k-$$
    names_versions libraries_too_old_say_so_when_a_volume_is_created
    create_volume pvc-aes256k-$$ || die "CreateVolume: $(said)"
    with_strange_key stage
    names_versions and_when_it_is_staged
    delete_volume
    skip volumes_with_such_keys "the libraries of Ceph here do not know keys of type aes256k; those of 20.2.4 do"
    exit
fi
if ! knows_keys of_server; then
    skip volumes_with_such_keys "Ceph's daemons here make no keys of type aes256k; those of 20.2.4 do"
    exit
fi

# ---- two users with the rights of the cluster's own ----
user_like() { # WHOSE NAME
    local caps
    mapfile -t caps < <(ceph_cmd auth get "client.$1" --format json 2>/dev/null | jq -r '.[0].caps | to_entries[] | "\(.key)\n\(.value)"')
    at_exit "ceph_cmd auth rm client.$2 >/dev/null 2>&1"
    ceph_cmd auth get-or-create-key "client.$2" "${caps[@]}" --key-type aes256k 2>/dev/null
}
key=$(user_like "$PROVISIONER_ID" aes256k-provisioner-$$)
PROVISIONER_ID=aes256k-provisioner-$$ PROVISIONER_KEY=$key
key=$(user_like "$NODE_ID" aes256k-node-$$)
NODE_ID=aes256k-node-$$ NODE_KEY=$key
same the_keys_are_of_that_type "$(key_type "$PROVISIONER_KEY") $(key_type "$NODE_KEY")" "2 2"
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

for type in $(types); do
    use_type $type
    create_volume pvc-aes256k-$type-$$ 1073741824 || die "CreateVolume: $(said)"
    check ${type}_is_staged stage
    check ${type}_is_published publish
    printf 'written with such a key' >"$TARGET/file"
    sync "$TARGET/file"
    check ${type}_is_unpublished unpublish
    check ${type}_is_unstaged unstage
    check ${type}_is_staged_again stage
    publish || fail ${type}_is_published_again "$(said)"
    same ${type}_is_read "$(cat "$TARGET/file")" 'written with such a key'
    with_strange_key stage
    case $CSI_CODE in
    UNAUTHENTICATED | PERMISSION_DENIED) pass ${type}_wrong_key_is_refused ;;
    *) fail ${type}_wrong_key_is_refused "$(said)" ;;
    esac
    unpublish && unstage || fail ${type}_is_given_back "$(said)"
    check ${type}_is_deleted delete_volume
    same ${type}_left_nothing "$(objects pvc-aes256k-$type-$$)" ''
done
check the_audit_runs_with_it audit
