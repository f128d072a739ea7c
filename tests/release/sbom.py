#!/usr/bin/env python3
"""sbom.py VERSION REVISION EPOCH ARCHIVE: what is in the image, an OCI archive, as SPDX 2.3 in JSON, on stdout: Hearth itself
and each Debian package by dpkg's own list in the image, with the source it was built from. Packages of which the image has
single files (the Dockerfile's xfsprogs) are listed by dpkg/status.d.

Licences are in the image, /usr/share/doc/PACKAGE/copyright, in words that cannot be told as SPDX expressions without
guessing; so they are NOASSERTION here. The same image makes the same document.
"""
import hashlib
import json
import re
import sys
import tarfile
from datetime import datetime, timezone
from urllib.parse import quote


def layers(archive):
    """The manifest's digest, the configuration, and the layers from the lowest up, as open tar files."""
    def blob(descriptor):
        return archive.extractfile("blobs/" + descriptor["digest"].replace(":", "/", 1))
    listed = json.load(archive.extractfile("index.json"))["manifests"][0]
    manifest = json.load(blob(listed))
    return listed["digest"], json.load(blob(manifest["config"])), (tarfile.open(fileobj=blob(layer)) for layer in manifest["layers"])


def files_of(opened):
    """Of each file that tells about packages what the uppermost layer says."""
    found = {}
    for layer in opened:
        for member in layer:
            name = member.name.removeprefix("./")
            if member.isfile() and (name in ("var/lib/dpkg/status", "usr/lib/os-release") or name.startswith("var/lib/dpkg/status.d/")):
                found[name] = layer.extractfile(member).read().decode()
    return found


def packages(text):
    for paragraph in text.split("\n\n"):
        fields = dict(re.findall(r"(?m)^([A-Za-z-]+): (.*)$", paragraph))
        if fields and fields.get("Status", "installed").split()[-1] == "installed":
            yield fields


def source_of(fields):
    """Name and version of the source: the package's own where the field says nothing else."""
    name, version = re.match(r"(\S+)(?: \((.*)\))?$", fields.get("Source", fields["Package"])).groups()
    return name, version or fields["Version"]


def described(fields, distribution):
    name, version, architecture = fields["Package"], fields["Version"], fields["Architecture"]
    source, source_version = source_of(fields)
    purl = f"pkg:deb/debian/{quote(name)}@{quote(version, safe='')}?arch={architecture}&distro={distribution}"
    return {
        "SPDXID": "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", name),
        "name": name,
        "versionInfo": version,
        "supplier": "Organization: Debian",
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "sourceInfo": f"built from the Debian source package {source} {source_version}",
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}],
    }


def main(version, revision, epoch, path):
    with tarfile.open(path) as archive:
        digest, config, opened = layers(archive)
        files = files_of(opened)
    release = dict(re.findall(r'(?m)^(\w+)="?([^"\n]*)"?$', files.get("usr/lib/os-release", "")))
    distribution = f"{release.get('ID', 'debian')}-{release.get('VERSION_ID') or release.get('VERSION_CODENAME', 'unknown')}"
    status = [files[name] for name in sorted(files) if "/dpkg/" in name]
    listed = sorted((p for text in status for p in packages(text)), key=lambda p: p["Package"])
    if not listed:
        sys.exit(f"sbom: {path}: dpkg lists no package in it; is it an image of Debian?")
    architecture = config["architecture"]
    image = {
        "SPDXID": "SPDXRef-Image",
        "name": f"hearth-{version}-{architecture}",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "primaryPackagePurpose": "CONTAINER",
        "checksums": [{"algorithm": "SHA256", "checksumValue": digest.removeprefix("sha256:")}],
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": "NOASSERTION",
        "copyrightText": "NOASSERTION",
    }
    hearth = {
        "SPDXID": "SPDXRef-Hearth",
        "name": "hearth",
        "versionInfo": version,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False,
        "sourceInfo": f"git commit {revision}",
        "licenseConcluded": "Apache-2.0",
        "licenseDeclared": "Apache-2.0",
        "copyrightText": "NOASSERTION",
    }
    parts = [hearth, *(described(p, distribution) for p in listed)]
    ids = [p["SPDXID"] for p in parts]
    if len(set(ids)) != len(ids):
        sys.exit(f"sbom: {path}: a package is listed twice: {sorted(i for i in set(ids) if ids.count(i) > 1)}")
    document = {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": image["name"],
        "documentNamespace": f"https://csi.hearth.dev/spdx/{image['name']}-{hashlib.sha256((digest + revision).encode()).hexdigest()}",
        "creationInfo": {
            "created": datetime.fromtimestamp(int(epoch), timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: hearth-release-{version}"],
        },
        "packages": [image, *parts],
        "relationships": [
            {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES", "relatedSpdxElement": "SPDXRef-Image"},
            *({"spdxElementId": "SPDXRef-Image", "relationshipType": "CONTAINS", "relatedSpdxElement": p["SPDXID"]} for p in parts),
        ],
    }
    json.dump(document, sys.stdout, indent=1)
    print()


main(*sys.argv[1:])
