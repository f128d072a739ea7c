#!/usr/bin/env python3
"""Readers that never stop, and what they have seen.

    resume_readers.py DIR SECONDS [READERS]

Reads the files below DIR in a random order, past the page cache: each has the bytes that its first
reading had. Half of the readers open a file for each reading, a quarter keep theirs open, a quarter
read theirs through mappings. Ends at a signal or after SECONDS. Prints JSON: reads, errors (a list),
wrong, pause_max_ms, pause_p99_ms.
"""
import hashlib
import json
import mmap
import os
import random
import signal
import sys
import threading
import time

directory, seconds = sys.argv[1], float(sys.argv[2])
readers = int(sys.argv[3]) if len(sys.argv) > 3 else 8
known, times, errors, wrong, lock = {}, [], [], [], threading.Lock()
until = time.monotonic() + seconds


def stop(_signal, _frame):
    global until
    until = 0


def paths():
    return [os.path.join(at, name) for at, _, names in os.walk(directory) for name in names]


def read_open(fd):
    data = hashlib.blake2b()
    at = 0
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    while chunk := os.pread(fd, 1 << 20, at):
        data.update(chunk)
        at += len(chunk)
    return data.digest()


def read_mapped(fd):
    size = os.fstat(fd).st_size
    if size == 0:
        return hashlib.blake2b().digest()
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as m:
        return hashlib.blake2b(m).digest()


def run(files, seed):
    chance, kept = random.Random(seed), {}
    while time.monotonic() < until:
        path = chance.choice(files)
        began = time.monotonic()
        try:
            fd = kept.get(path, -1)
            if fd < 0:
                fd = os.open(path, os.O_RDONLY)
            digest = read_mapped(fd) if seed % 4 == 3 else read_open(fd)
            if seed % 2 and len(kept) < 50:
                kept[path] = fd
            elif path not in kept:
                os.close(fd)
        except OSError as e:
            with lock:
                errors.append(f"{path}: {e}")
            continue
        with lock:
            times.append(time.monotonic() - began)
            if known.setdefault(path, digest) != digest:
                wrong.append(path)


signal.signal(signal.SIGTERM, stop)
signal.signal(signal.SIGINT, stop)
files = paths()
threads = [threading.Thread(target=run, args=(files, i)) for i in range(readers)]
for t in threads:
    t.start()
while any(t.is_alive() for t in threads):
    time.sleep(0.05)
times.sort()
print(json.dumps({
    "files": len(files), "reads": len(times), "errors": errors[:20], "wrong": len(wrong),
    "pause_max_ms": round(times[-1] * 1000) if times else 0,
    "pause_p99_ms": round(times[int(len(times) * 0.99)] * 1000) if times else 0}))
sys.exit(1 if errors or wrong or not times else 0)
