#!/usr/bin/env python3
"""The matrix in docs/design/promises.md and the table in SECURITY.md: no cell is empty, and each test that one names exists.

   matrix.py [TOP]

A cell of the matrix has names of tests, in backticks, and marks: -x, ?x or !x, where x is a letter whose reason is in the list
below the table. A test is `name` (tests/integration), `e2e/name`, `unit/folder/name`, `fuzz/name`, `layout/name` or
`make target`. Every promise has a column, every fault a row. Each letter has an explanation, and each explanation is used.
"""
import glob
import os
import re
import sys
from faults import report

TOP = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", "..")
MARK = re.compile(r"(?<![\w`])([-?!])([a-z])(?![\w`])")
NAME = re.compile(r"`([^`]+)`(?: \(`([a-z0-9_]+)`\))?")  # of a test, and of a case in it
faults = []


def text_of(path):
    try:
        with open(os.path.join(TOP, path), encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        faults.append(f"{path} is not there")
        return ""


def files_of(name):
    make = re.fullmatch(r"make ([a-z0-9-]+)( .*)?", name)
    if make:
        return ["Makefile"] if re.search(rf"^{make.group(1)}:", text_of("Makefile"), re.M) else []
    kind, _, rest = name.rpartition("/")
    first, _, folders = kind.partition("/")
    places = {
        "": f"tests/integration/{rest}_test.sh",
        "e2e": f"tests/e2e/{rest}_test.sh",
        "fuzz": f"tests/fuzz/{rest}_fuzz.c",
        "layout": f"tests/layout/{rest}.sh",
        "unit": f"tests/unit/**/{folders}/{rest}_test.c",
    }
    if first not in places or (folders and first != "unit"):
        return []
    return [os.path.relpath(path, TOP) for path in glob.glob(os.path.join(TOP, places[first]), recursive=True)]


def rows(lines):
    """For each table its header's cells and [(LINE NUMBER, cells)]."""
    tables, inside = [], False
    for number, line in lines:
        if not line.startswith("|"):
            inside = False
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not inside:
            tables.append((cells, []))
        elif not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            tables[-1][1].append((number, cells))
        inside = True
    return tables


def check_names(where, cell):
    found = NAME.findall(cell)
    for name, case in found:
        files = files_of(name)
        if not files:
            faults.append(f"{where}: there is no test {name}")
        elif case and not any(re.search(rf"\b{case}\b", text_of(file)) for file in files):
            faults.append(f"{where}: {name} has no case {case}")
    return len(found)


def matrix():
    path = "docs/design/promises.md"
    lines = list(enumerate(text_of(path).splitlines(), 1))
    tables = rows(lines)
    promises = [cells[0].split()[0] for _, cells in tables[0][1]] if tables else []
    explained = [(m.group(1), number) for number, line in lines if (m := re.match(r"- \*\*([a-z])\*\* ", line))]
    reasons = dict(explained)
    for letter, number in explained:
        if reasons[letter] != number:
            faults.append(f"{path}:{number}: the reason {letter} is there twice")
    used, columns, named = set(), [], 0
    if not promises:
        faults.append(f"{path}: it has no table of promises")
    else:
        for number, cells in tables[0][1]:
            named += check_names(f"{path}:{number}", cells[-1])
    names_of_faults = None
    for head, body in tables[1:]:
        columns += head[1:]
        if names_of_faults is None:
            names_of_faults = [cells[0] for _, cells in body]
        elif names_of_faults != [cells[0] for _, cells in body]:
            faults.append(f"{path}: the tables do not have the same faults in the same order")
        for number, cells in body:
            where = f"{path}:{number}"
            if len(cells) != len(head):
                faults.append(f"{where}: {len(cells)} cells below {len(head)} heads")
            for title, cell in zip(head[1:], cells[1:]):
                marks = MARK.findall(cell)
                named += check_names(where, cell)
                if not marks and not NAME.search(cell):
                    faults.append(f"{where}: promise {title} x {cells[0]} says nothing")
                for _, letter in marks:
                    used.add(letter)
                    if letter not in reasons:
                        faults.append(f"{where}: there is no reason {letter}")
    if columns != promises:
        faults.append(f"{path}: promises {' '.join(promises)} have columns {' '.join(columns)}")
    for letter in sorted(set(reasons) - used):
        faults.append(f"{path}:{reasons[letter]}: no cell has the reason {letter}")
    return len(columns), len(names_of_faults or []), named


def threats():
    path = "SECURITY.md"
    named = 0
    for head, body in rows(list(enumerate(text_of(path).splitlines(), 1))):
        if head[-1] != "shown by":
            continue
        for number, cells in body:
            named += check_names(f"{path}:{number}", cells[-1])
            if not NAME.search(cells[-1]) and "not tested" not in cells[-1]:
                faults.append(f"{path}:{number}: nothing shows it; say \"not tested\" and why")
    if not named:
        faults.append(f"{path}: names no test")
    return named


columns, lines_of_faults, named = matrix()
threatened = threats()
report(faults, f"{columns} promises x {lines_of_faults} faults name {named} tests, the threat model {threatened}")
