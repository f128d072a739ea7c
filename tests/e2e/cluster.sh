# Sourced after tests/integration/lib.sh: a real Kubernetes control plane on 127.0.0.1 - etcd, API server,
# scheduler, controller manager - under $TMP, gone with it. Nodes are objects (objects.sh), whose pods are scheduled
# and never run, or have a kubelet (kubelets.sh).
#
#   cluster_up [GATES]        GATES as "StorageCapacityScoring=true"; ready when it returns
#   cluster_down              at the end it is called by itself
#   k ARGS...                 kubectl as administrator
#   helm_needed               $BUILD/helm/helm is there when it returns; else it is skipped and says why
#   apiserver_stop [SIGNAL]; apiserver_start; apiserver_restart [SIGNAL]    with the data there was
#   scheduler_restart [GATES] with other gates, for the same nodes and objects
#   kubeconfig_for NAMESPACE ACCOUNT FILE [NODE]    who holds it is that ServiceAccount, on that node
#   within SECONDS COMMAND...                       until it succeeds; prints what it said last if it does not
#   settles NAME SECONDS WANTED COMMAND...          pass when the command's output becomes WANTED; else
#                                                   fail with what it saw last
#   refused NAME PATTERN COMMAND...    pass when it fails with a reason that matches
#
# Components talk TLS with certificates of a CA of the cluster's own, and have the rights Kubernetes gives
# them (Node, RBAC). With SERVICE_RANGE the API server is at that range's first address, API_ADDRESS, where those look for
# it who are in pods: network.sh. SCHEDULER_V is how much the scheduler logs (10: every score), in
# $TMP/log/kube-scheduler.log.

KUBE=${E2E_BIN:-$BUILD/e2e/bin}
PKI=
API_ADDRESS=127.0.0.1

k() { "$KUBE/kubectl" --kubeconfig="$PKI/admin.conf" --request-timeout="${K_TIMEOUT:-30}s" "$@"; }

# wait_for counts tries; a call of kubectl takes longer than its pauses.
within() { # SECONDS COMMAND...
    local until=$((SECONDS + $1)) limit=$1 saw
    shift
    until saw=$("$@" 2>&1); do
        [ $SECONDS -lt $until ] || {
            echo "after $limit s: $saw"
            return 1
        }
        sleep 0.1
    done
}

settles() { # NAME SECONDS WANTED COMMAND...
    local name=$1 until=$((SECONDS + $2)) limit=$2 wanted=$3 saw
    shift 3
    while :; do
        saw=$("$@" 2>&1)
        [ "$saw" != "$wanted" ] || break
        if [ $SECONDS -ge $until ]; then
            fail "$name" "after $limit s it was \"$saw\", wanted \"$wanted\""
            return 1
        fi
        sleep 0.2
    done
    pass "$name"
}

refused() { # NAME PATTERN COMMAND...
    local name=$1 pattern=$2 out
    shift 2
    if out=$("$@" 2>&1); then
        fail "$name" "it was allowed: $out"
    elif ! grep -q -- "$pattern" <<<"$out"; then
        fail "$name" "$out"
    else
        pass "$name"
    fi
}

free_port() { # below the range the kernel takes ports from; remembered, so that none is given twice
    local try hex
    for try in $(seq 200); do
        FREE_PORT=$((10000 + $(od -An -N2 -tu2 /dev/urandom) % 2000))
        hex=$(printf ':%04X ' $FREE_PORT)
        case " ${PORTS_TAKEN:-} " in *" $FREE_PORT "*) continue ;; esac
        grep -qs -- "$hex" /proc/net/tcp /proc/net/tcp6 && continue
        PORTS_TAKEN="${PORTS_TAKEN:-} $FREE_PORT"
        return 0
    done
    die "found no free port on 127.0.0.1"
}

helm_needed() {
    local reason
    reason=$("$TOP/tests/chart/build" "$BUILD/helm")
    case $? in
    0) ;;
    77)
        skip all "$reason"
        exit 0
        ;;
    *) die "helm cannot be built" ;;
    esac
}

# ---- who is who

# The system's configuration would add extensions of its own.
key_and_certificate() { # FILE SUBJECT [OPTIONS]
    local file=$1 subject=$2
    shift 2
    openssl req -x509 -config <(printf '[req]\ndistinguished_name = none\n[none]\n') -newkey ec \
        -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 30 -subj "$subject" -keyout "$PKI/$file.key" \
        -out "$PKI/$file.crt" "$@" 2>>"$TMP/log/openssl.log" || die "openssl makes no certificate $file"
}
certificate() { # FILE SUBJECT [NAMES]: of the CA's, for clients and servers
    key_and_certificate "$1" "$2" -CA "$PKI/ca.crt" -CAkey "$PKI/ca.key" -addext "basicConstraints=critical,CA:false" \
        -addext "extendedKeyUsage=clientAuth,serverAuth" ${3:+-addext "subjectAltName=$3"}
}

kubeconfig() { # FILE USER-JSON
    jq -n --arg server "https://$API_ADDRESS:$API_PORT" --rawfile ca "$PKI/ca.crt" --argjson user "$2" '{
        apiVersion: "v1", kind: "Config", "current-context": "e2e",
        clusters: [{name: "e2e", cluster: {server: $server, "certificate-authority-data": ($ca | @base64)}}],
        contexts: [{name: "e2e", context: {cluster: "e2e", user: "e2e"}}],
        users: [{name: "e2e", user: $user}]}' >"$1"
}

component_config() { # FILE SUBJECT
    certificate "$1" "$2"
    kubeconfig "$PKI/$1.conf" "$(jq -n --arg f "$PKI/$1" '{"client-certificate": ($f + ".crt"), "client-key": ($f + ".key")}')"
}

make_pki() {
    PKI=$TMP/pki
    mkdir -p -m 700 "$PKI"
    (
        umask 077
        key_and_certificate ca /CN=e2e -addext "basicConstraints=critical,CA:true" -addext "keyUsage=critical,keyCertSign"
        openssl ecparam -genkey -name prime256v1 -noout -out "$PKI/accounts.key" &&
            openssl ec -in "$PKI/accounts.key" -pubout -out "$PKI/accounts.pub" 2>>"$TMP/log/openssl.log" ||
            die "openssl makes no keys"
        certificate etcd /CN=etcd IP:127.0.0.1
        certificate apiserver /CN=kube-apiserver "IP:$API_ADDRESS,DNS:localhost,DNS:kubernetes.default.svc"
        certificate kubelet-client /O=system:masters/CN=kube-apiserver
        component_config admin /O=system:masters/CN=admin
        component_config scheduler /CN=system:kube-scheduler
        component_config controllers /CN=system:kube-controller-manager
    ) || exit 1
}

# The token names the node as those do that kubelet gets for pods: authentication.kubernetes.io/node-name.
kubeconfig_for() { # NAMESPACE ACCOUNT FILE [NODE]
    local token bound=()
    [ -z "${4:-}" ] || bound=(--bound-object-kind=Node --bound-object-name="$4" --bound-object-uid="$(k get node "$4" -o 'jsonpath={.metadata.uid}')")
    token=$(k create token "$2" -n "$1" --duration=2h "${bound[@]}") || return 1
    (umask 077 && kubeconfig "$3" "$(E2E_TOKEN=$token jq -n '{token: env.E2E_TOKEN}')")
}

# ---- the components

start_etcd() {
    local data=$TMP/etcd peer
    mkdir -p -m 700 "$data"
    # It waits for the disk at each write, and nothing of it has to last.
    mount -t tmpfs -o size=2g,mode=700 e2e-etcd "$data" 2>/dev/null
    free_port
    ETCD_PORT=$FREE_PORT
    free_port
    peer=$FREE_PORT
    spawn etcd etcd --name e2e --data-dir="$data/data" --logger=zap --log-level=warn --quota-backend-bytes=1900000000 \
        --listen-client-urls="https://127.0.0.1:$ETCD_PORT" --advertise-client-urls="https://127.0.0.1:$ETCD_PORT" \
        --cert-file="$PKI/etcd.crt" --key-file="$PKI/etcd.key" --client-cert-auth --trusted-ca-file="$PKI/ca.crt" \
        --listen-peer-urls="http://127.0.0.1:$peer" --initial-advertise-peer-urls="http://127.0.0.1:$peer" \
        --initial-cluster="e2e=http://127.0.0.1:$peer"
}

apiserver_spawn() {
    # Without a limit to watches, it ends a minute after TERM.
    # Its own address as an endpoint of the Service "kubernetes" is nobody's concern here, and may not be 127.0.0.1.
    spawn kube-apiserver "$KUBE/kube-apiserver" --etcd-servers="https://127.0.0.1:$ETCD_PORT" \
        --etcd-cafile="$PKI/ca.crt" --etcd-certfile="$PKI/etcd.crt" --etcd-keyfile="$PKI/etcd.key" \
        --bind-address="$API_ADDRESS" --advertise-address="$API_ADDRESS" --secure-port="$API_PORT" --endpoint-reconciler-type=none \
        --tls-cert-file="$PKI/apiserver.crt" --tls-private-key-file="$PKI/apiserver.key" --client-ca-file="$PKI/ca.crt" \
        --service-account-issuer=https://kubernetes.default.svc --service-account-key-file="$PKI/accounts.pub" \
        --service-account-signing-key-file="$PKI/accounts.key" --service-cluster-ip-range="${SERVICE_RANGE:-10.0.0.0/24}" \
        --kubelet-client-certificate="$PKI/kubelet-client.crt" --kubelet-client-key="$PKI/kubelet-client.key" \
        --kubelet-preferred-address-types=InternalIP \
        --anonymous-auth=false --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction \
        --allow-privileged=true --shutdown-watch-termination-grace-period=1s ${GATES:+--feature-gates="$GATES"}
}
# On a busy machine it may end by itself when others do not answer it in time; a kubelet would start it again.
apiserver_start() {
    local try
    for try in 1 2 3; do
        apiserver_spawn
        within 60 apiserver_ready || die "the API server is not ready"
        ! running kube-apiserver || return 0
    done
    die "the API server ends: $(grep -v '^I' "$TMP/log/kube-apiserver.log" | tail -n 2)"
}
apiserver_ready() { ! running kube-apiserver || k get --raw /readyz; }
apiserver_stop() { end kube-apiserver "${1:-TERM}" 30; }
apiserver_restart() { # [SIGNAL]
    apiserver_stop "$@"
    apiserver_start
}

scheduler_start() { # [GATES]
    jq -n --arg f "$PKI/scheduler.conf" '{apiVersion: "kubescheduler.config.k8s.io/v1", kind: "KubeSchedulerConfiguration",
        clientConnection: {kubeconfig: $f, qps: 200, burst: 400}, leaderElection: {leaderElect: false},
        podInitialBackoffSeconds: 1, podMaxBackoffSeconds: 2}' >"$TMP/scheduler.json"
    spawn kube-scheduler "$KUBE/kube-scheduler" --config="$TMP/scheduler.json" --secure-port=0 -v="${SCHEDULER_V:-2}" \
        ${1:+--feature-gates="$1"}
}
scheduler_restart() { # [GATES]
    end kube-scheduler
    scheduler_start "$@"
}

controllers_start() {
    # Nobody renews the leases of nodes: for a day they count as alive.
    spawn kube-controller-manager "$KUBE/kube-controller-manager" --kubeconfig="$PKI/controllers.conf" --secure-port=0 \
        --leader-elect=false --use-service-account-credentials=true --service-account-private-key-file="$PKI/accounts.key" \
        --root-ca-file="$PKI/ca.crt" --node-monitor-grace-period=24h --kube-api-qps=200 --kube-api-burst=400 \
        ${GATES:+--feature-gates="$GATES"}
}

cluster_up() { # [GATES]
    GATES=${1:-}
    [ -x "$KUBE/kube" ] || die "there is no Kubernetes in $KUBE; tests/e2e/build makes it"
    type -P etcd >/dev/null || die "there is no etcd; tests/tools/install-deps e2e installs it"
    free_port
    API_PORT=$FREE_PORT
    [ -z "${SERVICE_RANGE:-}" ] || API_PORT=443 # which is the Service's
    make_pki
    at_exit cluster_down
    start_etcd
    apiserver_start
    scheduler_start "$GATES"
    controllers_start
    # Pods are refused in a namespace without it.
    within 60 k get serviceaccount default || die "the controller manager makes no ServiceAccount"
}

# Nothing of it is wanted any more, so nobody is asked to end in order.
cluster_down() {
    local name
    for name in kube-scheduler kube-controller-manager kube-apiserver etcd; do end "$name" KILL; done
    umount "$TMP/etcd" 2>/dev/null
}
