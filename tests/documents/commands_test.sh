#!/bin/bash
# ./commands finds what it is for, in a tree of its own: commands in all the ways in which documents have them, and each
# fault that is planted.
set -uo pipefail
here=$(realpath "$(dirname "$0")")
export DOCUMENTS_TOP
DOCUMENTS_TOP=$(mktemp -d)
trap 'rm -rf "$DOCUMENTS_TOP"' EXIT
failed=0
cd "$DOCUMENTS_TOP" || exit 1
mkdir -p .ci docs deploy/{man,examples} charts/hearth/templates tests/{integration,e2e,documents}

verdict() { # NAME TRUE-OR-FALSE WHY
    if "$2"; then
        echo "pass layout: $1"
    else
        echo "fail layout: $1: $3"
        failed=1
    fi
}
same() { # NAME GOT WANTED
    if [ "$2" = "$3" ]; then verdict "$1" true; else verdict "$1" false "got \"$2\", wanted \"$3\""; fi
}
tree() { # without a fault
    printf '%s\n' "exec total 'make check' 'make demo'" >.ci/run
    printf 'check: ## x\n\t$(MAKE) --no-print-directory check-unit\ncheck-unit:\ndemo:\nbench:\n' >Makefile
    printf '# Top\n```\nmake demo   # a remark\n```\n## Below\n```sh\nkubectl get a \\\n    -o wide   # 2\nceph x >"a # b"\n```\nText of `kubectl get\na -o`, `make check-unit` and `hearthd is gone`.\n```yaml\nkubectl: no\n```\n' >README.md
    printf '# Docs\n```sh\nkubectl create -f - <<END\na: b\nEND\nhelm test\n```\n```\n$ ceph status\n  health: ok\n```\n' >docs/a.md
    printf '.SH EXAMPLES\n.nf\nhearthctl top \\-\\-sort ceph\n.fi\n.SH SEE\nhearthd (8)\n' >deploy/man/a.1
    printf '# Text, as `kubectl get b`:\n#\n#   kubectl patch b \\\n#       -p c\na: b # kubectl no\n' >deploy/examples/a.yaml
    printf 'See:\n  helm test {{ .Release.Name }}\n{{- if x }}\n  kubectl apply -f - <<END\n  a: {{ x }}\n  END\n{{- end }}\n' >charts/hearth/templates/NOTES.txt
    cat >tests/e2e/a_test.sh <<'END'
# documented is a word of remarks, too
documented_block README.md 'Below'
documented_block docs/a.md "Docs"
check x documented docs/a.md 'ceph status' && documented deploy/man/a.1 'hearthctl top'
command_of deploy/examples/a.yaml 'kubectl patch b' B=c
documented deploy/examples/a.yaml 'kubectl get b' -- -o yaml
documented charts/hearth/templates/NOTES.txt 'kubectl apply'
END
    printf '# What\n## needs x\nhelm test {{ .Release.Name }}\n' >tests/documents/not-run
}
planted() { # NAME WORDS FILE TEXT: a fault that is named so
    local said
    tree
    printf '%b\n' "$4" >>"$3"
    if said=$("$here/commands" check 2>&1); then
        verdict "$1" false "it was not found"
    elif ! grep -qF -- "$2" <<<"$said"; then
        verdict "$1" false "$said"
    else
        verdict "$1" true
    fi
}

tree
same documents_without_a_fault "$("$here/commands" check 2>&1)" "pass layout: documents: 13 commands, 1 of them not run"
same commands_without_prompt_remark_and_answer "$("$here/commands" list | cut -f 1,3 | tr '\t\n' ' |')" \
    'README.md:3 make demo|README.md:7 kubectl get a -o wide|README.md:9 ceph x >"a # b"|README.md:11 kubectl get a -o|README.md:12 make check-unit|docs/a.md:3 kubectl create -f - <<END|a: b|END|docs/a.md:6 helm test|docs/a.md:9 ceph status|deploy/man/a.1:3 hearthctl top --sort ceph|deploy/examples/a.yaml:3 kubectl patch b -p c|deploy/examples/a.yaml:1 kubectl get b|charts/hearth/templates/NOTES.txt:2 helm test {{ .Release.Name }}|charts/hearth/templates/NOTES.txt:4 kubectl apply -f - <<END|a: {{ x }}|END|'
planted command_nobody_runs 'README.md:17: no test runs: kubectl get c' README.md '```sh\nkubectl get c\n```'
planted command_in_a_sentence_that_nobody_runs 'docs/a.md:12: no test runs: kubectl get c' docs/a.md '| x | or `kubectl get c` |'
planted command_in_a_block_is_not_run_by_a_longer_one 'README.md:17: no test runs: kubectl get a' README.md '```sh\nkubectl get a\n```'
planted target_that_is_not_there 'has no target none' README.md 'say `make none`'
planted target_that_ci_does_not_make 'no test runs: make bench' README.md 'say `make bench`'
planted test_of_a_command_that_is_not_there 'a_test.sh: README.md has no command that begins with: ceph y' tests/e2e/a_test.sh "documented README.md 'ceph y'"
planted test_of_a_block_that_is_not_there 'no block 2 of commands below: Below' tests/e2e/a_test.sh "documented_block README.md 'Below' 2"
planted test_whose_command_is_not_clear 'several commands that begin with: kubectl' tests/e2e/a_test.sh "documented deploy/examples/a.yaml 'kubectl'"
planted test_that_cannot_be_read 'a_test.sh:8: give documented' tests/e2e/a_test.sh 'documented README.md "$command"'
planted left_out_but_run 'not-run:4: a test runs it: ceph status' tests/documents/not-run 'ceph status'
planted left_out_but_not_there 'not-run:4: no document has it: ceph none' tests/documents/not-run 'ceph none'

# ---- what the reader replaces
find() { "$here/commands" find "$@" 2>&1; }
tree
printf '`kubectl drain NODE --of MY-NODE` `ceph auth get client.… x` `kubectl patch pv OLD -p "{}"`\n' >>README.md
same words_in_capitals_are_replaced "$(find README.md 'kubectl drain' 'NODE=a&b')" 'kubectl drain a&b --of MY-NODE'
same what_is_left_open_too "$(find README.md 'ceph auth get' client.…=client.a)" 'ceph auth get client.a x'
same but_not_forgotten "$(find README.md 'ceph auth get')" 'what stands for … or {{ }} in: ceph auth get client.… x'
same nothing_else_is "$(find README.md 'kubectl patch' pv=pvc)" 'no document leaves this to its reader: pv=pvc'
same nor_what_is_not_there "$(find README.md 'kubectl patch' POD=x)" 'there is no POD in: kubectl patch pv OLD -p "{}"'
exit $failed
