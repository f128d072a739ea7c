#!/usr/bin/env python3
"""The layout of the tree: which folder uses which, which file uses which, and how many sources the folders have.

   graph.py [TOP] [OBJECTS]      OBJECTS: where TOP's sources were compiled to, build/obj by default

A file uses another when it includes it, or when its object needs a symbol that the other's object defines. Fails on
  - a folder that uses a folder below it in FOLDERS, or that is not in FOLDERS
  - a circle of files (a .c and its .h are two files, so a table of functions and its users are none)
  - a folder with more than SOURCES_MAX sources
  - an extern name that two files define
  - a folder at the top that .dockerignore keeps from the image's build
Prints one "fail layout: ..." for each, or a line that begins with "pass layout: "; exits 1 on any. Without objects it
says "skip layout: ..." and looks at the includes alone.
"""
import collections
import os
import re
import subprocess
import sys
from faults import report

SOURCES_MAX = 15
# A folder may use only folders that stand above it in this list.
FOLDERS = """
common common/http common/metrics proto
cache/origin cache/origin/reconnect cache/origin/dir cache/origin/cephfs/client cache/origin/cephfs cache/origin/rbd
cache/store/disk cache/store/index cache/store/objects cache/store/fill cache/store
cache/manifest cache/block cache/fuse cache/fuse/layer cache/fuse/locks cache/fuse/live
cache/dataset cache/volume cache/warm cache/report cache/control
driver/volume driver/cluster driver/kube driver/kube/watch driver/kube/lease driver/rpc
driver/backend driver/backend/ceph driver/backend/cephfs driver/backend/rbd driver/provision
driver/node/mount driver/node/hearthd driver/node/served driver/node/image driver/node/dataset driver/node
driver/warmth driver/affinity driver/warmup driver/service driver/service/node driver/service/controller
cmd/hearth-keeper cmd/hearthd cmd/hearth-csi cmd/hearthctl/client cmd/hearthctl/report cmd/hearthctl/view cmd/hearthctl/bench cmd/hearthctl/doctor cmd/hearthctl/why cmd/hearthctl
""".split()

top = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", ".."))
objects = os.path.join(top, sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.environ.get("HEARTH_BUILD", "build"), "obj"))
os.chdir(top)
faults = []


def sources():
    for part in sorted({folder.split("/")[0] for folder in FOLDERS}):
        for at, _, names in os.walk(part):
            yield from (os.path.join(at, name) for name in sorted(names) if name.endswith((".c", ".h")))


def includes(files):
    for file in files:
        with open(file, encoding="utf-8") as text:
            for target in re.findall(r'^\s*#\s*include\s*"([^"]+)"', text.read(), re.M):
                beside = os.path.normpath(os.path.join(os.path.dirname(file), target))
                found = beside if beside in files else target
                if found in files:
                    yield file, found, "includes it"


def symbols(files):
    defined, needed = collections.defaultdict(list), collections.defaultdict(list)
    built = [file for file in sorted(files) if file.endswith(".c") and os.path.exists(os.path.join(objects, file[:-2] + ".o"))]
    for file in built:
        listing = subprocess.run(["nm", "-P", os.path.join(objects, file[:-2] + ".o")], text=True, check=True, stdout=subprocess.PIPE).stdout
        for name, kind in (line.split()[:2] for line in listing.splitlines()):
            if kind in "TDBRC":
                defined[name].append(file)
            elif kind == "U":
                needed[name].append(file)
    for name, files_of in defined.items():
        if len(files_of) > 1 and name != "main":
            faults.append(f"{name} is defined by {' and '.join(files_of)}")
        for user in needed[name]:
            yield user, files_of[0], f"calls {name}"
    if len(built) < sum(file.endswith(".c") for file in files):
        print(f"skip layout: symbols of files that are not compiled to {objects}")


def circles(uses):
    """Strongly connected parts with more than one member (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(at):
        index[at] = low[at] = len(index)
        stack.append(at)
        for to in sorted(uses.get(at, ())):
            if to not in index:
                visit(to)
                low[at] = min(low[at], low[to])
            elif to in stack:
                low[at] = min(low[at], index[to])
        if low[at] == index[at]:
            part = []
            while not part or part[-1] != at:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    for at in sorted(uses):
        if at not in index:
            visit(at)
    return found


sys.setrecursionlimit(10000)
files = set(sources())
uses, reasons = collections.defaultdict(set), {}
for user, used, why in [*includes(files), *symbols(files)]:
    if user != used:
        uses[user].add(used)
        reasons.setdefault((user, used), why)

for folder in sorted({os.path.dirname(file) for file in files} - set(FOLDERS)):
    faults.append(f"the folder {folder} has no place in FOLDERS of tests/layout/graph.py")
for (user, used), why in sorted(reasons.items()):
    mine, theirs = os.path.dirname(user), os.path.dirname(used)
    if mine in FOLDERS and theirs in FOLDERS and FOLDERS.index(theirs) > FOLDERS.index(mine):
        use = f"includes {used}" if why == "includes it" else f"{why} of {used}"
        faults.append(f"{user} {use}: {theirs}/ stands below {mine}/ in FOLDERS")
for part in circles(uses):
    arrows = [f"{a} -> {b} ({reasons[a, b]})" for a in part for b in sorted(uses[a]) if b in part]
    faults.append(f"{len(part)} files are a circle: {'; '.join(arrows)}")
crowded = collections.Counter(os.path.dirname(file) for file in files if file.endswith(".c"))
for folder, count in sorted(crowded.items()):
    if count > SOURCES_MAX:
        faults.append(f"{folder}/ has {count} sources, more than {SOURCES_MAX}")
if os.path.exists(".dockerignore"):
    with open(".dockerignore", encoding="utf-8") as text:
        copied = text.read().splitlines()
    for folder in sorted({file.split("/")[0] for file in files}):
        if f"!{folder}" not in copied:
            faults.append(f"the image is built without {folder}/, which .dockerignore does not name")

report(faults, f"{len(files)} files in {len(crowded)} folders: none uses one below it, no circle, no name twice")
