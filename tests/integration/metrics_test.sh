#!/bin/bash
# /metrics of the three programs: well-formed, and with the numbers of what was done.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
port() { # one that is free
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
metric() { # PROGRAM [NAME [LABEL=VALUE]...]
    "$TOP/tests/integration/openmetrics.py" "http://127.0.0.1:${METRICS[$1]}/metrics" "${@:2}" 2>&1
}
declare -A METRICS=([controller]=$(port) [hearthd]=$(port) [node]=$(port))
start_controller --secret-dir="$TMP/own" --metrics-address=127.0.0.1:${METRICS[controller]}
start_hearthd --metrics-address=127.0.0.1:${METRICS[hearthd]}
start_node --metrics-address=127.0.0.1:${METRICS[node]}
well_formed() { metric "$1" | grep -q 'families, [1-9][0-9]* samples$'; }
for program in controller node hearthd; do check "${program}s_are_well_formed" well_formed $program; done
same it_is_healthy "$(python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode().strip())' "http://127.0.0.1:${METRICS[hearthd]}/healthz")" ok
undocumented() { # PROGRAM
    python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode())' "http://127.0.0.1:${METRICS[$1]}/metrics" |
        awk '$1 == "#" && $2 == "TYPE" { print $3 }' | while read -r name; do grep -qE "^\\| \`$name(_total|_info)?\` \\|" "$TOP/docs/metrics.md" || echo "$name"; done
}
for program in controller node hearthd; do same "docs_metrics_has_all_of_the_$program" "$(undocumented $program)" ""; done
same the_version_is_told "$(metric node hearth_csi_build_info role=node)" 1

# ---- a dataset of 6 MiB
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_MULTI_WRITER"}}'
K8S=csi.storage.k8s.io
create_volume "pvc-m-$$" 1073741824 "{\"$K8S/pv/name\": \"pvc-m\", \"$K8S/pvc/name\": \"data\", \"$K8S/pvc/namespace\": \"team\"}" ||
    die "CreateVolume: $(said)"
SOURCE_ID=$VOLUME_ID
at_exit 'VOLUME_ID=$SOURCE_ID delete_volume'
stage && publish || die "$(said)"
for i in 1 2 3; do head -c $((2 << 20)) /dev/urandom >"$TARGET/f$i"; done
sync -f "$TARGET"
same what_was_written_is_counted "$(metric hearthd hearth_volume_written_bytes_total layer=live)" $((6 << 20))
same by_the_name_of_its_claim "$(metric hearthd hearth_volume_written_bytes_total name=team/data)" $((6 << 20))
case $(hearthctl status) in *"
team/data "*) pass as_is_its_row_in_status ;; *) fail as_is_its_row_in_status "$(hearthctl status)" ;; esac
drop_page_cache
cat "$TARGET"/f* >/dev/null
read_all() { metric hearthd hearth_volume_read_bytes_total "volume=$SOURCE_ID"; }
wait_for 50 eval '[ "$(read_all)" -ge '$((6 << 20))' ]'
[ "$(read_all)" -ge $((6 << 20)) ] && pass what_was_read_is_counted || fail what_was_read_is_counted "$(read_all)"
[ "$(metric hearthd hearth_volume_misses_total "volume=$SOURCE_ID")" -ge 3 ] && pass misses_are_counted || fail misses_are_counted "$(metric hearthd hearth_volume_misses_total)"
drop_page_cache
cat "$TARGET"/f* >/dev/null
[ "$(metric hearthd hearth_volume_hits_total "volume=$SOURCE_ID")" -ge 3 ] && pass hits_are_counted || fail hits_are_counted "$(metric hearthd hearth_volume_hits_total)"
same and_the_cache "$(metric hearthd hearth_cache_used_bytes)" "$(cache_stat bytes)"
same objects_that_were_fetched "$(metric hearthd hearth_cache_fills_total result=completed)" "$(cache_stat fillsCompleted)"
same and_how_long_each_took "$(metric hearthd hearth_cache_fill_seconds_count)" "$(cache_stat fillsCompleted)"
[ "$(metric hearthd hearth_ceph_read_seconds_count)" -ge 3 ] && pass reads_of_Ceph_are_timed || fail reads_of_Ceph_are_timed "$(metric hearthd hearth_ceph_read_seconds_count)"
held=$(cache_stat bytes)
hearthctl evict team/data >/dev/null
same evictions_by_their_reason "$(metric hearthd hearth_cache_evicted_bytes_total reason=asked) $(metric hearthd hearth_cache_evicted_bytes_total reason=room)" "$held 0"
unpublish && unstage || die "$(said)"

# ---- the disk: what others read of the cache's files is told apart from what hearthd reads
read_by() { # COMMAND...: bytes that the disk, and hearthd, read meanwhile
    local disk own
    disk=$(metric hearthd hearth_cache_disk_read_bytes_total) own=$(metric hearthd hearthd_disk_read_bytes_total)
    "$@"
    DISK=$(($(metric hearthd hearth_cache_disk_read_bytes_total) - disk)) OWN=$(($(metric hearthd hearthd_disk_read_bytes_total) - own))
}
if [ -e "/sys/dev/block/$(mountpoint -d "$(stat -c %m "$CACHE")")" ]; then
    head -c $((8 << 20)) /dev/urandom >"$CACHE.native"
    sync "$CACHE.native"
    drop_page_cache
    read_by cat "$CACHE.native" >/dev/null
    [ "$DISK" -ge $((8 << 20)) ] && [ "$OWN" -lt $((4 << 20)) ] && pass what_others_read_of_the_disk || fail what_others_read_of_the_disk "the disk $DISK, hearthd $OWN"
    rm "$CACHE.native"
else
    skip what_others_read_of_the_disk "the cache's file system has no block device"
fi

# ---- calls
same calls_by_method_and_code "$(metric controller hearth_csi_call_seconds_count method=/csi.v1.Controller/CreateVolume code=OK)" 1
kept=$VOLUME_ID
create_volume "bad-$$" 1048576 '{"nonsense": "1"}' && fail a_bad_parameter "it was taken"
VOLUME_ID=$kept
same and_those_that_fail "$(metric controller hearth_csi_call_seconds_count method=/csi.v1.Controller/CreateVolume code=INVALID_ARGUMENT)" 1
same stagings_too "$(metric node hearth_csi_call_seconds_count method=/csi.v1.Node/NodeStageVolume code=OK)" 1
[ "$(metric controller hearth_ceph_call_seconds_count result=answered)" -ge 1 ] && pass calls_of_Ceph_are_timed || fail calls_of_Ceph_are_timed "$(metric controller hearth_ceph_call_seconds_count)"
for program in controller node hearthd; do check "${program}s_are_well_formed_in_the_end" well_formed $program; done

# ---- bad addresses
refuses() { # PROGRAM FLAGS...
    ! "$BUILD/$1" "${@:2}" 2>"$TMP/refused" && grep -q -- --metrics-address "$TMP/refused"
}
check a_bad_address_is_refused refuses hearthd --no-cache --socket="$TMP/x.sock" --metrics-address=nowhere
check and_one_that_is_taken refuses hearthd --no-cache --socket="$TMP/x.sock" --metrics-address=127.0.0.1:${METRICS[node]}

# ---- over TLS, for clients of an authority
make_certificate() { # NAME
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj "/CN=$1" -addext subjectAltName=IP:127.0.0.1 \
        -keyout "$TMP/$1.key" -out "$TMP/$1.crt" 2>/dev/null
}
for name in served next prometheus pod; do make_certificate $name || die "openssl"; done
mkdir "$TMP/tls"
show() { # NAME: by new files, as kubelet does
    install "$TMP/$1.key" "$TMP/tls/key.new" && mv "$TMP/tls/key.new" "$TMP/tls/tls.key"
    install "$TMP/$1.crt" "$TMP/tls/crt.new" && mv "$TMP/tls/crt.new" "$TMP/tls/tls.crt"
}
show served
cp "$TMP/prometheus.crt" "$TMP/clients.crt"
secure=$(port)
SECURE=(--metrics-address=127.0.0.1:$secure --metrics-cert-dir="$TMP/tls" --metrics-client-ca="$TMP/clients.crt")
scrape() { # TRUSTED [CLIENT]: what comes of it
    CA=$TMP/$1.crt CERTIFICATE=${2:+$TMP/$2.crt} KEY=${2:+$TMP/$2.key} "$TOP/tests/integration/openmetrics.py" "https://127.0.0.1:$secure/metrics" 2>&1 | tail -n 1
}
scraped() { scrape "$@" | grep -q 'families, [1-9][0-9]* samples$'; }
over_tls() { # NAME COMMAND...
    local name=$1
    local pid
    "${@:2}" 2>"$TMP/tls.log" &
    pid=$!
    wait_for 50 scraped served prometheus
    check "${name}_is_read_over_tls" scraped served prometheus
    check "${name}_refuses_who_shows_nothing" grep -q '401' <(scrape served)
    check "${name}_refuses_who_shows_anothers" grep -qE '401|unknown.ca' <(scrape served pod)
    check "${name}_is_not_what_another_certificate_says" grep -q 'CERTIFICATE_VERIFY_FAILED' <(scrape next prometheus)
    show next
    wait_for 50 scraped next prometheus
    check "${name}_shows_a_certificate_that_was_replaced" scraped next prometheus
    kill "$pid"
    wait "$pid"
    show served
}
over_tls hearthd "$BUILD/hearthd" --no-cache --socket="$TMP/tls.sock" "${SECURE[@]}"
mkdir "$TMP/dir-root"
over_tls controller "$BUILD/hearth-csi" --role=controller --endpoint="unix://$TMP/csi-tls.sock" --dir-root="$TMP/dir-root" --cluster-config=/none "${SECURE[@]}"
needs() { # FLAG PROGRAM FLAGS...
    ! "$BUILD/$2" "${@:3}" 2>"$TMP/refused" && grep -q -- "$1" "$TMP/refused"
}
check authorities_need_tls needs --metrics-cert-dir hearthd --no-cache --socket="$TMP/x.sock" --metrics-address=127.0.0.1:0 --metrics-client-ca=/x
check a_certificate_that_is_missing_is_named needs tls.key hearthd --no-cache --socket="$TMP/x.sock" --metrics-address=127.0.0.1:0 --metrics-cert-dir=/none
