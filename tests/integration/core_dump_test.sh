#!/bin/bash
# No key of a Ceph user gets into a core dump (promise 8): one that the kernel writes, and one that a
# debugger makes of the running process. With volumes staged and calls made, so that Ceph's libraries
# have their copies of the keys. A process without protection shows that the search finds keys in a
# core.
. "$(dirname "$0")/lib.sh"
. "$TOP/tests/integration/types.sh"
init
if ! command -v gcore >/dev/null; then
    skip all "needs gdb's gcore"
    exit 0
fi
start_ceph
own_user
ulimit -c unlimited
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node
cores=$TMP/cores
mkdir "$cores"

use() { # TYPE: a volume of it, staged and published
    use_type "$1"
    create_volume "pvc-core-$1-$$" 1073741824 || die "CreateVolume: $(said)"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod-$1/volume
    mkdir -p "$TMP/mnt/pod-$1"
    stage && publish || die "stage: $(said)"
    echo data >"$TARGET/file"
    eval "$1_ID=\$VOLUME_ID"
}
for type in $(types); do use "$type"; done
ls "$TARGET" >/dev/null

# In which of the files below DIR a key is: as base64, as its bytes, and as the secret alone without
# the head that Ceph puts before it; also in UTF-16, as some languages keep strings.
keys_in() { # DIR
    python3 - "$1" <<'EOF'
import base64, os, sys
keys = {name: os.environ[name] for name in ("PROVISIONER_KEY", "NODE_KEY")}
needles = []
for name, text in keys.items():
    raw = base64.b64decode(text)
    needles += [(name, "text", text.encode()), (name, "part of text", text.encode()[16:32]), (name, "bytes", raw), (name, "secret", raw[12:]),
                (name, "hex", raw[12:].hex().encode()), (name, "utf16", text.encode("utf-16-le"))]
for root, _, files in os.walk(sys.argv[1]):
    for file in sorted(files):
        data = open(os.path.join(root, file), "rb").read()
        for name, kind, needle in needles:
            if n := data.count(needle):
                print(f"{file}: {name} as {kind}: {n} times")
EOF
}
dump_running() { # NAME: of a daemon, by a debugger
    gcore -o "$cores/$1" "${PID[$1]}" >"$TMP/log/gcore-$1.log" 2>&1
    [ -s "$cores/$1.${PID[$1]}" ]
}
for daemon in controller hearthd node; do
    check "a_debugger_dumps_the_$daemon" dump_running $daemon
    same "no_key_in_the_core_of_the_$daemon" "$(keys_in "$cores" | tr '\n' ';')" ""
    rm -f "$cores"/*
    same "the_${daemon}_may_write_no_core" "$(awk '/core file size/ { print $5 $6 }' "/proc/${PID[$daemon]}/limits")" 00
    # Root's files: the process cannot be dumped, nor looked into by a process of its own user.
    same "all_memory_of_the_${daemon}_is_left_out" "$(tr -d '0' <"/proc/${PID[$daemon]}/coredump_filter")" ""
done

for type in $(types); do
    use_type "$type"
    eval "VOLUME_ID=\$${type}_ID"
    STAGE=$TMP/mnt/stage-$type TARGET=$TMP/mnt/pod-$type/volume
    unpublish && unstage && delete_volume || fail "${type}_away" "$(said)"
done

# The kernel's own, where a core would be written.
pattern=$(</proc/sys/kernel/core_pattern)
restore_pattern() { printf '%s' "$pattern" >/proc/sys/kernel/core_pattern; }
if { printf '%s' "$cores/core.%e.%p" >/proc/sys/kernel/core_pattern; } 2>/dev/null; then
    at_exit restore_pattern
    NODE_KEY=$NODE_KEY sleep 1000 &
    sleeper=$!
    wait_for 5 grep -q sleep "/proc/$sleeper/comm"
    kill -ABRT $sleeper
    wait $sleeper 2>/dev/null
    same the_search_finds_a_key_in_a_core "$(keys_in "$cores" | grep -c 'NODE_KEY as text')" 1
    rm -f "$cores"/*
    for daemon in node hearthd controller; do
        # Past its own limit, as a core_pattern that is a program is.
        prlimit --core=unlimited --pid "${PID[$daemon]}"
        end $daemon ABRT
        same "the_kernel_writes_no_core_of_the_$daemon" "$(ls "$cores")" ""
    done
    restore_pattern
else
    skip cores_of_the_kernel "core_pattern cannot be written"
    NODE_KEY=$NODE_KEY sleep 1000 &
    sleeper=$!
    wait_for 5 grep -q sleep "/proc/$sleeper/comm"
    gcore -o "$cores/sleep" $sleeper >/dev/null 2>&1
    kill $sleeper
    same the_search_finds_a_key_in_a_core "$(keys_in "$cores" | grep -c 'NODE_KEY as text')" 1
fi
exit 0
