#!/usr/bin/env python3
"""image_report.py DIRECTORY: the samples of tests/bench/image there (image.jsonl) as a table of medians, and
rows with their targets in image.json. Exits 1 when a row misses its target, or was not as warm as it says."""
import json
import os
import statistics
import sys

SYSTEMS = ["local", "local-buffered", "hearth-block", "librbd", "librbd-cache", "rbd-nbd", "local-ext4", "hearth-ext4"]
SIZES = [("4k", "4 KB"), ("128k", "128 KB")]
READS, WRITES = ([(f"{kind}_{size}_{depth}", f"random {kind} {words}, depth {depth}")
                  for size, words in SIZES for depth in (1, 32)] for kind in ("read", "write"))
COLD, WARM = ("sequential_cold", "sequential 1 MB, cold"), ("sequential_warm", "sequential 1 MB, warm")
# What others ask of the OSD meanwhile.
NOISE = 64 << 10


def dropped(job):
    return job[0] + "_dropped", job[1] + ", page cache dropped"


ALL = [job for jobs in (READS + [WARM], [dropped(j) for j in READS + [WARM]], [COLD], WRITES) for job in jobs]
# job, system, what it is compared with, the least the ratio may be; None: for information
BESIDE = [row for reads in (READS, [dropped(j) for j in READS]) for job in reads for row in (
    (job, "hearth-block", "local", 0.9), (job, "hearth-ext4", "local-ext4", 0.9), (job, "hearth-block", "librbd", 5))]
BESIDE += [(job, "hearth-block", "librbd", 0.9) for job in WRITES]
BESIDE += [(job, hearth, local, None) for job in (WARM, dropped(WARM))
           for hearth, local in (("hearth-block", "local"), ("hearth-ext4", "local-ext4"))]
BESIDE += [(COLD, "hearth-block", "librbd", None)]


def load(path):
    raw = {}
    if os.path.exists(path):
        with open(path) as f:
            for line in f:
                s = json.loads(line)
                raw.setdefault((s["state"], s["system"]), []).append(s)
    return raw


def values(raw, state, system):
    return [s["value"] for s in raw.get((state, system), [])]


def show(raw):
    systems = [s for s in SYSTEMS if any(key[1] == s for key in raw)]
    print("%-58s" % "image" + "".join("%15s" % s for s in systems) + "   OSD sent, MB: block, ext4")
    for state, words in ALL:
        if not any(key[0] == state for key in raw):
            continue
        rate = state.startswith("sequential")
        line = "  %-56s" % (words + (", MB/s" if rate else ", IOPS"))
        for system in systems:
            of = values(raw, state, system)
            line += "%15s" % ("%.0f" % (statistics.median(of) / (1e6 if rate else 1)) if of else "")
        sent = [max((s["osdSent"] or 0 for s in raw.get((state, system), [])), default=0)
                for system in ("hearth-block", "hearth-ext4")]
        print(line + ("   %.1f, %.1f" % tuple(n / 1e6 for n in sent) if not state.startswith("write") else ""))


def why_not(state, samples):
    """What the OSD sent tells whether the cache was as the state says."""
    if state.startswith("write"):
        return ""
    for s in samples:
        if state == COLD[0] and s["osdSent"] < 0.9 * s["bytes"]:
            return "not cold: the OSD sent %.1f MB of %.1f" % (s["osdSent"] / 1e6, s["bytes"] / 1e6)
        if state != COLD[0] and s["osdSent"] > max(NOISE, s["bytes"] / 1000):
            return "not warm: the OSD sent %.1f MB of %.1f" % (s["osdSent"] / 1e6, s["bytes"] / 1e6)
    return ""


def main():
    directory = sys.argv[1]
    raw = load(os.path.join(directory, "image.jsonl"))
    rows = []
    for (state, words), what, beside, target in BESIDE:
        if (state, what) not in raw or (state, beside) not in raw:
            continue
        # Of neighbours in time, so that a machine that is busy now and then counts for both.
        ratio = statistics.median(a / b for a, b in zip(values(raw, state, what), values(raw, state, beside)))
        row = {"row": f"{words}, {what} beside {beside}", "ratio": round(ratio, 3), "target": target}
        reason = why_not(state, raw[state, what])
        if reason:
            row["not"] = reason
        if target is not None:
            row["pass"] = ratio >= target and not reason
        rows.append(row)
    show(raw)
    print()
    for r in rows:
        seen = "image: %.2f" % r["ratio"] + (" (at least %s)" % r["target"] if r["target"] else "")
        print("%-4s %-26s %s%s" % ("info" if "pass" not in r else "pass" if r["pass"] else "fail", seen, r["row"],
                                   "; " + r["not"] if "not" in r else ""))
    with open(os.path.join(directory, "image.json"), "w") as f:
        json.dump({"rows": rows, "samples": {f"{system} {state}": s for (state, system), s in raw.items()}}, f, indent=1)
    sys.exit(0 if rows and all(r.get("pass", True) for r in rows) else 1)


main()
