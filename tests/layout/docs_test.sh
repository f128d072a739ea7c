#!/bin/bash
# The check of documents finds each fault, planted in a tree of its own.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0
mkdir -p "$tree"/{docs/design,build,tests,cmd,driver/{volume,service/controller},common,proto,cache}
cd "$tree" || exit 1
for program in hearthd hearth-csi hearthctl; do
    printf '#!/bin/sh\necho "  warm  Fetch"\necho "  --rate=SIZE  Most"\n' >build/$program
    chmod +x build/$program
done

planted() { # NAME WANTED FILE TEXT: adds it to a tree without a fault
    printf '    {"pool", KIND_TEXT, X},\n    {"rootPath", KIND_STATIC, X},\n' >driver/volume/params.c
    printf '    {"quota", KIND_SIZE, X},\n' >driver/volume/mutable.c
    printf 'gboolean controller_snapshot_class(x)\n{\n    if (strcmp(name, "fsName") == 0)\n}\n' >driver/service/controller/snapshot.c
    printf 'controller_snapshot_class(a, "groupPrefix", b);\n    refuse("it is %%s, "\n           "not \\"there\\"");\n' >driver/service/controller/group.c
    printf '# x\n' | tee README.md ARCHITECTURE.md docs/a.md docs/design/a.md >/dev/null
    printf 'typedef struct Store { int lock; } Store;\nint store_open(void);\n' >cache/store.h
    printf '| `it is …, not "there"` | x |\n' >docs/troubleshooting.md
    printf '## StorageClass\n| `pool` |\n## VolumeAttributesClass\n| `quota` |\n## VolumeSnapshotClass\n| `fsName`, `groupPrefix` |\n' >docs/storageclass.md
    printf '%b\n' "$4" >>"$3"
    HEARTH_BUILD=build "$here/docs.sh" "$tree" >out 2>&1
    if [ $? = "$2" ]; then
        echo "pass layout: $1"
    else
        echo "fail layout: $1: $(paste -sd ';' out)"
        failed=1
    fi
}

planted documents_without_a_fault 0 README.md '[a](docs/a.md) `driver/volume/*.c`\n```yaml\na: b\n```\nhearthd --none\n```sh\n$ hearthctl warm x \\\\\n  --rate 1 | less --none\n```'
planted names_of_the_code 0 docs/design/a.md '`Store.lock`, `store_open()` and `mon_timeout`, `ext_option`'
planted member_of_nothing 1 docs/design/a.md 'see `Store.mutex`'
planted function_of_nothing 1 ARCHITECTURE.md 'see `store_close`'
planted test_of_nothing 1 docs/design/a.md '`store_test` shows it'
planted path_of_nothing_in_the_design 1 docs/design/a.md '`cache/none.h`'
planted link_to_nothing_in_the_design 1 ARCHITECTURE.md '[a](docs/design/b.md)'
planted link_to_nothing 1 docs/a.md '[a](b.md)'
planted path_of_nothing 1 README.md 'see `driver/volume/none.c`.'
planted flag_of_nobody 1 README.md '```sh\nhearthctl warm x \\\\\n  --speed 1\n```'
planted flag_of_nobody_in_a_container 1 docs/a.md '```sh\nkubectl exec x -- hearthd --speed\n```'
planted command_of_nobody 1 README.md '```sh\nhearthctl heat x\n```'
planted parameter_that_is_not_told_of 1 driver/volume/params.c '    {"other", KIND_TEXT, X},'
planted parameter_that_is_not_there 1 docs/storageclass.md '## StorageClass\n| `other` |'
planted attribute_that_is_not_told_of 1 driver/volume/mutable.c '    {"other", KIND_SIZE, X},'
planted error_that_nobody_says 1 docs/troubleshooting.md '| `it is …, or not` | x |'
exit $failed
