#!/usr/bin/env python3
"""docs/metrics.md has each metric of the programs with its type and help, as /metrics gives them, and no other.

   metrics.py [write]

The families are read from the sources that produce them: a name, and the help behind it. "write" writes the tables again.
Prints one "fail layout: ..." for each difference, or "pass layout: ..."; exits 1 on any.
"""
import os
import re
import sys
from faults import report

os.chdir(os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
PAGE = "docs/metrics.md"
PROGRAMS = {"hearthd": ["cache/report/metrics.c", "cache/report/uses.c"], "hearth-csi": ["driver/service/metrics.c"]}
ENDS = {"COUNTER": "_total", "INFO": "_info"}
LITERAL = r'"(?:[^"\\]|\\.)*"'


def families(files):
    rows = {}
    for path in files:
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for found in re.finditer(rf'"(hearthd?_[a-z0-9_]+)",\s*((?:{LITERAL}\s*)+)', text):
            kind = re.search(r"OPENMETRICS_([A-Z]+),\s*$", text[: found.start()])
            kind = kind.group(1) if kind else "GAUGE"
            words = "".join(part[1:-1] for part in re.findall(LITERAL, found.group(2)))
            rows[found.group(1) + ENDS.get(kind, "")] = f"| `{found.group(1)}{ENDS.get(kind, '')}` | {kind.lower()} | {words} |"
        lone = set(re.findall(r'"(hearthd?_[a-z0-9_]+)"', text)) - {name.removesuffix("_total").removesuffix("_info") for name in rows}
        for name in lone:
            rows[name] = f"{path} names {name} without a help behind it; metrics.py cannot read it"
    return rows


def section(text, program):
    """What stands below the program's heading: its start, and the start of the next one."""
    start = text.index(f"\n## {program}\n") + 1
    following = text.find("\n## ", start)
    return start, following if following > 0 else len(text)


with open(PAGE, encoding="utf-8") as file:
    page = file.read()
faults, count = [], 0
for program, files in PROGRAMS.items():
    rows = families(files)
    count += len(rows)
    start, end = section(page, program)
    if sys.argv[1:] == ["write"]:
        kept = [line for line in page[start:end].splitlines() if not line.startswith("|")]
        table = ["| metric | type | meaning |", "|---|---|---|"] + [rows[name] for name in sorted(rows)]
        page = page[:start] + "\n".join(kept).rstrip() + "\n\n" + "\n".join(table) + "\n" + page[end:]
        continue
    there = {line for line in page[start:end].splitlines() if line.startswith("| `")}
    faults += [f"{PAGE} lacks below {program}: {row}" for row in sorted(set(rows.values()) - there)]
    faults += [f"{PAGE} has below {program}, and the program does not: {row}" for row in sorted(there - set(rows.values()))]
if sys.argv[1:] == ["write"]:
    with open(PAGE, "w", encoding="utf-8") as file:
        file.write(page)
else:
    report(faults, f"documents: {count} metrics are as the programs give them")
