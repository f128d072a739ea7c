"""How a check in Python ends: a line for each fault, or one line that says what holds."""
import sys


def report(faults, holds):
    """Prints "fail layout: ..." for each fault, or "pass layout: ..."; exits 1 on any."""
    for fault in faults:
        print(f"fail layout: {fault}")
    if not faults:
        print(f"pass layout: {holds}")
    sys.exit(bool(faults))
