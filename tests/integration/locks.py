#!/usr/bin/env python3
"""File locks of one volume on two nodes: locks.py CASE DIR1 DIR2, the volume's directory on each.

Fails with an AssertionError. A holder is a process of its own, as locks of fcntl(2) belong to one."""
import errno
import fcntl
import glob
import os
import signal
import sqlite3
import struct
import subprocess
import sys
import time

ONE, TWO = (os.path.realpath(d) for d in sys.argv[2:4])
PATIENCE = 60  # seconds: a machine may be busy
F_OFD_SETLK, F_OFD_SETLKW = 37, 38
LOCKING = {"x86_64": ("72", "73"), "aarch64": ("25", "32")}[os.uname().machine]  # system calls: fcntl, flock
TYPES = {"sh": fcntl.F_RDLCK, "ex": fcntl.F_WRLCK, "un": fcntl.F_UNLCK}


def flock_t(kind, start=0, length=0):
    return struct.pack("hhqqi4x", TYPES[kind], os.SEEK_SET, start, length, 0)


def lock(fd, how, kind, wait=False, start=0, length=0):
    """FALSE: another lock is in the way."""
    try:
        if how == "flock":
            what = {"sh": fcntl.LOCK_SH, "ex": fcntl.LOCK_EX, "un": fcntl.LOCK_UN}[kind]
            fcntl.flock(fd, what | (0 if wait else fcntl.LOCK_NB))
        elif how == "ofd":
            fcntl.fcntl(fd, F_OFD_SETLKW if wait else F_OFD_SETLK, flock_t(kind, start, length))
        else:
            fcntl.fcntl(fd, fcntl.F_SETLKW if wait else fcntl.F_SETLK, flock_t(kind, start, length))
    except OSError as e:
        if e.errno in (errno.EAGAIN, errno.EACCES):
            return False
        raise
    return True


def fresh(name, text=b"0"):
    path = os.path.join(ONE, name)
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.write(fd, text)
    os.fsync(fd)
    os.close(fd)
    return [path, os.path.join(TWO, name)]


class Other:
    """A process that takes a lock, says "got" (or "refused", "EINTR"), and keeps it until it is told to go."""

    def __init__(self, path, how, kind, wait=False, start=0, length=0, first=""):
        words = [sys.executable, __file__, "hold", ONE, TWO, path, how, kind, str(int(wait)), str(start), str(length), first]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.says() == "ready"
        if first:
            assert self.says() == "first"

    def says(self):
        os.set_blocking(self.process.stdout.fileno(), True)
        return self.process.stdout.readline().strip()

    def is_waiting(self):
        """In the kernel, for the lock."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            with open(f"/proc/{self.process.pid}/syscall") as f:
                if f.read().split()[0] in LOCKING:
                    return True
            time.sleep(0.01)
        return False

    def end(self, sig=None):
        if sig:
            self.process.send_signal(sig)
        else:
            self.process.stdin.close()
        self.process.wait(PATIENCE)
        self.process.stdout.close()


def hold():
    path, how, kind, wait, start, length, first = sys.argv[4:11]
    signal.signal(signal.SIGUSR1, lambda *_: (_ for _ in ()).throw(InterruptedError()))
    fd = os.open(path, os.O_RDWR)
    print("ready", flush=True)
    if first:
        lock(fd, how, first, True, int(start), int(length))
        print("first", flush=True)
        sys.stdin.readline()
    try:
        got = lock(fd, how, kind, wait == "1", int(start), int(length))
        print("got" if got else "refused", flush=True)
    except InterruptedError:
        print("EINTR", flush=True)
    sys.stdin.read()


def count(how):
    turns, paths = 40, fresh(f"count-{how}")
    words = [[sys.executable, __file__, "counter", ONE, TWO, paths[i % 2], how, str(turns)] for i in range(4)]
    processes = [subprocess.Popen(w) for w in words]
    for p in processes:
        assert p.wait(PATIENCE) == 0
    for path in paths:
        with open(path) as f:
            got = f.read()
        assert got == str(4 * turns), f"{got} of {4 * turns}"


def counter():
    path, how, turns = sys.argv[4:7]
    fd = os.open(path, os.O_RDWR)
    for _ in range(int(turns)):
        lock(fd, how, "ex", True)
        value = int(os.pread(fd, 20, 0))
        os.pwrite(fd, str(value + 1).encode(), 0)
        lock(fd, how, "un")


def flock_counts():
    count("flock")


def fcntl_counts():
    count("fcntl")


def excludes_other_nodes():
    for how in ("flock", "fcntl", "ofd"):
        one, two = (os.open(p, os.O_RDWR) for p in fresh(f"excludes-{how}"))
        holder = Other(os.path.join(ONE, f"excludes-{how}"), how, "ex")
        assert holder.says() == "got"
        assert not lock(two, how, "ex"), f"{how}: two nodes have it"
        assert not lock(two, how, "sh"), f"{how}: shared beside an exclusive one"
        assert not lock(one, how, "ex"), f"{how}: two processes of a node have it"
        holder.end()
        assert lock(two, how, "sh", True)
        holder = Other(os.path.join(ONE, f"excludes-{how}"), how, "sh")
        assert holder.says() == "got", f"{how}: two readers"
        assert not lock(two, how, "ex"), f"{how}: changed beside a reader"
        holder.end()
        os.close(one), os.close(two)


def ranges_are_apart():
    path = fresh("ranges")[1]
    fd = os.open(path, os.O_RDWR)
    holder = Other(os.path.join(ONE, "ranges"), "fcntl", "ex", start=100, length=100)
    assert holder.says() == "got"
    assert lock(fd, "fcntl", "ex", start=0, length=100)
    assert lock(fd, "fcntl", "ex", start=200)
    assert not lock(fd, "fcntl", "ex", start=199, length=1)
    assert not lock(fd, "fcntl", "ex"), "the whole file"
    assert lock(fd, "flock", "ex"), "flock(2) and fcntl(2) do not meet"
    holder.end()
    assert lock(fd, "fcntl", "ex", True)
    os.close(fd)


def a_killed_holder_gives_it_back():
    for how in ("flock", "fcntl", "ofd"):
        paths = fresh(f"killed-{how}")
        holder = Other(paths[0], how, "ex")
        assert holder.says() == "got"
        waiters = [Other(paths[1], how, "ex", True), Other(paths[0], how, "ex", True)]
        assert all(w.is_waiting() for w in waiters)
        holder.end(signal.SIGKILL)
        # Each in its turn: one has it, and the other when that is gone.
        for _ in range(2):
            ready = None
            until = time.monotonic() + PATIENCE
            while not ready and time.monotonic() < until:
                ready = next((w for w in waiters if has_line(w)), None)
            assert ready, f"{how}: nobody got it"
            assert ready.says() == "got"
            ready.end(signal.SIGKILL)
            waiters.remove(ready)


def has_line(other):
    import select

    return bool(select.select([other.process.stdout], [], [], 0.05)[0])


def a_waiter_can_be_ended():
    for how in ("flock", "fcntl"):
        paths = fresh(f"ended-{how}")
        holder = Other(paths[0], how, "ex")
        assert holder.says() == "got"
        killed, told = (Other(paths[1], how, "ex", True) for _ in range(2))
        assert killed.is_waiting() and told.is_waiting()
        killed.end(signal.SIGKILL)
        told.process.send_signal(signal.SIGUSR1)
        assert told.says() == "EINTR"
        holder.end()
        last = Other(paths[1], how, "ex", True)
        assert last.says() == "got", f"{how}: the lock of a waiter that was killed"
        last.end()
        told.end()


def holders_are_named():
    paths = fresh("named")
    one, two = (os.open(p, os.O_RDWR) for p in paths)
    holder = Other(paths[0], "fcntl", "ex", start=10, length=5)
    assert holder.says() == "got"
    for fd, pid in ((one, holder.process.pid), (two, 0)):
        answer = fcntl.fcntl(fd, fcntl.F_GETLK, flock_t("sh", 0, 0))
        assert struct.unpack("hhqqi4x", answer) == (fcntl.F_WRLCK, os.SEEK_SET, 10, 5, pid), struct.unpack("hhqqi4x", answer)
    assert struct.unpack("hhqqi4x", fcntl.fcntl(two, fcntl.F_GETLK, flock_t("ex", 20, 0)))[0] == fcntl.F_UNLCK
    holder.end()
    os.close(one), os.close(two)


def two_readers_become_writers():
    paths = fresh("upgrade")
    both = [Other(p, "flock", "ex", True, first="sh") for p in paths]
    for w in both:
        w.process.stdin.write("go\n")
        w.process.stdin.flush()
    until = time.monotonic() + PATIENCE
    waiting = list(both)
    while waiting and time.monotonic() < until:
        for w in [w for w in waiting if has_line(w)]:
            assert w.says() == "got"
            w.end()
            waiting.remove(w)
    assert not waiting, "neither can go on"


def closing_gives_back():
    paths = fresh("closing")
    two = os.open(paths[1], os.O_RDWR)
    fd, other = os.open(paths[0], os.O_RDWR), os.open(paths[0], os.O_RDONLY)
    assert lock(fd, "fcntl", "ex")
    os.close(other)
    assert lock(two, "fcntl", "ex"), "fcntl(2): closing any descriptor of the file gives the locks back"
    lock(two, "fcntl", "un")
    assert lock(fd, "flock", "ex") and lock(fd, "ofd", "ex")
    child = os.fork()
    if child == 0:
        os.close(fd)
        os._exit(0)
    os.waitpid(child, 0)
    assert not lock(two, "flock", "ex"), "a child has closed its copy"
    os.close(fd)
    assert lock(two, "flock", "ex", True) and lock(two, "ofd", "ex", True)
    os.close(two)


def takes_turns():
    path = fresh("turns")[0]
    for turn in range(100):
        fd = os.open(path, os.O_RDWR)
        assert lock(fd, "flock", "ex"), f"turn {turn}: the lock of the turn before is still held"
        os.close(fd)


def shows_what_was_written():
    paths = fresh("written", b"000")
    fds = [os.open(p, os.O_RDWR) for p in paths]
    for turn in range(200):
        for fd, before in ((fds[0], 2 * turn), (fds[1], 2 * turn + 1)):
            assert lock(fd, "ofd", "ex", True)
            got = os.pread(fd, 3, 0)
            assert got == b"%03d" % (before % 1000), f"{got} after {before}"
            os.pwrite(fd, b"%03d" % ((before + 1) % 1000), 0)
            os.pread(fd, 3, 0)
            assert lock(fd, "ofd", "un")
    for fd in fds:
        os.close(fd)


def holds_on_a_removed_file():
    path = fresh("removed")[0]
    one, again = os.open(path, os.O_RDWR), os.open(path, os.O_RDWR)
    os.unlink(path)
    assert lock(one, "flock", "ex") and not lock(again, "flock", "ex")
    assert lock(one, "ofd", "ex") and not lock(again, "ofd", "ex")
    os.close(one)
    assert lock(again, "flock", "ex", True) and lock(again, "ofd", "ex", True)
    os.close(again)


def sqlite_counts():
    """What applications do: read, change and write a database from both nodes."""
    fresh("count.db", b"")
    with sqlite3.connect(os.path.join(ONE, "count.db")) as db:
        db.execute("create table t (n integer)")
        db.execute("insert into t values (0)")
    db.close()
    adders = [subprocess.Popen([sys.executable, __file__, "sqlite_adder", d, d]) for d in (ONE, TWO) * 2]
    assert [adder.wait(PATIENCE) for adder in adders] == [0] * 4
    for d in (ONE, TWO):
        db = sqlite3.connect(os.path.join(d, "count.db"))
        assert db.execute("select n from t").fetchone() == (100,), d
        assert db.execute("pragma integrity_check").fetchone() == ("ok",), d
        db.close()


def sqlite_adder():
    db = sqlite3.connect(os.path.join(ONE, "count.db"), timeout=PATIENCE, isolation_level=None)
    for _ in range(25):
        db.execute("begin immediate")
        db.execute("update t set n = n + 1")
        db.execute("commit")
    db.close()


def outlives_the_mds():
    one, two = fresh("mds")
    holder, reader = Other(one, "flock", "ex"), Other(one, "fcntl", "sh")
    assert holder.says() == "got" and reader.says() == "got"
    subprocess.run(os.environ["FAIL_MDS"], shell=True, check=True)
    fd = os.open(two, os.O_RDWR)
    assert not lock(fd, "flock", "ex") and not lock(fd, "fcntl", "ex")
    assert lock(fd, "fcntl", "sh") and lock(fd, "fcntl", "un")
    holder.end()
    reader.end()
    assert lock(fd, "flock", "ex", wait=True) and lock(fd, "fcntl", "ex", wait=True)
    os.close(fd)


def holds_in_a_snapshot():
    """The test has made it, as the node's user may not."""
    path = glob.glob(os.path.join(ONE, ".snap", "*of-locks*", "snapped"))[0]
    one, again = os.open(path, os.O_RDONLY), os.open(path, os.O_RDONLY)
    assert lock(one, "fcntl", "sh")
    assert lock(one, "flock", "sh") and lock(again, "flock", "sh")
    assert not lock(one, "flock", "ex")
    assert lock(again, "flock", "ex", True)
    os.close(one), os.close(again)


def error_of(call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        return errno.errorcode[e.errno]
    return "none"


def goes_with_the_session():
    """The first node's is ended by $EVICT."""
    paths = fresh("lost", b"old")
    one, beside, two = os.open(paths[0], os.O_RDWR), os.open(paths[0], os.O_RDONLY), os.open(paths[1], os.O_RDWR)
    assert lock(one, "ofd", "ex")
    waiter = Other(paths[1], "ofd", "ex", True)
    assert waiter.is_waiting()
    subprocess.run(["sh", "-c", os.environ["EVICT"]], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert waiter.says() == "got"
    os.pwrite(two, b"new", 0)
    os.fsync(two)
    # The first node may learn of its loss by this.
    until = time.monotonic() + PATIENCE
    while error_of(os.pread, beside, 3, 0) != "EIO" and time.monotonic() < until:
        assert os.pread(beside, 3, 0) == b"new", "the bytes of before the loss"
    assert error_of(os.pread, beside, 3, 0) == "EIO"
    assert error_of(os.pwrite, one, b"bad", 0) == "EIO"
    assert error_of(os.ftruncate, one, 0) == "EIO"
    assert error_of(lock, one, "ofd", "sh") == "EIO"
    os.close(one)
    while error_of(os.pread, beside, 3, 0) == "EIO" and time.monotonic() < until:
        time.sleep(0.01)  # the kernel tells hearthd of the close behind it
    assert os.pread(beside, 3, 0) == b"new"
    one = os.open(paths[0], os.O_RDWR)
    assert not lock(one, "ofd", "ex")
    waiter.end()
    assert lock(one, "ofd", "ex", True)
    for fd in (one, beside, two):
        os.close(fd)


def needs_no_osd():
    """$HALT stops them; an open for writing needs them, for the MDS's journal."""
    one, two = (os.open(p, os.O_RDWR) for p in fresh("osd"))
    for how in ("flock", "ofd"):
        assert lock(two, how, "ex")
    subprocess.run(["sh", "-c", os.environ["HALT"]], check=True)
    for how in ("flock", "ofd"):
        for _ in range(10):
            assert lock(two, how, "un") and lock(one, how, "ex", True) and not lock(two, how, "ex")
            assert lock(one, how, "un") and lock(two, how, "ex", True)
    os.close(two)
    assert lock(one, "ofd", "ex", True) and lock(one, "flock", "ex", True)
    os.close(one)


def excludes_ceph_fuse():
    """The second directory is a mount of it."""
    one, two = (os.open(p, os.O_RDWR) for p in fresh("ceph-fuse"))
    holder = Other(os.path.join(ONE, "ceph-fuse"), "fcntl", "ex")
    assert holder.says() == "got"
    assert not lock(two, "fcntl", "ex")
    waiter = Other(os.path.join(TWO, "ceph-fuse"), "fcntl", "ex", True)
    holder.end()
    assert waiter.says() == "got"
    assert not lock(one, "fcntl", "sh")
    waiter.end()
    os.close(one), os.close(two)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
