#!/usr/bin/env bash
# What StreamGauge is for, in about two minutes: real RTSP video over UDP and over TCP through a 1 Mbit/s
# bottleneck under cross traffic, then an FTP download under each class of Hessler and Welzl's cross traffic in
# virtual time, and one report of all.
set -uo pipefail
cd "$(dirname "$0")/.."
sg=.venv/bin/streamgauge
out=${1:-runs/demo}
worst=0
note() { [ "$1" -le "$worst" ] || worst=$1; }

video=(today/demo-rtsp-udp-medium today/demo-rtsp-tcp-medium)

if "$sg" doctor >/dev/null 2>&1; then
    echo "demo: streaming real video in emu, 40 s over UDP and 40 s over TCP; nothing leaves this machine"
    "$sg" run "${video[@]}" --mode emu --repeat 1 --out "$out"
    note $?
    # Its stand-in in virtual time, for the report to show beside it.
    "$sg" run "${video[@]}" --mode sim --out "$out" >/dev/null
    note $?
else
    echo "demo: this machine cannot emulate, so only the simulation follows. What is missing:"
    "$sg" doctor 2>&1 | grep -v '^ok'
    "$sg" run "${video[@]}" --mode sim --out "$out"
    note $?
fi
echo
echo "demo: the FTP rows of Hessler and Welzl's Table 2 in sim"
"$sg" reproduce 'hessler/ftp-*' --mode sim --out "$out"
note $?
echo
echo "demo: the report, one page that works offline:"
"$sg" report "$out"
note $?
exit "$worst"
