#!/usr/bin/env python3
"""nodecaches.py KUBECONFIG NODES DATASETS SECONDS [PERCENT]: writes the NodeCaches n1 ... of so many nodes, as their
plugins would: each once at the beginning, then every 30 s, evenly spread, for so long. Of each dataset PERCENT
(default 60) are warm. Prints how many writes it made and the longest one took."""
import base64
import datetime
import hashlib
import http.client
import json
import ssl
import sys
import tempfile
import time
import urllib.parse

BEAT, GIB = 30, 1 << 30


def connect(path):
    config = json.load(open(path))
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    with tempfile.NamedTemporaryFile() as ca:
        ca.write(base64.b64decode(cluster["certificate-authority-data"]))
        ca.flush()
        context = ssl.create_default_context(cafile=ca.name)
    context.load_cert_chain(user["client-certificate"], user["client-key"])
    return http.client.HTTPSConnection(urllib.parse.urlparse(cluster["server"]).netloc, context=context)


def request(api, method, path, body, kind):
    api.request(method, "/apis/csi.hearth.dev/v1alpha1/nodecaches" + path, json.dumps(body), {"Content-Type": kind})
    answer = api.getresponse()
    text = answer.read()
    if answer.status >= 300 and answer.status != 409:
        sys.exit("%s %s: %d %s" % (method, path, answer.status, text[:300]))


def status(datasets, percent):
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    held = [{"id": hashlib.sha256(b"%d" % i).hexdigest()[:16], "name": "team/corpus-%d@v1" % i, "clusterID": "c1",
             "fsName": "fs", "bytes": (100 + i) * GIB * percent // 100, "totalBytes": (100 + i) * GIB,
             "percent": percent} for i in range(datasets)]
    return {"status": {"heartbeatTime": now, "version": "0.1.0", "warm": "0/%d" % datasets, "datasets": held,
                       "cache": {"disk": "ok", "bytes": GIB, "maxBytes": GIB, "freeBytes": GIB}}}


def main():
    nodes, datasets, seconds = (int(a) for a in sys.argv[2:5])
    percent = int(sys.argv[5]) if len(sys.argv) > 5 else 60
    api, writes, longest = connect(sys.argv[1]), 0, 0
    begin = time.monotonic()
    for beat in range(seconds // BEAT + 1):
        for i in range(nodes):
            due = begin + beat * BEAT + (i * BEAT / nodes if beat else 0)
            if due - begin > seconds:
                break
            time.sleep(max(0, due - time.monotonic()))
            name, start = "n%d" % (i + 1), time.monotonic()
            if beat == 0:
                request(api, "POST", "", {"apiVersion": "csi.hearth.dev/v1alpha1", "kind": "NodeCache",
                                          "metadata": {"name": name}}, "application/json")
            request(api, "PATCH", "/%s/status" % name, status(datasets, percent), "application/merge-patch+json")
            writes, longest = writes + 1, max(longest, time.monotonic() - start)
    print("%d writes, the longest %.0f ms" % (writes, longest * 1000))


main()
