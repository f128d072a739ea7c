# One image for every role: hearth-csi (controller and node), hearthd, hearthctl.
#
#   docker build -t hearth .
#   make image                  without a registry and without a daemon, as root (tests/image/build)
#
# The Ceph client libraries are those of Debian forky, which becomes Debian 14 (Ceph 20.2.4): Debian 13's Ceph 18 gets no
# more fixes and does not know keys of type aes256k. They speak to clusters from Nautilus on. With a base and a mirror of
# one date, and SOURCE_DATE_EPOCH set, the layers are the same whoever builds.

ARG BASE=debian:forky-slim

# What the programs are built in. With CROSS=aarch64-linux-gnu it is of this machine's architecture, BASE of the other, and only
# the packages below run under emulation.
ARG BUILD_BASE=${BASE}

FROM ${BUILD_BASE} AS build
ARG CROSS
RUN apt-get update && apt-get install -y --no-install-recommends make
WORKDIR /src
COPY tests/tools/install-deps tests/tools/install-deps
RUN tests/tools/install-deps build
COPY . .
ARG VERSION
# Names of functions stay, for who attaches a debugger; there are no core dumps (common/no_cores.h).
RUN make ${VERSION:+VERSION="$VERSION"} \
    && make ${VERSION:+VERSION="$VERSION"} install DESTDIR=/out PREFIX=/usr \
    && "${CROSS:+$CROSS-}strip" --strip-debug /out/usr/bin/hearthctl /out/usr/sbin/hearth-csi /out/usr/sbin/hearthd /out/usr/sbin/hearth-keeper \
    && rm -r /out/usr/share/man
# Of xfsprogs what the node plugin runs. The package as a whole brings Python and ICU for xfs_scrub, 65 MB.
WORKDIR /xfs
RUN apt-get download "xfsprogs:$(dpkg --print-foreign-architectures | grep . || dpkg --print-architecture)" && dpkg-deb -x xfsprogs_*.deb . \
    && install -D -t /out/usr/sbin usr/sbin/mkfs.xfs usr/sbin/xfs_repair usr/sbin/xfs_growfs \
    && install -D -m 644 -t /out/usr/share/doc/xfsprogs usr/share/doc/xfsprogs/copyright \
    # So that whoever looks for what is in the image, the SBOM first, finds it though dpkg did not install it.
    && mkdir -p /out/var/lib/dpkg/status.d && dpkg-deb -f xfsprogs_*.deb >/out/var/lib/dpkg/status.d/xfsprogs

FROM ${BASE}
# Libraries by the names the linker noted, then two for xfsprogs; e2fsprogs for volumes; a dependency of librados makes users
# at its installation, for which all of systemd (23 MB) would come. ca-certificates are not needed: the API server's authority
# comes with the service account.
RUN apt-get update && apt-get install -y --no-install-recommends \
        libcephfs2 librados2 librbd1 libfuse3-4 libnghttp2-14 libprotobuf-c1 libjansson4 \
        libglib2.0-0t64 liblmdb0 libxxhash0 libmicrohttpd12t64 libgnutls30t64 libcurl4t64 libyaml-0-2 libblkid1 \
        e2fsprogs libinih1 liburcu8t64 systemd-standalone-sysusers \
    # Logs and caches differ from build to build.
    && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
COPY --from=build /out/usr /usr
COPY --from=build /out/var /var
COPY LICENSE /usr/share/doc/hearth/LICENSE
ARG VERSION
ARG REVISION
LABEL org.opencontainers.image.title="Hearth" \
      org.opencontainers.image.description="Kubernetes CSI driver for Ceph with a cache on each node's NVMe" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}"
ENTRYPOINT ["hearth-csi"]
