#!/bin/bash
# hearthctl where something is wrong around it: a hearthd that hangs, output that is full or closed, names that would
# command a terminal. Each command ends in bounded time, and never with 0 when it did not do what it was asked. Its hearthd
# answers from files (fake_hearthd.py).
. "$(dirname "$0")/lib.sh"
init
ANSWERS=$TMP/answers
mkdir "$ANSWERS"
spawn hearthd python3 "$(dirname "$0")/fake_hearthd.py" "$HEARTHD" "$ANSWERS"
wait_socket hearthd "$HEARTHD"
answer() { cat >"$ANSWERS/new" && mv "$ANSWERS/new" "$ANSWERS/$1"; } # OP: from standard input

ESCAPE=$'\e]0;told\a\e[2J' WIDE=$(printf '日本語%.0s' {1..20})
jq -n '{daemon: {version: "0.1.0", pid: 1, uptimeSec: 5, cpuMs: 10, memory: {residentBytes: 1, kinds: []}},
    cache: {dir: "/c", disk: "ok", bytes: 63, maxBytes: 100, originBytes: 0, nativeBytes: 0, pins: [{volume: "p", name: $name, bytes: 1}]}}' \
    --arg name "pin$ESCAPE" | answer status
jq -n '{more: false, volumes: ([$wide, $name] | map({volume: "h1~\(.)", name: ., type: "cephfs", clusterID: "c", fsName: "f", rootPath: "/\(.)",
    attached: true, cache: true, readOnly: false, pinned: false, dataset: "", uncached: "no lock", bytesTotal: 100, bytesCached: 50}))}' \
    --arg name "claim$ESCAPE" --arg wide "$WIDE" | answer volumes
jq -n '{more: false, datasets: ([$wide, $name] | map({dataset: ., name: ., label: "l", bytesTotal: 100, bytesCached: 50, filesTotal: 1, pinned: false,
    places: [{fsName: "f", rootPath: "/\(.)"}]}))}' --arg name "set$ESCAPE" --arg wide "$WIDE" | answer datasets
job() { # STATE
    jq -n '{job: 7, check: false, startedMs: 1, bytesHeld: 0, volume: $name, name: $name, path: "a b\($name)", state: $state, filesDone: 1,
        filesTotal: 2, bytesDone: 5, bytesTotal: 10, filesFailed: 1, scanning: false, elapsedMs: 2200, error: "\($name): Input/output error"}' \
        --arg name "file$ESCAPE" --arg state "$1"
}
job done | answer job
jq -n '{jobs: [$job], more: false}' --argjson job "$(job running)" | answer jobs
echo '{"job": 7}' | answer warm
echo '{"version": "0.1.0", "pid": 7}' | answer hello
echo '{"freedBytes": 5, "pinnedBytes": 0}' | answer evict
echo '{}' | answer pin
echo '{"volume": "v"}' | answer resolve
jq -n '{objects: 3, bytes: 4, unchecked: 0, more: false, bad: [{path: $name, object: $name}]}' --arg name "bad$ESCAPE" | answer verify

# ---- names of files and volumes command no terminal
COMMANDS=(status datasets jobs 'job 7' 'warm v' verify 'top -i 0.1' 'top --stream -i 0.1 --count 1')
for command in "${COMMANDS[@]}"; do
    # shellcheck disable=SC2086 # words
    hearthctl $command >"$TMP/out" 2>&1
    if ! grep -q '[^ ]' "$TMP/out" || LC_ALL=C grep -q $'[\e\a]' "$TMP/out"; then fail "no_escape_comes_through_$command" "$(cat -v "$TMP/out")"; else pass "no_escape_comes_through_$command"; fi
done
job cancelled | answer job
same a_command_to_be_typed_again_is_quoted "$(hearthctl job 7 2>&1 | grep -c "hearthctl warm 'file?\]0;told??\[2J' --path 'a bfile?\]0;told??\[2J'\$")" 1

same a_job_may_be_called_anything "$(hearthctl why --pod none --seconds 0.5 --name $'\e[2J' --json | jq -r .job)" '?[2J'

# ---- what is to be typed, for who came by kubectl hearth
says() { # CHECK PATTERN ARGS...
    local name=$1 pattern=$2
    shift 2
    hearthctl "$@" >"$TMP/out" 2>&1
    if grep -qE -e "$pattern" "$TMP/out" && ! grep -qE 'hearthctl (status|jobs?|warm|pin|help|--help)' "$TMP/out"; then pass "$name"; else fail "$name" "$(cat "$TMP/out")"; fi
}
AS='kubectl hearth --context=prod node n1'
says an_error_names_what_was_typed "see $AS status --help" status --as "$AS" x
says an_unknown_option_too "See $AS warm --help" warm --as "$AS" --hlep
says help_too "^  $AS warm train/data" warm --as "$AS" --help
says a_screen_too "1 job \($AS jobs\)" status --as "$AS"
says a_result_too "\($AS warm fetches the rest\)" pin --as "$AS" v
says what_goes_on_too "stopped: $AS warm 'v w'" warm --as "$AS" 'v w'

# ---- output that cannot be written
for command in --help --version 'status --help' status 'status --json' datasets 'datasets --json' jobs 'jobs --json' 'job 7 --json' version \
    'evict --all' 'evict --all --json' verify 'verify --json' 'pin v' 'unpin v --json' 'top -i 0.1' 'top -i 0.1 --json' 'top --stream -i 0.1' \
    'warm v --no-wait' doctor; do
    # shellcheck disable=SC2086 # words
    timeout 30 "$BUILD/hearthctl" --socket "$HEARTHD" $command >/dev/full 2>"$TMP/err"
    full=$?
    # shellcheck disable=SC2086
    timeout 30 "$BUILD/hearthctl" --socket "$HEARTHD" $command >&- 2>"$TMP/err2"
    closed=$?
    if [ "$full $closed" = "1 1" ] && grep -q 'cannot write the output' "$TMP/err" && grep -q 'cannot write the output' "$TMP/err2"; then pass "told_when_not_written_$command"; else fail "told_when_not_written_$command" "$full $closed $(tail -n 1 "$TMP/err")"; fi
done
same nothing_but_requests_is_sent "$(running hearthd && echo yes)" yes
hearthctl status | head -n 1 >"$TMP/out"
same who_reads_one_line_gets_it "$(grep -c '^hearthd' "$TMP/out")" 1

# ---- a hearthd that hangs
kill -STOP "${PID[hearthd]}"
at_exit 'kill -CONT "${PID[hearthd]}"'
jobs=()
for command in status datasets jobs 'job 7' 'job 7 --wait' version 'evict --all' verify 'pin v' 'unpin v' 'top -i 0.1' 'top --stream' 'warm v' 'why v'; do
    # shellcheck disable=SC2086
    (timeout 60 "$BUILD/hearthctl" --socket "$HEARTHD" $command >"$TMP/out.$command" 2>&1; echo $? >"$TMP/code.$command") &
    jobs+=($!)
done
wait "${jobs[@]}"
for file in "$TMP"/code.*; do
    command=${file#"$TMP/code."}
    same "it_ends_when_hearthd_hangs_$command" "$(cat "$file") $(grep -cE "it hangs or is stopped \(pid ${PID[hearthd]}\)|hearthd hangs or is stopped" "$TMP/out.$command")" "1 1"
done
hearthctl doctor >"$TMP/out"
same doctor_says_so "$? $(grep -c '^bad *hearthd' "$TMP/out")" "1 1"
# Those that wait for a place in its queue, too.
python3 -c 'import socket, sys, time
all = []
try:
    while True:
        all.append(socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET))
        all[-1].setblocking(False)
        all[-1].connect(sys.argv[1])
except BlockingIOError:
    print("full", flush=True)
time.sleep(30)' "$HEARTHD" >"$TMP/queue" &
QUEUE=$!
wait_for 10 grep -q full "$TMP/queue"
timeout 60 "$BUILD/hearthctl" --socket "$HEARTHD" status 2>"$TMP/err"
same it_ends_when_nothing_is_accepted "$? $(grep -c 'accepts no connection; hearthd hangs or is stopped' "$TMP/err")" "1 1"
kill $QUEUE
exit $((FAILED > 0))
