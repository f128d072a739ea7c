"""Cases of open_writers_test.sh: open_writers.py CASE DIR1 DIR2, two mounts of one volume. Exits 1 with a reason.

A file that several descriptors of the first node have open, some for writing, beside writers on the second. Every
byte that is read is compared with a model."""
import mmap
import os
import random
import subprocess
import sys
import threading
import time

one, two = sys.argv[2:4]
SIZE = 4 << 20
PAGE = 4096
BLOCK = 8192


def expect(got, wanted, what):
    if got != wanted:
        at = next((i for i, (g, w) in enumerate(zip(got, wanted)) if g != w), min(len(got), len(wanted)))
        sys.exit(f"{what}: {len(got)} bytes for {len(wanted)}, the first difference at {at}: "
                 f"got {got[at:at + 20]!r}, wanted {wanted[at:at + 20]!r}")


def drop_pages():
    with open("/proc/sys/vm/drop_caches", "w") as f:
        f.write("1")


def settle():
    """No fill is under way on the first node."""
    while subprocess.run(os.environ["SETTLED"], shell=True, stdout=subprocess.DEVNULL).returncode:
        time.sleep(0.05)


def content_of(path):
    fd = os.open(path, os.O_RDONLY)
    content = os.pread(fd, 1 << 30, 0)
    os.close(fd)
    return content


class File:
    """The model, and what was read and written so far."""

    def __init__(self, name, size=SIZE):
        self.content = bytearray(random.randbytes(size))
        self.a, self.b = f"{one}/{name}", f"{two}/{name}"
        fd = os.open(self.a, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(fd, self.content)
        os.fsync(fd)
        os.close(fd)
        expect(content_of(self.a), self.content, "the new file")
        settle()

    def put(self, fd, offset, data):
        if os.pwrite(fd, data, offset) != len(data):
            sys.exit(f"short write of {len(data)} at {offset}")
        if offset > len(self.content):
            self.content.extend(bytes(offset - len(self.content)))
        self.content[offset:offset + len(data)] = data

    def put_anywhere(self, fd):
        size = random.choice([1, 100, PAGE, BLOCK, 70000])
        self.put(fd, random.randrange(len(self.content) - size), random.randbytes(size))

    def compare(self, fd, what):
        """Some parts, then, now and then, all of it."""
        for _ in range(3):
            at = random.randrange(len(self.content))
            size = random.choice([1, PAGE, BLOCK, 200000])
            expect(os.pread(fd, size, at), self.content[at:at + size], f"{what}, {size} at {at}")
        if random.random() < 0.1:
            expect(os.pread(fd, len(self.content) + 1, 0), self.content, f"{what}, all")

    def await_size(self, fd, what):
        """The kernel's idea of the end may lag: it ignores an answer that crosses a notification, although fstat(2)
        tells it (docs/design/live-volumes.md, how old a read can be)."""
        until = time.monotonic() + 5
        while os.fstat(fd).st_size != len(self.content) or os.pread(fd, 1, len(self.content)) != b"":
            if time.monotonic() > until:
                sys.exit(f"{what}: the size is {os.fstat(fd).st_size}, wanted {len(self.content)}")

    def cut(self, change, size):
        change(size)
        if size <= len(self.content):
            del self.content[size:]
        else:
            self.content.extend(bytes(size - len(self.content)))


def descriptors(path):
    return [os.open(path, flags) for flags in (os.O_RDWR, os.O_RDWR, os.O_RDONLY)]


def writes_here_are_read_here():
    """By other descriptors, with the page cache dropped: not from what is cached of the version before."""
    f = File("here")
    fds = descriptors(f.a)
    for i in range(150):
        f.put_anywhere(fds[i % 2])
        if i % 5 == 0:
            drop_pages()
        for fd in fds:
            f.compare(fd, f"after write {i}")
        if i % 50 == 49:
            os.fsync(fds[0])
    for fd in fds:
        os.close(fd)
    expect(content_of(f.a), f.content, "closed and opened again")
    expect(content_of(f.b), f.content, "on the other node")


def writes_there_are_read_here():
    """Also by descriptors that have a lease, and beside writes here."""
    f = File("there")
    fds = descriptors(f.a)
    for i in range(40):
        for fd in fds:
            f.compare(fd, f"before {i}")
        other = os.open(f.b, os.O_RDWR)
        for j in range(5):
            f.put_anywhere(other)
            for fd in fds:
                f.compare(fd, f"round {i}, write {j} there")
            f.put_anywhere(fds[j % 2])
            f.compare(other, f"round {i}, write {j} here, read there")
        os.close(other)
        if i % 4 == 0:
            time.sleep(0.3)  # the lease comes back
            drop_pages()


def syncs_and_closes_end_a_lease():
    """And the file may change elsewhere before there is a lease again."""
    f = File("synced")
    for i in range(30):
        fds = descriptors(f.a)
        for fd in fds[i % 2:]:
            f.compare(fd, f"opened, round {i}")
        f.put_anywhere(fds[0])
        if i % 3 == 0:
            os.fsync(fds[1])
        if i % 5 == 0:
            f.put_anywhere(fds[1])
        drop_pages()
        for fd in fds:
            f.compare(fd, f"written, round {i}")
        for fd in random.sample(fds, len(fds)):
            os.close(fd)
        if i % 4 == 1:
            other = os.open(f.b, os.O_RDWR)
            f.put(other, 0, random.randbytes(SIZE // 2))
            os.close(other)


def sizes_change():
    f = File("sizes")
    fds = descriptors(f.a)
    for i in range(30):
        for fd in fds:
            f.compare(fd, f"before {i}")
        size = random.randrange(SIZE // 2, SIZE)
        how = i % 3
        if how == 0:
            f.cut(lambda n: os.truncate(f.b, n), size)
        elif how == 1:
            f.cut(lambda n: os.ftruncate(fds[0], n), size)
        else:
            f.put(fds[1], len(f.content) + random.randrange(100000), b"beyond the end")
        if i % 2:
            drop_pages()
        for fd in fds:
            f.await_size(fd, f"round {i}")
            f.compare(fd, f"round {i}")
        other = os.open(f.b, os.O_RDONLY)
        f.compare(other, f"round {i}, there")
        os.close(other)


def appends_are_read():
    f = File("appends", 300000)
    fds = descriptors(f.a) + [os.open(f.a, os.O_WRONLY | os.O_APPEND)]
    other = os.open(f.b, os.O_WRONLY | os.O_APPEND)
    for i in range(60):
        writer = other if i % 7 == 3 else fds[3]
        data = b"%05d" % i * 500
        os.write(writer, data)
        f.content.extend(data)
        for fd in fds[:3]:
            f.await_size(fd, f"append {i}")
            f.compare(fd, f"append {i}")


def mappings_are_written():
    f = File("mapped")
    fds = descriptors(f.a)
    with mmap.mmap(fds[0], SIZE) as m:
        for i in range(20):
            at = random.randrange(SIZE - 100000)
            data = random.randbytes(50000)
            m[at:at + len(data)] = data
            f.content[at:at + len(data)] = data
            f.compare(fds[1], f"mapped write {i}")
            m.flush()
            f.compare(fds[2], f"flushed {i}")
            other = os.open(f.b, os.O_RDWR)
            f.compare(other, f"there, {i}")
            f.put_anywhere(other)
            os.close(other)
            f.compare(fds[1], f"behind a write there, {i}")
            expect(m[at:at + PAGE], f.content[at:at + PAGE], f"mapping {i}")


def acknowledged_writes_are_seen():
    """Readers of two descriptors, a writer on the same node and one on the other, at the same time: a read that begins
    after a write was answered shows it, or a later one, of each block as a whole."""
    blocks = 256
    path = File("seen", blocks * BLOCK)
    written = [0] * blocks  # answered
    begun = [0] * blocks
    problems = []
    until = time.monotonic() + 15
    fds = descriptors(path.a)
    for n in range(blocks):
        os.pwrite(fds[0], (0).to_bytes(8, "big") * (BLOCK // 8), n * BLOCK)

    def write(fd, mine, pause):
        while time.monotonic() < until and not problems:
            n = random.choice(mine)
            begun[n] += 1
            os.pwrite(fd, begun[n].to_bytes(8, "big") * (BLOCK // 8), n * BLOCK)
            written[n] = begun[n]
            time.sleep(random.random() * pause)

    def write_there():
        """Opens, writes for a while, closes: the lease of the first node comes and goes."""
        while time.monotonic() < until and not problems:
            fd = os.open(path.b, os.O_RDWR)
            for _ in range(random.randrange(1, 20)):
                n = random.randrange(0, blocks, 2)
                begun[n] += 1
                os.pwrite(fd, begun[n].to_bytes(8, "big") * (BLOCK // 8), n * BLOCK)
                written[n] = begun[n]
            os.close(fd)
            time.sleep(random.random())

    def read(fd):
        while time.monotonic() < until and not problems:
            n = random.randrange(blocks)
            least = written[n]
            got = os.pread(fd, BLOCK, n * BLOCK)
            most = begun[n]
            seen = {got[i:i + 8] for i in range(0, len(got), 8)}
            numbers = sorted(int.from_bytes(s, "big") for s in seen)
            # A write that runs at the same time may show in a part of the block.
            if len(got) != BLOCK or numbers[0] < least or numbers[-1] > most:
                problems.append(f"block {n}: {len(got)} bytes, {numbers}, answered {least}, begun {most}")

    def drop():
        while time.monotonic() < until and not problems:
            drop_pages()
            time.sleep(0.5)

    tasks = [(write, fds[1], list(range(1, blocks, 2)), 0.05), (write_there,), (drop,)]
    tasks += [(read, fd) for fd in fds for _ in range(2)]
    threads = [threading.Thread(target=t[0], args=t[1:], daemon=True) for t in tasks]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
        if t.is_alive():
            print("a thread waits for ever", flush=True)
            os._exit(1)
    if problems:
        sys.exit(problems[0])


def bytes_from_store():
    return int(subprocess.run(os.environ["FROM_STORE"], shell=True, check=True, stdout=subprocess.PIPE).stdout)


def reads():
    """For the test: each block of a warm file once, beside a few writes. They begin behind the first lease, which waits
    for what the other node has of the file: a file that is written before is not read from the cache."""
    with open(f"{two}/warm", "rb") as f:
        content = f.read()
    fds = [os.open(f"{one}/warm", os.O_RDWR) for _ in range(2)]
    before = bytes_from_store()
    while bytes_from_store() == before:
        drop_pages()
        os.pread(fds[0], BLOCK, 0)
    drop_pages()
    for i in range(len(content) // BLOCK):
        block = content[i * BLOCK:(i + 1) * BLOCK]
        expect(os.pread(fds[i % 2], BLOCK, i * BLOCK), block, f"block {i}")
        if i % 200 == 0:
            os.pwrite(fds[1], block, i * BLOCK)


random.seed(int(os.environ.get("SEED", "7")))
globals()[sys.argv[1]]()
