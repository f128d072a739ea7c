# Sourced after lib.sh: live_users.py in the background, one at a time.
#
#   users_begin DIR     makes DIR; returns when all users have begun
#   users_end           what they have seen is in $SEEN
#   users_are_content   of $SEEN: no error, no wrong byte, and much was done

users_begin() {
    mkdir "$1"
    python3 "$TOP/tests/integration/live_users.py" "$1" 600 >"$TMP/users" 2>&1 &
    USERS=$!
    wait_for 60 grep -q began "$TMP/users" || die "no users: $(cat "$TMP/users")"
}

users_end() {
    kill -TERM "$USERS"
    wait "$USERS"
    SEEN=$(tail -n 1 "$TMP/users")
}

users_are_content() {
    same no_error "$(jq -c .errors <<<"$SEEN")" "[]"
    same no_wrong_byte "$(jq -c .wrong <<<"$SEEN")" "[]"
    check they_did_much test "$(jq .steps <<<"$SEEN")" -gt 200
}
