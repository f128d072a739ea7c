#!/usr/bin/env python3
"""latencies.py read|stat DIR LIST FIRST COUNT: opens and reads, or stats, COUNT files of a list of demo-read,
one after the other from number FIRST on. Prints the milliseconds that the slowest but one percent took."""
import os
import sys
import time

what, directory, listing, first, count = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
with open(listing) as f:
    entries = [line.rstrip("\n").split(" ", 2) for line in f][first:first + count]


def read(path, size):
    fd = os.open(path, os.O_RDONLY)
    got = len(os.read(fd, 1 << 20))
    os.close(fd)
    if got != size:
        sys.exit(f"{path} gave {got} bytes of {size}")


took = []
for _, size, name in entries:
    path = os.path.join(directory, name)
    begun = time.monotonic()
    if what == "read":
        read(path, int(size))
    else:
        os.stat(path)
    took.append((time.monotonic() - begun) * 1000)
took.sort()
print(round(took[int(len(took) * 0.99) - 1], 3))
