#!/bin/bash
# What is kept of an image is for those whom Ceph lets read it (cache/origin/rbd/content.c). A tenant
# that is confined to a namespace of the pool can make images there with the IDs of another's, and have
# them name any parent; a user may be allowed to read an image's header and not its data.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
. "$(dirname "$0")/rbd_cache_lib.sh"
start_hearth
NS=tenant
SECRET=VICTIMS-WEIGHTS

# A user of Ceph's.
user() { # ID OSD-CAPABILITIES
    ceph_cmd auth get-or-create "client.$1-$RUN" mon 'profile rbd' osd "$2" >/dev/null 2>&1 || die "user $1"
    at_exit "ceph_cmd auth rm client.$1-$RUN >/dev/null 2>&1"
    ceph_cmd auth get "client.$1-$RUN" >"$TMP/$1.keyring" 2>/dev/null
}
as() { # USER COMMAND...: rbd or rados
    local user=$1 program=$2
    shift 2
    timeout -k 5 60 "$program" -c "$CEPH_CONF" --keyring "$TMP/$user.keyring" --id "$user-$RUN" "$@" 2>>"$TMP/log/rbd.log"
}
# The image's volume on this node, as that user.
stage_as() { # USER NAME CONTEXT
    local id=$NODE_ID key=$NODE_KEY status
    case $3 in *snapshot*) block_capability MULTI_NODE_READER_ONLY ;; *) block_capability ;; esac
    image "$2" "$3"
    STAGE=$TMP/mnt/stage-$1-$2 TARGET=$TMP/mnt/pod/$1-$2
    VOLUME_ID=$1-$VOLUME_ID
    NODE_ID=$1-$RUN NODE_KEY=$(ceph_cmd auth print-key "client.$1-$RUN" 2>/dev/null)
    up
    status=$?
    NODE_ID=$id NODE_KEY=$key
    return $status
}
# Nothing of the victim's is shown.
shows_nothing() { # NAME USER IMAGE CONTEXT
    if stage_as "$2" "$3" "$4"; then
        same "$1" "$(read_device 0 4 2>/dev/null | grep -ac "$SECRET")" 0
    else
        fail "$1" "$(said)"
    fi
    down >/dev/null
}
is_refused() { # NAME USER IMAGE CONTEXT
    stage_as "$2" "$3" "$4"
    code "$1" PERMISSION_DENIED
    down >/dev/null
}

user tenant "profile rbd pool=rbd namespace=$NS"
HEADERS=
for object in rbd_id rbd_header rbd_object_map rbd_info rbd_directory rbd_trash; do
    HEADERS+="${HEADERS:+, }allow rx pool=rbd object_prefix $object"
done
user header "$HEADERS"
user both "profile rbd pool=rbd namespace=$NS, $HEADERS"

# ---- a victim ----

NAME=model-$RUN
yes "$SECRET" | head -c $((8 * MB)) >"$TMP/random"
rbd_cmd import --no-progress "$TMP/random" "rbd/$NAME" && rbd_cmd snap create --no-progress "rbd/$NAME@v1" &&
    rbd_cmd snap protect "rbd/$NAME@v1" || die "the victim's image"
block_capability MULTI_NODE_READER_ONLY
image "$NAME" '{"snapshot": "v1"}'
up || die "$(said)"
touch_device
kept
warm the_owner_is_warm touch_device
equals_ceph and_right "$IMAGE@v1"
down
rbd_cmd clone "rbd/$NAME@v1" "rbd/clone-$RUN" || die "rbd clone"
block_capability
image "clone-$RUN"
up || die "$(said)"
warm the_owners_clone_is_warm touch_device
down

# ---- the same IDs in the tenant's namespace ----

ID=$(rbd_cmd info "rbd/$NAME" --format json | jq -r .id)
# The header as it is: the tenant knows all of it.
forge() {
    local key
    rbd_cmd info "rbd/$NAME" >/dev/null || return 1
    rados -c "$CEPH_CONF" -p rbd get "rbd_id.$NAME" "$TMP/id" 2>/dev/null
    as tenant rados -p rbd -N "$NS" put "rbd_id.$NAME" "$TMP/id" &&
        as tenant rados -p rbd -N "$NS" create "rbd_header.$ID" || return 1
    while read -r key; do
        rados -c "$CEPH_CONF" -p rbd getomapval "rbd_header.$ID" "$key" "$TMP/value" >/dev/null 2>&1 &&
            as tenant rados -p rbd -N "$NS" --input-file "$TMP/value" setomapval "rbd_header.$ID" "$key" >/dev/null || return 1
    done < <(rados -c "$CEPH_CONF" -p rbd listomapkeys "rbd_header.$ID" 2>/dev/null)
    for key in $(rados -c "$CEPH_CONF" -p rbd ls 2>/dev/null | grep "^rbd_object_map.$ID"); do
        rados -c "$CEPH_CONF" -p rbd get "$key" "$TMP/value" 2>/dev/null &&
            as tenant rados -p rbd -N "$NS" put "$key" "$TMP/value" || return 1
    done
    # By which a clone finds it.
    for key in "name_$NAME" "id_$ID"; do
        rados -c "$CEPH_CONF" -p rbd getomapval rbd_directory "$key" "$TMP/value" >/dev/null 2>&1 &&
            as tenant rados -p rbd -N "$NS" --input-file "$TMP/value" setomapval rbd_directory "$key" >/dev/null || return 1
    done
}
at_exit remove_forged
remove_forged() {
    local name
    for name in $(on_pool ls | grep -e "-$RUN" -e "$ID"); do on_pool rm "$name"; done
    for name in "name_$NAME" "id_$ID"; do on_pool rmomapkey rbd_directory "$name"; done
}
check a_tenant_can_make_a_header_with_anothers_ids forge
same and_has_the_name_and_the_snapshot "$(as tenant rbd info "rbd/$NS/$NAME@v1" --format json | jq -r .id)" "$ID"
refused() { ! as tenant rbd export --no-progress "rbd/$NAME@v1" - >/dev/null; }
check ceph_refuses_it_the_image refused
CONTEXT="{\"radosNamespace\": \"$NS\", \"snapshot\": \"v1\"}"
shows_nothing a_copied_id_shows_nothing_of_the_image tenant "$NAME" "$CONTEXT"
shows_nothing nor_when_it_is_opened_to_be_written tenant "$NAME" "{\"radosNamespace\": \"$NS\"}"

# ---- named as a parent ----

as tenant rbd clone --rbd-default-clone-format 2 "rbd/$NS/$NAME@v1" "rbd/$NS/child-$RUN" || fail child "rbd clone"
shows_nothing a_parent_with_a_copied_id_shows_nothing tenant "child-$RUN" "{\"radosNamespace\": \"$NS\"}"
rbd_cmd clone --rbd-default-clone-format 2 "rbd/$NAME@v1" "rbd/$NS/stolen-$RUN" || fail stolen "rbd clone"
is_refused a_parent_that_ceph_refuses_is_refused tenant "stolen-$RUN" "{\"radosNamespace\": \"$NS\"}"
shows_nothing a_parent_of_which_ceph_refuses_the_data_shows_nothing both "stolen-$RUN" "{\"radosNamespace\": \"$NS\"}"
rbd_cmd rm --no-progress "rbd/$NS/stolen-$RUN" || fail stolen "rbd rm"

# ---- the header alone ----

refused() { ! as header rbd export --no-progress "rbd/$NAME@v1" - >/dev/null; }
check ceph_refuses_the_data_to_who_may_read_the_header refused
shows_nothing who_may_read_the_header_alone_sees_nothing header "$NAME" '{"snapshot": "v1"}'

# ---- its own ----

head -c $((8 * MB)) /dev/urandom >"$TMP/random"
as tenant rbd import --no-progress "$TMP/random" "rbd/$NS/own-$RUN" || fail own "rbd import"
as tenant rbd snap create --no-progress "rbd/$NS/own-$RUN@v1" || fail own "rbd snap"
stage_as tenant "own-$RUN" "$CONTEXT" || fail own "$(said)"
touch_device
kept
warm a_tenants_own_is_kept touch_device
down
stage_as tenant "own-$RUN" "$CONTEXT" || fail own "$(said)"
warm and_found_again touch_device
down
as tenant rbd snap rm --no-progress "rbd/$NS/own-$RUN@v1" && as tenant rbd rm --no-progress "rbd/$NS/own-$RUN" || fail own "rbd rm"
rbd_cmd rm --no-progress "rbd/clone-$RUN" && rbd_cmd snap unprotect "rbd/$NAME@v1" || fail victim "rbd rm"
