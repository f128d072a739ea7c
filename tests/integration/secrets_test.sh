#!/bin/bash
# No secret is written to disk or to a log, none is on a command line, and no unprivileged process
# reaches a socket (promise 8). Debug logs on; good keys and wrong ones.
. "$(dirname "$0")/lib.sh"
init
start_ceph

# In the environment like the others, but no key of a user.
export WRONG_KEY=AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A==
start_controller
end controller
spawn controller "$BUILD/hearth-csi" --role=controller --endpoint="unix://$CONTROLLER" \
    --cluster-config="$TMP/config.json" --log-level=debug
wait_socket controller "$CONTROLLER"
start_hearthd --log-level=debug
spawn node "$BUILD/hearth-csi" --role=node --endpoint="unix://$NODE" --node-id=test-node \
    --hearthd-socket="$HEARTHD" --cluster-config="$TMP/config.json" --log-level=debug
wait_socket node "$NODE"

published_volume pvc-secret-$RANDOM 1073741824
echo hello >"$TARGET/file"
for change in '.secrets.userKey = env.WRONG_KEY' '.secrets.userKey = env.WRONG_KEY + "x"' '.secrets["" + env.WRONG_KEY] = "v"'; do
    csi controller CreateVolume "$(create_request pvc-wrong-$RANDOM 1073741824 '{}' | jq -c "$change")" && delete_volume
    csi node NodeStageVolume "$(stage_request | jq -c "$change | .staging_target_path += \"2\"")"
    grep -qF "$WRONG_KEY" <<<"$CSI_MESSAGE" && fail message_without_secret "$change"
done
hearthctl status --json >"$TMP/log/status.json"
hearthctl status >>"$TMP/log/status.json"

keys() { printf '%s\n' "$PROVISIONER_KEY" "$NODE_KEY" "$ADMIN_KEY" "$WRONG_KEY"; }
found_in_files() { grep -rlFf <(keys) "$TMP" --exclude-dir=mnt; }
found_in_cmdlines() {
    local p
    for p in /proc/[0-9]*; do
        tr '\0' ' ' 2>/dev/null <"$p/cmdline" | grep -qFf <(keys) && echo "$p"
    done
}
found_in_environments() {
    local name
    for name in controller hearthd node; do
        tr '\0' '\n' <"/proc/${PID[$name]}/environ" | grep -qFf <(keys) && echo "$name"
    done
}
# The search itself works.
keys >"$TMP/planted"
same the_search_finds_a_key "$(found_in_files)" "$TMP/planted"
rm "$TMP/planted"

same no_key_in_any_file "$(found_in_files)" ""
same no_key_on_a_command_line "$(found_in_cmdlines)" ""
same no_key_in_an_environment "$(found_in_environments)" ""
# Directories of tests and of their clusters are searched by those tests, or hold Ceph's own keyrings.
for file in /tmp /var/tmp /run /etc/ceph /var/log/ceph; do
    [ -d "$file" ] && found=$(find "$file" -xdev -maxdepth 3 -path '*/hearth-*' -prune -o -newer "$TMP/config.json" \
        -type f -size -10M -print0 2>/dev/null | xargs -0 -r grep -slFf <(keys))
    [ -z "${found:-}" ] || fail no_key_elsewhere "$found"
done
pass no_key_elsewhere

for socket in "$CONTROLLER" "$NODE" "$HEARTHD"; do
    same "mode_of_$(basename "$socket")" "$(stat -c '%a %u' "$socket")" "600 0"
done
chmod 711 "$TMP" "$TMP/run"
for socket in "$CONTROLLER" "$NODE" "$HEARTHD"; do
    if setpriv --reuid 65534 --regid 65534 --clear-groups python3 -c '
import socket, sys
kind = socket.SOCK_SEQPACKET if "hearthd" in sys.argv[1] else socket.SOCK_STREAM
socket.socket(socket.AF_UNIX, kind).connect(sys.argv[1])' "$socket" 2>/dev/null; then
        fail "nobody_reaches_$(basename "$socket")" "uid 65534 connected"
    else
        pass "nobody_reaches_$(basename "$socket")"
    fi
done
same cache_directory_is_private "$(stat -c %a "$CACHE")" 700
