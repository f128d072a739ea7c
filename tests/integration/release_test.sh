#!/bin/bash
# A release of two small images: made twice it is the same, docs/verify.md verifies it, and a changed byte is refused
# wherever it is. Of real images the same: make check-release. No Ceph is needed.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/../documents/documented.sh"
init
reader_begin
export SIGN=$BUILD/tools/sign VERSION=0.1.0 SOURCE_DATE_EPOCH=1700000000 REVISION=0123abc IMAGE=registry.example/hearth KEY=$TMP/hearth.key
documented docs/verify.md 'openssl ecparam'
mv "$READER/hearth.key" "$KEY"

# ---- the signature follows from key and text: RFC 6979, A.2.5, P-256 with SHA-256
python3 -c 'import sys; sys.stdout.buffer.write(bytes.fromhex("30310201010420C9AFA9D845BA75166B5C215767B1D6934E50C3DB36E89B127B8A622B120F6721a00a06082a8648ce3d030107"))' |
    openssl ec -inform DER -out "$TMP/rfc.key" 2>/dev/null
numbers() { "$SIGN" "$TMP/rfc.key" | base64 -d | openssl asn1parse -inform DER | sed -n 's/.*INTEGER *://p' | tr '\n' ' '; }
same signatures_are_those_of_rfc_6979 "$(printf sample | numbers)" \
    'EFD48B2AACB6A8FD1140DD9CD45E81D69D2C877B56AAF991C34D0EA84EAF3716 F7CB1C942D657C41D436C7A1B6E29F65F3E900DBB9AFF4064DC4AB2F843ACDA8 '
openssl ecparam -name secp384r1 -genkey -noout -out "$TMP/other.key"
same a_key_of_another_curve_is_refused "$("$SIGN" "$TMP/other.key" </dev/null 2>&1 | grep -c 'no key on the curve P-256')" 1

# ---- two small images
small() { # ARCH
    python3 - "$TMP/$1.tar" "$1" <<'END'
import gzip, hashlib, io, json, sys, tarfile
path, arch = sys.argv[1:]
STATUS = f"""Package: libcephfs2
Status: install ok installed
Architecture: {arch}
Source: ceph
Version: 20.2.4-1+b2

Package: gone
Status: deinstall ok config-files
Architecture: {arch}
Version: 1
"""
def put(tar, name, data):
    info = tarfile.TarInfo(name)
    info.size = len(data)
    tar.addfile(info, io.BytesIO(data))
def tar_of(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files:
            put(tar, name, data)
    return out.getvalue()
blobs = {}
def blob(data, kind):
    blobs[hashlib.sha256(data).hexdigest()] = data
    return {"mediaType": "application/vnd.oci.image." + kind, "digest": "sha256:" + hashlib.sha256(data).hexdigest(), "size": len(data)}
xfs = f"Package: xfsprogs\nSource: xfsprogs (6.13.0-2)\nVersion: 6.13.0-2+b1\nArchitecture: {arch}\n".encode()
layers = [tar_of([("var/lib/dpkg/status", b"Package: old\nVersion: 0\n"), ("usr/lib/os-release", b'ID=debian\nVERSION_ID="13"\n')]),
          tar_of([("./var/lib/dpkg/status", STATUS.encode()), ("var/lib/dpkg/status.d/xfsprogs", xfs)])]
layers = [blob(gzip.compress(layer, mtime=0), "layer.v1.tar+gzip") for layer in layers]
config = blob(json.dumps({"architecture": arch, "os": "linux"}).encode(), "config.v1+json")
manifest = blob(json.dumps({"schemaVersion": 2, "config": config, "layers": layers}).encode(), "manifest.v1+json")
index = json.dumps({"schemaVersion": 2, "manifests": [manifest]}).encode()
with tarfile.open(path, "w") as tar:
    for name, data in [("index.json", index), *((f"blobs/sha256/{name}", data) for name, data in blobs.items())]:
        put(tar, name, data)
END
}
small amd64
small arm64
export ARCHIVES="$TMP/amd64.tar $TMP/arm64.tar"
made() { "$TOP/tests/release/build" "$TMP/$1"; } # FOLDER
verified() { "$TOP/tests/release/verify" "$1" "$TMP/one/hearth.pub"; }

check a_release_is_made made one
check and_again env TMPDIR=/var/tmp "$TOP/tests/release/build" "$TMP/two"
rmdir "$TMP"/{one,two}/work
check it_is_the_same_to_the_bit diff -r "$TMP/one" "$TMP/two"
check all_of_it_is_signed verified "$TMP/one"
mkdir "$TMP/layout" && tar -xf "$TMP/one/hearth-0.1.0.oci.tar" -C "$TMP/layout"
same an_image_for_each_architecture "$(jq -c '[.manifests[].platform.architecture]' "$TMP/layout/blobs/$(jq -r '.manifests[0].digest' "$TMP/layout/index.json" | tr : /)")" '["amd64","arm64"]'
KEY=$TMP/none made three >"$TMP/three.log" 2>&1
same without_a_key_it_says_how_to_make_one "$(grep -c 'openssl ecparam -name prime256v1' "$TMP/three.log")" 1

# ---- what is in it
spdx=$TMP/one/hearth-0.1.0-arm64.spdx.json
same the_sbom_has_the_packages_and_their_sources "$(jq -r '.packages[2:][] | .name + " " + .versionInfo + ": " + .sourceInfo' "$spdx")" \
    "libcephfs2 20.2.4-1+b2: built from the Debian source package ceph 20.2.4-1+b2
xfsprogs 6.13.0-2+b1: built from the Debian source package xfsprogs 6.13.0-2"
same and_names_them_as_scanners_do "$(jq -r '.packages[2].externalRefs[0].referenceLocator' "$spdx")" 'pkg:deb/debian/libcephfs2@20.2.4-1%2Bb2?arch=arm64&distro=debian-13'
same of_that_commit "$(jq -r '.packages[1].sourceInfo' "$spdx")" 'git commit 0123abc'
mkdir -p "$TMP"/tree/{tests,deploy} && cp -r "$TOP"/{Makefile,LICENSE,charts} "$TMP/tree/" && cp -r "$TOP/tests/release" "$TMP/tree/tests/"
cp -r "$TOP/deploy/kubectl" "$TMP/tree/deploy/"
in_tree() { git -C "$TMP/tree" -c user.name=Test -c user.email=test@example.com "$@"; }
in_tree init -q && in_tree add . && in_tree commit -q -m tree && rm "$TMP/tree/LICENSE"
REVISION= "$TMP/tree/tests/release/build" "$TMP/dirty" >/dev/null
same a_tree_that_is_not_the_commit_is_told "$(jq -r '.packages[1].sourceInfo' "$TMP/dirty/hearth-0.1.0-arm64.spdx.json")" "git commit $(in_tree rev-parse HEAD)-dirty"
tar -xOzf "$TMP/one/hearth-0.1.0.tgz" hearth/values.yaml >"$TMP/values.yaml"
same the_chart_says_where_the_image_will_be "$(sed -n '/^image:/,/^[^ ]/s/^  repository: //p' "$TMP/values.yaml")" "$IMAGE"

# ---- as the document says
cp "$TMP"/one/* "$READER/"
documented_block docs/verify.md 'With openssl'
documented docs/verify.md 'openssl pkey'

# ---- a changed byte, anywhere
flip() { # FILE: its middle byte
    python3 - "$1" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[1], "wb").write(data)
END
}
for file in hearth-0.1.0.oci.tar hearth-0.1.0.tgz hearth-0.1.0-amd64.spdx.json SHA256SUMS hearth-0.1.0.tgz.sig; do
    rm -rf "$TMP/bad" && cp -r "$TMP/one" "$TMP/bad"
    flip "$TMP/bad/$file"
    same "a_changed_byte_of_$(tr -c "[:alnum:]\n" _ <<<"$file")_is_refused" "$(verified "$TMP/bad" >/dev/null 2>&1 && echo taken)" ""
done
openssl ecparam -name prime256v1 -genkey -noout -out "$TMP/thief.key"
KEY=$TMP/thief.key made stolen >/dev/null
same so_is_a_release_by_another_key "$(verified "$TMP/stolen" >/dev/null 2>&1 && echo taken)" ""
# Files that are right, and an image in them whose signature is another's.
python3 - "$TMP/amd64.tar" <<'END'
import sys
data = open(sys.argv[1], "rb").read()
open(sys.argv[1], "wb").write(data.replace(b"20.2.4-1+b2", b"20.2.4-1+b3").replace(b'"linux"', b'"linus"'))
END
same an_image_that_is_not_its_digest_is_not_released "$(made wrong 2>&1 | grep -c 'is not what it says')" 1
