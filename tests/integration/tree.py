#!/usr/bin/env python3
"""A tree of mixed kinds, and what there is to see of one.

    tree.py make DIR [ENTRIES [MORE]]
                                  ENTRIES: in its largest directory (20000); MORE: files beside all
                                  this, small and of mixed kinds, in directories of 500 (0)
                                  the same whenever and wherever it is made
    tree.py list DIR [--names]    one line a name, in order: kind, mode, owner, times, links, device,
                                  attributes, which names are one file, the bytes; --names: no bytes
    tree.py sums DIR              bytes only; goes on after an error, which is then in the line

Names are bytes. What file systems may tell differently is left out: sizes and links of directories.
"""
import hashlib
import multiprocessing
import os
import random
import stat
import sys

DIRECTORY_MTIME = 1600000000
PROCESSES = 6


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


def set_time(path, i):
    """So that the same tree elsewhere is the same."""
    os.utime(path, ns=(0, 10**18 + i), follow_symlinks=False)


def fill(job):
    path, first, count = job
    r = random.Random(first)
    os.makedirs(path)
    for i in range(first, first + count):
        name = os.path.join(path, b"\xf0%d" % i if i % 97 == 0 else b"%d" % i)
        if i % 50 == 7:
            os.symlink(b"%d" % (i - 1), name)
        elif i % 50 == 13:
            os.link(last, name)
        elif i % 50 == 19:
            with open(name, "wb") as f:
                f.truncate(r.randint(1, 100000))
        else:
            write(name, r.randbytes(r.choice((0, 1, 100, 3000, 5000))))
            last = name
        if i % 50 == 23:
            os.setxattr(name, b"user.number", b"%d" % i)
        set_time(name, i)


def fill_many(job):
    path, first, count = job
    for i in range(first, first + count):
        name = os.path.join(path, b"%06d" % i)
        write(name, b"%d" % i if i % 10 == 0 else b"")
        set_time(name, i)


def at_once(pool, work, path, count):
    """Several at a time, for a file system over a network waits more than it works."""
    jobs = [(path % (i // 500) if b"%" in path else path, i, min(500, count - i)) for i in range(0, count, 500)]
    pool.map(work, jobs, 1)


def make(top, entries, more):
    r = random.Random(20)
    top = os.fsencode(top)
    join = os.path.join
    for name in (b"small", b"deep/a/b/c/d/e/f", b"many", b"odd", b"large", b"closed"):
        os.makedirs(join(top, name))
    for i in range(300):
        write(join(top, b"small", b"file%03d" % i), r.randbytes(r.randint(1, 200000)))
    with multiprocessing.Pool(PROCESSES) as pool:
        at_once(pool, fill_many, join(top, b"many"), entries)
        at_once(pool, fill, join(top, b"spread", b"%03d"), more)
    write(join(top, b"deep/a/b/c/d/e/f/leaf"), b"leaf")
    write(join(top, b"large/one"), r.randbytes(9000001))
    write(join(top, b"large/two"), r.randbytes(40 << 20))
    odd = join(top, b"odd")
    write(join(odd, b"empty"), b"")
    write(join(odd, b"n" * 255), b"long name")
    write(join(odd, b"\xff\xfe not UTF-8 \x01\n\\\""), b"bytes")
    write(join(odd, "Käse 😀".encode()), b"UTF-8")
    write(join(odd, b" , :=%s"), b"blank")
    write(join(odd, b"first"), b"one file of three names")
    os.link(join(odd, b"first"), join(odd, b"second"))
    os.link(join(odd, b"first"), join(top, b"deep/a/third"))
    os.symlink(b"first", join(odd, b"link"))
    os.symlink(b"/nowhere/" + b"x" * 3000, join(odd, b"long link"))
    os.mkfifo(join(odd, b"fifo"), 0o640)
    os.mknod(join(odd, b"char"), stat.S_IFCHR | 0o600, os.makedev(1, 3))
    os.mknod(join(odd, b"block"), stat.S_IFBLK | 0o660, os.makedev(259, 70000))
    with open(join(odd, b"sparse"), "wb") as f:
        f.truncate(100 << 20)
        f.seek(50 << 20)
        f.write(b"island")
    with open(join(odd, b"hole"), "wb") as f:
        f.truncate(1234567)
    attributes = join(odd, b"attributes")
    write(attributes, b"x")
    os.setxattr(attributes, b"user.name", b"value")
    os.setxattr(attributes, b"user.empty", b"")
    os.setxattr(attributes, b"user.bytes", bytes(range(256)))
    os.setxattr(attributes, b"user.large", r.randbytes(8000))
    os.setxattr(join(top, b"deep"), b"user.directory", b"too")
    for part in (b"small", b"deep", b"odd", b"large"):
        for path, _, files in os.walk(join(top, part)):
            for name in files:
                set_time(join(path, name), len(name))
    for i, mode in enumerate((0o4755, 0o2755, 0o1777, 0o000, 0o444)):
        path = join(odd, b"mode%d" % i)
        write(path, b"mode")
        os.chown(path, 1000 + i, 70000 + i)
        os.chmod(path, mode)
        os.utime(path, ns=(10**18 + i, 981173106123456789 + i))
    write(join(odd, b"old"), b"old")
    os.utime(join(odd, b"old"), ns=(0, 1))
    os.chmod(join(top, b"closed"), 0o700)
    for path, _, _ in os.walk(top, topdown=False):
        os.utime(path, (DIRECTORY_MTIME, DIRECTORY_MTIME))


def digest(path):
    h = hashlib.blake2b(digest_size=16)
    with open(path, "rb", buffering=0) as f:
        while data := f.read(1 << 20):
            h.update(data)
    return h.hexdigest()


def paths(top):
    yield top
    for path, directories, files in os.walk(top):
        directories.sort()
        for name in sorted(directories + files):
            yield os.path.join(path, name)


def describe(job):
    """What there is to see; of all but directories also the inode, to be named by its first name."""
    path, shown, content = job
    st = os.lstat(path)
    kind = stat.S_IFMT(st.st_mode)
    start = [repr(shown), "%o" % st.st_mode, st.st_uid, st.st_gid, st.st_mtime_ns]
    if kind != stat.S_IFDIR:
        start += [st.st_size, st.st_nlink]
    line = []
    if kind in (stat.S_IFCHR, stat.S_IFBLK):
        line.append("%d:%d" % (os.major(st.st_rdev), os.minor(st.st_rdev)))
    if kind == stat.S_IFLNK:
        line.append(repr(os.readlink(path)))
    for name in sorted(os.listxattr(path, follow_symlinks=False)):
        value = os.getxattr(path, name, follow_symlinks=False)
        line.append("%s=%s" % (name, hashlib.blake2b(value, digest_size=8).hexdigest()))
    if kind == stat.S_IFREG and content and st.st_size:
        line.append(digest(path))
    return shown, None if kind == stat.S_IFDIR else st.st_ino, start, line


def show(top, content):
    first = {}
    jobs = ((path, path[len(top) + 1 :], content) for path in sorted(paths(top)))
    with multiprocessing.Pool(PROCESSES) as pool:
        for shown, inode, start, line in pool.imap(describe, jobs, 100):
            if inode is not None:
                start.append(repr(first.setdefault(inode, shown)))
            print(" ".join(map(str, start + line)))


def main():
    verb, top = sys.argv[1], os.fsencode(sys.argv[2])
    if verb == "make":
        numbers = [int(n) for n in sys.argv[3:]]
        make(top, *(numbers + [20000, 0][len(numbers):]))
        return
    if verb == "list":
        show(top, "--names" not in sys.argv)
        return
    for path in sorted(paths(top)):
        shown = path[len(top) + 1:]
        if stat.S_ISREG(os.lstat(path).st_mode):
            try:
                print(repr(shown), digest(path))
            except OSError as e:
                print(repr(shown), e.strerror)


if __name__ == "__main__":
    main()
