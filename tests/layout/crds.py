#!/usr/bin/env python3
"""Each field of the chart's CustomResourceDefinitions has a description, so that `kubectl explain` says what it is.

   crds.py [TOP]

Prints one "fail layout: ..." for each field without one, or a line that begins with "pass layout: "; exits 1 on any.
"""
import glob
import os
import re
import sys

from faults import report

try:
    import yaml
except ImportError:
    print("skip layout: descriptions of fields: there is no python3-yaml")
    sys.exit(0)

top = os.path.realpath(sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", ".."))
faults, fields = [], 0


def visit(schema, path):
    global fields
    fields += 1
    if not schema.get("description", "").strip():
        faults.append(f"{path} has no description")
    for part in (schema, schema.get("items", {})):
        for name, inner in part.get("properties", {}).items():
            visit(inner, f"{path}.{name}")


files = sorted(glob.glob(os.path.join(top, "charts/hearth/templates/crds/*.yaml")))
for file in files:
    with open(file, encoding="utf-8") as text:
        crd = yaml.safe_load(re.sub(r"{{.*?}}", "{}", "".join(line for line in text if not line.startswith("{{"))))
    for version in crd["spec"]["versions"]:
        visit(version["schema"]["openAPIV3Schema"], crd["spec"]["names"]["singular"])
report(faults, f"{fields} fields of {len(files)} kinds have descriptions")
