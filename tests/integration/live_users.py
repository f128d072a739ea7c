#!/usr/bin/env python3
"""Users of a live volume that never stop, and what they have seen.

    live_users.py DIR SECONDS

Each user is a thread with a file or directory of its own below DIR: one writes and syncs and reads
back through the descriptor that it holds, one appends, one changes a mapping, one reads what it
has mapped, one makes, renames, lists and removes names, one holds a long listing, one has a random
access file open twice. Every byte is compared. Ends at a signal or after SECONDS. Prints "began" when all have made their files, and in the end JSON:
steps, errors (a list), wrong (a list), pause_max_ms, pause_p99_ms, and synced: how many lines of the file "appender" an
fsync has acknowledged.
"""
import json
import mmap
import os
import random
import signal
import sys
import threading
import time

top, seconds = sys.argv[1], float(sys.argv[2])
until = time.monotonic() + seconds
times, errors, wrong, lock = [], [], [], threading.Lock()
synced = 0  # lines of the appender that an fsync has acknowledged


def stop(_signal, _frame):
    global until
    until = 0


def expect(what, got, wanted):
    if got != wanted:
        with lock:
            wrong.append(f"{what}: got {got!r:.80} wanted {wanted!r:.80}")


def writer(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    chance, held = random.Random(1), bytearray(1 << 20)
    os.pwrite(fd, held, 0)
    while True:
        at, data = chance.randrange(len(held) - 9000), chance.randbytes(chance.randrange(1, 9000))
        held[at:at + len(data)] = data
        os.pwrite(fd, data, at)
        if chance.random() < 0.3:
            os.fsync(fd)
        expect("written", os.pread(fd, len(held), 0), bytes(held))
        yield


def appender(path):
    global synced
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    n = 0
    while True:
        os.write(fd, b"%09d\n" % n)
        n += 1
        if n % 20 == 0:
            os.fsync(fd)
            synced = n
            with open(path, "rb") as f:
                expect("appended", f.read(), b"".join(b"%09d\n" % i for i in range(n)))
        yield


def mapper(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(fd, 1 << 18)
    chance, held, mapped = random.Random(2), bytearray(1 << 18), mmap.mmap(fd, 1 << 18)
    while True:
        at, data = chance.randrange(len(held) - 5000), chance.randbytes(5000)
        held[at:at + 5000] = mapped[at:at + 5000] = data
        if chance.random() < 0.2:
            mapped.flush()
        expect("mapped", mapped[:], bytes(held))
        if chance.random() < 0.1:
            mapped.flush()
            os.fsync(fd)
            with open(path, "rb") as f:
                expect("mapped and read", f.read(), bytes(held))
        yield


def reader(path):
    data = random.Random(3).randbytes(6 << 20)
    with open(path, "wb") as f:
        f.write(data)
    fd = os.open(path, os.O_RDONLY)
    mapped = mmap.mmap(fd, len(data), prot=mmap.PROT_READ)
    chance = random.Random(4)
    while True:
        at = chance.randrange(len(data) - 70000)
        expect("read", os.pread(fd, 70000, at), data[at:at + 70000])
        expect("read mapped", mapped[at:at + 70000], data[at:at + 70000])
        if chance.random() < 0.05:
            os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        if chance.random() < 0.2:
            with open(path, "rb") as f:
                f.seek(at)
                expect("opened and read", f.read(3000), data[at:at + 3000])
        yield


def namer(path):
    os.makedirs(path)
    chance, names = random.Random(5), set()
    while True:
        i = chance.randrange(60)
        one, other = f"{path}/n{i}", f"{path}/m{i}"
        if f"n{i}" in names:
            if chance.random() < 0.5:
                os.rename(one, other)
                names -= {f"n{i}"}
                names |= {f"m{i}"}
            else:
                os.unlink(one)
                names -= {f"n{i}"}
        elif f"m{i}" in names:
            os.unlink(other)
            names -= {f"m{i}"}
        else:
            fd = os.open(one, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
            os.write(fd, b"x")
            os.close(fd)
            names |= {f"n{i}"}
        expect("names", sorted(os.listdir(path)), sorted(names))
        if chance.random() < 0.2:
            os.mkdir(f"{path}/d")
            os.symlink("d", f"{path}/d/s")
            expect("link", os.readlink(f"{path}/d/s"), "d")
            os.unlink(f"{path}/d/s")
            os.rmdir(f"{path}/d")
        yield


def lister(path):
    os.makedirs(path)
    wanted = sorted(f"f{i:04}" for i in range(700))
    for name in wanted:
        os.close(os.open(f"{path}/{name}", os.O_CREAT | os.O_WRONLY))
    fd = os.open(path, os.O_RDONLY)
    while True:
        got = []
        with os.scandir(path) as entries:
            for n, entry in enumerate(entries):
                got.append(entry.name)
                if n % 100 == 0:
                    yield
        expect("listed", sorted(got), wanted)
        expect("stat", os.stat(wanted[0], dir_fd=fd).st_size, 0)
        os.fsync(fd)


def twice(path):
    one = os.open(path, os.O_RDWR | os.O_CREAT)
    os.ftruncate(one, 1 << 20)
    other = os.open(path, os.O_RDWR)
    chance, held = random.Random(6), bytearray(1 << 20)
    while True:
        at, data = chance.randrange(120) * 8192, chance.randbytes(8192)
        held[at:at + 8192] = data
        os.pwrite(one, data, at)
        expect("through the other", os.pread(other, 8192, at), data)
        at = chance.randrange(120) * 8192
        expect("at random", os.pread(one, 8192, at), bytes(held[at:at + 8192]))
        yield


def run(user, path):
    steps = user(path)
    next(steps)  # it makes its files first
    ready.release()
    while time.monotonic() < until:
        began = time.monotonic()
        try:
            next(steps)
        except Exception as e:
            with lock:
                errors.append(f"{user.__name__}: {type(e).__name__} {e}")
            return
        with lock:
            times.append(time.monotonic() - began)


ready = threading.Semaphore(0)
signal.signal(signal.SIGTERM, stop)
users = (writer, appender, mapper, reader, namer, lister, twice)
threads = [threading.Thread(target=run, args=(u, f"{top}/{u.__name__}")) for u in users]
for thread in threads:
    thread.start()
for thread in threads:
    ready.acquire()
print("began", flush=True)
for thread in threads:
    thread.join()
times.sort()
print(json.dumps({
    "steps": len(times), "synced": synced, "errors": errors, "wrong": wrong[:10],
    "pause_max_ms": round(times[-1] * 1000) if times else 0,
    "pause_p99_ms": round(times[len(times) * 99 // 100] * 1000) if times else 0,
}))
