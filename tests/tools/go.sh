# Sourced by the scripts that build programs in Go for the tests: a Go, and what its failures mean.
#
#   use_go DIR VERSION     sets $GO to one that can build what asks for VERSION, with Go's caches in
#                          DIR/go; exits 77 with the reason on stdout when none can be had
#   alone DIR              one builds there, whoever else wants to waits
#   go_failed LOG WHAT     after a build that failed: exits 77 with the reason when the module proxy does
#                          not answer, else 1 with the end of LOG

SWITCHES=1.21 # from here on a Go fetches the toolchain that a module wants

at_least() { [ "$(printf '%s\n' "$2" "$1" | sort -V | head -n 1)" = "$2" ]; }

alone() { mkdir -p "$1" && exec 9>"$1/lock" && flock 9; } # DIR

go_failed() { # LOG WHAT
    if grep -qE 'dial tcp|no such host|i/o timeout|connection refused|TLS handshake' "$1"; then
        echo "the Go module proxy does not answer"
        exit 77
    fi
    tail -n 5 "$1" >&2
    echo "$2 failed (above)" >&2
    exit 1
}

use_go() { # DIR VERSION
    local have toolchain
    PATH=$PATH:/usr/local/go/bin
    if ! type -P go >/dev/null; then
        echo "there is no Go; tests/tools/install-deps conformance installs Debian's"
        exit 77
    fi
    mkdir -p "$1" || exit 1
    # Modules stay writable, so that `make clean` can remove them.
    export GOPATH=$1/go GOCACHE=$1/go/cache GOBIN=$1/bin GOFLAGS=-modcacherw GOTOOLCHAIN=auto
    GO=go
    have=$(go env GOVERSION 2>/dev/null | sed 's/^go//; s/[^0-9.].*//')
    if ! at_least "${have:-0}" $SWITCHES; then
        # Debian 12's is older; the toolchain is a module all the same, checked like any other.
        toolchain=golang.org/toolchain@v0.0.1-go$2.linux-$(go env GOARCH)
        (cd "$1" && go mod download "$toolchain") >"$1/build.log" 2>&1 || go_failed "$1/build.log" "fetching Go $2"
        # A module has no executable files.
        chmod -R u+x "$GOPATH/pkg/mod/$toolchain"/{bin,pkg/tool}
        GO=$GOPATH/pkg/mod/$toolchain/bin/go
        export GOTOOLCHAIN=local
        unset GOROOT
    fi
}
