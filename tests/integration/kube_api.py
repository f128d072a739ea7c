#!/usr/bin/env python3
"""A stand-in of the Kubernetes API for tests: kube_api.py PORT-FILE OBJECTS LOG

Plain HTTP on loopback, without users. Every object is a file below the directory OBJECTS, at the
path of its URL: OBJECTS/api/v1/nodes/n.json is GET /api/v1/nodes/n, and a change of the file counts
at once. POST to a collection makes the file (409 when it is there; generateName gets a number),
PUT and PATCH (merge patch) write it, DELETE removes it, GET of a collection lists or watches it.
".../status" is of the object itself. An object's version is the time of its file. Each request is a
line "METHOD PATH STATUS" of the file LOG.
"""
import http.server
import json
import os
import sys
import threading
import time
from urllib.parse import parse_qs, unquote, urlsplit

PORT_FILE, OBJECTS, LOG = sys.argv[1:4]
LOCK = threading.Lock()
SERIAL = 0


def load(path):
    with open(path) as f:
        value = json.load(f)
        meta = value.setdefault("metadata", {})
        meta["resourceVersion"] = str(os.fstat(f.fileno()).st_mtime_ns)
        meta.setdefault("uid", path)
        return value


def save(path, value):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path + ".new", "w") as f:
        json.dump(value, f)
    os.rename(path + ".new", path)


def merge(value, patch):
    if not isinstance(value, dict) or not isinstance(patch, dict):
        return patch
    for name, new in patch.items():
        if new is None:
            value.pop(name, None)
        else:
            value[name] = merge(value.get(name), new)
    return value


def listed(directory):
    if not os.path.isdir(directory) and not os.path.basename(directory).endswith("s"):
        return 404, None
    items = all_below(directory)
    version = max([1] + [int(i["metadata"]["resourceVersion"]) for i in items])
    return 200, {"kind": "List", "metadata": {"resourceVersion": str(version)}, "items": items}


def all_below(directory):
    names = sorted(n for n in os.listdir(directory) if n.endswith(".json")) if os.path.isdir(directory) else []
    return [load(os.path.join(directory, n)) for n in names]


def changes(directory, version, seconds):
    """Events of a watch, as they are seen."""
    known = None
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with LOCK:
            now = {i["metadata"]["uid"]: i for i in all_below(directory)}
        for uid, value in now.items():
            if int(value["metadata"]["resourceVersion"]) > version or (known is not None and uid not in known):
                yield {"type": "MODIFIED" if known and uid in known else "ADDED", "object": value}
        for uid, value in (known or {}).items():
            if uid not in now:
                yield {"type": "DELETED", "object": value}
        version = max([version] + [int(i["metadata"]["resourceVersion"]) for i in now.values()])
        known = now
        time.sleep(0.1)


def post(directory, value):
    global SERIAL
    meta = value.setdefault("metadata", {})
    if "name" not in meta:
        SERIAL += 1
        meta["name"] = meta.get("generateName", "") + str(SERIAL)
    path = os.path.join(directory, meta["name"] + ".json")
    if os.path.exists(path):
        return 409, None
    save(path, value)
    return 201, value


def answer(method, path, value):
    if method != "GET" and path.endswith("/status"):
        path = os.path.dirname(path)
    file = path + ".json"
    if method == "POST":
        return post(path, value)
    if method == "GET" and not os.path.exists(file):
        return listed(path)
    if method == "PUT":
        save(file, value)
        return 200, value
    if not os.path.exists(file):
        return 404, None
    old = load(file)
    if method == "PATCH":
        old = merge(old, value)
        save(file, old)
    if method == "DELETE":
        os.unlink(file)
    return 200, old


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def watch(self, directory, query):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            for event in changes(directory, int(query.get("resourceVersion", ["0"])[0]), 60):
                self.wfile.write(json.dumps(event).encode() + b"\n")
                self.wfile.flush()
        except OSError:
            pass

    def do_any(self):
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size)) if size else None
        path = unquote(urlsplit(self.path).path).strip("/")
        query = parse_qs(urlsplit(self.path).query)
        if "watch" in query and ".." not in path.split("/"):
            return self.watch(os.path.join(OBJECTS, path), query)
        with LOCK:
            if ".." in path.split("/"):
                status, value = 400, None
            else:
                status, value = answer(self.command, os.path.join(OBJECTS, path), body)
            with open(LOG, "a") as log:
                print(self.command, "/" + path, status, file=log)
        if value is None:
            reason = {404: "NotFound", 409: "AlreadyExists"}.get(status, "BadRequest")
            value = {"kind": "Status", "code": status, "reason": reason, "message": path}
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_any


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
with open(PORT_FILE + ".new", "w") as f:
    print(server.server_address[1], file=f)
os.rename(PORT_FILE + ".new", PORT_FILE)
server.serve_forever()
