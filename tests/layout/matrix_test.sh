#!/bin/bash
# The checks of the matrix and of clocks find each fault, planted in a tree of its own.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
mkdir -p "$tree"/tests/{integration,unit/cache/block,e2e} "$tree"/{cache/store,driver/node,docs/design}
cd "$tree" || exit 1
touch tests/integration/cut_test.sh tests/e2e/pods_test.sh Makefile
echo 'START_TEST(kept)' >tests/unit/cache/block/watch_test.c

report() { # NAME WANTED STATUS
    if [ "$3" = "$2" ]; then
        echo "pass layout: $1"
    else
        echo "fail layout: $1: $(paste -sd ';' out)"
        failed=1
    fi
}
planted() { # NAME WANTED [FROM TO]: a matrix without a fault, with FROM replaced
    cat >docs/design/promises.md <<'END'
# Promises
| promise | in short |
|---|---|
| 1 reads | `cut` |
| 2 writes | `e2e/pods` |

| fault | 1 |
|---|---|
| cut | `cut`, `unit/block/watch` (`kept`) |
| killed | -a |

| fault | 2 |
|---|---|
| cut | ?b |
| killed | `e2e/pods` |

- **a** why it cannot be
- **b** why it is not tested
END
    printf '| who | shown by |\n|---|---|\n| a pod | `cut` |\n' >SECURITY.md
    [ $# -lt 4 ] || sed -i "s#$3#$4#" docs/design/promises.md SECURITY.md
    "$here/matrix.py" "$tree" >out 2>&1
    report "$1" "$2" $?
}
planted matrix_without_a_fault 0
planted cell_that_is_empty 1 '| ?b |' '| |'
planted cell_that_says_nothing 1 '| ?b |' '| yes |'
planted test_that_is_not_there 1 'cut | `cut`' 'cut | `other`'
planted unit_test_that_is_not_there 1 'unit/block/watch' 'unit/store/watch'
planted case_that_is_not_there 1 '(`kept`)' '(`lost`)'
planted reason_that_is_not_there 1 '-a |' '-c |'
planted reason_that_no_cell_has 1 '| ?b |' '| `cut` |'
planted reason_that_is_there_twice 1 "- [*][*]b[*][*]" "- **a** why else\\\\n- **b**"
planted promise_without_a_column 1 '| 2 writes' '| 3 writes'
planted fault_that_a_table_lacks 1 '| killed | -a |' ''
planted threat_that_nothing_shows 1 '| a pod | `cut` |' '| a pod | believe it |'
planted threat_whose_test_is_not_there 1 '| a pod | `cut` |' '| a pod | `other` |'

timed() { # NAME WANTED TEXT
    printf '%s\n' "$3" >cache/store/a.c
    "$here/clocks.sh" "$tree" >out 2>&1
    report "$1" "$2" $?
}
timed clock_that_does_not_jump 0 'clock_gettime(CLOCK_MONOTONIC, &now);'
timed wall_clock 1 'clock_gettime(CLOCK_REALTIME, &now);'
timed wall_clock_of_glib 1 '    return g_get_real_time() / 1000;'
timed wall_clock_in_a_comment 0 ' * as g_get_real_time() tells'
exit $failed
