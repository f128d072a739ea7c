#!/usr/bin/env python3
"""Each property that values.schema.json has for a class of the chart is used in the template of that class.

   classes.py [TOP]

charts/hearth/templates/classes.yaml has the names of parameters in lists. Helm accepts a parameter that is in the schema and not
in the list, and the class is created without it. Prints one "fail layout: ..." for each such property, or "pass layout: ...";
exits 1 on any.
"""
import json
import os
import re
import sys
from faults import report

os.chdir(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.realpath(__file__)), "..", ".."))
CHART = "charts/hearth"
faults, checked = [], 0

with open(f"{CHART}/values.schema.json", encoding="utf-8") as file:
    values = json.load(file)["properties"]
with open(f"{CHART}/templates/classes.yaml", encoding="utf-8") as file:
    # One part for each kind of class: it begins with "range $class := ... .Values.KIND".
    parts = re.split(r"(?=\{\{-? range \$class :=)", file.read())
templates = {kind.group(1): part for part in parts if (kind := re.match(r"[^}]*\.Values\.(\w+)", part))}

for kind in sorted(kind for kind in values if kind.endswith("Classes")):
    names = values[kind]["items"]["properties"]
    template = templates.get(kind, "")
    listed = {name for names_of in re.findall(r"range \$name := list ([^}]*)", template) for name in re.findall(r'"(\w+)"', names_of)}
    used = listed | set(re.findall(r"\$class\.(\w+)", template))
    checked += len(names)
    faults += [f"{CHART}/templates/classes.yaml does not use {name} of {kind}, which is in values.schema.json" for name in names if name not in used]
if not checked:
    faults.append(f"{CHART}/values.schema.json has no classes")

report(faults, f"the template of classes uses all {checked} properties of the schema")
