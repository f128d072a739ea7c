#!/usr/bin/env python3
"""full_pool.py DIR CONF KEYRING POOL WRITTEN: rewrites files in DIR, each in its way, until the pool is full,
then syncs them. Prints a line for each way: what the syncs said of files whose last write is not in Ceph,
sorted, and "lost unseen" where a sync said nothing of it. WRITTEN is a command that makes the pool full."""
import errno, mmap, os, subprocess, sys, time

where, conf, keyring, pool, fill = sys.argv[1:6]
WAYS = ("held", "other", "closed", "forgotten", "direct")
EACH, BYTES = 4, 65536


def error_of(call):
    try:
        call()
        return "ok"
    except OSError as e:
        return errno.errorcode[e.errno]


class File:
    def __init__(self, way, number):
        self.way, self.path = way, f"{where}/{way}{number}"
        self.flags = os.O_RDWR | os.O_CREAT | (os.O_DIRECT if way == "direct" else 0)
        self.buffer = mmap.mmap(-1, BYTES)
        self.written = b"a"
        self.fd = os.open(self.path, self.flags, 0o644)
        self.ino = os.fstat(self.fd).st_ino
        self.fill(b"a")
        os.fsync(self.fd)
        self.other = os.open(self.path, os.O_RDWR) if way == "other" else -1
        if way in ("closed", "forgotten"):
            os.close(self.fd)

    def fill(self, byte):
        self.buffer[:] = byte * BYTES
        os.pwritev(self.fd, [self.buffer], 0)
        self.written = byte

    def write(self, byte):
        if self.way not in ("closed", "forgotten"):
            self.fill(byte)
            return
        self.fd = os.open(self.path, self.flags)
        try:
            self.fill(byte)
        finally:
            os.close(self.fd)

    def sync(self):
        if self.way == "other":
            return error_of(lambda: os.fsync(self.other))
        if self.way in ("closed", "forgotten"):
            self.fd = os.open(self.path, os.O_RDWR)
        return error_of(lambda: os.fsync(self.fd))

    def is_in_ceph(self):
        got = subprocess.run(["rados", "-c", conf, "--id", "admin", "-k", keyring, "-p", pool, "get",
                              "%x.00000000" % self.ino, "-"], capture_output=True).stdout
        return got == self.written * BYTES


def main():
    files = [File(way, i) for way in WAYS for i in range(EACH)]
    subprocess.run(["bash", "-c", fill], check=True, capture_output=True)
    until = time.monotonic() + 60
    full = False
    for generation in range(1, 1000):
        for f in files:
            try:
                f.write(bytes([ord("b") + generation % 24]))
            except OSError as e:
                if e.errno != errno.ENOSPC:
                    raise
                full = True
        if full or time.monotonic() > until:
            break
        time.sleep(0.2)
    if not full:
        sys.exit("the pool did not get full within 60 s")
    with open("/proc/sys/vm/drop_caches", "w") as drop:
        drop.write("2")
    said = {way: set() for way in WAYS}
    for f in files:
        r = f.sync()
        if not f.is_in_ceph():
            said[f.way].add("lost unseen" if r == "ok" else r)
    for way in WAYS:
        print(way, *sorted(said[way]))


if __name__ == "__main__":
    main()
