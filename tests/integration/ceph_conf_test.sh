#!/bin/bash
# Options that an administrator sets for a cluster ("cephConf" of config.json), on a real Ceph: they reach the
# clients of the controller and of hearthd, for CephFS and for images, and what breaks a promise or is not
# known is refused by name. That of the connections is seen by the OSD, in how each is encrypted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/rbd_lib.sh"
init
start_ceph
OSD_LOG=$CEPH_DIR/log/osd.0.log
ceph_cmd tell osd.0 config set debug_ms 1/1 >/dev/null
at_exit 'ceph_cmd tell osd.0 config set debug_ms 0/0 >/dev/null'
own_user
start_hearth

# JSON of options, or null: from the next call on.
conf() { jq --argjson c "$1" '.[0].cephConf = $c' "$CEPH_DIR/config.json" >"$TMP/config.new" && mv "$TMP/config.new" "$TMP/config.json"; }
# How clients have connected with the OSD since: "crc", "secure", "crc secure".
begin() { SEEN=$(wc -l <"$OSD_LOG"); }
modes() {
    tail -n +$((SEEN + 1)) "$OSD_LOG" | grep 'ready entity=client' | grep -oE ' (crc|secure) :' | tr -d ' :' |
        sort -u | paste -sd ' '
}
FILE_CAPABILITY=$CAPABILITY
use_file() { # NAME: all that is done with a volume of CephFS, by hearthd
    CAPABILITY=$FILE_CAPABILITY
    stage && publish && echo x >"$TARGET/x" && sync -f "$TARGET" && [ "$(<"$TARGET/x")" = x ] && unpublish && unstage
}
use_image() {
    CAPABILITY='{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
    stage && publish && echo x >"$TARGET/x" && sync -f "$TARGET" && unpublish && unstage
}
refused() { # NAME TEXT: the call just made, by a message with the text
    if [ "$CSI_CODE" != OK ] && [[ $CSI_MESSAGE == *"$2"* ]] && [[ $CSI_MESSAGE == *"$CEPH_FSID"* ]]; then pass "$1"; else fail "$1" "$(said), wanted \"$2\" of cluster $CEPH_FSID"; fi
}
SECURE='{"ms_client_mode": "secure", "ms_mon_client_mode": "secure", "objecter_inflight_ops": 512}'

# ---- without it ----
begin
create_image pvc-conf-i$$ 67108864 || die "CreateVolume: $(said)"
IMAGE_ID=$VOLUME_ID IMAGE_CONTEXT=$VOLUME_CONTEXT
same the_controller_connects_as_the_library_has_it "$(modes)" crc

# ---- with it ----
conf "$SECURE"
begin
VOLUME_ID=$IMAGE_ID
expand 134217728
same the_controllers_next_connection_has_it "$CSI_CODE/$(modes)" OK/secure
create_volume pvc-conf-f$$ || die "CreateVolume: $(said)"
at_exit 'VOLUME_ID=$FILE_ID; delete_volume'
at_exit 'VOLUME_ID=$IMAGE_ID; delete_volume'
FILE_ID=$VOLUME_ID FILE_CONTEXT=$VOLUME_CONTEXT
begin
check a_volume_of_files_is_used use_file
same hearthds_connection_for_files_has_it "$(modes)" secure
VOLUME_ID=$IMAGE_ID VOLUME_CONTEXT=$IMAGE_CONTEXT
begin
check an_image_is_used use_image
same hearthds_connection_for_an_image_has_it "$(modes)" secure
begin
conf null
VOLUME_ID=$FILE_ID VOLUME_CONTEXT=$FILE_CONTEXT
check without_it_again use_file
same it_has_it_no_more "$(modes)" crc

# ---- what breaks a promise ----
conf '{"client_reconnect_stale": true}'
stage
refused the_node_names_what_breaks_a_promise "option client_reconnect_stale cannot be set, because"
create_volume pvc-conf-r$$
refused the_controller_does_too "option client_reconnect_stale cannot be set, because"
conf '{"ms_client_mode": "secure", "keyring": "/etc/ceph/keyring"}'
stage
refused a_key_is_never_among_them "option keyring cannot be set, because"

# ---- what Ceph does not know ----
conf '{"client_metadata": "a=b", "ms_no_such_option": "1"}'
create_volume pvc-conf-u$$
refused the_controller_names_what_is_not_known "knows no option ms_no_such_option"
VOLUME_ID=$FILE_ID VOLUME_CONTEXT=$FILE_CONTEXT CAPABILITY=$FILE_CAPABILITY
stage
refused hearthd_names_what_is_not_known "hearthd's Ceph library knows no option ms_no_such_option"
VOLUME_ID=$IMAGE_ID VOLUME_CONTEXT=$IMAGE_CONTEXT CAPABILITY='{mount: {fs_type: "ext4"}, access_mode: {mode: "SINGLE_NODE_WRITER"}}'
stage
refused of_an_image_too "hearthd's Ceph library knows no option ms_no_such_option"
conf '{"ms_tcp_nodelay": "perhaps"}'
stage
refused a_value_that_is_none_is_named 'refuses "perhaps" as value of option ms_tcp_nodelay'
conf null
check and_without_it_all_is_well use_image
