#!/bin/sh
# certificate.sh [NAMESPACE]: creates a certificate for the webhook (webhook.yaml), signed by an authority that is created
# with it and not stored. It writes the Secret hearth-webhook-tls in NAMESPACE (hearth), and the caBundle of the
# MutatingWebhookConfiguration. When it runs again, it replaces both. Running controllers use the new one within a minute or
# two, when kubelet has updated the file. Certificates of the old authority stay trusted until the run after that.
#
#   DAYS=3650             how long it is valid
#   SAN=                  more names, such as IP:10.0.0.1
#   KUBECTL="kubectl"     the command, with its user and cluster
#
# Needs openssl 3 and kubectl. With cert-manager, use its Certificate and CA injector instead.

set -eu
case ${1:-} in
-*)
    sed -n '2,/^$/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
namespace=${1:-hearth}
service=hearth-webhook.$namespace.svc
kubectl=${KUBECTL:-kubectl}
configuration=dataset-affinity.csi.hearth.dev

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
umask 077
# The system's configuration would add extensions of its own.
printf '[req]\ndistinguished_name = none\n[none]\n' >"$dir/config"
make() { # NAME SUBJECT OPTIONS
    name=$1 subject=$2
    shift 2
    openssl req -x509 -config "$dir/config" -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes \
        -days "${DAYS:-3650}" -subj "$subject" -keyout "$dir/$name.key" -out "$dir/$name.crt" "$@" 2>"$dir/log" || {
        cat "$dir/log" >&2
        exit 1
    }
}
make ca /CN=hearth-webhook-ca -addext basicConstraints=critical,CA:true -addext keyUsage=critical,keyCertSign
make tls "/CN=$service" -CA "$dir/ca.crt" -CAkey "$dir/ca.key" -addext basicConstraints=critical,CA:false \
    -addext extendedKeyUsage=serverAuth -addext "subjectAltName=DNS:$service,DNS:$service.cluster.local${SAN:+,$SAN}"

# First the new authority is trusted beside the last one, so that either certificate of a controller is valid.
old=$($kubectl get mutatingwebhookconfiguration "$configuration" -o 'jsonpath={.webhooks[0].clientConfig.caBundle}') || {
    echo "apply webhook.yaml first, then run this again" >&2
    exit 1
}
cp "$dir/ca.crt" "$dir/bundle"
[ -z "$old" ] || echo "$old" | base64 -d | openssl x509 >>"$dir/bundle"
$kubectl patch mutatingwebhookconfiguration "$configuration" --type=json -p "[{\"op\": \"add\",
    \"path\": \"/webhooks/0/clientConfig/caBundle\", \"value\": \"$(base64 <"$dir/bundle" | tr -d '\n')\"}]" >/dev/null
echo "MutatingWebhookConfiguration $configuration: trusts its authority"
# Server-side apply: client-side apply leaves a copy of the key in an annotation.
$kubectl create secret tls hearth-webhook-tls -n "$namespace" --cert="$dir/tls.crt" --key="$dir/tls.key" \
    --dry-run=client -o yaml | $kubectl apply --server-side --force-conflicts --field-manager=certificate.sh -f - >/dev/null
echo "Secret $namespace/hearth-webhook-tls: valid for ${DAYS:-3650} days, for $service"
