#!/usr/bin/env python3
"""pieces.py write|read|bytes KIND FILE: the pieces of a file of 10 GB that a reader of that kind asks for.

parquet: the length at the end, the footer before it, then 3 of 40 columns of 12 of its 80 row groups.
safetensors: the length of the header, the header, then 40 tensors of every kind of size."""
import os
import random
import sys

SIZE = 10 << 30


def parquet():
    group = SIZE // 80
    column = group // 40
    pieces = [(SIZE - 8, 8), (SIZE - 8 - (256 << 10), 256 << 10)]
    for g in range(3, 80, 7):
        pieces += [(g * group + c * column, column) for c in (2, 17, 31)]
    return pieces


def safetensors():
    rng = random.Random(3)
    sizes = [rng.choice((8 << 10, 2 << 20, 16 << 20)) for _ in range(40)]
    step = (SIZE - (1 << 20)) // len(sizes)
    return [(0, 8), (8, 512 << 10)] + [((1 << 20) + i * step, n) for i, n in enumerate(sizes)]


what, kind = sys.argv[1:3]
pieces = {"parquet": parquet, "safetensors": safetensors}[kind]()
if what == "bytes":
    print(sum(n for _, n in pieces))
    sys.exit()
fd = os.open(sys.argv[3], os.O_WRONLY if what == "write" else os.O_RDONLY)
for at, n in pieces:
    text = random.Random(at).randbytes(n)
    if what == "write":
        os.pwrite(fd, text, at)
        continue
    got = b""
    while len(got) < n:
        part = os.pread(fd, n - len(got), at + len(got))
        if not part:
            sys.exit(f"{n} bytes at {at}: only {len(got)}")
        got += part
    if got != text:
        sys.exit(f"{n} bytes at {at}: other bytes than were written")
