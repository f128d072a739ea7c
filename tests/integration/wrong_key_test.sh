#!/bin/bash
# Whose key it is, on a real Ceph. A wrong key is refused however Ceph is: while it answers, while it is
# away, for a claim that is staged already. What was staged on faith is verified with its own key when
# Ceph is back, and a refusal closes it, warm files and running containers too. Each user and key
# reads cold files over a connection of its own.
. "$(dirname "$0")/lib.sh"
init
start_ceph
own_user
start_controller --secret-dir="$TMP/own"
start_hearthd
start_node

# Any valid key that is nobody's.
export WRONG_KEY=AQBSdFhcGrNBEhAAQBJ7hL1c0dZ4yYQdVvWw0A==
recall() { # CLAIM: $VOLUME_ID, $STAGE, $TARGET
    eval "VOLUME_ID=\$$1_ID VOLUME_CONTEXT=\$$1_CONTEXT"
    STAGE=$TMP/mnt/stage-$1 TARGET=$TMP/mnt/pod/$1
}
with_key() { # KEY COMMAND...
    local NODE_KEY=$1
    shift
    "$@"
}
refused() { # NAME CODES TEXT: of the call just made
    case "|$2|" in *"|$CSI_CODE|"*) ;; *) fail "$1" "wanted $2, got $(said)"; return ;; esac
    grep -qiE -- "$3" <<<"$CSI_MESSAGE" && pass "$1" || fail "$1" "the message does not name $3: $(said)"
}
warm() { cat "$TARGET/warm1" "$TARGET/warm2" 2>&1; }

# ---- a tenant's user, with the rights of the node's, and a dataset that is known ----
caps=$(ceph_cmd auth get "client.$NODE_ID" --format json 2>/dev/null | jq -r '.[0].caps | to_entries[] | "\(.key)\n\(.value)"')
mapfile -t caps <<<"$caps"
NODE_ID=tenant-$$
new_key() {
    ceph_cmd auth rm "client.$NODE_ID" >/dev/null 2>&1
    ceph_cmd auth get-or-create-key "client.$NODE_ID" "${caps[@]}" 2>/dev/null
}
NODE_KEY=$(new_key)
at_exit "ceph_cmd auth rm client.$NODE_ID >/dev/null 2>&1"
[ -n "$NODE_KEY" ] || die "no user"
ceph_cmd fs subvolumegroup create hearthfs csi >/dev/null 2>&1
sub create keys-$$ --group_name csi --size 1073741824
at_exit "ceph_cmd fs subvolume snapshot rm hearthfs keys-$$ v1 --group_name csi 2>/dev/null; sub rm keys-$$ --group_name csi"
ROOT_PATH=$(sub getpath keys-$$ --group_name csi)
second_client
for file in warm1 warm2 cold1 cold2 cold3; do talk client write $file "$file" || die "no source: $ANSWER"; done
ceph_cmd fs subvolume snapshot create hearthfs keys-$$ v1 --group_name csi 2>/dev/null
CAPABILITY='{mount: {}, access_mode: {mode: "MULTI_NODE_READER_ONLY"}}'
for claim in A B C D; do
    create_volume "pvc-$claim-$$" 1073741824 "{\"dataset\": \"keys-$$@v1\"}" || die "CreateVolume: $(said)"
    eval "${claim}_ID=\$VOLUME_ID ${claim}_CONTEXT=\$VOLUME_CONTEXT"
done
recall A
stage && publish || die "stage: $(said)"
same it_is_read "$(warm)" warm1warm2
wait_for 30 settled

# ---- while Ceph answers ----
with_key $WRONG_KEY stage
refused a_staged_claim_is_not_staged_again_with_a_wrong_key 'PERMISSION_DENIED|UNAUTHENTICATED' "$NODE_ID"
same and_goes_on "$(warm)" warm1warm2
recall B
with_key $WRONG_KEY stage
refused a_wrong_key_is_refused 'PERMISSION_DENIED|UNAUTHENTICATED' "$NODE_ID"
same a_note_has_the_key_as_a_slow_hash "$(grep -rlF "$NODE_KEY" "$CACHE/manifests" | wc -l)/$(cat "$CACHE"/manifests/place.* | grep -c 'pbkdf2-sha256[$]600000[$]')" 0/1

# ---- while it is away ----
stop_ceph
recall B
with_key $WRONG_KEY stage
refused without_ceph_a_wrong_key_is_refused UNAVAILABLE 'not the one that it accepted last'
recall A
CSI_TIMEOUT=90 with_key $WRONG_KEY stage
refused without_ceph_a_staged_claim_keeps_its_key UNAVAILABLE 'not the one that it accepted last'
recall C
check the_key_that_was_accepted_last_is_staged stage
check and_published publish
same and_read_as_far_as_it_is_warm "$(warm)" warm1warm2
# As a container has it: a mount namespace that no unmounting outside reaches.
talk_start container unshare -m --propagation private python3 -u -c '
import os, sys
top = sys.argv[1]
print("ok", flush=True)
for line in sys.stdin:
    try:
        print("ok " + open(top + "/" + line.strip()).read(), flush=True)
    except OSError as e:
        print("error " + os.strerror(e.errno), flush=True)' "$TARGET" || die "no container: $ANSWER"
talk container warm2
same a_container_reads_what_is_warm "$ANSWER" warm2

# ---- back, with another key for that user ----
kill -STOP "${PID[hearthd]}"
continue_ceph
OLD_KEY=$NODE_KEY NODE_KEY=$(new_key)
[ -n "$NODE_KEY" ] && [ "$NODE_KEY" != "$OLD_KEY" ] || die "no new key"
export OLD_KEY
kill -CONT "${PID[hearthd]}"
is_refused() { grep -q 'with whose key it was opened while Ceph was away' "$TMP/log/hearthd.log"; }
check what_was_staged_on_faith_is_verified wait_for 120 is_refused
is_closed() { ! cat "$TARGET/warm2"; }
check a_refusal_closes_it wait_for 30 is_closed
for name in warm1 warm2 cold1; do
    timeout 60 cat "$TARGET/$name" >"$TMP/out" 2>"$TMP/err"
    same "$name-is_not_read" "$?/$(wc -c <"$TMP/out")" 1/0
done
talk container warm2
same nor_by_a_container "$ANSWER" "error Operation not permitted"
end node KILL
start_node
check a_restarted_node_plugin_closes_it_again wait_for 30 is_closed
STAGE=$TMP/mnt/stage-C TARGET=$TMP/mnt/pod/C2
publish && fail it_is_not_published_again "it was" || pass it_is_not_published_again

# ---- the new key ----
recall D
with_key $OLD_KEY stage
refused the_old_key_is_refused 'PERMISSION_DENIED|UNAUTHENTICATED' "$NODE_ID"
check the_new_key_is_staged stage
check and_published publish
same warm_and_cold "$(warm) $(cat "$TARGET/cold2" 2>&1)" "warm1warm2 cold2"
same over_a_connection_of_its_own "$(hearthctl status --json | jq -r '[.volumes[] | select(.attached).volume | select(startswith("dataset-"))[40:]] | join(" ")')" -2
recall C
is_closed && pass while_the_other_stays_closed || fail while_the_other_stays_closed "$(warm)"
wait_for 30 settled

# ---- and another one, and back ----
notes() { grep -l "$NODE_ID" "$CACHE"/manifests/place.* 2>/dev/null | wc -l; }
FIRST_KEY=$NODE_KEY SECOND_KEY=$(new_key)
recall B
with_key $FIRST_KEY stage
refused a_key_that_is_no_longer_valid_is_refused 'PERMISSION_DENIED|UNAUTHENTICATED' "$NODE_ID"
recall D
csi node NodeGetVolumeStats "$(csi_json '{volume_id: $id, volume_path: $t}' --arg id "$VOLUME_ID" --arg t "$TARGET")"
same a_volume_of_that_key_does_not_make_it_believed "$CSI_CODE/$(notes)" OK/0
recall B
with_key $SECOND_KEY stage && unstage || fail the_second_key_is_staged "$(said)"
ceph_cmd auth export "client.$NODE_ID" 2>/dev/null | sed "s|key = .*|key = $FIRST_KEY|" >"$TMP/keyring"
ceph_cmd auth import -i "$TMP/keyring" >/dev/null 2>&1 && rm "$TMP/keyring" || die "the first key is not brought back"
with_key $FIRST_KEY stage && unstage || fail the_first_key_is_staged_again "$(said)"
stop_ceph
CSI_TIMEOUT=90 with_key $SECOND_KEY stage
refused without_ceph_the_second_key_is_refused UNAVAILABLE 'not the one that it accepted last'
CSI_TIMEOUT=90 with_key $OLD_KEY stage
refused without_ceph_the_old_key_is_refused UNAVAILABLE 'not the one that it accepted last'
check without_ceph_the_new_key_is_staged stage
CSI_TIMEOUT=60
continue_ceph
talk_end container
for claim in A C D B; do
    recall $claim
    unpublish && unstage || fail "unstage-$claim" "$(said)"
done
same nothing_is_mounted "$(mounts_below "$DEVICES")$(ls "$DEVICES")" ""
NODE_ID=hearth-node
for claim in A B C D; do recall $claim && delete_volume || fail delete "$(said)"; done
exit 0
