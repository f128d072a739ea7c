#!/usr/bin/env python3
"""hung_reads.py READY GO FILE...: opens the files, makes READY, waits for GO, and reads all at once.

Prints "N read well" when all have been read, with N of those that have what was there before or after a write."""
import os
import sys
import threading
import time

ready, go, *paths = sys.argv[1:]
files = [(os.path.basename(p), os.open(p, os.O_RDONLY)) for p in paths]
sizes = {name: os.fstat(fd).st_size for name, fd in files}
open(ready, "w").close()
while not os.path.exists(go):
    time.sleep(0.05)
well = []


def read(name, fd):
    # No more than there is: the kernel asks for the size first otherwise, and that question would wait for a thread.
    text = os.pread(fd, sizes[name], 0).decode()
    if text in (f"text of {name}", f"TEXT of {name}"):
        well.append(name)
    else:
        print(f"{name}: {text!r}", flush=True)


threads = [threading.Thread(target=read, args=f) for f in files]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(well), "read well", flush=True)
