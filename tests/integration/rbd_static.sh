# Sourced after lib.sh by tests that make images themselves: static volumes of them, and how they are
# staged. $RUN is in the images' names, so that a test finds its own; $WRITER is the access mode.

WRITER=SINGLE_NODE_WRITER
capability() { # ext4|xfs|"" [MODE] [FLAGS-JSON]
    CAPABILITY="{mount: {fs_type: \"$1\", mount_flags: ${3:-[]}}, access_mode: {mode: \"${2:-$WRITER}\"}}"
}
block_capability() { CAPABILITY="{block: {}, access_mode: {mode: \"${1:-$WRITER}\"}}"; }
image() { # NAME [EXTRA-CONTEXT-JSON]: the volume of the image rbd/NAME
    IMAGE=rbd/$1
    VOLUME_ID=static-$RUN-$1
    VOLUME_CONTEXT=$(jq -cn --arg c "$CEPH_FSID" --arg i "$1" --argjson x "${2:-"{}"}" \
        '{type: "rbd", clusterID: $c, pool: "rbd", imageName: $i} + $x')
}
new_image() { # NAME SIZE [FLAGS of rbd create]
    NAME=$1-$RUN
    rbd_cmd create "rbd/$NAME" --size "$2" "${@:3}" || die "rbd create $NAME"
    image "$NAME"
}
up() { stage && publish; }
down() { unpublish && unstage; }
loop_device() { loops_below "$DEVICES" | head -n 1; }
