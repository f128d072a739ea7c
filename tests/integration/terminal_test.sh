#!/bin/bash
# hearthctl on real terminals (tmux) of several widths: the bar of warm stays one line when the window changes, and Ctrl-C
# tells what came; tables and top fit, with colours where they are wanted. Its hearthd answers from files
# (fake_hearthd.py), so that each screen is known; no Ceph is asked.

# A mount namespace of its own: the doctor of another test that runs beside this one is not to see the mount that is lost here.
[ -n "${OWN_MOUNTS:-}" ] || [ "$(id -u)" != 0 ] || OWN_MOUNTS=1 exec unshare --mount --propagation slave bash "$0"
. "$(dirname "$0")/lib.sh"
init
command -v tmux >/dev/null || { skip all "needs tmux"; exit 0; }
export LC_ALL=C.UTF-8
ANSWERS=$TMP/answers
mkdir "$ANSWERS"
spawn hearthd python3 "$(dirname "$0")/fake_hearthd.py" "$HEARTHD" "$ANSWERS"
wait_socket hearthd "$HEARTHD"

NUMBER=0 # each has a server of its own: one that ends takes no new windows
screen() { tmux -S "$TMP/tmux$NUMBER" -f /dev/null "$@"; }
at_exit 'screen kill-server 2>/dev/null'
open_terminal() { # COLUMNS ROWS COMMAND...: the exit code goes to $TMP/code
    local columns=$1 rows=$2
    shift 2
    screen kill-server 2>/dev/null
    NUMBER=$((NUMBER + 1))
    rm -f "$TMP/code"
    screen new-session -d -x "$columns" -y "$rows" "env TERM=screen-256color ${WITH:-} $(printf '%q ' "$BUILD/hearthctl" --socket "$HEARTHD" "$@"); echo \$? >$TMP/code; exec cat"
}
shown() { screen capture-pane -p "$@" | sed -e 's/ *$//' | sed -e :a -e '/^\n*$/{$d;N;ba' -e '}'; }
shows() { shown | grep -qE "$1"; }
ended() { [ -s "$TMP/code" ]; }
asked() { grep -c "\"op\": \"$1\"" "$ANSWERS/requests"; } # OP: how often
answer() { cat >"$ANSWERS/new" && mv "$ANSWERS/new" "$ANSWERS/$1"; } # OP: from standard input
more_asked() { [ "$(asked job)" -ge $((BEFORE + $1)) ]; }
drawn() { # TIMES: the bar was drawn as often again
    BEFORE=$(asked job)
    wait_for 60 more_asked $(($1 + 1))
}
job() { # STATE FILES BYTES
    jq -n --arg s "$1" --argjson f "$2" --argjson b "$3" '{job: 7, check: false, startedMs: 1, bytesHeld: 0, volume: "v", path: "",
        state: $s, filesDone: $f, filesTotal: 12, bytesDone: $b, bytesTotal: 227540992, filesFailed: 0, scanning: false, elapsedMs: 2200, error: ""}'
}

# ---- the bar ----
echo '{"job": 7}' | answer warm
echo '{}' | answer cancel
job running 1 41943040 | answer job
job cancelled 3 33554432 >"$ANSWERS/cancelled"
for columns in 40 80 200; do
    open_terminal $columns 10 warm v
    wait_for 60 shows ' 18%' || fail "a_bar_at_$columns" "$(shown)"
    drawn 5
    same "the_bar_at_$columns columns is one line" "$(shown | grep -c .)" 1
done
screen resize-window -x 60 -y 10
drawn 3
same it_stays_one_when_the_window_shrinks "$(shown | grep -c '[^ ]')" 1
shows 'left$' && pass and_keeps_the_time_left || fail and_keeps_the_time_left "$(shown)"
screen send-keys C-c
wait_for 60 ended || fail ctrl_c_ends_it "$(shown)"
same ctrl_c_cancels_the_job "$(cat "$TMP/code") $(asked cancel)" "1 1"
TEXT=$(shown -J | tr '\n' ' ')
case $TEXT in
*'40.0 MiB came; 3 of 12 files (32.0 MiB) are complete and stay in the cache'*"the same command continues where it stopped: hearthctl warm v"*) pass it_says_what_came_and_how_to_go_on ;;
*) fail it_says_what_came_and_how_to_go_on "$TEXT" ;;
esac
case $TEXT in *'#'*) fail the_bar_is_gone "$TEXT" ;; *) pass the_bar_is_gone ;; esac

# ---- tables, colours ----
cat >"$TMP/node.jq" <<'EOJ'
{daemon: {version: "0.1.0", pid: 1, uptimeSec: 183600, cpuMs: 10, memory: {residentBytes: 1, kinds: []}},
 cache: {dir: "/c", disk: $disk, bytes: 63, maxBytes: 100, originBytes: 0, nativeBytes: 0, pins: []}}
EOJ
answer_status() { jq -n --arg disk "$1" -f "$TMP/node.jq" | answer status; }
answer_status bypass
jq -n '{more: false, volumes: [range(3) | {volume: "h1~cephfs~955aba63-f154-4ea1-b2f2-0242ac110002~hearthfs~csi~csi-vol-pvc-\(.)", type: "cephfs",
    clusterID: "c", fsName: "hearthfs", rootPath: "/volumes/csi/csi-vol-pvc-\(.)/11", attached: true, cache: true, readOnly: false, pinned: false, dataset: "",
    uncached: "", bytesTotal: 100, filesTotal: 1, bytesCached: 50, opens: 0, hits: 0, misses: 0, bytesStore: 0, bytesFill: 0, bytesOrigin: 0, bytesWritten: 0}]}' | answer volumes
echo '{"datasets": [], "more": false}' | answer datasets
jq -n --argjson job "$(job running 1 41943040)" '{jobs: [$job], more: false}' | answer jobs
open_terminal 80 24 status
wait_for 60 ended || fail status_ends "$(shown)"
same status_fits_80_columns "$(shown | grep -c '^h1~') $(shown | grep -c '^ *7 ')" "3 1"
screen capture-pane -pe | grep -q $'\e\[1m\e\[31mBYPASS\|\e\[1;31mBYPASS' && pass bypass_is_red || fail bypass_is_red "$(screen capture-pane -pe | head -n 2 | cat -v)"
WITH=NO_COLOR=1 open_terminal 80 24 status
wait_for 60 ended
same without_colour_if_told_so "$(shown | grep -c BYPASS) $(screen capture-pane -pe | grep -c $'\e')" "1 0"
open_terminal 80 24 status --no-color
wait_for 60 ended
same also_by_the_option "$(cat "$TMP/code") $(shown | grep -c BYPASS) $(screen capture-pane -pe | grep -c $'\e')" "0 1 0"
hearthctl status >"$TMP/out"
same elsewhere_all_columns_are_shown "$(grep -c 'csi-vol-pvc-[0-2]$' "$TMP/out") $(grep -c $'\e' "$TMP/out")" "3 0"

# ---- a mount whose hearthd is gone ----
POD=$TMP/mnt/kubelet/pods/0a1b2c3d/volumes/kubernetes.io~csi/pv/mount
mkdir -p "$POD"
python3 - "$POD" <<'PY' || die "no FUSE mount"
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
fd = os.open("/dev/fuse", os.O_RDWR)
options = f"fd={fd},rootmode=40000,user_id=0,group_id=0"
if libc.mount(b"hearth:h1~eval", sys.argv[1].encode(), b"fuse.hearth", 0, options.encode()) != 0:
    sys.exit(os.strerror(ctypes.get_errno()))
PY
open_terminal 80 40 status
wait_for 60 ended
# Those of tests beside this one count, too.
check a_lost_mount_is_on_the_screen shows '^! [0-9]* mounts* [a-z]* not served any more'
screen capture-pane -pe | grep -q $'\e\\[[0-9;]*31m! [0-9]* mount' && pass in_red || fail in_red "$(screen capture-pane -pe | grep -F '!' | cat -v)"
same and_where_it_is "$(hearthctl status --json | jq -c '.lostMounts[] | [.volume, .path]' | grep -cF "[\"h1~eval\",\"$POD\"]")" 1
echo '{"version": "0.1.0", "pid": 7}' | answer hello
hearthctl doctor --json >"$TMP/out"
same doctor_has_it_too "$? $(jq -r '.findings[] | select(.name == "mounts") | .level' "$TMP/out") $(grep -cF "$POD" "$TMP/out")" "1 bad 1"
same doctor_ends_with_what_is_bad "$(hearthctl doctor | tail -n 1 | grep -c '^bad: .*mounts')" 1
umount "$POD"
same it_goes_with_the_mount "$(hearthctl status --json | jq -c .lostMounts | grep -cF "$TMP")" 0

# ---- top ----
open_terminal 60 12 top -i 0.3 --sort ceph
wait_for 60 shows 'CEPH/S▼$' && pass the_sorted_column_is_kept_and_marked || fail the_sorted_column_is_kept_and_marked "$(shown)"
screen resize-window -x 150 -y 12
wait_for 60 shows 'PLACE$' && pass a_wider_window_has_more || fail a_wider_window_has_more "$(shown)"
answer_status ok
wait_for 60 shows 'disk ok' && pass it_is_drawn_again || fail it_is_drawn_again "$(shown)"
screen send-keys '>'
wait_for 60 shows 'WRITTEN/S▼' && pass a_key_sorts || fail a_key_sorts "$(shown)"
screen send-keys C-c
wait_for 60 ended && same ctrl_c_ends_top "$(cat "$TMP/code")" 0
open_terminal 100 12 top --stream -i 0.2
three_lines() { [ "$(shown | grep -cE '^[0-9]{2}:[0-9]{2}:[0-9]{2} ')" -ge 3 ]; }
wait_for 60 three_lines && pass stream_prints_a_line_a_sample || fail stream_prints_a_line_a_sample "$(shown)"
same below_one_heading "$(shown | grep -c 'TIME .*NATIVE/S')" 1
same json_is_one_object_a_sample "$(hearthctl top --json -i 0.1 -n 2 | jq -c '[.cephBytesPerSec == 0, (.volumes | length)]' | tr '\n' ' ')" '[true,3] [true,3] '

# ---- completion of zsh and fish ----
export PATH=$BUILD:$PATH HEARTH_SOCKET=$HEARTHD
in_zsh() { # WORDS...: what is offered for the last one
    zsh -fc 'compadd() { print -l -- ${(P)2} }; _describe() { print -l -- ${${(P)2}%%:*} }; _files() { print paths }
        source $0; words=("$@"); CURRENT=$#; _hearthctl' "$TOP/deploy/completion/_hearthctl" "$@" 2>&1
}
in_fish() { fish --no-config -c 'source $argv[1]; complete -C $argv[2]' "$TOP/deploy/completion/hearthctl.fish" "$1" 2>&1 | cut -f 1; }
COMMANDS=$("$BUILD/hearthctl" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p' | sort | tr '\n' ' ')
VOLUMES=$(printf 'h1~cephfs~955aba63-f154-4ea1-b2f2-0242ac110002~hearthfs~csi~csi-vol-pvc-%s ' 0 1 2)
if command -v zsh >/dev/null; then
    same zsh_has_the_commands "$(in_zsh hearthctl '' | sort | tr '\n' ' ')" "$COMMANDS"
    same zsh_has_options_volumes_and_jobs "$(in_zsh hearthctl top --st | grep -x -e --stream) $(in_zsh hearthctl warm '' | tr '\n' ' ')$(in_zsh hearthctl job '')" "--stream ${VOLUMES}7"
else
    skip zsh "it is not installed"
fi
if command -v fish >/dev/null; then
    same fish_has_the_commands "$(in_fish 'hearthctl ' | sort | tr '\n' ' ')" "$COMMANDS"
    same fish_has_options_volumes_and_jobs "$(in_fish 'hearthctl top --st') $(in_fish 'hearthctl warm h1' | tr '\n' ' ')$(in_fish 'hearthctl job ')" "--stream ${VOLUMES}7"
else
    skip fish "it is not installed"
fi

# ---- words that are nearly right ----
wrong() { # NAME CODE TEXT ARGUMENT...
    local name=$1 wanted="$2 1" text=$3 code
    shift 3
    hearthctl "$@" >"$TMP/out" 2>"$TMP/err"
    code=$?
    same "$name" "$code $(grep -cF -e "$text" "$TMP/err")" "$wanted"
}
wrong a_command_is_suggested 2 "unknown command 'statsu'; did you mean status? See hearthctl --help" statsu
wrong an_option_of_why_is_suggested 2 'unknown option --pdo; did you mean --pod? See hearthctl why --help' why --pdo x
wrong version_takes_nothing 2 "version: unexpected argument 'extra'" version extra
wrong status_takes_nothing 2 "status: unexpected argument 'extra'" status extra
wrong datasets_takes_nothing 2 'datasets: it takes no arguments' datasets extra
wrong jobs_says_how_to_ask_for_one 2 'one job is hearthctl job NUMBER' jobs extra
wrong job_needs_a_number 2 'job: name one job by its number' job x
wrong pin_needs_a_volume 2 'pin: name one volume or path' pin
wrong evict_needs_a_volume 2 'evict: name one volume or path, or give --all' evict
wrong warm_needs_a_volume 2 'warm: name one volume or path' warm
wrong top_has_no_such_column 2 "no column 'x'" top --sort x
wrong need_needs_a_size 2 'Missing argument for --need; see hearthctl bench --help' bench --need
wrong an_option_is_suggested 2 'unknown option --jsn; did you mean --json? See hearthctl status --help' status --jsn
wrong an_argument_too_many_names_the_help 2 "unexpected argument 'extra'; see hearthctl status --help" status extra
wrong a_bad_size_is_wrong_usage 2 '--rate=fast' warm v --rate fast
wrong check_takes_no_rate 2 'it fetches nothing' warm v --check --rate 1M
wrong an_earlier_hearthd_is_told 1 "is not known to hearthd" verify
same help_of_a_command "$("$BUILD/hearthctl" help jobs | head -n 1)" 'Usage: hearthctl jobs [OPTIONS]'
same help_has_no_noise "$("$BUILD/hearthctl" warm --help | grep -c 'OPTION?\|Help Options\|Application Options')" 0
echo '{}' | answer pin
jq '.cache.pins = [{volume: "v", bytes: 1048576, objects: 1}]' "$ANSWERS/status" | answer status
echo '{"volume": "v"}' | answer resolve
same pin_tells_what_it_did "$(hearthctl pin v)" 'v: pinned; 1.0 MiB of it are in the cache now (hearthctl warm fetches the rest)'
same unpin_too "$(hearthctl unpin v) $(grep '"op": "pin"' "$ANSWERS/requests" | tail -n 1 | jq -c .on)" 'v: not pinned any more false'
same json_of_pin "$(hearthctl pin v --json | jq -c '[.volume, .pinned, .bytes]')" '["v",true,1048576]'
same json_of_version "$(hearthctl version --json | jq -c '[.hearthd, .pid]')" '["0.1.0",7]'
echo '{"objects": 2, "bytes": 10, "unchecked": 0, "bad": [{"object": "00", "path": "a"}], "after": "", "more": false}' | answer verify
same json_of_verify "$(hearthctl verify --json | jq -c '[.objects, .bad[0].path]')" '[2,"a"]'
for command in status datasets top jobs; do
    hearthctl "$command" --json | jq -e . >/dev/null && pass "json_of_$command" || fail "json_of_$command" "it is none"
done
exit $((FAILED > 0))
