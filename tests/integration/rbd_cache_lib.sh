# Sourced after lib.sh and rbd_lib.sh by the tests of what is kept of images (cache/block/): static
# volumes of images that the test makes itself, and what Ceph has to send while something is read.
#
#   new_image NAME SIZE [FLAGS of rbd create]   -> $NAME $IMAGE; filled with random bytes: random_image
#   image NAME [CONTEXT-JSON]                   -> $VOLUME_ID $VOLUME_CONTEXT
#   up; down; heal                              staged and published at $STAGE and $TARGET; and not; after a death
#   sent COMMAND...                             -> $SENT, what the OSD has sent meanwhile
#   warm NAME COMMAND...; cold NAME BYTES COMMAND...
#                                               pass when it has sent nothing, or the bytes once
#   equals_ceph NAME                            the device has the bytes that rbd(8) has

. "$(dirname "${BASH_SOURCE[0]}")/rbd_static.sh"

RUN=$RANDOM
MB=1048576
at_exit remove_images
remove_images() {
    local image
    down
    end hearthd # before what it has open
    for image in $(rbd_cmd ls rbd | grep -e "-$RUN\$" | sort -r); do
        rbd_cmd snap purge --no-progress "rbd/$image" 2>/dev/null
        rbd_cmd rm --no-progress "rbd/$image" 2>/dev/null
    done
}

random_image() { # NAME MB [FLAGS of rbd import]
    NAME=$1-$RUN
    head -c $(($2 * MB)) /dev/urandom >"$TMP/random"
    rbd_cmd import --no-progress "${@:3}" "$TMP/random" "rbd/$NAME" || die "rbd import $NAME"
    rm "$TMP/random"
    image "$NAME"
}
probe_ok() { csi node Probe '{}'; }
# After a death of hearthd's, whatever is left.
heal() {
    wait_for 20 probe_ok
    wait_for 60 stage && publish
}

# ---- reading and writing ----

dd() { command dd status=none "$@"; }
read_device() { # [FROM-MB [MB]]: past the page cache
    dd if="$TARGET" iflag=direct bs=1M ${1:+skip=$1} ${2:+count=$2}
}
touch_device() { read_device "$@" >/dev/null; } # reads it
write_device() { # FROM-MB MB: random bytes
    head -c $(($2 * MB)) /dev/urandom | dd of="$TARGET" oflag=direct conv=notrunc bs=1M iflag=fullblock seek="$1"
}
by_rbd() { rbd_cmd export --no-progress "${1:-$IMAGE}" -; }
equals_ceph() { # NAME [IMAGE]
    if cmp <(read_device) <(by_rbd "${2:-$IMAGE}") >"$TMP/cmp" 2>&1; then pass "$1"; else fail "$1" "$(cat "$TMP/cmp")"; fi
}
# By another client.
bench_write() { # MB
    rbd_cmd bench --io-type write --io-size 64K --io-total "$1M" --io-pattern seq "$IMAGE" >/dev/null 2>&1
}

# ---- what is kept, and what was asked ----

sent() {
    local before status
    before=$(osd_bytes)
    "$@"
    status=$?
    SENT=$(($(osd_bytes) - before))
    return $status
}
# Little enough to be metadata, of us and of the cluster itself.
LITTLE=$((MB / 2))
warm() { # NAME COMMAND...
    if ! sent "${@:2}"; then fail "$1" "${*:2} failed"; elif [ $SENT -le $LITTLE ]; then pass "$1"; else
        fail "$1" "the OSD sent $SENT bytes"; fi
}
cold() { # NAME BYTES COMMAND...
    if ! sent "${@:3}"; then fail "$1" "${*:3} failed"; elif [ $SENT -ge $(($2 * 9 / 10)) ] && [ $SENT -le $(($2 * 12 / 10)) ]; then
        pass "$1"
    else
        fail "$1" "the OSD sent $SENT bytes, of $2"
    fi
}
asked() { # NAME BYTES COMMAND...: at least so much
    if ! sent "${@:3}"; then fail "$1" "${*:3} failed"; elif [ $SENT -ge "$2" ]; then pass "$1"; else
        fail "$1" "the OSD sent $SENT bytes, of $2"; fi
}
# Blocks are kept after they were answered: until no more come.
kept() { # -> $KEPT, of the volume
    local last=-1
    for _ in $(seq 50); do
        KEPT=$(volume_stat bytesCached)
        [ "$KEPT" != "$last" ] || break
        last=$KEPT
        sleep 0.2
    done
}
disk_bytes() { du -s --block-size=1 "$CACHE/images" | cut -f 1; }
directories() { ls "$CACHE/images" | grep -vc '^gone\.'; }
between() { # NAME N LOW HIGH
    if [ "$2" -ge "$3" ] && [ "$2" -le "$4" ]; then pass "$1"; else fail "$1" "$2, not of $3 to $4"; fi
}
kept_from_before() { # NAME: so says the log since $LOGGED
    if tail -n "+$((LOGGED + 1))" "$TMP/log/hearthd.log" | grep -q 'are kept from before'; then pass "$1"; else
        fail "$1" "the log does not say so"; fi
}
log_from_here() { LOGGED=$(wc -l <"$TMP/log/hearthd.log"); }
