"""Samples of tests/bench/csi as a table and JSON. Rounds are told apart by `start` going back."""
import json, statistics, sys

rounds = {}  # (type, in flight, side) -> [[(start, create ms, remove ms)]]
open_pairs, last = {}, {}
for line in open(sys.argv[1]):
    s = json.loads(line)
    key = (s["type"], s["inFlight"], s["side"])
    if s["side"] == "csi":
        if s["code"] != "OK":
            sys.exit(f"bench-csi: {s['method']} of {s['id']}: {s['code']}: {s['message']}")
        if s["method"].endswith("CreateVolume"):
            open_pairs[s["id"]] = s
            continue
        create = open_pairs.pop(s["id"])
        pair, batch = (create["start"], create["ms"], s["ms"]), s["id"].rsplit("-", 1)[0]
    else:
        pair, batch = (s["start"], s["create"], s["remove"]), None
        # A new round begins where the one of the driver before it has ended.
        batch = len(rounds.get((s["type"], s["inFlight"], "csi"), []))
    if last.get(key) != batch:
        rounds.setdefault(key, []).append([])
        last[key] = batch
    rounds[key][-1].append(pair)


def summary(batches):
    pairs = [p for b in batches for p in b]
    took = [max(s + (c + r) / 1e3 for s, c, r in b) - min(s for s, _, _ in b) for b in batches]
    return {
        "create_p50_ms": round(statistics.median(c for _, c, _ in pairs), 3),
        "delete_p50_ms": round(statistics.median(r for _, _, r in pairs), 3),
        "pair_p50_ms": round(statistics.median(c + r for _, c, r in pairs), 3),
        # Of a round; the median of rounds, so that a pause of Ceph in one does not count.
        "calls_per_second": round(statistics.median(2 * len(b) / t for b, t in zip(batches, took)), 1),
        "samples": len(pairs),
    }


results, worst = [], 0
print(f"{'TYPE':<8}{'IN FLIGHT':>9}   {'CREATE+DELETE p50, ms':>30}   {'CALLS/S':>24}")
print(f"{'':<8}{'':>9}   {'bare':>10}{'driver':>10}{'adds':>10}   {'bare':>8}{'driver':>8}{'less':>8}")
for (type_, n, side) in rounds:
    if side != "csi":
        continue
    csi, bare = summary(rounds[type_, n, "csi"]), summary(rounds[type_, n, "bare"])
    added = 100 * (csi["pair_p50_ms"] / bare["pair_p50_ms"] - 1)
    less = 100 * (bare["calls_per_second"] / csi["calls_per_second"] - 1)
    results.append({"type": type_, "in_flight": n, "bare": bare, "csi": csi,
                    "p50_overhead_percent": round(added, 1), "rate_overhead_percent": round(less, 1)})
    print(f"{type_:<8}{n:>9}   {bare['pair_p50_ms']:>10.1f}{csi['pair_p50_ms']:>10.1f}{added:>9.1f}%"
          f"   {bare['calls_per_second']:>8.0f}{csi['calls_per_second']:>8.0f}{less:>7.1f}%")
times = {}  # type -> call -> [ms]
for line in open(sys.argv[2]):
    t = json.loads(line)
    times.setdefault(t["type"], {}).setdefault(t["call"], []).append(t["ms"])
breakdown = {}
for type_, of in times.items():
    pairs = len(of["driver"]) / 2
    whole = sum(of.pop("driver")) / pairs
    parts = {call: round(sum(ms) / pairs, 2) for call, ms in of.items()}
    breakdown[type_] = {"pair_ms": round(whole, 2), "ceph_ms": parts,
                        "driver_ms": round(whole - sum(parts.values()), 2)}
    print(f"\n{type_}: a pair takes {whole:.1f} ms, of which the driver itself "
          f"{breakdown[type_]['driver_ms']:.1f} and Ceph, by call:")
    for call, ms in sorted(parts.items(), key=lambda p: -p[1]):
        print(f"  {ms:>8.2f}  {call}")

memory, calls = [], 0
for line in open(sys.argv[3]):
    n, kib = map(int, line.split())
    calls += n
    memory.append((calls, kib))
baseline, (calls, end) = int(sys.argv[4]), memory[-1]
half = min(memory, key=lambda m: abs(m[0] - calls / 2))[1]
beyond, growth = (end - baseline) / 1024, (end - half) / 1024
print(f"\nRESIDENT after {calls} calls: {end / 1024:.1f} MiB, {beyond:.1f} beyond a process that uses Ceph's libraries likewise"
      f" ({baseline / 1024:.1f}); since half of them {growth:+.1f}")
for r in results:
    if max(r["p50_overhead_percent"], r["rate_overhead_percent"]) >= 10:
        print(f"over 10%: {r['type']} at {r['in_flight']} in flight")
failed = []
if beyond >= 20:
    failed.append(f"{beyond:.1f} MiB beyond Ceph's libraries, more than 20")
if growth > 1:
    failed.append(f"memory grows: {growth:.1f} MiB in the second half of the calls")
json.dump({"volumes": results, "breakdown": breakdown, "memory": {"calls": calls, "resident_kib": memory, "baseline_kib": baseline,
                                          "beyond_mib": round(beyond, 1), "growth_mib": round(growth, 2)},
           "failed": failed}, open(sys.argv[5], "w"), indent=2)
for reason in failed:
    print(f"fail bench-csi: {reason}")
sys.exit(bool(failed))
