# One image for every role: hearth-csi (controller and node), hearthd, hearthctl.
#
#   docker build -t hearth .
#
# The Ceph client libraries are Debian 13's (Ceph 18), which speak to clusters from Nautilus on.

FROM debian:trixie-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY tests/tools/install-deps tests/tools/install-deps
RUN tests/tools/install-deps build
COPY . .
RUN make OPT="-O2 -g" && make install DESTDIR=/out PREFIX=/usr

FROM debian:trixie-slim
# Libraries by the names the linker noted; mount, mkfs and fsck for volumes.
RUN apt-get update && apt-get install -y --no-install-recommends \
        libcephfs2 librados2 librbd1 libfuse3-4 libnghttp2-14 libprotobuf-c1 libjansson4 \
        libglib2.0-0t64 liblmdb0 libxxhash0 libmicrohttpd12t64 libcurl4t64 \
        libyaml-0-2 libblkid1 mount e2fsprogs xfsprogs \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /out/usr /usr
COPY LICENSE /usr/share/doc/hearth/LICENSE
# Every library is there.
RUN hearth-csi --version && hearthd --version && hearthctl --help >/dev/null
ENTRYPOINT ["hearth-csi"]
