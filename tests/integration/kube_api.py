#!/usr/bin/env python3
"""A stand-in of the Kubernetes API for tests: kube_api.py PORT-FILE OBJECTS LOG

Plain HTTP on loopback, without users. Every object is a file below the directory OBJECTS, at the
path of its URL: OBJECTS/api/v1/nodes/n.json is GET /api/v1/nodes/n, and a change of the file counts
at once. POST to a collection makes the file (409 when it is there; generateName gets a number),
PUT and PATCH (merge patch) write it, DELETE removes it, GET of a collection lists it. There are no
watches. Each request is a line "METHOD PATH STATUS" of the file LOG.
"""
import http.server
import json
import os
import sys
import threading
from urllib.parse import unquote, urlsplit

PORT_FILE, OBJECTS, LOG = sys.argv[1:4]
LOCK = threading.Lock()
SERIAL = 0


def load(path):
    with open(path) as f:
        return json.load(f)


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
    if not os.path.isdir(directory):
        return 404, None
    names = sorted(n for n in os.listdir(directory) if n.endswith(".json"))
    items = [load(os.path.join(directory, n)) for n in names]
    return 200, {"kind": "List", "metadata": {"resourceVersion": "1"}, "items": items}


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

    def do_any(self):
        size = int(self.headers.get("Content-Length", 0))
        body = json.loads(self.rfile.read(size)) if size else None
        path = unquote(urlsplit(self.path).path).strip("/")
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
