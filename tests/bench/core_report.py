#!/usr/bin/env python3
"""core_report.py DIRECTORY [core_PART...]: the samples of `make bench T=core` there (PART.jsonl) as rows with their
targets, in core.json. Exits 1 when a row misses its target."""
import json
import operator
import os
import statistics
import sys

# part, row, system and state, what it is compared with, the least the ratio may be
AT_LEAST = [
    ("cold", "small files, 16 readers, beside ceph-fuse", "dataset small", "ceph-fuse small", 2.0),
    *[("cold", f"large, {n} readers, beside {other}", f"dataset large_{n}", f"{other} large_{n}", least)
      for n in (1, 4, 8) for other, least in (("ceph-fuse", 1.3), ("libcephfs", 0.85))],
    ("latency", "small files, 16 readers, 5 ms late, beside the older build", "dataset cold", "base cold", 8),
    ("latency", "small files, 16 readers, 5 ms late, beside ceph-fuse", "dataset cold", "ceph-fuse cold", 2.0),
    *[("locks", f"{kind}: lock and unlock, beside ceph-fuse", f"live {kind}", f"ceph-fuse {kind}", 0.8) for kind in ("fcntl", "flock")],
    ("warm", "dataset, page cache dropped, beside the local file system", "dataset dropped", "local dropped", 0.95),
    ("warm", "dataset, page cache warm, beside the local file system", "dataset cached", "local cached", 0.95),
    ("warm", "live, page cache dropped, beside the local file system", "live dropped", "local dropped", 0.85),
]
# The same, and the most.
AT_MOST = [("isolation", f"{kind}: p99 while reads hang, beside before", f"{kind} hung", f"{kind} before", 1.2)
           for kind in ("cold dataset", "warm dataset", "live, cold", "live, warm", "stat", "staging")]
FETCHED = [("one byte of 1 GB: bytes fetched, beside 8 MiB", "one_byte", lambda s: s["value"] / (8 << 20), 1),
           ("parquet: bytes fetched, beside read", "parquet", lambda s: s["value"] / s["read"], 2),
           ("safetensors: bytes fetched, beside read", "safetensors", lambda s: s["value"] / s["read"], 2)]
NAMES_KB = 512 << 10


def load(directory, part):
    raw = {}
    path = os.path.join(directory, f"core_{part}.jsonl")
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                s = json.loads(line)
                raw.setdefault(s["system"] + " " + s["state"], []).append(s)
    return raw


def ratio(raw, what, beside):
    """Of neighbours in time, so that a machine that is busy now and then counts for both."""
    if len(raw[what]) != len(raw[beside]):
        sys.exit(f"{len(raw[what])} samples of {what} and {len(raw[beside])} of {beside}")
    return statistics.median(a["value"] / b["value"] for a, b in zip(raw[what], raw[beside]))


def main():
    directory = sys.argv[1]
    parts = [p[5:] for p in sys.argv[2:] if p.startswith("core_")] or ["isolation", "cold", "latency", "locks", "loop", "warm"]
    samples = {part: load(directory, part) for part in parts}
    rows = []
    for part, raw in samples.items():
        wanted = {w for p, _, *pair, _ in AT_LEAST + AT_MOST if p == part for w in pair if not w.startswith("base ")}
        if not raw or wanted - raw.keys():
            sys.exit(f"core_{part}: no samples of {', '.join(sorted(wanted - raw.keys())) or 'anything'}")

    def add(part, row, value, target, fits):
        rows.append({"row": f"{part}: {row}", "ratio": round(value, 3), "target": target, "pass": fits})

    for compared, fits in ((AT_LEAST, operator.ge), (AT_MOST, operator.le)):
        for part, row, what, beside, target in compared:
            raw = samples.get(part, {})
            if what in raw and beside in raw:
                value = ratio(raw, what, beside)
                add(part, row, value, target, fits(value, target))
    loop = samples.get("loop", {})
    for row, state, of, most in FETCHED:
        if "dataset " + state in loop:
            value = max(of(s) for s in loop["dataset " + state])
            add("loop", row, value, most, value <= most)
    if "dataset loop" in loop:
        # The first epoch finds nothing.
        value = statistics.median(1 - s["value"] / s["read"] for s in loop["dataset loop"] if s["epoch"] > 0)
        add("loop", "epochs over 1.2 times the cache: hit ratio", value, 0.6, value >= 0.6)
    if "hearthd names_kb" in samples.get("warm", {}):
        value = samples["warm"]["hearthd names_kb"][0]["value"] / NAMES_KB
        add("warm", "memory of 200,000 names, beside 512 MiB", value, 1, value <= 1)
    for part, raw in samples.items():
        for key, values in raw.items():
            print("  %-10s %-32s %12.3f" % (part, key, statistics.median(s["value"] for s in values)) +
                  ("   %.2f s of processor a GB" % statistics.median(s["cpuSecondsAGB"] for s in values) if "cpuSecondsAGB" in values[0] else ""))
    for r in rows:
        print("%-4s %6.2f (%s) %s" % ("pass" if r["pass"] else "fail", r["ratio"], r["target"], r["row"]))
    with open(os.path.join(directory, "core.json"), "w") as f:
        json.dump({"rows": rows, "samples": samples}, f, indent=1)
    sys.exit(0 if rows and all(r["pass"] for r in rows) else 1)


main()
