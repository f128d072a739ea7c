#!/bin/bash
# A clock that is set decides nothing: cache/ and driver/ measure time by clocks that do not jump (CLOCK_MONOTONIC,
# CLOCK_BOOTTIME), and ask the wall clock only in the files below, each for the reason beside it. `pthread` functions that
# know no other clock are among them.
#
#   clocks.sh [TOP]
#
# Prints one "fail layout: ..." for each file that is not in the list, or needs not be any more, and exits 1 on any.

set -uo pipefail
cd "${1:-$(dirname "$0")/../..}" || exit 1
allowed=(
    common/log.c                       # the time of a line in the log
    common/metrics/serve.c             # the days until a certificate ends
    cache/fuse/live/attrs.c            # a file's times, when they are set to now
    cache/store/objects/internal.h # when an object was last used, from one run to the next
    cache/warm/jobs.c  # when a job was started, for people
    driver/provision/repair.c # the age of a record, against --min-age
    driver/kube/lease/lease.c           # what others are told in a Lease; our own is judged by CLOCK_BOOTTIME
    driver/volume/group_record.c  # when it was made, for people
    driver/volume/record.c
    driver/volume/snapshot_record.c
    driver/warmth/node_table.c      # a heartbeat that was written before we came
    driver/warmth/reporter.c        # a heartbeat
    driver/kube/event.c        # when an Event was, for people
    driver/warmup/controller.c         # cron's times
    driver/affinity/webhook.c         # a certificate's end
)
asks='CLOCK_REALTIME|g_get_real_time *\(|g_date_time_new_now|gettimeofday *\(|(^|[^_a-z])time *\(NULL'
failed=0
found=$(grep -rlE --include='*.[ch]' "$asks" common proto cache driver 2>/dev/null | while read -r file; do
    # A comment that names it is none.
    grep -vE '^ *(/?\*|//)' "$file" | grep -E "$asks" >/dev/null && echo "$file"
done | sort)
while read -r file; do
    [ -z "$file" ] || { echo "fail layout: $file asks the wall clock, which jumps; use CLOCK_MONOTONIC or CLOCK_BOOTTIME, or say why in tests/layout/clocks.sh"; failed=1; }
done < <(comm -23 <(echo "$found") <(printf '%s\n' "${allowed[@]}" | sort))
if [ -z "${1:-}" ]; then
    while read -r file; do
        [ -z "$file" ] || { echo "fail layout: tests/layout/clocks.sh lists $file, which does not ask the wall clock"; failed=1; }
    done < <(comm -13 <(echo "$found") <(printf '%s\n' "${allowed[@]}" | sort))
fi
[ "$failed" = 1 ] || echo "pass layout: ${#allowed[@]} files ask the wall clock"
exit $failed
