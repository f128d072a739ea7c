"""Creates pods over one connection, without keeping them, in turns of several kinds, and prints for each kind the
median and the 99th percentile in ms:

    pod_latency.py PKI-DIR PORT COUNT NAMESPACE/CLAIM...

An empty CLAIM is a pod without one. Whose certificate it shows is PKI-DIR/admin's.
"""
import http.client, json, ssl, sys, time

pki, port, count, kinds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4:]
context = ssl.create_default_context(cafile=pki + "/ca.crt")
context.load_cert_chain(pki + "/admin.crt", pki + "/admin.key")
connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=30)


def create(kind, number):
    namespace, claim = kind.split("/")
    volumes = [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}] if claim else []
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"latency-{number}"},
           "spec": {"containers": [{"name": "main", "image": "none"}], "volumes": volumes}}
    body = json.dumps(pod)
    begin = time.monotonic()
    connection.request("POST", f"/api/v1/namespaces/{namespace}/pods?dryRun=All", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    took = 1000 * (time.monotonic() - begin)
    if answer.status != 201:
        sys.exit(f"{answer.status}: {text[:300]}")
    return took


took = {kind: [] for kind in kinds}
for number in range(-min(10, count - 1), count):
    for kind in kinds:
        ms = create(kind, number + 1000)
        # The first are of connections being made.
        if number >= 0:
            took[kind].append(ms)
for kind in kinds:
    of = sorted(took[kind])
    print(f"{kind} {of[len(of) // 2]:.2f} {of[min(len(of) - 1, len(of) * 99 // 100)]:.2f}")
