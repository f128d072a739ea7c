#!/usr/bin/env python3
"""read_log.py HOW PATH: reads the first bytes of PATH over and over through one descriptor and prints each
time "BEGAN BYTES" (CLOCK_MONOTONIC, seconds), until it is killed. HOW: read, drop (the page cache is dropped
before each read) or map."""
import mmap, os, sys, time

how, path = sys.argv[1:]
fd = os.open(path, os.O_RDONLY)
view = mmap.mmap(fd, 4, prot=mmap.PROT_READ) if how == "map" else None
while True:
    began = time.monotonic()
    if how == "drop":
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    try:
        found = view[:4] if view else os.pread(fd, 4, 0)
    except OSError as e:
        found = os.strerror(e.errno).replace(" ", "-").encode()
    print("%.3f %s" % (began, found.decode()), flush=True)
    time.sleep(0.05)
