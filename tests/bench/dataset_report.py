#!/usr/bin/env python3
"""dataset_report.py SAMPLES REPORT FILES SIZE: medians as a table; rows with their targets as JSON."""
import json
import statistics
import sys

TARGETS = [  # row, state, compared with, target
    ("small files, page cache dropped, beside the local file system", "dropped", "local", 0.95),
    ("small files, page cache warm, beside the local file system", "cached", "local", 0.95),
    ("small files, page cache dropped, beside ceph-fuse", "dropped", "ceph-fuse", 8),
    ("small files, cold, beside ceph-fuse", "cold", "ceph-fuse", 1.5),
]


def main():
    samples_path, report_path, files, size = sys.argv[1:]
    with open(samples_path) as f:
        samples = [json.loads(line) for line in f]
    raw = {}
    for s in samples:
        raw.setdefault(s["state"], {}).setdefault(s["system"], []).append(round(s["files_per_s"], 1))
    median = {t: {s: statistics.median(v) for s, v in systems.items()} for t, systems in raw.items()}
    systems = ["dataset", "local", "live", "ceph-fuse"]
    print("%s files of %s bytes, random order, 4 threads; files/s, median" % (files, size))
    print("%-10s" % "" + "".join("%12s" % s for s in systems))
    for state in ("dropped", "cached", "cold"):
        values = [median[state].get(s) for s in systems]
        print("%-10s" % state + "".join("%12s" % ("-" if v is None else "%.0f" % v) for v in values))
    rows = []
    for row, state, beside, target in TARGETS:
        # Of neighbours in time, so that a machine that is busy now and then counts for both.
        ratio = statistics.median(a / b for a, b in zip(raw[state]["dataset"], raw[state][beside]))
        rows.append({"row": row, "ratio": round(ratio, 3), "target": target, "pass": ratio >= target})
        print("%-4s %.2f (at least %s) %s" % ("pass" if ratio >= target else "fail", ratio, target, row))
    with open(report_path, "w") as f:
        json.dump({"rows": rows, "files": int(files), "bytes": int(size), "filesPerSecond": raw}, f, indent=1)
    sys.exit(0 if all(r["pass"] for r in rows) else 1)


main()
