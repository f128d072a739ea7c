# What the parts of `make bench` share: Hearth on a Ceph of its own, and samples, one a line of
# build/bench/PART.jsonl.
. "$(dirname "${BASH_SOURCE[0]}")/../integration/lib.sh"
OUT=$BUILD/bench
bench_ceph=()      # flags of one-node
bench_network=true # what makes the network, before Ceph starts
declare -A AT

bench_start() { # PART
    TEST_NAME=bench-$1
    mkdir -p "$OUT"
    SAMPLES=$OUT/$1.jsonl
    : >"$SAMPLES"
    init
    $bench_network
    start_ceph "${bench_ceph[@]}"
    own_user
    start_controller --secret-dir="$TMP/own"
    start_hearthd
    start_node
}

tell() { echo "$(date +%T) $*" >&2; }

# Seconds of processor time that a spawned program has taken.
cpu() { # NAME
    jq -n "$(sed 's/.*) //' "/proc/${PID[$1]}/stat" | awk '{ print $12 + $13 }') / $(getconf CLK_TCK)"
}

settle() { wait_for 300 settled || die "fills do not end"; }

record() { # SYSTEM STATE VALUE [MORE-JSON]
    jq -cn --arg s "$1" --arg t "$2" --argjson v "$3" --argjson more "${4:-"{}"}" \
        '{system: $s, state: $t, value: $v} + $more' >>"$SAMPLES" || die "$1 $2: no figure"
}
