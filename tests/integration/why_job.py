#!/usr/bin/env python3
"""A job for why_test: why_job.py MODE DIR [PAUSE]

  read     reads the files of DIR one after another, again and again, each past the page cache; PAUSE seconds between two
  compute  reads them once, then computes, and reads one now and then
"""
import os
import sys
import time

mode, top, pause = sys.argv[1], sys.argv[2], float(sys.argv[3] if len(sys.argv) > 3 else 0)
os.chdir(top)


def read(name):
    try:
        file = os.open(name, os.O_RDONLY)
        while os.read(file, 1 << 20):
            pass
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
    except OSError:
        time.sleep(0.05)


names = sorted(os.listdir("."))
print("started", flush=True)
while mode == "read":
    for name in names:
        read(name)
        time.sleep(pause)
for name in names:
    read(name)
print("computes", flush=True)
while True:
    until = time.monotonic() + 0.5
    while time.monotonic() < until:
        sum(i * i for i in range(10000))
    read(names[0])
