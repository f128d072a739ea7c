#!/bin/bash
# graph.py finds each fault, planted in a tree of its own and compiled.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

source_of() { # FILE TEXT
    mkdir -p "$(dirname "$tree/$1")"
    printf '%b\n' "$2" >"$tree/$1"
}
planted() { # NAME STATUS WORDS: with what source_of has added to a tree without a fault
    local c
    for c in $(cd "$tree" && find . -name '*.c' | sort); do
        mkdir -p "$tree/obj/$(dirname "$c")"
        (cd "$tree" && cc -I. -c -o "obj/${c%.c}.o" "$c") || failed=1
    done
    "$here/graph.py" "$tree" obj >"$tree/out" 2>&1
    if [ $? = "$2" ] && grep -qF -- "$3" "$tree/out"; then
        echo "pass layout: $1"
    else
        echo "fail layout: $1: $(paste -sd ';' "$tree/out")"
        failed=1
    fi
    fresh
}
fresh() {
    rm -rf "${tree:?}"/*
    source_of common/base.h 'int base(void);'
    source_of common/base.c '#include "common/base.h"\nint base(void) { return 1; }'
    source_of cache/store/store.h 'int store(void);'
    source_of cache/store/store.c '#include "cache/store/store.h"\n#include "common/base.h"\nint store(void) { return base(); }'
    source_of cmd/hearthd/main.c '#include "cache/store/store.h"\nint main(void) { return store(); }'
}

fresh
planted a_tree_without_a_fault 0 'none uses one below it, no circle, no name twice'
source_of common/base.c '#include "common/base.h"\n#include "cache/store/store.h"\nint base(void) { return 1; }'
planted an_include_of_a_folder_below 1 'common/base.c includes cache/store/store.h: cache/store/ stands below common/ in FOLDERS'
source_of common/base.c '#include "common/base.h"\nint store(void);\nint base(void) { return store(); }'
planted a_call_of_a_folder_below 1 'common/base.c calls store of cache/store/store.c'
source_of cache/store/a.c 'int b(void);\nint a(void) { return b(); }'
source_of cache/store/b.c 'int a(void);\nint b(void) { return a(); }'
planted a_circle_of_calls 1 '2 files are a circle: cache/store/a.c -> cache/store/b.c (calls b)'
source_of cache/store/a.h '#include "cache/store/b.h"'
source_of cache/store/b.h '#include "cache/store/a.h"'
planted a_circle_of_headers 1 '2 files are a circle'
source_of cache/block/twice.c 'int base(void) { return 2; }'
planted an_extern_name_twice 1 'base is defined by cache/block/twice.c and common/base.c'
for i in {01..16}; do source_of "cache/block/$i.c" "int block$i(void) { return 1; }"; done
planted a_crowded_folder 1 'cache/block/ has 16 sources, more than 15'
source_of cache/new/a.c 'int new(void) { return 1; }'
planted a_folder_without_a_place 1 'the folder cache/new has no place in FOLDERS'
source_of cmd/hearthctl/main.c 'int main(void) { return 0; }'
planted each_program_has_its_main 0 'no name twice'
source_of .dockerignore '*\n!cache\n!cmd'
planted a_folder_that_is_not_in_the_image 1 'the image is built without common/, which .dockerignore does not name'
exit $failed
