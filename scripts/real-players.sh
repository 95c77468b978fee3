#!/usr/bin/env bash
# Tests of players in real time, and beside them, on the processors that they leave, tests that only work:
#
#   scripts/real-players.sh COMMAND ...
#
# A test of a player that fails meanwhile waits for the command's end and is run again (tests/serving/starved.py).
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: scripts/real-players.sh COMMAND ..." >&2; exit 2; }
cd "$(dirname "$0")/.."
held=$(mktemp) said=$(mktemp) players_run=$(mktemp) beside=
finish() {
    [ -z "$beside" ] || { kill -TERM "$beside" && wait "$beside"; } 2>/dev/null || true
    rm -f "$held" "$said" "$players_run"
}
trap finish EXIT
trap 'cat "$said"; exit 130' INT TERM

scripts/last-in-line.sh --while "$players_run" flock --close "$held" "$@" >"$said" 2>&1 &
beside=$!
# Theirs first, before any test looks for it.
for _ in $(seq 100); do flock --nonblock "$held" true && sleep 0.1 || break; done

status=0
STREAMGAUGE_TESTS_BESIDE=$held .venv/bin/python -m pytest -n 4 tests/serving || status=$?
rm -f "$players_run"
wait "$beside" || status=$?
beside=
cat "$said"
exit "$status"
