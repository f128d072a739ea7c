#!/bin/bash
# hearthctl on real terminals (tmux) of several widths: the bar of warm stays one line when the window changes, and Ctrl-C
# tells what came. Its hearthd answers from files (fake_hearthd.py), so that each screen is known; no Ceph is asked.
. "$(dirname "$0")/lib.sh"
init
command -v tmux >/dev/null || { skip all "needs tmux"; exit 0; }
export LC_ALL=C.UTF-8
ANSWERS=$TMP/answers
mkdir "$ANSWERS"
spawn hearthd python3 "$(dirname "$0")/fake_hearthd.py" "$HEARTHD" "$ANSWERS"
wait_socket hearthd "$HEARTHD"

screen() { tmux -S "$TMP/tmux" -f /dev/null "$@"; }
at_exit 'screen kill-server 2>/dev/null'
open_terminal() { # COLUMNS ROWS COMMAND...: the exit code goes to $TMP/code
    local columns=$1 rows=$2
    shift 2
    screen kill-server 2>/dev/null
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
exit $((FAILED > 0))
