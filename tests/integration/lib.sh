# Sourced by tests/integration/*_test.sh and by the demo: a Ceph, the three programs, CSI calls, and a
# cleanup that runs however the script ends. A test is a script of its own with a directory of its
# own, $TMP, removed at the end with every mount and process it made.
#
#   pass NAME | fail NAME REASON | skip NAME REASON       one line each, counted by ./run
#   check NAME COMMAND...                                 pass when it succeeds, else fail
#   start_ceph [FLAGS]; start_controller [FLAGS]; own_user; start_hearthd [FLAGS]; start_node [FLAGS]; start_hearth [FLAGS]
#   csi controller|node METHOD JSON      TRUE when OK; the reply is in $REPLY_JSON, the status in
#                                        $CSI_CODE and $CSI_MESSAGE. Secrets: write $SECRETS or
#                                        $NODE_SECRETS as a jq variable, see csi_json.
#   create_volume NAME [BYTES] [PARAMETERS-JSON]   -> $VOLUME_ID $VOLUME_CONTEXT
#   audit [FLAGS]                        hearth-csi audit as the own user
#   stage; publish; unpublish; unstage; delete     of that volume, at $STAGE and $TARGET
#   talk_start NAME COMMAND...; talk NAME WORDS... a program that answers lines -> $ANSWER
#
# Nothing secret is put on a command line: jq takes it from the environment, csi-call from stdin.

set -uo pipefail
TOP=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../..")
BUILD=${HEARTH_BUILD:-$TOP/build}
ONE_NODE=$TOP/tests/ceph/one-node
TEST_NAME=${TEST_NAME:-$(basename "$0" .sh)}
FAILED=0
declare -A PID PIDSTART TALK_IN TALK_OUT
PATH=$PATH:/usr/sbin:/sbin

pass() { echo "pass $TEST_NAME: $1"; }
fail() {
    echo "fail $TEST_NAME: $1: ${2:-no reason given}"
    FAILED=$((FAILED + 1))
}
skip() { echo "skip $TEST_NAME: $1: $2"; }

check() { # NAME COMMAND...
    local name=$1 out
    shift
    # In this shell, so that what a function sets stays.
    if "$@" >"$TMP/check.out" 2>&1; then
        pass "$name"
    else
        out=$(tail -n 5 "$TMP/check.out")
        case $1 in stage | publish | unpublish | unstage | delete_volume | csi) out="$(said) $out" ;; esac
        fail "$name" "$* gave: ${out:-an exit code}"
    fi
}

same() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "got \"$2\", wanted \"$3\""; fi
}

die() {
    fail "${STEP:-setup}" "$*"
    exit 1
}

# ---- cleanup ----

start_time() { # of a process, so that a reused pid is never killed; empty for one that is gone
    local stat
    { read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
    set -- ${stat##*) }
    [ "$1" != Z ] && echo "${20}"
}

running() { [ -n "${PID[$1]:-}" ] && [ "$(start_time "${PID[$1]}")" = "${PIDSTART[$1]}" ]; }

spawn() { # NAME COMMAND...: in the background, in a session of its own, logging to $TMP/log/NAME.log
    local name=$1
    shift
    end "$name" KILL # none is left behind that nobody knows
    # The keys in this script's environment are for jq alone.
    env -u ADMIN_KEY -u PROVISIONER_KEY -u NODE_KEY -u WRONG_KEY -u NEAR_KEY -u SHORT_KEY -u WEAK_KEY -u NODE_ID setsid "$@" </dev/null >>"$TMP/log/$name.log" 2>&1 &
    PID[$name]=$!
    PIDSTART[$name]=$(start_time $!)
}

end() { # NAME [SIGNAL] [SECONDS]: stops a spawned program; KILL after the time
    local name=$1 tries=$((${3:-25} * 20))
    running "$name" || return 0
    kill "-${2:-TERM}" "${PID[$name]}" 2>/dev/null
    while running "$name" && [ $tries -gt 0 ]; do
        sleep 0.05
        tries=$((tries - 1))
    done
    if running "$name"; then
        echo "$name did not stop on ${2:-TERM}; killed" >&2
        abort_below "$TMP"
        kill -KILL "${PID[$name]}" 2>/dev/null
    fi
    wait "${PID[$name]}" 2>/dev/null
    unset "PID[$name]" "PIDSTART[$name]"
    return 0
}

mounts_below() { # DIR: mount points, the last mounted first; mountinfo writes a blank as \040
    awk -v d="$1/" '{ gsub(/\\040/, " ", $5); if (index($5 "/", d) == 1) print $5 }' \
        /proc/self/mountinfo | tac
}

loops_below() { # DIR: loop devices over files there
    losetup -ln -O NAME,BACK-FILE | awk -v d="$1/" 'index($2, d) == 1 { print $1 }'
}

unmount_below() {
    local point
    while IFS= read -r point; do
        umount -l -- "$point" 2>/dev/null
    done < <(mounts_below "$1")
}

# Lets go whoever waits for a file system below DIR that no longer answers, its own daemon included:
# a thread that waits for a page cannot be killed. Forcing the unmount ends the connection.
abort_below() { # DIR
    local point
    while IFS= read -r point; do
        timeout 5 umount -f -l -- "$point" 2>/dev/null
    done < <(mounts_below "$1")
}

# A later one is run first.
AT_EXIT=()
at_exit() { AT_EXIT=("$*" "${AT_EXIT[@]}"); }

# All of it, in an order in which nothing waits for what is gone. Bounded, whatever hangs.
cleanup_all() {
    local name
    CSI_TIMEOUT=15
    for name in "${AT_EXIT[@]}"; do
        eval "$name"
    done
    for name in "${!TALK_IN[@]}"; do
        talk_end "$name"
    done
    # File systems on images are written back while somebody serves them.
    unmount_below "$TMP/mnt/pod"
    unmount_below "$STAGE"
    for name in $(loops_below "$TMP"); do
        losetup -d "$name"
    done
    # hearthd first: with it gone, nobody waits for a mount any more.
    end hearthd TERM 10
    unmount_below "$TMP"
    for name in "${!PID[@]}"; do
        end "$name" TERM 10
    done
    unmount_below "$TMP"
    if [ "$FAILED" -gt 0 ]; then
        [ -z "${OVERDUE:-}" ] ||
            echo "--- stopped in ${CSI_CALL:-no call}, $((SECONDS - ${CSI_STARTED:-0})) s after it began; the last answer: ${CSI_BEFORE:-none}" >&2
        [ ! -d "${CEPH_DIR:-}" ] || ceph_cmd -s >&2
        for name in "$TMP"/log/*.log; do
            [ -s "$name" ] || continue
            echo "--- the end of $(basename "$name")" >&2
            tail -n 15 "$name" | cut -c 1-600 >&2
        done
    fi
    [ -z "${OWN_CEPH:-}" ] || [ ! -d "$OWN_CEPH" ] || "$ONE_NODE" rm "$OWN_CEPH"
    rm -rf --one-file-system "$TMP"
}

cleanup() {
    local status=$?
    trap '' INT TERM HUP
    trap - EXIT
    exec 2>&"$STDERR" # a loop's may be elsewhere
    cleanup_all
    [ $status -ne 0 ] || [ "$FAILED" -eq 0 ] || status=1
    exit $status
}

init() { # once, by each script
    if [ "$(id -u)" != 0 ]; then
        skip all "needs root, to mount"
        exit 0
    fi
    TMP=$(mktemp -d "${HEARTH_TEST_DIR:-/var/tmp}/hearth-XXXXXX") || exit 1
    trap cleanup EXIT
    trap 'exit 130' INT
    trap 'FAILED=$((FAILED + 1)) OVERDUE=1; exit 143' TERM HUP
    exec {STDERR}>&2
    mkdir -p "$TMP"/{log,run,mnt}
    CONTROLLER=$TMP/run/controller.sock NODE=$TMP/run/node.sock HEARTHD=$TMP/run/hearthd.sock
    DEVICES=$TMP/mnt/devices STAGE=$TMP/mnt/stage TARGET=$TMP/mnt/pod/volume CACHE=${CACHE:-$TMP/cache}
    mkdir -p "$TMP/mnt/pod"
}

# ---- the programs ----

needs_resend() { # the test ends here on a kernel that does not send requests again
    uname -r | grep -qE '^([0-5]\.|6\.[0-8]\.)' || return 0
    echo "skipped: the kernel $(uname -r) does not send requests again (Linux 6.9)"
    exit 0
}

start_ceph() { # [FLAGS of one-node]: the cluster ./run has started, else, or with flags, one of this script's own
    local dir=${HEARTH_CEPH:-}
    if [ -z "$dir" ] || [ $# -gt 0 ]; then
        dir=$(mktemp -d "${HEARTH_TEST_DIR:-/var/tmp}/hearth-ceph-XXXXXX")
        OWN_CEPH=$dir
        "$ONE_NODE" start "$dir" "$@" || die "Ceph does not start"
    fi
    CEPH_DIR=$dir
    . "$dir/env"
    export ADMIN_KEY PROVISIONER_KEY NODE_KEY ADMIN_ID PROVISIONER_ID NODE_ID
    cp "$dir/config.json" "$TMP/config.json"
    CLASS="{\"clusterID\": \"$CEPH_FSID\", \"fsName\": \"hearthfs\"}" # parameters of every volume
}

# Adds to the configuration, beside the cluster that works, ones that do not: "refused", where nobody
# listens, and "silent", who never speaks.
bad_clusters() {
    local silent
    spawn silent python3 -c 'import signal, socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(64)
print(s.getsockname()[1], flush=True)
signal.pause()'
    wait_for 10 test -s "$TMP/log/silent.log" || die "no silent monitor"
    silent=127.0.0.1:$(head -n 1 "$TMP/log/silent.log")
    jq --arg silent "$silent" '. + [{clusterID: "refused", monitors: ["127.0.0.1:1"]},
             {clusterID: "silent", monitors: [$silent]}]' "$CEPH_DIR/config.json" >"$TMP/config.json"
}

# Ceph away, and back, at the end at the latest.
daemon_pid() { awk -v n="$1" '$1 == n { pid = $2 } END { print pid }' "$CEPH_DIR/pids"; }
STOPPED=()
halt() { # DAEMON...
    local daemon
    [ ${#STOPPED[@]} -gt 0 ] || at_exit continue_ceph
    for daemon in "$@"; do
        kill -STOP "$(daemon_pid "$daemon")"
        STOPPED+=("$daemon")
    done
}
stop_ceph() { halt mds.a osd.0 mgr.a mon.a; }
continue_ceph() {
    local daemon had=" ${STOPPED[*]} "
    for daemon in "${STOPPED[@]}"; do kill -CONT "$(daemon_pid "$daemon")"; done
    STOPPED=()
    # A placement group of one replica whose lease to read has run out stays so until it peers again.
    case $had in *" osd.0 "*) wait_for 60 ceph_cmd osd down 0 && wait_for 60 pgs_are_clean ;; esac
}
pgs_are_clean() { ceph_cmd pg stat --format json | jq -e '[.pg_summary.num_pg_by_state[] | select(.name != "active+clean")] == []'; }

rbd_cmd() { rbd -c "$CEPH_CONF" --keyring "$CEPH_KEYRING" --id admin "$@" 2>>"$TMP/log/rbd.log"; }
ceph_cmd() { "$ONE_NODE" ceph "$CEPH_DIR" "$@"; }
# Requests about names that the MDS has answered: lookups, opens, listings. hearthd also asks, now and then, for the
# size of its volumes and whether their leases hold, which is not counted.
mds_asked() {
    "$ONE_NODE" perf "$CEPH_DIR" mds.a |
        jq '[.mds_server | to_entries[] | select(.key | test("^req_(lookup|open|readdir|lssnap|create)")) | .value.avgcount] | add'
}
osd_bytes() { "$ONE_NODE" perf "$CEPH_DIR" osd.0 osd.op_out_bytes; }

wait_for() { # SECONDS COMMAND...
    local tries=$(($1 * 20))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $((tries -= 1)) -gt 0 ] || return 1
        sleep 0.05
    done
}

# On a Unix socket; to have bound it is not enough (__SO_ACCEPTCON).
listens() { # PID
    local inodes
    inodes=$(readlink "/proc/$1/fd/"* 2>/dev/null | sed -n 's/^socket:\[\(.*\)\]$/\1/p' | paste -sd '|')
    [ -n "$inodes" ] && grep -qE " 00010000 [0-9]+ [0-9]+ ($inodes)( |$)" "/proc/$1/net/unix"
}
wait_socket() { # NAME SOCKET
    local tries=400
    until [ -S "$2" ] && listens "${PID[$1]}"; do
        running "$1" || { tail -n 5 "$TMP/log/$1.log" >&2; die "$1 does not start"; }
        [ $((tries -= 1)) -gt 0 ] || die "$1 has made no socket in 20 s"
        sleep 0.05
    done
}

CONTROLLER_WITH=() # a command that runs it, as env or valgrind
start_controller() { # [FLAGS]
    rm -f "$CONTROLLER"
    spawn controller "${CONTROLLER_WITH[@]}" "$BUILD/hearth-csi" --role=controller \
        --endpoint="unix://$CONTROLLER" --cluster-config="$TMP/config.json" "$@"
    wait_socket controller "$CONTROLLER"
}
own_user() { # the provisioner's Secret as Kubernetes mounts one, at $TMP/own
    mkdir -p -m 700 "$TMP/own"
    printf '%s' "$PROVISIONER_ID" >"$TMP/own/userID"
    printf '%s' "$PROVISIONER_KEY" >"$TMP/own/userKey"
}
HEARTHD_WITH=()
start_hearthd() { # [FLAGS]
    rm -f "$HEARTHD"
    spawn hearthd "${HEARTHD_WITH[@]}" "$BUILD/hearthd" --socket="$HEARTHD" --cache-dir="$CACHE" "$@"
    wait_socket hearthd "$HEARTHD"
}
NODE_WITH=()
start_node() { # [FLAGS]
    rm -f "$NODE"
    spawn node "${NODE_WITH[@]}" "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=test-node \
        --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json" --device-dir="$DEVICES" "$@"
    wait_socket node "$NODE"
}
start_keeper() {
    spawn keeper "$BUILD/hearth-keeper" --socket="$TMP/run/keeper.sock"
    wait_socket keeper "$TMP/run/keeper.sock"
}
start_hearth() { # [FLAGS of hearthd]
    start_controller
    start_hearthd "$@"
    start_node
}

# Output in $TMP/audit.json whatever the format; the exit status is its own.
audit() { # [FLAGS]
    "$BUILD/hearth-csi" audit --cluster-config="$TMP/config.json" --secret-dir="$TMP/own" "$@" 2>"$TMP/log/audit.log" | tee "$TMP/audit.json"
    return "${PIPESTATUS[0]}"
}

hearthctl() { "$BUILD/hearthctl" --socket "$HEARTHD" "$@"; }
# A number of the volume's, or of the cache's, in hearthctl status.
volume_stat() { hearthctl status --json | jq -r --arg v "$VOLUME_ID" ".volumes[] | select(.volume == \$v) | .$1"; }
cache_stat() { hearthctl status --json | jq -r ".cache.$1"; }

drop_page_cache() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
}
# Overlay's inodes first, then those beneath them that they held.
drop_all() { drop_page_cache && drop_page_cache && drop_page_cache; }
settled() { [ "$(cache_stat fillsActive)" = 0 ]; } # no fill is under way
sub() { ceph_cmd fs subvolume "$1" hearthfs "${@:2}" 2>/dev/null; }
subsnap() { ceph_cmd fs subvolume snapshot "$1" hearthfs "${@:2}" 2>/dev/null; }

# ---- CSI ----

# Builds JSON with jq: csi_json PROGRAM [jq options]. $secrets (the provisioner's) and $node_secrets
# are there, without being arguments of a process.
csi_json() {
    local program=$1
    shift
    jq -cn "$@" '
        {userID: env.PROVISIONER_ID, userKey: env.PROVISIONER_KEY} as $secrets |
        {userID: env.NODE_ID, userKey: env.NODE_KEY} as $node_secrets | '"$program"
}

csi() { # controller|node METHOD JSON
    local socket=$CONTROLLER service=Controller
    [ "$1" = node ] && socket=$NODE service=Node
    case $2 in Probe | GetPlugin*) service=Identity ;; *GroupSnapshot | GroupController*) service=GroupController ;; esac
    CSI_CALL="$service/$2" CSI_BEFORE="${CSI_CODE:-}: ${CSI_MESSAGE:-}" CSI_STARTED=$SECONDS CSI_CODE=OK CSI_MESSAGE=
    if REPLY_JSON=$("$BUILD/tools/csi-call" --timeout "${CSI_TIMEOUT:-60}" --socket "$socket" \
        "$service/$2" - <<<"$3" 2>"$TMP/csi.err"); then
        return 0
    fi
    CSI_CODE=$(jq -r .code "$TMP/csi.err" 2>/dev/null) CSI_MESSAGE=$(jq -r .message "$TMP/csi.err" 2>/dev/null)
    # Not the driver's answer: csi-call itself could not.
    [ -n "$CSI_CODE" ] || CSI_CODE=NONE CSI_MESSAGE=$(<"$TMP/csi.err")
    return 1
}
# Not yet, and to be asked again: which of the two, Ceph's own pace decides.
is_pending() { [ "$CSI_CODE" = ABORTED ] || [ "$CSI_CODE" = DEADLINE_EXCEEDED ]; }
pending() { # COMMAND...: repeated as a sidecar would
    local until=$((SECONDS + 240))
    until "$@"; do
        is_pending && [ $SECONDS -lt $until ] || return 1
    done
}
under_way() { # NAME: so says the last call
    if is_pending; then pass "$1"; else fail "$1" "$(said)"; fi
}

CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'

# The volumeContext of a static CephFS volume.
static_context() { # ROOT
    jq -cn --arg p "$1" --arg c "$CEPH_FSID" '{staticVolume: "true", clusterID: $c, fsName: "hearthfs", rootPath: $p}'
}

create_request() { # NAME BYTES PARAMETERS, to those of the class
    csi_json "{name: \$name, capacity_range: {required_bytes: \$bytes},
        volume_capabilities: [$CAPABILITY], secrets: \$secrets,
        parameters: (\$class + \$parameters)}" \
        --arg name "$1" --argjson bytes "$2" --argjson parameters "$3" \
        --argjson class "$CLASS"
}

create_volume() { # NAME [BYTES] [PARAMETERS]
    csi controller CreateVolume "$(create_request "$1" "${2:-2147483648}" "${3:-"{}"}")" || return 1
    VOLUME_ID=$(jq -r .volume.volumeId <<<"$REPLY_JSON")
    VOLUME_CONTEXT=$(jq -c '.volume.volumeContext // {}' <<<"$REPLY_JSON")
    ROOT_PATH=$(jq -r .rootPath <<<"$VOLUME_CONTEXT")
}

stage_request() {
    csi_json "{volume_id: \$id, staging_target_path: \$stage, volume_capability: $CAPABILITY,
        volume_context: \$context, secrets: \$node_secrets}" \
        --arg id "$VOLUME_ID" --arg stage "$STAGE" --argjson context "$VOLUME_CONTEXT"
}
publish_request() {
    csi_json "{volume_id: \$id, staging_target_path: \$stage, target_path: \$target,
        volume_capability: $CAPABILITY, volume_context: \$context, readonly: (\$readonly == \"true\")}" \
        --arg id "$VOLUME_ID" --arg stage "$STAGE" --arg target "$TARGET" \
        --argjson context "$VOLUME_CONTEXT" --arg readonly "${READONLY:-false}"
}
stage() {
    mkdir -p "$STAGE"
    csi node NodeStageVolume "$(stage_request)"
}
publish() { csi node NodePublishVolume "$(publish_request)"; }
unpublish() {
    csi node NodeUnpublishVolume "$(csi_json '{volume_id: $id, target_path: $target}' \
        --arg id "$VOLUME_ID" --arg target "$TARGET")"
}
unstage() {
    csi node NodeUnstageVolume "$(csi_json '{volume_id: $id, staging_target_path: $stage}' \
        --arg id "$VOLUME_ID" --arg stage "$STAGE")"
}
delete_volume() {
    csi controller DeleteVolume "$(csi_json '{volume_id: $id, secrets: $secrets}' --arg id "$VOLUME_ID")"
}

said() { echo "$CSI_CODE: $CSI_MESSAGE"; }

# A volume ready to use at $TARGET, removed at the end.
published_volume() { # NAME [BYTES] [PARAMETERS]
    create_volume "$@" || die "CreateVolume: $(said)"
    at_exit remove_volume
    stage || die "NodeStageVolume: $(said)"
    publish || die "NodePublishVolume: $(said)"
}
remove_volume() {
    unpublish && unstage
    delete_volume || echo "DeleteVolume: $(said)" >&2
}

# ---- programs that answer lines ----

talk_start() { # NAME COMMAND...
    local name=$1 in out
    shift
    rm -f "$TMP/run/$name".{in,out}
    mkfifo "$TMP/run/$name".{in,out}
    "$@" <"$TMP/run/$name.in" >"$TMP/run/$name.out" 2>>"$TMP/log/$name.log" &
    PID[$name]=$!
    PIDSTART[$name]=$(start_time $!)
    exec {in}>"$TMP/run/$name.in" {out}<"$TMP/run/$name.out"
    TALK_IN[$name]=$in TALK_OUT[$name]=$out
    IFS= read -r -t 60 -u "$out" ANSWER && [ "$ANSWER" = ok ]
}

talk() { # NAME WORDS...: TRUE when it answers "ok"; $ANSWER is what follows
    local name=$1
    shift
    printf '%s\n' "$*" >&"${TALK_IN[$name]}"
    IFS= read -r -t 60 -u "${TALK_OUT[$name]}" ANSWER || { ANSWER="no answer in 60 s"; return 1; }
    case $ANSWER in
    ok) ANSWER= ;;
    ok\ *) ANSWER=${ANSWER#ok } ;;
    *) return 1 ;;
    esac
}

talk_end() {
    local in=${TALK_IN[$1]} out=${TALK_OUT[$1]}
    exec {in}>&- {out}<&-
    unset "TALK_IN[$1]" "TALK_OUT[$1]"
    # It ends by itself at the end of its input; killed, a client of Ceph would leave a session that
    # others wait for.
    wait_for 5 eval "! running $1"
    end "$1" TERM 5
}

second_client() { # the volume's directory through plain libcephfs; then: talk client ...
    talk_start client "$BUILD/tools/cephfs-client" "$CEPH_CONF" admin "$CEPH_KEYRING" hearthfs "$ROOT_PATH" ||
        die "the second client does not connect: $(tail -n 2 "$TMP/log/client.log")"
}
