#!/usr/bin/env python3
"""full_pool_beside.py DIR CONF KEYRING POOL OSD_PID SLOW FULL: a write that comes while hearthd syncs the file by itself,
as a reader opens it, and that the pool, full by then, refuses. Prints what the writer's fsync says of it,
or "in Ceph". SLOW is a command that makes the OSD slow,
FULL one that makes the pool full, waits until it is, and makes the OSD as fast as it was."""
import errno, os, signal, subprocess, sys, threading, time

where, conf, keyring, pool, osd, slow, fill = sys.argv[1:8]
BYTES = 65536


def main():
    path = f"{where}/beside"
    with open(path, "wb") as f:
        f.write(b"0" * 2 * BYTES)
        f.flush()
        os.fsync(f.fileno())
        ino = os.fstat(f.fileno()).st_ino
        # Closed without a sync: who opens it has it synced.
        f.seek(0)
        f.write(b"a" * BYTES)
    # What this sync has left is written by libcephfs as soon as the sync is done: it is to be on its way
    # still when the pool is full.
    subprocess.run(["bash", "-c", slow], check=True, capture_output=True)
    os.kill(int(osd), signal.SIGSTOP)
    try:
        reader = threading.Thread(target=os.open, args=(path, os.O_RDONLY))
        reader.start()
        time.sleep(0.4)
        fd = os.open(path, os.O_RDWR)
        os.pwrite(fd, b"b" * BYTES, BYTES)
        time.sleep(0.3)
    finally:
        os.kill(int(osd), signal.SIGCONT)
    reader.join()
    subprocess.run(["bash", "-c", fill], check=True, capture_output=True)
    time.sleep(7)  # libcephfs writes what is older than 5 s, and drops what is refused
    try:
        os.fsync(fd)
        said = "ok"
    except OSError as e:
        said = errno.errorcode[e.errno]
    got = subprocess.run(["rados", "-c", conf, "--id", "admin", "-k", keyring, "-p", pool, "get",
                          "%x.00000000" % ino, "-"], capture_output=True).stdout
    print("in Ceph" if got[BYTES:] == b"b" * BYTES else said)


if __name__ == "__main__":
    main()
