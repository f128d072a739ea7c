# Sourced after lib.sh by tests that run what documents tell their reader to: a command is taken from the document itself,
# so that what is tested is what stands there. ./commands check finds one that no test runs.
#
#   reader_begin        before the others, after init
#   reader_has NAME PROGRAM [ARGS]    what the reader's NAME is: reader_has ceph "$ONE_NODE" ceph "$CEPH_DIR"
#   documented FILE 'WORDS' [PLACE=VALUE...] [-- MORE]
#                       runs the command of FILE that begins with WORDS; pass when it succeeds. -- MORE completes one that a
#                       sentence only mentions
#   documented_block FILE 'HEADING' [N] [PLACE=VALUE...]
#                       each command of the Nth (first) block below HEADING, in order, each a pass or fail
#   command_of FILE 'WORDS' [PLACE=VALUE...]   -> $COMMAND, for who runs it otherwise: in the background, say
#
# PLACE is what a reader has to replace: a word in capitals (NODE=n1), one with … (dataset-0f3c…=x), or {{ }} of a template;
# nothing else may be changed. WORDS and HEADING stand in quotes and without variables, for ./commands reads them; a test
# that ends well without having come to all that it names fails.
#
#   reader_at_a_place   the reader, and what is started by "${READER_IN[@]}", is on a machine of its own as far as paths go
#                       (./place); what is at PATH there is at $PLACE/PATH here
#
# The reader is in $READER, which has the checkout's charts/, deploy/ and overlays/, and has the programs that were built in the path.
# What a command said is in $DOCUMENTED_OUT. It has $DOCUMENTED_SECONDS (60).

DOCUMENTS=$TOP/tests/documents/commands
DOCUMENTED_RUN=()
READER_IN=(env)

reader_begin() {
    READER=$TMP/reader
    DOCUMENTED_OUT=$TMP/documented.out
    mkdir -p "$TMP/reader-bin" "$READER"
    ln -s "$TOP/charts" "$TOP/deploy" "$TOP/overlays" "$READER/"
    at_exit documented_all
}
reader_has() { # NAME PROGRAM [ARGS]
    local name=$1
    shift
    # With the test's path, or a program that runs another of its name would find itself.
    printf '#!/bin/bash\nPATH=%q exec %s "$@"\n' "$PATH" "${*@Q}" >"$TMP/reader-bin/$name"
    chmod +x "$TMP/reader-bin/$name"
}
reader_at_a_place() {
    # With the test's end, also a sudden one: nothing of it says where it belongs, by which ./run would find it.
    spawn place setpriv --pdeathsig KILL unshare --mount --propagation private "$TOP/tests/documents/place" "$TMP/place"
    wait_for 20 test -e "$TMP/place/made" || die "no place: $(tail -n 2 "$TMP/log/place.log")"
    PLACE=/proc/${PID[place]}/root
    READER_IN=(setpriv --pdeathsig KILL nsenter --target "${PID[place]}" --mount --root -- env -C /)
}

documented_all() {
    local missing
    [ "$FAILED" = 0 ] || return 0
    missing=$(comm -23 <("$DOCUMENTS" calls "$0" | sort -u) <(printf '%s\n' "${DOCUMENTED_RUN[@]}" | sort -u))
    [ -z "$missing" ] || fail what_it_names_of_documents_is_run "it did not come to: $missing"
}

command_of() { # FILE WORDS [PLACE=VALUE...]
    COMMAND=$("$DOCUMENTS" find "$@" 2>&1) || die "$COMMAND"
    DOCUMENTED_RUN+=("$1"$'\t'"$2")
}
documented_one() { # FILE COMMAND
    local name="$1: ${2%%$'\n'*}"
    if PATH=$TMP/reader-bin:$BUILD:$PATH "${READER_IN[@]}" timeout "${DOCUMENTED_SECONDS:-60}" bash -c 'cd "$0" && eval "$1"' "$READER" "$2" \
        >"$DOCUMENTED_OUT" 2>&1 </dev/null; then
        pass "$name"
    else
        fail "$name" "$(tail -n 5 "$DOCUMENTED_OUT")"
        return 1
    fi
}
documented() { # FILE WORDS [PLACE=VALUE...] [-- MORE]
    local places=()
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        places+=("$1")
        shift
    done
    command_of "${places[@]}"
    [ $# -lt 2 ] || COMMAND+=$(shift && printf ' %q' "$@")
    documented_one "${places[0]}" "$COMMAND"
}
documented_block() { # FILE HEADING [N] [PLACE=VALUE...]
    local file=$1 heading=$2 number=1 command failed=0 commands
    shift 2
    case ${1:-} in [1-9]) number=$1 && shift ;; esac
    "$DOCUMENTS" block "$file" "$heading" "$number" "$@" >"$TMP/block" 2>"$DOCUMENTED_OUT" || die "$(<"$DOCUMENTED_OUT")"
    mapfile -d '' commands <"$TMP/block"
    DOCUMENTED_RUN+=("$file"$'\t'"$heading, $number")
    for command in "${commands[@]}"; do
        documented_one "$file" "$command" || failed=1
    done
    return $failed
}
