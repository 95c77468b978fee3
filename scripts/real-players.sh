#!/usr/bin/env bash
# Tests of players in real time, and beside them those whose trials run in virtual machines: what the former leave of the
# processors, the latter take, which nothing makes late. A test of a player that fails meanwhile waits for their end and
# is run again (tests/serving/starved.py).
set -euo pipefail
cd "$(dirname "$0")/.."
held=$(mktemp) said=$(mktemp) guests=
finish() {
    [ -z "$guests" ] || { kill -TERM "$guests" && wait "$guests"; } 2>/dev/null || true
    rm -f "$held" "$said"
}
trap finish EXIT
trap 'exit 130' INT TERM

scripts/last-in-line.sh flock --close "$held" \
    .venv/bin/python -m pytest -n 2 --dist loadgroup -m 'guest and not long' tests/emu tests/machine \
    >"$said" 2>&1 &
guests=$!
# Theirs before anybody asks whether somebody has it.
for _ in $(seq 100); do flock --nonblock "$held" true && sleep 0.1 || break; done

status=0
STREAMGAUGE_TESTS_GUESTS=$held .venv/bin/python -m pytest -n 4 tests/serving || status=$?
wait "$guests" || status=$?
guests=
cat "$said"
exit "$status"
