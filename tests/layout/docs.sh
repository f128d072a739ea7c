#!/bin/bash
# Checks that what the documents name exists: links, paths of this tree, flags of our programs, error texts
# (docs/troubleshooting.md), members and functions (ARCHITECTURE.md, docs/design), and the parameters of classes:
# docs/storageclass.md has exactly those that the code has.
#
#   docs.sh [TOP]      flags are looked for in $HEARTH_BUILD's programs; skipped when they are not built
#
# Prints "pass layout: ..." or one "fail layout: ..." for each fault, and exits 1 on any.

set -uo pipefail
lister=$(realpath "$(dirname "$0")/../documents/commands")
cd "${1:-$(dirname "$0")/../..}" || exit 1
build=${HEARTH_BUILD:-build}
failed=0
fault() {
    echo "fail layout: $*"
    failed=1
}
documents=(README.md docs/*.md)
design=()
for file in ARCHITECTURE.md docs/design/*.md; do [ ! -e "$file" ] || design+=("$file"); done
for file in CONTRIBUTING.md SECURITY.md "${design[@]}"; do [ ! -e "$file" ] || documents+=("$file"); done
there() { compgen -G "$1" >/dev/null; }

# ---- links and paths
links=0
while IFS=: read -r file line target; do
    target=${target#](}
    target=${target%)}
    case $target in *://* | '#'*) continue ;; esac
    links=$((links + 1))
    [ -e "$(dirname "$file")/${target%%#*}" ] || fault "$file:$line links to $target, which is not there"
done < <(grep -noHE '\]\([^) ]+\)' "${documents[@]}")
# Everything that begins with one of our folders, in code or in prose.
top='(cache|charts|cmd|common|deploy|docs|driver|overlays|proto|tests)'
while IFS=: read -r file line path; do
    path=${path#?}
    path=${path%[.,:]}
    links=$((links + 1))
    there "$path" || fault "$file:$line names $path, which is not there"
done < <(for f in "${documents[@]}"; do sed 's/^/ /' "$f" | grep -noE "[ \`(]$top/[A-Za-z0-9_.*/-]+" | sed "s|^|$f:|"; done)

# ---- names in the design pages: `Type.member`, `module_function` with a header module.h, and `some_test`
names=0
if [ ${#design[@]} != 0 ]; then
    words=$(find common proto cache driver cmd tests -name '*.[ch]' -exec grep -ohE '[A-Za-z_][A-Za-z0-9_]*' {} + | sort -u)
    modules=$(find common proto cache driver cmd -name '*.h' | sed -E 's|.*/([^/]+)\.h$|\1|' | sort -u)
    has() { grep -qxF -- "$1" <<<"$2"; }
    while IFS=: read -r file line name; do
        name=${name//\`/}
        name=${name%()}
        names=$((names + 1))
        case $name in
        *.*) has "${name%.*}" "$words" && has "${name#*.}" "$words" ;;
        *_test) [ -n "$(find tests -name "$name.*")" ] ;;
        client_* | mds_* | mon_* | osd_* | rados_*) ;; # options of Ceph
        *) has "$name" "$words" || ! has "${name%%_*}" "$modules" ;;
        esac || fault "$file:$line names $name, which does not exist"
    done < <(grep -noHE '`([A-Z][A-Za-z]+\.[a-z_]+|[a-z]+(_[a-z0-9]+)+(\(\))?)`' "${design[@]}" | grep -v '^docs/design/promises.md:') # tests/layout/matrix.py
fi

# ---- flags: words after one of our programs, up to the end of that command
commands() { # FILE: lines of NUMBER:COMMAND
    DOCUMENTS_TOP=. "$lister" list "$1" | awk -F '\t' '{ sub(/^.*:/, "", $1)
        n = split($3, parts, /\|\||&&|[|;]/)
        for (i = 1; i <= n; i++) if (match(parts[i], /(^|[ \/])(hearthd|hearth-csi|hearthctl) /)) print $1 ":" substr(parts[i], RSTART) }'
}
help_of() { # PROGRAM [SUBCOMMAND]
    local key="$*"
    [ -n "${helps[$key]:-}" ] || helps[$key]=$("$build/$1" ${2:+"$2"} --help 2>&1)
    printf '%s\n' "${helps[$key]}"
}
declare -A helps=()
flags=0
if [ -x "$build/hearthctl" ] && [ -x "$build/hearthd" ] && [ -x "$build/hearth-csi" ]; then
    for file in "${documents[@]}"; do
        while IFS=: read -r line command; do
            read -r -a words <<<"$command"
            program=${words[0]##*/} sub=
            [[ ${words[1]:-} =~ ^[a-z]+$ ]] && sub=${words[1]}
            if [ -n "$sub" ] && ! grep -qE "^  $sub |\`?$program $sub" < <(help_of "$program"); then
                fault "$file:$line: $program has no command $sub"
                continue
            fi
            for word in "${words[@]:1}"; do
                [[ $word =~ ^\"?\'?(--[a-z][a-z-]*) ]] || continue
                flags=$((flags + 1))
                flag=${BASH_REMATCH[1]}
                grep -qE -- "(^|[ ,])$flag([=, ]|\$)" < <(help_of "$program" $sub) || fault "$file:$line: $program${sub:+ $sub} has no flag $flag"
            done
        done < <(commands "$file")
    done
else
    echo "skip layout: flags in documents: the programs are not built"
fi

# ---- parameters of classes
section() { # TITLE: the names in the first column of its table
    awk -v title="## $1" '/^## / { inside = $0 == title; next }
        inside && /^\| `/ { split($0, cell, "|"); n = split(cell[2], part, "`"); for (i = 2; i <= n; i += 2) print part[i] }' docs/storageclass.md | sort
}
agrees() { # TITLE NAMES
    local off
    [ -n "$2" ] || { fault "found no parameter of $1 in the code"; return; }
    off=$(comm -3 <(section "$1") <(sort <<<"$2") | sed 's/^\t\(.*\)/\1 is missing/; t; s/$/ is not known to the code/')
    while read -r line; do [ -z "$line" ] || fault "docs/storageclass.md: $1: $line"; done <<<"$off"
}
if [ -e driver/volume/params.c ]; then
    agrees StorageClass "$(sed -nE '/KIND_STATIC,/d; s|^    \{K8S "([^"]+)", KIND_.*|csi.storage.k8s.io/\1|p; s/^    \{"([^"]+)", KIND_.*/\1/p' driver/volume/params.c)"
    agrees VolumeAttributesClass "$(sed -nE 's/^    \{"([^"]+)", KIND_.*/\1/p' driver/volume/mutable.c)"
    agrees VolumeSnapshotClass "$(sed -nE '/^gboolean controller_snapshot_class/,/^}/s/.*strcmp\(name, "([^"]+)"\).*/\1/p' driver/service/controller/snapshot.c
        sed -nE 's/.*controller_snapshot_class\(.*"([A-Za-z]+Prefix)".*/\1/p' driver/service/controller/snapshot.c driver/service/controller/group.c)"
fi

# ---- error texts: the code in the first column of a table; … stands for a part that differs
texts=0
if [ -e driver/volume/params.c ]; then
    # Literals that continue in the next line are one; a format specifier is a part that differs.
    literals=$(find common proto driver cache -name '*.c' -print0 | xargs -0 sed -z 's/"[[:space:]]*G_GU\?INT64_FORMAT[[:space:]]*"/%u/g; s/"[[:space:]]*\n[[:space:]]*"//g' | tr '\0' '\n' | sed 's/\\"/"/g')
    while IFS= read -r text; do
        case $text in kubectl* | '') continue ;; esac
        texts=$((texts + 1))
        while IFS= read -r part; do
            [ -z "${part// /}" ] || grep -qF -- "$part" <<<"$literals" || fault "docs/troubleshooting.md: no program says \"$part\""
        done < <(sed 's/…/\n/g' <<<"$text")
    done < <(awk '/^\| `/ { split($0, cell, " \\| "); n = split(cell[1], part, "`"); for (i = 2; i <= n; i += 2) print part[i] }' docs/troubleshooting.md)
    [ $texts != 0 ] || fault "docs/troubleshooting.md: found no error text"
fi

[ "$failed" = 1 ] || echo "pass layout: documents: $links links and paths, $names names, $flags flags, $texts error texts, the parameters of classes"
exit $failed
