"""One run of csi-sanity: report.py TYPE JUNIT.XML STATUS WHAT-IT-LEFT. Exits 1 when something failed."""
import sys, xml.etree.ElementTree as tree

type_, junit, status, left = sys.argv[1:5]
passed = failed = skipped = 0
CAP_SYS_RESOURCE = 24
caps = next(line for line in open("/proc/self/status") if line.startswith("CapEff:"))
may_resize = int(caps.split()[1], 16) >> CAP_SYS_RESOURCE & 1
reasons = {}


def fail(what):
    global failed
    failed += 1
    print(f"fail conformance: {type_}: {what}")


try:
    cases = list(tree.parse(junit).getroot().iter("testcase"))
except (OSError, tree.ParseError) as e:
    cases = []
    fail(f"csi-sanity left no report (status {status}): {e}")
for case in cases:
    name = case.get("name").removeprefix("[It] ")
    skip, fault = case.find("skipped"), case.find("failure")
    fault = case.find("error") if fault is None else fault
    if name.startswith("["):  # set-up and tear-down
        if fault is not None:
            fail(f"{name}: {fault.get('message')}")
    elif skip is not None:
        skipped += 1
        why = (skip.get("message") or "").removeprefix("skipped - ") or "pending in csi-sanity"
        reasons.setdefault(why, []).append(name)
    elif fault is not None:
        message = (fault.get("message") or "")[:600]
        if "needs CAP_SYS_RESOURCE" in message and not may_resize:
            skipped += 1
            reasons.setdefault("the kernel grows a mounted ext4 only with CAP_SYS_RESOURCE, which root "
                               "does not have on this machine", []).append(name)
        else:
            fail(f"{name}: {message}")
    else:
        passed += 1
for why, names in reasons.items():
    for name in names:
        print(f"skip conformance: {type_}: {name}: {why}")
if status not in ("0", "1") and not failed:
    fail(f"csi-sanity ended with status {status}")
if left.strip():
    fail(f"it leaves: {left.split()}")
print(f"     conformance: {type_}: {passed} passed, {failed} failed, {skipped} skipped")
sys.exit(failed != 0)
