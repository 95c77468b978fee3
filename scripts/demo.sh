#!/usr/bin/env bash
# What StreamGauge is for, in about two minutes: real RTSP video over UDP and over TCP through a 1 Mbit/s
# bottleneck under cross traffic, an FTP download under each class of Hessler and Welzl's cross traffic in virtual
# time, and one report of all. Its last lines are the answer and the report's place.
#
#   scripts/demo.sh [OUT [OPTION...]]
#
# On a machine that others use too a trial may be invalid: a further seed takes its place, at most three times, which
# is told. If none is valid, the simulation answers, and why is told in one line. The exit status is 0 whenever
# there is an answer, and that of what broke otherwise. OPTIONs go to the video's `streamgauge run`, such as
# `--set until.time=20s` for shorter trials.
set -uo pipefail
cd "$(dirname "$0")/.."
sg=.venv/bin/streamgauge
out=${1:-runs/demo}
[ $# -eq 0 ] || shift
video=(today/demo-rtsp-udp-medium today/demo-rtsp-tcp-medium)
broke=0
why=

# An invalid trial or a failed check (1, 2) is a result; whatever else is not 0 is a failure, and Ctrl-C ends it all.
judge() {
    [ "$1" -ne 130 ] || exit 130
    [ "$1" -le 2 ] || broke=$1
}

if lacking=$("$sg" doctor 2>&1); then
    echo "demo: streaming real video in emu, over UDP and over TCP; nothing leaves this machine"
    "$sg" run "${video[@]}" --mode emu --repeat 1 --replace 3 --out "$out" "$@"
    judge $?
    # A trial that broke leaves no record, and so no reason that the report could give.
    for scenario in "${video[@]}"; do
        if ! find "$out" -path "*scenario=${scenario/\//%2F}/mode=emu/seed=*/trial.json" | grep -q .; then
            why="demo: no trial of $scenario in emu left a record (told above), so the simulation answers"
        fi
    done
else
    why="demo: this machine cannot emulate, so the simulation answers: $(
        grep -v '^ok' <<<"$lacking" | head -n 1
    ); '$sg doctor' says what to do"
fi
# Its stand-in in virtual time, for the report to show beside it.
said=$("$sg" run "${video[@]}" --mode sim --out "$out" "$@" 2>&1)
status=$?
[ "$status" -le 2 ] || echo "$said" >&2
judge "$status"
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
