"""Cases of two_nodes_test.sh: two_nodes.py CASE DIR1 DIR2, two mounts of one volume. Exits 1 with a reason."""
import errno
import os
import random
import socket
import sys
import threading
import time

one, two = sys.argv[2:4]
PAGE = 4096


def expect(got, wanted, what):
    if got != wanted:
        sys.exit(f"{what}: got {got!r:.120}, wanted {wanted!r:.120}")


def fresh(name, content=b""):
    if os.path.exists(f"{one}/{name}"):
        os.unlink(f"{one}/{name}")
    with open(f"{one}/{name}", "wb") as f:
        f.write(content)
    return f"{one}/{name}", f"{two}/{name}"


def put(path, content, offset=0):
    fd = os.open(path, os.O_WRONLY)
    os.pwrite(fd, content, offset)
    os.close(fd)


def get(path, length=1 << 20, offset=0):
    fd = os.open(path, os.O_RDONLY)
    content = os.pread(fd, length, offset)
    os.close(fd)
    return content


def appends_from_both_nodes():
    a, b = fresh("log")
    x, y = os.open(a, os.O_WRONLY | os.O_APPEND), os.open(b, os.O_WRONLY | os.O_APPEND)
    for i in range(20):
        os.write(x, b"a%03d\n" % i)
        os.write(y, b"b%03d\n" % i)
    expect(get(a).split(), [b"%c%03d" % (c, i) for i in range(20) for c in b"ab"], "lines of the log")


def append_after_truncation():
    a, b = fresh("cut", b"x" * 20000)
    fd = os.open(a, os.O_RDWR | os.O_APPEND)
    os.pread(fd, 20000, 0)
    os.truncate(b, 10)
    os.write(fd, b"end")
    expect(get(b), b"x" * 10 + b"end", "the file")


def held_descriptor_follows_a_writer():
    """Also a reader that waits for the lease to go back: it was never woken."""
    for round in range(8):
        for unlinked in False, True:
            for flags in os.O_RDONLY, os.O_RDWR:
                content = b"a" * 10265
                a, b = fresh("followed", content)
                x, y = os.open(a, flags), os.open(b, os.O_RDWR)
                for fd in x, y, x:
                    expect(len(os.pread(fd, 1 << 20, 0)), len(content), "before")
                if unlinked:
                    os.unlink(a)
                for i in range(5):
                    os.pwrite(y, b"b" * 15, len(content))
                    content += b"b" * 15
                    os.fstat(x)
                    for fd in x, y:
                        expect(os.pread(fd, 1 << 20, 0), content, f"round {round}, write {i}")
                os.close(x)
                os.close(y)


def readers_beside_a_writer():
    """Reads that begin while a capability is being taken back, which another read of the node still uses."""
    size = 64 << 20
    a, b = fresh("beside")
    put(b, bytes(size))
    until = time.monotonic() + 8
    seen = [time.monotonic()] * 4
    written, one_by_one, anywhere = os.open(b, os.O_RDWR), os.open(a, os.O_RDONLY), os.open(a, os.O_RDONLY)

    def write():
        os.pwrite(written, b"x" * 100, random.randrange(size - 100))
        time.sleep(random.random() * 0.02)

    def read_on():
        at = random.randrange(size // 2)
        for i in range(random.randint(1, 5)):
            os.pread(one_by_one, random.choice([4096, 65536, 300000]), at + i * 131072)
        os.fstat(one_by_one)

    def read_somewhere():
        os.pread(anywhere, 4096, random.randrange(size - 4096))
        if random.random() < 0.3:
            os.fstat(anywhere)

    def work(n, what):
        while time.monotonic() < until:
            what()
            seen[n] = time.monotonic()

    for n, what in enumerate([write, read_on, read_somewhere, read_somewhere]):
        threading.Thread(target=work, args=(n, what), daemon=True).start()
    while (now := time.monotonic()) < until:
        if now - min(seen) > 6:
            print(f"waits for {now - min(seen):.0f} s: {[round(now - t, 1) for t in seen]}", flush=True)
            os._exit(1)  # who waits in the kernel cannot be ended in order
        time.sleep(0.1)


def forget():
    """Has libcephfs on the first node forget the bytes it has, of whose change it would tell."""
    with open(f"{one}/ballast", "wb") as f:
        f.write(bytes(48 << 20))
        os.fsync(f.fileno())


def pages_of_a_local_writer_go():
    """Full pages written here stay in the kernel; a reader has the file open all the time."""
    a, b = fresh("written", b"0" * PAGE * 64)
    reader = os.open(a, os.O_RDONLY)
    put(a, b"1" * PAGE * 64)
    forget()
    put(b, b"2" * PAGE, 0)
    expect(os.pread(reader, PAGE, 0), b"2" * PAGE, "first page, held open")
    os.pread(reader, PAGE, PAGE * 40)
    expect(get(a, PAGE), b"2" * PAGE, "first page, opened anew")


def pages_of_a_returned_lease_go():
    a, b = fresh("grown", b"0" * PAGE * 64)
    reader = os.open(a, os.O_RDONLY)
    os.pread(reader, PAGE * 64, 0)
    forget()
    os.truncate(a, PAGE * 256)
    put(b, b"2" * PAGE, PAGE * 3)
    expect(os.pread(reader, PAGE, PAGE * 3), b"2" * PAGE, "page 3, held open")
    os.pread(reader, PAGE, PAGE * 200)
    expect(get(a, PAGE, PAGE * 3), b"2" * PAGE, "page 3, opened anew")


def pages_of_another_handle_go():
    """One reader was refused a lease and waits; another had one, and closes."""
    a, b = fresh("shared", b"0" * PAGE * 64)
    writer = os.open(b, os.O_RDWR)
    os.pwrite(writer, b"1" * PAGE, 0)
    waits = os.open(a, os.O_RDONLY)
    os.close(writer)
    reader = os.open(a, os.O_RDONLY)
    os.pread(reader, PAGE * 64, 0)
    os.close(reader)
    put(b, b"2" * PAGE, PAGE * 3)
    expect(os.pread(waits, PAGE, PAGE * 3), b"2" * PAGE, "page 3, held open")


def old_names_change_nothing():
    """Names just listed may be used unasked; what changes something through them must not."""
    for what in "truncate", "chmod", "unlink", "rmdir", "rename":
        base = f"names-{what}-{time.time_ns()}"
        for name in "dir", "other":
            os.makedirs(f"{one}/{base}/{name}/sub")
            with open(f"{one}/{base}/{name}/f", "w") as f:
                f.write(name)
        for entry in os.scandir(f"{one}/{base}/dir"):
            entry.stat()
        for entry in os.scandir(f"{one}/{base}"):
            entry.stat()
        os.scandir(f"{one}/{base}/dir").close()
        list(os.scandir(f"{one}/{base}/dir"))
        os.rename(f"{two}/{base}/dir", f"{two}/{base}/old")
        os.rename(f"{two}/{base}/other", f"{two}/{base}/dir")
        at = f"{one}/{base}/dir"
        if what == "truncate":
            os.truncate(f"{at}/f", 0)
            expect(get(f"{two}/{base}/old/f"), b"dir", "the file that was meant no more")
            expect(get(f"{two}/{base}/dir/f"), b"", "the file that was meant")
        elif what == "chmod":
            os.chmod(f"{at}/sub", 0o700)
            expect(os.stat(f"{two}/{base}/old/sub").st_mode & 0o777, 0o755, "mode of the old one")
        elif what == "unlink":
            os.unlink(f"{at}/f")
            expect(os.listdir(f"{two}/{base}/dir"), ["sub"], "names left")
        elif what == "rmdir":
            os.rmdir(f"{at}/sub")
            expect(os.listdir(f"{two}/{base}/dir"), ["f"], "names left")
        else:
            os.rename(f"{at}/sub", f"{at}/moved")
            expect(sorted(os.listdir(f"{two}/{base}/dir")), ["f", "moved"], "names")


def names_moved_elsewhere_are_missing():
    """Where the kernel does not walk a path again: what is to be made is looked up in a directory that has moved."""
    def bind(path):
        with socket.socket(socket.AF_UNIX) as s:
            s.bind(path)

    os.makedirs(f"{one}/moves")
    fresh("moves/file", b"1")
    makers = os.mkdir, os.mkfifo, lambda p: os.symlink("t", p), lambda p: os.link(f"{two}/moves/file", p), bind
    for round in range(5):
        for n, make in enumerate(makers):
            name = f"moves/{round}-{n}"
            os.mkdir(f"{one}/{name}")
            os.stat(f"{two}/{name}")
            held = os.open(f"{two}/{name}", os.O_RDONLY | os.O_DIRECTORY)
            os.rename(f"{one}/{name}", f"{one}/{name}-gone")
            try:
                make(f"{two}/{name}/new")
                error = 0
            except OSError as e:
                error = e.errno
            expect(error, errno.ENOENT, f"error {n} in round {round}")
            expect(os.listdir(f"{one}/{name}-gone"), [], "names in the directory that moved")
            os.fchmod(held, 0o700)
            os.mkdir("below", dir_fd=held)
            os.close(held)
            if make == bind:
                continue  # the kernel never walks again for it
            # The name leads to another directory now.
            os.stat(f"{two}/{name}-gone")
            os.rename(f"{one}/{name}-gone", f"{one}/{name}-again")
            os.mkdir(f"{one}/{name}-gone")
            make(f"{two}/{name}-gone/new")
            expect(os.listdir(f"{one}/{name}-gone"), ["new"], "names in the new directory")


def listed_attributes_are_current():
    """What the other node has changed and not yet written back: stat right behind a listing."""
    for round in range(10):
        name = f"listed{round}"
        os.mkdir(f"{one}/{name}")
        for i in range(10):
            path = f"{one}/{name}/{i}"
            with open(path, "wb") as f:
                f.write(b"x" * i)
            os.chown(path, 100 + i, 200 + i)
            os.utime(path, (1000, 2000 + i))
        for entry in os.scandir(f"{two}/{name}"):
            i, st = int(entry.name), entry.stat()
            expect((st.st_uid, st.st_gid, st.st_size, st.st_mtime), (100 + i, 200 + i, i, 2000 + i), f"attributes of {i} in round {round}")


globals()[sys.argv[1]]()
