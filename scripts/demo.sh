#!/usr/bin/env bash
# The demo: RTSP video over UDP and over TCP through a 1 Mbit/s bottleneck beside cross traffic, simulated and with
# real programs; then an FTP download beside each class of Hessler and Welzl's cross traffic; then a report.
#
#   scripts/demo.sh [--first | --rest] [OUT [OPTION...]]
#
# --first is the simulated answer alone, which needs no engine; --rest is all that follows it. On a machine that others
# use too a trial may be invalid: further seeds take its place, then a virtual machine if one is built, then the
# simulation, and a line names the reason. The exit status is 0 whenever there is an answer, and that of the failure
# otherwise. OPTIONs go to the video's `streamgauge run`, such as `--set until.time=20s` for shorter trials.
set -uo pipefail
cd "$(dirname "$0")/.."
sg=.venv/bin/streamgauge
part=
case ${1:-} in
    --first | --rest) part=$1; shift ;;
esac
out=${1:-runs/demo}
[ $# -eq 0 ] || shift
video=(today/demo-rtsp-udp-medium today/demo-rtsp-tcp-medium)
broke=0
why=

# An invalid trial or a failed check (1, 2) is a result. Any other status but 0 is a failure, and Ctrl-C ends
# it all.
judge() {
    [ "$1" -ne 130 ] || exit 130
    [ "$1" -le 2 ] || broke=$1
}

# Prints the last paragraph of the simulated run: a table and a sentence.
simulate() { # option...
    local printed status
    printed=$("$sg" run "${video[@]}" --mode sim --out "$out" "$@" 2>&1)
    status=$?
    if [ "$status" -gt 2 ]; then
        echo "$printed" >&2
    else
        echo "demo: the first answer, simulated; real programs follow:"
        echo
        awk -v RS= '{last = $0} END {print last}' <<<"$printed"
        echo
    fi
    judge "$status"
}

# Runs real programs on this machine, and those trials again in a virtual one that stay invalid.
emulate() { # option...
    local lacking scenario replace=3 is_virtual=
    if ! lacking=$("$sg" doctor 2>&1); then
        why="demo: this machine cannot emulate, so simulation answers: $(
            grep -v '^ok' <<<"$lacking" | head -n 1
        ); '$sg doctor' has the remedy"
        return
    fi
    # One that has yet to be built would take minutes. A built one decides sooner than another try here.
    if grep -q '^ok .*virtual machine.*image built' <<<"$lacking"; then is_virtual=yes replace=1; fi
    echo "demo: streaming real video in emu, over UDP and over TCP; nothing leaves this machine"
    "$sg" run "${video[@]}" --mode emu --repeat 1 --replace "$replace" --out "$out" "$@"
    judge $?
    for scenario in "${video[@]}"; do
        case $(emulated "$scenario") in
            valid) continue ;;
            broken) why="demo: no trial of $scenario in emu left a record (see above), so simulation answers" ;;
        esac
        if [ -n "$is_virtual" ]; then
            echo "demo: no trial of $scenario is valid on this machine: it runs in a virtual machine now"
            "$sg" run "$scenario" --mode emu --machine virtual --repeat 1 --out "$out" "$@"
            judge $?
            why=
        fi
    done
}

# Prints `valid` if a trial on this machine counts, `invalid` if none does, `broken` if none left a record.
emulated() { # scenario
    .venv/bin/python - "$out" "${1/\//%2F}" <<'PY'
import json
import sys
from pathlib import Path

out, scenario = Path(sys.argv[1]), sys.argv[2]
# `--set` puts records below folders of its own.
trials = [json.loads(path.read_text()) for path in out.glob(f"**/scenario={scenario}/mode=emu/seed=*/trial.json")]
valid = any(trial["validity"]["valid"] for trial in trials)
print("valid" if valid else "invalid" if trials else "broken")
PY
}

if [ "$part" != --rest ]; then
    simulate "$@"
    [ "$part" != --first ] || exit "$broke"
fi
emulate "$@"
echo
echo "demo: the FTP rows of Hessler and Welzl's Table 2 in sim"
"$sg" reproduce 'hessler/ftp-*' --mode sim --out "$out"
judge $?
echo
[ -z "$why" ] || echo "$why"
echo "demo: the answer, and the report with all of it, one page that works offline:"
echo
"$sg" report "$out" --answer 'today/demo-*'
status=$?
[ "$status" -eq 0 ] || exit "$status"
exit "$broke"
