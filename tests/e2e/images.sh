# Sourced after kubelets.sh: images as a registry would have them, under the names that the chart and the examples give.
#
#   image_on_nodes NAME TAR           on every node there is
#   image_named NAME TAR              what `make image` has left, by another name, to stdout
#   sidecar_images                    what the chart's values name, of the sidecars that tests/e2e/build has made
#   example_images                    those of deploy/examples: Python and busybox of this machine, kubectl
#   suite_images                      those of Kubernetes' storage tests, of what this machine and suite/build have
#
# Nothing is pulled.

image_on_nodes() { # NAME TAR
    local node
    for node in "${NODES[@]}"; do
        in_node "$node" ctr -n k8s.io images import "$2" >>"$TMP/log/ctr.log" 2>&1 || die "no image $1: $(tail -n 2 "$TMP/log/ctr.log")"
    done
}
image_named() { # NAME TAR
    local dir=$TMP/nodes/images/named
    mkdir "$dir" && tar -xf "$2" -C "$dir" &&
        jq -c --arg name "$1" '.manifests[0].annotations = {"io.containerd.image.name": $name}' "$dir/index.json" >"$dir/index" &&
        mv "$dir/index" "$dir/index.json" && tar -C "$dir" -cf - . && rm -r "$dir"
}
image_made() { # NAME FILE=PATH... -- COMMAND...
    "$TOP/tests/e2e/image" "$@" >"$TMP/nodes/images/one.tar" && image_on_nodes "$1" "$TMP/nodes/images/one.tar" || die "no image $1"
    rm -f "$TMP/nodes/images/one.tar"
}
sidecar_images() {
    local name file
    for name in $("$BUILD/helm/helm" template hearth "$TOP/charts/hearth" | sed -nE 's|^ *image: ([^ ]*/sig-storage/.*)$|\1|p'); do
        file=$(basename "${name%:*}")
        image_made "$name" "$KUBE/$file=/$file" -- "/$file"
    done
}
example_images() {
    local python file files
    python=/usr/bin/$(readlink /usr/bin/python3)
    mapfile -t files < <(ldd "$python" "/usr/lib/$(basename "$python")"/lib-dynload/*.so | grep -oE '/[^ ]+\.so[^ ]*' | grep -v : | sort -u | sed 's/.*/&=&/')
    image_made docker.io/library/python:3.13-slim "$python=/usr/bin/python3" "$(type -P busybox)=/bin/sh" \
        "/usr/lib/$(basename "$python")=/usr/lib/$(basename "$python")" "${files[@]}" -- /usr/bin/python3
    image_made docker.io/library/busybox:1.37 "$(type -P busybox)=/bin/sh" -- /bin/sh
    image_made registry.k8s.io/kubectl:v1.34.0 "$KUBE/kubectl=/bin/kubectl" -- /bin/kubectl
}
# Of nginx the tests run the shell alone. Of glibc-dns-testing they want GNU's dd, instead of which busybox's shell would
# run its own.
suite_images() {
    local e2e=registry.k8s.io/e2e-test-images busybox name small=() gnu=() files
    busybox=$(type -P busybox)
    for name in $(busybox --list | grep -vxE 'sh|busybox'); do
        small+=("link:sh=/bin/$name")
        [ "$name" = dd ] || gnu+=("link:busybox=/bin/$name")
    done
    for name in busybox:1.37.0-1 nginx:1.15-4; do image_made $e2e/$name "$busybox=/bin/sh" "${small[@]}" -- /bin/sh; done
    image_made $e2e/agnhost:2.63.0 "$busybox=/bin/sh" "${small[@]}" "$SUITE/agnhost=/agnhost" -- /agnhost
    mapfile -t files < <(ldd /bin/dash /bin/dd | grep -oE '/[^ ]+\.so[^ ]*' | grep -v : | sort -u | sed 's/.*/&=&/')
    image_made $e2e/glibc-dns-testing:2.0.0 /bin/dash=/bin/sh /bin/dd=/bin/dd "$busybox=/bin/busybox" "${gnu[@]}" "${files[@]}" -- /bin/sh
}
