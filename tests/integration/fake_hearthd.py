#!/usr/bin/env python3
"""A hearthd that answers from files, so that a test decides what hearthctl sees and when.

   fake_hearthd.py SOCKET DIR

The reply to an operation is DIR/OP, a JSON object, read anew for each request; without such a file the operation is not known.
Each request is a line of DIR/requests. "cancel" also puts DIR/cancelled in the place of DIR/job.
"""
import json
import os
import selectors
import socket
import sys

path, folder = sys.argv[1:]


def answer(request):
    op = request["op"]
    if op == "cancel" and os.path.exists(f"{folder}/cancelled"):
        os.replace(f"{folder}/cancelled", f"{folder}/job")
    try:
        with open(f"{folder}/{op}", encoding="utf-8") as file:
            return {"ok": True, **json.load(file)}
    except FileNotFoundError:
        return {"ok": False, "code": "UNIMPLEMENTED", "error": f"op '{op}' is not known to hearthd 0.0.9"}


listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listener.bind(path)
listener.listen(8)
waiting = selectors.DefaultSelector()
waiting.register(listener, selectors.EVENT_READ)
with open(f"{folder}/requests", "a", encoding="utf-8", buffering=1) as log:
    while True:
        for key, _ in waiting.select():
            if key.fileobj is listener:
                waiting.register(listener.accept()[0], selectors.EVENT_READ)
                continue
            message = key.fileobj.recv(1 << 17)
            if not message:
                waiting.unregister(key.fileobj)
                key.fileobj.close()
                continue
            request = json.loads(message)
            log.write(json.dumps(request) + "\n")
            key.fileobj.send(json.dumps(answer(request)).encode())
