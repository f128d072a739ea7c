#!/usr/bin/env python3
"""dataset_report.py DIRECTORY [dataset_PART...]: the samples of `make bench` there (PART.jsonl) as a table
of medians, and rows with their targets in report.json. Exits 1 when a row misses its target."""
import json
import os
import statistics
import sys

FILL_THREADS = 4  # of hearthd in dataset_memory

# part, row, system and state, what it is compared with, target; ratios are to be at least that
BESIDE = [
    ("small", "page cache dropped, beside the local file system", "dataset dropped", "local dropped", 0.95),
    ("small", "page cache warm, beside the local file system", "dataset cached", "local cached", 0.95),
    ("small", "page cache dropped, beside ceph-fuse", "dataset dropped", "ceph-fuse dropped", 8),
    ("small", "page cache warm, beside ceph-fuse", "dataset cached", "ceph-fuse cached", 8),
    ("small", "cold epoch, beside ceph-fuse", "dataset cold", "ceph-fuse cold", 1.5),
    ("large", "cold, beside a plain libcephfs reader", "dataset cold_large", "libcephfs cold_large", 0.9),
    ("large", "sequential 1 MB, beside the local file system", "dataset sequential", "local sequential", 0.95),
    ("large", "random 128 KB, beside the local file system", "dataset random_128k", "local random_128k", 0.95),
    ("large", "random 4 KB, beside the local file system", "dataset random_4k", "local random_4k", 0.95),
    ("names", "find, beside the local file system", "dataset find", "local find", 1),
]
# part, row, value, the most it may be, unit
LIMITS = [
    ("names", "requests of the MDS during find", "dataset find_requests", 0, ""),
    ("memory", "start with all objects in the store", "hearthd start_ms", 5000, "ms"),
    ("memory", "resident, idle", "hearthd idle_kb", 64 << 10, "kB"),
    ("memory", "resident, filling", "hearthd filling_kb", (64 + 16 * FILL_THREADS) << 10, "kB"),
]


def load(directory, part):
    raw = {}
    path = os.path.join(directory, part + ".jsonl")
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                s = json.loads(line)
                raw.setdefault(s["system"] + " " + s["state"], []).append(round(s["value"], 1))
    return raw


def show(part, raw):
    systems = sorted({k.split()[0] for k in raw}, key=["dataset", "local", "live", "ceph-fuse", "libcephfs", "hearthd"].index)
    states = list(dict.fromkeys(k.split()[1] for k in raw))
    print("%-24s" % part + "".join("%12s" % s for s in systems))
    for state in states:
        values = [raw.get(f"{s} {state}") for s in systems]
        print("  %-22s" % state + "".join("%12s" % ("" if v is None else "%.0f" % statistics.median(v)) for v in values))


def half_row(raw):
    """Half of the files at the cold rate, half at the warm one."""
    cold, warm, half = (statistics.median(raw["dataset " + s]) for s in ("cold", "dropped", "half"))
    return {"row": "small: half evicted, beside what cold and warm make in proportion",
            "ratio": round(half / (2 / (1 / cold + 1 / warm)), 3), "target": 0.8}


def main():
    directory = sys.argv[1]
    parts = [p[8:] for p in sys.argv[2:] if p.startswith("dataset_")] or ["small", "large", "names", "memory"]
    samples = {part: load(directory, part) for part in parts}
    rows = []
    for part, row, what, beside, target in BESIDE:
        raw = samples.get(part, {})
        if what in raw and beside in raw:
            # Of neighbours in time, so that a machine that is busy now and then counts for both.
            ratio = statistics.median(a / b for a, b in zip(raw[what], raw[beside]))
            rows.append({"row": f"{part}: {row}", "ratio": round(ratio, 3), "target": target})
    if "dataset half" in samples.get("small", {}):
        rows.append(half_row(samples["small"]))
    for row in rows:
        row["pass"] = row["ratio"] >= row["target"]
    for part, row, what, most, unit in LIMITS:
        if what in samples.get(part, {}):
            value = max(samples[part][what])
            rows.append({"row": f"{part}: {row}", "value": value, "atMost": most, "unit": unit,
                         "ratio": round(value / most, 3) if most else value, "target": 1 if most else 0,
                         "pass": value <= most})
    for part, raw in samples.items():
        if raw:
            show(part, raw)
    print()
    for r in rows:
        seen = "%.2f (at least %s)" % (r["ratio"], r["target"]) if "atMost" not in r else \
            "%.0f (at most %d %s)" % (r["value"], r["atMost"], r["unit"])
        print("%-4s %-36s %s" % ("pass" if r["pass"] else "fail", r["row"].split(":")[0] + ": " + seen, r["row"].split(": ")[1]))
    with open(os.path.join(directory, "report.json"), "w") as f:
        json.dump({"rows": rows, "samples": samples}, f, indent=1)
    sys.exit(0 if rows and all(r["pass"] for r in rows) else 1)


main()
