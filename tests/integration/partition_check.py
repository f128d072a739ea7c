#!/usr/bin/env python3
"""partition_check.py DIR: judges the logs DIR/*.log of the partition torture (tests/tools/partition-log.h) and
DIR/faults. Answers lines of standard input: "check" takes what was logged since, and answers "ok READS SYNCS
ERRORS VIOLATIONS" of it; "since US" (of what was checked) with "ok", or with who has done nothing since that
time. Violations are written to DIR/violations.

The rule. A write is acknowledged when fsync has returned 0. Let A be a write acknowledged by the time a read
begins; a value whose pwrite had returned before A began is old, and that read must not have it. It is the
same whether the read came from a cache that was not told (stale), A is gone from Ceph (lost), or a value that
was written before A reached Ceph after it (late). Writes that overlap may end up in either order; one that
failed, or was never synced, may be there or not until the next acknowledged one. All pages are judged alone.

The bounds (us), which docs/design/live-volumes.md states:
  BOUND   by how much a read may lag what is acknowledged: 0, but for descriptors and mappings held open
          without a lease, whose pages are dropped behind the write
  ENDED   an administrator ended the client's session: it learns of it by its next question to the MDS, or
          no lease counts any more
  FROZEN  a stopped hearthd cannot drop the kernel's pages; this long after it goes on it has. Opens and
          O_DIRECT reads wait for it instead, and are never old
  FLIGHT  the kernel keeps the pages of a write of the same node that has waited for so long, and lets them be
          read until the write is answered, and they are dropped behind it
A node that makes a file longer learns of no other size of it until that write is answered: the kernel takes
none meanwhile (FUSE_I_SIZE_UNSTABLE). So a file that this node had cut to nothing still ends there for it.
During such a time a read must not be older than what was acknowledged at its beginning."""
import bisect, glob, math, os, sys

BOUND = {"held": 200_000, "drop": 200_000, "map": 200_000}
ENDED, FROZEN, FLIGHT = 13_000_000, 1_000_000, 12_000_000
KEPT = 300_000_000  # a write is kept for so long, for reads that began before it returned
FROM_PAGES = ("held", "drop", "map")
NEVER = math.inf
WRONG_BYTES = 2**64 - 1
SHOWN = 50  # violations of one check


class File:
    def __init__(self):
        self.begun = {}     # value -> when it began, the last time for 0
        self.returned = {}  # value -> when pwrite returned, the last time for 0
        self.running = {}   # value -> how many of its writes have not returned
        self.synced = []    # (when, begun, value)
        self.latest = None  # beside it, sorted: the one that began last of those up to there

    def begin(self, value, at):
        self.begun[value] = at
        self.running[value] = self.running.get(value, 0) + 1

    def end(self, value, began, returned, synced):
        self.running[value] -= 1
        self.returned[value] = max(returned, self.returned.get(value, 0))
        if synced:
            self.synced.append((synced, began, value))
            self.latest = None

    def over(self, value):
        """When all writes of it had returned."""
        return NEVER if self.running[value] else self.returned[value]

    def acknowledged(self, at):
        """The write that began last of those acknowledged by then, or None."""
        if self.latest is None:
            self.synced.sort()
            self.latest = []
            for ack in self.synced:
                last = self.latest[-1] if self.latest else ack
                self.latest.append(ack if ack[1] >= last[1] else last)
        i = bisect.bisect_right(self.synced, (at, NEVER))
        return self.latest[i - 1] if i else None


class Checker:
    def __init__(self, where):
        self.where, self.offsets = where, {}
        self.files, self.faults = {}, {}
        self.writes = {}  # (client, file) -> value -> (began, returned), of those of late
        self.done, self.violations = {}, 0
        self.later = []  # reads for the next check
        self.out = open(os.path.join(where, "violations"), "a")

    def lines(self, path):
        """Whole ones that came since the last time."""
        if not os.path.exists(path):
            return []
        with open(path, "rb") as log:
            log.seek(self.offsets.get(path, 0))
            data = log.read()
        data = data[:data.rfind(b"\n") + 1]
        self.offsets[path] = self.offsets.get(path, 0) + len(data)
        return data.decode().splitlines()

    def file(self, number):
        return self.files.setdefault(number, File())

    # ---- faults: "evict CLIENT AT", "evicted CLIENT AT", "freeze CLIENT AT", "thaw CLIENT AT" ----

    def take_fault(self, kind, client, at):
        windows = self.faults.setdefault(client, [])
        if kind in ("evict", "freeze"):
            windows.append([at, NEVER, kind == "freeze"])
            return
        freeze = kind == "thaw"
        last = next(w for w in reversed(windows) if w[2] == freeze)
        last[1] = at + (FROZEN if freeze else ENDED)

    def as_of(self, client, how, began):
        """The time whose acknowledged writes a read that began then owes. Times that touch are one."""
        windows = [w for w in self.faults.get(client, ()) if not w[2] or how in FROM_PAGES]
        at, again = began, True
        while again:
            earlier = [start for start, end, _ in windows if start < at <= end]
            again = bool(earlier)
            at = min(earlier, default=at)
        return at

    # ---- reads ----

    def violation(self, kind, read, value, ack):
        self.violations += 1
        self.shown += 1
        if self.shown > SHOWN:
            return
        client, file, how, began, ended, _ = read
        f = self.file(file)
        text = "%s: %s reads f%d (%s) from %d to %d and finds %d" % (kind, client, file, how, began, ended, value)
        if value in f.begun:
            text += " (pwrite from %d to %s)" % (f.begun[value], f.over(value))
        if ack:
            text += "; %d was acknowledged at %d (pwrite began at %d)" % (ack[2], ack[0], ack[1])
        self.out.write(text + "\n")
        self.out.flush()

    def judge(self, read):
        client, file, how, began, ended, values = read
        f = self.file(file)
        owes = self.as_of(client, how, began)
        flights = self.writes.get((client, file), {}).values()
        if how in FROM_PAGES:
            owes = min([owes] + [start for start, end in flights if start + FLIGHT < began < end + BOUND[how]])
        for value in values:
            since = owes
            if value == 0:
                since = min([owes] + [start for start, end in flights if start < ended and began < end])
            ack = f.acknowledged(since - BOUND.get(how, 0))
            if value not in f.begun:
                self.violation("wrong bytes" if value == WRONG_BYTES else "never written", read, value, ack)
            elif ack and value != ack[2] and f.over(value) < ack[1]:
                self.violation("lost or late" if how in ("rados", "ceph") else "old", read, value, ack)

    def take(self, client, words):
        """Of a write, or of what failed."""
        if words[0] == "B":
            file, value, began = map(int, words[1:4])
            self.file(file).begin(value, began)
            self.writes.setdefault((client, file), {})[value] = (began, NEVER)
        elif words[0] == "W":
            file, value, began, returned, synced = map(int, words[1:6])
            self.file(file).end(value, began, returned, synced)
            flights = self.writes.get((client, file), {})
            flights[value] = (began, returned)
            for old in [v for v, (_, end) in flights.items() if end < began - KEPT]:
                del flights[old]
            if synced:
                self.counts[1] += 1
                self.done[client, file, "write"] = began
        elif words[0] == "E":
            self.counts[2] += 1

    def check(self):
        before, self.shown, self.counts = self.violations, 0, [0, 0, 0]
        reads, self.later = self.later, []
        # What a read owes, and what it may find, was logged before it was. So the second look at all logs
        # has the writes of the reads of the first; reads of the second wait for the next check.
        for late in (False, True):
            for path in sorted(glob.glob(os.path.join(self.where, "*.log"))):
                client = os.path.basename(path)[:-4]
                for words in map(str.split, self.lines(path)):
                    if words[0] != "R":
                        self.take(client, words)
                        continue
                    read = (client, int(words[1]), words[2], int(words[3]), int(words[4]),
                            [int(value) for value in words[5].split(",")])
                    (self.later if late else reads).append(read)
        for kind, client, at in map(str.split, self.lines(os.path.join(self.where, "faults"))):
            self.take_fault(kind, client, int(at))
        for read in reads:
            self.judge(read)
            self.done[read[:3]] = read[3]
        return "ok %d %d %d %d" % (len(reads), *self.counts[1:], self.violations - before)

    def since(self, at):
        """Who has not read a file in one of the ways since then, if it holds it; of writes one file of each client
        will do."""
        last = {}
        for (client, file, how), began in self.done.items():
            if how == "write" and client != "make":
                who = "%s-writes" % client
            elif how == "rados" or (how != "direct" and (client, file, "held") in self.done):
                who = "%s-f%d-%s" % (client, file, how)
            else:
                continue
            last[who] = max(began, last.get(who, 0))
        idle = sorted(who for who, began in last.items() if began < at)
        return "error " + " ".join(idle) if idle else "ok"


def main():
    checker = Checker(sys.argv[1])
    print("ok", flush=True)
    for line in sys.stdin:
        words = line.split()
        print(checker.check() if words[0] == "check" else checker.since(int(words[1])), flush=True)


if __name__ == "__main__":
    main()
