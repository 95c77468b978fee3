#!/usr/bin/env bash
# Runs one command, and another on the processors that it leaves: scripts/beside.sh 'COMMAND' 'OTHER COMMAND'
#
# The first is for tests in real time, which wait more than they work, the other for tests that only work. The
# output of the other follows the first's. Where it cannot be kept strictly behind the first, it runs
# afterwards.
set -uo pipefail
said=$(mktemp) first_runs=$(mktemp) behind=""
finish() {
    [ -z "$behind" ] || { kill -TERM "$behind" && wait "$behind"; } 2>/dev/null
    rm -f "$said" "$first_runs"
}
trap finish EXIT
trap 'cat "$said"; exit 130' INT TERM

"$(dirname "$0")/last-in-line.sh" --strictly --while "$first_runs" bash -c "$2" >"$said" 2>&1 &
behind=$!
first=0
bash -c "$1" || first=$?
rm -f "$first_runs"
other=0
wait "$behind" || other=$?
behind=""
if [ "$other" = 125 ]; then
    other=0
    bash -c "$2" || other=$?
else
    cat "$said"
fi
[ "$first" = 0 ] || exit "$first"
exit "$other"
