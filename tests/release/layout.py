#!/usr/bin/env python3
"""layout.py OUT VERSION REPOSITORY SIGN KEY ARCHIVE...: one OCI image layout, the directory OUT, of images for several
architectures (OCI archives as tests/image/build leaves them), with an index over them and cosign's signatures. Prints the
index's digest.

A signature is an image of its own, as `cosign sign` makes it: its one layer is the signed text ("simple signing": which
digest this is, and of which repository), with the signature in an annotation; its tag is sha256-DIGEST.sig. Index and
images have one each, so that both a node's image and the whole can be verified in a registry the layout is copied to. That of
the index is marked the way `cosign save` marks it, by which `cosign verify --local-image` finds it.

SIGN KEY < TEXT is the program that signs (sign.c). Nothing here depends on time or place: the same archives, key and
repository make the same layout. ARCHIVE is read, not trusted: a blob that is not what its digest says is refused.
"""
import hashlib
import json
import os
import subprocess
import sys
import tarfile

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
SIGNED = "application/vnd.dev.cosign.simplesigning.v1+json"
KIND = "dev.cosignproject.cosign/"


def compact(value):
    return json.dumps(value, separators=(",", ":")).encode()


class Layout:
    def __init__(self, path):
        self.path, self.manifests = path, []
        os.makedirs(os.path.join(path, "blobs/sha256"))

    def add(self, data, media_type, **more):
        """Bytes as a blob; its descriptor."""
        name = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.path, "blobs/sha256", name), "wb") as file:
            file.write(data)
        return {"mediaType": media_type, "digest": "sha256:" + name, "size": len(data), **more}

    def name(self, descriptor, tag, kind=None):
        annotations = {"org.opencontainers.image.ref.name": tag, **({"kind": KIND + kind} if kind else {})}
        self.manifests.append({**descriptor, "annotations": annotations})

    def close(self):
        for name, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}),
                            ("index.json", {"schemaVersion": 2, "mediaType": INDEX, "manifests": self.manifests})):
            with open(os.path.join(self.path, name), "wb") as file:
                file.write(compact(value))


def blob(archive, descriptor):
    data = archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/", 1)).read()
    if "sha256:" + hashlib.sha256(data).hexdigest() != descriptor["digest"]:
        sys.exit(f"layout: {archive.name}: {descriptor['digest']} is not what it says; make the image again")
    return data


def image(layout, path):
    """The one image of an archive, with its blobs, as it stands in an index."""
    with tarfile.open(path) as archive:
        listed = json.load(archive.extractfile("index.json"))["manifests"]
        if len(listed) != 1 or listed[0]["mediaType"] != MANIFEST:
            sys.exit(f"layout: {path}: one image is wanted, and it has {[m['mediaType'] for m in listed]}")
        text = blob(archive, listed[0])
        manifest = json.loads(text)
        config = json.loads(blob(archive, manifest["config"]))
        for part in (manifest["config"], *manifest["layers"]):
            layout.add(blob(archive, part), part["mediaType"])
    platform = {"architecture": config["architecture"], "os": config["os"]}
    return layout.add(text, MANIFEST, platform=platform)


def sign(layout, descriptor, repository, signer, kind=None):
    text = compact({"critical": {"identity": {"docker-reference": repository},
                                 "image": {"docker-manifest-digest": descriptor["digest"]},
                                 "type": "cosign container image signature"}, "optional": None})
    signature = subprocess.run(signer, input=text, stdout=subprocess.PIPE, check=True).stdout.decode().strip()
    layer = layout.add(text, SIGNED, annotations={"dev.cosignproject.cosign/signature": signature})
    config = layout.add(compact({"architecture": "", "config": {}, "created": "0001-01-01T00:00:00Z", "os": "",
                                 "rootfs": {"type": "layers", "diff_ids": [layer["digest"]]}}), CONFIG)
    manifest = {"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": [layer]}
    layout.name(layout.add(compact(manifest), MANIFEST), descriptor["digest"].replace(":", "-") + ".sig", kind)


def main(out, version, repository, program, key, *archives):
    layout = Layout(out)
    images = [image(layout, path) for path in archives]
    index = layout.add(compact({"schemaVersion": 2, "mediaType": INDEX, "manifests": images}), INDEX)
    layout.name(index, version, "imageIndex")
    sign(layout, index, repository, [program, key], "sigs")
    for one in images:
        sign(layout, one, repository, [program, key])
    layout.close()
    print(index["digest"])


main(*sys.argv[1:])
