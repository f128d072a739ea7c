#!/usr/bin/env python3
"""full_pool_beside.py DIR CONF KEYRING POOL OSD_PID SLOW FULL AGAIN: a write that comes while hearthd syncs the
file by itself, as a reader opens it, and that the pool, full by then, refuses. Prints what the writer's
fsync says of it, or "in Ceph". SLOW is a command that makes the OSD slow, FULL one that makes the pool full
and waits until it is, AGAIN one that kills the OSD and starts it again."""
import errno, os, signal, subprocess, sys, threading, time

where, conf, keyring, pool, osd, slow, fill, again = sys.argv[1:9]
BYTES = 65536


def run(command):
    subprocess.run(["bash", "-c", command], check=True, capture_output=True)


def main():
    path = f"{where}/beside"
    with open(path, "wb") as f:
        f.write(b"0" * 2 * BYTES)
        f.flush()
        os.fsync(f.fileno())
        ino = os.fstat(f.fileno()).st_ino
        # What comes beside the sync is written by libcephfs as soon as the sync is done: the OSD is to have
        # it, and not to have done it, when the pool gets full.
        run(slow)
        # Closed without a sync: who opens it has it synced.
        f.seek(0)
        f.write(b"a" * BYTES)
    os.kill(int(osd), signal.SIGSTOP)
    reader = threading.Thread(target=os.open, args=(path, os.O_RDONLY))
    reader.start()
    time.sleep(0.4)
    fd = os.open(path, os.O_RDWR)
    os.pwrite(fd, b"b" * BYTES, BYTES)
    time.sleep(0.3)
    os.kill(int(osd), signal.SIGCONT)
    reader.join()
    os.kill(int(osd), signal.SIGSTOP)
    run(fill)
    run(again)
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
